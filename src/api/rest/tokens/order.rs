//! Parses the request for a token. All mistakes in the body are reported at once, in the wording of mistakes
//! in specs.

use serde_json::{Map, Value};

use crate::http::problem::{FieldError, ProblemDocument};
use crate::names::Identifier;
use crate::problem::quote_untrusted;
use crate::spec::describe::nearest;
use crate::state::{Access, MAX_TOKEN_DAYS, Reach, TokenOrder};

const FIELDS: [(&str, &str); 5] = [
    ("name", "a string of 1 to 64 characters"),
    ("owner", "the e-mail address of the token's owner, as a string"),
    ("organization", "the identifier of an organization, or `*` for all"),
    ("access", "`read`, `write` or `admin`"),
    ("days", "an integer from 1 to 365"),
];

/// Parses the body; the owner defaults to the caller, and the lifetime to `usual_days`.
///
/// # Errors
/// With all mistakes in the body.
pub(super) fn read(
    body: &Value,
    caller: Option<&str>,
    usual_days: u32,
) -> Result<TokenOrder, ProblemDocument> {
    let Value::Object(given) = body else {
        return Err(ProblemDocument::no_object());
    };
    let mut form = Form { given, faults: Vec::new() };
    form.refuse_unknown();
    let name = form.needed("name", text);
    let owner = match caller {
        Some(caller) => form.optional("owner", caller.to_owned(), text),
        None => form.needed("owner", text),
    };
    let organization = form.needed("organization", organization);
    let access = form.needed("access", access);
    let days = form.optional("days", usual_days, days);
    match (name, owner, organization, access, days) {
        (Some(name), Some(owner), Some(organization), Some(access), Some(days)) if form.faults.is_empty() => {
            Ok(TokenOrder { name, owner, organization, access, days })
        }
        _ => Err(ProblemDocument::mistakes(form.faults)),
    }
}

struct Form<'b> {
    given: &'b Map<String, Value>,
    faults: Vec<FieldError>,
}

/// An explanation and a hint, where they say more than "expected X, found Y".
type Wrong = Option<(String, String)>;

impl Form<'_> {
    fn refuse_unknown(&mut self) {
        let names = || FIELDS.into_iter().map(|(name, _)| name);
        for name in self.given.keys().filter(|name| names().all(|known| known != name.as_str())) {
            let hint = match nearest(name, names()) {
                Some(near) => format!("did you mean `{near}`?"),
                None => "the fields are `name`, `owner`, `organization`, `access` and `days`".to_owned(),
            };
            let pointer = format!("/{}", name.replace('~', "~0").replace('/', "~1"));
            self.faults.push(FieldError::at(
                pointer,
                format!("unknown key `{}`", quote_untrusted(name)),
                hint,
            ));
        }
    }

    fn needed<T>(&mut self, name: &str, take: fn(&Value) -> Result<T, Wrong>) -> Option<T> {
        match self.given.get(name) {
            None => self.refuse(
                name,
                format!("missing key `{name}`"),
                format!("add `{name}`: {}", expected(name)),
            ),
            Some(Value::Null) => {
                self.refuse(name, format!("`{name}` has no value"), format!("send {}", expected(name)))
            }
            Some(value) => self.taken(name, value, take),
        }
    }

    fn optional<T>(&mut self, name: &str, usual: T, take: fn(&Value) -> Result<T, Wrong>) -> Option<T> {
        match self.given.get(name) {
            None | Some(Value::Null) => Some(usual),
            Some(value) => self.taken(name, value, take),
        }
    }

    fn taken<T>(&mut self, name: &str, value: &Value, take: fn(&Value) -> Result<T, Wrong>) -> Option<T> {
        match take(value) {
            Ok(taken) => Some(taken),
            Err(Some((why, hint))) => self.refuse(name, format!("`{name}`: {why}"), hint),
            Err(None) => {
                let why = format!("`{name}`: expected {}, found {}", expected(name), found(value));
                self.refuse(name, why, format!("send {}", expected(name)))
            }
        }
    }

    fn refuse<T>(&mut self, name: &str, why: String, hint: String) -> Option<T> {
        self.faults.push(FieldError::at(format!("/{name}"), why, hint));
        None
    }
}

fn text(value: &Value) -> Result<String, Wrong> {
    value.as_str().map(str::to_owned).ok_or(None)
}

fn organization(value: &Value) -> Result<Reach, Wrong> {
    let text = value.as_str().ok_or(None)?;
    Reach::try_from(text.to_owned()).map_err(|_| {
        let why = format!("`{}` is not {}", quote_untrusted(text), Identifier::EXPECTED);
        Some((why, "use the identifier of an organization, or `*` for all".to_owned()))
    })
}

fn access(value: &Value) -> Result<Access, Wrong> {
    let text = value.as_str().ok_or(None)?;
    let named = |name: &str| Access::ALL.into_iter().find(|access| access.as_str() == name);
    named(text).ok_or_else(|| {
        let near = nearest(text, Access::ALL.into_iter().map(Access::as_str))?;
        let why = format!("expected {}, found {}", expected("access"), found(value));
        Some((why, format!("did you mean `{near}`?")))
    })
}

fn days(value: &Value) -> Result<u32, Wrong> {
    let days = value.as_u64().and_then(|days| u32::try_from(days).ok());
    days.filter(|days| (1..=MAX_TOKEN_DAYS).contains(days)).ok_or(None)
}

fn expected(name: &str) -> &'static str {
    FIELDS.into_iter().find(|(known, _)| *known == name).map_or("a value", |(_, expected)| expected)
}

fn found(value: &Value) -> String {
    match value {
        Value::Null => "nothing".to_owned(),
        Value::Bool(value) => format!("the boolean `{value}`"),
        Value::Number(number) => format!("the number `{}`", quote_untrusted(&number.to_string())),
        Value::String(text) if text.is_empty() => "an empty string".to_owned(),
        Value::String(text) => format!("the string `{}`", quote_untrusted(text)),
        Value::Array(_) => "a list".to_owned(),
        Value::Object(_) => "an object".to_owned(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    /// The pointer, detail and hint of each mistake in a body.
    fn wrong(body: Value) -> Vec<(String, String, String)> {
        let problem = read(&body, Some("ada@example.com"), 90).unwrap_err();
        if problem.errors.is_empty() {
            return vec![(String::new(), problem.detail, String::new())];
        }
        let told = |it: FieldError| (it.pointer.unwrap_or_default(), it.detail, it.hint.unwrap_or_default());
        problem.errors.into_iter().map(told).collect()
    }

    #[track_caller]
    fn is_wrong(field: &str, value: Value, pointer: &str, detail: &str, hint: &str) {
        let mut body = json!({"name": "ci", "organization": "acme", "access": "read"});
        body[field] = value;
        assert_eq!(wrong(body), [(pointer.to_owned(), detail.to_owned(), hint.to_owned())]);
    }

    #[test]
    fn what_is_not_said_is_the_callers_own_and_as_usual() {
        let body = json!({"name": "ci", "organization": "*", "access": "write", "owner": null, "days": null});
        let expected = TokenOrder {
            name: "ci".to_owned(),
            owner: "ada@example.com".to_owned(),
            organization: Reach::All,
            access: Access::Write,
            days: 90,
        };
        assert_eq!(read(&body, Some("ada@example.com"), 90).unwrap(), expected);
        let said =
            json!({"name": "ci", "organization": "acme", "access": "admin", "owner": "b@c", "days": 365});
        assert_eq!(read(&said, None, 90).unwrap().days, 365);
    }

    #[test]
    fn each_mistake_says_where_it_is_and_what_to_do() {
        let other = "the fields are `name`, `owner`, `organization`, `access` and `days`";
        is_wrong("scope", json!(1), "/scope", "unknown key `scope`", other);
        is_wrong("a/b~c", json!(1), "/a~1b~0c", "unknown key `a/b~c`", other);
        is_wrong("acess", json!("read"), "/acess", "unknown key `acess`", "did you mean `access`?");
        is_wrong("name", json!(null), "/name", "`name` has no value", "send a string of 1 to 64 characters");
        is_wrong(
            "name",
            json!(5),
            "/name",
            "`name`: expected a string of 1 to 64 characters, found the number `5`",
            "send a string of 1 to 64 characters",
        );
        is_wrong(
            "owner",
            json!(["a@b"]),
            "/owner",
            "`owner`: expected the e-mail address of the token's owner, as a string, found a list",
            "send the e-mail address of the token's owner, as a string",
        );
        is_wrong(
            "organization",
            json!("Acme"),
            "/organization",
            "`organization`: `Acme` is not an identifier: lower-case letters, digits and single hyphens, starting with a \
             letter, at most 32 characters",
            "use the identifier of an organization, or `*` for all",
        );
        is_wrong(
            "organization",
            json!({}),
            "/organization",
            "`organization`: expected the identifier of an organization, or `*` for all, found an object",
            "send the identifier of an organization, or `*` for all",
        );
        is_wrong(
            "access",
            json!("wirte"),
            "/access",
            "`access`: expected `read`, `write` or `admin`, found the string `wirte`",
            "did you mean `write`?",
        );
        is_wrong(
            "access",
            json!("everything"),
            "/access",
            "`access`: expected `read`, `write` or `admin`, found the string `everything`",
            "send `read`, `write` or `admin`",
        );
        for (days, found) in [
            (json!(0), "the number `0`"),
            (json!(366), "the number `366`"),
            (json!(-1), "the number `-1`"),
            (json!(1.5), "the number `1.5`"),
            (json!("90"), "the string `90`"),
            (json!(true), "the boolean `true`"),
            (json!(""), "an empty string"),
        ] {
            let why = format!("`days`: expected an integer from 1 to 365, found {found}");
            is_wrong("days", days, "/days", &why, "send an integer from 1 to 365");
        }
    }

    #[test]
    fn all_that_is_missing_and_wrong_is_told_at_once() {
        let told = |pointer: &str, detail: &str, hint: &str| {
            (pointer.to_owned(), detail.to_owned(), hint.to_owned())
        };
        assert_eq!(
            wrong(json!({"days": 0})),
            [
                told("/name", "missing key `name`", "add `name`: a string of 1 to 64 characters"),
                told(
                    "/organization",
                    "missing key `organization`",
                    "add `organization`: the identifier of an organization, or `*` for all"
                ),
                told("/access", "missing key `access`", "add `access`: `read`, `write` or `admin`"),
                told(
                    "/days",
                    "`days`: expected an integer from 1 to 365, found the number `0`",
                    "send an integer from 1 to 365"
                ),
            ]
        );
        assert_eq!(wrong(json!([]))[0].1, "the body is not a JSON object");
        // Callers on the socket have no e-mail address.
        let refused =
            read(&json!({"name": "ci", "organization": "acme", "access": "read"}), None, 90).unwrap_err();
        assert_eq!(refused.detail, "missing key `owner`");
    }
}
