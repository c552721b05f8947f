//! What forms and reviews tell.

use super::Browser;
use super::forms::{Fields, cluster, field_text, fleet, hidden, reviewed, text};
use crate::api::exchanges::{KUBECONFIG, certificate};
use crate::api::{Api, new_token};
use crate::support::Tree;

fn with<'f>(fields: &Fields<'f>, changed: &[(&'f str, &'f str)]) -> Fields<'f> {
    let kept = fields.iter().filter(|(name, _)| !changed.iter().any(|(other, _)| other == name));
    kept.chain(changed).copied().collect()
}

#[test]
fn all_mistakes_of_a_form_are_told_at_once_with_an_example() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let wrong =
        [("/tags", "- {key: a"), ("/kafka_units", "many"), ("/advanced_config/storage/size_gib", "big")];
    let refused = browser.submit("/new/clusters", &with(&cluster(), &wrong));
    assert_eq!(refused.status, 422, "{}", text(&refused.body));
    for (pointer, expected) in [
        ("/tags", "Tags is not YAML: "),
        ("/kafka_units", "expected an integer"),
        ("/advanced_config/storage/size_gib", "expected an integer"),
    ] {
        assert!(field_text(&refused.body, pointer).contains(expected), "{pointer}: {}", text(&refused.body));
    }
    let tags = field_text(&refused.body, "/tags");
    assert!(tags.contains("write it like this: - {key: team, value: payments}"), "{tags}");
    assert!(!text(&refused.body).contains("the file was not changed"), "{}", text(&refused.body));
    // A name that is none hides nothing else.
    let wrong = [("/identifier", "A b"), ("/kafka_units", "many")];
    let refused = browser.submit("/new/clusters", &with(&cluster(), &wrong));
    assert!(field_text(&refused.body, "/identifier").contains("is not"), "{}", text(&refused.body));
    assert!(
        field_text(&refused.body, "/kafka_units").contains("expected an integer"),
        "{}",
        text(&refused.body)
    );
    // A name that is taken, and a cluster that fits nowhere, in words for people.
    let taken = browser.submit("/new/clusters", &with(&cluster(), &[("/identifier", "orders")]));
    assert!(!text(&taken.body).contains("PUT or PATCH"), "{}", text(&taken.body));
    let step = "/new/clusters?step=3&%2fcluster_type=kafka&%2forganization=acme&%2fidentifier=payments\
                &%2fcloud_provider=directory&%2ftenancy_mode=Shared&%2fkafka_units=100";
    let told = text(&browser.page(step));
    assert!(told.contains("acme/payments") && !told.contains("acme/new"), "{told}");
    // A folder asks for no kubeconfig.
    let step = "/new/fleets?step=4&%2finfra_type=directory&%2forganization=acme&%2fidentifier=us\
                &%2ftenancy_mode=Shared&%2fdomain=kafka.acme.example.com&%2fmax_tenants=1&%2fmax_kafka_units=1";
    let page = browser.page(step);
    assert!(text(&page).contains("Step 4 of 4") && !page.contains("/advanced_config/kubeconfig"), "{page}");
    assert!(page.contains("name=\"/advanced_config/path\""), "{page}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_key_in_the_wrong_field_is_not_shown() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let (cert, key) = certificate("more.acme.example.com");
    let both = format!("{cert}{key}");
    for wrong in [&key, &both] {
        let fields = [
            ("/organization", "acme"),
            ("/domain", "more.acme.example.com"),
            ("/tls_cert", wrong.as_str()),
            ("/tls_key", &key),
        ];
        let refused = browser.submit("/new/base-domains", &fields);
        assert_eq!(refused.status, 422, "{}", text(&refused.body));
        assert!(!refused.body.contains("PRIVATE KEY"), "{}", refused.body);
        assert!(!refused.body.contains(key.lines().nth(1).unwrap()), "{}", refused.body);
        let told = field_text(&refused.body, "/tls_cert");
        assert!(told.contains("looks like a private key, so it is not shown"), "{told}");
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_review_tells_what_the_change_adds_and_what_would_not_work() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    tree.write("acme/clusters/sandbox.yaml", "");
    let browser = Browser::sign_in(&api, &api.token, "root");
    api.serve.until("the deletion waits for an approval", || {
        browser.page("/plan").contains("waiting to delete cluster <strong>sandbox</strong>").then_some(())
    });
    let review = browser.submit("/new/clusters", &cluster());
    let told = text(&review.body);
    assert!(told.contains("create cluster payments") && !told.contains("sandbox"), "{told}");

    let told = text(&browser.submit("/new/fleets", &fleet()).body);
    assert!(told.contains("127.0.0.1 is a loopback address"), "{told}");
    // As kind and minikube write it: the way out is there, too.
    let way_out = "or allow this one in the settings: allow_addresses under [targets]; a fleet on the Kubernetes cluster \
                   that Streamfleet runs in needs no kubeconfig with in_cluster";
    assert!(told.contains(way_out), "{told}");
    let expected =
        "kubeconfig is new: it leads to the server, https://127.0.0.1:1, and signs in with a token";
    assert!(told.contains(expected), "{told}");
    // Nobody is connected to, and a cluster is tried only when somebody asks for it.
    assert!(told.contains("Check this cluster"), "{told}");
    let draft = reviewed(&browser.submit("/new/fleets", &fleet()));
    let told = text(&browser.submit(&format!("/drafts/{draft}/check"), &[]).body);
    assert!(told.contains("127.0.0.1 is a loopback address") && told.contains("Check again"), "{told}");
    assert_eq!(browser.submit("/carry-out", &[("draft", &draft)]).status, 303);
    let etag = hidden(&browser.page("/fleets/acme/us/edit"), "etag").unwrap().replace("&#34;", "\"");
    let other = KUBECONFIG.replace("127.0.0.1:1", "kubernetes.example.com:6443");
    let changed = [("etag", etag.as_str()), ("/advanced_config/kubeconfig", &other)];
    let review = browser.submit("/fleets/acme/us/edit", &changed);
    let told = text(&review.body);
    assert!(told.contains("kubeconfig is replaced: it leads to another server than before"), "{told}");
    // An editor may change the fleet, and not try its cluster.
    let token = new_token(&tree, "platform@acme.example.com", "acme", "write");
    let editor = Browser::sign_in(&api, &token, "acme");
    let review = editor.submit("/fleets/acme/us/edit", &changed);
    let told = text(&review.body);
    assert!(told.contains("kubeconfig is replaced") && !told.contains("Check this cluster"), "{told}");
    let draft = reviewed(&review);
    let refused = editor.submit(&format!("/drafts/{draft}/check"), &[]);
    assert_eq!(refused.status, 403, "{}", text(&refused.body));
    let (tls_cert, tls_key) = certificate("elsewhere.example.com");
    let domain = [
        ("/organization", "acme"),
        ("/domain", "more.acme.example.com"),
        ("/tls_cert", tls_cert.as_str()),
        ("/tls_key", &tls_key),
    ];
    let told = text(&browser.submit("/new/base-domains", &domain).body);
    assert!(told.contains("covers no name below it"), "{told}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_form_of_a_broken_file_says_where_and_leads_to_it() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let path = "/clusters/acme/orders/edit";
    let etag = hidden(&browser.page(path), "etag").unwrap().replace("&#34;", "\"");
    let file = "acme/clusters/orders.yaml";
    tree.write(file, tree.read(file) + "bad: [unclosed\n");
    api.serve.until("it is read", || api.serve.log().contains("`[` is not closed").then_some(()));
    // Before anything is typed, and after it.
    let form = browser.get(path);
    let sent = browser.submit(path, &[("etag", etag.as_str()), ("/kafka_units", "2")]);
    for answer in [form, sent] {
        let told = text(&answer.body);
        assert_eq!(answer.status, 409, "{told}");
        let place = format!("{file}:{}", tree.read(file).lines().count());
        assert!(told.contains(&place) && told.contains("[ is not closed"), "{place}: {told}");
        assert!(
            answer.body.contains("href=\"/ui/clusters/acme/orders/file\">read the file</a>"),
            "{}",
            answer.body
        );
    }
    let shown = browser.page("/clusters/acme/orders/file");
    assert!(shown.contains("<a href=\"/ui/plan\">"), "{shown}");
    assert!(text(&browser.page("/plan")).contains(&format!("{file}:")));
    assert_eq!(api.serve.stop(), Some(0));
}

const STEPS: &str = "&%2fcluster_type=kafka&%2forganization=acme";

#[test]
fn a_taken_name_leads_back_to_its_step_and_the_rest_is_kept() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let typed = "&%2fidentifier=orders&%2ftenancy_mode=Shared&%2fkafka_units=2&%2fregion=west";
    let page = browser.page(&format!("/new/clusters?step=4{STEPS}{typed}"));
    assert!(text(&page).contains("Step 1 of 4"), "{}", text(&page));
    let told = field_text(&page, "/identifier");
    assert!(told.contains("cluster acme/orders exists already: choose another name"), "{told}");
    for (name, value) in [("/tenancy_mode", "Shared"), ("/kafka_units", "2"), ("/region", "west")] {
        assert_eq!(hidden(&page, name).as_deref(), Some(value));
    }
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn what_fits_is_shown_before_it_is_asked_for_and_a_wall_has_a_door() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let step = browser.page(&format!("/new/clusters?step=2{STEPS}&%2fidentifier=payments"));
    let told = text(&step);
    assert!(told.contains("Fleets that could host it") && told.contains("2 of 10 Kafka units"), "{told}");
    let wall = browser.page(&format!(
        "/new/clusters?step=3{STEPS}&%2fidentifier=payments&%2ftenancy_mode=Isolated&%2fkafka_units=1"
    ));
    let told = text(&wall);
    assert!(told.contains("The cluster fits on no fleet, for the reasons below."), "{told}");
    assert!(told.contains("Not available: the cluster's Tenancy mode is Isolated"), "{told}");
    assert!(wall.contains("href=\"/ui/new/fleets\"") && wall.contains(">Back</a>"), "{wall}");
    // Mistakes by themselves and in what they refer to, at once.
    let wrong = [("/kafka_units", "many"), ("/infrastructure", "nowhere")];
    let refused = browser.submit("/new/clusters", &with(&cluster(), &wrong));
    assert_eq!(
        field_text(&refused.body, "/infrastructure").split(": ").next(),
        Some("organization acme has no fleet nowhere")
    );
    assert!(field_text(&refused.body, "/kafka_units").starts_with("expected an integer"), "{}", refused.body);
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn a_mistake_in_a_file_is_quoted_as_the_command_line_quotes_it() {
    let tree = Tree::example("quickstart");
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_unit: 1 # `two`");
    let api = Api::start(&tree);
    let browser = Browser::sign_in(&api, &api.token, "root");
    let cli = tree.run("validate tree --config settings.toml").expect(1);
    let all = format!("{}{}", cli.out, cli.err);
    let quoted = all.split("unknown key `kafka_unit`\n").nth(1).unwrap().split("\n  ").next().unwrap();
    let page = text(&browser.page("/plan"));
    let place = quoted.lines().next().unwrap();
    assert!(place.contains("acme/clusters/orders.yaml:") && page.contains(place.trim()), "{place:?}: {page}");
    let line = all.lines().find(|line| line.contains("| kafka_unit: 1 # `two`")).unwrap();
    let marks = all.lines().find(|line| line.contains("^^^^^^^^^^")).unwrap();
    assert!(page.contains(&format!("{line}\n{marks}\n")), "{line}\n{marks}\n{page}");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn the_page_of_a_resource_says_why_what_its_file_says_waits() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    let browser = Browser::sign_in(&api, &api.token, "root");
    let page = || text(&browser.page("/clusters/acme/orders"));
    assert!(!page().contains("blocked"), "{}", page());
    tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_unit: 2");
    api.serve
        .until("the mistake is found", || page().contains("blocked: its spec has 2 problems").then_some(()));
    assert!(page().contains("Read its plan"), "{}", page());
    assert_eq!(api.serve.stop(), Some(0));
}
