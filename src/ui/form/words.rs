//! The API's words for who fills in a form: fields by their labels, and no advice for programs.

use std::collections::BTreeSet;
use std::sync::LazyLock;

use super::{FormField, label};
use crate::http::problem::FieldError;
use crate::names::Kind;
use crate::spec::describe;

/// Advice for programs and for who edits files, each with what it is at a form; empty if it is nothing there.
const ADVICE: [(&str, &str); 10] = [
    ("; send it as one string, with `\\n` for each end of a line", ""),
    ("see `/openapi.json` for its format", ""),
    ("send it as a string", ""),
    ("send the value as a string, which is stored encrypted", ""),
    ("send the value of the path, or leave it out", ""),
    ("send it unchanged", "leave it unchanged"),
    ("send them unchanged", "leave them unchanged"),
    ("send null for", "leave empty"),
    ("send ", "write "),
    ("restore `", "put back `"),
];

/// A mistake as its form tells it: at the field that `at` is the name of, or at the top.
pub fn told(fields: &[FormField], error: &FieldError, at: Option<&FormField>) -> FieldError {
    let own = |text: &str| {
        // The label stands above it.
        let name =
            at.map(|field| field.pointer.trim_start_matches('/').replace('/', ".")).unwrap_or_default();
        let own = [name.as_str(), name.rsplit('.').next().unwrap_or_default()];
        let rest = text.strip_prefix('`').and_then(|text| text.split_once("`: "));
        rest.filter(|(name, _)| own.contains(name)).map_or(text, |(_, rest)| rest).to_owned()
    };
    let detail = match error.detail.strip_prefix("missing key `").and_then(|rest| rest.strip_suffix('`')) {
        Some(_) if at.is_some_and(|field| !field.options.is_empty()) => {
            return FieldError { detail: "choose one".to_owned(), hint: None, ..error.clone() };
        }
        Some(_) if at.is_some() => "it is required".to_owned(),
        Some(name) => format!("`{name}` is missing"),
        None => own(&error.detail),
    };
    let hint = error.hint.as_ref().map(|hint| advice(fields, hint)).filter(|hint| !hint.is_empty());
    FieldError { detail: labelled(fields, &detail), hint, ..error.clone() }
}

pub fn advice(fields: &[FormField], hint: &str) -> String {
    let hint = ADVICE.iter().fold(hint.to_owned(), |hint, (from, to)| hint.replace(from, to));
    labelled(fields, &hint)
}

/// A text with the labels of fields in the place of their names.
pub fn labelled(fields: &[FormField], text: &str) -> String {
    let mut told = String::new();
    for (index, part) in text.split('`').enumerate() {
        match (index % 2, quoted(fields, part)) {
            (0, _) => told += &part.split(' ').map(|word| bare(fields, word)).collect::<Vec<_>>().join(" "),
            (_, None) if part.starts_with('"') => told += &format!("`{}`", part.replace('"', "")),
            (_, None) => told += &format!("`{part}`"),
            (_, Some(label)) => {
                for (of_files, ours) in [("add ", "fill in "), ("send ", "fill in ")] {
                    if let Some(before) = told.strip_suffix(of_files) {
                        told = format!("{before}{ours}");
                    }
                }
                told += &label;
            }
        }
    }
    told
}

/// A field's label, by its path or by the last part of it. Of a field that another form has, it follows from the name.
fn known(fields: &[FormField], name: &str) -> Option<String> {
    let pointer = format!("/{}", name.replace('.', "/"));
    let whole = format!("/advanced_config/config/{name}");
    let exact = fields.iter().find(|field| field.pointer == pointer || field.pointer == whole);
    let last = || fields.iter().find(|field| field.pointer.ends_with(&pointer));
    let other = || is_of_another_form(name).then(|| label(&format!("/{name}")));
    exact.or_else(last).map(|field| field.label.clone()).or_else(other)
}

/// Whether a form has a field of this name. What looks like one may be the name of a topic.
fn is_of_another_form(name: &str) -> bool {
    static KNOWN: LazyLock<BTreeSet<String>> = LazyLock::new(|| {
        let mut fields: Vec<_> = Kind::ALL.map(|kind| describe::document(kind, kind.singular())).into();
        let mut names = BTreeSet::new();
        while let Some(field) = fields.pop() {
            names.insert(field.name().to_owned());
            fields.extend(field.fields());
        }
        names
    });
    is_name(name) && KNOWN.contains(name)
}

/// What stands in backticks: `kafka_units`, `dns_provider: external-dns` or `"dns_provider": "external-dns"`.
fn quoted(fields: &[FormField], text: &str) -> Option<String> {
    match text.split_once(": ") {
        Some((name, value)) => {
            Some(format!("{}: {}", known(fields, name.trim_matches('"'))?, value.trim_matches('"')))
        }
        None => known(fields, text),
    }
}

/// A word outside of backticks, which names a field only if it looks like one.
fn bare(fields: &[FormField], word: &str) -> String {
    let end = word.find(|letter: char| !(letter.is_ascii_lowercase() || letter == '_')).unwrap_or(word.len());
    let (name, rest) = word.split_at(end);
    let label = Some(name).filter(|name| is_name(name)).and_then(|name| known(fields, name));
    label.map_or_else(|| word.to_owned(), |label| label + rest)
}

fn is_name(word: &str) -> bool {
    word.contains('_') && word.bytes().all(|byte| byte.is_ascii_lowercase() || byte == b'_')
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ui::form::fields;

    fn said(kind: Kind, pointer: &str, detail: &str, hint: &str) -> (String, String) {
        let fields = fields(kind, true);
        let at = fields.iter().find(|field| field.pointer == pointer);
        let told = told(&fields, &FieldError::at(pointer, detail, hint), at);
        (told.detail, told.hint.unwrap_or_default())
    }

    #[test]
    fn fields_have_their_labels_and_advice_is_for_people() {
        for (kind, pointer, detail, hint, expected, advice) in [
            (
                Kind::Cluster,
                "/kafka_units",
                "`kafka_units`: expected an integer, found the string `many`",
                "see `/openapi.json` for its format",
                "expected an integer, found the string `many`",
                "",
            ),
            (
                Kind::Cluster,
                "/tenancy_mode",
                "the cluster's tenancy_mode is Shared and that of fleet `eu` is Isolated",
                "set `\"tenancy_mode\": \"Isolated\"`, or choose a fleet that is Shared",
                "the cluster's Tenancy mode is Shared and that of fleet `eu` is Isolated",
                "set Tenancy mode: Isolated, or choose a fleet that is Shared",
            ),
            (
                Kind::BaseDomain,
                "/domain",
                "`domain`: `k.example.com` is not within the domains of the organization",
                "add `\"domains\": [\"k.example.com\"]` to organization `acme`",
                "`k.example.com` is not within the domains of the organization",
                "add `domains: [k.example.com]` to organization `acme`",
            ),
            (
                Kind::BaseDomain,
                "/dns_provider",
                "managed DNS needs `cloud_account`",
                "add `cloud_account`: the identifier of the cloud account for the domain's DNS zone",
                "managed DNS needs Cloud account",
                "fill in Cloud account: the identifier of the cloud account for the domain's DNS zone",
            ),
            (
                Kind::BaseDomain,
                "/tls_cert",
                "this is no certificate",
                "use the PEM text; send it as one string, with `\\n` for each end of a line",
                "this is no certificate",
                "use the PEM text",
            ),
            (
                Kind::Cluster,
                "/kafka_units",
                "missing key `kafka_units`",
                "send it as a string",
                "it is required",
                "",
            ),
            (
                Kind::Cluster,
                "/tenancy_mode",
                "missing key `tenancy_mode`",
                "add `tenancy_mode`: one of",
                "choose one",
                "",
            ),
            (
                Kind::Fleet,
                "",
                "a `byok` fleet needs `advanced_config.kubeconfig`",
                "send null for `advanced_config.path`",
                "a `byok` fleet needs Kubeconfig",
                "leave empty Path",
            ),
            (
                Kind::Cluster,
                "",
                "not enough capacity: 8 of 10 `max_kafka_units` of fleet acme/eu are in use",
                "raise the limit",
                "not enough capacity: 8 of 10 Max Kafka units of fleet acme/eu are in use",
                "raise the limit",
            ),
            (
                Kind::Topic,
                "/name",
                "topic `payments_state` can't be beside topic `__state`",
                "choose another name",
                "topic `payments_state` can't be beside topic `__state`",
                "choose another name",
            ),
        ] {
            assert_eq!(said(kind, pointer, detail, hint), (expected.to_owned(), advice.to_owned()));
        }
    }
}
