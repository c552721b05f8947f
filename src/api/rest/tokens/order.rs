//! Parses the request for a token.

use serde::Deserialize as _;
use serde_json::Value;

use crate::api::rest::fields::{self, BodyField, field, is};
use crate::http::problem::ProblemDocument;
use crate::state::{Access, MAX_TOKEN_DAYS, Reach, TokenOrder};

const FIELDS: [BodyField; 5] = [
    field("name", "a string of 1 to 64 characters", is::<String>),
    field("owner", "the e-mail address of the token's owner, as a string", is::<String>),
    field("organization", "the identifier of an organization, or `*` for all", is::<Reach>),
    field("access", "`read`, `write` or `admin`", is::<Access>),
    field("days", "an integer from 1 to 365", is_days),
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
    fields::parse(body, &FIELDS, |name| match name {
        "owner" => caller.map(Value::from),
        "days" => Some(usual_days.into()),
        _ => None,
    })
}

fn is_days(value: &Value) -> bool {
    u32::deserialize(value).is_ok_and(|days| (1..=MAX_TOKEN_DAYS).contains(&days))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::http::problem::FieldError;

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
