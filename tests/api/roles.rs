//! Who may ask for what: every route of the table, by every kind of caller.

use std::fs;

use serde_json::{Value, json};
use streamfleet::api::route::{Method, Needs, ROUTES, Route};

use super::exchanges::{cluster, fleet};
use super::{Api, ROOT, new_token};
use crate::support::Tree;

/// What a caller may do in acme, the least first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Nobody,
    Stranger,
    Viewer,
    Editor,
    Admin,
    Super,
}

fn rank_for(needs: Needs) -> Rank {
    match needs {
        Needs::Nobody => Rank::Nobody,
        Needs::Read => Rank::Viewer,
        Needs::Write => Rank::Editor,
        Needs::Admin => Rank::Admin,
        Needs::Super => Rank::Super,
    }
}

/// A call of a route about something of acme that is there.
fn call(route: &Route) -> (String, Value) {
    let path = route.path.replace("{organization}", "acme");
    let path = match route.path {
        path if path.contains("infrastructure/{id}") => {
            path.replace("{organization}", "acme").replace("{id}", "eu")
        }
        path if path.contains("base-domains/{id}") => {
            path.replace("{organization}", "acme").replace("{id}", "kafka.acme.example.com")
        }
        "/v1/clusters/{id}" => "/v1/clusters/orders".to_owned(),
        _ => path.replace("{id}", "none"),
    };
    let body = match route.method {
        Method::Post if route.id == "create_cluster" => cluster(),
        Method::Post if route.id == "create_fleet" => fleet(),
        Method::Put if route.id == "replace_organization" => {
            json!({"display_name": "Acme", "quotas": {"fleets": 2, "clusters": 10, "kafka_units": 20}})
        }
        Method::Post | Method::Put | Method::Patch => json!({}),
        Method::Get | Method::Delete => Value::Null,
    };
    // Nothing is to change, whoever asks.
    let dry = if route.query.iter().any(|query| query.name == "dry_run") { "?dry_run=true" } else { "" };
    (format!("{} {path}{dry}", route.method.as_str()), body)
}

#[test]
fn nobody_may_do_more_than_the_table_says() {
    let tree = Tree::example("quickstart");
    let organizations = tree.read("organizations.yaml");
    let members = "members:\n  - {email: admin@x.example, role: admin}\n  - {email: editor@x.example, role: editor}\n  - {email: viewer@x.example, role: viewer}\n";
    let (head, _) = organizations.split_once("members:").unwrap();
    let other = "---\napiVersion: streamfleet/v1\nkind: Organization\nidentifier: other\nmembers:\n  - {email: stranger@x.example, role: admin}\n";
    fs::write(tree.path().join("organizations.yaml"), format!("{head}{members}{other}")).unwrap();
    // Something of each kind, with the name that the calls have.
    let of_acme = "apiVersion: streamfleet/v1\norganization: acme\nidentifier: none\n";
    let issuer = "issuer: https://login.acme.example.com\njwks_uri: https://login.acme.example.com/keys\naudience: kafka\n";
    let keys =
        "credentials: |\n  [default]\n  aws_access_key_id = AKIAEXAMPLE\n  aws_secret_access_key = none\n";
    tree.write("acme/login.yaml", format!("{of_acme}kind: IdentityProvider\n{issuer}"));
    tree.write(
        "acme/aws.yaml",
        format!("{of_acme}kind: CloudAccount\nprovider: aws\nregion: eu-central-1\n{keys}"),
    );
    let api = Api::start(&tree);
    api.settle();
    let callers = [
        (Rank::Stranger, new_token(&tree, "stranger@x.example", "*", "admin")),
        (Rank::Viewer, new_token(&tree, "viewer@x.example", "*", "admin")),
        (Rank::Viewer, new_token(&tree, "admin@x.example", "acme", "read")),
        (Rank::Editor, new_token(&tree, "editor@x.example", "acme", "admin")),
        (Rank::Editor, new_token(&tree, ROOT, "acme", "write")),
        (Rank::Admin, new_token(&tree, "admin@x.example", "*", "admin")),
        (Rank::Super, new_token(&tree, ROOT, "*", "admin")),
    ];
    for route in ROUTES {
        let (what, body) = call(route);
        let needed = rank_for(route.needs);
        let nobody = api.call_as("sf_none", &what, &[], body.clone());
        assert_eq!(nobody.status == 401, needed > Rank::Nobody, "{what}: {:#}", nobody.body);
        // Of tokens and of what nobody has, everybody may have their own.
        if ["list_tokens", "create_token", "revoke_token", "list_events", "list_organizations"]
            .contains(&route.id)
        {
            continue;
        }
        for (rank, token) in &callers {
            let answer = api.call_as(token, &what, &[], body.clone());
            let told = format!("{what} by {rank:?}: {} {:#}", answer.status, answer.body);
            match rank {
                _ if needed == Rank::Nobody => assert_eq!(answer.status, 200, "{told}"),
                // They see what is theirs, of which there is nothing, and of acme nothing.
                Rank::Stranger
                    if ["list_clusters", "read_plan", "propose_plan", "create_organization"]
                        .contains(&route.id) =>
                {
                    assert!(!answer.body.to_string().contains("acme"), "{told}");
                }
                Rank::Stranger => {
                    assert!([404, 409].contains(&answer.status), "{told}");
                    assert!(!answer.body.to_string().contains("eu"), "{told}");
                }
                rank if *rank < needed => {
                    // What waits for nobody is no more there for those who may not approve it.
                    let expected = if route.id == "approve_plan" { 409 } else { 403 };
                    assert_eq!(answer.status, expected, "{told}");
                }
                _ => assert!(![401, 403].contains(&answer.status), "{told}"),
            }
        }
    }
    // What may not be seen is answered as what isn't there, to the letter.
    let stranger = &callers[0].1;
    let hidden = api.call_as(stranger, "GET /v1/clusters/orders", &[], Value::Null);
    let absent = api.call_as(stranger, "GET /v1/clusters/absent", &[], Value::Null);
    let same = |mut body: Value| {
        body["request_id"] = Value::Null;
        body.to_string().replace("orders", "absent")
    };
    assert_eq!((hidden.status, same(hidden.body)), (absent.status, same(absent.body)));
    // An organization's administrators set everything of it but its limits.
    let admin = &callers[5].1;
    let quotas = json!({"quotas": {"fleets": 200, "clusters": 10, "kafka_units": 20}});
    api.call_as(admin, "PATCH /organizations/acme", &[], quotas).refused(
        403,
        "forbidden",
        "only super users may change the `quotas` of an organization",
    );
    api.call_as(admin, "PATCH /organizations/acme", &[], json!({"display_name": "Acme"})).expect(200);
    assert_eq!(api.serve.stop(), Some(0));
}
