//! A pull request review: a plan as Markdown, of a checkout against what was applied.

use std::fs;
use std::net::TcpListener;

use crate::support::serve::Serve;
use crate::support::{Tree, copy, files, stable};

const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";
const MARKDOWN: &str = "plan tree --format markdown";

fn applied() -> Tree {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    tree
}

#[test]
fn a_change_reads_well_as_a_comment() {
    let tree = applied();
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    tree.remove(SANDBOX);
    insta::assert_snapshot!("markdown_change", stable(&tree.run(MARKDOWN).expect(2).out));
}

#[test]
fn what_waits_says_for_what_and_the_way_out() {
    let tree = applied();
    tree.remove(ORDERS);
    tree.remove(SANDBOX);
    insta::assert_snapshot!("markdown_waiting", stable(&tree.run(MARKDOWN).expect(3).out));
}

#[test]
fn problems_are_in_the_comment_and_nobodys_text_becomes_markup() {
    let tree = applied();
    let evil = "</details><img src=x> @everyone `a` [b](https://c.example) #1";
    tree.write(SANDBOX, format!("apiVersion: streamfleet/v1\nkind: Cluster\n\"{evil}\": 1\nkafka_unit: 2\n"));
    let page = tree.run(MARKDOWN).expect(1);
    insta::assert_snapshot!("markdown_problems", stable(&page.out));
    assert_eq!(page.err, "");
}

#[test]
fn nothing_to_do_is_said_in_two_lines() {
    let page = stable(&applied().run(MARKDOWN).expect(0).out);
    assert_eq!(page, "### Streamfleet: Nothing to do: 5 resources match their specs.\n\nPlan `…`\n");
}

#[test]
fn a_comment_that_is_too_long_is_cut_and_says_so() {
    let tree = Tree::example("quickstart");
    let sandbox = tree.read(SANDBOX);
    for number in 0..400 {
        let cluster = sandbox.replace("identifier: sandbox", &format!("identifier: sandbox-{number}"));
        tree.write(&format!("acme/clusters/sandbox-{number}.yaml"), cluster);
    }
    let page = tree.run(MARKDOWN).out;
    assert!((50_000..=65_000).contains(&page.len()), "{}", page.len());
    let first = page.lines().next().unwrap();
    assert!(first.starts_with("### Streamfleet: 0 to change, ") && first.ends_with(" waiting."), "{first}");
    assert!(page.contains(" more lines of this list, which were left out.\n"), "{page}");
    assert!(
        page.trim_end().ends_with(" lines were left out; `streamfleet plan tree` prints them."),
        "{page}"
    );
    for mark in ["<details>", "</details>", "```diff"] {
        assert_eq!(page.matches(mark).count(), 1, "{mark}");
    }
}

#[test]
fn a_checkout_is_planned_as_if_it_were_the_tree_and_nothing_is_written() {
    let tree = applied();
    copy(&tree.path(), &tree.beside("checkout"));
    fs::remove_dir_all(tree.beside("checkout/.streamfleet")).unwrap();
    let before = tree.output();
    let text = tree.read(ORDERS);
    fs::write(tree.beside("checkout").join(ORDERS), text.replace("kafka_units: 1", "kafka_units: 2"))
        .unwrap();
    fs::remove_file(tree.beside("checkout").join(SANDBOX)).unwrap();
    let proposed = tree.run("plan tree --checkout checkout").expect(2);
    // Merging applies what was reviewed.
    let checkout = files(&tree.beside("checkout"));
    tree.write(ORDERS, text.replace("kafka_units: 1", "kafka_units: 2"));
    tree.remove(SANDBOX);
    assert_eq!(tree.run("plan tree").expect(2).out, proposed.out);
    assert_eq!(tree.output(), before);
    assert_eq!(files(&tree.beside("checkout")), checkout);
    tree.run("plan tree --checkout nowhere")
        .expect(1)
        .says(&["error: cannot read the checkout `nowhere`", "help: create the folder, or give the path"]);
    tree.run("plan tree --checkout checkout --out plan.json").expect(64);
}

#[test]
fn a_checkout_of_a_tree_that_nobody_named_is_refused() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --state-dir state --yes").expect(0);
    copy(&tree.path(), &tree.beside("checkout"));
    assert_eq!(
        tree.run("plan --state-dir state --output-dir .out --secrets-dir .secrets --checkout checkout")
            .expect(64)
            .err,
        "error: the tree of the checkout `checkout` is missing\n  help: give the tree that is applied: streamfleet plan \
         TREE --checkout DIR\n"
    );
}

#[test]
fn a_proposed_kubeconfig_is_not_connected_with() {
    let tree = applied();
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    fs::write(tree.beside("config.toml"), "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n").unwrap();
    copy(&tree.path(), &tree.beside("checkout"));
    fs::write(tree.beside("checkout/acme/fleets/us.yaml"), proposed_fleet(&server)).unwrap();
    let words = "plan tree --config config.toml --checkout checkout --format markdown";
    let page = tree.run(words).expect(3);
    let why = "it was not applied yet, and streamfleet doesn't connect with a proposed kubeconfig";
    assert!(page.out.contains(why), "{}", page.out);
    let nobody = server.accept().unwrap_err();
    assert_eq!(nobody.kind(), std::io::ErrorKind::WouldBlock);
}

fn proposed_fleet(server: &TcpListener) -> String {
    let kubeconfig = format!(
        "{{\"apiVersion\": \"v1\", \"kind\": \"Config\", \"current-context\": \"a\", \
         \"contexts\": [{{\"name\": \"a\", \"context\": {{\"cluster\": \"a\", \"user\": \"a\"}}}}], \
         \"clusters\": [{{\"name\": \"a\", \"cluster\": {{\"server\": \"https://{}\"}}}}], \
         \"users\": [{{\"name\": \"a\", \"user\": {{\"token\": \"t\"}}}}]}}",
        server.local_addr().unwrap()
    );
    format!(
        "apiVersion: streamfleet/v1\nkind: Fleet\norganization: acme\nidentifier: us\ninfra_type: byok\n\
         tenancy_mode: Shared\nmax_tenants: 5\nmax_kafka_units: 5\nadvanced_config:\n  kubeconfig: '{kubeconfig}'\n"
    )
}

/// Settings in a proposal would decide about their own check.
#[test]
fn a_checkout_that_would_bring_its_own_settings_or_state_is_refused() {
    let tree = applied();
    copy(&tree.path(), &tree.beside("checkout"));
    fs::write(tree.beside("checkout/config.toml"), "").unwrap();
    fs::write(tree.beside("config.toml"), "").unwrap();
    std::os::unix::fs::symlink("checkout/config.toml", tree.beside("link.toml")).unwrap();
    std::os::unix::fs::symlink("../config.toml", tree.beside("checkout/out.toml")).unwrap();
    std::os::unix::fs::symlink("checkout/.streamfleet", tree.beside("own")).unwrap();
    for config in ["checkout/config.toml", "link.toml", "checkout/out.toml", "tree/../checkout/config.toml"] {
        let said = tree.run(&format!("plan tree --config {config} --checkout checkout")).expect(1).err;
        let expected = format!(
            "error: the settings `{config}` are in the checkout `checkout`: the author of the proposal would decide how it \
             is checked\n  help: keep them outside of the checkout, and give their absolute path, such as --config \
             /etc/streamfleet/streamfleet.toml\n"
        );
        assert_eq!(said, expected);
    }
    let refused = |words: &str, what: &str, place: &str, flag: &str| {
        let said = tree.run(&format!("plan {words}")).expect(1).err;
        let place = place.replace("BESIDE", tree.beside("").to_str().unwrap().trim_end_matches('/'));
        let expected = format!(
            "error: the {what} folder `{place}` is in the checkout `checkout`: the author of the proposal would decide how \
             it is checked\n  help: give the absolute path of the installation's own folder, with {flag} or in the \
             settings\n"
        );
        assert_eq!(said, expected);
    };
    refused("checkout --checkout checkout", "state", "BESIDE/checkout/.streamfleet/state", "--state-dir");
    refused("tree --checkout checkout --state-dir own/state", "state", "own/state", "--state-dir");
    refused("tree --checkout checkout --secrets-dir checkout", "secrets", "checkout", "--secrets-dir");
    refused("tree --checkout checkout --output-dir own/new/out", "output", "own/new/out", "--output-dir");
    fs::remove_file(tree.beside("checkout/out.toml")).unwrap();
    tree.run("plan tree --config config.toml --checkout checkout").expect(0);
}

#[test]
fn a_checkout_is_planned_by_the_running_daemon_as_it_would_be_without_it() {
    let tree = Tree::example("quickstart");
    copy(&tree.path(), &tree.beside("checkout"));
    let text = tree.read(ORDERS);
    let server = TcpListener::bind("127.0.0.1:0").unwrap();
    server.set_nonblocking(true).unwrap();
    fs::write(tree.beside("config.toml"), "[targets]\nallow_addresses = [\"127.0.0.0/8\"]\n").unwrap();
    let serve =
        Serve::start(&tree, "serve --specs tree --state-dir state --output-dir output --config config.toml");
    serve.has_made(&["fleet acme/eu", "cluster acme/orders", "cluster acme/sandbox"]);
    fs::write(tree.beside("checkout").join(ORDERS), text.replace("kafka_units: 1", "kafka_units: 2"))
        .unwrap();
    fs::remove_file(tree.beside("checkout").join(SANDBOX)).unwrap();
    fs::write(tree.beside("checkout/acme/clusters/broken.yaml"), b"kind: \xff\n").unwrap();
    fs::write(tree.beside("checkout/acme/fleets/us.yaml"), proposed_fleet(&server)).unwrap();
    let before = (files(&tree.beside("output")), fs::read(tree.beside("state/registry.jsonl")).unwrap());
    let words = "plan tree --state-dir state --output-dir output --config config.toml --checkout checkout";
    let markdown = format!("{words} --format markdown");
    let proposed = [words, &markdown].map(|words| tree.run(words).expect(1));
    let who = format!("the running daemon (pid {}) answers, by plan ", serve.id());
    assert!(proposed[0].err.starts_with(&who), "{}", proposed[0].err);
    assert!(
        proposed[1]
            .out
            .contains("it was not applied yet, and streamfleet doesn't connect with a proposed kubeconfig"),
        "{}",
        proposed[1].out
    );
    assert_eq!(server.accept().unwrap_err().kind(), std::io::ErrorKind::WouldBlock);
    let after = (files(&tree.beside("output")), fs::read(tree.beside("state/registry.jsonl")).unwrap());
    assert!(before == after, "something was written");
    // The daemon's own tree is unchanged.
    let own = tree.run(&words.replace(" --checkout checkout", "")).expect(0);
    assert!(own.out.starts_with("Nothing to do"), "{}", own.out);

    // A command gets no answer about specs other than its own.
    let refused = tree
        .run(&words.replace("plan tree", "plan checkout/acme").replace(" --checkout checkout", ""))
        .expect(1);
    let place = |name: &str| tree.beside(name).canonicalize().unwrap().display().to_string();
    let expected = format!(
        "error: the daemon with this state has the specs of `{}`, not of `{}`\n  help: use its specs; to plan other specs \
         in their place: streamfleet plan TREE --checkout DIR\n",
        place("tree"),
        place("checkout/acme")
    );
    assert_eq!(refused.err, expected);
    assert_eq!(serve.stop(), Some(0));

    let alone = [words, &markdown].map(|words| tree.run(words).expect(1));
    for (with, without) in proposed.iter().zip(&alone) {
        assert_eq!(with.out, without.out);
    }
    assert_eq!(proposed[0].err.split_once('\n').unwrap().1, alone[0].err);
}
