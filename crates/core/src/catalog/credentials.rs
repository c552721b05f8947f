//! Checks the secrets of documents: whether they may be used, are available and are well-formed.

use std::collections::BTreeMap;
use std::ops::RangeInclusive;

use jiff::Timestamp;
use secrecy::ExposeSecret;

use crate::catalog::certificates::WARNING;
use crate::catalog::draft::{CatalogDraft, CatalogFinding, EffectiveSpec, SpecOrigin};
use crate::catalog::{OpenedSecret, RecordedResource, ResolvedSecret, SecretMark};
use crate::config::denied_server;
use crate::names::{ResourceKey, SecretRef};
use crate::problem::Problem;
use crate::spec::kubeconfig::{KubeAccess, KubeAuth};
use crate::spec::tsig_key::TsigKey;
use crate::spec::{CloudProvider, Document, SecretValue, Spec, one_line, secret_pointer};

pub(super) const ONLY_RECORDED: &str = "only its fingerprint is recorded";

const UNKNOWN: SecretMark = SecretMark { fingerprint: None, sealed: None };

/// In bytes. Clients and the operator write it into one line of a properties file.
const LONGEST_PASSWORD: usize = 256;

pub(super) fn check(draft: &mut CatalogDraft) {
    draft.problems.extend(draft.secrets.warnings.iter().cloned());
    for document in draft.claimed_documents() {
        for (field, value) in document.spec.secrets() {
            check_secret(draft, document, field, value);
        }
    }
}

fn check_secret(draft: &mut CatalogDraft, document: &Document, field: &'static str, value: &SecretValue) {
    let reference = SecretRef { resource: document.key.clone(), field: field.to_owned() };
    let secrets = draft.secrets;
    let (mark, unavailable) = match secrets.opened.get(&reference) {
        Some(OpenedSecret::Value { value, mark }) => {
            draft.refuse(document, faults_of_value(&document.spec, field, value.expose_secret()));
            draft.problems.extend(unreachable_server(draft, document, field, value.expose_secret()));
            let expiry = expiry(draft, document, field, value.expose_secret());
            draft.problems.extend(expiry);
            (mark.clone(), None)
        }
        Some(OpenedSecret::Unavailable { mark, reason }) => {
            let mark = recall(draft.record(&document.key), field, mark);
            if mark.fingerprint.is_none() {
                draft.problems.push(not_at_hand(document, field, reason));
            }
            (mark, Some(reason.clone()))
        }
        Some(OpenedSecret::Refused(problem)) => {
            let mut problem = problem.clone();
            problem.location.get_or_insert_with(|| document.locate(secret_pointer(field)));
            draft.problems.push(problem);
            draft.fault(&document.key);
            (UNKNOWN, Some("it was refused".to_owned()))
        }
        None => (UNKNOWN, Some("the secret was not opened".to_owned())),
    };
    if draft.documents.commit.is_some()
        && !draft.config.secrets.allow_plain_in_git
        && matches!(value, SecretValue::Plain(_))
    {
        draft.refuse(document, [plain_in_git(&reference)]);
    }
    let resolved = ResolvedSecret { reference, mark, unavailable };
    draft.marks.entry(document.key.clone()).or_default().insert(field.to_owned(), resolved);
}

fn faults_of_value(spec: &Spec, field: &'static str, value: &str) -> Vec<CatalogFinding> {
    let pointer = secret_pointer(field);
    if value.trim().is_empty() {
        let problem = Problem::error("empty-secret", format!("`{field}` is empty"))
            .hint("put the value in the file, variable or block that the document names");
        return vec![CatalogFinding::new(pointer, "empty", problem)];
    }
    match field {
        "kubeconfig" => {
            let faults = KubeAccess::parse(value).err().unwrap_or_default();
            faults.into_iter().map(|fault| CatalogFinding::new(pointer, "", fault.problem())).collect()
        }
        "password" if value.len() > LONGEST_PASSWORD || value.chars().any(char::is_control) => {
            let message =
                "`password` is longer than 256 bytes, or contains a line break or another control character";
            let problem = Problem::error("bad-password", message)
                .hint("use one line of at most 256 bytes; in YAML, `|` before a text adds a line break, and `|-` doesn't");
            vec![CatalogFinding::new(pointer, "", problem)]
        }
        "monitoring.own.password" => {
            let value = one_line(value);
            let message = if value.chars().any(char::is_control) {
                "the password of Prometheus contains a line break or another control character".to_owned()
            } else if !PROMETHEUS_PASSWORD.contains(&value.len()) {
                format!("the password of Prometheus has {} bytes", value.len())
            } else {
                return Vec::new();
            };
            let problem = Problem::error("bad-password", message).hint("use one line of 12 to 72 bytes");
            vec![CatalogFinding::new(pointer, "", problem)]
        }
        "credentials" if is_of_dns(spec) => {
            let fault = TsigKey::parse(value).err().map(|fault| {
                let problem = Problem::error(
                    "bad-key",
                    format!("`credentials` is no key of a DNS server: {fault}"),
                )
                .hint("put in the whole file that `tsig-keygen` or `keymgr tsig generate` writes for BIND");
                CatalogFinding::new(pointer, "", problem)
            });
            fault.into_iter().collect()
        }
        // A TLS key is checked with its certificate. Other credentials have no format to check.
        _ => Vec::new(),
    }
}

/// Bcrypt reads no more of it.
const PROMETHEUS_PASSWORD: RangeInclusive<usize> = 12..=72;

fn is_of_dns(spec: &Spec) -> bool {
    matches!(spec, Spec::CloudAccount(account) if account.provider == CloudProvider::Rfc2136)
}

/// Warns of a kubeconfig whose server will not be connected to. What a name resolves to is found out when it is used.
fn unreachable_server(
    draft: &CatalogDraft,
    document: &Document,
    field: &str,
    value: &str,
) -> Option<Problem> {
    let access = (field == "kubeconfig").then(|| KubeAccess::parse(value).ok()).flatten()?;
    let why = denied_server(&access, &draft.config.targets.allow_addresses)?;
    let message = format!("streamfleet doesn't connect to the `server` of the `kubeconfig`: {why}");
    let hint = "use the address at which the API server is reached from elsewhere, or allow this one in the settings: \
                `allow_addresses` under `[targets]`; a fleet on the Kubernetes cluster that Streamfleet runs in needs no \
                kubeconfig with `in_cluster`";
    Some(
        Problem::warning("kubeconfig-address", message)
            .at(document.locate(secret_pointer(field)), "")
            .hint(hint),
    )
}

/// Warns of a kubeconfig that won't be accepted for ever. A token that expires at all was made for a short time; a
/// client certificate always expires.
fn expiry(draft: &CatalogDraft, document: &Document, field: &'static str, value: &str) -> Option<Problem> {
    if field != "kubeconfig" {
        return None;
    }
    let access = KubeAccess::parse(value).ok()?;
    let end = access.auth.expires()?;
    let (what, hint) = match access.auth {
        KubeAuth::Token(_) => (
            "token",
            "use the token of a Secret of type kubernetes.io/service-account-token, which doesn't expire, or replace it in \
             time",
        ),
        _ if draft.is_past(end.checked_sub(WARNING).unwrap_or(Timestamp::MIN)) => {
            ("client certificate", "renew it in time")
        }
        _ => return None,
    };
    let day = end.strftime("%Y-%m-%d %H:%M UTC");
    let message = match draft.is_past(end) {
        true => format!("the {what} of the kubeconfig expired on {day}"),
        false => {
            format!("the {what} of the kubeconfig expires on {day}, and then the fleet becomes Unreachable")
        }
    };
    let problem = Problem::warning("kubeconfig-expiry", message).hint(hint);
    Some(problem.at(document.locate(secret_pointer(field)), ""))
}

/// Warns of a secret that can't be opened and, as far as its sealed form shows, is new or changed.
fn not_at_hand(document: &Document, field: &'static str, reason: &str) -> Problem {
    let message = format!("`{field}` can't be opened here, so it isn't checked: {reason}");
    Problem::warning("secret-not-at-hand", message)
        .at(document.locate(secret_pointer(field)), "")
        .hint("resources that need it aren't applied from here; check again on the host that can open it")
}

fn plain_in_git(reference: &SecretRef) -> CatalogFinding {
    let field = &reference.field;
    let problem = Problem::error("plain-secret", format!("`{field}` is a plain-text secret in a git repository")).hint(
        "run `streamfleet secret seal TREE` on a checkout to seal it, and replace the secret if it was pushed; to accept \
         plain-text secrets, set `secrets.allow_plain_in_git` in the settings",
    );
    CatalogFinding::new(secret_pointer(field), "anyone who can read the repository can read it", problem)
}

/// Returns the trace of a secret that can't be opened here. If its sealed form is unchanged, its value is
/// too, and the recorded trace is valid.
fn recall(record: Option<&RecordedResource>, field: &str, mark: &SecretMark) -> SecretMark {
    let recorded = record.and_then(|record| record.cached.secrets.get(field));
    match recorded {
        Some(recorded) if mark.sealed.is_some() && recorded.sealed == mark.sealed => recorded.clone(),
        _ => mark.clone(),
    }
}

/// Returns the secrets of the settled spec. For a spec from the record these are the recorded ones; they are
/// available only if a document still gives the same value.
pub(super) fn for_settled(
    draft: &CatalogDraft,
    key: &ResourceKey,
    settled: &EffectiveSpec,
) -> BTreeMap<String, ResolvedSecret> {
    let present = draft.marks.get(key);
    if settled.basis != SpecOrigin::Record {
        return present.cloned().unwrap_or_default();
    }
    let recorded = draft.record(key).map(|record| &record.cached.secrets);
    let resolve = |field: &str| {
        let mark = recorded.and_then(|secrets| secrets.get(field)).cloned().unwrap_or(UNKNOWN);
        let unavailable = match present.and_then(|present| present.get(field)) {
            Some(now) if mark.fingerprint.is_some() && now.mark.fingerprint == mark.fingerprint => {
                now.unavailable.clone()
            }
            _ => Some(ONLY_RECORDED.to_owned()),
        };
        ResolvedSecret {
            reference: SecretRef { resource: key.clone(), field: field.to_owned() },
            mark,
            unavailable,
        }
    };
    settled.spec.secrets().into_iter().map(|(field, _)| (field.to_owned(), resolve(field))).collect()
}
