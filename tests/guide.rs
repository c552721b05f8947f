//! The pages in `docs/guide`: their commands run as written, and their links resolve.

use std::fs;
use std::net::TcpListener;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::support::{copy, examples, memory_folder};

fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// How a fenced block of shell commands is run.
#[derive(Debug, PartialEq, Eq)]
enum Run {
    /// ```` ```sh ````: run to completion.
    ToItsEnd,
    /// ```` ```sh background ````: one command that runs until it is stopped.
    InTheBackground,
    /// ```` ```sh no-test ````: it needs root or the reader's Kubernetes cluster.
    NotHere,
}

fn blocks(page: &str) -> Vec<(Run, String)> {
    let mut blocks = Vec::new();
    let mut lines = page.lines();
    while let Some(line) = lines.next() {
        let run = match line {
            "```sh" => Run::ToItsEnd,
            "```sh background" => Run::InTheBackground,
            "```sh no-test" => Run::NotHere,
            _ if line.starts_with("```sh") => panic!("`{line}` is no way to run a block"),
            _ => continue,
        };
        let commands: Vec<&str> = lines.by_ref().take_while(|line| *line != "```").collect();
        blocks.push((run, commands.join("\n")));
    }
    blocks
}

/// Runs the commands of a page in a folder with a copy of the examples and nothing else.
#[track_caller]
fn follow(name: &str) {
    let page = format!("{}.md", name.replace('_', "-"));
    let text = fs::read_to_string(root().join("docs/guide").join(&page)).unwrap();
    let folder = memory_folder();
    copy(&examples(), &folder.path().join("examples"));
    let port = TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port();
    let mut script = String::from("set -euo pipefail\ntrap 'kill $(jobs -p) 2>/dev/null || true' EXIT\n");
    let mut runs = 0;
    for (run, commands) in blocks(&text) {
        match run {
            Run::ToItsEnd => script += &format!("{commands}\n"),
            Run::InTheBackground => script += &format!("exec {commands} &\n"),
            Run::NotHere => continue,
        }
        runs += 1;
    }
    assert!(runs > 0, "{page} has no commands: does it need to be followed?");
    let program = Path::new(env!("CARGO_BIN_EXE_streamfleet"));
    let path = std::env::var("PATH").unwrap();
    let output = Command::new("bash")
        .arg("-c")
        .arg(script.replace(":3000", &format!(":{port}")))
        .current_dir(folder.path())
        .env_clear()
        .env("PATH", format!("{}:{path}", program.parent().unwrap().display()))
        .env("HOME", folder.path())
        .env("USER", "tester")
        .output()
        .unwrap();
    let [out, err] = [output.stdout, output.stderr].map(|bytes| String::from_utf8_lossy(&bytes).into_owned());
    assert!(output.status.success(), "{page} can't be followed\n--- stdout\n{out}\n--- stderr\n{err}");
}

/// One test per page, so that they run in parallel.
macro_rules! pages {
    ($($name:ident),*) => {
        $(#[test] fn $name() { follow(stringify!($name)); })*
        const FOLLOWED: &[&str] = &[$(stringify!($name)),*];
    };
}

pages!(
    api,
    backup,
    console,
    deletions,
    git,
    monitoring,
    networking,
    pull_requests,
    schema_registry,
    secrets,
    specs,
    topics_and_users,
    troubleshooting
);

#[test]
fn no_page_is_forgotten() {
    for page in guide() {
        let name = page.file_stem().unwrap().to_str().unwrap().replace('-', "_");
        let can_run = blocks(&fs::read_to_string(&page).unwrap()).iter().any(|(run, _)| *run != Run::NotHere);
        assert_eq!(can_run, FOLLOWED.contains(&name.as_str()), "{name}");
    }
}

fn guide() -> Vec<PathBuf> {
    let pages = fs::read_dir(root().join("docs/guide")).unwrap();
    pages.map(|page| page.unwrap().path()).collect()
}

#[test]
fn links_lead_somewhere() {
    let mut pages = guide();
    pages.extend(
        ["README.md", "ARCHITECTURE.md", "CONTRIBUTING.md", "docs/README.md"].map(|page| root().join(page)),
    );
    for page in pages {
        let text = fs::read_to_string(&page).unwrap();
        for link in text.split("](").skip(1).filter_map(|rest| rest.split(')').next()) {
            let path = link.split('#').next().unwrap();
            if path.is_empty() || path.contains("://") {
                continue;
            }
            let file = page.parent().unwrap().join(path);
            assert!(file.exists(), "{} links to {link}", page.display());
        }
    }
}

#[test]
fn the_first_pages_are_short() {
    for (page, limit) in [("README.md", 8 * 1024), ("ARCHITECTURE.md", 10 * 1024)] {
        let size = fs::metadata(root().join(page)).unwrap().len();
        assert!(size <= limit, "{page} has {size} bytes, more than {limit}");
    }
}
