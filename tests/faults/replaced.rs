//! Objects of others that replace ours between a plan and its execution.

use std::collections::BTreeMap;
use std::sync::Arc;

use serde_json::{Value, json};

use super::objects;
use super::stage::{APPLY, Phase, Stage};
use crate::support::control_plane::ControlPlane;
use crate::support::proxy::{Fault, Rule, Side};

const OWN: &str = "/namespaces/streamfleet-system/";

/// Each object to delete is replaced just before the deletion reaches the server: the replacement stays.
#[test]
fn an_object_that_took_the_place_of_one_that_goes_stays() {
    let stage = Stage::on(Arc::new(ControlPlane::lease()));
    let (_, calls) = stage.undisturbed(Phase::Delete);
    let deletions = calls.iter().filter_map(|call| call.text.strip_prefix("DELETE "));
    let deletions: Vec<&str> = deletions.filter(|path| !path.contains(OWN)).collect();
    assert!(deletions.len() > 3, "{calls:#?}");
    for path in deletions {
        stage.begin(Phase::Delete);
        // Rules take static strings, so the path is leaked.
        let rule = Rule::always(Fault::Hold(Side::Before)).on("DELETE", String::leak(path.to_owned()));
        stage.proxy.inject(rule.times(1));
        let mut run = stage.tree.start(APPLY);
        assert!(stage.proxy.holds_unless(|| run.try_wait().unwrap().is_some()), "{path}");

        let theirs = replace(&stage, path);
        stage.proxy.reset();
        assert_eq!(run.wait().unwrap().code(), Some(0), "{path}");
        stage.proxy.wait_until_quiet();
        let (code, left) = stage.proxy.ask("GET", path, &Value::Null);
        assert_eq!((code, &left["metadata"]), (200, &theirs["metadata"]), "{path} is another one, and stays");
        // The next run doesn't take it for ours either.
        assert_eq!(stage.plan().code, 0, "{path}");
        let ours: BTreeMap<_, _> =
            objects::of(&stage.proxy).into_iter().filter(|(it, _)| it != path).collect();
        objects::assert_owned(&ours);
    }
}

fn replace(stage: &Stage, path: &str) -> Value {
    let (code, ours) = stage.proxy.ask("GET", path, &Value::Null);
    assert_eq!(code, 200, "{path}");
    objects::remove(&stage.proxy, [path.to_owned()].into_iter());
    let mut theirs = ours.clone();
    theirs["metadata"] = json!({"name": ours["metadata"]["name"]});
    let collection = path.rsplit_once('/').unwrap().0;
    let (code, theirs) = stage.proxy.ask("POST", collection, &theirs);
    assert_eq!(code, 201, "{path}: {theirs}");
    assert_ne!(theirs["metadata"]["uid"], ours["metadata"]["uid"]);
    theirs
}
