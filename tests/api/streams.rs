//! Streams of events.

use std::io::{BufRead as _, BufReader, Write as _};
use std::net::TcpStream;
use std::time::Duration;

use serde_json::{Value, json};

use super::exchanges::cluster;
use super::{Api, ROOT, new_token};
use crate::support::Tree;

/// A stream that is read line by line.
struct Stream(BufReader<TcpStream>);

impl Stream {
    fn open(api: &Api<'_>, token: &str, query: &str, last: Option<&str>) -> Stream {
        let stream = TcpStream::connect(&api.address).unwrap();
        stream.set_read_timeout(Some(Duration::from_secs(60))).unwrap();
        let last = last.map(|id| format!("Last-Event-ID: {id}\r\n")).unwrap_or_default();
        let head = format!(
            "GET /v1/events/stream{query} HTTP/1.1\r\nHost: h\r\nAuthorization: Bearer {token}\r\n{last}\r\n"
        );
        (&stream).write_all(head.as_bytes()).unwrap();
        let mut stream = Stream(BufReader::new(stream));
        let mut head = String::new();
        while let Some(line) = stream.line().filter(|line| !line.is_empty()) {
            head += &format!("{}\n", line.to_ascii_lowercase());
        }
        assert!(head.starts_with("http/1.1 200 "), "{head}");
        for header in ["content-type: text/event-stream", "cache-control: no-store", "x-accel-buffering: no"]
        {
            assert!(head.contains(header), "{head}");
        }
        stream
    }

    /// The next line; none at the end.
    fn line(&mut self) -> Option<String> {
        let mut line = String::new();
        let read = self.0.read_line(&mut line).unwrap();
        (read > 0).then(|| line.trim_end().to_owned())
    }

    /// The next event with its id; none at the end.
    fn event(&mut self) -> Option<(String, Value)> {
        let mut id = None;
        loop {
            let line = self.line()?;
            if let Some(given) = line.strip_prefix("id: ") {
                id = Some(given.to_owned());
            }
            if let Some(data) = line.strip_prefix("data: ") {
                let event: Value = serde_json::from_str(data).unwrap();
                assert_eq!(event["id"].as_str(), id.as_deref());
                return Some((id?, event));
            }
        }
    }

    /// The ids of the events until one about a resource, with that event.
    fn until(&mut self, resource: &str) -> (Vec<String>, Value) {
        let mut ids = Vec::new();
        loop {
            let (id, event) = self.event().expect("the stream goes on");
            ids.push(id);
            if event["resource"] == resource {
                return (ids, event);
            }
        }
    }
}

fn create(api: &Api<'_>, name: &str) {
    let mut one = cluster();
    one["identifier"] = json!(name);
    api.call("POST /v1/clusters", one).expect(201);
}

/// The ids of the last 200 events, the oldest first.
fn event_ids(api: &Api<'_>) -> Vec<String> {
    let page = api.get("/v1/events?order=desc&page_size=200").expect(200).body;
    let items = page["items"].as_array().unwrap();
    items.iter().rev().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
}

#[test]
fn a_stream_has_each_event_once_and_is_resumed_where_it_was_left() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let mut first = Stream::open(&api, &api.token, "", None);
    create(&api, "mike");
    let (mut ids, event) = first.until("Cluster/acme/mike");
    assert_eq!(event["actor"].as_str().map(|actor| actor.starts_with(ROOT)), Some(true), "{event:#}");
    drop(first);
    // What happens meanwhile is not lost.
    create(&api, "november");
    let mut second = Stream::open(&api, &api.token, "", ids.last().map(String::as_str));
    ids.extend(second.until("Cluster/acme/november").0);
    create(&api, "oscar");
    ids.extend(second.until("Cluster/acme/oscar").0);
    let listed = event_ids(&api);
    let begin = listed.iter().position(|id| *id == ids[0]).unwrap();
    assert_eq!(listed[begin..begin + ids.len()], ids);
    // The query does the same as the header, for the first stream of a page.
    let mut third = Stream::open(&api, &api.token, &format!("?after={}", ids[0]), None);
    assert_eq!(third.event().unwrap().0, ids[1]);
    api.get("/v1/events/stream?after=x").refused(
        400,
        "malformed",
        "`Last-Event-ID`, or `after`, is not the id of an event",
    );
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_stream_has_what_its_caller_may_see_and_ends_with_the_token() {
    let tree = Tree::example("quickstart");
    let other = "apiVersion: streamfleet/v1\nkind: Organization\nidentifier: hotel\nquotas: {fleets: 1}\n\
                 members:\n  - {email: h@x.example, role: admin}\n";
    tree.write("hotel.yaml", other);
    let api = Api::start(&tree);
    api.settle();
    let [acme, hotel] = [("platform@acme.example.com", "acme"), ("h@x.example", "hotel")]
        .map(|(owner, organization)| new_token(&tree, owner, organization, "read"));
    let (mut of_acme, mut of_hotel) =
        (Stream::open(&api, &acme, "", None), Stream::open(&api, &hotel, "", None));
    create(&api, "mike");
    let (_, event) = of_acme.until("Cluster/acme/mike");
    assert_eq!(event["actor"], "a super user");
    api.call("PATCH /organizations/hotel", json!({"display_name": "Hotel"})).expect(200);
    let (ids, _) = of_hotel.until("Organization/hotel/hotel");
    assert_eq!(ids.len(), 1, "nothing of acme came before");
    // A member of nothing any more sees nothing more.
    api.call("PATCH /organizations/hotel", json!({"members": [{"email": "i@x.example", "role": "admin"}]}))
        .expect(200);
    let before = event_ids(&api);
    api.call("PATCH /organizations/hotel", json!({"display_name": "Inn"})).expect(200);
    let tokens = api.get("/v1/tokens?page_size=200").expect(200).body;
    for owner in ["platform@acme.example.com", "h@x.example"] {
        let token = tokens["items"].as_array().unwrap().iter().find(|token| token["owner"] == owner).unwrap();
        api.call(&format!("DELETE /v1/tokens/{}", token["id"].as_str().unwrap()), Value::Null).expect(204);
    }
    create(&api, "november");
    let seen: Vec<Value> = std::iter::from_fn(|| of_acme.event()).map(|(_, event)| event).collect();
    assert!(!seen.iter().any(|event| event["resource"] == "Cluster/acme/november"), "{seen:#?}");
    // What was decided before may still have had its outcome told.
    let late: Vec<_> =
        std::iter::from_fn(|| of_hotel.event()).filter(|(id, _)| !before.contains(id)).collect();
    assert!(late.is_empty(), "{late:#?}");
    assert_eq!(api.serve.stop(), Some(0));
}
