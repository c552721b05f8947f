//! Entity tags in `If-Match` (RFC 9110, sections 8.8.3 and 13.1.1).

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;

use crate::names::Digest;

/// The condition of a write.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    /// `*`: the resource exists.
    Any,
    These(Vec<Digest>),
}

impl Tags {
    /// Parses the condition; `None` without the header. Several headers form one list. A weak tag is valid
    /// and never matches, since a write needs the strong comparison.
    ///
    /// # Errors
    /// When the header isn't a list of tags.
    pub fn expected(headers: &HeaderMap) -> Result<Option<Tags>, NoTags> {
        let mut lines = headers.get_all(IF_MATCH).iter().peekable();
        if lines.peek().is_none() {
            return Ok(None);
        }
        let lines: Vec<&str> =
            lines.map(|line| line.to_str()).collect::<Result<_, _>>().map_err(|_| NoTags)?;
        let list = lines.join(",");
        match list.trim_matches(BLANK) {
            "*" => Ok(Some(Tags::Any)),
            list => these(list).map(|tags| Some(Tags::These(tags))).ok_or(NoTags),
        }
    }

    /// Whether the condition is met by the current tag; `None` if the resource doesn't exist.
    pub fn allow(&self, now: Option<&Digest>) -> bool {
        match self {
            Tags::Any => now.is_some(),
            Tags::These(tags) => now.is_some_and(|now| tags.contains(now)),
        }
    }
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTags;

const BLANK: [char; 2] = [' ', '\t'];

/// The strong tags of a list; `None` if it isn't a list or is empty.
fn these(mut list: &str) -> Option<Vec<Digest>> {
    let (mut tags, mut count) = (Vec::new(), 0);
    loop {
        // Elements of a list may be empty (RFC 9110, section 5.6.1.2).
        list = list.trim_start_matches([' ', '\t', ',']);
        if list.is_empty() {
            return (count > 0).then_some(tags);
        }
        let (is_weak, quoted) = match list.strip_prefix("W/") {
            Some(quoted) => (true, quoted),
            None => (false, list),
        };
        let (tag, rest) = quoted.strip_prefix('"')?.split_once('"')?;
        if tag.contains(BLANK) {
            return None;
        }
        list = rest.trim_start_matches(BLANK);
        if !list.is_empty() && !list.starts_with(',') {
            return None;
        }
        count += 1;
        if !is_weak {
            tags.extend(Digest::named(tag));
        }
    }
}

#[cfg(test)]
mod tests {
    use axum::http::HeaderValue;

    use super::*;

    fn expected(lines: &[&str]) -> Result<Option<Tags>, NoTags> {
        let mut headers = HeaderMap::new();
        lines.iter().for_each(|line| {
            headers.append(IF_MATCH, HeaderValue::from_str(line).unwrap());
        });
        Tags::expected(&headers)
    }

    #[test]
    fn one_of_several_tags_is_enough_and_a_weak_one_is_none() {
        let [one, two] = ["one", "two"].map(Digest::of);
        let allows = |lines: &[&str], now: Option<&Digest>| expected(lines).unwrap().unwrap().allow(now);
        let list = format!("\"{one}\", \"{two}\"");
        assert!(allows(&[&list], Some(&one)) && allows(&[&list], Some(&two)));
        let lines = [&*format!("\"{one}\""), &*format!(" ,, \"{two}\" ,")];
        assert!(allows(&lines, Some(&one)) && allows(&lines, Some(&two)));
        for none in [&*format!("W/\"{one}\""), "\"xyzzy\"", "\"a,b\"", "\"\"", "\"ONE\"", "\"*\""] {
            assert!(!allows(&[none], Some(&one)), "{none}");
        }
        assert!(allows(&[&format!("W/\"{two}\",\"{one}\"")], Some(&one)));
        assert!(!allows(&[&list], None));
    }

    #[test]
    fn a_star_stands_for_whatever_is_there() {
        assert_eq!(expected(&[" * "]), Ok(Some(Tags::Any)));
        assert!(Tags::Any.allow(Some(&Digest::of("x"))) && !Tags::Any.allow(None));
        assert_eq!(expected(&[]), Ok(None));
    }

    #[test]
    fn what_is_no_list_of_tags_is_refused() {
        for none in
            ["", ",", "W/5", "abc", "\"abc", "\"a\" \"b\"", "*, \"a\"", "\"a\", *", "w/\"a\"", "\"a b\""]
        {
            assert_eq!(expected(&[none]), Err(NoTags), "{none}");
        }
        assert_eq!(expected(&["*", "*"]), Err(NoTags));
    }
}
