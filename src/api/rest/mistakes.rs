//! All mistakes of a body in one answer. Fields are compared with each other, and with other resources, only when each
//! of them is right by itself. So the wrong ones are left out, and the rest is judged again.

use serde_json::{Value, json};

use super::Call;
use super::json::Wiped;
use crate::api::route::Method;
use crate::http::problem::{FieldError, ProblemDocument, code};
use crate::names::Kind;
use crate::spec::describe::{self, Description, InputKind};
use crate::writing::WriteRequest;

/// How often the rest is judged: fields by themselves, in their document, and with other resources.
const PASSES: usize = 3;

/// In the place of a name: any will do, since nothing is written.
const UNNAMED: &str = "unnamed";

impl Call {
    /// Adds to a refusal what else is wrong. `request` is the write with another body.
    pub(super) fn with_all_mistakes(
        &self,
        body: &Value,
        mut refused: ProblemDocument,
        request: impl Fn(&Value) -> Option<WriteRequest>,
    ) -> ProblemDocument {
        let is_patch = self.route.method == Method::Patch;
        if ![code::INVALID.word, code::DUPLICATE.word].contains(&refused.kind.word) || !body.is_object() {
            return refused;
        }
        let mut mended = Wiped(body.clone());
        for _ in 0..PASSES {
            let wrong: Vec<String> =
                refused.errors.iter().filter_map(|error| error.pointer.clone()).collect();
            let mends = wrong.iter().map(|pointer| mend(self.kind(), is_patch, &mut mended.0, pointer));
            if mends.filter(|is_mended| *is_mended).count() == 0 {
                break;
            }
            let others = request(&mended.0).map(|request| self.service.writer.propose(&self.made, &request));
            let Some(Err(others)) = others else { break };
            let others = ProblemDocument::from(others);
            let new: Vec<FieldError> = match (others.status.is_client_error(), others.errors.is_empty()) {
                (false, _) => break,
                (true, true) => {
                    let ProblemDocument { detail, hint, .. } = others;
                    vec![FieldError { detail, hint, ..FieldError::default() }]
                }
                (true, false) => others.errors,
            };
            let new = new.into_iter().filter(|error| is_new(error, &refused.errors, &wrong));
            let new: Vec<FieldError> = new.collect();
            if new.is_empty() {
                break;
            }
            refused.errors.extend(new);
        }
        match refused.kind.word == code::INVALID.word {
            true => ProblemDocument::mistakes(refused.errors),
            false => refused,
        }
    }
}

/// Whether a mistake is neither known, nor due to what was put in the place of a wrong field.
fn is_new(error: &FieldError, known: &[FieldError], wrong: &[String]) -> bool {
    let names = || wrong.iter().filter_map(|pointer| pointer.rsplit('/').next());
    let told = error.detail.split('`').skip(1).step_by(2);
    let mut told = told.filter_map(|quoted| quoted.split(':').next()?.rsplit('.').next());
    // Without the wrong certificate, its key is compared with the one before.
    let is_its_key = |pointer: &str, other: &str| other == "/tls_cert" && pointer == "/tls_key";
    let is_one = |pointer: &str, other: &str| {
        is_within(pointer, other) || is_within(other, pointer) || is_its_key(pointer, other)
    };
    let is_of = |pointer: &String| wrong.iter().any(|other| is_one(pointer, other));
    !(error.pointer.as_ref().is_some_and(is_of)
        || known.iter().any(|other| other.detail == error.detail)
        || told.any(|name| names().any(|other| other == name)))
}

fn is_within(pointer: &str, around: &str) -> bool {
    pointer.strip_prefix(around).is_some_and(|rest| rest.is_empty() || rest.starts_with('/'))
}

/// Leaves out a wrong field, or puts a right value in its place. Whether that was possible.
fn mend(kind: Kind, is_patch: bool, body: &mut Value, pointer: &str) -> bool {
    let leaves = describe::leaves(kind);
    let field = leaves.iter().find(|field| is_within(pointer, &field.pointer()));
    let place = field.map_or_else(|| pointer.to_owned(), Description::pointer);
    let Some((around, name)) = place.rsplit_once('/') else { return false };
    let Some(Value::Object(fields)) = body.pointer_mut(around) else { return false };
    match field.filter(|field| field.required && !is_patch) {
        None => fields.remove(name).is_some(),
        Some(field) => {
            let Some(value) = stand_in(field) else { return false };
            fields.insert(name.to_owned(), value.clone()) != Some(value)
        }
    }
}

/// A value that a required field may have, and that means little; `None` if there is none.
fn stand_in(field: &Description) -> Option<Value> {
    match (field.input(), field.name()) {
        (InputKind::Integer { min, .. }, _) => Some(json!(min.max(1))),
        // What else a fleet needs depends on it.
        (InputKind::Choice, "infra_type") => None,
        (InputKind::Choice, _) => Some(json!(field.options().first()?.0)),
        (InputKind::Line, "identifier" | "infrastructure") => Some(json!(UNNAMED)),
        _ => None,
    }
}
