//! The HTTP API as scripts call it: the real binary, a real socket, and specs in a folder or a repository.

mod about;
mod allowance;
mod away;
mod base_path;
mod changes;
mod cost;
mod disconnected_writers;
pub mod exchanges;
mod files;
mod foreseen;
mod mistakes;
mod offers;
mod reads;
mod removed;
mod roles;
mod shared;
mod sign_in;
mod streams;
mod tokens;
mod topics;
mod trace;
mod unreached;

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::service::http::{address, send};
use crate::support::Tree;
use crate::support::serve::Serve;

pub const ROOT: &str = "root@streamfleet.example.com";

pub struct Api<'t> {
    pub serve: Serve<'t>,
    pub address: String,
    pub token: String,
}

#[derive(Debug)]
pub struct Reply {
    pub status: u16,
    pub head: String,
    pub body: Value,
}

impl<'t> Api<'t> {
    pub fn start(tree: &'t Tree) -> Self {
        Self::start_with(tree, "serve --specs tree --config settings.toml", "")
    }

    /// Starts with the specs in a repository beside the tree, `specs.git`, to which the tree is pushed.
    pub fn start_git(tree: &'t Tree) -> Self {
        git(&tree.beside(""), "init --quiet --bare --initial-branch=main specs.git");
        git(&tree.path(), "init --quiet --initial-branch=main");
        push(tree, "first");
        let source =
            "[source]\ngit = \"specs.git\"\ninterval_seconds = 3600\n[secrets]\nallow_plain_in_git = true\n";
        Self::start_with(tree, "serve --config settings.toml", source)
    }

    pub fn start_with(tree: &'t Tree, words: &str, more: &str) -> Self {
        let api = format!("[api]\nlisten = \"127.0.0.1:0\"\nsuper_user_emails = [\"{ROOT}\"]\n");
        let settings = format!("state_dir = \"state\"\noutput_dir = \"output\"\n{api}{more}");
        fs::write(tree.beside("settings.toml"), settings).unwrap();
        let serve = Serve::start(tree, words);
        let address = address(&serve);
        let token = new_token(tree, ROOT, "*", "admin");
        Api { serve, address, token }
    }

    #[track_caller]
    pub fn call(&self, what: &str, body: impl Into<Value>) -> Reply {
        self.call_as(&self.token, what, &[], body)
    }

    #[track_caller]
    pub fn get(&self, path: &str) -> Reply {
        self.call(&format!("GET {path}"), Value::Null)
    }

    #[track_caller]
    fn call_as(&self, token: &str, what: &str, headers: &[(&str, &str)], body: impl Into<Value>) -> Reply {
        let body = match body.into() {
            Value::Null => String::new(),
            body => body.to_string(),
        };
        let authorization = format!("Bearer {token}");
        let kind =
            if what.starts_with("PATCH") { "application/merge-patch+json" } else { "application/json" };
        let mut all = vec![("Authorization", authorization.as_str()), ("Content-Type", kind)];
        all.extend(headers);
        Reply::of(send(&self.address, what, &all, &body))
    }

    pub fn settle(&self) {
        self.serve.until("all is made", || {
            let clusters = self.get("/v1/clusters");
            let items = clusters.body["items"].as_array()?.clone();
            (!items.is_empty() && items.iter().all(|cluster| cluster["status"] == "Written")).then_some(())
        });
    }
}

impl Reply {
    #[track_caller]
    fn of(answer: crate::service::http::Answer) -> Reply {
        let crate::service::http::Answer { status, head, body, .. } = answer;
        let body = if body.is_empty() { Value::Null } else { serde_json::from_str(&body).expect(&body) };
        Reply { status, head, body }
    }

    #[track_caller]
    pub fn expect(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{}{:#}", self.head, self.body);
        self
    }

    #[track_caller]
    fn refused(&self, status: u16, code: &str, detail: &str) {
        assert_eq!(
            (self.status, self.body["code"].as_str(), self.body["detail"].as_str()),
            (status, Some(code), Some(detail)),
            "{:#}",
            self.body
        );
        assert_eq!(self.body["status"], status);
        assert!(self.header("content-type").unwrap_or_default().starts_with("application/problem+json"));
        let id = self.header("x-request-id");
        assert_eq!(self.body["request_id"].as_str(), id.as_deref(), "{}", self.head);
    }

    fn header(&self, name: &str) -> Option<String> {
        let mut lines = self.head.lines().filter_map(|line| line.split_once(": "));
        lines.find(|(known, _)| *known == name).map(|(_, value)| value.to_owned())
    }
}

#[track_caller]
pub fn new_token(tree: &Tree, owner: &str, organization: &str, access: &str) -> String {
    let whole = if organization == "*" {
        "--all-organizations".to_owned()
    } else {
        format!("--organization {organization}")
    };
    let words = format!(
        "token create tree --config settings.toml --name test --owner {owner} {whole} --access {access}"
    );
    let run = tree.run(&words).expect(0);
    let token = run.out.trim().to_owned();
    assert!(token.starts_with("sf_"), "{}{}", run.out, run.err);
    token
}

#[track_caller]
pub fn git(folder: &Path, words: &str) -> String {
    let mut git = Command::new("git");
    git.args(["-c", "user.name=Bob", "-c", "user.email=bob@example.com", "-c", "commit.gpgsign=false"]);
    git.args(words.split_whitespace()).current_dir(folder);
    git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
    let output = git.output().unwrap();
    assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
    String::from_utf8(output.stdout).unwrap().trim_end().to_owned()
}

#[track_caller]
fn push(tree: &Tree, message: &str) {
    git(&tree.path(), "add --all");
    git(&tree.path(), &format!("commit --quiet --message={message}"));
    git(&tree.path(), "push --quiet ../specs.git main");
}
