use std::collections::BTreeSet;

use axum::routing::{get, post};
use http_body_util::BodyExt as _;
use serde_json::{Value, json};
use tower::ServiceExt as _;

use super::*;

async fn asked(routes: Router, method: &str, path: &str) -> (Response<()>, Value) {
    let request = Request::builder().method(method).uri(path).body(Body::empty()).unwrap();
    let response = identified(routes, "").oneshot(request).await.unwrap();
    let (parts, body) = response.into_parts();
    let bytes = body.collect().await.unwrap().to_bytes();
    (Response::from_parts(parts, ()), serde_json::from_slice(&bytes).unwrap_or_default())
}

fn header<'r>(response: &'r Response<()>, name: &str) -> &'r str {
    response.headers().get(name).map_or("", |value| value.to_str().unwrap())
}

#[tokio::test]
async fn a_problem_says_what_is_wrong_and_which_request_it_was() {
    let refuse = || async {
        let error = FieldError {
            pointer: Some("/kafka_units".to_owned()),
            detail: "and must be from 1 to 256".to_owned(),
            ..FieldError::default()
        };
        ProblemDocument::invalid("the cluster is not right", vec![error])
    };
    let (response, document) = asked(Router::new().route("/a", get(refuse)), "GET", "/a").await;
    let id = header(&response, "x-request-id").to_owned();
    assert_eq!(id.parse::<Uuid>().unwrap().get_version_num(), 7);
    assert_eq!(response.status(), 422);
    assert_eq!(header(&response, "content-type"), PROBLEM);
    let expected = json!({
        "type": "/v1/errors#invalid",
        "title": "The request is well-formed, but its content is invalid.",
        "status": 422,
        "code": "invalid",
        "detail": "the cluster is not right",
        "errors": [{
            "pointer": "/kafka_units", "detail": "and must be from 1 to 256", "hint": null, "file": null, "line": null,
        }],
        "request_id": id,
    });
    assert_eq!(document, expected);
}

#[tokio::test]
async fn what_a_problem_says_in_headers() {
    let of = |problem: ProblemDocument| async move {
        let (response, _) = asked(Router::new().route("/a", get(|| async { problem })), "GET", "/a").await;
        response
    };
    let pause = Duration::from_millis(1500);
    assert_eq!(
        header(&of(ProblemDocument::new(&code::UNAUTHENTICATED, "x")).await, "www-authenticate"),
        "Bearer"
    );
    assert_eq!(header(&of(ProblemDocument::too_many("x", pause)).await, "retry-after"), "2");
    assert_eq!(header(&of(ProblemDocument::unavailable("x", Duration::ZERO)).await, "retry-after"), "1");
    assert_eq!(header(&of(ProblemDocument::method_not_allowed("GET")).await, "allow"), "GET");
}

#[tokio::test]
async fn whoever_refuses_it_is_a_problem_and_probes_keep_their_words() {
    let dies = || async {
        if true {
            panic!("hunter2")
        }
    };
    let routes = || {
        Router::new()
            .route("/posts", post(|| async { "made" }))
            .route("/dies", get(dies))
            .route("/teapot", get(|| async { (StatusCode::IM_A_TEAPOT, "short and stout") }))
            .route(
                "/probe",
                get(|| async { (StatusCode::SERVICE_UNAVAILABLE, axum::Extension(Plain), "no\n") }),
            )
    };
    for (method, path, status, code, detail) in [
        ("GET", "/nowhere", 404, "not_found", "there is nothing at this path"),
        ("GET", "/posts", 405, "method_not_allowed", "this method is not allowed here"),
        ("GET", "/dies", 500, "internal", "internal error: the request was aborted"),
        ("GET", "/teapot", 418, "malformed", "the requested form of the answer isn't supported"),
    ] {
        let (response, document) = asked(routes(), method, path).await;
        assert_eq!(response.status(), status, "{path}");
        assert_eq!(document["status"], status, "{path}");
        assert_eq!((&document["code"], &document["detail"]), (&json!(code), &json!(detail)), "{path}");
        assert_eq!(document["request_id"], header(&response, "x-request-id"), "{path}");
    }
    let (response, _) = asked(routes(), "GET", "/posts").await;
    assert_eq!(header(&response, "allow"), "POST");
    let (response, document) = asked(routes(), "GET", "/probe").await;
    assert_eq!((response.status().as_u16(), document), (503, Value::Null));
    let (response, _) = asked(routes(), "POST", "/posts").await;
    assert_eq!(response.status(), 200);
}

#[test]
fn every_word_is_there_once_and_by_its_status() {
    let words: BTreeSet<&str> = code::ALL.iter().map(|code| code.word).collect();
    assert_eq!(words.len(), code::ALL.len());
    assert!(code::ALL.is_sorted_by_key(|code| code.status));
    for code in code::ALL {
        assert!(code.title.ends_with('.') && code.next.ends_with('.'), "{}", code.word);
        assert_eq!(code.status(), code.status, "{}", code.word);
    }
    assert_eq!(code::of(StatusCode::CONFLICT), &code::DUPLICATE);
    assert_eq!(code::of(StatusCode::BAD_GATEWAY), &code::INTERNAL);
}

#[test]
fn a_mistake_in_a_file_is_told_with_its_place() {
    let location =
        crate::problem::Location { line: 3, ..crate::problem::Location::file("a.yaml".parse().unwrap()) };
    let error = FieldError::from(&Mistake::error("x", "it is wrong").at(location, "").hint("mend it"));
    let expected = FieldError {
        pointer: None,
        detail: "it is wrong".to_owned(),
        hint: Some("mend it".to_owned()),
        file: Some("a.yaml".to_owned()),
        line: Some(3),
    };
    assert_eq!(error, expected);
}
