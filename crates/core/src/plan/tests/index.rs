use serde_json::json;

use super::*;
use crate::plan::Index;

#[test]
fn everything_is_found_and_nothing_else() {
    let mut lab = Lab::new();
    lab.domain("hmac:0011223344556677");
    lab.fleet("ap", &["a", "z"]);
    lab.fleet("us", &["b"]);
    lab.cluster("orders", json!({}));
    let plan = lab.plan();
    let index = Index::of(&plan);
    assert_eq!((plan.changes().count(), plan.fleets.len()), (9, 3));
    for change in plan.changes() {
        assert_eq!(index.change(&plan, &change.resource), Some(change));
    }
    for fleet in &plan.fleets {
        assert_eq!(index.fleet(&plan, &fleet.fleet), Some(fleet));
    }
    assert_eq!(index.change(&plan, &key("Cluster/acme/nothing")), None);
    assert_eq!(index.fleet(&plan, &fleet_of("nowhere")), None);
}
