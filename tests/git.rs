//! Specs from a git repository: a push is applied, and a failed fetch changes nothing.

mod home;
mod https;
mod limits;
mod slow;
mod ssh;
mod webhook;
mod write;

use std::fs;
use std::io::Read as _;
use std::net::TcpListener;
use std::path::PathBuf;
use std::process::Command;

use crate::support::serve::Serve;
use crate::support::ssh::make_key;
use crate::support::{Tree, approval_id};

const ORDERS: &str = "acme/clusters/orders.yaml";
const SANDBOX: &str = "acme/clusters/sandbox.yaml";
const POOL: &str = "kafka-acme--orders/kafkanodepool-broker.yaml";

const SERVE: &str = "serve --config config.toml";

/// A working copy with the quickstart's specs, pushed to a bare repository beside it, and settings for that
/// repository.
struct Specs {
    tree: Tree,
}

impl Specs {
    fn new() -> Self {
        let specs = Specs { tree: Tree::example("quickstart") };
        specs.git("init --quiet --bare --initial-branch=main ../specs.git");
        specs.git("--git-dir=../specs.git config receive.denyDeleteCurrent ignore");
        specs.git("init --quiet --initial-branch=main");
        specs.set(&format!("git = \"{}\"", specs.remote().display()), true);
        specs.push("first");
        specs
    }

    fn remote(&self) -> PathBuf {
        self.tree.beside("specs.git")
    }

    fn folder(&self) -> PathBuf {
        self.tree.beside("")
    }

    fn set(&self, source: &str, allow_plain: bool) {
        let text = format!(
            "state_dir = \"state\"\noutput_dir = \"output\"\n\n[source]\n{source}\ninterval_seconds = 5\n\n\
             [secrets]\nallow_plain_in_git = {allow_plain}\n"
        );
        fs::write(self.tree.beside("config.toml"), text).unwrap();
    }

    #[track_caller]
    fn git(&self, words: &str) -> String {
        let mut git = Command::new("git");
        git.args(["-c", "user.name=Ada", "-c", "user.email=ada@example.com", "-c", "commit.gpgsign=false"]);
        git.args(words.split_whitespace()).current_dir(self.tree.path());
        git.env("GIT_CONFIG_GLOBAL", "/dev/null").env("GIT_CONFIG_SYSTEM", "/dev/null");
        let output = git.output().expect("the tests of git need git");
        assert!(output.status.success(), "git {words}: {}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8(output.stdout).unwrap().trim().to_owned()
    }

    /// Commits everything, pushes with force, and returns the commit.
    #[track_caller]
    fn push(&self, message: &str) -> String {
        self.git("add --all");
        self.git(&format!("commit --quiet --message={message}"));
        self.git("push --quiet --force ../specs.git main");
        self.git("rev-parse HEAD")
    }

    fn target(&self) -> Vec<(String, Vec<u8>)> {
        crate::support::files(&self.tree.beside("output"))
    }

    fn pool(&self) -> String {
        fs::read_to_string(self.tree.beside("output/acme/eu").join(POOL)).unwrap_or_default()
    }
}

fn replicas(serve: &Serve<'_>, specs: &Specs, count: &str) {
    let line = format!("replicas: {count}\n");
    serve.until(&format!("there are {count} brokers"), || specs.pool().contains(&line).then_some(()));
}

#[test]
fn what_is_pushed_is_done_and_each_decision_names_its_commit_and_author() {
    let specs = Specs::new();
    let serve = Serve::start(&specs.tree, SERVE);
    replicas(&serve, &specs, "3");

    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    let commit = specs.push("grow");
    serve.signal("HUP");
    replicas(&serve, &specs, "6");
    let named = format!("commit=\"{commit}\"");
    serve.says(&[
        "decided to update cluster acme/orders: kafka_units 1 → 2 (acme/clusters/orders.yaml:9). ",
        "Adds 3 brokers and rebalances; clients keep their connections fleet=\"acme/eu\"",
        " verb=update cause=\"spec\" plan=\"",
        &format!("{named} author=\"Ada <ada@example.com>\""),
    ]);
    serve.says(&["done", "cluster acme/orders", &named]);
    let audit = fs::read_to_string(specs.tree.beside("state/audit.jsonl")).unwrap();
    let last = audit.lines().last().unwrap();
    let by = format!("{{\"author\":\"Ada <ada@example.com>\",\"id\":\"{commit}\"}}");
    assert!(last.contains(&by) && last.contains("changed cluster acme/orders"), "{last}");

    // Without a webhook the repository is polled every few seconds; rewritten history is accepted.
    specs.git("reset --quiet --hard HEAD~1");
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 3");
    specs.push("other");
    replicas(&serve, &specs, "9");
    serve.says(&["the branch was rewritten"]);

    // A commit is atomic: what it removes is removed without a wait.
    specs.tree.remove(SANDBOX);
    specs.push("less");
    serve.signal("HUP");
    let has_sandbox = || specs.target().iter().any(|(path, _)| path.contains("sandbox"));
    serve.until("the sandbox is gone", || (!has_sandbox()).then_some(()));
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_repository_that_is_put_back_to_an_older_state_deletes_nothing_that_nobody_approved() {
    let specs = Specs::new();
    let first = specs.git("rev-parse HEAD");
    specs.tree.write("acme/clusters/later.yaml", specs.tree.read(SANDBOX).replace("sandbox", "later"));
    let second = specs.push("later");
    let has_later = || specs.target().iter().any(|(path, _)| path.contains("acme--later"));
    let serve = Serve::start(&specs.tree, SERVE);
    serve.until("the later one is there", || has_later().then_some(()));
    serve.says(&["done", "cluster acme/later"]);

    let back = |commit: &str| specs.git(&format!("push --quiet --force ../specs.git {commit}:main"));
    back(&first);
    serve.signal("HUP");
    serve.says(&["the branch was rewritten"]);
    let why = format!("the branch was rewritten and no longer had commit {second}, which was applied before");
    serve.says(&["cluster acme/later", &why]);
    assert_eq!(serve.stop(), Some(0));
    // The rewrite is remembered from then on.
    specs.git(&format!("reset --quiet --hard {first}"));
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    specs.push("grow");
    let serve = Serve::start(&specs.tree, SERVE);
    replicas(&serve, &specs, "6");
    serve.says(&["cluster acme/later", &why]);
    assert!(has_later());
    assert_eq!(serve.stop(), Some(0));
    let plan = specs.tree.run("plan --config config.toml").expect(3).says(&[&why]);
    let id = approval_id(&plan.out);
    specs.tree.run(&format!("approve {id} --config config.toml")).expect(0);
    specs.tree.run("apply --yes --config config.toml").expect(0);
    assert!(!has_later());

    // A later removal is an ordinary one.
    specs.tree.remove(SANDBOX);
    specs.push("less");
    specs.tree.run("plan --config config.toml").says_nothing_of(&["was rewritten"]);
}

#[test]
fn a_commit_that_nobody_signed_who_has_to_changes_nothing_and_is_told() {
    let specs = Specs::new();
    make_key(&specs.folder(), "ada", "");
    let key = fs::read_to_string(specs.tree.beside("ada.pub")).unwrap();
    fs::write(specs.tree.beside("signers"), format!("ada@example.com {key}")).unwrap();
    specs.set(&format!("git = \"{}\"\nsigned_by = \"signers\"", specs.remote().display()), true);
    specs.tree.run("plan --config config.toml").expect(1).says(&["it has no signature", "`git commit -S`"]);
    let key = specs.tree.beside("ada");
    let sign =
        format!("-c gpg.format=ssh -c user.signingkey={} commit --quiet --amend -S --no-edit", key.display());
    specs.git(&sign);
    specs.git("push --quiet --force ../specs.git main");
    let serve = Serve::start(&specs.tree, SERVE);
    replicas(&serve, &specs, "3");

    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    let commit = specs.push("grow");
    serve.signal("HUP");
    serve.says(&["stays active", &format!("cannot use commit {commit}"), "it has no signature"]);
    assert!(specs.pool().contains("replicas: 3\n"));
    specs.git(&sign);
    specs.git("push --quiet --force ../specs.git main");
    serve.signal("HUP");
    replicas(&serve, &specs, "6");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_was_fetched_before_is_not_done_until_it_is_known_what_there_is_now() {
    let specs = Specs::new();
    specs.tree.run("apply --yes --config config.toml").expect(0);
    let spec = specs.tree.read(ORDERS);
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    specs.push("grow");
    specs.tree.run("plan --config config.toml").expect(2);
    specs.tree.write(ORDERS, spec);
    specs.push("back");
    let serve = Serve::start(&specs.tree, SERVE);
    serve.says(&["planned", "looked="]);
    assert!(!serve.log().contains("decided"), "{}", serve.log());
    assert!(specs.pool().contains("replicas: 3\n"));
    assert_eq!(serve.stop(), Some(0));

    // If that can't be known, the last fetched commit stays active.
    fs::rename(specs.remote(), specs.tree.beside("away.git")).unwrap();
    let serve = Serve::start(&specs.tree, SERVE);
    serve.says(&["stays active"]);
    serve.says(&["planned", "looked="]);
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn what_cannot_be_fetched_is_told_once_and_changes_nothing() {
    let specs = Specs::new();
    let serve = Serve::start(&specs.tree, SERVE);
    serve.says(&["done", "cluster acme/sandbox"]);
    serve.says(&["done", "cluster acme/orders"]);
    let before = specs.target();

    specs.git("push --quiet ../specs.git main:other");
    specs.git("push --quiet --delete ../specs.git main");
    serve.signal("HUP");
    serve.says(&["stays active", "it has no branch `main`"]);

    let away = specs.tree.beside("away.git");
    fs::rename(specs.remote(), &away).unwrap();
    serve.signal("HUP");
    let told = || serve.log().lines().filter(|line| line.contains("stays active")).count();
    serve.until("it says that the remote is away", || (told() == 2).then_some(()));
    // A daemon without the remote keeps applying its last commit.
    fs::remove_file(specs.tree.beside("output/acme/eu").join(POOL)).unwrap();
    serve.signal("HUP");
    replicas(&serve, &specs, "3");
    let rounds = serve.rounds();
    serve.signal("HUP");
    serve.until("there was another round", || (serve.rounds() > rounds).then_some(()));
    assert_eq!(told(), 2, "{}", serve.log());

    fs::rename(&away, specs.remote()).unwrap();
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    assert_eq!(specs.target().len(), before.len());
    specs.push("grow");
    serve.signal("HUP");
    replicas(&serve, &specs, "6");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn an_emptied_branch_and_another_source_delete_nothing_that_nobody_approved() {
    let specs = Specs::new();
    specs.tree.run("apply --config config.toml --yes").expect(0);
    let before = specs.target();
    specs.git("rm --quiet -r .");
    specs.tree.write("README.md", "moved");
    specs.push("oops");
    let plan = specs.tree.run("plan --config config.toml").expect(3).says(&["approval"]);
    specs.tree.run("apply --config config.toml --yes").expect(3);
    assert_eq!(specs.target(), before);

    // The approval command printed in the plan is run as it is.
    let id = approval_id(&plan.out);
    let words = format!("approve {id} --config config.toml");
    assert!(plan.out.contains(&format!("streamfleet {words}")), "{}", plan.out);

    specs.git("revert --no-edit --no-commit HEAD");
    specs.git("rm --quiet --force acme/clusters/sandbox.yaml");
    specs.push("back");
    specs.git("push --quiet ../specs.git main:other");
    let remote = specs.remote();
    specs.set(&format!("git = \"{}\"\nbranch = \"other\"", remote.display()), true);
    specs.tree.run("plan --config config.toml").expect(3).says(&["the spec tree was", "(branch other)"]);
    specs.tree.run("apply --config config.toml --yes").expect(3);
    assert_eq!(specs.target(), before);
}

#[test]
fn a_plain_secret_in_git_is_refused_and_a_folder_of_the_same_specs_is_not() {
    let specs = Specs::new();
    specs.set(&format!("git = \"{}\"", specs.remote().display()), false);
    let said = ["`tls_key` is a plain-text secret in a git repository", "streamfleet secret seal"];
    specs.tree.run("validate --config config.toml").expect(1).says(&said).says_nothing_of(&["BEGIN PRIVATE"]);
    specs.tree.run("validate tree --config config.toml").expect(0);
}

#[test]
fn a_saved_plan_of_a_commit_is_applied_as_long_as_the_commit_is_the_last() {
    let specs = Specs::new();
    specs.tree.run("plan --config config.toml --out saved.json").expect(2);
    specs.tree.run("apply saved.json --config config.toml --yes").expect(0).says(&["output/acme/eu"]);
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    specs.push("grow");
    specs.tree.run("plan --config config.toml --out next.json").expect(2);
    specs.tree.edit(ORDERS, "kafka_units: 2", "kafka_units: 3");
    specs.push("more");
    specs.tree.run("apply next.json --config config.toml --yes").expect(1).says(&["is out of date"]);
}

#[test]
fn a_remote_that_says_nothing_holds_up_nothing() {
    let specs = Specs::new();
    let silent = TcpListener::bind("127.0.0.1:0").unwrap();
    let address = silent.local_addr().unwrap();
    specs.set(&format!("git = \"https://{address}/specs.git\"\ntimeout_seconds = 1"), true);
    let late = "timed out after 1 s";
    specs.tree.run("plan --config config.toml").expect(1).says(&[late, "raise `source.timeout_seconds`"]);
    let serve = Serve::start(&specs.tree, SERVE);
    serve.says(&[late, "nothing is applied"]);
    assert_eq!(serve.stop(), Some(0));
    // The server was contacted, over TLS.
    let mut hello = [0];
    silent.accept().unwrap().0.read_exact(&mut hello).unwrap();
    assert_eq!(hello, [22]);
}

#[test]
fn settings_with_a_password_are_refused_without_showing_it() {
    let specs = Specs::new();
    specs.set("git = \"https://ada:hunter2@git.example.com/specs.git\"", true);
    for words in ["plan --config config.toml", "config check config.toml", SERVE] {
        let said = ["`source.git` contains a user or a password"];
        specs.tree.run(words).expect(1).says(&said).says_nothing_of(&["hunter2"]);
    }
}

#[test]
fn a_repository_on_this_machine_that_is_not_there_is_said_so() {
    let specs = Specs::new();
    let place = specs.tree.beside("nowhere.git").display().to_string();
    let help = "set `source.git` to the full path of a git repository on this machine, or to an address: https://…, \
                ssh://… or user@host:path";
    for (given, shown) in [
        ("nowhere.git".to_owned(), place.clone()),
        (place.clone(), place.clone()),
        (format!("file://{place}"), format!("file://{place}")),
    ] {
        specs.set(&format!("git = \"{given}\""), true);
        let expected = format!(
            "error: cannot read the specs of {shown} (branch main)\n  because: cannot fetch {shown}: there is no such \
             folder on this machine\n  help: {help}\n"
        );
        assert_eq!(specs.tree.run("plan --config config.toml").expect(1).err, expected);
    }
    fs::create_dir(&place).unwrap();
    specs.set(&format!("git = \"{place}\""), true);
    let expected = format!(
        "error: cannot read the specs of {place} (branch main)\n  because: cannot fetch {place}: that folder is not a git \
         repository\n  help: set `source.git` to a git repository; to read specs from a plain folder, remove `source.git` \
         and give the folder on the command line\n"
    );
    assert_eq!(specs.tree.run("plan --config config.toml").expect(1).err, expected);
}

#[test]
fn a_checkout_of_the_repository_is_planned_as_what_is_merged_from_it() {
    let specs = Specs::new();
    specs.tree.run("apply --config config.toml --yes").expect(0);
    specs.tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    specs.tree.remove(SANDBOX);
    let before = specs.target();
    let proposed = specs.tree.run("plan --config config.toml --checkout tree").expect(2);
    let markdown = specs.tree.run("plan --config config.toml --checkout tree --format markdown").expect(2);
    assert!(markdown.out.contains("example.com\\>, with uncommitted changes\n"), "{}", markdown.out);
    assert!(proposed.out.starts_with("fleet acme/eu "), "{}", proposed.out);
    assert_eq!(specs.target(), before);
    let commit = specs.push("merged");
    specs
        .tree
        .run("plan --config config.toml --checkout tree --format markdown")
        .expect(2)
        .says(&[&format!(" of commit `{commit}` by Ada \\<ada\\@&#8203;example.com\\>\n")]);
    let merged = specs.tree.run("plan --config config.toml").expect(2);
    let body = |text: &str| text.rsplit_once("    plan ").unwrap().0.to_owned();
    assert_eq!(body(&merged.out), body(&proposed.out));

    specs.set(&format!("git = \"{}\"", specs.remote().display()), false);
    specs
        .tree
        .run("plan --config config.toml --checkout tree")
        .expect(1)
        .says(&["`tls_key` is a plain-text secret in a git repository"]);
    fs::create_dir(specs.tree.beside("plain")).unwrap();
    let said = specs.tree.run("plan --config config.toml --checkout plain").expect(1).err;
    let expected = "error: cannot read the checkout `plain`: it is not in a git repository, or in an empty one\n  help: \
                    give a folder that `git clone` or `git worktree add` created, or one in it\n";
    assert_eq!(said, expected);

    fs::write(specs.tree.path().join(".git/HEAD"), "nonsense").unwrap();
    let said = specs.tree.run("plan --config config.toml --checkout tree").expect(1).err;
    let expected = "error: cannot read the checkout `tree`\n  because: cannot find the commit of the checkout: corrupted \
                    loose reference file: HEAD\n  help: check it with git fsck\n";
    assert_eq!(said, expected);
}

/// A link in a pull request would disclose folders of the machine that checks it.
#[test]
fn a_checkout_with_a_link_for_the_folder_of_its_specs_is_refused() {
    let specs = Specs::new();
    specs.set(&format!("git = \"{}\"\nfolder = \"part/specs\"", specs.remote().display()), true);
    let refused = |link: &str| {
        let said = specs.tree.run("plan --config config.toml --checkout tree").expect(1).err;
        let expected = format!(
            "error: cannot read the checkout `tree`: its `{link}` is a link, and links are not followed\n  help: replace \
             the link by the folder itself\n"
        );
        assert_eq!(said, expected);
    };
    let part = specs.tree.path().join("part");
    fs::create_dir_all(&part).unwrap();
    std::os::unix::fs::symlink("/etc", part.join("specs")).unwrap();
    refused("part/specs");
    fs::remove_dir_all(&part).unwrap();
    std::os::unix::fs::symlink("/", &part).unwrap();
    refused("part");
}
