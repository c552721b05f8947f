//! Settings files: validation, display with the origin of each value, and the full sample.

use std::fs;
use std::path::Path;

use streamfleet::config::Config;

use crate::support::Tree;

/// Environment variable that makes the test rewrite the sample.
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
    let sound = "tree/streamfleet.toml is valid\n";
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
    let beside = |name: &str| tree.beside(name).to_str().unwrap().to_owned();
    for (name, value, from) in [
        ("config", beside("settings.toml").as_str(), "flag --config"),
        ("state_dir", beside("kept").as_str(), "variable STREAMFLEET_STATE_DIR"),
        ("output_dir", beside("made").as_str(), "file settings.toml"),
        ("secrets_dir", beside("hidden").as_str(), "flag --secrets-dir"),
        ("policy.approval_hours", "12", "file settings.toml"),
        ("policy.cluster_deletions_per_hour", "1", "default"),
        ("targets.allow_addresses", "[]", "default"),
        ("targets.in_cluster", "[]", "default"),
    ] {
        let setting = shown.iter().find(|setting| setting["name"] == name).unwrap();
        let said = setting["value"].as_str().map_or_else(|| setting["value"].to_string(), str::to_owned);
        assert_eq!((said.as_str(), setting["from"].as_str().unwrap()), (value, from), "{name}");
    }
    let listen = |variable: &str| -> Vec<String> {
        let variables = [
            ("STREAMFLEET_LISTEN", variable),
            ("STREAMFLEET_SUPER_USER_EMAILS", if variable == "default" { "ada@example.com" } else { "" }),
        ];
        let variables = if variable == "default" { &variables[1..] } else { &variables[..] };
        let words = "config show tree --config settings.toml --format json";
        let shown = tree.run_with(words, variables, "").expect(0).out;
        let shown: Vec<serde_json::Value> = serde_json::from_str(&shown).unwrap();
        let setting = shown.iter().find(|setting| setting["name"] == "api.listen").unwrap();
        vec![setting["value"].to_string(), setting["from"].as_str().unwrap().to_owned()]
    };
    assert_eq!(listen(""), ["null", "default"]);
    assert_eq!(listen("default"), ["\"127.0.0.1:3000\"", "default"]);
    assert_eq!(listen("[::1]:80"), ["\"[::1]:80\"", "variable STREAMFLEET_LISTEN"]);
    fs::write(tree.beside("settings.toml"), format!("{file}[api]\nlisten = \"127.0.0.1:80\"\n")).unwrap();
    assert_eq!(listen(""), ["\"127.0.0.1:80\"", "file settings.toml"]);
    assert_eq!(listen("none"), ["\"none\"", "variable STREAMFLEET_LISTEN"]);
    assert_eq!(
        tree.run_with("plan tree", &[("STREAMFLEET_LISTEN", "3000")], "").expect(1).err,
        "error: the variable STREAMFLEET_LISTEN is `3000`, which is not an address and a port\n  help: use an address of \
         this host and a port, such as `127.0.0.1:3000` or `[::1]:3000`, or `none` to open no port\n"
    );
    let super_users = |variable: &str| -> Vec<String> {
        let shown = tree.run_with(
            "config show tree --config settings.toml --format json",
            &[("STREAMFLEET_SUPER_USER_EMAILS", variable)],
            "",
        );
        let shown: Vec<serde_json::Value> = serde_json::from_str(&shown.expect(0).out).unwrap();
        let setting = shown.iter().find(|setting| setting["name"] == "api.super_user_emails").unwrap();
        vec![setting["value"].to_string(), setting["from"].as_str().unwrap().to_owned()]
    };
    assert_eq!(super_users(""), ["[]", "default"]);
    fs::write(
        tree.beside("settings.toml"),
        format!("{file}[api]\nsuper_user_emails = [\"ada@example.com\"]\n"),
    )
    .unwrap();
    assert_eq!(super_users(" , "), ["[\"ada@example.com\"]", "file settings.toml"]);
    let variable = "variable STREAMFLEET_SUPER_USER_EMAILS";
    assert_eq!(
        super_users("grace@example.com, joan@example.com,"),
        ["[\"grace@example.com\",\"joan@example.com\"]", variable]
    );
    let wrong = [("STREAMFLEET_SUPER_USER_EMAILS", "grace@example.com joan@example.com")];
    assert_eq!(
        tree.run_with("plan tree", &wrong, "").expect(1).err,
        "error: the variable STREAMFLEET_SUPER_USER_EMAILS contains `grace@example.com joan@example.com`, which is not an \
         e-mail address\n  help: list e-mail addresses with commas between them: ada@example.com,grace@example.com\n"
    );
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
            "error: cannot parse the config file `settings.toml`\nTOML parse error at line 2, column 1\n  |\n2 | \
             approval_hour = 3\n  | ^^^^^^^^^^^^^\nunknown field `approval_hour`, expected one of `mode`, \
             `cluster_deletions_per_hour`, `topic_deletions_per_hour`, `approval_hours`, \
             `maintenance`, `certificate_renewal`\n  help: did you mean `approval_hours`?\n",
        ),
        (
            "[policy]\napproval_hours = \"a day\"\n",
            "error: cannot parse the config file `settings.toml`\nTOML parse error at line 2, column 18\n  |\n2 | \
             approval_hours = \"a day\"\n  |                  ^^^^^^^\ninvalid type: string \"a day\", expected u32\n  \
             help: `streamfleet explain config` lists the settings\n",
        ),
        (
            "[policy]\nmode = \"aprove\"\n",
            "error: cannot parse the config file `settings.toml`\nTOML parse error at line 2, column 8\n  |\n2 | mode = \
             \"aprove\"\n  |        ^^^^^^^^\nunknown variant `aprove`, expected one of `auto`, `approve`, `plan-only`\n  \
             help: did you mean `approve`?\n",
        ),
        (
            "[api]\nlisten = \"localhost\"\n",
            "error: cannot parse the config file `settings.toml`\nTOML parse error at line 2, column 10\n  |\n2 | listen = \
             \"localhost\"\n  |          ^^^^^^^^^^^\nit is no address with a port, such as 127.0.0.1:3000\n  help: use an address of this host \
             and a port, such as `127.0.0.1:3000` or `[::1]:3000`, or `none` to open no port\n",
        ),
        (
            "[acme]\ndirectory = \"http://ca.example.com/dir\"\nagree_to_terms = true\n",
            "error: cannot parse the config file `settings.toml`\n`acme.directory` must be an https URL\n  help: `streamfleet \
             explain config` lists the settings\n",
        ),
        (
            "[acme]\ndirectory = \"https://ca.example.com/dir\"\nagree_to_terms = false\n",
            "error: cannot parse the config file `settings.toml`\n`acme.agree_to_terms` is false: read the terms of the \
             authority, and set it to true if you agree\n  help: `streamfleet explain config` lists the settings\n",
        ),
        (
            "[acme]\ndirectory = \"https://ca.example.com/dir\"\nagree_to_terms = true\ncontact = [\"kafka@example.com\"]\n",
            "error: cannot parse the config file `settings.toml`\n`acme.contact` has `kafka@example.com`, and must be like \
             `mailto:kafka@example.com`\n  help: `streamfleet explain config` lists the settings\n",
        ),
        (
            "[acme]\ndirectory = \"https://ca.example.com/dir\"\nagree_to_terms = true\nroots = \"gone.pem\"\n",
            "error: the config file `settings.toml` is invalid\nthe file that `acme.roots` names can't be read\n  help: correct \
             `acme.roots` in the settings\n",
        ),
        (
            "state_dir = \"made\"\noutput_dir = \"./made/\"\n",
            "error: the config file `settings.toml` is invalid\n`state_dir` and `output_dir` are the same folder, \
             `DIR/made`: state, output and secrets must be separate\n  help: use a separate folder for each\n",
        ),
        (
            "state_dir = \"~/state\"\n",
            "error: the config file `settings.toml` is invalid\n`state_dir` begins with `~`, which only a shell expands\n  \
             help: write the whole path\n",
        ),
        (
            "[api]\nlisten = \"localhost:3000\"\n",
            "error: cannot parse the config file `settings.toml`\nTOML parse error at line 2, column 10\n  |\n2 | listen = \
             \"localhost:3000\"\n  |          ^^^^^^^^^^^^^^^^\nit is no address with a port, such as 127.0.0.1:3000\n  help: use an address of \
             this host and a port, such as `127.0.0.1:3000` or `[::1]:3000`, or `none` to open no port\n",
        ),
        (
            half.as_str(),
            "error: cannot parse the config file `settings.toml`\nTOML parse error at line 1, column 1\n  |\n1 | \
             [units.dev]\n  | ^^^^^^^^^^^\n`[units.dev]` lacks `controllers`, `storage_gib`: a profile needs all of its \
             sizes or none\n  help: copy the missing keys from `streamfleet config sample`, or remove the table\n",
        ),
        (
            operator.as_str(),
            "error: the config file `settings.toml` is invalid\nthe manifests of Strimzi 1.2.0 can't be read from \
             `gone.yaml`: No such file or directory (os error 2)\n  help: have the administrators of the installation \
             restore the file, or set another one in the settings\n",
        ),
    ];
    let tree = Tree::empty();
    for (text, expected) in cases {
        fs::write(tree.beside("settings.toml"), text).unwrap();
        let said = tree.run("config check settings.toml").expect(1).err;
        assert_eq!(said.replace(tree.beside("made").to_str().unwrap(), "DIR/made"), expected);
    }
    tree.run("plan tree --state-dir made --output-dir made").expect(1).says(&[
        "error: `state_dir` and `output_dir` are the same folder, `made`: state, output and secrets",
        "help: use a separate folder for each",
    ]);
    tree.run("config check gone.toml").expect(1).says(&[
        "error: cannot read the config file `gone.toml`",
        "because: No such file or directory",
        "help: `streamfleet config sample` prints one to start from",
    ]);
}

#[test]
fn paths_go_by_the_folder_of_the_settings_and_not_by_the_current_one() {
    let tree = Tree::example("quickstart");
    fs::create_dir(tree.beside("etc")).unwrap();
    let settings = "state_dir = \"kept\"\noutput_dir = \"../made\"\n";
    fs::write(tree.beside("etc/settings.toml"), settings).unwrap();
    tree.run("apply tree --config etc/settings.toml --yes").expect(0);
    assert!(tree.beside("etc/kept/registry.jsonl").is_file() && tree.beside("made/acme/eu").is_dir());
    assert!(!tree.beside("kept").exists());
}

#[test]
fn what_is_likely_not_meant_is_warned_of_and_a_tree_that_is_not_used_is_not_shown() {
    let tree = Tree::empty();
    let settings = "[source]\ngit = \"h.example.com/x.git\"\nsigned_by = \"signers\"\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let signers = tree.beside("signers");
    let run = tree.run("config check settings.toml").expect(0);
    assert_eq!(run.out, "settings.toml is valid\n");
    assert_eq!(
        run.err,
        format!(
            "warning: `source.signed_by` is `{}`, and there is no such file\nwarning: `source.git` is \
             `h.example.com/x.git`, a path on this machine that doesn't exist; for the host h.example.com, use \
             `https://h.example.com/x.git`\nwarning: `source.signed_by` is set and `source.signing_key` isn't: the API is \
             read-only, on the socket and on `api.listen`, because its commits could not be signed\nwarning: with \
             `source.git` and without a flag or variable, the default of `state_dir`, `output_dir`, `secrets_dir` is in \
             `{}`, beside this file\n",
            signers.display(),
            tree.beside(".streamfleet").display()
        )
    );
    let shown = tree.run("config show --config settings.toml --state-dir state --format json").expect(0).out;
    let shown: Vec<serde_json::Value> = serde_json::from_str(&shown).unwrap();
    assert_eq!(shown[0]["value"], serde_json::Value::Null);
    assert_eq!(shown[0]["from"], "not used: specs are fetched from `source.git`");
}

const LAXER: &str = "`policy.mode` was `approve` when this state was last used, by the settings DIR/a.toml; now there are \
                     no settings, so it is `auto`";

#[test]
fn a_mode_that_asked_for_approval_is_not_dropped_by_forgetting_the_settings() {
    let tree = Tree::example("quickstart");
    fs::write(tree.beside("a.toml"), "[policy]\nmode = \"approve\"\n").unwrap();
    let dir = tree.beside("").to_str().unwrap().trim_end_matches('/').to_owned();
    let said = |run: crate::support::Run| run.err.replace(&dir, "DIR");
    tree.run("apply tree --config a.toml --yes").expect(3);
    let hint = "  help: pass --config DIR/a.toml; to continue with the new mode, run `streamfleet apply` without --yes and \
                confirm its plan\n";
    let warning = format!("warning: {LAXER}\n");
    assert_eq!(said(tree.run("plan tree").expect(2)), warning);
    assert_eq!(said(tree.run("apply tree --yes").expect(1)), format!("{warning}error: {LAXER}\n{hint}"));
    assert_eq!(said(tree.run("serve --specs tree").expect(1)), format!("error: {LAXER}\n{hint}"));
    assert!(!tree.path().join(".streamfleet/output/acme/eu/kafka-acme--orders").exists());
    // Explicit settings aren't a slip.
    fs::write(tree.beside("b.toml"), "[policy]\nmode = \"auto\"\n").unwrap();
    assert_eq!(
        said(tree.run("apply tree --config b.toml --yes").expect(0)),
        "warning: `policy.mode` was `approve` when this state was last used, by the settings DIR/a.toml; the settings \
         DIR/b.toml make it `auto` now\n"
    );
    assert_eq!(said(tree.run("apply tree --yes").expect(0)), "");
}

#[test]
fn another_output_folder_is_told_with_what_stays_in_the_old_one() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --output-dir one --yes").expect(0);
    let warning = format!(
        "warning: output folder changed from {one} to {}. If that isn't intended, pass the former settings, or \
         `--output-dir {one}`. Otherwise the old folder is no longer maintained and still contains private keys: delete it \
         once nothing uses it any more\n",
        tree.beside("two").display(),
        one = tree.beside("one").display()
    );
    for words in ["plan tree --output-dir two", "apply tree --output-dir two --yes"] {
        let run = tree.run(words);
        assert_eq!(run.err, warning, "{words}\n{}", run.out);
    }
    assert_eq!(tree.run("plan tree --output-dir two").expect(0).err, "");
}
