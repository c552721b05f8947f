//! Authorization: every route of the table with every kind of caller, and what each sees.

use std::collections::BTreeSet;
use std::fs;

use serde_json::{Value, json};
use streamfleet::api::route::{Method, ROUTES, RequiredAccess, Route};

use super::exchanges::{KUBECONFIG, certificate, cluster, fleet};
use super::{Api, ROOT, Reply, new_token};
use crate::support::Tree;

/// A caller's rights in acme, lowest first.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
enum Rank {
    Nobody,
    Stranger,
    Viewer,
    Editor,
    Admin,
    Super,
}

struct Caller {
    rank: Rank,
    owner: &'static str,
    sees: &'static [&'static str],
    most: Rank,
    token: String,
}

/// Rank in acme, owner, organizations and scope of the token, visible organizations, and highest rank in any.
type CallerRow = (Rank, &'static str, &'static str, &'static str, &'static [&'static str], Rank);

const CALLERS: &[CallerRow] = &[
    (Rank::Stranger, "stranger@x.example", "*", "admin", &["other"], Rank::Admin),
    (Rank::Stranger, "nobody@x.example", "*", "admin", &[], Rank::Nobody),
    (Rank::Stranger, "admin@x.example", "other", "admin", &[], Rank::Nobody),
    (Rank::Stranger, ROOT, "other", "admin", &["other"], Rank::Admin),
    (Rank::Viewer, "viewer@x.example", "*", "admin", &["acme"], Rank::Viewer),
    (Rank::Viewer, "admin@x.example", "acme", "read", &["acme"], Rank::Viewer),
    (Rank::Viewer, ROOT, "*", "read", &["acme", "other", "root"], Rank::Viewer),
    (Rank::Editor, "editor@x.example", "acme", "admin", &["acme"], Rank::Editor),
    (Rank::Editor, ROOT, "acme", "write", &["acme"], Rank::Editor),
    (Rank::Admin, "Admin@X.example", "*", "admin", &["acme"], Rank::Admin),
    (Rank::Admin, ROOT, "acme", "admin", &["acme"], Rank::Admin),
    (Rank::Super, ROOT, "*", "admin", &["acme", "other", "root"], Rank::Super),
];

fn rank_for(needs: RequiredAccess) -> Rank {
    match needs {
        RequiredAccess::Nobody => Rank::Nobody,
        RequiredAccess::Read => Rank::Viewer,
        RequiredAccess::Write => Rank::Editor,
        RequiredAccess::Admin => Rank::Admin,
        RequiredAccess::Super => Rank::Super,
    }
}

/// A request of a route for an existing resource of acme.
fn call(route: &Route) -> (String, Value) {
    let path = route.path.replace("{organization}", "acme");
    let path = match route.path {
        path if path.contains("infrastructure/{id}") => {
            path.replace("{organization}", "acme").replace("{id}", "eu")
        }
        path if path.contains("base-domains/{id}") => {
            path.replace("{organization}", "acme").replace("{id}", "kafka.acme.example.com")
        }
        path if path.contains("/topics/{id}") || path.contains("/users/{id}") => {
            path.replace("{organization}", "acme").replace("{id}", "sandbox%2Fnone")
        }
        path if path.starts_with("/v1/clusters/{id}") => path.replace("{id}", "orders"),
        _ => path.replace("{id}", "none").replace("{email}", "nobody@x.example"),
    };
    let body = match route.method {
        Method::Post if route.id == "create_cluster" => cluster(),
        Method::Post if route.id == "create_fleet" => fleet(),
        Method::Post if route.id == "fit_cluster" => {
            json!({"organization": "acme", "kafka_units": 1, "tenancy_mode": "Shared"})
        }
        Method::Post if route.id == "check_kubernetes_cluster" => {
            json!({"organization": "acme", "advanced_config": {"kubeconfig": KUBECONFIG}})
        }
        Method::Post if route.id == "create_token" => {
            json!({"name": "more", "organization": "acme", "access": "read", "days": 1})
        }
        Method::Post if route.id == "create_sign_in_link" => {
            json!({"email": "admin@x.example", "organization": "acme"})
        }
        Method::Put if route.id == "replace_organization" => {
            json!({
                "display_name": "Acme",
                "quotas": {"fleets": 2, "clusters": 10, "kafka_units": 20},
                "domains": ["acme.example.com"],
                "members": [{"email": "admin@x.example", "role": "admin"}],
            })
        }
        Method::Post | Method::Put | Method::Patch => json!({}),
        Method::Get | Method::Delete => Value::Null,
    };
    // The answer to `GET` would take a minute.
    let method = if route.id == "stream_events" { "HEAD" } else { route.method.as_str() };
    // No request may change anything, whoever sends it.
    let dry = if route.query.iter().any(|query| query.name == "dry_run") { "?dry_run=true" } else { "" };
    (format!("{method} {path}{dry}"), body)
}

fn expected(route: &Route, caller: &Caller) -> u16 {
    let needed = rank_for(route.needs);
    let is_stranger = caller.rank == Rank::Stranger;
    match route.id {
        _ if needed == Rank::Nobody => 200,
        "list_organizations" | "list_clusters" | "read_status" | "read_plan" | "list_changes"
        | "list_events" | "stream_events" | "list_tokens" | "list_sessions" | "read_me" | "read_about"
        | "list_certificates" | "read_offers" => 200,
        // A token can't have more rights than its creator.
        "create_token" if is_stranger && caller.sees == ["other"] && caller.owner == ROOT => 403,
        "create_token" if is_stranger && caller.owner == "admin@x.example" => 403,
        "create_token" | "create_session" => 201,
        // Not an id.
        "revoke_token" | "end_session" => 404,
        // Nothing waits; callers without the right to approve get the same answer.
        "approve_plan" => 409,
        "propose_plan" if caller.most < Rank::Editor => 403,
        "propose_plan" => 422,
        "create_organization" | "create_sign_in_link" | "release_account" if caller.rank < Rank::Super => 403,
        "create_sign_in_link" => 201,
        // Nothing is bound to it.
        "release_account" => 404,
        _ if is_stranger => 404,
        _ if caller.rank < needed => 403,
        // The fleet is a folder.
        "read_cluster_logs" | "read_fleet_logs" | "read_cluster_metrics" | "read_fleet_metrics" => 404,
        _ => permitted(route),
    }
}

/// The expected status for a permitted caller, given the request's body.
fn permitted(route: &Route) -> u16 {
    match (route.method, route.id) {
        (Method::Get | Method::Patch, _) => 200,
        (_, "create_cluster" | "create_fleet" | "replace_organization") => 200,
        // The path names all that they need.
        (_, "replace_topic" | "replace_user") => 200,
        (_, "fit_cluster" | "check_kubernetes_cluster") => 200,
        // Empty body.
        (Method::Post | Method::Put, _) => 422,
        (Method::Delete, "delete_identity_provider" | "delete_cloud_account" | "delete_user") => 200,
        // Something is protected or in use.
        (Method::Delete, _) => 409,
    }
}

/// Acme with members of each role and one resource of each kind under the names of the requests, and another
/// organization.
pub(super) fn two_organizations() -> Tree {
    let tree = Tree::example("quickstart");
    let organizations = tree.read("organizations.yaml");
    let members = "members:\n  - {email: admin@x.example, role: admin}\n  - {email: editor@x.example, role: editor}\n  - {email: viewer@x.example, role: viewer}\n";
    let (head, _) = organizations.split_once("members:").unwrap();
    let other = "---\napiVersion: streamfleet/v1\nkind: Organization\nidentifier: other\nquotas: {fleets: 1, clusters: 1, kafka_units: 1}\ndomains: [zulu.example.org]\n\
                 members:\n  - {email: stranger@x.example, role: admin}\n";
    fs::write(tree.path().join("organizations.yaml"), format!("{head}{members}{other}")).unwrap();
    let of_acme = "apiVersion: streamfleet/v1\norganization: acme\nidentifier: none\n";
    let issuer = "issuer: https://login.acme.example.com\njwks_uri: https://login.acme.example.com/keys\naudience: kafka\n";
    let keys =
        "credentials: |\n  [default]\n  aws_access_key_id = AKIAEXAMPLE\n  aws_secret_access_key = none\n";
    tree.write("acme/login.yaml", format!("{of_acme}kind: IdentityProvider\n{issuer}"));
    tree.write(
        "acme/aws.yaml",
        format!("{of_acme}kind: CloudAccount\nprovider: aws\nregion: eu-central-1\n{keys}"),
    );
    let on_sandbox = "apiVersion: streamfleet/v1\norganization: acme\ncluster: sandbox\n";
    tree.write("acme/topic.yaml", format!("{on_sandbox}kind: Topic\nname: none\n"));
    tree.write("acme/user.yaml", format!("{on_sandbox}kind: User\nidentifier: none\n"));
    let of_other = "apiVersion: streamfleet/v1\norganization: other\n";
    let (chain, key) = certificate("zulu.example.org");
    let pem = |text: &str| text.lines().map(|line| format!("  {line}\n")).collect::<String>();
    tree.write(
        "other/domain.yaml",
        format!(
            "{of_other}kind: BaseDomain\ndomain: zulu.example.org\ntls_cert: |\n{}tls_key: |\n{}",
            pem(&chain),
            pem(&key)
        ),
    );
    let is_fleet = "kind: Fleet\nidentifier: zulu\ninfra_type: directory\ndomain: zulu.example.org\n\
                    tenancy_mode: Shared\nmax_tenants: 1\nmax_kafka_units: 1\n";
    tree.write("other/fleet.yaml", format!("{of_other}{is_fleet}"));
    let sandbox = tree.read("acme/clusters/sandbox.yaml");
    let sandbox = sandbox.replace("organization: acme", "organization: other");
    let kilo = sandbox
        .replace("infrastructure: eu", "infrastructure: zulu")
        .replace("identifier: sandbox", "identifier: kilo");
    tree.write("other/cluster.yaml", kilo);
    tree
}

fn callers(tree: &Tree) -> Vec<Caller> {
    let of = |&(rank, owner, organization, access, sees, most): &CallerRow| {
        let token = new_token(tree, owner, organization, access);
        Caller { rank, owner, sees, most, token }
    };
    CALLERS.iter().map(of).collect()
}

/// Strings visible only to those who see an organization: the ids of all its resources, and names that no
/// request has.
fn marks(api: &Api<'_>, organization: &str) -> BTreeSet<String> {
    let path = format!("/organizations/{organization}");
    let lists = ["infrastructure", "base-domains", "identity-providers", "cloud-accounts"];
    let paths = lists.map(|list| format!("{path}/{list}"));
    let records =
        paths.iter().flat_map(|path| api.get(path).expect(200).body["items"].as_array().unwrap().clone());
    let clusters = api.get(&format!("/v1/clusters?organization={organization}")).expect(200);
    let clusters = clusters.body["items"].as_array().unwrap().clone();
    let ids = records.chain(clusters).chain([api.get(&path).expect(200).body]);
    let ids = ids.map(|record| record["id"].as_str().unwrap().to_owned());
    let names = match organization {
        "acme" => ["Acme Corporation", "acme/eu", "acme/sandbox"],
        _ => ["zulu", "kilo", "stranger@x.example"],
    };
    ids.chain(names.map(str::to_owned)).collect()
}

fn names(reply: &Reply, field: &str) -> Vec<String> {
    let items = reply.body["items"].as_array().unwrap();
    assert_eq!(reply.body["total"], items.len(), "{:#}", reply.body);
    items.iter().map(|item| item[field].as_str().unwrap().to_owned()).collect()
}

#[test]
fn nobody_may_do_more_than_the_table_says() {
    let tree = two_organizations();
    let prices = "[prices]\ncurrency = \"EUR\"\ncpu_hour = 1\n";
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", prices);
    api.settle();
    let marks = ["acme", "other"].map(|organization| (organization, marks(&api, organization)));
    assert!(marks.iter().all(|(_, marks)| marks.len() >= 7), "{marks:?}");
    let callers = callers(&tree);
    for route in ROUTES {
        let (what, body) = call(route);
        let nobody = api.call_as("sf_none", &what, &[], body.clone());
        let unknown = if route.needs > RequiredAccess::Nobody { 401 } else { 200 };
        assert_eq!(nobody.status, unknown, "{what}: {:#}", nobody.body);
        for caller in &callers {
            let Caller { rank, owner, sees, token, .. } = caller;
            let answer = api.call_as(token, &what, &[], body.clone());
            let told = format!("{what} by {rank:?} {owner} {sees:?}: {} {:#}", answer.status, answer.body);
            assert_eq!(answer.status, expected(route, caller), "{told}");
            if rank_for(route.needs) > Rank::Nobody {
                let text = format!("{}{}", answer.head, answer.body);
                // A caller may see their own address.
                let hidden = marks.iter().filter(|(organization, _)| !sees.contains(organization));
                let seen =
                    hidden.flat_map(|(_, marks)| marks).find(|mark| text.contains(*mark) && mark != owner);
                assert_eq!(seen, None, "{told}");
            }
        }
    }
    // An invisible resource and a missing one get the same answer, to the letter.
    let stranger = &callers[0].token;
    for (hidden, absent) in [
        ("GET /v1/clusters/orders", "GET /v1/clusters/absent"),
        ("GET /v1/clusters?organization=orders", "GET /v1/clusters?organization=absent"),
        ("GET /v1/clusters?q=orders", "GET /v1/clusters?q=absent"),
        ("GET /v1/events?organization=acme", "GET /v1/events?organization=absent"),
        ("GET /v1/offers?organization=acme", "GET /v1/offers?organization=absent"),
        ("GET /organizations/acme/infrastructure", "GET /organizations/absent/infrastructure"),
        ("DELETE /organizations/acme/infrastructure/eu", "DELETE /organizations/absent/infrastructure/eu"),
    ] {
        let [hidden, absent] = [hidden, absent].map(|what| api.call_as(stranger, what, &[], Value::Null));
        let same = |mut body: Value| {
            body["request_id"] = Value::Null;
            body.to_string().replace("orders", "absent").replace("acme", "absent")
        };
        assert_eq!((hidden.status, same(hidden.body)), (absent.status, same(absent.body)));
    }
    // An organization's administrators set everything but its limits.
    let admin = &callers.iter().find(|caller| caller.owner == "Admin@X.example").unwrap().token;
    let quotas = json!({"quotas": {"fleets": 200, "clusters": 10, "kafka_units": 20}});
    api.call_as(admin, "PATCH /organizations/acme", &[], quotas).refused(
        403,
        "forbidden",
        "only super users may change the `quotas` of an organization",
    );
    api.call_as(admin, "PATCH /organizations/acme", &[], json!({"display_name": "Acme"})).expect(200);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_commands_send_on_the_socket_gives_no_rights_on_the_port() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    let claims = [
        ("Streamfleet-User", "root"),
        ("Streamfleet-Source", "/elsewhere"),
        ("Forwarded", "for=unix"),
        ("X-Forwarded-For", "127.0.0.1"),
    ];
    let refused = api.call_as("sf_none", "GET /v1/plan", &claims, Value::Null);
    assert_eq!(refused.status, 401, "{:#}", refused.body);
    let viewer = new_token(&tree, "viewer@x.example", "*", "admin");
    let make = json!({"name": "claimed", "organization": "acme", "access": "read", "days": 1});
    api.call_as(&viewer, "POST /v1/tokens", &claims, make).expect(201);
    let audit = fs::read_to_string(tree.beside("state/audit.jsonl")).unwrap();
    let made = audit.lines().find(|line| line.contains("created token claimed")).unwrap();
    assert!(made.contains("viewer@x.example (token test)") && !made.contains("root"), "{made}");
    api.call_as(&viewer, "DELETE /organizations/acme", &claims, Value::Null).refused(
        403,
        "forbidden",
        "deleting organizations requires a super user, and viewer@x.example is not one",
    );
    let seen = api.call_as(&viewer, "GET /v1/status", &claims, Value::Null).expect(200);
    let told = ["server", "streamfleet-plan", "streamfleet-warning"].map(|name| seen.header(name));
    assert_eq!(told, [None, None, None], "{}", seen.head);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn who_reads_a_cluster_is_told_why_it_is_so_and_what_to_do_with_their_rights() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: many");
    let viewer = new_token(&tree, "viewer@x.example", "acme", "read");
    let why =
        |token: &str| api.call_as(token, "GET /v1/clusters/orders/why", &[], Value::Null).expect(200).body;
    let next = |token: &str| why(token)["next"][0].as_str().unwrap_or_default().to_owned();
    api.serve.until("the mistake is known", || next(&viewer).starts_with("fix ").then_some(()));
    let file = "fix acme/clusters/orders.yaml:";
    assert!(next(&viewer).starts_with(file) && !next(&viewer).contains("streamfleet"), "{}", next(&viewer));
    assert!(next(&api.token).ends_with(": streamfleet validate TREE"), "{}", next(&api.token));
    let properties =
        api.call_as(&viewer, "GET /v1/clusters/orders/client-properties", &[], Value::Null).expect(200).body;
    assert_eq!(properties["cluster"], "acme/orders");
    let text = properties["listeners"][0]["properties"].as_str().unwrap();
    assert!(text.contains("bootstrap.servers="), "{properties:#}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn lists_totals_events_and_tokens_have_what_the_caller_may_see_and_nothing_else() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    let callers = callers(&tree);
    let all_events = api.get("/v1/events?page_size=200").expect(200);
    // With the caller's own, and that of the link which the log of a first start has.
    let all_tokens = api.get("/v1/tokens?page_size=200").expect(200);
    assert_eq!(all_tokens.body["total"], CALLERS.len() + 2, "{:#}", all_tokens.body);
    for Caller { rank, owner, sees, token, .. } in &callers {
        let get = |path: &str| api.call_as(token, &format!("GET {path}"), &[], Value::Null).expect(200);
        let told = format!("{rank:?} {owner} {sees:?}");
        assert_eq!(names(&get("/organizations"), "identifier"), *sees, "{told}");
        let clusters: Vec<&str> = [("acme", ["orders", "sandbox"].as_slice()), ("other", &["kilo"])]
            .into_iter()
            .filter(|(organization, _)| sees.contains(organization))
            .flat_map(|(_, clusters)| clusters)
            .copied()
            .collect();
        assert_eq!(names(&get("/v1/clusters"), "identifier"), clusters, "{told}");
        // The total and the last page count only visible items.
        let first = get("/v1/clusters?page_size=1").body;
        assert_eq!(
            (&first["total"], first["next_page_token"].is_null()),
            (&clusters.len().into(), clusters.len() < 2)
        );
        let events = get("/v1/events?page_size=200");
        let of = |event: &Value| {
            let of_resource = event["resource"].as_str().map(|it| it.split('/').nth(1).unwrap().to_owned());
            of_resource.or_else(|| Some(event["fleet"].as_str()?.split('/').next().unwrap().to_owned()))
        };
        let may_see = |event: &&Value| match of(event) {
            Some(organization) => sees.contains(&organization.as_str()),
            None => *rank == Rank::Super,
        };
        let numbers = |events: Vec<&Value>| -> Vec<String> {
            events.iter().map(|event| event["id"].as_str().unwrap().to_owned()).collect()
        };
        let all = all_events.body["items"].as_array().unwrap();
        let found = numbers(events.body["items"].as_array().unwrap().iter().collect());
        assert_eq!(found, numbers(all.iter().filter(may_see).collect()), "{told}");
        assert_eq!(events.body["total"], found.len(), "{told}");
        assert_eq!(found.is_empty(), sees.is_empty(), "{told}");
        let plan = get("/v1/plan").body;
        let planned: Vec<&str> = plan["organizations"]
            .as_array()
            .unwrap()
            .iter()
            .map(|it| it["organization"].as_str().unwrap())
            .collect();
        assert!(planned.iter().all(|organization| sees.contains(organization)), "{told}: {plan:#}");
        let own = names(&get("/v1/tokens?page_size=200"), "owner");
        let all = names(&all_tokens, "owner");
        let is_own = |of: &&String| *rank == Rank::Super || of.eq_ignore_ascii_case(owner);
        assert_eq!(own, all.iter().filter(is_own).cloned().collect::<Vec<_>>(), "{told}");
    }
    // Other owners' tokens are invisible, and a token can't revoke a stronger one of the same owner.
    let items = all_tokens.body["items"].as_array().unwrap();
    let id = |owner: &str, organization: &str, access: &str| -> String {
        let is_it = |it: &&Value| {
            it["owner"] == owner && it["organization"] == organization && it["access"] == access
        };
        items.iter().find(is_it).unwrap()["id"].as_str().unwrap().to_owned()
    };
    let revoke = |caller: usize, id: &str| {
        api.call_as(&callers[caller].token, &format!("DELETE /v1/tokens/{id}"), &[], Value::Null)
    };
    let (editors, least) = (id("editor@x.example", "acme", "admin"), id(ROOT, "acme", "write"));
    let missing = format!("there is no token `{editors}`, or the caller may not see it");
    for caller in [0, 1, 4, 9] {
        revoke(caller, &editors).refused(404, "not_found", &missing);
    }
    let greater = "a token can revoke only tokens with the same or less access, and this one has more";
    revoke(6, &least).refused(403, "forbidden", greater);
    revoke(6, &id(ROOT, "*", "read")).expect(204);
    assert_eq!(revoke(6, &least).status, 401);
    revoke(10, &least).expect(204);
    revoke(11, &editors).expect(204);
    assert_eq!(api.call_as(&callers[7].token, "GET /v1/tokens", &[], Value::Null).status, 401);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn who_may_not_do_something_is_told_what_it_takes() {
    let tree = two_organizations();
    let api = Api::start(&tree);
    api.settle();
    let ask = |(owner, organization, access): (&str, &str, &str), what: &str, body: Value, detail: &str| {
        let token = new_token(&tree, owner, organization, access);
        api.call_as(&token, what, &[], body).refused(403, "forbidden", detail);
    };
    let (viewer, editor, admin) = ("viewer@x.example", "editor@x.example", "admin@x.example");
    ask(
        (viewer, "*", "admin"),
        "PATCH /v1/clusters/orders",
        json!({}),
        "changing clusters requires the role `editor` in organization `acme`, and viewer@x.example has `viewer` there",
    );
    ask(
        (editor, "acme", "admin"),
        "PATCH /organizations/acme",
        json!({}),
        "changing organizations requires the role `admin` in organization `acme`, and editor@x.example has `editor` there",
    );
    ask(
        (admin, "acme", "read"),
        "DELETE /organizations/acme/infrastructure/eu",
        Value::Null,
        "deleting fleets in organization `acme` requires a token for `write`, and this one is for `read` in organization \
         `acme`",
    );
    ask(
        (admin, "*", "admin"),
        "DELETE /organizations/acme",
        Value::Null,
        "deleting organizations requires a super user, and admin@x.example is not one",
    );
    ask(
        (ROOT, "acme", "admin"),
        "POST /organizations",
        json!({"identifier": "more"}),
        "creating organizations requires a token for `admin` in all organizations, and this one is for `admin` in \
         organization `acme`",
    );
    let later = "GET /v1/plan?at=2030-01-01T00:00:00Z";
    for (what, body, doing) in [
        ("POST /v1/plans", json!({"files": {}}), "planning a tree from a request"),
        (later, Value::Null, "planning for another time"),
    ] {
        let detail = format!("{doing} requires a token for `write`, and this one is for `read`");
        ask((admin, "*", "read"), what, body.clone(), &detail);
        let place = "an organization of this token, and viewer@x.example has it in none";
        let detail = format!("{doing} requires the role `editor` in {place}");
        ask((viewer, "*", "admin"), what, body, &detail);
    }
    let plans = new_token(&tree, editor, "acme", "write");
    api.call_as(&plans, later, &[], Value::Null).expect(200);
    // Readers of the fleet see what waits, administrators approve it.
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 1\ndeletion_protection: false");
    api.serve.until("that is applied", || {
        let orders = api.get("/v1/clusters/orders").body;
        (orders["deletion_protection"] == false && orders["status"] == "Written").then_some(())
    });
    for file in ["acme/clusters/orders.yaml", "acme/clusters/sandbox.yaml"] {
        fs::remove_file(tree.path().join(file)).unwrap();
    }
    let id = api.serve.until("a deletion waits for approval", || {
        let plan = api.get("/v1/plan").body;
        let mut fleets = plan["fleets"].as_array()?.iter();
        fleets.find_map(|fleet| fleet["guard"]["id"].as_str().map(str::to_owned))
    });
    ask(
        (editor, "*", "admin"),
        &format!("POST /v1/plans/{id}/approve"),
        Value::Null,
        "approving requires the role `admin` in organization `acme`, and editor@x.example has `editor` there",
    );
    ask(
        (admin, "*", "write"),
        &format!("POST /v1/plans/{id}/approve"),
        Value::Null,
        "approving in organization `acme` requires a token for `admin`, and this one is for `write`",
    );
    let stranger = new_token(&tree, "stranger@x.example", "*", "admin");
    api.call_as(&stranger, &format!("POST /v1/plans/{id}/approve"), &[], Value::Null).refused(
        409,
        "not_waiting",
        &format!("nothing waits for approval `{id}`, or the caller may not see it"),
    );
    let approves = new_token(&tree, admin, "acme", "admin");
    api.call_as(&approves, &format!("POST /v1/plans/{id}/approve"), &[], Value::Null).expect(200);
    assert_eq!(api.serve.stop(), Some(0));
}
