//! Starts that end at once. The log of a container, of a composition file and of a pod is standard error; the journal has
//! the same lines (`systemd.rs`).

use std::fs;
use std::net::TcpListener;

use serde_json::Value;

use crate::support::{Run, Tree};

const FOLDERS: &str = "state_dir = \"state\"\noutput_dir = \"output\"\n";
const SERVE: &str = "serve --config settings.toml";

/// The last lines of the log: what was attempted, why it failed, what to do.
fn last(run: &Run) -> Vec<&str> {
    let start = run.err.find("error: ").unwrap_or_else(|| panic!("there is no error: {}", run.err));
    run.err[start..].lines().collect()
}

struct Refusal<'r> {
    case: &'r str,
    settings: &'r str,
    what: &'r str,
    help: &'r str,
}

const REFUSALS: [Refusal<'_>; 4] = [
    Refusal {
        case: "a wrong value",
        settings: "[policy]\nmode = \"aprove\"\n",
        what: "cannot parse the config file `settings.toml`",
        help: "did you mean `approve`?",
    },
    Refusal {
        case: "a Secret without the certificate",
        settings: "[api]\nlisten = \"127.0.0.1:0\"\ntls_cert_file = \"tls/tls.crt\"\ntls_key_file = \"tls/tls.key\"\n",
        what: "cannot read `api.tls_cert_file`, `",
        help: "set the path of the file, or create it",
    },
    Refusal {
        case: "a Secret without the webhook's secret",
        settings: "[api]\nlisten = \"127.0.0.1:0\"\n[source]\ngit = \"specs.git\"\nwebhook_secret_file = \"git/secret\"\n",
        what: "cannot read the webhook secret",
        help: "check what is in the file, and that the user that runs streamfleet can read it",
    },
    Refusal {
        case: NEWER,
        settings: "",
        what: "cannot open the state in `",
        help: "install that version again; to return to an earlier one, move the folder away and restore an older backup: \
               streamfleet restore FILE TREE",
    },
];

const NEWER: &str = "a state of a newer version";

fn make_newer(tree: &Tree) {
    tree.run("apply tree --yes --config settings.toml").expect(0);
    let registry = tree.beside("state/registry.jsonl");
    let text = fs::read_to_string(&registry).unwrap();
    fs::write(registry, text.replacen("\"v\":1", "\"v\":2", 1)).unwrap();
}

#[test]
fn a_start_that_fails_ends_with_one_sentence_that_says_what_to_do() {
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let listen = format!("[api]\nlisten = \"{}\"\n", taken.local_addr().unwrap());
    let port = Refusal {
        case: "a port in use",
        settings: &listen,
        what: "cannot listen on 127.0.0.1:",
        help: "choose another address with `--listen`, the variable STREAMFLEET_LISTEN or `api.listen` in the config file, or \
               stop the program that listens there",
    };
    for Refusal { case, settings, what, help } in REFUSALS.into_iter().chain([port]) {
        let tree = Tree::example("quickstart");
        fs::write(tree.beside("settings.toml"), FOLDERS).unwrap();
        if case == NEWER {
            make_newer(&tree);
        }
        fs::write(tree.beside("settings.toml"), format!("{FOLDERS}{settings}")).unwrap();
        let specs = if settings.contains("git = ") { "" } else { " --specs tree" };
        let refused = tree.run(&format!("{SERVE}{specs}")).expect(1);
        let said = last(&refused);
        assert!(said[0].starts_with(&format!("error: {what}")), "{case}: {said:?}");
        let advice = said.last().unwrap().strip_prefix("  help: ");
        let advice = advice.unwrap_or_else(|| panic!("{case}: {said:?}"));
        assert!(advice.starts_with(help), "{case}: {advice}");

        // A collector of logs gets the same as one object.
        let refused = tree.run(&format!("{SERVE}{specs} --log-format json")).expect(1);
        let entry: Value = serde_json::from_str(refused.err.lines().last().unwrap()).unwrap();
        assert_eq!((&entry["level"], &entry["fields"]["hint"]), (&"ERROR".into(), &advice.into()), "{case}");
        assert!(entry["message"].as_str().unwrap().starts_with(what), "{case}: {entry}");
    }
}
