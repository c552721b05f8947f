//! The query parameters of the routes.

use super::{Query, shapes};

impl Query {
    const fn new(name: &'static str, schema: fn() -> serde_json::Value, text: &'static str) -> Query {
        Query { name, schema, text }
    }
}

pub(super) const PAGE_SIZE: Query =
    Query::new("page_size", shapes::page_size, "The maximal number of items in the answer.");
pub(super) const PAGE_TOKEN: Query = Query::new(
    "page_token",
    shapes::text,
    "The `next_page_token` of the previous page. By default the first page.",
);
pub(super) const DRY_RUN: Query = Query::new(
    "dry_run",
    shapes::dry_run,
    "Change nothing, and answer with the plan of the change, or its file.",
);
pub(super) const OF_ORGANIZATION: Query =
    Query::new("organization", shapes::text, "The organization, by its id or identifier: only its items.");
pub(super) const OFFERED_TO: Query =
    Query::new("organization", shapes::text, "The organization, by its id or identifier: only its fleets.");
pub(super) const OF_FLEET: Query =
    Query::new("infrastructure", shapes::text, "The fleet, by its identifier: only its clusters.");
pub(super) const OF_CLUSTER: Query =
    Query::new("cluster", shapes::text, "The cluster, by its identifier: only its items.");
pub(super) const CHANGES_OF_FLEET: Query = Query::new(
    "infrastructure",
    shapes::text,
    "The fleet, by its identifier: only its changes. Its approvals then name all of the changes that they are for, and \
     otherwise the first 50.",
);
pub(super) const CHANGES_OF_RESOURCE: Query = Query::new(
    "resource",
    shapes::text,
    "Only changes of this resource, `Cluster/acme/orders`, with all lines about its objects; otherwise each change has at \
     most 60.",
);
/// For resources that the path names by an identifier alone, which several organizations may use.
pub(super) const IN_ORGANIZATION: Query = Query::new(
    "organization",
    shapes::text,
    "The organization, by its id or identifier. Required if `id` is an identifier of clusters in several \
     organizations.",
);
pub(super) const AT: Query = Query::new(
    "at",
    shapes::time,
    "Plan as of this time, to see what expires by then. Requires a token that may write, of an editor or an \
     administrator of an organization.",
);
pub(super) const STATUS: Query = Query::new("status", shapes::status, "Only items with this status.");
pub(super) const UNWELL: Query = Query::new(
    "unwell",
    shapes::truth,
    "Only fleets and clusters that a person should look at, and the first 50 of them. The counts are of all.",
);
pub(super) const SEARCH: Query = Query::new(
    "q",
    shapes::text,
    "Only items whose identifier, display name, domain or fleet contains this text. Upper and lower case are the \
     same.",
);
pub(super) const TAG: Query =
    Query::new("tag", shapes::text, "Only clusters with this tag: its key, or `key=value`.");
pub(super) const SORT: Query = Query::new("sort", shapes::sort, SORT_TEXT);
pub(super) const SORT_OR_STATUS: Query = Query::new("sort", shapes::sort_or_status, SORT_TEXT);
const SORT_TEXT: &str = "The order: by this field, with `-` in front from the last to the first. By default by \
    organization and identifier. A page token is valid in its own order only. An item whose value changes between two \
    pages may be on both or on neither.";
pub(super) const SINCE: Query = Query::new("since", shapes::time, "Only events since this time.");
pub(super) const AS_USER: Query = Query::new(
    "user",
    shapes::text,
    "The user of the cluster that the properties are for, by its identifier.",
);
pub(super) const BROKER: Query = Query::new("broker", shapes::broker, "Only the broker with this number.");
pub(super) const LOG_SINCE: Query = Query::new(
    "since",
    shapes::time,
    "Only lines of this time or later. By default the last 500 lines of each broker. An answer that ends before the log \
     says so in its last line, which begins with `# the log goes on`, and since when to go on.",
);
pub(super) const FOLLOW: Query = Query::new(
    "follow",
    shapes::truth,
    "Go on with what is logged from now on. The answer ends after 50 s, with such a last line.",
);
pub(super) const FROM: Query = Query::new(
    "from",
    shapes::time,
    "The beginning of the time that is counted. By default that of the month of `to`, in UTC.",
);
pub(super) const TO: Query = Query::new(
    "to",
    shapes::time,
    "The end of the time that is counted. By default, and at most, the present.",
);
pub(super) const OF_RESOURCE: Query = Query::new(
    "resource",
    shapes::text,
    "Only events about this resource, as events name it: `Cluster/acme/orders`.",
);
pub(super) const VERB: Query =
    Query::new("verb", shapes::verb, "Only events about such a change of a resource.");
pub(super) const ABOUT: Query = Query::new(
    "about",
    shapes::about,
    "Only events about resources and fleets, or only those about the installation: tokens, sign-ins, settings.",
);
pub(super) const AFTER: Query = Query::new(
    "after",
    shapes::text,
    "The id of an event: the stream begins after it. By default with the next event that happens. The header \
     `Last-Event-ID`, which browsers send, comes first.",
);
pub(super) const ORDER: Query = Query::new(
    "order",
    shapes::order,
    "Whether the oldest or the newest events come first. Events that happen between two pages don't shift them.",
);
