//! A repository that is away.

use std::fs;

use super::exchanges::cluster;
use super::{Api, git};
use crate::support::Tree;

#[test]
fn with_the_remote_away_a_write_leaves_nothing_and_succeeds_once_when_it_is_back() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let (remote, away) = (tree.beside("specs.git"), tree.beside("away.git"));
    let before = git(&remote, "rev-parse main");
    fs::rename(&remote, &away).unwrap();
    let answer = api.call("POST /v1/clusters", cluster());
    assert_eq!(
        (answer.status, answer.body["code"].as_str()),
        (503, Some("unavailable")),
        "{:#}",
        answer.body
    );
    assert!(answer.header("retry-after").unwrap().parse::<u32>().unwrap() > 0);
    assert_eq!(api.get("/v1/clusters/payments").status, 404);

    fs::rename(&away, &remote).unwrap();
    git(&remote, "branch --quiet -m main gone");
    let answer = api.call("POST /v1/clusters", cluster());
    answer.refused(
        503,
        "unavailable",
        "the git repository of the specs has no such branch any more, and nothing was written",
    );
    assert_eq!(answer.header("retry-after").unwrap(), "60");
    git(&remote, "branch --quiet -m gone main");
    assert_eq!(git(&remote, "rev-parse main"), before);
    api.call("POST /v1/clusters", cluster()).expect(201);
    assert_eq!(git(&remote, "rev-parse main~1"), before);
    api.call("POST /v1/clusters", cluster()).refused(
        409,
        "duplicate",
        "there is cluster acme/payments already",
    );
    assert_eq!(git(&remote, "rev-parse main~1"), before, "it was written once");
    assert_eq!(api.serve.stop(), Some(0));
}
