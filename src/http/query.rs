//! Query parameters.

use std::collections::BTreeMap;
use std::str::FromStr;

use axum::http::Uri;

use super::problem::ProblemDocument;
use crate::problem::quote_untrusted;

/// Encodes a text as one segment of a path or as one value in a query; it may be anything.
pub fn encoded(text: &str) -> String {
    form_urlencoded::byte_serialize(text.as_bytes()).collect::<String>().replace('+', "%20")
}

#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub struct Query(BTreeMap<String, String>);

impl Query {
    /// Parses the query of a URI. Only known parameters are allowed, each at most once.
    ///
    /// # Errors
    /// With the reason.
    pub fn strict<'k>(
        uri: &Uri,
        known: impl IntoIterator<Item = &'k str> + Clone,
    ) -> Result<Query, ProblemDocument> {
        let mut words = BTreeMap::new();
        let query = uri.query().unwrap_or_default();
        for (name, value) in form_urlencoded::parse(query.as_bytes()).into_owned() {
            if !known.clone().into_iter().any(|known| known == name) {
                let known: Vec<String> = known.into_iter().map(|name| format!("`{name}`")).collect();
                let known = if known.is_empty() { "none".to_owned() } else { known.join(", ") };
                let why = format!("unknown query parameter `{}`; known: {known}", quote_untrusted(&name));
                return Err(ProblemDocument::malformed(why));
            }
            if words.contains_key(&name) {
                let why = format!("the query parameter `{name}` is repeated");
                return Err(ProblemDocument::malformed(why));
            }
            words.insert(name, value);
        }
        Ok(Query(words))
    }

    pub fn get(&self, name: &str) -> Option<&str> {
        self.0.get(name).map(String::as_str)
    }

    /// Parses the value of a parameter.
    ///
    /// # Errors
    /// When the value isn't `expected`.
    pub fn parsed<T: FromStr>(&self, name: &str, expected: &str) -> Result<Option<T>, ProblemDocument> {
        self.parsed_by(name, expected, |value| value.parse().ok())
    }

    /// Like `parsed`; `parse` returns `None` for an invalid value.
    ///
    /// # Errors
    /// When the value isn't `expected`.
    pub fn parsed_by<T>(
        &self,
        name: &str,
        expected: &str,
        parse: impl FnOnce(&str) -> Option<T>,
    ) -> Result<Option<T>, ProblemDocument> {
        let Some(value) = self.get(name) else { return Ok(None) };
        // A `+` in a query means a space. The hint helps callers who forgot to escape one.
        let plus = if value.contains(' ') { "; a `+` is sent as `%2B`" } else { "" };
        parse(value).map(Some).ok_or_else(|| {
            let value = quote_untrusted(value);
            ProblemDocument::malformed(format!(
                "the query parameter `{name}` is `{value}`, and must be {expected}{plus}"
            ))
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn strict(uri: &'static str) -> Result<Query, ProblemDocument> {
        Query::strict(&Uri::from_static(uri), ["page_size", "organization"])
    }

    #[test]
    fn a_word_that_is_not_known_or_given_twice_is_refused() {
        assert_eq!(strict("/x?page_size=5&organization=a%20b").unwrap().get("organization"), Some("a b"));
        for (uri, why) in [
            ("/x?size=5", "unknown query parameter `size`; known: `page_size`, `organization`"),
            ("/x?page_size=5&page_size=6", "the query parameter `page_size` is repeated"),
        ] {
            assert_eq!(strict(uri).unwrap_err().detail, why);
        }
        let why = Query::strict(&Uri::from_static("/x?a=1"), []).unwrap_err().detail;
        assert_eq!(why, "unknown query parameter `a`; known: none");
    }

    #[test]
    fn a_value_of_another_kind_is_quoted_with_what_it_has_to_be() {
        let query = strict("/x?page_size=many").unwrap();
        let why = query.parsed::<u16>("page_size", "a number from 1 to 200").unwrap_err().detail;
        assert_eq!(why, "the query parameter `page_size` is `many`, and must be a number from 1 to 200");
        assert_eq!(query.parsed::<u16>("organization", ""), Ok(None));
        let query =
            Query::strict(&Uri::from_static("/x?since=2026-01-31T12:00:00+02:00"), ["since"]).unwrap();
        let why = query
            .parsed::<jiff::Timestamp>("since", "a time such as 2026-01-31T12:00:00Z")
            .unwrap_err()
            .detail;
        assert_eq!(
            why,
            "the query parameter `since` is `2026-01-31T12:00:00 02:00`, and must be a time such as 2026-01-31T12:00:00Z; \
             a `+` is sent as `%2B`"
        );
    }
}
