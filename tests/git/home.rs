//! Default paths when specs are fetched.

use std::fs;

use super::Specs;

#[test]
fn without_a_state_folder_everything_is_beside_the_settings_wherever_a_command_runs() {
    let specs = Specs::new();
    let folder = specs.folder();
    let settings = folder.join("etc/config.toml");
    fs::create_dir(folder.join("etc")).unwrap();
    let git =
        format!("[source]\ngit = \"{}\"\n[secrets]\nallow_plain_in_git = true\n", specs.remote().display());
    fs::write(&settings, git).unwrap();
    let own = folder.join("etc/.streamfleet");
    specs.tree.run("config check etc/config.toml").expect(0).says(&[&format!(
        "with `source.git` and without a flag or variable, the default of `state_dir`, `output_dir`, `secrets_dir` is \
         in `{}`, beside this file",
        own.display()
    )]);
    specs.tree.run("apply --yes --config etc/config.toml").expect(0);
    assert!(own.join("state/registry.jsonl").exists());
    assert!(own.join("output/acme/eu").is_dir());
    assert_eq!(fs::read_to_string(own.join(".gitignore")).unwrap(), "*\n");
    assert!(!folder.join(".streamfleet").exists());

    let elsewhere = specs.tree.beside("elsewhere");
    fs::create_dir(&elsewhere).unwrap();
    let mut command = specs.tree.command("plan --config ../etc/config.toml");
    let output = command.current_dir(&elsewhere).output().unwrap();
    let shown = String::from_utf8(output.stdout).unwrap();
    assert!(shown.contains("Nothing to do"), "{shown}");
    assert_eq!(fs::read_dir(&elsewhere).unwrap().count(), 0);

    fs::write(&settings, format!("state_dir = \"../state\"\n{}", fs::read_to_string(&settings).unwrap()))
        .unwrap();
    specs.tree.run("config check etc/config.toml").expect(0).says_nothing_of(&["beside this file"]);
}

#[test]
fn a_backup_may_lie_below_the_folder_that_a_command_runs_in_but_not_in_what_it_saves() {
    let specs = Specs::new();
    specs.tree.run("apply --yes --config config.toml").expect(0);
    specs.tree.run("backup FILE.tar --config config.toml").expect(0);
    fs::create_dir(specs.tree.beside("backups")).unwrap();
    specs.tree.run("backup backups/FILE.tar --config config.toml").expect(0);
    specs.tree.run("backup state/FILE.tar --config config.toml").expect(1).says(&[
        "cannot write the backup `state/FILE.tar`: it would be inside the tree or the state that it saves",
    ]);
}
