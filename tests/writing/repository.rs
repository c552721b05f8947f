//! Specs in a git repository.

use std::process::Command;

use streamfleet::config::SourceConfig;
use streamfleet::http::problem::ProblemDocument;
use streamfleet::source::git::Mirror;

use super::*;
use crate::support::{Tree, install_script};

/// A bare repository with an example in it.
struct Repository {
    tree: Tree,
}

impl Repository {
    fn new() -> Self {
        let tree = Tree::example("quickstart");
        // The example's key is in clear text, which is refused in a repository.
        tree.remove("acme/base-domains/kafka.acme.example.com.yaml");
        tree.edit("acme/fleets/eu.yaml", "domain: kafka.acme.example.com\n", "");
        tree.edit("acme/fleets/eu.yaml", "max_tenants: 5", "max_tenants: 20");
        tree.edit("acme/clusters/orders.yaml", "Internal & External", "Internal");
        let repository = Repository { tree };
        repository.git("init --quiet --bare --initial-branch=main ../remote.git");
        repository.git("init --quiet --initial-branch=main .");
        repository.push("first");
        repository
    }

    #[track_caller]
    fn git(&self, words: &str) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Bob", "-c", "user.email=bob@example.com", "-c", "commit.gpgsign=false"]);
        git.args(words.split_whitespace()).current_dir(self.tree.path());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = git.output().unwrap();
        assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).trim_end().to_owned()
    }

    fn push(&self, message: &str) {
        self.git("add --all");
        self.git(&format!("commit --quiet --message={message}"));
        self.git("push --quiet ../remote.git main");
    }

    fn pull(&self) {
        self.git("fetch --quiet ../remote.git main");
        self.git("reset --quiet --hard FETCH_HEAD");
    }

    fn tip(&self) -> String {
        self.git("-C ../remote.git rev-parse main")
    }

    fn mirror(&self, clone: &str) -> Arc<Mirror> {
        let git = Some(self.tree.beside("remote.git").to_str().unwrap().to_owned());
        let place = Utf8PathBuf::from_path_buf(self.tree.beside(clone)).unwrap();
        Arc::new(Mirror::of(&SourceConfig { git, ..SourceConfig::default() }, place, None).unwrap())
    }

    fn start(&self, name: &str) -> (World, Writer, Arc<Mirror>, CurrentPlan) {
        let world = World::new(&self.tree.beside(name));
        let mirror = self.mirror(&format!("{name}/clone"));
        mirror.fetch().unwrap();
        let made = world.plan(&mirror.snapshot().unwrap(), WriteMark::default());
        let writer = world.writer(SpecStore::Git(Arc::clone(&mirror)));
        (world, writer, mirror, made)
    }
}

#[test]
fn a_change_is_a_commit_of_the_caller_with_one_line() {
    let repository = Repository::new();
    let (_world, writer, mirror, made) = repository.start("one");
    let first = repository.tip();
    let written = call(&writer, &made, "Cluster/acme/orders", units(2)).unwrap();
    assert_eq!(written.commit.as_deref(), Some(repository.tip().as_str()));
    assert_eq!(mirror.commit(), written.commit);
    let said = repository.git("-C ../remote.git log -1 --format=%an,%ae,%P,%s main");
    assert_eq!(said, format!("Ada,ada@example.com,{first},Set kafka_units of cluster acme/orders to 2"));
    let diff = repository.git("-C ../remote.git diff --unified=0 main^ main");
    let lines: Vec<&str> = diff.lines().skip_while(|line| !line.starts_with("@@")).collect();
    assert_eq!(lines[1..], ["-kafka_units: 1", "+kafka_units: 2"], "{diff}");
    // The file already has this value.
    let again = call(&writer, &made, "Cluster/acme/orders", units(2)).unwrap();
    assert!(
        !again.is_new
            && again.commit == written.commit
            && repository.tip() == written.commit.clone().unwrap()
    );

    call(&writer, &made, "Cluster/acme/clicks", WriteAction::Create(sandbox("clicks"))).unwrap();
    let files = repository.git("-C ../remote.git ls-tree -r --name-only main");
    assert!(files.contains("acme/clusters/clicks.yaml"), "{files}");
    call(&writer, &made, "Cluster/acme/clicks", WriteAction::Delete).unwrap();
    let said = repository.git("-C ../remote.git log -2 --format=%s main");
    assert_eq!(said, "Delete cluster acme/clicks\nCreate cluster acme/clicks");
    assert_eq!(repository.git("-C ../remote.git diff --name-only main~2 main"), "");
}

#[test]
fn no_secret_is_in_any_object() {
    let repository = Repository::new();
    let (_world, writer, _mirror, made) = repository.start("one");
    call(&writer, &made, "CloudAccount/acme/s3", WriteAction::Create(account())).unwrap();
    call(&writer, &made, "CloudAccount/acme/s3", WriteAction::Patch(json!({"region": "eu"}))).unwrap();
    let refused = call(&writer, &made, "CloudAccount/acme/s4", WriteAction::Create(account())).unwrap_err();
    assert_eq!(refused.status(), 422);
    for place in ["../remote.git", "../one/clone"] {
        let mut git = Command::new("git");
        git.args(["-C", place, "cat-file", "--batch-all-objects", "--batch"])
            .current_dir(repository.tree.path());
        let objects = git.output().unwrap().stdout;
        assert!(objects.windows(9).any(|part| part == b"encrypted"), "{place}");
        assert!(!tells(&objects), "{place}");
    }
    for (path, bytes) in everything(repository.tree.path().parent().unwrap()) {
        assert!(!tells(&bytes), "{path}");
    }
}

#[test]
fn a_secret_that_stands_in_the_clear_is_sealed_by_sending_it() {
    let repository = Repository::new();
    let path = "acme/cloud-accounts/s3.yaml";
    let stands = "# Ours.\napiVersion: streamfleet/v1\nkind: CloudAccount\norganization: acme\nidentifier: \
        s3\nprovider: aws\ncredentials: plain-as-day # to be replaced\nregion: eu\n";
    repository.tree.write(path, stands);
    repository.push("theirs");
    let (_world, writer, _mirror, made) = repository.start("one");
    let patch = |body: Value| call(&writer, &made, "CloudAccount/acme/s3", WriteAction::Patch(body));
    // While it is there, any change fails because of it.
    let tip = repository.tip();
    let refused = patch(json!({"region": "us"})).unwrap_err();
    let problem = ProblemDocument::from(refused.clone());
    assert_eq!(problem.status, 422, "{refused}");
    let [fault] = problem.errors.as_slice() else { panic!("{problem:?}") };
    assert_eq!(
        (fault.pointer.as_deref(), fault.detail.as_str(), fault.hint.as_deref()),
        (
            Some("/credentials"),
            "`credentials` is a plain-text secret in a git repository",
            Some(
                "send `credentials` with the change, even if unchanged, to store it encrypted; replace the secret \
                    itself if others can read the repository"
            )
        )
    );
    // Other mistakes stay reported.
    let refused = patch(json!({"credentials": "plain-as-day", "provider": "gcp"})).unwrap_err();
    assert_eq!((refused.status(), repository.tip()), (422, tip));

    let written = patch(json!({"credentials": "plain-as-day"})).unwrap();
    assert!(written.is_new && written.message == "Change credentials of cloud account acme/s3");
    repository.pull();
    let file = repository.tree.read(path);
    assert!(
        file.starts_with("# Ours.\n") && file.contains("encrypted: ") && !file.contains("plain-as-day"),
        "{file}"
    );
    // Once it is sealed, writing the same value changes nothing.
    assert!(!patch(json!({"credentials": "plain-as-day"})).unwrap().is_new);
    patch(json!({"region": "us"})).unwrap();
}

#[test]
fn what_others_pushed_is_what_a_call_is_judged_by() {
    let repository = Repository::new();
    let (_world, writer, _mirror, made) = repository.start("one");
    // Another writer takes the name, and changes the other cluster.
    repository.tree.write(
        "acme/clusters/taken.yaml",
        repository
            .tree
            .read("acme/clusters/sandbox.yaml")
            .replace("identifier: sandbox", "identifier: clicks"),
    );
    repository.tree.edit("acme/clusters/orders.yaml", "kafka_units: 1", "kafka_units: 1 # enough");
    repository.push("theirs");
    let theirs = repository.tip();
    let refused =
        call(&writer, &made, "Cluster/acme/clicks", WriteAction::Create(sandbox("clicks"))).unwrap_err();
    assert_eq!(refused.to_string(), "cluster acme/clicks exists already");
    assert_eq!(repository.tip(), theirs);
    call(&writer, &made, "Cluster/acme/orders", units(2)).unwrap();
    repository.pull();
    assert!(repository.tree.read("acme/clusters/orders.yaml").contains("kafka_units: 2 # enough\n"));
}

#[test]
fn two_installations_and_a_person_write_at_once() {
    let repository = Repository::new();
    let starts = ["one", "two"].map(|name| repository.start(name));
    std::thread::scope(|scope| {
        for (index, (_, writer, _, made)) in starts.iter().enumerate() {
            scope.spawn(move || {
                for number in 0..4 {
                    let name = format!("c{index}-{number}");
                    let create = || {
                        call(
                            writer,
                            made,
                            &format!("Cluster/acme/{name}"),
                            WriteAction::Create(sandbox(&name)),
                        )
                    };
                    while let Err(refused) = create() {
                        assert_eq!(refused.status(), 503, "{refused}");
                    }
                }
            });
        }
    });
    repository.pull();
    for name in (0..2).flat_map(|index| (0..4).map(move |number| format!("c{index}-{number}"))) {
        assert!(
            repository
                .tree
                .read(&format!("acme/clusters/{name}.yaml"))
                .contains(&format!("identifier: {name}\n"))
        );
    }
    assert_eq!(repository.git("-C ../remote.git rev-list --count main"), "9");
}

#[test]
fn a_remote_that_is_away_keeps_nothing_and_takes_the_call_once_later() {
    let repository = Repository::new();
    let (_world, writer, mirror, made) = repository.start("one");
    let (remote, away) = (repository.tree.beside("remote.git"), repository.tree.beside("away.git"));
    let tip = repository.tip();
    fs::rename(&remote, &away).unwrap();
    let create = || call(&writer, &made, "Cluster/acme/clicks", WriteAction::Create(sandbox("clicks")));
    let refused = create().unwrap_err();
    let retry_after = ProblemDocument::from(refused.clone()).retry_after.unwrap();
    assert_eq!((refused.status(), refused.code(), retry_after.as_secs()), (503, "unavailable", 10));
    assert_eq!(refused.to_string(), "the git repository of the specs can't be reached; nothing was written");
    assert_eq!(
        refused.hint().unwrap(),
        "try again in a moment; look for the cause in the log of `streamfleet serve`"
    );
    assert!(
        mirror.commit() == Some(tip.clone()) && writer.mark().writes == 0 && writer.pending(&made).is_empty()
    );
    fs::rename(&away, &remote).unwrap();
    assert_eq!(repository.tip(), tip);
    let written = create().unwrap();
    assert_eq!(repository.git("-C ../remote.git rev-list --count main"), "2");
    assert_eq!(written.commit.as_deref(), Some(repository.tip().as_str()));
    assert_eq!(create().unwrap_err().status(), 409);
}

#[test]
fn a_protected_branch_is_read_only() {
    let repository = Repository::new();
    let (_world, writer, mirror, made) = repository.start("one");
    let hook = repository.tree.beside("remote.git/hooks/pre-receive");
    install_script(&hook, "exit 1");
    let tip = repository.tip();
    let refused = call(&writer, &made, "Cluster/acme/orders", units(2)).unwrap_err();
    assert_eq!((refused.status(), refused.code()), (409, "read_only"));
    assert_eq!(
        refused.to_string(),
        "the branch of the specs doesn't accept commits of the API, so the API can't change anything"
    );
    assert_eq!(refused.hint().unwrap(), "make the change in the repository, with a merge request");
    assert_eq!((repository.tip(), mirror.commit()), (tip.clone(), Some(tip)));
}

#[test]
fn a_proposal_asks_nobody_and_writes_nothing() {
    let repository = Repository::new();
    let (_world, writer, _mirror, made) = repository.start("one");
    fs::rename(repository.tree.beside("remote.git"), repository.tree.beside("away.git")).unwrap();
    let before = everything(&repository.tree.beside("one"));
    let key = "Cluster/acme/orders".to_owned().try_into().unwrap();
    let wish = WriteRequest { key, what: units(2), if_match: None, may_limit: true, record: None };
    let (documents, written) = writer.propose(&made, &wish).unwrap();
    assert!(written.is_new && written.commit.is_none());
    assert_ne!(documents.revision, made.documents.revision);
    assert!(everything(&repository.tree.beside("one")) == before);
}

#[test]
fn what_is_written_to_a_path_outlasts_a_power_cut() {
    let name = "writing::repository::a_change_is_a_commit_of_the_caller_with_one_line";
    let folder = tempfile::tempdir().unwrap();
    let calls = folder.path().join("calls");
    let mut strace = Command::new("strace");
    strace.args(["-f", "-y", "-e", "trace=fsync,rename", "-o"]).arg(&calls);
    let Ok(ran) = strace.arg(std::env::current_exe().unwrap()).args(["--exact", name]).output() else {
        return crate::support::skipped("strace is not there, which sees what the disk is waited for");
    };
    assert!(ran.status.success(), "{}", String::from_utf8_lossy(&ran.stderr));
    let calls = text(&calls);
    let ours = calls.split_once("fsync(").map(|(_, ours)| ours).unwrap();
    let place = |words: [&str; 2]| {
        let line = |line: &&str| words.iter().all(|word| line.contains(word)) && line.contains("remote.git/");
        ours.lines().position(|found| line(&found)).unwrap_or_else(|| panic!("{words:?} is not in\n{ours}"))
    };
    let order = [
        place(["objects/pack/", ".pack>"]),
        place(["objects/pack/", ".idx>"]),
        place(["", "objects/pack>"]),
        place(["fsync", "heads/main.lock>"]),
        place(["rename", "heads/main.lock"]),
    ];
    assert!(order.is_sorted(), "no branch may name what isn't there: {order:?}\n{ours}");
}
