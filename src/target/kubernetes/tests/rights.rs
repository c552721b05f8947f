//! Granting ourselves access to Secrets, with servers that don't cooperate.

use std::time::Duration;

use futures_util::future::join_all;
use tokio::time::{Instant, sleep};

use super::super::retry::CALL_TIMEOUT;
use super::*;

const NAMESPACE: &str = "/api/v1/namespaces/kafka-acme--orders";
const SECRET: &str = "/api/v1/namespaces/kafka-acme--orders/secrets/a";
const REVIEWS: &str = "/apis/authentication.k8s.io/v1/selfsubjectreviews";
const BINDINGS: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/kafka-acme--orders/rolebindings";

/// Anything that needs no waiting takes less.
const NOTHING: Duration = Duration::from_secs(1);

/// How long the code waits for a RoleBinding to take effect.
const TAKES_EFFECT: Duration = Duration::from_secs(5);

/// A server that refuses a Secret in one of our namespaces, although the RoleBinding that allows to read it
/// exists.
fn server() -> Server {
    let server = Server::new();
    let kinds = json!([{"name": "secrets", "kind": "Secret", "namespaced": true}]);
    let core = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds});
    server.says("GET", "/api/v1", [(200, core)]);
    let (code, mut refused) = refusal(403);
    refused["message"] = "secrets \"a\" is forbidden: User \"streamfleet\" cannot get it".into();
    server.says("GET", SECRET, [(code, refused)]);
    let mut ours = namespace("kafka-acme--orders");
    ours["metadata"]["labels"] = json!({"app.kubernetes.io/managed-by": "streamfleet"});
    server.says("GET", NAMESPACE, [(200, ours)]);
    let user = json!({"kind": "SelfSubjectReview", "status": {"userInfo": {"username": "streamfleet"}}});
    server.says("POST", REVIEWS, [(201, user)]);
    server.says("POST", BINDINGS, [refusal(409)]);
    server
}

async fn refused_after(api: &Api) -> Duration {
    let began = Instant::now();
    let secret: ObjectKey = "v1|Secret|kafka-acme--orders|a".to_owned().try_into().unwrap();
    let error = api.get(&secret).await.unwrap_err();
    assert!(error.is_code(403), "{error}");
    began.elapsed()
}

#[tokio::test(start_paused = true)]
async fn a_server_that_never_answers_about_a_namespace_is_waited_for_once() {
    for (method, path) in [("GET", NAMESPACE), ("POST", REVIEWS), ("POST", BINDINGS)] {
        let server = server();
        server.says(method, path, [(0, Value::Null)]);
        let api = server.api();
        // Concurrent reads don't wait for each other's grants in turn.
        for took in join_all((0..20).map(|_| refused_after(&api))).await {
            assert!(took < CALL_TIMEOUT + NOTHING, "{path}: {took:?}");
        }
        assert!(refused_after(&api).await < NOTHING, "{path}");
        sleep(Duration::from_secs(60)).await;
        assert!(refused_after(&api).await >= CALL_TIMEOUT, "{path}: somebody may have mended it");
    }
}

#[tokio::test(start_paused = true)]
async fn rights_that_do_not_help_are_waited_for_once() {
    let server = server();
    let api = server.api();
    for asked in 1..=2 {
        let took = refused_after(&api).await;
        assert!((TAKES_EFFECT..TAKES_EFFECT + NOTHING).contains(&took), "{took:?}");
        assert!(refused_after(&api).await < NOTHING);
        assert_eq!(server.count(&format!("POST {BINDINGS}")), asked);
        sleep(Duration::from_secs(60)).await;
    }
}
