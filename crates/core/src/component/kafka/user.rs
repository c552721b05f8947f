use serde_json::json;

use super::kinds::USER;
use super::{KafkaContext, endpoints, probe};
use crate::catalog::ResolvedCluster;
use crate::component::{Login, Manifest, labels, load_balancers, manifest};
use crate::spec::Reachability;

/// The name of the administrator, and of the Secret that Strimzi creates for its password.
pub fn admin_name(cluster: &ResolvedCluster) -> String {
    format!("{}-admin", cluster.spec.identifier)
}

/// The KafkaUser of the administrator. It is a super user, so it has no ACLs.
pub fn admin(context: &KafkaContext) -> Manifest {
    let metadata = labels::strimzi_metadata(context.cluster, admin_name(context.cluster));
    let spec = json!({"authentication": {"type": "scram-sha-512"}});
    manifest::untyped(context.cluster, &USER, &metadata, spec)
}

/// The name of the user as which Streamfleet connects to a cluster, and of the Secret that Strimzi creates for it.
pub fn probe_name(cluster: &str) -> String {
    format!("{cluster}-probe")
}

/// The KafkaUser as which Streamfleet connects by the public names, to see that clients can. `None` where it doesn't
/// connect, or can't log in: with an identity provider, only that provider knows users.
pub fn probe(context: &KafkaContext) -> Option<Manifest> {
    let cluster = context.cluster;
    let fleet = &cluster.fleet_spec;
    let connects = fleet.infra_type.capabilities().observes
        && fleet.advanced_config.reachability == Reachability::Probe
        && load_balancers::external_domain(cluster).is_some();
    let authentication = match endpoints::login(cluster) {
        Login::Scram => "scram-sha-512",
        Login::Mtls => "tls",
        Login::OAuth => return None,
    };
    let metadata = labels::strimzi_metadata(cluster, probe_name(context.name()));
    let spec = json!({
        "authentication": {"type": authentication},
        "authorization": {"type": "simple", "acls": [{
            "resource": {"type": "topic", "name": probe::TOPIC, "patternType": "literal"},
            "operations": probe::TOPIC_RIGHTS,
        }]},
    });
    connects.then(|| manifest::untyped(cluster, &USER, &metadata, spec))
}
