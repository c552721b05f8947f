//! API writes of specs, in folders and in git repositories, beside concurrent writers.

mod folder;
mod repository;

use std::fs;
use std::path::Path;
use std::sync::Arc;

use camino::Utf8PathBuf;
use jiff::Timestamp;
use serde_json::{Value, json};

use streamfleet::names::ResourceKey;
use streamfleet::round::{Installation, RoundMemory};
use streamfleet::secret::{Keyring, SecretStore};
use streamfleet::source::Author;
use streamfleet::spec::{self, Snapshot};
use streamfleet::state::State;
use streamfleet::writing::{
    CurrentPlan, SpecStore, WriteAction, WriteMark, WriteRefusal, WriteRequest, WriteResult, Writer,
};
use tokio::runtime::Runtime;

const SECRET_TEXT: &str =
    "[default]\naws_access_key_id = HUSHHUSHHUSH\naws_secret_access_key = Hush/Hush/Hush/00000000\n";

/// An installation, with its last plan.
struct World {
    runtime: Runtime,
    memory: Arc<RoundMemory>,
    installation: Arc<Installation>,
}

impl World {
    fn new(folder: &Path) -> Self {
        let path = |name: &str| Utf8PathBuf::from_path_buf(folder.join(name)).unwrap();
        let state = State::open(&path("state")).unwrap();
        let keyring = Keyring::load_or_create(&path("state")).unwrap();
        let installation = Installation {
            state: Some(Arc::new(state)),
            secrets: Arc::new(SecretStore::new(path("secrets"), |_| None, keyring)),
            config: Arc::default(),
            output_dir: path("output"),
            software: "1".to_owned(),
            proposed: false,
        };
        let (runtime, memory) = (Runtime::new().unwrap(), Arc::default());
        World { runtime, memory, installation: Arc::new(installation) }
    }

    fn writer(&self, place: SpecStore) -> Writer {
        Writer::new(place, Arc::clone(&self.memory), || {})
    }

    /// Plans a snapshot read after a mark.
    fn plan(&self, snapshot: &Snapshot, mark: WriteMark) -> CurrentPlan {
        let documents = Arc::new(spec::read(snapshot, None));
        let now = Timestamp::now();
        let round = self.installation.plan(&documents, now, self.runtime.handle(), Some(&self.memory));
        let installation = Arc::clone(&self.installation);
        CurrentPlan::new(installation, documents, Arc::new(round.unwrap()), mark)
    }
}

fn ada() -> Author {
    Author { name: "Ada".to_owned(), email: "ada@example.com".to_owned() }
}

fn call(
    writer: &Writer,
    made: &CurrentPlan,
    key: &str,
    what: WriteAction,
) -> Result<Arc<WriteResult>, WriteRefusal> {
    let key: ResourceKey = key.to_owned().try_into().unwrap();
    writer.write(made, &WriteRequest { key, what, if_match: None, may_limit: true, record: None }, &ada())
}

fn units(units: u32) -> WriteAction {
    WriteAction::Patch(json!({ "kafka_units": units }))
}

fn sandbox(name: &str) -> Value {
    json!({
        "organization": "acme", "infrastructure": "eu", "identifier": name, "cluster_type": "kafka",
        "tenancy_mode": "Shared", "kafka_units": 1, "deletion_protection": false,
        "advanced_config": {"version": "4.3.1", "profile": "dev", "cluster_access": "Internal"},
    })
}

fn account() -> Value {
    json!({"identifier": "s3", "provider": "aws", "credentials": SECRET_TEXT})
}

/// Whether bytes contain a secret: as it is, in base64 at any alignment, or in part.
fn tells(bytes: &[u8]) -> bool {
    use base64::Engine as _;
    use base64::engine::general_purpose::STANDARD;
    let encoded = (0..3).map(|skipped| {
        let code = STANDARD.encode(&SECRET_TEXT.as_bytes()[skipped..]);
        code.as_bytes()[4..code.len() - 8].to_vec()
    });
    let parts = SECRET_TEXT.lines().skip(1).map(|line| line.as_bytes().to_vec());
    encoded.chain(parts).any(|part| bytes.windows(part.len()).any(|window| window == part))
}

fn everything(folder: &Path) -> Vec<(String, Vec<u8>)> {
    crate::support::files(folder)
}

fn text(path: impl AsRef<Path>) -> String {
    fs::read_to_string(path).unwrap()
}

fn number(text: &[u8]) -> u32 {
    let text = std::str::from_utf8(text).unwrap();
    text.lines().next().and_then(|line| line.rsplit(' ').next()?.parse().ok()).unwrap_or(0)
}
