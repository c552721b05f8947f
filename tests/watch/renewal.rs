//! A base domain's certificate is renewed under `serve`: one cluster after another, each once the one before
//! presents it.

use super::SERVE;
use super::health::{SimulatedOperator, nothing_runs_yet, operator, two_clusters};
use crate::interrupted::{certificate, replace_certificate};
use crate::kubernetes::FLEET;
use crate::support::Tree;
use crate::support::control_plane::ControlPlane;
use crate::support::serve::Serve;

/// The chain in PEM that a cluster's Secret has.
pub fn held(plane: &ControlPlane, cluster: &str) -> String {
    let secret = format!(
        "get secret {cluster}-tls --namespace=kafka-acme--{cluster} --output=jsonpath={{.data.tls\\.crt}}"
    );
    let data = plane.kubectl(&secret, "").expect(0).out;
    let bytes = base64::Engine::decode(&base64::engine::general_purpose::STANDARD, data).unwrap();
    String::from_utf8(bytes).unwrap()
}

/// Makes both reachable from outside. Nothing answers there.
pub fn exposed(tree: &Tree) {
    tree.edit(FLEET, "advanced_config:\n", "advanced_config:\n  reachability: none\n");
    for cluster in ["dev", "web"] {
        let spec = format!("acme/clusters/{cluster}.yaml");
        tree.edit(&spec, "cluster_access: Internal", "cluster_access: External");
    }
}

#[test]
fn a_renewed_certificate_reaches_the_next_cluster_when_the_one_before_shows_it() {
    let plane = ControlPlane::lease();
    let tree = two_clusters(&plane);
    exposed(&tree);
    let before = certificate(&tree);
    let (serve, cast) = (Serve::start(&tree, SERVE), SimulatedOperator::on(&plane));
    nothing_runs_yet(&serve);
    cast.make(&operator());
    for cluster in ["dev", "web"] {
        cast.play("broker-pod-killed", cluster);
        cast.show(cluster, &before);
        serve.says(&[" is ", &format!("cluster acme/{cluster}"), "to=Healthy"]);
    }

    replace_certificate(&tree);
    let after = certificate(&tree);
    assert_ne!(before, after);
    serve.says(&["cluster acme/web", "waiting: ", "one disruption at a time; cluster acme/dev is first"]);
    serve.says(&[" is ", "cluster acme/dev", "to=Updating", "doesn't use the new certificate yet"]);
    // Strimzi notices a Secret late, and until then the cluster's status stays unchanged.
    assert_eq!((held(&plane, "dev"), held(&plane, "web")), (after.clone(), before));
    cast.show("dev", &after);
    serve.says(&[" is ", "cluster acme/dev", "from=Updating", "to=Healthy"]);
    serve.until("the next one has it", || (held(&plane, "web") == after).then_some(()));
    serve.says(&[" is ", "cluster acme/web", "to=Updating", "doesn't use the new certificate yet"]);
    cast.show("web", &after);
    serve.says(&[" is ", "cluster acme/web", "from=Updating", "to=Healthy"]);
    assert_eq!(serve.stop(), Some(0));
}
