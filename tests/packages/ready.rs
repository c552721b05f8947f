//! The health check that needs no shell.

use std::fs;

use crate::support::Tree;
use crate::support::serve::Serve;

const SETTINGS: &str = "state_dir = \"state\"\noutput_dir = \"output\"\n";

#[test]
fn it_tells_a_daemon_that_is_ready_from_one_that_is_not_and_from_none() {
    let tree = Tree::example("quickstart");
    let none = "error: not ready: no `serve` runs with the state in `state`\n  help: start it, and try again: streamfleet \
                serve --specs tree --state-dir state\n";
    assert_eq!(tree.run("ready tree --state-dir state").expect(1).err, none);

    fs::write(tree.beside("settings.toml"), format!("{SETTINGS}[source]\ngit = \"gone.git\"\n")).unwrap();
    let serve = Serve::start(&tree, "serve --config settings.toml");
    serve.says(&["cannot fetch, and there is no earlier commit, so nothing is applied"]);
    let unread = "error: not ready: the specs have not been read yet\n  help: read the log of `serve`, which says what it \
                  waits for\n";
    assert_eq!(tree.run("ready --config settings.toml").expect(1).err, unread);
    assert_eq!(serve.stop(), Some(0));

    fs::write(tree.beside("settings.toml"), SETTINGS).unwrap();
    let serve = Serve::start(&tree, "serve --specs tree --config settings.toml");
    let ready = serve.until("it is ready", || {
        let run = tree.run("ready tree --config settings.toml");
        (run.code == 0).then_some(run)
    });
    assert_eq!((ready.out.as_str(), ready.err.as_str()), ("ready\n", ""));

    serve.signal("STOP");
    let hung = "error: cannot reach the running daemon at `state/socket`\n  because: no answer within 5 s\n  help: check \
                whether it still runs and read its log; then try again\n";
    let said = tree.run("ready tree --config settings.toml").expect(1).err;
    assert_eq!(said.replace(&tree.beside("state").display().to_string(), "state"), hung);
    serve.signal("CONT");
    assert_eq!(serve.stop(), Some(0));
}
