//! A repository over ssh, from a server with a known host key that accepts one user key.

use std::fs;
use std::net::TcpListener;

use super::{ORDERS, SERVE, Specs, replicas};
use crate::support::serve::Serve;
use crate::support::ssh::{Server, make_key};

struct Remote {
    specs: Specs,
    server: Server,
}

impl Remote {
    fn new(flags: &[&str]) -> Remote {
        let specs = Specs::new();
        let folder = specs.folder();
        ["host", "user"].iter().for_each(|name| make_key(&folder, name, ""));
        let server = Server::start(&folder, flags);
        fs::write(folder.join("known_hosts"), server.known_as(&folder, "host")).unwrap();
        Remote { specs, server }
    }

    fn set(&self, key: &str, more: &str) {
        let url = self.server.url("specs.git");
        let text = format!("git = \"{url}\"\nssh_key = \"{key}\"\nknown_hosts = \"known_hosts\"\n{more}");
        self.specs.set(&text, true);
    }

    #[track_caller]
    fn refusal(&self) -> String {
        let said = self.specs.tree.run("plan --config config.toml").expect(1).err;
        let words = said.split(' ').map(|word| match word.strip_prefix("SHA256:") {
            Some(_) => "SHA256:DIGEST,",
            None => word,
        });
        let said = words.collect::<Vec<_>>().join(" ").replace(&self.server.port.to_string(), "PORT");
        // The path ends with a slash.
        said.replace(self.specs.folder().to_str().unwrap(), "")
    }
}

#[test]
fn a_key_opens_a_repository_over_ssh_on_a_server_that_is_known() {
    let remote = Remote::new(&[]);
    let specs = &remote.specs;
    remote.set("user", "");
    specs.tree.run("plan --config config.toml").expect(2);
    let serve = Serve::start(&specs.tree, SERVE);
    replicas(&serve, specs, "3");
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    specs.push("grow");
    serve.signal("HUP");
    replicas(&serve, specs, "6");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_server_or_a_key_that_is_not_the_right_one_is_refused_with_what_to_do() {
    let remote = Remote::new(&[]);
    let folder = remote.specs.folder();
    make_key(&folder, "other", "");
    make_key(&folder, "locked", "hunter2");
    let mut said = Vec::new();
    let mut refused = |what: &str, key: &str| {
        remote.set(key, "");
        said.push(format!("-- {what}\n{}", remote.refusal()));
    };
    refused("another key", "other");
    refused("a key with a passphrase", "locked");
    refused("a public key", "user.pub");
    refused("no key", "gone");
    fs::write(folder.join("known_hosts"), "").unwrap();
    refused("an unknown server", "user");
    fs::write(folder.join("known_hosts"), remote.server.known_as(&folder, "other")).unwrap();
    refused("a server with another key", "user");
    let revoked = format!("@revoked {}", remote.server.known_as(&folder, "host"));
    fs::write(folder.join("known_hosts"), revoked).unwrap();
    refused("a server whose key is revoked", "user");
    fs::remove_file(folder.join("known_hosts")).unwrap();
    refused("no file of servers", "user");
    insta::assert_snapshot!(said.join("\n"));
}

#[test]
fn a_repository_with_objects_of_another_form_is_refused() {
    let remote = Remote::new(&[]);
    let specs = &remote.specs;
    specs.git("init --quiet --bare --object-format=sha256 ../other.git");
    specs.git("init --quiet --object-format=sha256 --initial-branch=main ../other");
    specs.git("-C ../other commit --quiet --allow-empty --message=first");
    specs.git("-C ../other push --quiet ../other.git main");
    let url = remote.server.url("other.git");
    specs.set(&format!("git = \"{url}\"\nssh_key = \"user\"\nknown_hosts = \"known_hosts\""), true);
    specs.tree.run("plan --config config.toml").expect(1).says(&["it is a SHA-256 repository"]);
}

#[test]
fn a_server_that_says_nothing_holds_up_nothing() {
    let remote = Remote::new(&["-silent"]);
    let late = ["timed out after 1 s", "raise `source.timeout_seconds`"];
    remote.set("user", "timeout_seconds = 1");
    remote.specs.tree.run("plan --config config.toml").expect(1).says(&late);
    // A server that doesn't even send an ssh banner.
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let url = format!("ssh://git@{}/specs.git", silent.local_addr().unwrap());
    let text =
        format!("git = \"{url}\"\nssh_key = \"user\"\nknown_hosts = \"known_hosts\"\ntimeout_seconds = 1");
    remote.specs.set(&text, true);
    remote.specs.tree.run("plan --config config.toml").expect(1).says(&late);
}
