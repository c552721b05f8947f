//! Tags of what resources say, as a caller names them in `If-Match` (RFC 9110, sections 8.8.3 and 13.1.1).

use axum::http::HeaderMap;
use axum::http::header::IF_MATCH;

use crate::names::Digest;

/// What a resource has to say, so that something is done with it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Tags {
    /// Anything, as long as it is there.
    Any,
    /// What one of these names.
    These(Vec<Digest>),
}

impl Tags {
    /// What a caller expects; none where they expect nothing. Several headers are one list. A weak tag is one, and equals
    /// none here, since what is changed by it has to be the same to the letter.
    ///
    /// # Errors
    /// When that is no list of tags.
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

    /// Whether it is expected what a resource says now; none where it isn't there.
    pub fn allow(&self, now: Option<&Digest>) -> bool {
        match self {
            Tags::Any => now.is_some(),
            Tags::These(tags) => now.is_some_and(|now| tags.contains(now)),
        }
    }
}

/// A header is there that names no tags.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct NoTags;

const BLANK: [char; 2] = [' ', '\t'];

/// The tags of a list that are not weak; none where it isn't a list, or an empty one.
fn these(mut list: &str) -> Option<Vec<Digest>> {
    let (mut tags, mut count) = (Vec::new(), 0);
    loop {
        // Elements of a list may be empty (section 5.6.1.2).
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
