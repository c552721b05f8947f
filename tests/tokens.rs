//! `streamfleet token`, with and without a daemon, and where traces of a token remain.

use std::fs;
use std::io::{Read as _, Write as _};
use std::os::unix::fs::PermissionsExt as _;
use std::os::unix::net::UnixStream;

use serde_json::{Value, json};
use streamfleet::names::Digest;

use crate::support::serve::Serve;
use crate::support::{Run, Tree, files};

const STATE: &str = ".streamfleet/state";
const SERVE: &str = "serve --specs tree";
const CREATE: &str = "token create tree --name ci --owner platform@acme.example.com --organization acme";

#[track_caller]
fn printed(run: &Run) -> String {
    let token = run.out.strip_suffix('\n').unwrap().to_owned();
    let digits = token.strip_prefix("sf_").unwrap();
    assert!(digits.len() == 64 && digits.bytes().all(|byte| byte.is_ascii_hexdigit()), "{}", run.out);
    token
}

fn listed(tree: &Tree, words: &str) -> Vec<Value> {
    let out = tree.run(&format!("token list tree --format json {words}")).expect(0).out;
    serde_json::from_str(&out).unwrap()
}

/// Asserts that no file in or beside the tree contains any part of the token except for its digest in one
/// file.
#[track_caller]
fn is_nowhere(tree: &Tree, token: &str) {
    let digest = Digest::of(token);
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    for (path, bytes) in files(&tree.beside("")) {
        assert!(!holds(&bytes, &token[3..]), "{path}");
        let may = path.ends_with("/tokens.jsonl") || path.ends_with(".tar");
        assert!(may || !holds(&bytes, digest.as_str()), "{path}");
    }
}

#[test]
fn a_token_is_printed_once_and_only_its_digest_is_kept() {
    let tree = Tree::example("quickstart");
    assert_eq!(
        tree.run("token list tree").expect(0).out,
        "There are no valid tokens; to create one: streamfleet token create tree --help\n"
    );
    assert!(!tree.path().join(".streamfleet").exists(), "looking leaves nothing behind");
    let run = tree.run(&format!("{CREATE} --access write --days 30 -vv")).expect(0);
    let token = printed(&run);
    let digest = Digest::of(&token);
    let made = listed(&tree, "").remove(0);
    let (id, until) = (made["id"].as_str().unwrap(), made["expires_at"].as_str().unwrap());
    assert_eq!(
        run.err.lines().filter(|line| !line.contains("DEBUG")).collect::<Vec<_>>(),
        [
            format!(
                "Created token ci for platform@acme.example.com: write in organization acme, until {until}."
            )
            .as_str(),
            &format!("It is shown only once. To revoke it: streamfleet token revoke {id} tree"),
        ]
    );
    let created = made["created_at"].as_str().unwrap();
    assert!(created.ends_with('Z') && created.len() == "2026-11-22T07:00:00.000000Z".len(), "{created}");
    let days = |text: &str| text.parse::<jiff::Timestamp>().unwrap().as_second() / (24 * 60 * 60);
    assert_eq!(days(until) - days(created), 30);
    assert_eq!(
        made,
        json!({
            "id": id, "name": "ci", "owner": "platform@acme.example.com", "organization": "acme", "access": "write",
            "purpose": "api", "sign_in": null, "created_at": created, "expires_at": until, "revoked_at": null,
        })
    );
    let table = tree.run("token list tree").expect(0);
    assert_eq!(
        table.out,
        format!(
            "NAME  OWNER                      ORGANIZATION  ACCESS  ENDS        ID\n\
             ci    platform@acme.example.com  acme          write   in 29 days  {id}\n"
        )
    );
    tree.run("events tree -vv").expect(0).says(&[&format!(
        "created token ci ({id}) of platform@acme.example.com: write in organization acme, until {until}"
    )]);
    tree.run("backup FILE.tar tree").expect(0).says(&["tokens.jsonl"]);
    tree.run("apply tree --yes -vv").expect(0).says_nothing_of(&[&token[3..], digest.as_str()]);
    assert!(!run.err.contains(&token[3..]) && !run.err.contains(digest.as_str()));
    let kept = tree.path().join(STATE).join("tokens.jsonl");
    assert_eq!(fs::metadata(&kept).unwrap().permissions().mode() & 0o777, 0o600);
    assert!(fs::read_to_string(&kept).unwrap().contains(digest.as_str()));
    is_nowhere(&tree, &token);
}

#[test]
fn other_programs_get_all_of_it_as_json() {
    let tree = Tree::example("quickstart");
    let out = tree.run(&format!("{CREATE} --format json")).expect(0).out;
    let mut made: Value = serde_json::from_str(&out).unwrap();
    let token = made.as_object_mut().unwrap().remove("token").unwrap();
    assert!(token.as_str().unwrap().starts_with("sf_"));
    // Defaults are the least access, with an expiry.
    assert_eq!(made["access"], "read");
    assert_eq!(listed(&tree, ""), [made]);
    let all =
        "token create tree --name all --owner platform@acme.example.com --all-organizations --access admin";
    printed(&tree.run(all).expect(0));
    assert_eq!(listed(&tree, "")[1]["organization"], "*");
    is_nowhere(&tree, token.as_str().unwrap());
}

#[test]
fn what_nobody_could_have_is_refused_before_anything_is_made() {
    let tree = Tree::example("quickstart");
    let create = |words: &str| tree.run(&format!("token create tree {words}")).expect(64).err;
    let first = |said: String| said.lines().next().unwrap().to_owned();
    for (words, expected) in [
        (
            "--name ci --owner a@b --organization acme --days 0",
            "error: invalid value '0' for '--days <DAYS>': 0 is not in 1..=365",
        ),
        (
            "--name ci --owner a@b --organization acme --days 366",
            "error: invalid value '366' for '--days <DAYS>': 366 is not in 1..=365",
        ),
        (
            "--name ci --owner a@b --organization acme --access wrte",
            "error: invalid value 'wrte' for '--access <ACCESS>'",
        ),
        (
            "--name ci --owner a@b --organization Acme",
            "error: invalid value 'Acme' for '--organization <ORGANIZATION>': `Acme` is not an identifier: lower-case letters, \
             digits and single hyphens, starting with a letter, at most 32 characters",
        ),
        (
            "--name ci --owner a@b --organization acme --all-organizations",
            "error: the argument '--organization <ORGANIZATION>' cannot be used with '--all-organizations'",
        ),
        ("--name ci --owner ada --organization acme", "error: `ada` is not an e-mail address"),
        (
            "--name --owner a@b --organization acme",
            "error: a value is required for '--name <NAME>' but none was supplied",
        ),
    ] {
        assert_eq!(first(create(words)), expected, "{words}");
    }
    let said = create("--name ci --owner a@b --organization acme --access wrte");
    assert!(said.contains("[possible values: read, write, admin]") && said.contains("'write'"), "{said}");
    let said = create("--name ci --owner a@b");
    assert!(said.contains("--organization <ORGANIZATION>"), "{said}");
    assert_eq!(listed(&tree, "--all"), Vec::<Value>::new());
}

#[test]
fn a_token_is_revoked_by_its_name_or_its_id_and_twice_is_told() {
    let tree = Tree::example("quickstart");
    let tokens = [(); 3].map(|()| printed(&tree.run(CREATE).expect(0)));
    let ids: Vec<String> =
        listed(&tree, "").iter().map(|token| token["id"].as_str().unwrap().to_owned()).collect();
    let revoke = |named: &str, code| tree.run(&format!("token revoke {named} tree")).expect(code);
    let owner = "platform@acme.example.com";
    assert_eq!(
        revoke("ci", 1).err,
        format!(
            "error: 3 valid tokens have the name ci\n  help: use an id: {} of {owner}, {} of {owner}, {} of {owner}\n",
            ids[0], ids[1], ids[2]
        )
    );
    for id in &ids[..2] {
        let said = revoke(id, 0).out;
        assert_eq!(said, format!("Revoked token ci ({id}) of {owner}. It is no longer valid.\n"));
    }
    // The last valid token.
    assert!(revoke("ci", 0).out.starts_with(&format!("Revoked token ci ({}) of {owner}. ", ids[2])));
    let again = revoke("ci", 0).out;
    assert!(
        again.starts_with(&format!("token ci ({}) of {owner} was revoked already, at 20", ids[2])),
        "{again}"
    );
    assert_eq!(listed(&tree, ""), Vec::<Value>::new());
    assert!(listed(&tree, "--all").iter().all(|token| token["revoked_at"].is_string()));
    tree.run("token list tree --all").expect(0).says(&["  revoked ", " s ago  "]);
    let help = "  help: list the tokens with: streamfleet token list tree --all\n";
    for unknown in ["nothing", "01900000-0000-7000-8000-000000000000"] {
        assert_eq!(revoke(unknown, 1).err, format!("error: there is no token {unknown}\n{help}"));
    }
    let said = revoke(&tokens[0], 1).err;
    assert_eq!(said, format!("error: this is a token itself, not its id or name\n{help}"));
    let audit = tree.read(&format!("{STATE}/audit.jsonl"));
    let revoked =
        ids.iter().filter(|id| audit.matches(&format!("revoked token ci ({id}) of {owner}")).count() == 1);
    assert_eq!(revoked.count(), 3, "{audit}");
}

#[test]
fn beside_a_daemon_it_is_asked_and_without_one_the_same_is_there() {
    let tree = Tree::example("quickstart");
    let before = printed(&tree.run(CREATE).expect(0));
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["fleet acme/eu"]);
    let by = format!("the running daemon (pid {}) answers\n", serve.id());
    let run =
        tree.run("token create tree --name other --owner ada@example.com --all-organizations").expect(0);
    assert!(run.err.starts_with(&by), "{}", run.err);
    let token = printed(&run);
    run.says(&["Created token other for ada@example.com: read in all organizations, until 20"]);
    let list = tree.run("token list tree").expect(0);
    assert_eq!(list.err, by);
    assert_eq!(listed(&tree, "").len(), 2);
    let revoked = tree.run("token revoke ci tree").expect(0);
    assert_eq!(revoked.err, by);
    revoked.says(&["Revoked token ci ("]);
    tree.run("token revoke ci tree").expect(0).says(&[" was revoked already, at "]);
    tree.run("token revoke nothing tree").expect(1).says(&["there is no token nothing"]);
    tree.run("token revoke 01900000-0000-7000-8000-000000000000 tree")
        .expect(1)
        .says(&["there is no token 01900000-0000-7000-8000-000000000000"]);
    let all = listed(&tree, "--all");
    let log = serve.log();
    assert_eq!(serve.stop(), Some(0));
    assert_eq!(listed(&tree, "--all"), all);
    for token in [before, token] {
        assert!(!log.contains(&token[3..]) && !log.contains(Digest::of(&token).as_str()), "{log}");
        is_nowhere(&tree, &token);
    }
    let audit = tree.read(&format!("{STATE}/audit.jsonl"));
    assert!(audit.contains("(command line, uid ") && audit.contains("revoked token ci ("), "{audit}");
}

#[test]
fn a_daemon_refuses_what_is_no_order_and_answers_others() {
    let tree = Tree::example("quickstart");
    let serve = Serve::start(&tree, SERVE);
    serve.has_made(&["fleet acme/eu"]);
    let ask = |what: &str, body: &str| -> (String, Value) {
        let mut stream = UnixStream::connect(tree.path().join(STATE).join("socket")).unwrap();
        let length = body.len();
        write!(
            stream,
            "{what} HTTP/1.1\r\nHost: h\r\nConnection: close\r\nContent-Type: application/json\r\nStreamfleet-User: \
                ann\r\nContent-Length: {length}\r\n\r\n{body}"
        )
        .unwrap();
        let mut text = String::new();
        stream.read_to_string(&mut text).unwrap();
        let (head, body) = text.split_once("\r\n\r\n").unwrap();
        (head.split_whitespace().nth(1).unwrap().to_owned(), serde_json::from_str(body).unwrap())
    };
    let order = |days: u32| {
        json!({"name": "ci", "owner": "a@b", "organization": "acme", "access": "write", "days": days})
            .to_string()
    };
    let lacks = r#"{"name":"ci","owner":"a@b","access":"read"}"#;
    let wrong = r#"{"name":"ci","owner":"a@b","organization":"acme","access":"all"}"#;
    for (what, body, expected, detail) in [
        ("POST /v1/tokens", "", "400", "cannot read the body: it is empty"),
        ("POST /v1/tokens", lacks, "422", "missing key `organization`"),
        (
            "POST /v1/tokens",
            wrong,
            "422",
            "`access`: expected `read`, `write` or `admin`, found the string `all`",
        ),
        (
            "POST /v1/tokens",
            &order(366),
            "422",
            "`days`: expected an integer from 1 to 365, found the number `366`",
        ),
        ("DELETE /v1/tokens/x", "", "404", "there is no token `x`, or the caller may not see it"),
    ] {
        let (status, problem) = ask(what, body);
        assert_eq!((status.as_str(), &problem["detail"]), (expected, &detail.into()), "{what}");
    }
    assert_eq!(ask("GET /v1/tokens", "").1["items"], json!([]));
    let (status, made) = ask("POST /v1/tokens", &order(1));
    assert_eq!((status.as_str(), &made["name"]), ("201", &"ci".into()));
    let audit = tree.read(&format!("{STATE}/audit.jsonl"));
    assert!(audit.contains("\"ann (command line, uid "), "{audit}");
    assert_eq!(serve.stop(), Some(0));
}

/// Beside `serve` and without it alike.
fn refuses_acne(tree: &Tree) {
    let before = listed(tree, "").len();
    let create = |organization: &str| {
        let words =
            format!("token create tree --name ci --owner ada@example.com --organization {organization}");
        tree.run(&words).expect(64)
    };
    let run = create("acne");
    let expected = "error: there is no organization `acne` in the specs\n  help: did you mean `acme`?\n";
    assert_eq!((run.out.as_str(), run.err.as_str()), ("", expected));
    let expected = "error: there is no organization `somebody-else` in the specs\n  help: describe the organization first; \
                    `streamfleet get organizations` lists the existing ones\n";
    assert_eq!(create("somebody-else").err, expected);
    assert_eq!(listed(tree, "").len(), before, "none was made");
}

#[test]
fn a_token_for_an_organization_that_there_is_not_is_refused() {
    let tree = Tree::example("quickstart");
    tree.run(CREATE).expect(0);
    refuses_acne(&tree);
    // What can't be read may describe it.
    tree.write("broken.yaml", "kind: [\n");
    tree.run("token create tree --name ci --owner ada@example.com --organization acne").expect(0);
}

#[test]
fn who_makes_a_token_that_is_good_for_less_is_told() {
    let tree = Tree::example("quickstart");
    let of = |owner: &str, access: &str| {
        let words =
            format!("token create tree --name ci --owner {owner} --organization acme --access {access}");
        let super_users = ("STREAMFLEET_SUPER_USER_EMAILS", "grace@example.com, Joan@example.com");
        tree.run_with(&words, &[super_users], "").expect(0).err
    };
    let nobody = "warning: ada@example.com is neither a member of organization acme in the specs nor a super user; the \
                  token is useless until that changes\n";
    let check = || {
        assert!(of("ada@example.com", "read").contains(nobody));
        for owner in ["Platform@acme.example.com", "grace@example.com", "joan@example.com"] {
            let said = of(owner, "admin");
            assert!(!said.contains("warning"), "{said}");
        }
        let said = of("viewer@acme.example.com", "write");
        let expected = "warning: viewer@acme.example.com may only read in organization acme; the token can't do more until \
                        that changes\n";
        assert!(said.contains(expected), "{said}");
    };
    let file = "organizations.yaml";
    let text = tree.read(file) + "  - email: viewer@acme.example.com\n    role: viewer\n";
    // An organization that was never valid has no members.
    tree.write(file, text.replace("fleets: 2", "fleets: many"));
    assert!(
        of("viewer@acme.example.com", "read")
            .contains("viewer@acme.example.com is neither a member of organization acme")
    );
    tree.write(file, &text);
    check();
    tree.run("apply tree --yes").expect(0);
    // One that is invalid now has the members of its last valid version.
    tree.write(file, text.replace("fleets: 2", "fleets: many").replace("viewer@", "another@"));
    check();
    // The same with a daemon.
    let serve = Serve::start_with(
        &tree,
        SERVE,
        &[
            ("STREAMFLEET_SUPER_USER_EMAILS", "grace@example.com,joan@example.com"),
            ("STREAMFLEET_LISTEN", "none"),
        ],
    );
    serve.says(&["looked="]);
    check();
    let knows = |organization: &str, word: &str| {
        let record = tree.run(&format!("get organization/{organization} tree"));
        (record.code == 0 && record.out.contains(word)).then_some(())
    };
    // An organization that two documents claim was never valid, though each document is readable.
    let document = |name: &str| {
        format!(
            "---\napiVersion: streamfleet/v1\nkind: Organization\nidentifier: {name}\nmembers:\n  - email: ada@example.com\n    \
             role: admin\n"
        )
    };
    tree.write("more.yaml", document("one") + &document("two") + &document("two"));
    serve.until("the organization is there", || knows("one", "ada@example.com"));
    let told = |organization: &str| {
        let words =
            format!("token create tree --name ci --owner ada@example.com --organization {organization}");
        tree.run(&words)
            .expect(0)
            .err
            .contains("warning: ada@example.com is neither a member of organization")
    };
    assert_eq!([told("one"), told("two")], [false, true]);
    refuses_acne(&tree);
    // Who is taken out is out with the next plan.
    tree.write(file, text.replace("viewer@", "another@"));
    serve.until("the members are others", || knows("acme", "another@"));
    assert!(of("viewer@acme.example.com", "read").contains("is neither a member of organization acme"));
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_backup_brings_tokens_back_and_says_what_that_means() {
    let tree = Tree::example("quickstart");
    tree.run("apply tree --yes").expect(0);
    printed(&tree.run(CREATE).expect(0));
    tree.run("backup FILE.tar tree").expect(0);
    let before = listed(&tree, "");
    tree.run("token revoke ci tree").expect(0);
    fs::remove_dir_all(tree.path().join(STATE)).unwrap();
    tree.run("restore FILE.tar tree").expect(0).says(&[
        "  tokens.jsonl\n",
        "Tokens that were revoked since the backup are valid again, and those created since are invalid; list them: \
         streamfleet token list tree\n",
    ]);
    assert_eq!(listed(&tree, ""), before);
}
