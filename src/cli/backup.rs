//! `streamfleet backup`: saves what can't be recreated.

use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use jiff::Timestamp;

use crate::cli::command;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::settings::{OWN_FOLDER, Settings, TreeArgs};
use crate::secret::{self, Keyring};
use crate::state::{self, Archive};

/// The largest backup, in bytes. The registry of ten thousand clusters has about 10 MB.
pub const MAX_BYTES: u64 = 1 << 30;

/// Save everything of an installation that can't be recreated to one file: ids and protection, the audit
/// trail, tokens and the keys.
///
/// It can run at any time, also while another streamfleet process is working. The file contains private keys.
#[derive(Debug, Args)]
pub struct Backup {
    /// The file to write. It must not exist yet.
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,
    #[command(flatten)]
    tree: TreeArgs,
    /// Encrypt the file to this recipient, as `age-keygen` prints it.
    #[arg(long, value_name = "AGE RECIPIENT")]
    recipient: Option<String>,
}

pub fn run(verb: &Backup, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let attempt = || format!("cannot back up the state in `{}`", settings.state_dir);
    refuse_inside(&verb.file, &settings)?;
    let archive = state::back_up(&settings.state_dir, env!("CARGO_PKG_VERSION"), Timestamp::now())
        .map_err(|error| Failure::of_state(attempt(), &error))?;
    let Some(archive) = archive else {
        return Err(Failure::new(format!("nothing is recorded in `{}`", settings.state_dir)).hint(format!(
            "there is nothing to back up before the first `streamfleet apply {}`",
            settings.arguments
        )));
    };
    // Unreadable keys are an error: a backup without them would be trusted.
    let keyring =
        Keyring::load(&settings.state_dir).map_err(|error| Failure::of_secret(attempt(), &error))?;
    let bytes = archive.to_bytes().map_err(|error| Failure::during(attempt(), &error))?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(Failure::new(format!("{}: it is larger than 1 GiB", attempt()))
            .hint("move the older lines of `audit.jsonl` to a file of their own"));
    }
    match &verb.recipient {
        Some(recipient) => {
            refuse_own(recipient, keyring.as_ref())?;
            let sealed = secret::seal_file(recipient, &bytes)
                .map_err(|error| Failure::of_secret(attempt(), &error))?;
            write_new(&verb.file, &sealed)?;
        }
        None => write_new(&verb.file, &bytes)?,
    }
    console.print(&report(&archive, verb, &settings))?;
    if !archive.holds_keys() {
        console.warn("it contains no keys, because the state folder has none");
    }
    Ok(exit::OK)
}

fn report(archive: &Archive, verb: &Backup, settings: &Settings) -> String {
    let Backup { file, recipient, .. } = verb;
    let (tree, shown) = (&settings.arguments, command::quoted(file));
    let mut text = format!("Backed up the state in {} to {file}:\n", settings.state_dir);
    for saved in &archive.manifest.files {
        text.push_str(&format!("  {:18} {:>10} bytes\n", saved.name, saved.length));
    }
    text.push_str(&match recipient {
        Some(_) => format!(
            "It is encrypted; to restore it: streamfleet restore {shown} {tree} --identity IDENTITY_FILE\n"
        ),
        None if archive.holds_keys() => format!(
            "It contains the installation's private keys, which open every sealed secret. Restrict its permissions to \
                yourself, or encrypt it with --recipient.\nTo restore it: streamfleet restore {shown} {tree}\n"
        ),
        None => format!("To restore it: streamfleet restore {shown} {tree}\n"),
    });
    text
}

/// Refuses a file inside the tree or the state. Beside the state, the backup is lost with it; in the tree,
/// its keys may be committed.
fn refuse_inside(file: &Utf8Path, settings: &Settings) -> Result<(), Failure> {
    let attempt = || format!("cannot write the backup `{file}`");
    let folder = folder(file).canonicalize_utf8().map_err(|error| Failure::during(attempt(), &error))?;
    let state = settings.state_dir.canonicalize_utf8();
    let state = state.unwrap_or_else(|_| settings.state_dir.clone());
    let holds = |own: &Utf8Path| folder.starts_with(own);
    // With `source.git` the current folder is not the tree.
    let in_tree = !settings.from_git && holds(&settings.real_tree);
    if in_tree || holds(&settings.home.join(OWN_FOLDER)) || holds(&state) {
        return Err(Failure::new(format!("{}: it would be inside the tree or the state that it saves", attempt()))
            .hint(format!(
                "choose a file elsewhere, best on another disk: files in `{OWN_FOLDER}` would be lost together with \
                    the state, and files in the tree may be committed"
            )));
    }
    Ok(())
}

/// Refuses the installation's own recipient: its identity is lost together with the state, and the backup
/// could not be opened.
fn refuse_own(recipient: &str, keyring: Option<&Keyring>) -> Result<(), Failure> {
    if keyring.is_some_and(|keyring| keyring.is_own(recipient)) {
        return Err(Failure::usage(
            "cannot encrypt the backup to the installation's own identity, which would be lost with it",
        )
        .hint("create an identity for backups with `age-keygen`, and keep it elsewhere"));
    }
    Ok(())
}

fn folder(file: &Utf8Path) -> &Utf8Path {
    file.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."))
}

/// Writes a file readable only by its owner, atomically, and never over an existing file: that may be the
/// last good backup.
fn write_new(file: &Utf8Path, bytes: &[u8]) -> Result<(), Failure> {
    let attempt = || format!("cannot write the backup `{file}`");
    let write = || -> io::Result<()> {
        let mut temporary = tempfile::NamedTempFile::new_in(folder(file))?;
        temporary.write_all(bytes)?;
        temporary.as_file().sync_all()?;
        temporary.persist_noclobber(file)?;
        std::fs::File::open(folder(file))?.sync_all()
    };
    write().map_err(|error| {
        let failure = Failure::during(attempt(), &error);
        match error.kind() {
            io::ErrorKind::AlreadyExists => {
                failure.hint("a backup doesn't overwrite files: choose another file")
            }
            io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded => {
                failure.hint("free some space, or choose a file on another disk; nothing was written")
            }
            _ => failure.hint("choose a file in a folder that you can write to"),
        }
    })
}
