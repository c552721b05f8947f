//! No secret that came in through the API is found anywhere afterwards.

use std::fs;
use std::path::Path;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use serde_json::json;

use super::exchanges::{certificate, fleet};
use super::{Api, git};
use crate::support::Tree;

fn read_all(folder: &Path, found: &mut Vec<(String, Vec<u8>)>) {
    for entry in fs::read_dir(folder).unwrap().map(Result::unwrap) {
        let path = entry.path();
        if path.is_dir() {
            read_all(&path, found);
        } else if path.is_file() {
            found.push((path.display().to_string(), fs::read(&path).unwrap()));
        }
    }
}

#[test]
fn a_secret_that_was_sent_is_nowhere_in_the_clear() {
    let tree = Tree::example("quickstart");
    let api = Api::start_git(&tree);
    api.settle();
    let (cert, key) = certificate("streams.acme.example.com");
    let domain = json!({"organization": "acme", "domain": "streams.acme.example.com", "tls_cert": cert, "tls_key": key});
    api.call("POST /organizations/acme/base-domains", domain.clone()).expect(201);
    api.call("POST /organizations/acme/infrastructure", fleet()).expect(201);
    let account = json!({
        "organization": "acme", "identifier": "aws", "provider": "aws", "region": "eu-central-1",
        "credentials": "[default]\naws_access_key_id = AKIAEXAMPLE\naws_secret_access_key = cloud-secret-71c\n",
    });
    api.call("POST /organizations/acme/cloud-accounts", account).expect(201);
    // Secrets in refused requests count, too.
    let mut wrong = domain;
    wrong["tls_key"] = json!(key.replace("BEGIN", "BEGUN"));
    api.call("PUT /organizations/acme/base-domains/streams.acme.example.com", wrong).expect(422);
    let mut wrong = fleet();
    wrong["identifier"] = json!("asia");
    wrong["max_tenants"] = json!("kubeconfig-token-3f9a2c");
    api.call("POST /organizations/acme/infrastructure", wrong).expect(422);
    // A new value in place of the old one, and a plan with both.
    let (cert, other) = certificate("streams.acme.example.com");
    let patch = json!({"tls_cert": cert, "tls_key": other});
    api.call("PATCH /organizations/acme/base-domains/streams.acme.example.com?dry_run=true", patch.clone())
        .expect(200);
    api.call("PATCH /organizations/acme/base-domains/streams.acme.example.com", patch).expect(200);
    let plan = api.get("/v1/plan").expect(200).body;
    api.serve
        .until("all of it is planned", || api.serve.log().contains("base domain acme/streams").then_some(()));
    assert_eq!(api.serve.stop(), Some(0));

    let whole = [key.as_str(), &other];
    let lines = whole.map(middle_line);
    let secrets = ["kubeconfig-token-3f9a2c", "cloud-secret-71c", &lines[0], &lines[1]];
    let forms: Vec<String> = secrets.into_iter().chain(whole).flat_map(forms).collect();
    // Guards against a search that finds nothing at all.
    for (kind, text) in [("plain", key.clone()), ("base64", STANDARD.encode(&other))] {
        fs::write(tree.beside("state").join(kind), text).unwrap();
        let mut found = Vec::new();
        read_all(&tree.beside("state"), &mut found);
        let place = tree.beside("state").join(kind).display().to_string();
        assert!(leaks(&found, &forms).iter().any(|(found, _)| *found == place), "{kind}");
        fs::remove_file(place).unwrap();
    }
    let repository = tree.beside("specs.git");
    let history = git(&repository, "log --all --patch --format=%B").into_bytes();
    let mut found = vec![("plan".to_owned(), plan.to_string().into_bytes()), ("history".to_owned(), history)];
    git(&tree.path(), "pull --quiet ../specs.git main");
    for folder in ["tree", "state", "output"] {
        read_all(&tree.beside(folder), &mut found);
    }
    found.push(("log".to_owned(), fs::read(tree.beside("serve.log")).unwrap()));
    assert!(found.len() > 50);
    // The directory target writes Secrets to a folder of their own, on purpose.
    found.retain(|(place, _)| !(place.contains("/output/") && place.contains("/secrets/")));
    assert_eq!(leaks(&found, &forms), []);
}

/// A line from the middle of a PEM; the first lines are the same for all keys.
fn middle_line(pem: &str) -> String {
    let lines: Vec<&str> = pem.lines().filter(|line| !line.starts_with('-')).collect();
    lines[lines.len() / 2].to_owned()
}

/// Forms of a secret: as it is, and in base64 at each of the three alignments.
fn forms(secret: &str) -> Vec<String> {
    let shifted = (0..3).map(|shift| {
        let encoded = STANDARD.encode([&b"xxx"[..shift], secret.as_bytes()].concat());
        encoded[4..encoded.len() - 4].to_owned()
    });
    std::iter::once(secret.to_owned()).chain(shifted).collect()
}

fn leaks<'a>(found: &'a [(String, Vec<u8>)], forms: &'a [String]) -> Vec<(&'a str, &'a str)> {
    let all = found.iter().flat_map(|(place, bytes)| {
        let text = String::from_utf8_lossy(bytes);
        forms.iter().filter(move |form| text.contains(form.as_str())).map(move |form| (&**place, &**form))
    });
    all.collect()
}
