//! Tests of the table of routes as a whole.

use std::collections::BTreeSet;

use super::*;

#[test]
fn every_route_has_a_name_and_a_place_of_its_own() {
    let ids: BTreeSet<&str> = ROUTES.iter().map(|route| route.id).collect();
    let places: BTreeSet<(Method, &str)> = ROUTES.iter().map(|route| (route.method, route.path)).collect();
    assert_eq!((ids.len(), places.len()), (ROUTES.len(), ROUTES.len()));
    assert!(ids.iter().all(|id| id.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')), "{ids:?}");
}

#[test]
fn a_route_that_changes_something_needs_more_than_to_look() {
    for route in ROUTES {
        // Any token may create a lesser one.
        let is_of_tokens = ["/v1/tokens", "/v1/sessions"].iter().any(|path| route.path.starts_with(path));
        let is_question = route.id == "fit_cluster";
        let needs_less = route.needs <= RequiredAccess::Read;
        let changes_nothing = route.method == Method::Get || is_of_tokens || is_question;
        assert_eq!(changes_nothing, needs_less, "{}", route.id);
        assert_eq!(route.takes.is_some(), route.method != Method::Get && takes_a_body(route), "{}", route.id);
        assert!(!route.gives.is_empty() && route.gives.iter().all(|(status, _)| (200..300).contains(status)));
    }
}

#[test]
fn a_route_waits_where_those_wait_who_ask_for_the_like() {
    for route in ROUTES {
        let changes = route.kind().is_some() && route.method != Method::Get;
        assert_eq!(route.queue == QueueKind::Turn, changes, "{}", route.id);
        assert_eq!(route.queue == QueueKind::Open, route.needs == RequiredAccess::Nobody, "{}", route.id);
        let revokes = matches!(route.id, "revoke_token" | "end_session");
        assert_eq!(route.queue == QueueKind::Revoking, revokes);
        assert_eq!(route.queue == QueueKind::Approval, route.id == "approve_plan");
        let observes = matches!(route.id, "explain_cluster" | "check_kubernetes_cluster")
            || ["/logs", "/metrics"].iter().any(|end| route.path.ends_with(end));
        assert_eq!(route.queue == QueueKind::Observation, observes);
        assert!(route.kind().is_none_or(|kind| route.doing.ends_with(&format!(" {}s", kind.noun()))));
    }
}

fn takes_a_body(route: &Route) -> bool {
    !matches!(route.id, "approve_plan") && route.method != Method::Delete
}

#[test]
fn every_kind_has_its_routes() {
    // Some kinds have more to read.
    let more = ["/certificates", "/cost", "/logs", "/members", "/metrics"];
    let is_more = |route: &&Route| more.iter().any(|end| route.path.ends_with(end));
    for kind in Kind::ALL {
        let of_kind = ROUTES.iter().filter(|route| route.kind() == Some(kind) && !is_more(route));
        assert_eq!(of_kind.count(), 8, "{kind}");
    }
}
