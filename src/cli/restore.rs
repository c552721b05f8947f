//! `streamfleet restore`: restores what was lost.

use std::io::Read as _;

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;
use jiff::Timestamp;
use zeroize::Zeroizing;

use crate::cli::backup::MAX_BYTES;
use crate::cli::command;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::secret;
use crate::state::{self, Archive, Manifest, RecordedEvent, State};

/// The largest identity file, in bytes. One identity has about 200.
const MAX_IDENTITY_BYTES: u64 = 1 << 20;

/// Restore an installation's state from a file that `backup` wrote.
///
/// The state folder has to be missing or empty, so that nothing newer than the backup is replaced. All is restored or
/// nothing.
#[derive(Debug, Args)]
pub struct Restore {
    /// The file that `streamfleet backup` wrote.
    #[arg(value_name = "FILE")]
    file: Utf8PathBuf,
    #[command(flatten)]
    tree: TreeArgs,
    /// The file with the age identity that opens an encrypted backup.
    #[arg(long, value_name = "FILE")]
    identity: Option<Utf8PathBuf>,
}

pub fn run(verb: &Restore, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let archive = read_archive(verb)?;
    let attempt = || format!("cannot restore the state in `{}`", settings.state_dir);
    round::prepare(&settings, StateAccess::Write)?;
    state::restore(&settings.state_dir, &archive)
        .map_err(|error| Failure::during(attempt(), &error).hint(error.hint()))?;
    // Open everything once, to prove that the restored files can be used.
    let state = round::open_state(&settings, StateAccess::Existing, console)?;
    round::keyring(&settings, StateAccess::ReadOnly)?;
    audit(state.as_ref(), &archive)?;
    console.print(&report(&archive, &settings))?;
    Ok(exit::OK)
}

/// Reads and verifies the whole backup before anything is written.
fn read_archive(verb: &Restore) -> Result<Archive, Failure> {
    let attempt = || format!("cannot read the backup `{}`", verb.file);
    let mut bytes = read_bounded(&verb.file, MAX_BYTES + MAX_IDENTITY_BYTES, &attempt())?;
    match (&verb.identity, secret::is_sealed(&bytes)) {
        (Some(identity), true) => {
            let attempt_identity = format!("cannot read the identity `{identity}`");
            let text = read_bounded(identity, MAX_IDENTITY_BYTES, &attempt_identity)?;
            let text =
                std::str::from_utf8(&text).map_err(|error| Failure::during(attempt_identity, &error))?;
            bytes = secret::open_file(text, &bytes).map_err(|error| Failure::of_secret(attempt(), &error))?;
        }
        (None, true) => {
            return Err(Failure::usage(format!("{}: it is encrypted", attempt())).hint(
                "pass the identity file that it was encrypted to: streamfleet restore FILE TREE --identity FILE",
            ));
        }
        (_, false) => {}
    }
    Archive::parse(&bytes).map_err(|error| Failure::during(attempt(), &error).hint(error.hint()))
}

fn read_bounded(path: &Utf8Path, most: u64, attempt: &str) -> Result<Zeroizing<Vec<u8>>, Failure> {
    let read = || {
        let file = std::fs::File::open(path)?;
        let size = usize::try_from(file.metadata()?.len().min(most)).unwrap_or(0);
        let mut bytes = Zeroizing::new(Vec::with_capacity(size + 1));
        file.take(most + 1).read_to_end(&mut bytes)?;
        Ok(bytes)
    };
    let bytes = read().map_err(|error: std::io::Error| Failure::during(attempt, &error))?;
    if bytes.len() as u64 > most {
        return Err(Failure::new(format!("{attempt}: it is larger than any backup of streamfleet")));
    }
    Ok(bytes)
}

fn audit(state: Option<&State>, archive: &Archive) -> Result<(), Failure> {
    let Some(state) = state else { return Ok(()) };
    let files: Vec<&str> = archive.manifest.files.iter().map(|file| file.name.as_str()).collect();
    let what = format!("restored {} from the backup of {}", files.join(", "), archive.manifest.made_at);
    let event = RecordedEvent::done(Timestamp::now(), round::actor(), what);
    state.audit_person(event).map_err(|error| Failure::of_state("cannot write the audit trail", &error))
}

fn report(archive: &Archive, settings: &Settings) -> String {
    let Manifest { made_at, files, .. } = &archive.manifest;
    let mut text = format!("Restored from the backup of {made_at}:\n");
    text.extend(files.iter().map(|file| format!("  {}\n", file.name)));
    if files.iter().any(|file| file.name == state::TOKENS) {
        text.push_str(&format!(
            "Tokens that were revoked since the backup are valid again, and those created since are invalid; list them: \
             {}\n",
            command::line(&["token", "list", &settings.arguments])
        ));
    }
    text.push_str(&format!(
        "Check the plan before you apply it, because the backup may be older than the targets: streamfleet plan {}\n",
        settings.arguments
    ));
    text
}
