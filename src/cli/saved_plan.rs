//! Saved plans: written by `plan --out`, read by `apply FILE`.

use std::io::{self, Write as _};

use camino::{Utf8Path, Utf8PathBuf};

use crate::cli::failure::Failure;
use crate::cli::settings::Settings;
use crate::plan::Plan;

/// The largest saved plan, in bytes. At ten thousand clusters a plan has about 200 MB.
const MAX_BYTES: u64 = 1 << 30;

pub fn write(path: &Utf8Path, plan: &Plan) -> Result<(), Failure> {
    replace(path, plan.to_json().as_bytes()).map_err(|error| {
        Failure::during(format!("cannot save the plan to `{path}`"), &error)
            .hint("choose a file in a folder that you can write to, on a disk with free space")
    })
}

/// Refuses to overwrite anything but a saved plan, and to write into folders that belong to streamfleet.
pub fn refuse_other(path: &Utf8Path, settings: &Settings) -> Result<(), Failure> {
    let attempt = || format!("cannot save the plan to `{path}`");
    let parent = path.parent().filter(|parent| !parent.as_str().is_empty()).unwrap_or(Utf8Path::new("."));
    let folder = parent.canonicalize_utf8().map_err(|error| Failure::during(attempt(), &error))?;
    let own = [settings.tree.join(".streamfleet")].into_iter();
    let own =
        own.chain([&settings.state_dir, &settings.output_dir, &settings.secrets_dir].into_iter().cloned());
    let inside = |own: Utf8PathBuf| folder.starts_with(own.canonicalize_utf8().unwrap_or(own));
    if own.into_iter().any(inside) {
        return Err(Failure::new(format!("{}: streamfleet keeps its own files there", attempt()))
            .hint("choose a file in another folder"));
    }
    if path.symlink_metadata().is_ok() && read(path).is_err() {
        return Err(Failure::new(format!("{}: another file is there, which is not a saved plan", attempt()))
            .hint("choose another file, or move that one away"));
    }
    Ok(())
}

/// Replaces a file atomically and keeps its permissions.
pub fn replace(path: &Utf8Path, bytes: &[u8]) -> io::Result<()> {
    let folder = match path.parent() {
        Some(parent) if !parent.as_str().is_empty() => parent,
        _ => Utf8Path::new("."),
    };
    let mut file = tempfile::NamedTempFile::new_in(folder)?;
    file.write_all(bytes)?;
    file.as_file().sync_all()?;
    // Temporary files have mode 0600; a replaced file keeps its own mode.
    if let Ok(before) = std::fs::metadata(path) {
        file.as_file().set_permissions(before.permissions())?;
    }
    file.persist(path)?;
    Ok(())
}

pub fn read(path: &Utf8Path) -> Result<Plan, Failure> {
    let attempt = || format!("cannot read the plan `{path}`");
    let size = std::fs::metadata(path).map_err(|error| Failure::during(attempt(), &error))?.len();
    if size > MAX_BYTES {
        return Err(Failure::new(format!("{}: it is larger than any plan", attempt())));
    }
    let text = std::fs::read_to_string(path).map_err(|error| Failure::during(attempt(), &error))?;
    Plan::from_json(&text).map_err(|error| {
        Failure::during(attempt(), &error).hint("create one with: streamfleet plan TREE --out FILE")
    })
}
