//! The checkout of a proposal, such as a pull request. Its content is untrusted.

use std::io;

use camino::{Utf8Component, Utf8Path, Utf8PathBuf};

use crate::cli::failure::Failure;
use crate::cli::settings::{OWN_FOLDER, Settings};
use crate::source::git;
use crate::source::{SourceError, directory};
use crate::spec::Snapshot;
use crate::state::State;

/// The most links that one path may lead through, as on Linux (`MAXSYMLINKS`).
const MAX_LINKS: u32 = 40;

/// Refuses settings inside the checkout. Call it before the settings are read.
///
/// # Errors
/// When the settings, or a link on the way to them, are in the checkout.
pub fn refuse_its_settings(checkout: &Utf8Path, config: Option<&Utf8Path>) -> Result<(), Failure> {
    let inside = canonical(checkout)?;
    match config.filter(|config| leads_through(config, &inside)) {
        None => Ok(()),
        Some(config) => Err(Failure::new(format!(
            "the settings `{config}` are in the checkout `{checkout}`: the author of the proposal would decide how it is \
             checked"
        ))
        .hint(
            "keep them outside of the checkout, and give their absolute path, such as --config \
             /etc/streamfleet/streamfleet.toml",
        )),
    }
}

/// Refuses state, secrets and output folders inside the checkout: with its own state, a proposal could
/// present its own kubeconfig as an applied one.
///
/// # Errors
/// When one of them, or a link on the way to it, is in the checkout.
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
            "the {what} folder `{folder}` is in the checkout `{checkout}`: the author of the proposal would decide how it \
             is checked"
        ))
        .hint(format!(
            "give the absolute path of the installation's own folder, with {flag} or in the settings"
        ))),
    }
}

/// Requires a tree that was applied when none is named. Otherwise the current folder would count as a new
/// tree, and all deletions would seem to need approval.
///
/// # Errors
/// When neither the command nor the settings name the tree.
pub fn refuse_no_tree(checkout: &Utf8Path, settings: &Settings) -> Result<(), Failure> {
    let own = settings.tree.join(OWN_FOLDER).join("state");
    if settings.from_git || (settings.state_dir == own && State::exists(&own)) {
        return Ok(());
    }
    Err(Failure::usage(format!("the tree of the checkout `{checkout}` is missing"))
        .hint("give the tree that is applied: streamfleet plan TREE --checkout DIR"))
}

/// Reads the specs of a checkout as if they were those of its tree.
///
/// # Errors
/// When they can't be read, or the checkout leads elsewhere.
pub fn read(settings: &Settings, checkout: &Utf8Path) -> Result<Snapshot, Failure> {
    let folder = match settings.config.source.folder.as_deref().filter(|_| settings.from_git) {
        Some(folder) => folder_in(checkout, folder)?,
        None => checkout.to_owned(),
    };
    let mut snapshot = directory::scan(&folder)
        .map_err(|error| Failure::during(attempt(checkout), &error).hint(error.hint()))?;
    snapshot.source = settings.source();
    if settings.from_git {
        // With a commit, plain secrets are refused as they will be after the merge.
        snapshot.commit = git::checked_out(checkout)
            .map_err(|error| Failure::during(attempt(checkout), &error).hint(error.hint()))?;
        if snapshot.commit.is_none() {
            return Err(Failure::new(format!(
                "{}: it is not in a git repository, or in an empty one",
                attempt(checkout)
            ))
            .hint("give a folder that `git clone` or `git worktree add` created, or one in it"));
        }
    }
    Ok(snapshot)
}

/// Returns the folder of the specs in a checkout. Links inside the checkout are refused.
fn folder_in(checkout: &Utf8Path, folder: &str) -> Result<Utf8PathBuf, Failure> {
    let mut place = canonical(checkout)?;
    let root = place.clone();
    // The settings are checked to name a path that stays inside, so only a link could lead out.
    for name in Utf8Path::new(folder).components() {
        place.push(name);
        if place.is_symlink() {
            let link = place.strip_prefix(&root).unwrap_or(&place);
            return Err(Failure::new(format!(
                "{}: its `{link}` is a link, and links are not followed",
                attempt(checkout)
            ))
            .hint("replace the link by the folder itself"));
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
    format!("cannot read the checkout `{checkout}`")
}

/// Whether a path, or any link on the way to it, is inside a folder: the author of a proposal controls those
/// links and could redirect the path. Components that don't exist yet are no links.
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
            // A target that is not UTF-8 can't be followed, so it counts as inside.
            Err(error) if error.kind() == io::ErrorKind::InvalidData => return true,
            Err(_) => {}
        }
    }
    false
}

/// Returns the components of a path in reverse order.
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
