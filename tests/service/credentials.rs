//! Settings that use systemd's LoadCredential.

use std::fs;

use crate::support::Tree;

#[test]
fn secrets_and_a_token_are_found_among_the_credentials_of_the_service() {
    let tree = Tree::example("tiered-storage");
    let folder = tree.beside("credentials");
    fs::create_dir(&folder).unwrap();
    let file = "acme/cloud-accounts/minio.yaml";
    let plain = tree.read(file);
    let (head, secret) = plain.split_once("credentials: |\n").unwrap();
    fs::write(folder.join("secrets_acme_minio.ini"), secret).unwrap();
    tree.write(file, format!("{head}credentials: {{from_file: minio.ini}}\n"));
    fs::write(tree.beside("settings.toml"), "secrets_dir = \"$CREDENTIALS_DIRECTORY/secrets\"\n").unwrap();
    let run = |words: &str| tree.run_with(words, &[("CREDENTIALS_DIRECTORY", folder.to_str().unwrap())], "");
    run("validate tree --config settings.toml").expect(0);
    fs::remove_file(folder.join("secrets_acme_minio.ini")).unwrap();
    run("validate tree --config settings.toml")
        .expect(1)
        .says(&["there is no credential `secrets_acme_minio.ini`"]);

    let settings = "state_dir = \"state\"\noutput_dir = \"output\"\n\n[source]\ngit = \"https://127.0.0.1:1/specs.git\"\n\
                    token_file = \"$CREDENTIALS_DIRECTORY/git-token\"\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    let token = folder.join("git-token");
    run("plan --config settings.toml")
        .expect(1)
        .says(&[token.to_str().unwrap(), "No such file or directory"]);
    // With the credential, only the server is missing.
    fs::write(token, "hunter2").unwrap();
    run("plan --config settings.toml").expect(1).says_nothing_of(&["hunter2", "No such file or directory"]);
}
