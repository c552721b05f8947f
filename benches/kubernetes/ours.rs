use std::io;
use std::path::Path;
use std::process::Command;
use std::sync::Arc;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde_json::Value;
use streamfleet::render::{Manifest, render};
use streamfleet::round::Installation;
use streamfleet::secret::{Keyring, SecretStore, fill};
use streamfleet::source::directory;
use streamfleet::spec;

use crate::measure::Measured;
use crate::tests::support::control_plane::ControlPlane;
use crate::tree::Tree;

/// Runs `apply`: reads the tree, observes the cluster, plans and executes.
pub fn apply(plane: &ControlPlane, tree: &Tree, settings: &Path) -> io::Result<Measured> {
    let mut command = Command::new(env!("CARGO_BIN_EXE_streamfleet"));
    command.arg("apply").arg(tree.root()).arg("--yes").arg("--config").arg(settings);
    Measured::of_command(plane, command)
}

/// All manifests of a tree with their secrets, in the order in which they are applied.
pub fn objects(tree: &Path) -> io::Result<Vec<Value>> {
    let root = Utf8PathBuf::from_path_buf(tree.to_owned()).expect("the path is UTF-8");
    let keys = root.with_file_name("keys");
    let keyring = Keyring::load_or_create(&keys).map_err(io::Error::other)?;
    let installation = Installation {
        state: None,
        secrets: SecretStore::new(keys, |_| None, keyring).into(),
        config: Arc::default(),
        output_dir: root.with_file_name("output"),
        software: env!("CARGO_PKG_VERSION").to_owned(),
        proposed: false,
    };
    let documents = Arc::new(spec::read(&directory::scan(&root).map_err(io::Error::other)?, None));
    let checked = installation.check(&documents, Timestamp::now()).map_err(io::Error::other)?;
    let desired = render(&checked.catalog);
    let mut manifests: Vec<&Manifest> = desired.fleets.values().flat_map(|fleet| fleet.values()).collect();
    manifests.sort_by_key(|manifest| (manifest.stage, &manifest.key));
    let filled = manifests.into_iter().map(|manifest| fill(manifest, &checked.secrets));
    filled.collect::<Result<_, _>>().map_err(|error| io::Error::other(error.message))
}
