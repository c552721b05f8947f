//! Computes the new document from the body of a call. What the caller left unchanged keeps its written form.

use secrecy::SecretString;
use serde_json::{Map, Value, json};

use super::advice::{HOW_NEW_SECRETS, HOW_SECRETS};
use super::refused::{self, WriteRefusal};
use super::write_request::{WriteAction, WriteRequest};
use crate::http::problem::{FieldError, ProblemDocument, pointer};
use crate::names::{Domain, Identifier, Kind, ResourceKey, is_topic_name};
use crate::problem::quote_untrusted;
use crate::record;
use crate::spec::{API_VERSION, BaseDomain, DnsProvider, HEADER, SECRET_FIELDS, SecretValue};

#[derive(Clone, Copy, Default)]
pub struct CurrentDocument<'a> {
    /// As it is written; `None` if there is no document.
    pub written: Option<&'a Value>,
    /// As the API returns it; `None` if it is invalid.
    pub shown: Option<&'a Value>,
}

/// A new document, without its new secrets.
#[derive(Debug)]
pub struct DesiredDocument {
    /// Includes the header, and the secrets that stay, in their written form.
    pub document: Value,
    /// New secrets, in plain text.
    pub secrets: Vec<NewSecret>,
}

#[derive(Debug)]
pub struct NewSecret {
    pub field: &'static str,
    pub pointer: &'static str,
    pub value: SecretString,
}

/// Computes the new document.
///
/// # Errors
/// With all mistakes that can be found without parsing the document.
pub fn wanted(request: &WriteRequest, stands: CurrentDocument<'_>) -> Result<DesiredDocument, WriteRefusal> {
    let WriteRequest { key, what, .. } = request;
    let body = match what {
        WriteAction::Create(body) | WriteAction::Replace(body) | WriteAction::Patch(body) => body,
        WriteAction::Delete => &Value::Null,
    };
    let Value::Object(fields) = body else {
        return Err(ProblemDocument::no_object().into());
    };
    let mut fields = fields.clone();
    let mut faults = header(&fields);
    faults.extend(too_deep(&fields));
    faults.extend(outputs(request, &mut fields));
    faults.extend(identity(key, &fields, stands));
    let mut body = Value::Object(fields);
    let is_patch = matches!(what, WriteAction::Patch(_));
    let mut secrets = Vec::new();
    for (_, field, pointer) in SECRET_FIELDS.into_iter().filter(|(kind, ..)| *kind == key.kind) {
        let written = stands.written.and_then(|written| written.pointer(pointer));
        let shown = stands.shown.and_then(|shown| shown.pointer(pointer));
        match secret(take(&mut body, pointer), (written, shown), is_patch) {
            Ok(secret) => secrets.push((field, pointer, secret)),
            Err(why) => faults.push(FieldError::at(pointer, format!("`{field}` {why}"), how_secrets(what))),
        }
    }
    if !faults.is_empty() {
        return Err(refused::invalid(faults));
    }
    let document = match is_patch {
        true => patched(stands.written, stands.shown, &body),
        false => replaced(stands.written, stands.shown, &body),
    };
    let mut document = document.filter(Value::is_object).unwrap_or_else(|| json!({}));
    complete(&mut document, key, stands.written);
    let mut new = Vec::new();
    for (field, pointer, secret) in secrets {
        match secret {
            SecretChange::Stays => {
                let written = stands.written.and_then(|written| written.pointer(pointer));
                if let Some(written) = written.filter(|_| has_place(&document, pointer)) {
                    put(&mut document, pointer, written.clone());
                }
            }
            SecretChange::Goes => drop(take(&mut document, pointer)),
            SecretChange::New(value) => new.push(NewSecret { field, pointer, value }),
        }
    }
    Ok(DesiredDocument { document, secrets: new })
}

/// The key of a resource to create. The path, the body or both may name the organization.
///
/// # Errors
/// When the body doesn't identify the resource.
pub fn key_of(
    kind: Kind,
    organization: Option<&Identifier>,
    body: &Value,
) -> Result<ResourceKey, WriteRefusal> {
    let Value::Object(fields) = body else {
        return Err(ProblemDocument::no_object().into());
    };
    let text = |name: &str| fields.get(name).and_then(Value::as_str).filter(|text| !text.is_empty());
    let missing = |name: &str| {
        let is_given = fields.get(name).is_some_and(|given| !given.is_null() && !given.is_string());
        let why = if is_given { "is not a string" } else { "is missing" };
        invalid(format!("/{name}"), format!("`{name}` {why}"), "send it as a string")
    };
    let named = |name: &str| -> Result<Identifier, WriteRefusal> {
        let text = text(name).ok_or_else(|| missing(name))?;
        text.parse().map_err(|_| {
            let why = format!("`{name}`: `{}` is not {}", quote_untrusted(text), Identifier::EXPECTED);
            invalid(format!("/{name}"), why, "choose another name")
        })
    };
    if kind == Kind::Organization {
        return Ok(ResourceKey::organization(&named("identifier")?));
    }
    let organization = match organization {
        Some(organization) => organization.clone(),
        None => named("organization")?,
    };
    if kind.is_on_cluster() {
        let cluster = named("cluster")?;
        if kind == Kind::User {
            return Ok(ResourceKey::on_cluster(kind, &organization, &cluster, named("identifier")?.as_str()));
        }
        let name = text("name").ok_or_else(|| missing("name"))?;
        if !is_topic_name(name) {
            let why = format!("`name`: `{}` is not a topic name", quote_untrusted(name));
            return Err(invalid("/name", why, "use letters, digits, `.`, `_` and `-`, at most 249"));
        }
        return Ok(ResourceKey::on_cluster(kind, &organization, &cluster, name));
    }
    if kind != Kind::BaseDomain {
        return Ok(ResourceKey::new(kind, &organization, named("identifier")?.as_str()));
    }
    let given = text("domain").ok_or_else(|| missing("domain"))?;
    let derived = derived(&organization, given, fields.get("dns_provider"));
    let derived = derived.ok_or_else(|| {
        let why = format!("`domain`: `{}` is not {}", quote_untrusted(given), Domain::EXPECTED);
        invalid("/domain", why, "send the domain whose subdomains are the addresses of clusters")
    })?;
    Ok(ResourceKey::new(kind, &organization, derived.as_str()))
}

pub fn how_secrets(what: &WriteAction) -> &'static str {
    if matches!(what, WriteAction::Create(_)) { HOW_NEW_SECRETS } else { HOW_SECRETS }
}

fn invalid(pointer: impl Into<String>, detail: impl Into<String>, hint: impl Into<String>) -> WriteRefusal {
    refused::invalid(vec![FieldError::at(pointer, detail, hint)])
}

/// Refuses header fields, which only files have.
fn header(fields: &Map<String, Value>) -> Vec<FieldError> {
    let given = HEADER.into_iter().filter(|name| fields.contains_key(*name));
    given
        .map(|name| {
            FieldError::at(
                format!("/{name}"),
                format!("`{name}` is for files, and has no meaning here"),
                "leave it out",
            )
        })
        .collect()
}

/// The deepest nesting of a body. Real documents stay well below, and the parser of files has a limit, too.
const DEEPEST: usize = 32;

fn too_deep(fields: &Map<String, Value>) -> Vec<FieldError> {
    fn fits(value: &Value, depth: usize) -> bool {
        match value {
            _ if depth == 0 => false,
            Value::Array(items) => items.iter().all(|item| fits(item, depth - 1)),
            Value::Object(fields) => fields.values().all(|value| fits(value, depth - 1)),
            _ => true,
        }
    }
    let deep = fields.iter().filter(|(_, value)| !fits(value, DEEPEST));
    let fault = |(name, _): (&String, &Value)| {
        let why = format!("`{}` is nested deeper than {DEEPEST} levels", quote_untrusted(name));
        FieldError::at(pointer(&[name]), why, "see `/openapi.json` for its format")
    };
    deep.map(fault).collect()
}

/// Output fields that never change. The others may have changed since the caller read the record that is now
/// sent back.
const FOR_LIFE: [&str; 2] = ["id", "created_at"];

/// Removes output fields, which no spec has, if they equal the record's. In a whole record that is sent back,
/// outdated values are accepted, too: the caller doesn't mean to set them.
fn outputs(request: &WriteRequest, fields: &mut Map<String, Value>) -> Vec<FieldError> {
    let WriteRequest { key: ResourceKey { kind, .. }, what, record, .. } = request;
    let is_whole = matches!(what, WriteAction::Replace(_));
    let mut faults = Vec::new();
    for name in record::output_fields(*kind) {
        let Some(given) = fields.remove(name) else { continue };
        let known = record.as_ref().and_then(|record| record.get(name));
        let is_passing = is_whole && !FOR_LIFE.contains(&name.as_str());
        if given.is_null() || known == Some(&given) || is_passing {
            continue;
        }
        let detail = format!("`{name}` is set by Streamfleet and can't be changed");
        let hint = match what {
            WriteAction::Create(_) => "leave it out",
            _ => "leave it out, or send it unchanged",
        };
        faults.push(FieldError::at(format!("/{name}"), detail, hint));
    }
    faults
}

/// Refuses a body that names another resource than its path.
fn identity(key: &ResourceKey, fields: &Map<String, Value>, stands: CurrentDocument<'_>) -> Vec<FieldError> {
    let mut faults = Vec::new();
    let mut differs = |name: &str, ours: &str| {
        let why = match fields.get(name) {
            None => return,
            Some(Value::String(given)) if given == ours => return,
            Some(Value::String(given)) => {
                format!("`{name}` is `{}`, and the path says `{ours}`", quote_untrusted(given))
            }
            Some(_) => format!("`{name}` must be `{ours}`, as in the path"),
        };
        faults.push(FieldError::at(format!("/{name}"), why, "send the value of the path, or leave it out"));
    };
    if key.kind != Kind::Organization {
        differs("organization", key.organization.as_str());
    }
    match key.kind {
        Kind::BaseDomain => {
            let provider = |fields: &Value| fields.get("dns_provider").cloned();
            let provider = fields.get("dns_provider").cloned().or_else(|| provider(stands.written?));
            let given = fields.get("domain");
            let text = given.and_then(Value::as_str);
            let is_it = |text: &str| {
                text.eq_ignore_ascii_case(&key.name)
                    || derived(&key.organization, text, provider.as_ref())
                        .is_some_and(|it| it.as_str() == key.name)
            };
            if given.is_some() && !text.is_some_and(is_it) {
                differs("domain", &key.name);
            }
        }
        kind => match key.within_cluster() {
            Some((cluster, name)) => {
                differs("cluster", &cluster.name);
                differs(kind.name_field(), name);
            }
            None => differs("identifier", &key.name),
        },
    }
    faults
}

/// The domain that clusters use; `None` if the submitted one is invalid.
fn derived(organization: &Identifier, submitted: &str, provider: Option<&Value>) -> Option<Domain> {
    let provider = provider.filter(|provider| !provider.is_null() && *provider != "");
    let provider: DnsProvider = match provider {
        Some(provider) => serde_json::from_value(provider.clone()).unwrap_or_default(),
        None => DnsProvider::default(),
    };
    BaseDomain::derive(organization, &submitted.parse().ok()?, provider)
}

/// Whether a document has the object whose secret this is. A secret goes with an object that a document can be without;
/// `advanced_config` is none such.
fn has_place(document: &Value, pointer: &str) -> bool {
    let parent = pointer.rsplit_once('/').map_or("", |(parent, _)| parent);
    parent.matches('/').count() < 2 || document.pointer(parent).is_some_and(Value::is_object)
}

enum SecretChange {
    Stays,
    Goes,
    New(SecretString),
}

/// What a body says about a secret; the error is the end of a sentence. Only files may say where a secret is
/// found: a caller could otherwise have this host's files and variables read.
fn secret(
    given: Option<Value>,
    (written, shown): (Option<&Value>, Option<&Value>),
    is_patch: bool,
) -> Result<SecretChange, &'static str> {
    match given {
        Some(given) if written == Some(&given) && given.is_object() => Ok(SecretChange::Stays),
        Some(Value::String(text)) if !text.is_empty() => Ok(SecretChange::New(SecretString::from(text))),
        Some(Value::Null | Value::String(_)) if is_patch => Ok(SecretChange::Goes),
        None | Some(Value::Null | Value::String(_)) => Ok(SecretChange::Stays),
        // The key of a managed certificate is shown though no document has it.
        Some(given) if given == json!({"redacted": true}) => match written.or(shown) {
            Some(it) if !it.is_null() => Ok(SecretChange::Stays),
            _ => Err("is redacted, and there is no value to keep"),
        },
        Some(Value::Object(given)) if SecretValue::FORMS.iter().any(|form| given.contains_key(*form)) => {
            Err("refers to a file or variable, which only files may do")
        }
        Some(_) => Err("is not a string"),
    }
}

/// The document after a replacement. Values that are sent back as they were shown keep their written form, or
/// stay left out.
fn replaced(written: Option<&Value>, shown: Option<&Value>, body: &Value) -> Option<Value> {
    match body {
        Value::Null => None,
        body if shown == Some(body) => written.cloned(),
        Value::Object(fields) => {
            let replaced = |(name, body): (&String, &Value)| {
                let value = replaced(inner(written, name), inner(shown, name), body)?;
                Some((name.clone(), value))
            };
            let object: Map<String, Value> = fields.iter().filter_map(replaced).collect();
            // An empty object means that there is none.
            (!object.is_empty() || written.is_some()).then_some(Value::Object(object))
        }
        body => Some(body.clone()),
    }
}

/// The document after a merge patch (RFC 7396). Values that equal what was shown keep their written form.
fn patched(written: Option<&Value>, shown: Option<&Value>, patch: &Value) -> Option<Value> {
    match patch {
        Value::Null => None,
        patch if shown == Some(patch) => written.cloned(),
        Value::Object(fields) => {
            let mut object = written.and_then(Value::as_object).cloned().unwrap_or_default();
            for (name, patch) in fields {
                match patched(inner(written, name), inner(shown, name), patch) {
                    Some(value) => drop(object.insert(name.clone(), value)),
                    None => drop(object.remove(name)),
                }
            }
            // An object that loses all its shown fields is removed, too.
            let is_taken = |name: &String| fields.get(name).is_some_and(Value::is_null);
            let shown = shown.and_then(Value::as_object).filter(|shown| !shown.is_empty());
            let stays = written.is_some() && !shown.is_some_and(|shown| shown.keys().all(is_taken));
            (!object.is_empty() || stays).then_some(Value::Object(object))
        }
        patch => Some(patch.clone()),
    }
}

fn inner<'v>(value: Option<&'v Value>, name: &str) -> Option<&'v Value> {
    value.and_then(|value| value.get(name))
}

/// Adds the header, and the identifying fields that only the path gives.
fn complete(document: &mut Value, key: &ResourceKey, written: Option<&Value>) {
    let Value::Object(fields) = document else { return };
    fields.insert("apiVersion".to_owned(), written_or(written, "apiVersion", API_VERSION));
    fields.insert("kind".to_owned(), written_or(written, "kind", key.kind.as_str()));
    let mut fill = |name: &str, ours: &str| {
        fields.entry(name).or_insert_with(|| written_or(written, name, ours));
    };
    if key.kind != Kind::Organization {
        fill("organization", key.organization.as_str());
    }
    match key.within_cluster() {
        Some((cluster, name)) => {
            fill("cluster", &cluster.name);
            fill(key.kind.name_field(), name);
        }
        None => fill(key.kind.name_field(), &key.name),
    }
}

fn written_or(written: Option<&Value>, name: &str, ours: &str) -> Value {
    inner(written, name).cloned().unwrap_or_else(|| json!(ours))
}

fn take(document: &mut Value, pointer: &str) -> Option<Value> {
    let (outer, name) = pointer.rsplit_once('/')?;
    document.pointer_mut(outer)?.as_object_mut()?.remove(name)
}

/// Inserts a value, and any missing objects around it.
pub fn put(document: &mut Value, pointer: &str, value: Value) {
    let mut here = document;
    for name in pointer.split('/').skip(1) {
        if !here.is_object() {
            *here = json!({});
        }
        let Value::Object(fields) = here else { return };
        here = fields.entry(name).or_insert(Value::Null);
    }
    *here = value;
}
