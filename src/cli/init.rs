//! `streamfleet init`: writes a tree to start from.

use camino::{Utf8Path, Utf8PathBuf};
use clap::Args;

use crate::cli::command;
use crate::cli::console::Console;
use crate::cli::failure::Failure;
use crate::cli::paths::absolute_path;
use crate::cli::settings::{IGNORE_ALL, OWN_FOLDER};
use crate::cli::{exit, schema};
use crate::names::{Identifier, Kind};

/// Write a small tree to start from: an organization, a fleet that is a folder, and a cluster.
#[derive(Debug, Args)]
pub struct Init {
    /// The folder to write to. It is created if missing; existing files are never overwritten.
    #[arg(value_name = "DIR", default_value = ".")]
    folder: Utf8PathBuf,
    /// The organization's identifier.
    #[arg(long, default_value = "acme")]
    organization: Identifier,
}

/// The specs of the tree. `ORGANIZATION` is replaced by the organization's identifier.
const SPECS: [(&str, &str); 3] = [
    ("organizations.yaml", include_str!("init/organizations.yaml")),
    ("ORGANIZATION/fleets/main.yaml", include_str!("init/fleet.yaml")),
    ("ORGANIZATION/clusters/first.yaml", include_str!("init/cluster.yaml")),
];

pub fn run(verb: &Init, console: &mut Console) -> Result<u8, Failure> {
    name_folder(&verb.folder, console);
    let fill = |text: &str| text.replace("ORGANIZATION", verb.organization.as_str());
    let specs = SPECS.iter().map(|(path, text)| (verb.folder.join(fill(path)), fill(text)));
    // Secrets may be put there by hand before the first run.
    let ignore = (verb.folder.join(OWN_FOLDER).join(".gitignore"), IGNORE_ALL.to_owned());
    let files: Vec<(Utf8PathBuf, String)> = specs.chain(schemas(&verb.folder)).chain([ignore]).collect();
    if let Some((path, _)) = files.iter().find(|(path, _)| path.symlink_metadata().is_ok()) {
        return Err(Failure::new(format!("`{path}` exists already, so nothing was written"))
            .hint("choose an empty folder: streamfleet init DIR"));
    }
    for (path, text) in &files {
        write_new(path, text).map_err(|error| Failure::during(format!("cannot write `{path}`"), &error))?;
        console.print(&format!("wrote {path}\n"))?;
    }
    console
        .print(&format!("\nTo see what it would do: streamfleet plan {}\n", command::quoted(&verb.folder)))?;
    Ok(exit::OK)
}

/// Prints the full path when the folder is `.`.
fn name_folder(folder: &Utf8Path, console: &mut Console) {
    if folder == "." {
        console.tell(&format!(
            "writing to the current folder, `{}`\n",
            absolute_path(folder).as_str().trim_end_matches("/.")
        ));
    }
}

/// The schemas that the specs name in their first lines, for editors. They are part of the tree, so that they
/// work for everyone who has it; a path on this machine or a URL might not.
fn schemas(tree: &Utf8Path) -> impl Iterator<Item = (Utf8PathBuf, String)> {
    let folder = tree.join("schemas");
    Kind::ALL
        .into_iter()
        .map(move |kind| (folder.join(format!("{}.json", kind.singular())), schema::document_text(kind)))
}

fn write_new(path: &Utf8Path, text: &str) -> std::io::Result<()> {
    if let Some(folder) = path.parent() {
        std::fs::create_dir_all(folder)?;
    }
    let mut file = std::fs::File::create_new(path)?;
    std::io::Write::write_all(&mut file, text.as_bytes())
}
