//! The socket of this host on which commands ask: for the user that the process runs as, and for root.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::net::{self, UnixListener};

/// The longest path that the kernel takes for a socket (unix(7)), without the zero at its end.
const LONGEST: usize = 107;

/// The socket's file. It goes with this.
pub struct Socket {
    path: Utf8PathBuf,
    /// What tells it from a file that somebody else made there since.
    identity: (u64, u64),
    owner: u32,
}

/// A path to a socket that the kernel takes, as long as this lives.
pub struct Place {
    path: Utf8PathBuf,
    _folder: Option<File>,
}

/// Who asks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Peer {
    /// The number of the user.
    pub uid: u32,
}

impl Place {
    /// The same file by another path where its own is too long.
    ///
    /// # Errors
    /// When its folder can't be opened.
    pub fn of(path: &Utf8Path) -> io::Result<Place> {
        let (Some(folder), Some(name), true) =
            (path.parent(), path.file_name(), path.as_str().len() > LONGEST)
        else {
            return Ok(Place { path: path.to_owned(), _folder: None });
        };
        let folder = File::open(folder)?;
        let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()).into();
        Ok(Place { path, _folder: Some(folder) })
    }

    /// The path.
    pub fn path(&self) -> &Utf8Path {
        &self.path
    }
}

/// Listens. What a process left behind that was killed is replaced.
///
/// # Errors
/// When another process listens there, something else is there, or the folder can't be written.
pub(super) fn listen(path: &Utf8Path) -> io::Result<(Socket, UnixListener)> {
    let place = Place::of(path)?;
    remove_stale(&place)?;
    let listener = UnixListener::bind(place.path())?;
    fs::set_permissions(place.path(), Permissions::from_mode(0o600))?;
    let made = fs::symlink_metadata(place.path())?;
    let (identity, owner) = ((made.dev(), made.ino()), made.uid());
    Ok((Socket { path: path.to_owned(), identity, owner }, listener))
}

fn remove_stale(place: &Place) -> io::Result<()> {
    match fs::symlink_metadata(place.path()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            return Err(io::Error::new(ErrorKind::AlreadyExists, "something that is no socket is there"));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(place.path()) {
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another process answers there")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(place.path()),
        Err(error) => Err(error),
    }
}

/// Who is at the other end; none where the kernel doesn't say.
pub(super) fn peer(stream: &net::UnixStream) -> Option<Peer> {
    stream.peer_cred().ok().map(|peer| Peer { uid: peer.uid() })
}

impl Socket {
    /// Whether somebody may ask: who owns the socket, and root.
    pub(super) fn admits(&self) -> impl Fn(&Peer) -> bool + use<> {
        let owner = self.owner;
        move |peer| peer.uid == owner || peer.uid == 0
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Ok(place) = Place::of(&self.path) else { return };
        let there = fs::symlink_metadata(place.path());
        if there.is_ok_and(|there| (there.dev(), there.ino()) == self.identity) {
            // What is left behind is replaced by the next process.
            let _ = fs::remove_file(place.path());
        }
    }
}
