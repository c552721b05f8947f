//! Pagination. A page starts after the last item of the previous page, so that additions and removals
//! meanwhile neither skip nor repeat other items.

use base64::Engine as _;
use base64::engine::general_purpose::URL_SAFE_NO_PAD;
use uuid::Uuid;

use crate::api::answer::ListAnswer;
use crate::api::route::{LARGEST_PAGE, USUAL_PAGE};
use crate::http::problem::ProblemDocument;
use crate::http::query::Query;
use crate::plan::EntryPlace;

#[derive(Debug, PartialEq, Eq)]
pub(super) struct ListPage<T> {
    pub items: Vec<T>,
    next: Option<String>,
    total: usize,
}

/// The sort position of an item, convertible to and from text for page tokens.
pub(super) trait ListPosition: Ord + Sized {
    fn text(&self) -> String;
    fn read(text: &str) -> Option<Self>;
}

impl<T> ListPage<T> {
    /// The requested page of all items, which are sorted by their positions.
    pub(super) fn of<P: ListPosition>(
        query: &Query,
        all: Vec<T>,
        place: impl Fn(&T) -> P,
    ) -> Result<ListPage<T>, ProblemDocument> {
        let begin = |all: &[T], last: &str| {
            let last = P::read(last)?;
            Some(all.partition_point(|item| place(item) <= last))
        };
        ListPage::behind(query, all, begin, |item| place(item).text())
    }

    /// The requested page of items in any fixed order. `text` is the page token of an item. `begin` returns
    /// where the items after a token start; `None` for an invalid token.
    pub(super) fn behind(
        query: &Query,
        mut all: Vec<T>,
        begin: impl FnOnce(&[T], &str) -> Option<usize>,
        text: impl Fn(&T) -> String,
    ) -> Result<ListPage<T>, ProblemDocument> {
        let expected = format!("a number from 1 to {LARGEST_PAGE}");
        let fitting = |size: &str| size.parse().ok().filter(|size| (1..=LARGEST_PAGE).contains(size));
        let size = query.parsed_by("page_size", &expected, fitting)?.unwrap_or(USUAL_PAGE);
        let total = all.len();
        let begin = match query.get("page_token") {
            None => 0,
            Some(given) => read(given).and_then(|last| begin(&all, &last)).ok_or_else(invalid_token)?,
        };
        let mut items = all.split_off(begin.min(total));
        let more = items.len() > size as usize;
        items.truncate(size as usize);
        let last = items.last().filter(|_| more);
        let next = last.map(|last| token(&text(last)));
        Ok(ListPage { items, next, total })
    }

    pub(super) fn answer<A>(&self, items: Vec<A>) -> ListAnswer<A> {
        ListAnswer { items, next_page_token: self.next.clone(), total: self.total }
    }
}

pub(super) fn invalid_token() -> ProblemDocument {
    ProblemDocument::malformed("`page_token` is not a value of `next_page_token`")
        .hint("leave it out for the first page")
}

pub(super) fn token(text: &str) -> String {
    URL_SAFE_NO_PAD.encode(text)
}

pub(super) fn read(token: &str) -> Option<String> {
    String::from_utf8(URL_SAFE_NO_PAD.decode(token).ok()?).ok()
}

impl ListPosition for EntryPlace {
    fn text(&self) -> String {
        self.to_string()
    }
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

#[cfg(test)]
impl ListPosition for u64 {
    fn text(&self) -> String {
        self.to_string()
    }
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

/// The ids are UUIDv7 and sort by creation time.
impl ListPosition for Uuid {
    fn text(&self) -> String {
        self.to_string()
    }
    fn read(text: &str) -> Option<Self> {
        text.parse().ok()
    }
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;

    use super::*;

    fn page(uri: &str, all: Vec<u64>) -> Result<ListPage<u64>, ProblemDocument> {
        let query = Query::strict(&uri.parse::<Uri>().unwrap(), ["page_size", "page_token"]).unwrap();
        ListPage::of(&query, all, |item| *item)
    }

    #[test]
    fn pages_one_after_the_other_are_the_whole_list() {
        let (mut told, mut uri) = (Vec::new(), "/?page_size=3".to_owned());
        loop {
            let page = page(&uri, (0..10).collect()).unwrap();
            assert_eq!(page.total, 10);
            told.extend(page.items);
            let Some(next) = page.next else { break };
            uri = format!("/?page_size=3&page_token={next}");
        }
        assert_eq!(told, (0..10).collect::<Vec<u64>>());
    }

    #[test]
    fn what_comes_and_goes_between_two_pages_moves_nothing_else() {
        let next = page("/?page_size=2", vec![1, 2, 3, 4]).unwrap().next.unwrap();
        let second = page(&format!("/?page_size=2&page_token={next}"), vec![0, 1, 3, 4]).unwrap();
        assert_eq!((second.items, second.next), (vec![3, 4], None));
    }

    #[test]
    fn what_is_found_by_its_text_may_be_gone() {
        let page = |uri: &str, all: Vec<&'static str>| {
            let query = Query::strict(&uri.parse::<Uri>().unwrap(), ["page_size", "page_token"]).unwrap();
            let begin = |all: &[&str], last: &str| all.iter().position(|it| *it == last).map(|it| it + 1);
            ListPage::behind(&query, all, begin, |item| (*item).to_owned())
        };
        let first = page("/?page_size=2", vec!["d", "c", "b", "a"]).unwrap();
        assert_eq!(first.items, ["d", "c"]);
        let uri = format!("/?page_size=2&page_token={}", first.next.unwrap());
        let second = page(&uri, vec!["f", "e", "d", "c", "b", "a"]).unwrap();
        assert_eq!((second.items, second.next), (vec!["b", "a"], None));
        let gone = page(&uri, vec!["b", "a"]).unwrap_err().detail;
        assert_eq!(gone, "`page_token` is not a value of `next_page_token`");
    }

    #[test]
    fn a_page_that_there_can_not_be_is_refused() {
        for (uri, why) in [
            ("/?page_size=0", "the query parameter `page_size` is `0`, and must be a number from 1 to 200"),
            (
                "/?page_size=201",
                "the query parameter `page_size` is `201`, and must be a number from 1 to 200",
            ),
            ("/?page_size=-1", "the query parameter `page_size` is `-1`, and must be a number from 1 to 200"),
            ("/?page_token=x", "`page_token` is not a value of `next_page_token`"),
        ] {
            assert_eq!(page(uri, vec![1]).unwrap_err().detail, why);
        }
    }
}
