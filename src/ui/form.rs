//! Forms of resources. Their fields are those of the schemas that check the spec files, and a form checks nothing
//! itself: the API says at which field what is wrong.
//!
//! A field's name in a form is its JSON pointer in the body of the API.

mod draft;
mod steps;
mod words;

use std::collections::BTreeMap;
use std::ops::Deref;
use std::sync::Mutex;

use serde_json::{Map, Value, json};

use crate::api::answer::Offer;
use crate::http::problem::FieldError;
use crate::names::Kind;
use crate::parallel::locked;
use crate::spec::describe::{self, Description, InputKind};
use crate::spec::{SECRET_FIELDS, edit};
use crate::ui::client::Refusal;
use crate::writing::wipe;

pub use draft::{Draft, DraftHolder, Drafts, KEPT, Target, Typed};
pub use steps::{FormStep, steps};

#[derive(Clone, Default)]
pub struct FormField {
    pub pointer: String,
    pub label: String,
    pub help: String,
    /// The accepted values, as `streamfleet explain` says them.
    pub values: String,
    pub is_required: bool,
    pub input: InputKind,
    /// The choices; empty for a free text.
    pub options: Vec<FormOption>,
    /// The value of an empty field.
    pub default: String,
    pub value: String,
    /// The value that the record has; `None` for a new resource.
    pub shown: Option<String>,
    /// Whether a secret was given before, so that it may be left empty.
    pub is_kept: bool,
    /// Whether it can only be shown: it never changes.
    pub is_fixed: bool,
    /// Whether what was typed isn't shown, because it looks like a key.
    pub is_hidden: bool,
    pub errors: Vec<FieldError>,
}

#[derive(Clone)]
pub struct FormOption {
    pub value: String,
    pub label: String,
    pub text: String,
    /// Why it can't be chosen; empty if it can.
    pub why_not: String,
}

impl FormOption {
    pub fn of(value: impl Into<String>, text: impl Into<String>) -> FormOption {
        let value = value.into();
        FormOption { label: value.clone(), value, text: text.into(), why_not: String::new() }
    }

    pub fn is_offered(&self) -> bool {
        self.why_not.is_empty()
    }
}

impl From<&Offer> for FormOption {
    fn from(offer: &Offer) -> FormOption {
        let Offer { name, value, is_offered, is_default: _, description, reason } = offer;
        FormOption {
            // A value that isn't offered may have no spelling.
            value: value.clone().unwrap_or_else(|| name.clone()),
            label: name.clone(),
            text: description.clone(),
            why_not: reason.clone().filter(|_| !is_offered).unwrap_or_default(),
        }
    }
}

impl FormField {
    /// The name of the hidden field with the value that the record has; empty where nothing is compared.
    pub fn before(&self) -> String {
        match (self.is_fixed, self.input) {
            (true, _) | (_, InputKind::Secret) => String::new(),
            _ => Typed::before(&self.pointer),
        }
    }

    /// A value as people would write it; empty if the field explains itself.
    pub fn example(&self) -> &'static str {
        steps::example(&self.pointer)
    }

    /// The element's id, which has no slashes and dots.
    pub fn id(&self) -> String {
        format!("f{}", self.pointer.replace(['/', '.', ' '], "-"))
    }

    /// Whether its options are shown with their descriptions.
    pub fn is_radio(&self) -> bool {
        let is_told = |option: &FormOption| !option.text.is_empty() || !option.is_offered();
        // Of a fleet it matters most why it can't be chosen.
        let most = if self.pointer == "/infrastructure" { 50 } else { 12 };
        self.options.len() < most && self.options.iter().any(is_told)
    }

    fn of(field: &Description, is_required: bool) -> FormField {
        let input = field.input();
        let booleans = || vec![named("true", "yes"), named("false", "no")];
        FormField {
            pointer: field.pointer(),
            label: label(&field.pointer()),
            help: field.text(),
            values: field.values(),
            is_required,
            input,
            options: match input {
                InputKind::Boolean => booleans(),
                _ => field.options().into_iter().map(|(value, text)| FormOption::of(value, text)).collect(),
            },
            default: match field.default().unwrap_or_default().as_str() {
                "true" => "yes".to_owned(),
                "false" => "no".to_owned(),
                default => default.to_owned(),
            },
            ..FormField::default()
        }
    }

    /// A field below a mapping whose keys are free.
    fn within(pointer: &str) -> FormField {
        let label = label(&format!("/{}", pointer.rsplit('/').next().unwrap_or_default()));
        FormField { pointer: pointer.to_owned(), label, ..FormField::default() }
    }

    /// Shows what was typed, but for secrets, and for what looks like one in another field.
    pub fn fill(&mut self, text: &str) {
        match self.input {
            InputKind::Secret => self.is_kept |= !text.is_empty(),
            _ if looks_like_key(text) => {
                self.value.clear();
                self.is_hidden = true;
            }
            _ => text.clone_into(&mut self.value),
        }
    }

    /// The value that a typed text stands for. A text that is none is sent as it is, for the API to refuse.
    fn parse(&self, text: &str) -> Result<Value, FieldError> {
        Ok(match self.input {
            InputKind::Boolean => text.parse::<bool>().map_or_else(|_| json!(text), Value::from),
            InputKind::Integer { .. } => text.parse::<i64>().map_or_else(|_| json!(text), Value::from),
            InputKind::Yaml => edit::value(text).map_err(|refusal| {
                let why = format!("`{}` is not YAML: {}", self.label, refusal.why());
                let hint = match self.example() {
                    "" => refusal.hint().to_owned(),
                    example => format!("write it like this: `{example}`"),
                };
                FieldError::at(self.pointer.clone(), why, hint)
            })?,
            InputKind::Line | InputKind::Lines | InputKind::Choice | InputKind::Secret => json!(text),
        })
    }
}

fn named(value: &str, label: &str) -> FormOption {
    FormOption { label: label.to_owned(), ..FormOption::of(value, "") }
}

/// The name of a field as people read it, by its JSON pointer: `Storage, size GiB`.
pub fn label(pointer: &str) -> String {
    label_below("", pointer)
}

/// As `label`, where the title above the field names its group already.
pub fn label_below(group: &str, pointer: &str) -> String {
    if let Some(known) = steps::label(pointer) {
        return known.to_owned();
    }
    let below = pointer.strip_prefix(group).unwrap_or(pointer);
    // A group's own name says nothing where its fields' names do.
    let names = below.split('/').filter(|name| !matches!(*name, "" | "advanced_config" | "config"));
    let told = names.map(words).collect::<Vec<_>>().join(", ");
    let mut rest = told.chars();
    match rest.next() {
        // The names of broker options are Kafka's.
        Some(first) if !told.contains('.') => first.to_uppercase().chain(rest).collect(),
        _ => told,
    }
}

fn words(name: &str) -> String {
    let word = |word| match word {
        "dns" | "id" | "jwks" | "tls" | "uri" | "url" => word.to_uppercase(),
        "gib" => "GiB".to_owned(),
        "kafka" => "Kafka".to_owned(),
        "kubernetes" => "Kubernetes".to_owned(),
        word => word.to_owned(),
    };
    name.split('_').map(word).collect::<Vec<_>>().join(" ")
}

/// All fields of a kind: those of its steps in their order, and then the others.
pub fn fields(kind: Kind, is_new: bool) -> Vec<FormField> {
    // They follow from the schemas, which never change.
    static KNOWN: Mutex<BTreeMap<(Kind, bool), Vec<FormField>>> = Mutex::new(BTreeMap::new());
    locked(&KNOWN).entry((kind, is_new)).or_insert_with(|| made_fields(kind, is_new)).clone()
}

fn made_fields(kind: Kind, is_new: bool) -> Vec<FormField> {
    let mut all = Vec::new();
    for field in describe::document(kind, kind.singular()).fields() {
        collect(&field, true, &mut all);
    }
    let mut ordered = Vec::new();
    for pointer in steps(kind).iter().flat_map(|step| step.fields) {
        match all.iter().position(|field: &FormField| field.pointer == *pointer) {
            Some(at) => ordered.push(all.remove(at)),
            None if is_new => {
                all.retain(|field| !pointer.starts_with(&format!("{}/", field.pointer)));
                ordered.push(FormField::within(pointer));
            }
            None => {}
        }
    }
    ordered.append(&mut all);
    use_labels(&mut ordered);
    ordered
}

/// Calls fields by their labels where others tell of them.
pub fn use_labels(fields: &mut [FormField]) {
    let known = fields.to_vec();
    for FormField { help, options, .. } in fields {
        let texts = options.iter_mut().flat_map(|option| [&mut option.text, &mut option.why_not]);
        texts.chain([help]).for_each(|text| *text = words::labelled(&known, text));
    }
}

fn collect(field: &Description, is_needed: bool, all: &mut Vec<FormField>) {
    let is_needed = is_needed && field.required;
    if field.is_group() {
        field.fields().iter().for_each(|inner| collect(inner, is_needed, all));
    } else if !crate::spec::HEADER.contains(&field.name()) {
        all.push(FormField::of(field, is_needed));
    }
}

/// The JSON pointers of a kind's secrets.
pub fn secrets(kind: Kind) -> impl Iterator<Item = &'static str> {
    SECRET_FIELDS.into_iter().filter(move |(of, ..)| *of == kind).map(|(.., pointer)| pointer)
}

/// The text in a form for a value of a record.
pub fn text_of(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(Value::Array(items)) => items.iter().map(|item| format!("- {item}\n")).collect(),
        Some(Value::Object(fields)) => {
            fields.iter().map(|(name, value)| format!("{name}: {value}\n")).collect()
        }
        Some(other) => other.to_string(),
    }
}

/// Parts of private keys and of kubeconfigs.
const KEYS: [&str; 4] = ["PRIVATE KEY-----", "AGE-SECRET-KEY-", "client-key-data", "current-context"];

/// Whether a text looks like a private key or a kubeconfig.
pub fn looks_like_key(text: &str) -> bool {
    KEYS.iter().any(|mark| text.contains(mark))
}

/// The body of a call of the API. Its texts are overwritten when it is dropped, since any of them may be a secret.
pub struct FormBody(Value);

impl FormBody {
    /// Adds to a patch of a fleet whose it is, and which components it has.
    pub fn complete(&mut self, organization: &str, name: &str, record: &Value) {
        put(&mut self.0, "/organization", json!(organization));
        put(&mut self.0, "/identifier", json!(name));
        for pointer in ["/advanced_config/components/strimzi", "/advanced_config/exposure"] {
            if let (None, Some(value)) = (self.0.pointer(pointer), record.pointer(pointer)) {
                put(&mut self.0, pointer, value.clone());
            }
        }
    }
}

impl Deref for FormBody {
    type Target = Value;

    fn deref(&self) -> &Value {
        &self.0
    }
}

impl Drop for FormBody {
    fn drop(&mut self) {
        wipe(&mut self.0);
    }
}

/// The body of a new resource: the fields that were filled in; and the lists and mappings that aren't YAML.
pub fn new_body(fields: &[FormField], typed: &Typed) -> (FormBody, Vec<FieldError>) {
    let filled = fields.iter().filter(|field| !typed.text(&field.pointer).is_empty());
    body(filled.map(|field| (field, field.parse(typed.text(&field.pointer)))))
}

/// The patch of a record: the fields that the person changed; and the lists and mappings that aren't YAML. An empty
/// secret is kept.
pub fn patch(fields: &[FormField], typed: &Typed, record: &Value) -> (FormBody, Vec<FieldError>) {
    let shown = |field: &FormField| match field.input {
        InputKind::Secret => String::new(),
        _ => text_of(record.pointer(&field.pointer)),
    };
    let is_changed = |field: &&FormField| {
        let differs = || typed.text(&field.pointer) != shown(field).trim();
        typed.has(&field.pointer) && typed.is_changed(&field.pointer).unwrap_or_else(differs)
    };
    let changed = fields.iter().filter(is_changed);
    body(changed.map(|field| match typed.text(&field.pointer) {
        "" => (field, Ok(Value::Null)),
        text => (field, field.parse(text)),
    }))
}

fn body<'f>(
    values: impl Iterator<Item = (&'f FormField, Result<Value, FieldError>)>,
) -> (FormBody, Vec<FieldError>) {
    let (mut body, mut errors) = (FormBody(json!({})), Vec::new());
    for (field, value) in values {
        match value {
            Ok(value) => put(&mut body.0, &field.pointer, value),
            Err(error) => errors.push(error),
        }
    }
    (body, errors)
}

/// A body as it may be shown, with secrets left out.
pub fn without_secrets(kind: Kind, body: &Value) -> Value {
    fn shown(value: &Value, at: &str, secrets: &[&str]) -> Value {
        match value {
            Value::Null => Value::Null,
            _ if secrets.contains(&at) => json!("…"),
            Value::Object(fields) => {
                let shown = |(name, value): (&String, &Value)| {
                    (name.clone(), shown(value, &format!("{at}/{name}"), secrets))
                };
                fields.iter().map(shown).collect()
            }
            other => other.clone(),
        }
    }
    shown(body, "", &secrets(kind).collect::<Vec<_>>())
}

fn put(body: &mut Value, pointer: &str, value: Value) {
    let mut names: Vec<&str> = pointer.split('/').skip(1).collect();
    let Some(last) = names.pop() else { return };
    let within = names.into_iter().fold(body, |within, name| {
        let Value::Object(fields) = within else { return within };
        fields.entry(name).or_insert_with(|| Value::Object(Map::new()))
    });
    if let Value::Object(fields) = within {
        fields.insert(last.to_owned(), value);
    }
}

/// The field that a message about the whole document names: ``a `byok` fleet needs `advanced_config.kubeconfig` ``.
fn named_field(fields: &[FormField], message: &str) -> Option<String> {
    let named = message.split('`').skip(1).step_by(2).map(|name| format!("/{}", name.replace('.', "/")));
    named.into_iter().find(|pointer| fields.iter().any(|field| field.pointer == *pointer))
}

/// Puts each mistake at its field, in words for people, and returns whether one is within the first `count` fields. The
/// refusal keeps what is at no field.
pub fn attach(fields: &mut [FormField], refusal: &mut Refusal, count: usize) -> bool {
    let mut is_within = false;
    if !refusal.errors.is_empty() {
        // They say it all.
        (refusal.detail, refusal.hint) = (String::new(), None);
    }
    for error in std::mem::take(&mut refusal.errors) {
        // A mistake in a file is at no field of the form.
        let named = || named_field(fields, &error.detail).filter(|_| error.file.is_none());
        let at = error.pointer.clone().or_else(named).unwrap_or_default();
        let is_below = |one: &str, other: &str| one.starts_with(&format!("{other}/"));
        let is_at = |field: &FormField| field.pointer == at || is_below(&at, &field.pointer);
        let exact = fields.iter().position(is_at);
        let found = exact.or_else(|| fields.iter().position(|field| is_below(&field.pointer, &at)));
        let found = found.filter(|_| !at.is_empty());
        let told = words::told(fields, &error, found.map(|index| &fields[index]));
        match found {
            Some(index) => {
                fields[index].errors.push(told);
                is_within |= index < count;
            }
            None => refusal.errors.push(told),
        }
    }
    refusal.detail = words::labelled(fields, &refusal.detail);
    refusal.hint = refusal.hint.take().map(|hint| words::advice(fields, &hint));
    is_within
}
