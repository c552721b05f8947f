//! The Unix socket, open to the user that the process runs as and to root.

use std::fs::{self, File, Permissions};
use std::io::{self, ErrorKind};
use std::os::fd::AsRawFd as _;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _, PermissionsExt as _};
use std::os::unix::net::UnixStream;

use camino::{Utf8Path, Utf8PathBuf};
use tokio::net::{self, UnixListener};

use super::peer::Peer;

/// The longest socket path that the kernel accepts (unix(7)), without the trailing zero.
const LONGEST: usize = 107;

/// The socket's file, which is removed when this is dropped.
pub struct Socket {
    path: Utf8PathBuf,
    /// The device and inode, to tell the file from one that another process created since.
    identity: (u64, u64),
    owner: u32,
}

/// A socket path short enough for the kernel. It is valid until this is dropped.
pub struct SocketPath {
    path: Utf8PathBuf,
    _folder: Option<File>,
}

impl SocketPath {
    /// Shortens a long path by going through the open folder.
    ///
    /// # Errors
    /// When the folder can't be opened.
    pub fn of(path: &Utf8Path) -> io::Result<SocketPath> {
        let (Some(folder), Some(name), true) =
            (path.parent(), path.file_name(), path.as_str().len() > LONGEST)
        else {
            return Ok(SocketPath { path: path.to_owned(), _folder: None });
        };
        let folder = File::open(folder)?;
        let path = format!("/proc/self/fd/{}/{name}", folder.as_raw_fd()).into();
        Ok(SocketPath { path, _folder: Some(folder) })
    }

    pub fn path(&self) -> &Utf8Path {
        &self.path
    }
}

/// Listens on the socket, and replaces the file of a killed process.
///
/// # Errors
/// When another process listens there, another kind of file is there, or the folder isn't writable.
pub fn listen(path: &Utf8Path) -> io::Result<(Socket, UnixListener)> {
    let place = SocketPath::of(path)?;
    remove_stale(&place)?;
    let listener = UnixListener::bind(place.path())?;
    fs::set_permissions(place.path(), Permissions::from_mode(0o600))?;
    let made = fs::symlink_metadata(place.path())?;
    let (identity, owner) = ((made.dev(), made.ino()), made.uid());
    Ok((Socket { path: path.to_owned(), identity, owner }, listener))
}

fn remove_stale(place: &SocketPath) -> io::Result<()> {
    match fs::symlink_metadata(place.path()) {
        Err(error) if error.kind() == ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
        Ok(found) if !found.file_type().is_socket() => {
            let why = "another file is there, which is not a socket";
            return Err(io::Error::new(ErrorKind::AlreadyExists, why));
        }
        Ok(_) => {}
    }
    match UnixStream::connect(place.path()) {
        Ok(_) => Err(io::Error::new(ErrorKind::AddrInUse, "another process is listening there")),
        Err(error) if error.kind() == ErrorKind::ConnectionRefused => fs::remove_file(place.path()),
        Err(error) => Err(error),
    }
}

impl Socket {
    /// Identifies the owner of the socket, and root; `None` for any other user.
    pub fn admits(&self) -> impl Fn(&net::UnixStream) -> Option<Peer> + use<> {
        let owner = self.owner;
        move |stream| {
            let uid = stream.peer_cred().ok()?.uid();
            (uid == owner || uid == 0).then_some(Peer::Local { uid })
        }
    }
}

impl Drop for Socket {
    fn drop(&mut self) {
        let Ok(place) = SocketPath::of(&self.path) else { return };
        let there = fs::symlink_metadata(place.path());
        if there.is_ok_and(|there| (there.dev(), there.ino()) == self.identity) {
            // A leftover file is replaced by the next process.
            let _ = fs::remove_file(place.path());
        }
    }
}
