//! What is made of a release beside its packages: digests, signatures, and the workflow that calls the script.

use std::fs;
use std::path::Path;
use std::process::Command;

use serde_json::Value;

use crate::support::Run;

const GUIDE: &str = include_str!("../../docs/guide/install.md");

const VERIFY: &str =
    "ssh-keygen -Y verify -f release-keys -I release -n streamfleet-release -s SHA256SUMS.sig <SHA256SUMS";
const CHECK: &str = "sha256sum --check --ignore-missing SHA256SUMS";

fn repository() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

#[test]
fn a_release_is_signed_and_what_was_changed_since_is_refused() {
    let folder = tempfile::tempdir().unwrap();
    let [release, key] = ["release", "key"].map(|name| folder.path().join(name));
    fs::create_dir(&release).unwrap();
    for name in ["streamfleet_1_amd64.deb", "streamfleet-1.tgz"] {
        fs::write(release.join(name), name).unwrap();
    }
    let sign = |key: Option<&Path>| {
        let mut sign = Command::new(repository().join("packaging/sign"));
        Run::from(sign.arg(&release).args(key).output().unwrap()).expect(0)
    };
    let guided = |command: &str| -> Run {
        assert!(GUIDE.contains(&format!("\n{command}")), "the guide has another command than `{command}`");
        Command::new("sh").args(["-c", command]).current_dir(&release).output().unwrap().into()
    };

    sign(None);
    assert!(!release.join("SHA256SUMS.sig").exists());
    guided(CHECK).expect(0);
    let made = Command::new("ssh-keygen").args(["-q", "-t", "ed25519", "-N", "", "-f"]).arg(&key).status();
    assert!(made.unwrap().success());
    sign(Some(&key));
    let public = fs::read_to_string(key.with_extension("pub")).unwrap();
    fs::write(release.join("release-keys"), format!("release {public}")).unwrap();
    guided(VERIFY).expect(0);
    guided(CHECK).expect(0).says(&["streamfleet_1_amd64.deb: OK", "streamfleet-1.tgz: OK"]);

    fs::write(release.join("streamfleet-1.tgz"), "changed").unwrap();
    guided(CHECK).expect(1).says(&["streamfleet-1.tgz: FAILED"]);
    let sums = fs::read_to_string(release.join("SHA256SUMS")).unwrap();
    fs::write(release.join("SHA256SUMS"), format!("{sums}\n")).unwrap();
    assert_ne!(guided(VERIFY).code, 0);
}

#[test]
fn the_workflow_calls_the_scripts_of_this_repository() {
    let file = repository().join(".github/workflows/release.yml");
    let workflow: Value = serde_saphyr::from_str(&fs::read_to_string(file).unwrap()).unwrap();
    let jobs = workflow["jobs"].as_object().unwrap();
    let steps = jobs.values().flat_map(|job| job["steps"].as_array().unwrap());
    let commands: Vec<&str> = steps.filter_map(|step| step["run"].as_str()).collect();
    for script in [".ci/packages", "packaging/release", "packaging/sign"] {
        assert!(repository().join(script).exists());
        assert!(commands.iter().any(|command| command.contains(script)), "{script}: {commands:?}");
    }
}
