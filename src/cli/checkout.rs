//! The checkout of a proposal, such as a pull request: whatever is in it is somebody's wish and decides nothing.

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::cli::failure::Failure;
use crate::cli::settings::{OWN_FOLDER, Settings};
use crate::source::git;
use crate::source::{SourceError, directory};
use crate::spec::Snapshot;
use crate::state::State;

/// How many links one path may lead through.
const MAX_LINKS: u32 = 40;

/// Refuses settings that the proposal brings along. They must not even be read before.
///
/// # Errors
/// When they are in the checkout, or the way to them is.
pub fn refuse_its_settings(checkout: &Utf8Path, config: Option<&Utf8Path>) -> Result<(), Failure> {
    let inside = canonical(checkout)?;
    match config.filter(|config| leads_through(config, &inside)) {
        None => Ok(()),
        Some(config) => Err(Failure::new(format!(
            "the settings `{config}` are in the checkout `{checkout}`: whoever proposes it would decide how it is checked"
        ))
        .hint(
            "keep them where no proposal comes to, and give their absolute path as in --config \
             /etc/streamfleet/streamfleet.toml",
        )),
    }
}

/// Refuses a state, secrets and output that the proposal brings along: its own kubeconfig would be one that was applied.
///
/// # Errors
/// When one of them is in the checkout, or the way to it is.
pub fn refuse_its_folders(checkout: &Utf8Path, settings: &Settings) -> Result<(), Failure> {
    let inside = canonical(checkout)?;
    let folders = [
        ("state", "--state-dir", &settings.state_dir),
        ("secrets", "--secrets-dir", &settings.secrets_dir),
        ("output", "--output-dir", &settings.output_dir),
    ];
    match folders.into_iter().find(|(_, _, folder)| leads_through(folder, &inside)) {
        None => Ok(()),
        Some((what, flag, folder)) => Err(Failure::new(format!(
            "the {what} folder `{folder}` is in the checkout `{checkout}`: whoever proposes it would decide how it is checked"
        ))
        .hint(format!(
            "name the one of the installation by its absolute path, as {flag} or in the settings"
        ))),
    }
}

/// Refuses to take the folder that the command runs in for the tree that the checkout is of, unless it is one that was applied:
/// as another tree than the last, all deletions of it would seem to need approval.
///
/// # Errors
/// When nobody named the tree.
pub fn refuse_no_tree(checkout: &Utf8Path, settings: &Settings) -> Result<(), Failure> {
    let own = settings.tree.join(OWN_FOLDER).join("state");
    if settings.from_git || (settings.state_dir == own && State::exists(&own)) {
        return Ok(());
    }
    Err(Failure::usage(format!("which tree the checkout `{checkout}` is of is not said"))
        .hint("name the tree that is applied: streamfleet plan TREE --checkout DIR"))
}

/// Reads the specs of a checkout as those of the tree that it is of.
///
/// # Errors
/// When they can't be read, or lie elsewhere.
pub fn read(settings: &Settings, checkout: &Utf8Path) -> Result<Snapshot, Failure> {
    let folder = match settings.config.source.folder.as_deref().filter(|_| settings.from_git) {
        Some(folder) => folder_in(checkout, folder)?,
        None => checkout.to_owned(),
    };
    let mut snapshot = directory::scan(&folder)
        .map_err(|error| Failure::during(attempt(checkout), &error).hint(error.hint()))?;
    snapshot.source = settings.source();
    if settings.from_git {
        // By that, plain secrets are refused as they will be once it is merged.
        snapshot.commit = git::checked_out(checkout)
            .map_err(|error| Failure::during(attempt(checkout), &error).hint(error.hint()))?;
        if snapshot.commit.is_none() {
            return Err(Failure::new(format!(
                "{}: it is of no git repository, or of an empty one",
                attempt(checkout)
            ))
            .hint("name the folder that `git clone` or `git worktree add` made, or one in it"));
        }
    }
    Ok(snapshot)
}

/// The folder of the specs in a checkout.
fn folder_in(checkout: &Utf8Path, folder: &str) -> Result<Utf8PathBuf, Failure> {
    let mut place = canonical(checkout)?;
    let root = place.clone();
    // Settings that were checked name a path that stays inside where no part of it is a link.
    for name in Utf8Path::new(folder).components() {
        place.push(name);
        if place.is_symlink() {
            let link = place.strip_prefix(&root).unwrap_or(&place);
            return Err(Failure::new(format!(
                "{}: `{link}` in it is a link, which is not followed",
                attempt(checkout)
            ))
            .hint("put the folder itself in place of the link"));
        }
    }
    Ok(place)
}

fn canonical(checkout: &Utf8Path) -> Result<Utf8PathBuf, Failure> {
    checkout.canonicalize_utf8().map_err(|error| {
        let error = SourceError::Root { path: checkout.to_owned(), error };
        Failure::during(attempt(checkout), &error).hint(error.hint())
    })
}

fn attempt(checkout: &Utf8Path) -> String {
    format!("could not read the checkout `{checkout}`")
}

/// Whether a path is in a folder or any link on its way is: whoever can change that link chooses where it ends. What isn't
/// there yet has no links in it.
fn leads_through(path: &Utf8Path, folder: &Utf8Path) -> bool {
    let Ok(whole) = camino::absolute_utf8(path) else { return true };
    let (mut at, mut links) = (Utf8PathBuf::from("/"), 0);
    let mut ahead = steps(&whole);
    while let Some(step) = ahead.pop() {
        if step == ".." {
            at.pop();
            continue;
        }
        at.push(&step);
        if at.starts_with(folder) {
            return true;
        }
        match at.read_link_utf8() {
            Ok(_) if links == MAX_LINKS => return true,
            Ok(target) => {
                links += 1;
                at = if target.is_absolute() { "/".into() } else { parent(&at) };
                ahead.extend(steps(&target));
            }
            // Its target can't be told in letters, so it isn't said to be harmless.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return true,
            Err(_) => {}
        }
    }
    false
}

/// The names of a path, the last one first.
fn steps(path: &Utf8Path) -> Vec<String> {
    let names = path.components().rev().filter_map(|step| match step {
        Utf8Component::Normal(name) => Some(name),
        Utf8Component::ParentDir => Some(".."),
        _ => None,
    });
    names.map(str::to_owned).collect()
}

fn parent(path: &Utf8Path) -> Utf8PathBuf {
    path.parent().unwrap_or(path).to_owned()
}
