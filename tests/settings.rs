//! The settings as a file has them: checked, shown with what says so, and written out in full.

use std::fs;
use std::path::Path;

use streamfleet::config::Config;

use crate::support::Tree;

/// Set to rewrite the sample.
const UPDATE: &str = "UPDATE_EXPECTED";

#[test]
fn the_sample_is_what_the_program_prints() {
    let path = Path::new(env!("CARGO_MANIFEST_DIR")).join("systemd/streamfleet.toml");
    let tree = Tree::empty();
    let made = tree.run("config sample").expect(0).out;
    if std::env::var_os(UPDATE).is_some() {
        fs::write(&path, &made).unwrap();
    }
    let kept = fs::read_to_string(&path).unwrap_or_default();
    assert_eq!(kept, made, "it is stale; rewrite it: {UPDATE}=1 cargo test --test all settings");
    tree.write("streamfleet.toml", made);
    let sound = "tree/streamfleet.toml is sound\n";
    assert_eq!(tree.run("config check tree/streamfleet.toml").expect(0).out, sound);
}

#[test]
fn each_setting_is_shown_with_what_says_so() {
    let tree = Tree::example("quickstart");
    let file = "output_dir = \"made\"\n\n[policy]\napproval_hours = 12\n";
    fs::write(tree.beside("settings.toml"), file).unwrap();
    let words = "config show tree --config settings.toml --secrets-dir hidden --format json";
    let shown = tree.run_with(words, &[("STREAMFLEET_STATE_DIR", "kept")], "").expect(0).out;
    let shown: Vec<serde_json::Value> = serde_json::from_str(&shown).unwrap();
    for (name, value, from) in [
        ("config", "settings.toml", "flag --config"),
        ("state_dir", "kept", "variable STREAMFLEET_STATE_DIR"),
        ("output_dir", "made", "file settings.toml"),
        ("secrets_dir", "hidden", "flag --secrets-dir"),
        ("policy.approval_hours", "12", "file settings.toml"),
        ("policy.cluster_deletions_per_hour", "1", "default"),
        ("targets.allow_addresses", "[]", "default"),
    ] {
        let setting = shown.iter().find(|setting| setting["name"] == name).unwrap();
        let said = setting["value"].as_str().map_or_else(|| setting["value"].to_string(), str::to_owned);
        assert_eq!((said.as_str(), setting["from"].as_str().unwrap()), (value, from), "{name}");
    }
    tree.run("config show tree --config settings.toml")
        .expect(0)
        .says(&["policy.approval_hours                    12", "file settings.toml"]);
}

#[test]
fn settings_that_are_not_sound_are_refused_with_what_to_do() {
    let operator = format!(
        "[operators.strimzi.\"1.2.0\"]\nmanifests = \"gone.yaml\"\nsha256 = \"{}\"\nimages = [\"quay.io/strimzi/\"]\n",
        "0".repeat(64)
    );
    let dev = toml::to_string(&Config::default().units.dev).unwrap();
    let lacks = |line: &str| line.starts_with("controllers") || line.starts_with("storage_gib");
    let half: Vec<&str> =
        ["[units.dev]"].into_iter().chain(dev.lines().filter(|line| !lacks(line))).collect();
    let half = half.join("\n") + "\n";
    let cases = [
        (
            "[policy]\napproval_hour = 3\n",
            "error: could not understand the config file `settings.toml`\n\
             TOML parse error at line 2, column 1\n  |\n2 | approval_hour = 3\n  | ^^^^^^^^^^^^^\n\
             unknown field `approval_hour`, expected one of `mode`, `cluster_deletions_per_hour`, `approval_hours`\n  \
             help: did you mean `approval_hours`?\n",
        ),
        (
            "[policy]\napproval_hours = \"a day\"\n",
            "error: could not understand the config file `settings.toml`\n\
             TOML parse error at line 2, column 18\n  |\n2 | approval_hours = \"a day\"\n  |                  ^^^^^^^\n\
             invalid type: string \"a day\", expected u32\n  \
             help: `streamfleet explain config` says what there is\n",
        ),
        (
            "[policy]\nmode = \"aprove\"\n",
            "error: could not understand the config file `settings.toml`\n\
             TOML parse error at line 2, column 8\n  |\n2 | mode = \"aprove\"\n  |        ^^^^^^^^\n\
             unknown variant `aprove`, expected one of `auto`, `approve`, `plan-only`\n  \
             help: did you mean `approve`?\n",
        ),
        (
            "[api]\nlisten = \"localhost\"\n",
            "error: could not understand the config file `settings.toml`\n\
             TOML parse error at line 2, column 10\n  |\n2 | listen = \"localhost\"\n  |          ^^^^^^^^^^^\n\
             invalid socket address syntax\n  \
             help: name an address of this host and a port, as `127.0.0.1:3000` or `[::1]:3000`\n",
        ),
        (
            "state_dir = \"made\"\noutput_dir = \"./made/\"\n",
            "error: the config file `settings.toml` is not sound\n\
             `state_dir` and `output_dir` are one folder, `made`: what is remembered, what is written for others and what \
             is secret would lie among each other\n  \
             help: give each of them a folder of its own\n",
        ),
        (
            half.as_str(),
            "error: could not understand the config file `settings.toml`\n\
             TOML parse error at line 1, column 1\n  |\n1 | [units.dev]\n  | ^^^^^^^^^^^\n\
             `[units.dev]` lacks `controllers`, `storage_gib`: the sizes of a profile are given all together or not at \
             all, so that no cluster gets a mixture of two products\n  \
             help: take what is lacking from what `streamfleet config sample` prints, or leave the table out\n",
        ),
        (
            operator.as_str(),
            "error: the config file `settings.toml` is not sound\n\
             the manifests of Strimzi 1.2.0 can't be read from `gone.yaml`: No such file or directory (os error 2)\n  \
             help: have whoever runs the installation put the file there, or name another one in its settings\n",
        ),
    ];
    let tree = Tree::empty();
    for (text, expected) in cases {
        fs::write(tree.beside("settings.toml"), text).unwrap();
        assert_eq!(tree.run("config check settings.toml").expect(1).err, expected);
    }
    tree.run("plan tree --state-dir made --output-dir made").expect(1).says(&[
        "error: `state_dir` and `output_dir` are one folder, `made`: what is remembered",
        "help: give each of them a folder of its own",
    ]);
    tree.run("config check gone.toml").expect(1).says(&[
        "error: could not read the config file `gone.toml`",
        "because: No such file or directory",
        "help: `streamfleet config sample` prints one to start from",
    ]);
}
