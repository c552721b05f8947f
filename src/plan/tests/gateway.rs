//! The one Gateway of a fleet.

use super::*;
use crate::plan::Waiting;

#[test]
fn a_gateway_goes_to_another_class_only_when_a_person_says_so() {
    let mut lab = Lab::with(&["orders"]);
    lab.exposed("tlsroute".into(), json!({"class": "envoy"}));
    lab.settle();
    lab.exposed("tlsroute".into(), json!({"class": "istio"}));
    let plan = lab.plan();
    let fleet = change(&plan, "Fleet/acme/eu");
    let id = plan.fleets[0].guard.as_ref().unwrap().id.clone();
    let why = "clients outside of Kubernetes are cut off from every cluster of the fleet until the Gateway of the other class \
               has an address";
    assert_eq!(fleet.waiting, [Waiting::Approval { id: id.clone(), why: why.to_owned() }]);
    assert_eq!(
        fleet.effects,
        [
            "Gateway streamfleet-gateway/kafka goes from class envoy to istio: clients outside of Kubernetes are cut off from \
             every cluster of the fleet until it has an address from there and their host names lead to it"
        ]
    );
    lab.approve(&id);
    assert_eq!(running(&lab.plan()), ["acme/eu"]);
    lab.settle();

    // What somebody else changed is put back without asking.
    let gateway: ObjectKey = GATEWAY.to_owned().try_into().unwrap();
    let there = lab.target().objects.get_mut(&gateway).unwrap();
    there.unchanged = false;
    there.manifest.as_mut().unwrap().edit(|body| body["spec"]["gatewayClassName"] = "other".into());
    assert_eq!(running(&lab.plan()), ["acme/eu"]);
}
