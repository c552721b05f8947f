use super::super::api::{ApplyError, Mode};
use super::super::{KubeError, write};
use super::*;
use crate::plan::Contest;

const COLLECTION: &str = "/apis/example.org/v1/namespaces/ns/things";

fn refused(code: u16, causes: &[(&str, &str, &str)]) -> (u16, Value) {
    let cause = |(reason, message, field): &(&str, &str, &str)| json!({"reason": reason, "message": message, "field": field});
    let details = json!({"causes": causes.iter().map(cause).collect::<Vec<_>>()});
    let status = json!({"kind": "Status", "status": "Failure", "code": code, "reason": "No", "message": "token: hunter2", "details": details});
    (code, status)
}

fn conflict(manager: &str, field: &str) -> (u16, Value) {
    let message = format!("conflict with \"{manager}\" using v1");
    refused(409, &[("FieldManagerConflict", &message, field), ("Another", "no conflict", ".spec")])
}

fn contests(contests: &[Contest]) -> Vec<String> {
    contests.iter().map(|contest| format!("{} {}", contest.manager, contest.field)).collect()
}

#[tokio::test(start_paused = true)]
async fn a_refused_apply_is_a_conflict_or_a_field_that_never_changes_only_by_the_servers_word() {
    let never = refused(422, &[("FieldValueInvalid", "field is immutable", "spec.a")]);
    let secret: ObjectKey = "v1|Secret|ns|a".to_owned().try_into().unwrap();
    for (key, answer, expected) in [
        (key(), conflict("kubectl-edit", ".spec.a"), "conflict: kubectl-edit .spec.a".to_owned()),
        (key(), refusal(409), "conflict: ".to_owned()),
        (key(), refusal(403), "cannot apply Thing ns/a: the server refused it with 403 No: no".to_owned()),
        (
            key(),
            refused(422, &[]),
            "cannot apply Thing ns/a: the server refused it with 422 No: token: hunter2".to_owned(),
        ),
        (
            key(),
            never.clone(),
            "immutable: cannot apply Thing ns/a: some of its fields are immutable".to_owned(),
        ),
        (secret, never, "immutable: cannot apply Secret ns/a: some of its fields are immutable".to_owned()),
    ] {
        let server = Server::new();
        let kinds = json!([{"name": "secrets", "kind": "Secret", "namespaced": true}]);
        let core = json!({"kind": "APIResourceList", "groupVersion": "v1", "resources": kinds});
        server.says("GET", "/api/v1", [(200, core)]);
        for path in [THING, "/api/v1/namespaces/ns/secrets/a"] {
            server.says("PATCH", path, [answer.clone()]);
        }
        let said = match server.api().apply(&key, &thing(""), Mode { force: false, dry: false }).await {
            Ok(_) => "applied".to_owned(),
            Err(ApplyError::Conflict(found)) => format!("conflict: {}", contests(&found).join(", ")),
            Err(ApplyError::Other(error @ KubeError::Immutable { .. })) => {
                // The server's message could quote a Secret.
                assert_eq!(error.to_string().contains("hunter2"), key.kind != "Secret", "{error}");
                let words = error.to_string();
                let end = words.find("are immutable").unwrap() + "are immutable".len();
                format!("immutable: {}", &words[..end])
            }
            Err(ApplyError::Other(error)) => error.to_string(),
        };
        assert_eq!(said, expected);
    }
}

#[tokio::test(start_paused = true)]
async fn fields_are_taken_back_from_people_and_left_to_controllers() {
    let body =
        || json!({"kind": "Thing", "metadata": {"name": "a", "namespace": "ns"}, "spec": {"a": 1, "b": 2}});
    let (person, controller) = (conflict("kubectl-edit", ".spec.a"), conflict("scaler", ".spec.b"));
    let done = (200, thing("ours"));
    type Case = (Vec<(u16, Value)>, Vec<(&'static str, Value)>, &'static str);
    let cases: [Case; 5] = [
        (vec![done.clone()], vec![("false", json!({"a": 1, "b": 2}))], "done, [] taken back, [] left"),
        (
            vec![person.clone(), done.clone()],
            vec![("false", json!({"a": 1, "b": 2})), ("true", json!({"a": 1, "b": 2}))],
            "done, [\"kubectl-edit .spec.a\"] taken back, [] left",
        ),
        (
            vec![controller.clone(), done.clone()],
            vec![("false", json!({"a": 1, "b": 2})), ("false", json!({"a": 1}))],
            "done, [] taken back, [\"scaler .spec.b\"] left",
        ),
        (
            vec![refusal(409)],
            vec![("false", json!({"a": 1, "b": 2}))],
            "the object with this name was replaced since the plan was made",
        ),
        // A field that was never sent can't be left out.
        (
            vec![conflict("scaler", ".spec.c")],
            vec![("false", json!({"a": 1, "b": 2}))],
            "scaler manages `.spec.c`",
        ),
    ];
    for (answers, sent, expected) in cases {
        let server = Server::new();
        server.says("PATCH", THING, answers);
        let said = match write::apply(&server.api(), &key(), body(), false).await {
            Ok(it) => {
                let (back, left) = (contests(&it.overwritten), contests(&it.left));
                format!("done, {back:?} taken back, {left:?} left")
            }
            Err(error) => error.to_string(),
        };
        assert!(said.contains(expected), "{said}, not: {expected}");
        let specs = server.bodies(&format!("PATCH {THING}")).into_iter().map(|mut body| body["spec"].take());
        let forced = server.queries(&format!("PATCH {THING}")).into_iter().map(|query| {
            let force = query.split('&').find_map(|part| part.strip_prefix("force=").map(str::to_owned));
            assert!(query.contains("fieldManager=streamfleet&fieldValidation=Strict"), "{query}");
            force.unwrap()
        });
        let found: Vec<_> = forced.zip(specs).collect();
        let sent: Vec<_> = sent.into_iter().map(|(force, spec)| (force.to_owned(), spec)).collect();
        assert_eq!(found, sent, "{expected}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_would_be_taken_though_another_of_its_name_is_there() {
    for (answer, expected) in [
        ((201, thing("new")), Ok(())),
        (refusal(409), Ok(())),
        (refusal(403), Err("cannot create Thing ns/a: the server refused it with 403 No: no".to_owned())),
    ] {
        let server = Server::new();
        server.says("POST", COLLECTION, [answer]);
        let said = server.api().would_create(&key(), &thing("")).await;
        assert_eq!(said.map_err(|error| error.to_string()), expected);
        let queries = server.queries(&format!("POST {COLLECTION}"));
        assert!(queries.len() == 1 && queries[0].contains("dryRun=All"), "{queries:?}");
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_whose_making_was_not_confirmed_is_looked_at_before_it_is_made_again() {
    let spec = |uid: &str, a: u32, b: Value| {
        let mut object = thing(uid);
        object["spec"] = json!({"a": a, "b": b, "more": true});
        object
    };
    let ours = (200, spec("there", 1, Value::Null));
    let theirs = (200, spec("there", 2, Value::Null));
    let (failed, gone, taken, made) = (refusal(500), refusal(404), refusal(409), (201, thing("made")));
    for (posts, gets, expected, tries) in [
        (vec![made.clone()], vec![gone.clone()], "made", 1),
        (vec![taken.clone()], vec![ours.clone()], "none", 1),
        (
            vec![refusal(403)],
            vec![ours.clone()],
            "cannot create Thing ns/a: the server refused it with 403 No: no",
            1,
        ),
        (vec![failed.clone(), made.clone()], vec![ours.clone()], "there", 1),
        (vec![failed.clone(), made.clone()], vec![gone.clone()], "made", 2),
        (vec![failed.clone(), made.clone()], vec![theirs.clone()], "made", 2),
        (vec![failed.clone(), taken.clone()], vec![gone.clone(), ours], "there", 2),
        (vec![failed.clone(), taken], vec![gone.clone(), theirs], "none", 2),
        (
            vec![failed.clone()],
            vec![gone],
            "cannot create Thing ns/a: the server refused it with 500 No: no",
            2,
        ),
        (
            vec![failed],
            vec![refusal(403)],
            "cannot create Thing ns/a: the server refused it with 500 No: no",
            1,
        ),
    ] {
        let server = Server::new();
        server.says("POST", COLLECTION, posts);
        server.says("GET", THING, gets);
        let sent = json!({"kind": "Thing", "spec": {"a": 1, "b": null}, "resourceVersion": "1"});
        let said = match server.api().create(&key(), &sent).await {
            Ok(made) => {
                made.map_or("none".to_owned(), |made| made["metadata"]["uid"].as_str().unwrap().to_owned())
            }
            Err(error) => error.to_string(),
        };
        assert_eq!((said.as_str(), server.count(&format!("POST {COLLECTION}"))), (expected, tries));
    }
}

#[tokio::test(start_paused = true)]
async fn an_object_is_gone_only_by_the_servers_word() {
    let leaving = || {
        let mut object = thing("ours");
        object["status"] = "Success".into();
        (200, object)
    };
    let success = || (200, json!({"kind": "Status", "status": "Success"}));
    for (answer, expected) in [
        (success(), Ok(true)),
        (refusal(404), Ok(true)),
        (leaving(), Ok(false)),
        (refusal(409), Ok(false)),
        (refusal(403), Err("cannot delete Thing ns/a: the server refused it with 403 No: no".to_owned())),
        (
            (200, json!({"kind": "Status", "status": "Failure"})),
            Err("cannot delete Thing ns/a: the answer doesn't match the request".to_owned()),
        ),
    ] {
        let server = Server::new();
        server.says("DELETE", THING, [answer]);
        let said = server.api().delete(&key(), "ours").await.map_err(|error| error.to_string());
        assert_eq!(said, expected);
    }
}
