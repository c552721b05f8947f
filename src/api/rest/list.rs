//! Lists of resources: which of them are asked for, and in which order. Only the items on the page become
//! records.

use std::borrow::Cow;

use axum::http::StatusCode;
use serde_json::Value;

use super::page::ListPage;
use super::{Answered, Call, written};
use crate::catalog::{Resource, Status};
use crate::http::problem::ProblemDocument;
use crate::http::query::Query;
use crate::names::{FleetKey, Identifier, Kind, ResourceKey};
use crate::record::{self, has_status};
use crate::spec::{Spec, Tag};
use crate::views::records;

/// Lists the resources of a kind that the caller may see, filtered, sorted and paginated.
pub(super) fn list(call: &Call) -> Answered {
    let kind = call.kind();
    let filter = ListFilter::of(call, kind)?;
    let order = ListOrder::of(&call.query, kind)?;
    let visible = call.keys(kind).into_iter().filter(|key| filter.has(call, key));
    let items = visible.map(|key| ListItem { value: order.value(call, key), key });
    let page = order.page(&call.query, items.collect())?;
    let records = page.items.iter().filter_map(|item| Some(call.shown(item.key)?.record));
    let records: Vec<Value> = records.collect();
    Ok(call.with_current_plan(written(StatusCode::OK, &page.answer(records))))
}

struct ListFilter<'q> {
    organization: Option<Identifier>,
    fleet: Option<&'q str>,
    status: Option<Status>,
    /// In lower case.
    text: Option<String>,
    tag: Option<&'q str>,
    cluster: Option<&'q str>,
}

impl<'q> ListFilter<'q> {
    fn of(call: &'q Call, kind: Kind) -> Result<ListFilter<'q>, ProblemDocument> {
        let expected = format!("one of {}", Status::ALL.map(Status::as_str).join(", "));
        Ok(ListFilter {
            organization: call.within(kind)?,
            fleet: call.query.get("infrastructure"),
            status: call.query.parsed("status", &expected)?,
            text: call.query.get("q").map(str::to_lowercase),
            tag: call.query.get("tag"),
            cluster: call.query.get("cluster"),
        })
    }

    /// Whether the caller may see a resource, and asked for it.
    fn has(&self, call: &Call, key: &ResourceKey) -> bool {
        let ListFilter { organization, fleet, status, text, tag, cluster } = self;
        organization.as_ref().is_none_or(|organization| key.organization == *organization)
            && call.caller.sees(&key.organization)
            && fleet.is_none_or(|fleet| call.fleet_of(key).is_some_and(|found| found.fleet.as_str() == fleet))
            && text.as_ref().is_none_or(|text| call.is_named(key, text))
            && cluster.is_none_or(|cluster| key.within_cluster().is_some_and(|(on, _)| on.name == cluster))
            && tag.is_none_or(|tag| call.has_tag(key, tag))
            && status.is_none_or(|status| call.standing(key).status == status)
    }
}

/// The order of a list. The default is the keys' own.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
struct ListOrder<'q> {
    /// The parameter, which is part of each page token; empty for the default.
    word: &'q str,
    field: Option<SortField>,
    is_falling: bool,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum SortField {
    Identifier,
    CreatedAt,
    UpdatedAt,
    Status,
}

/// An item of a list. Items sort by the value, and those with the same by their keys.
#[derive(Debug, PartialEq, Eq, PartialOrd, Ord)]
struct ListItem<'k> {
    value: String,
    key: &'k ResourceKey,
}

impl<'q> ListOrder<'q> {
    fn of(query: &'q Query, kind: Kind) -> Result<ListOrder<'q>, ProblemDocument> {
        let status = if has_status(kind) { ", `updated_at` or `status`" } else { " or `updated_at`" };
        let expected = format!("`identifier`, `created_at`{status}, with or without a `-` in front");
        let field = |word: &str| match word.strip_prefix('-').unwrap_or(word) {
            "identifier" => Some(SortField::Identifier),
            "created_at" => Some(SortField::CreatedAt),
            "updated_at" => Some(SortField::UpdatedAt),
            "status" if has_status(kind) => Some(SortField::Status),
            _ => None,
        };
        let field = query.parsed_by("sort", &expected, field)?;
        let word = query.get("sort").unwrap_or_default();
        Ok(ListOrder { word, field, is_falling: word.starts_with('-') })
    }

    /// The value by which a resource is sorted, as text in the same order.
    fn value(self, call: &Call, key: &ResourceKey) -> String {
        let pending = call.pending.get(key).map(AsRef::as_ref);
        match self.field {
            None => String::new(),
            Some(SortField::Identifier) => key.name.to_string(),
            Some(SortField::CreatedAt) => {
                call.created_at(key, pending).map(record::timestamp).unwrap_or_default()
            }
            Some(SortField::UpdatedAt) => {
                call.updated_at(key, pending).map(record::timestamp).unwrap_or_default()
            }
            Some(SortField::Status) => call.standing(key).status.as_str().to_owned(),
        }
    }

    fn page<'k>(
        self,
        query: &Query,
        mut items: Vec<ListItem<'k>>,
    ) -> Result<ListPage<ListItem<'k>>, ProblemDocument> {
        if self.field.is_some() {
            items.sort_unstable();
        }
        if self.is_falling {
            items.reverse();
        }
        let begin = |items: &[ListItem<'k>], last: &str| {
            let (value, key) = last.strip_prefix(self.word)?.strip_prefix('\n')?.split_once('\n')?;
            let key: ResourceKey = key.to_owned().try_into().ok()?;
            let is_told = |item: &ListItem<'k>| {
                let place = (item.value.as_str(), item.key).cmp(&(value, &key));
                if self.is_falling { place.is_ge() } else { place.is_le() }
            };
            Some(items.partition_point(is_told))
        };
        let token = |item: &ListItem<'k>| {
            format!("{}\n{}\n{}", self.word, item.value, String::from(item.key.clone()))
        };
        ListPage::behind(query, items, begin, token)
    }
}

impl Call {
    fn fleet_of(&self, cluster: &ResourceKey) -> Option<FleetKey> {
        let written = self.resource_written(cluster).and_then(Resource::fleet);
        written.or_else(|| self.made.round.fleet_of(cluster))
    }

    /// A resource as its record shows it.
    pub(super) fn resource(&self, key: &ResourceKey) -> Option<Cow<'_, Resource>> {
        let written = self.resource_written(key).map(Cow::Borrowed);
        written.or_else(|| records::find(&self.made.round, key))
    }

    /// Whether a name of a resource contains a text in lower case.
    fn is_named(&self, key: &ResourceKey, text: &str) -> bool {
        let has = |name: &str| name.to_lowercase().contains(text);
        if has(&key.name) {
            return true;
        }
        match key.kind {
            Kind::Cluster => self.fleet_of(key).is_some_and(|fleet| has(fleet.fleet.as_str())),
            Kind::Organization | Kind::BaseDomain => {
                self.resource(key).is_some_and(|resource| match &resource.spec {
                    Spec::Organization(spec) => spec.display_name.as_deref().is_some_and(has),
                    Spec::BaseDomain(spec) => has(spec.domain.as_str()),
                    _ => false,
                })
            }
            Kind::Fleet | Kind::IdentityProvider | Kind::CloudAccount | Kind::Topic | Kind::User => false,
        }
    }

    fn has_tag(&self, key: &ResourceKey, tag: &str) -> bool {
        self.resource(key).is_some_and(|resource| match &resource.spec {
            Spec::Cluster(cluster) => cluster.tags.iter().any(|known| is_tag(known, tag)),
            _ => false,
        })
    }
}

/// Whether a tag is the one that `wanted` names: its key, or `key=value`.
fn is_tag(tag: &Tag, wanted: &str) -> bool {
    let value = wanted.strip_prefix(tag.key.as_str());
    value.is_some_and(|rest| rest.is_empty() || rest.strip_prefix('=') == Some(tag.value.as_str()))
}

#[cfg(test)]
mod tests {
    use axum::http::Uri;

    use super::*;

    fn keys() -> Vec<ResourceKey> {
        let key = |name: &str| ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), name);
        ["a", "b", "c", "d", "e"].map(key).into()
    }

    fn query(words: &str) -> Query {
        Query::strict(&format!("/?{words}").parse::<Uri>().unwrap(), ["sort", "page_size", "page_token"])
            .unwrap()
    }

    fn names(words: &str, values: [&str; 5]) -> (Vec<String>, Value) {
        let (keys, query) = (keys(), query(words));
        let items = keys.iter().zip(values).map(|(key, value)| ListItem { value: value.to_owned(), key });
        let order = ListOrder::of(&query, Kind::Cluster).unwrap();
        let page = order.page(&query, items.collect()).unwrap();
        let names = page.items.iter().map(|item| item.key.name.to_string()).collect();
        (names, serde_json::to_value(page.answer(Vec::<Value>::new())).unwrap()["next_page_token"].clone())
    }

    #[test]
    fn a_sorted_list_is_whole_page_by_page_in_either_direction() {
        let values = ["Healthy", "Failed", "Healthy", "Degraded", "Healthy"];
        for (order, expected) in [("status", "dbace"), ("-status", "ecabd")] {
            let (mut told, mut next) = (String::new(), Value::Null);
            loop {
                let token = next.as_str().map(|token| format!("&page_token={token}")).unwrap_or_default();
                let (page, following) = names(&format!("sort={order}&page_size=2{token}"), values);
                told.extend(page);
                next = following;
                if next.is_null() {
                    break;
                }
            }
            assert_eq!(told, expected);
        }
    }

    #[test]
    fn what_changes_its_place_between_two_pages_moves_nothing_else() {
        let (first, next) = names("sort=status&page_size=2", ["1", "2", "3", "4", "5"]);
        let uri = format!("sort=status&page_size=3&page_token={}", next.as_str().unwrap());
        // The last item of the first page has moved to the end.
        let (second, _) = names(&uri, ["1", "6", "3", "4", "5"]);
        assert_eq!((first.concat(), second.concat()), ("ab".to_owned(), "cde".to_owned()));
    }

    #[test]
    fn a_token_of_another_order_is_refused() {
        let (_, next) = names("sort=status&page_size=2", [""; 5]);
        for other in ["", "sort=-status&", "sort=identifier&"] {
            let query = query(&format!("{other}page_token={}", next.as_str().unwrap()));
            let order = ListOrder::of(&query, Kind::Cluster).unwrap();
            let refused = order.page(&query, Vec::new()).unwrap_err().detail;
            assert_eq!(refused, "`page_token` is not a value of `next_page_token`", "{other}");
        }
    }

    #[test]
    fn only_what_has_a_status_is_sorted_by_it() {
        let query = query("sort=status");
        assert!(ListOrder::of(&query, Kind::Fleet).is_ok());
        assert_eq!(
            ListOrder::of(&query, Kind::BaseDomain).unwrap_err().detail,
            "the query parameter `sort` is `status`, and must be `identifier`, `created_at` or `updated_at`, with or \
             without a `-` in front"
        );
    }

    #[test]
    fn a_tag_is_named_by_its_key_or_with_its_value() {
        let tag = |key: &str, value: &str| Tag { key: key.to_owned(), value: value.to_owned() };
        for (wanted, is_it) in [
            ("env", true),
            ("env=prod", true),
            ("env=pro", false),
            ("en", false),
            ("env=", false),
            ("ENV", false),
        ] {
            assert_eq!(is_tag(&tag("env", "prod"), wanted), is_it, "{wanted}");
        }
        assert!(is_tag(&tag("env", ""), "env="));
        assert!(is_tag(&tag("a=b", "c"), "a=b") && is_tag(&tag("a=b", "c"), "a=b=c"));
    }
}
