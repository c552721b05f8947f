//! Settings that change while the daemon runs.

use std::fs;

use super::quiet;
use crate::support::serve::Serve;

#[test]
fn what_can_change_holds_after_a_hangup_and_what_cannot_is_told() {
    let tree = quiet();
    let settings = |text: &str| fs::write(tree.beside("settings.toml"), text).unwrap();
    let anew = |serve: &Serve<'_>, words: &[&str]| {
        serve.signal("HUP");
        serve.says(words);
    };
    settings("[secrets]\nwrite_to_output = true\n");
    let serve = Serve::start(&tree, "serve --specs tree --config settings.toml");
    serve.says(&["done", "cluster acme/orders"]);
    anew(&serve, &["settings reloaded; no setting changed that can change without a restart"]);

    settings("[policy]\napproval_hours = 0\n");
    anew(&serve, &["cannot reload the settings; the previous ones stay active", "must be from 1 to 168"]);

    settings("[policy]\napproval_hours = 48\n\n[source]\nbranch = \"next\"\n");
    anew(
        &serve,
        &[
            "restart the service to use some of the changed settings; until then the previous values stay active",
            "settings=\"source.branch\"",
        ],
    );
    serve.says(&["settings reloaded; the new ones are active", "settings=\"policy.approval_hours\""]);

    // Rendered manifests follow.
    let sample = tree.run("config sample").expect(0).out;
    let sizes = sample.split("#[units.dev]").nth(1).unwrap().split("#[units.standard]").next().unwrap();
    let lines = sizes.lines().filter_map(|line| line.strip_prefix('#')).filter(|line| !line.starts_with(' '));
    let keys: String = lines.map(|line| format!("{line}\n")).collect();
    settings(&format!("[units.dev]\n{}", keys.replace("broker_heap_mib = 1024", "broker_heap_mib = 1025")));
    anew(&serve, &["settings=\"policy.approval_hours, units.dev.broker_heap_mib\""]);
    serve.says(&["decided", "cluster acme/sandbox", "cause=\"settings\""]);
    assert_eq!(serve.stop(), Some(0));
}
