use std::sync::atomic::{AtomicUsize, Ordering};

use futures_util::StreamExt as _;
use tokio::time::Instant;

use super::*;

const LIST: &str = "cannot list objects of kind Thing";

/// A server with one kind. `answer` returns the response to each list of it, by the number of the call.
fn server(answer: impl Fn(usize) -> String + Send + Sync + 'static) -> (Arc<Api>, Arc<AtomicUsize>) {
    let (lists, answer) = (Arc::new(AtomicUsize::new(0)), Arc::new(answer));
    let counted = Arc::clone(&lists);
    let service = tower::service_fn(move |request: Request<Body>| {
        let body = match request.uri().path() {
            "/apis/example.org/v1" => json!({"kind": "APIResourceList", "groupVersion": "example.org/v1",
                "resources": [{"name": "things", "kind": "Thing", "namespaced": true}]})
            .to_string(),
            "/api/v1" => json!({"kind": "APIResourceList", "groupVersion": "v1",
                "resources": [{"name": "configmaps", "kind": "ConfigMap", "namespaced": true}]})
            .to_string(),
            THINGS => answer(counted.fetch_add(1, Ordering::SeqCst)),
            MAPS => list("ConfigMap", Vec::new()).to_string(),
            _ => namespace("kube-system").to_string(),
        };
        async move { Ok::<_, kube::Error>(Response::new(Full::<Bytes>::from(body))) }
    });
    (Arc::new(Api::new(Client::new(service, "default"))), lists)
}

fn page(items: &str, next: &str) -> String {
    format!(
        r#"{{"kind":"ThingList","metadata":{{"resourceVersion":"1","continue":"{next}"}},"items":[{items}]}}"#
    )
}

async fn failure(api: &Api) -> String {
    let nothing = |_| None::<Value>;
    api.list(THING_KIND, None, "", nothing).await.map(|kept| kept.len()).unwrap_err().to_string()
}

#[tokio::test(start_paused = true)]
async fn a_list_without_end_is_not_read_to_its_end() {
    let items = vec![r#"{"metadata":{"name":"a"}}"#; 500].join(",");
    let (api, lists) = server(move |call| page(&items, &format!("next-{call}")));
    let too_much = "the server sends more than the limit for a fleet";
    assert_eq!(failure(&api).await, format!("{LIST}: {too_much}: one list has more than 150000 objects"));
    assert_eq!(lists.load(Ordering::SeqCst), 301);

    let (api, lists) = server(|call| page("", &format!("next-{call}")));
    assert_eq!(failure(&api).await, format!("{LIST}: {too_much}: one list has more than 1000 pages"));
    assert_eq!(lists.load(Ordering::SeqCst), 1_001);

    let (api, lists) = server(|_| page("", "same"));
    let same = "the server repeats the same `continue`, so the list never ends";
    assert_eq!(failure(&api).await, format!("{LIST}: {same}"));
    assert_eq!(lists.load(Ordering::SeqCst), 2);
}

#[tokio::test(start_paused = true)]
async fn an_object_that_is_none_ends_the_list() {
    let long = "the server sends more than the limit for a fleet: a part of the answer is longer than 4096 KiB, the limit";
    let misnamed = "an object in the answer has an invalid name";
    let metadata = |metadata: Value| json!({"metadata": metadata}).to_string();
    for (item, expected) in [
        (format!("[{}0]", "0,".repeat(4 << 20)), long),
        (format!("[{}0]", "0,".repeat(1 << 20)), long),
        (metadata(json!({"name": "a".repeat(20 << 20)})), long),
        (metadata(json!({"name": "a".repeat(254)})), misnamed),
        (metadata(json!({"name": "a\u{1b}[2J"})), misnamed),
        (metadata(json!({"name": "a", "uid": "u".repeat(129)})), misnamed),
    ] {
        let (api, lists) = server(move |_| page(&item, ""));
        assert_eq!(failure(&api).await, format!("{LIST}: {expected}"));
        assert_eq!(lists.load(Ordering::SeqCst), 1, "it is not asked for again");
    }
}

/// An empty list would mean that everything is gone.
#[tokio::test(start_paused = true)]
async fn a_list_whose_objects_stand_under_another_name_is_not_an_empty_one() {
    for items in [r"\u0069tems", r"item\u0073"] {
        let (api, _) = server(move |_| page(r#"{"metadata":{"name":"a"}}"#, "").replace("items", items));
        assert_eq!(failure(&api).await, format!("{LIST}: the answer doesn't match the request"));
    }
}

#[tokio::test(start_paused = true)]
async fn a_kind_beyond_all_that_are_read_does_not_count_as_gone() {
    let server = Server::new();
    let kind =
        |it: usize| json!({"name": format!("things{it}"), "kind": format!("Thing{it}"), "namespaced": true});
    let kinds: Vec<Value> = (0..=2_000).map(kind).collect();
    let kinds = json!({"kind": "APIResourceList", "groupVersion": "example.org/v1", "resources": kinds});
    server.says("GET", "/apis/example.org/v1", [(200, kinds)]);
    let error =
        server.api().is_served(KindRef { kind: "Thing2000", ..THING_KIND }).await.unwrap_err().to_string();
    let expected = "cannot list the kinds of example.org/v1: the server sends more than the limit for a fleet: \
                    example.org/v1 has more than 2000 kinds";
    assert_eq!(error, expected);
}

#[tokio::test(start_paused = true)]
async fn what_is_kept_of_a_cluster_is_bounded() {
    let item = metadata_of(3 << 20);
    let items = vec![item; 20].join(",");
    let (api, lists) = server(move |call| page(&items, &format!("next-{call}")));
    let listed = api.list(THING_KIND, None, "", Some).await;
    let expected =
        "the server sends more than the limit for a fleet: keeping it would take more than 176 MiB";
    assert_eq!(listed.unwrap_err().to_string(), format!("{LIST}: {expected}"));
    assert_eq!(lists.load(Ordering::SeqCst), 3);
    // The budget is free again after the failure.
    assert!(api.list(KindRef::core("ConfigMap"), Some("streamfleet-system"), "", Some).await.is_ok());
}

fn metadata_of(length: usize) -> String {
    json!({"metadata": {"name": "a", "annotations": {"a": "a".repeat(length)}}}).to_string()
}

#[tokio::test(start_paused = true)]
async fn a_fleet_of_which_there_is_too_much_is_out_of_reach_with_the_reason() {
    let (api, lists) = server(|call| page("", &format!("next-{call}")));
    let whose = (fleet(), Uuid::nil());
    let view = ClusterWatch::start(
        whose,
        cluster(Some("uid-kube-system")),
        Arc::clone(&api),
        Handle::current(),
        Arc::default(),
    );
    // The outcome is either the list's error or an incomplete list.
    let _ = view.follow_kinds([&key()]).await;
    let reason = "cannot list objects of kind Thing: the server sends more than the limit for a fleet: one list has more \
                  than 1000 pages";
    let mut error = String::new();
    for _ in 0..1_000 {
        error = view.is_complete().await.err().map(|error| error.to_string()).unwrap_or_default();
        if error == reason {
            break;
        }
        tokio::time::sleep(std::time::Duration::from_millis(100)).await;
    }
    assert_eq!((error.as_str(), view.revision()), (reason, None));
    let asked = lists.load(Ordering::SeqCst);
    assert!((1_001..2_002).contains(&asked), "it is left alone for a while, and was asked {asked} times");
}

const WATCHED: &str = "/apis/example.org/v1/things?";

async fn first_event(answer: String) -> Result<Value, String> {
    let (api, _) = server(move |_| answer.clone());
    let mut events = api.watch("Thing", WATCHED, "1", 10).await.unwrap();
    let event = events.next().await.unwrap();
    event.map(|(_, object)| object).map_err(|error| error.to_string())
}

#[tokio::test(start_paused = true)]
async fn events_and_pages_without_end_are_read_at_a_bounded_rate() {
    let event = r#"{"type":"MODIFIED","object":{"metadata":{"name":"a"}}}"#;
    let (api, _) = server(move |call| match call {
        0 => format!("{event}\n").repeat(20_000),
        1 => page("", "next") + &" ".repeat(1600 << 10),
        _ => page("", ""),
    });
    let (began, mut number) = (Instant::now(), 0);
    let mut events = api.watch("Thing", WATCHED, "1", 10).await.unwrap();
    while let Some(event) = events.next().await {
        event.unwrap();
        number += 1;
    }
    // 16,384 of them in a burst, and then 1,024 a second.
    assert_eq!((number, began.elapsed().as_secs()), (20_000, 3));
    // The same budget: 16 MiB a second.
    let began = Instant::now();
    api.list(THING_KIND, None, "", |_| None::<Value>).await.unwrap();
    let milliseconds = began.elapsed().as_millis();
    assert!((80..120).contains(&milliseconds), "{milliseconds}");
}

#[tokio::test(start_paused = true)]
async fn an_event_without_end_is_not_read_to_its_end() {
    assert_eq!(
        first_event("a".repeat(6 << 20)).await.unwrap_err(),
        "cannot watch objects of kind Thing: the server sends more than the limit for a fleet: a part of the answer is \
         longer than 4096 KiB, the limit"
    );
}

#[tokio::test(start_paused = true)]
async fn the_words_of_an_event_are_short_lines() {
    let object = |message: &str| json!({"metadata": {"name": "a"}, "message": message});
    let event = json!({"type": "ADDED", "object": object("\u{1b}[2J\r\nred\u{202e}")});
    assert_eq!(first_event(format!("{event}\n")).await, Ok(object("\\u{1b}[2J red\\u{202e}")));
}

/// A process that watched the Secrets of a cluster would hold all of them.
#[tokio::test(start_paused = true)]
async fn of_secrets_nothing_but_metadata_is_listed_or_watched() {
    let accepted: Arc<Mutex<Vec<String>>> = Arc::default();
    let heard = Arc::clone(&accepted);
    let service = tower::service_fn(move |request: Request<Body>| {
        locked(&heard).push(request.headers()["accept"].to_str().unwrap().to_owned());
        async move { Ok::<_, kube::Error>(Response::new(Full::<Bytes>::default())) }
    });
    let api = Api::new(Client::new(service, "default"));
    for kind in ["Pod", "Secret"] {
        // The answer is none, and only the request matters.
        drop(api.pages(kind, "/api/v1/things?", |_| None::<((), usize)>, || false).await);
        drop(api.watch(kind, "/api/v1/things?", "1", 10).await.unwrap());
    }
    let metadata = |form: &str| format!("application/json;as={form};g=meta.k8s.io;v=v1");
    let mut accepted = std::mem::take(&mut *locked(&accepted));
    accepted.dedup();
    let whole = "application/json".to_owned();
    assert_eq!(accepted, [whole, metadata("PartialObjectMetadataList"), metadata("PartialObjectMetadata")]);
}
