//! No secret of an example is found in anything printed, saved or recorded.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use crate::support::{Tree, examples, files};

/// The secret values in an example's files: the blocks after `tls_key: |` and `credentials: |`.
fn secrets_of(story: &str) -> Vec<String> {
    let mut secrets = Vec::new();
    for (path, bytes) in files(&examples().join(story)) {
        // Files of a local run aren't part of the example.
        if path.contains(".streamfleet/") {
            continue;
        }
        let text = String::from_utf8(bytes).unwrap();
        for field in ["tls_key: |\n", "credentials: |\n"] {
            if let Some((_, block)) = text.split_once(field) {
                let lines = block.lines().take_while(|line| line.starts_with("  ") || line.is_empty());
                let value: Vec<&str> = lines.map(str::trim_start).collect();
                assert!(!value.is_empty(), "{path}");
                secrets.push(format!("{}\n", value.join("\n")));
            }
        }
    }
    secrets
}

/// The searched forms of a secret: whole, in base64, and each of its longer lines by itself.
fn forms(secret: &str) -> Vec<Vec<u8>> {
    let mut forms = vec![secret.as_bytes().to_vec(), STANDARD.encode(secret).into_bytes()];
    let telling = |line: &&str| line.len() >= 24 && !line.starts_with("-----");
    forms.extend(secret.lines().filter(telling).map(|line| line.as_bytes().to_vec()));
    forms.extend(
        secret.lines().filter_map(|line| line.split_once(" = ")).map(|(_, value)| value.as_bytes().to_vec()),
    );
    forms
}

fn holds(haystack: &[u8], needle: &[u8]) -> bool {
    haystack.windows(needle.len()).any(|window| window == needle)
}

#[test]
fn no_secret_of_an_example_is_in_anything_but_the_manifest_that_needs_it() {
    let mut checked = 0;
    for story in ["quickstart", "dedicated-tenancy", "tiered-storage", "oauth"] {
        let tree = Tree::example(story);
        let mut printed = String::new();
        for words in [
            "-vv plan tree --out plan.json",
            "-vv plan tree --format json",
            "-vv plan tree --format yaml",
            "-vv apply plan.json --yes",
            "-vv validate tree --format json",
            "-vv status tree --format json",
            "-vv get base-domains tree --format json",
            "-vv get cloud-accounts tree --format yaml",
            "-vv get fleets tree --format json",
        ] {
            let run = tree.run(words);
            printed += &run.out;
            printed += &run.err;
        }
        let mut places = vec![("what was printed".to_owned(), printed.into_bytes())];
        places.push(("the saved plan".to_owned(), std::fs::read(tree.beside("plan.json")).unwrap()));
        places.extend(files(&tree.path().join(".streamfleet/state")));
        places.extend(tree.output().into_iter().filter(|(path, _)| !path.contains("/secrets/")));
        for form in secrets_of(story).iter().flat_map(|secret| forms(secret)) {
            for (place, bytes) in &places {
                assert!(!holds(bytes, &form), "{story}: {place} holds {}", String::from_utf8_lossy(&form));
            }
            checked += 1;
        }
    }
    assert!(checked > 10, "only {checked} forms of secrets were looked for");
}

#[test]
fn the_manifest_that_needs_a_secret_has_it_and_only_its_owner_reads_it() {
    use std::os::unix::fs::PermissionsExt as _;
    let tree = Tree::example("tiered-storage");
    tree.run("apply tree --yes").expect(0);
    let secret = secrets_of("tiered-storage").remove(0);
    let encoded = STANDARD.encode(&secret).into_bytes();
    let holder = tree.output().into_iter().find(|(_, bytes)| holds(bytes, &encoded)).expect("a Secret");
    let path = tree.path().join(".streamfleet/output").join(&holder.0);
    let mode = |path: &std::path::Path| std::fs::metadata(path).unwrap().permissions().mode() & 0o777;
    assert_eq!(mode(&path), 0o600);
    assert_eq!(mode(path.parent().unwrap()), 0o700);
    assert_eq!(std::fs::read_to_string(path.parent().unwrap().join(".gitignore")).unwrap().trim(), "*");
}

#[test]
fn a_broken_line_that_holds_a_secret_is_not_quoted() {
    let tree = Tree::example("quickstart");
    let file = "acme/base-domains/kafka.acme.example.com.yaml";
    tree.write(file, "kind: [\ntls_key: \"MIGHAgEAMBMGByqGSM49AgEGCCqGSM49AwEHBG0wawIBAQQg\n");
    tree.run("validate tree").expect(1).says_nothing_of(&["MIGHAgEAMBMG"]);
    tree.write(
        file,
        "apiVersion: streamfleet/v1\nkind: BaseDomain\norganization: acme\ndomain: k.example.com\ntls_cert: x\n\
         tls_key: {value: SuperSecretSuperSecretSuperSecret}\n",
    );
    tree.run("validate tree").expect(1).says_nothing_of(&["SuperSecret"]);
}

#[test]
fn sealed_file_and_variable_secrets_work_in_place_of_plain_ones() {
    let tree = Tree::example("tiered-storage");
    let file = "acme/cloud-accounts/minio.yaml";
    let secret = secrets_of("tiered-storage").remove(0);
    let plain = tree.read(file);
    let head = plain.split("credentials: |").next().unwrap().to_owned();

    let sealed =
        tree.run_with("secret encrypt CloudAccount/acme/minio#credentials tree", &[], &secret).expect(0).out;
    assert!(
        sealed.starts_with("credentials:\n  encrypted: |\n    -----BEGIN AGE ENCRYPTED FILE-----"),
        "{sealed}"
    );
    tree.write(file, format!("{head}{sealed}"));
    tree.run("apply tree --yes").expect(0);

    tree.write(file, format!("{head}credentials:\n  from_file: minio.ini\n"));
    tree.write(".streamfleet/secrets/acme/minio.ini", &secret);
    tree.run("plan tree").expect(0);

    tree.write(file, format!("{head}credentials:\n  from_env: MINIO\n"));
    let variable = [("STREAMFLEET_SECRET_ACME__MINIO", secret.as_str())];
    let other = [("STREAMFLEET_SECRET_GLOBEX__MINIO", secret.as_str())];
    tree.run_with("plan tree", &variable, "").expect(0);
    tree.run_with("plan tree", &other, "").expect(3).says(&["STREAMFLEET_SECRET_ACME__MINIO"]);
}

#[test]
fn sealing_a_tree_changes_only_the_secrets_in_it() {
    let tree = Tree::example("quickstart");
    let file = "acme/base-domains/kafka.acme.example.com.yaml";
    tree.run("apply tree --yes").expect(0);
    let before = tree.read(file);
    let (head, _) = before.split_once("tls_key: |").unwrap();

    let told = tree
        .run("secret seal tree")
        .expect(0)
        .says(&[&format!("{file}: 1 sealed\n1 secret is sealed to the recipient age1")]);

    let after = tree.read(file);
    assert!(after.starts_with(&format!("{head}tls_key:\n  encrypted: |")), "{after}");
    for secret in secrets_of("quickstart") {
        let shown = [after.as_bytes(), told.out.as_bytes()];
        assert!(forms(&secret).iter().all(|form| !shown.iter().any(|shown| holds(shown, form))));
    }
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
    tree.run("secret seal tree").expect(0).says(&["All secrets are sealed."]);
    assert_eq!(tree.read(file), after);
}

#[test]
fn a_tree_with_mistakes_is_not_sealed() {
    let tree = Tree::example("quickstart");
    let file = "acme/base-domains/kafka.acme.example.com.yaml";
    tree.edit(file, "domain: kafka", "domian: kafka");
    let before = tree.read(file);
    let expected = format!(
        "error: cannot seal the secrets of `{file}`; no file was changed: it has problems\n  help: fix them first: \
         `streamfleet validate` shows them\n"
    );
    assert_eq!(tree.run("secret seal tree").expect(1).err, expected);
    assert_eq!(tree.read(file), before);
}

#[test]
fn rotating_changes_only_the_sealed_blocks() {
    let tree = Tree::example("tiered-storage");
    let file = "acme/cloud-accounts/minio.yaml";
    let secret = secrets_of("tiered-storage").remove(0);
    let plain = tree.read(file);
    let head = plain.split("credentials: |").next().unwrap().to_owned();
    let sealed =
        tree.run_with("secret encrypt CloudAccount/acme/minio#credentials tree", &[], &secret).expect(0).out;
    tree.write(file, format!("{head}{sealed}# the end\n"));
    tree.run("apply tree --yes").expect(0);
    let before = tree.read(file);
    let recipient = tree.run("secret recipient tree").expect(0).out;

    tree.run("secret rotate tree").expect(0).says(&["1 sealed again"]);

    let after = tree.read(file);
    assert_ne!(before, after);
    assert_ne!(recipient, tree.run("secret recipient tree").expect(0).out);
    let kept = |text: &str| {
        text.lines().filter(|line| !line.starts_with("    ")).map(str::to_owned).collect::<Vec<_>>()
    };
    assert_eq!(kept(&before), kept(&after));
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn a_key_whose_line_breaks_were_lost_is_told_and_not_shown() {
    const FILE: &str = "acme/base-domains/kafka.acme.example.com.yaml";
    let key = secrets_of("quickstart").remove(0);
    let folded = key.replace('\n', " ");
    let words: Vec<&str> = key.lines().filter(|line| !line.starts_with("-----")).collect();
    let plain = Tree::example("quickstart");
    plain.edit(FILE, "tls_key: |", "tls_key:");
    let elsewhere = |form: &str| {
        let tree = Tree::example("quickstart");
        let text = tree.read(FILE);
        let (before, _) = text.split_once("tls_key: |").unwrap();
        tree.write(FILE, format!("{before}tls_key: {form}\n"));
        tree
    };
    let file = elsewhere("{from_file: key}");
    file.write(".streamfleet/secrets/acme/key", &folded);
    let variable = elsewhere("{from_env: KEY}");
    let sealed = elsewhere("x");
    let block =
        sealed.run_with("secret encrypt BaseDomain/acme/kafka.acme.example.com#tls_key tree", &[], &folded);
    let text = sealed.read(FILE).replace("tls_key: x\n", &block.expect(0).out);
    sealed.write(FILE, text);
    for tree in [plain, file, variable, sealed] {
        for verb in ["validate tree", "plan tree", "plan tree --format json", "get base-domains tree"] {
            let run = tree.run_with(verb, &[("STREAMFLEET_SECRET_ACME__KEY", &folded)], "");
            let run = run.says_nothing_of(&words);
            if verb.starts_with("validate") {
                run.expect(1)
                    .says(&["lost its line breaks", "write `tls_key: |` and indent the lines below it"]);
            }
        }
    }
}

#[test]
fn git_sees_nothing_of_what_is_kept_in_a_tree() {
    for words in ["apply tree --yes", "plan tree --out plan.json", "secret recipient tree"] {
        let tree = Tree::example("quickstart");
        let git = |words: &str| {
            let mut command = std::process::Command::new("git");
            let output = command.args(words.split(' ')).current_dir(tree.path()).output().unwrap();
            assert!(output.status.success(), "{output:?}");
            String::from_utf8(output.stdout).unwrap()
        };
        git("init -q");
        git("add .");
        let before = git("status --porcelain --untracked-files=all");
        tree.run(words);
        assert!(tree.path().join(".streamfleet/state/fingerprint.key").exists());
        tree.write(".streamfleet/secrets/acme/key", "hunter2");
        assert_eq!(git("status --porcelain --untracked-files=all"), before, "{words}");
    }
}

#[test]
fn rotations_at_the_same_time_lose_no_identity() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    let words = "secret rotate tree";
    let children: Vec<_> = (0..4).map(|_| tree.command(words).spawn().unwrap()).collect();
    for mut child in children {
        assert!(child.wait().unwrap().success());
    }
    let keys = tree.read(".streamfleet/state/identity.age-keys");
    assert_eq!(keys.lines().filter(|line| line.starts_with("AGE-SECRET-KEY-")).count(), 5);
}

#[test]
fn lost_keys_are_not_replaced_in_silence() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    for file in ["identity.age-keys", "fingerprint.key"] {
        tree.remove(&format!(".streamfleet/state/{file}"));
    }
    tree.run("apply tree --yes").expect(1).says(&[
        "are missing from",
        "take both from a backup, since without them no sealed secret can be opened",
    ]);
    assert!(!tree.path().join(".streamfleet/state/fingerprint.key").exists());
}
