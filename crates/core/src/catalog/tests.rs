//! Tests of whole trees through [`resolve`].

mod absence;
mod after;
mod capacity;
mod certificates;
mod changes;
mod domains;
mod fit;
mod identity;
mod operators;
mod properties;
mod references;
mod secrets;
mod suspicion;

use std::collections::BTreeMap;
use std::sync::{Arc, OnceLock};

use rcgen::{CertificateParams, KeyPair, date_time_ymd};
use secrecy::{ExposeSecret, SecretString};
use serde_json::Value;

use super::*;
use crate::component::host_names;
use crate::names::{Digest, SpecPath};
use crate::problem::{Location, Severity};
use crate::spec::{
    Commit, Document, Documents, InvalidDocument, ParsedFile, Safeguards, SecretValue, Spec, Unreadable,
};

#[derive(Clone)]
struct World {
    files: BTreeMap<String, String>,
    recorded: Recorded,
    config: Config,
    source: String,
    git: bool,
    rewrote: Option<String>,
    now: String,
    /// The values of `from_env` secrets; others are opaque.
    environment: BTreeMap<String, String>,
}

/// An administrator's file with two organizations.
const ORGANIZATIONS: &str = "\
kind: Organization
identifier: acme
domains: [acme.com]
---
kind: Organization
identifier: globex
domains: [globex.com]
";

/// A fleet with its own base domain, and the resources that its clusters may refer to.
fn base(organization: &str, fleet: &str, domain: &str) -> String {
    format!(
        "\
kind: BaseDomain
organization: {organization}
domain: {domain}
tls_cert: $*.{domain}
tls_key: $key
---
kind: Fleet
organization: {organization}
identifier: {fleet}
infra_type: directory
domain: {domain}
tenancy_mode: Shared
max_tenants: 10
max_kafka_units: 10
---
kind: IdentityProvider
organization: {organization}
identifier: {organization}-sso
issuer: https://id.example.com
jwks_uri: https://id.example.com/keys
audience: kafka
---
kind: CloudAccount
organization: {organization}
identifier: {organization}-s3
provider: aws
credentials: secret
"
    )
}

/// A cluster on fleet `eu`; `more` is appended to its `advanced_config`.
fn cluster(organization: &str, name: &str, units: u32, more: &str) -> String {
    format!(
        "\
kind: Cluster
organization: {organization}
infrastructure: eu
identifier: {name}
cluster_type: kafka
tenancy_mode: Shared
kafka_units: {units}
deletion_protection: false
advanced_config:
  version: 4.3.1
{more}"
    )
}

impl World {
    /// Two organizations, each with a fleet (`eu` and `us`), its other resources and one cluster.
    fn new() -> Self {
        let mut world = Self {
            files: BTreeMap::new(),
            recorded: Recorded::default(),
            config: Config::default(),
            source: "/specs".to_owned(),
            git: false,
            rewrote: None,
            now: "2026-06-01T00:00:00Z".to_owned(),
            environment: BTreeMap::new(),
        };
        world.put("organizations.yaml", ORGANIZATIONS);
        world.put("acme/base.yaml", &base("acme", "eu", "k.acme.com"));
        world.put("globex/base.yaml", &base("globex", "us", "k.globex.com"));
        world.put("acme/orders.yaml", &cluster("acme", "orders", 1, ""));
        world
    }

    fn put(&mut self, path: &str, text: &str) -> &mut Self {
        self.files.insert(path.to_owned(), text.to_owned());
        self
    }

    fn remove(&mut self, path: &str) -> &mut Self {
        self.files.remove(path);
        self
    }

    fn edit(&mut self, path: &str, from: &str, to: &str) -> &mut Self {
        let text = &self.files[path];
        assert!(text.contains(from), "{path} has no `{from}`");
        let text = text.replacen(from, to, 1);
        self.put(path, &text)
    }

    fn documents(&self) -> Documents {
        let files = self.files.iter().map(|(path, text)| {
            let path: SpecPath = path.parse().unwrap();
            (path.clone(), Arc::new(parse(&path, text)))
        });
        Documents {
            source: SourceId(self.source.clone()),
            revision: "r".to_owned(),
            commit: self.git.then(|| Commit {
                id: "c0".repeat(20),
                author: "Ada <ada@example.com>".to_owned(),
                is_edited: false,
                rewrote: self.rewrote.clone(),
            }),
            skipped: BTreeMap::new(),
            files: files.collect(),
        }
    }

    fn resolve(&self) -> Catalog {
        let documents = self.documents();
        let secrets = self.open(&documents);
        resolve(
            &documents,
            &self.recorded,
            &secrets,
            &Arc::new(self.config.clone()),
            &host_names(),
            self.now.parse().unwrap(),
        )
    }

    fn open(&self, documents: &Documents) -> Secrets {
        let mut secrets = Secrets::default();
        for document in documents.documents() {
            for (field, value) in document.spec.secrets() {
                let reference = SecretRef { resource: document.key.clone(), field: field.to_owned() };
                let value = match value {
                    SecretValue::FromEnv(name) => self.environment.get(name).cloned(),
                    SecretValue::Plain(value) => Some(value.expose_secret().to_owned()),
                    _ => None,
                };
                secrets.opened.insert(reference, opened(value));
            }
        }
        secrets
    }

    /// Records everything that doesn't wait as applied.
    fn apply(&mut self) -> &mut Self {
        let catalog = self.resolve();
        self.recorded.source = Some(catalog.source.clone());
        for (key, resource) in catalog.resources.iter().filter(|(_, resource)| resource.hold.is_none()) {
            let created_at = self
                .recorded
                .resources
                .get(key)
                .map_or(self.now.parse().unwrap(), |old| old.durable.created_at);
            let record = RecordedResource {
                durable: DurableRecord {
                    protected: false,
                    immutable: immutable_fields(resource.key.kind, &resource.spec.redacted()),
                    path: Some(resource.origin.path.clone()),
                    ..DurableRecord::new(resource.id, created_at)
                },
                cached: CachedRecord {
                    last_good: Some(LastGood::new(resource.spec.redacted().into(), resource.origin.clone())),
                    secrets: resource
                        .secrets
                        .iter()
                        .map(|(name, secret)| (name.clone(), secret.mark.clone()))
                        .collect(),
                    ..CachedRecord::lost(self.now.parse().unwrap())
                },
            };
            self.recorded.resources.insert(key.clone(), record);
        }
        for (key, _) in catalog.absent.iter().filter(|(_, absence)| **absence == Absence::Removed) {
            self.recorded.resources.remove(key);
        }
        self
    }

    fn lose_cache(&mut self) -> &mut Self {
        self.recorded.resources.values_mut().for_each(|record| record.cached.last_good = None);
        self
    }

    /// Compares problems, holds and absences with the expected lines.
    #[track_caller]
    fn check(&self, expected: &str) {
        let lines = |text: &str| text.trim().lines().map(|line| line.trim().to_owned()).collect::<Vec<_>>();
        assert_eq!(lines(&describe(&self.resolve())).join("\n"), lines(expected).join("\n"));
    }
}

fn opened(value: Option<String>) -> OpenedSecret {
    match value {
        Some(value) => {
            let fingerprint = Some(Digest::of(&value).short().to_owned());
            OpenedSecret::Value {
                value: SecretString::from(value),
                mark: SecretMark { fingerprint, sealed: None },
            }
        }
        None => OpenedSecret::Unavailable {
            mark: SecretMark { fingerprint: None, sealed: Some(Digest::of("sealed")) },
            reason: "no identity here opens it".to_owned(),
        },
    }
}

/// Parses a file. A document that begins with `INVALID` has only an identity, `UNREADABLE` not even that.
fn parse(path: &SpecPath, text: &str) -> ParsedFile {
    let mut file = ParsedFile { digest: Some(Digest::of(text)), ..ParsedFile::default() };
    let mut line = 1;
    for part in text.split("---\n") {
        let lines = u32::try_from(part.lines().count()).unwrap();
        let origin = Origin { path: path.clone(), line };
        if part.starts_with("UNREADABLE") {
            let top_folder = path.top_folder().map(str::to_owned);
            file.unreadable.push(Unreadable { origin, top_folder });
        } else if let Some(part) = part.strip_prefix("INVALID\n") {
            let (kind, value) = fields_of(part);
            file.invalid.push(InvalidDocument {
                key: key_of(kind, &value),
                origin,
                safeguards: Safeguards {
                    suspended: Safeguards::of_invalid(kind, &value).suspended,
                    ..Safeguards::default()
                },
            });
        } else if !part.trim().is_empty() {
            let (kind, value) = fields_of(&fill(part));
            let spec = Spec::read(kind, &value).unwrap();
            let key = match &spec {
                Spec::BaseDomain(domain) => {
                    let derived = domain.derived_domain().unwrap();
                    ResourceKey::new(kind, &domain.organization, derived.as_str())
                }
                _ => key_of(kind, &value),
            };
            let fields = locations(path, line, part).into();
            file.documents.push(Document { key, spec, origin, fields });
        }
        line += lines + 1;
    }
    file
}

fn fields_of(text: &str) -> (crate::names::Kind, Value) {
    let mut value: Value = serde_saphyr::from_str(text).unwrap();
    let kind = value.as_object_mut().unwrap().remove("kind").unwrap();
    (kind.as_str().unwrap().parse().unwrap(), value)
}

fn key_of(kind: crate::names::Kind, value: &Value) -> ResourceKey {
    let text = |field: &str| value.get(field).and_then(Value::as_str);
    let name = text("identifier").or(text("name")).or(text("domain")).unwrap();
    let organization = text("organization").unwrap_or(name).parse().unwrap();
    let on_cluster = text("cluster").map(|cluster| format!("{cluster}/{name}"));
    let name = on_cluster.as_deref().unwrap_or(name);
    ResourceKey::new(kind, &organization, name)
}

fn locations(path: &SpecPath, first: u32, text: &str) -> BTreeMap<String, Location> {
    let mut fields = BTreeMap::new();
    let mut open: Vec<&str> = Vec::new();
    for (line, text) in (first..).zip(text.lines()) {
        let trimmed = text.trim_start();
        let Some((key, _)) = trimmed.split_once(':') else { continue };
        open.truncate((text.len() - trimmed.len()) / 2);
        open.push(key);
        let text = if ["tls_key", "credentials", "kubeconfig"].contains(&key) { key } else { text };
        let location = Location { path: path.clone(), line, column: 1, width: 1, text: text.to_owned() };
        fields.entry(String::new()).or_insert_with(|| location.clone());
        fields.insert(format!("/{}", open.join("/")), location);
    }
    fields
}

/// Replaces `$NAME` and `$NAME@YEAR` with a certificate that expires in that year, and `$key` with its key.
fn fill(text: &str) -> String {
    let certificate = |names: &str| {
        let (names, year) = names.split_once('@').unwrap_or((names, "2027"));
        let mut params =
            CertificateParams::new(names.split('+').map(str::to_owned).collect::<Vec<_>>()).unwrap();
        params.not_before = date_time_ymd(2020, 1, 1);
        params.not_after = date_time_ymd(year.parse().unwrap(), 1, 1);
        params.serial_number = Some(1u64.into());
        params.self_signed(key()).unwrap().pem()
    };
    let mut filled = String::new();
    for line in text.lines() {
        match line.split_once(": $") {
            Some((field, "key")) => filled += &format!("{field}: {}\n", Value::from(key().serialize_pem())),
            Some((field, names)) => {
                filled += &format!("{field}: {}\n", Value::from(remembered(names, certificate)))
            }
            None => filled += &format!("{line}\n"),
        }
    }
    filled
}

fn key() -> &'static KeyPair {
    static KEY: OnceLock<KeyPair> = OnceLock::new();
    KEY.get_or_init(|| KeyPair::generate().unwrap())
}

/// Returns the same certificate for the same names, though signing is random.
fn remembered(names: &str, make: impl Fn(&str) -> String) -> String {
    static MADE: std::sync::Mutex<BTreeMap<String, String>> = std::sync::Mutex::new(BTreeMap::new());
    let mut made = MADE.lock().unwrap();
    made.entry(names.to_owned()).or_insert_with(|| make(names)).clone()
}

fn describe(catalog: &Catalog) -> String {
    let mut lines = Vec::new();
    for problem in &catalog.problems {
        let severity = if problem.severity == Severity::Error { "error" } else { "warning" };
        let at =
            problem.location.as_ref().map_or("nowhere".to_owned(), |location| location.origin().to_string());
        lines.push(format!("{severity} {} {at} [{}] {}", problem.code, problem.label, problem.message));
        lines.extend(problem.related.iter().map(|(at, label)| format!("see {} [{label}]", at.origin())));
        lines.extend(problem.hint.iter().map(|hint| format!("= {hint}")));
    }
    for (key, resource) in &catalog.resources {
        if let Some(hold) = &resource.hold {
            let rendered = if catalog.clusters.contains_key(key) { ", rendered" } else { "" };
            lines.push(format!("held {key}: {}{rendered}", words(hold)));
        }
    }
    for (key, absence) in &catalog.absent {
        let why = match absence {
            Absence::Removed => "removed".to_owned(),
            Absence::Unknown { unreadable } => format!("unknown because of {unreadable}"),
            Absence::Suspicious { why } => format!("suspicious: {why}"),
            Absence::Renamed { to } => format!("renamed to {to}"),
        };
        lines.push(format!("absent {key}: {why}"));
    }
    lines.join("\n")
}

fn words(hold: &Hold) -> String {
    match hold {
        Hold::Invalid { problems } => format!("invalid ({problems})"),
        Hold::Absent => "absent".to_owned(),
        Hold::Unreadable { origin } => format!("unreadable {origin}"),
        Hold::OverCapacity { limited_by, what, used, wanted, limit } => {
            format!("{used} + {wanted} of {limit} {what} of {limited_by}")
        }
        Hold::Suspended { by } => format!("suspended by {by}"),
        Hold::Certificate { of, .. } => format!("waits for the certificate of {of}"),
        Hold::Dependency { on } => format!("waits for {on}"),
    }
}
