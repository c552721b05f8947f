//! Checks the table of module dependencies by reading the sources.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;
use std::path::{Path, PathBuf};

use streamfleet::component::COMPONENTS;

/// The pure core, lowest first: each module may use itself and those before it.
const CORE: [&str; 11] = [
    "parallel",
    "names",
    "problem",
    "spec",
    "config",
    "catalog",
    "component",
    "health",
    "render",
    "plan",
    "record",
];
/// Each may use the core and itself, never another effect.
const EFFECTS: [&str; 5] = ["source", "secret", "state", "target", "probe"];
const EXECUTE: &str = "execute";
/// Each may use all before it.
const SHELL: [&str; 9] = ["round", "views", "vitals", "http", "writing", "api", "ui", "daemon", "cli"];
/// Names that only components may use, beside those of their kinds in [`of_components`].
const OF_COMPONENTS: [&str; 3] = ["KafkaRebalance", "cruiseControl", "entityOperator"];
/// Custom kinds with names that other modules need: Kafka is our subject, and the plan has rules about the
/// Gateway of a fleet.
const NAMED_BY_ALL: [&str; 4] = ["Kafka", "Gateway", "GatewayClass", "Prometheus"];
/// Modules and crates that the core must not use. `clippy.toml` bans single functions.
const IMPURE: [&str; 11] = [
    "std::fs",
    "net::Tcp",
    "net::Udp",
    "net::ToSocketAddrs",
    "std::process",
    "std::env",
    "tokio",
    "tempfile",
    "sled",
    "tracing",
    "async fn",
];

fn allowed(user: &str) -> BTreeSet<&str> {
    let mut allowed = BTreeSet::from([user]);
    if let Some(rank) = CORE.iter().position(|module| *module == user) {
        allowed.extend(&CORE[..rank]);
    } else if EFFECTS.contains(&user) {
        allowed.extend(CORE);
    } else {
        allowed.extend(CORE);
        allowed.extend(EFFECTS);
        if let Some(rank) = SHELL.iter().position(|module| *module == user) {
            allowed.insert(EXECUTE);
            allowed.extend(&SHELL[..rank]);
        }
    }
    allowed
}

/// The Rust files of the core and of `src`, with their top module and their text without comments and tests.
fn sources() -> BTreeMap<PathBuf, (String, String)> {
    fn walk(folder: &Path, root: &Path, found: &mut BTreeMap<PathBuf, (String, String)>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let relative = path.strip_prefix(root).unwrap();
                let top = relative.components().next().unwrap().as_os_str().to_str().unwrap();
                let module = top.trim_end_matches(".rs").to_owned();
                let is_test = relative.file_stem().is_some_and(|stem| stem == "tests")
                    || relative.components().any(|part| part.as_os_str() == "tests");
                if !is_test {
                    found.insert(path.clone(), (module, code(&fs::read_to_string(&path).unwrap())));
                }
            }
        }
    }
    let mut found = BTreeMap::new();
    for root in ["crates/core/src", "src"] {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join(root);
        walk(&root, &root, &mut found);
    }
    found
}

/// A file's code without comments and test modules. In rustfmt's layout, an item ends with its first line
/// that begins with a brace or, without a body, with its first line.
fn code(text: &str) -> String {
    let mut lines = text.lines().filter(|line| !line.trim_start().starts_with("//"));
    let mut code = String::new();
    while let Some(line) = lines.next() {
        if line == "#[cfg(test)]" {
            let first = lines.next().unwrap_or_default();
            if !first.ends_with(';') {
                lines.find(|line| line.starts_with('}'));
            }
            continue;
        }
        code.push_str(line);
        code.push('\n');
    }
    code
}

#[test]
fn only_tests_and_comments_are_left_out_of_account() {
    let text =
        "#[cfg(test)]\nmod tests;\nuse a;\n// crate::b\n#[cfg(test)]\nmod more {\n    use c;\n}\nuse d;\n";
    assert_eq!(code(text), "use a;\nuse d;\n");
}

/// The top modules that a text names, in paths (`crate::plan::Plan`) and in each branch of
/// `use crate::{plan, spec::Fleet}`.
fn uses(text: &str) -> BTreeSet<String> {
    let mut used = BTreeSet::new();
    for after in text.split("crate::").skip(1) {
        if let Some(list) = after.strip_prefix('{') {
            let mut depth = 1;
            let mut word = String::new();
            for character in list.chars() {
                match character {
                    '{' => depth += 1,
                    '}' => depth -= 1,
                    _ => {}
                }
                if depth == 1 && (character.is_alphanumeric() || character == '_') {
                    word.push(character);
                } else if depth <= 1 && !word.is_empty() {
                    used.insert(std::mem::take(&mut word));
                }
                if depth == 0 {
                    break;
                }
            }
        } else {
            let word: String = after.chars().take_while(|c| c.is_alphanumeric() || *c == '_').collect();
            used.insert(word);
        }
    }
    used
}

#[test]
fn every_module_uses_only_those_that_the_table_allows() {
    let known: BTreeSet<&str> =
        CORE.iter().chain(&EFFECTS).chain(&[EXECUTE]).chain(&SHELL).copied().collect();
    let mut violations = Vec::new();
    for (path, (module, text)) in sources() {
        if module == "lib" || module == "main" {
            continue;
        }
        if !known.contains(module.as_str()) {
            violations.push(format!("{}: `{module}` is not in the table of ARCHITECTURE.md", path.display()));
            continue;
        }
        let allowed = allowed(&module);
        for used in uses(&text).iter().filter(|used| known.contains(used.as_str())) {
            if !allowed.contains(used.as_str()) {
                violations.push(format!("{}: `{module}` may not use `{used}`", path.display()));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn the_core_reaches_for_nothing_outside() {
    let mut violations = Vec::new();
    for (path, (module, text)) in sources() {
        if CORE.contains(&module.as_str()) {
            for impure in IMPURE.iter().filter(|impure| text.contains(**impure)) {
                violations.push(format!("{}: the core may not use `{impure}`", path.display()));
            }
        }
    }
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

/// The custom kinds of components and the API groups that are installed with them. Every component may have
/// those of Kubernetes itself.
fn of_components() -> BTreeSet<&'static str> {
    let kinds = COMPONENTS.iter().flat_map(|component| component.kinds);
    let kinds = kinds.filter(|kind| kind.custom && !NAMED_BY_ALL.contains(&kind.kind)).map(|kind| kind.kind);
    let groups = COMPONENTS.iter().filter_map(|component| component.definitions);
    kinds.chain(groups).chain(OF_COMPONENTS).collect()
}

#[test]
fn only_components_name_what_they_run() {
    let names = of_components();
    for name in ["KafkaNodePool", "KafkaUser", "KafkaTopic", "StrimziPodSet", "kafka.strimzi.io"] {
        assert!(names.contains(name), "{name} is missing in a table of `component`");
    }
    let mut violations = Vec::new();
    for (path, (module, text)) in sources() {
        if module == "component" && !path.ends_with("src/component.rs") {
            continue;
        }
        let words = |line: &str, name: &str| {
            line.match_indices(name).any(|(at, _)| {
                let next = line[at + name.len()..].chars().next();
                !next.is_some_and(|next| next.is_alphanumeric())
            })
        };
        for name in names.iter().filter(|name| text.lines().any(|line| words(line, name))) {
            violations.push(format!("{}: ask `component` instead of naming `{name}`", path.display()));
        }
    }
    assert!(violations.is_empty(), "\n{}\n", violations.join("\n"));
}

#[test]
fn the_page_that_explains_the_table_has_the_same_one() {
    let page = fs::read_to_string(Path::new(env!("CARGO_MANIFEST_DIR")).join("ARCHITECTURE.md")).unwrap();
    let row = CORE.join(" ← ");
    assert!(page.contains(&row), "ARCHITECTURE.md should say: {row}");
}

#[test]
fn uses_are_found_in_every_form() {
    let text = "use crate::{plan::{Plan, Step}, spec};\nfn f() -> crate::render::Manifest {}";
    let expected: BTreeSet<String> = ["plan", "render", "spec"].map(str::to_owned).into();
    assert_eq!(uses(text), expected);
}
