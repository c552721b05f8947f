use std::process::Command;

use super::*;

fn make_key(place: &Place, name: &str, kind: &str) {
    let (kind, bits) = kind.split_once(' ').unwrap_or((kind, "0"));
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-t", kind, "-N", "", "-C", name, "-f"]).arg(place.path(name));
    if bits != "0" {
        keygen.args(["-b", bits]);
    }
    assert!(keygen.status().expect("the tests of signatures need OpenSSH").success());
}

fn sign(place: &Place, key: &str, namespace: &str, text: &str) -> String {
    let file = place.path("to-sign");
    fs::write(&file, text).unwrap();
    let mut keygen = Command::new("ssh-keygen");
    keygen.args(["-q", "-Y", "sign", "-n", namespace, "-f"]).arg(place.path(key)).arg(&file);
    assert!(keygen.status().unwrap().success());
    let signature = format!("{file}.sig");
    let text = fs::read_to_string(&signature).unwrap();
    fs::remove_file(signature).unwrap();
    text
}

fn text(place: &Place, message: &str) -> String {
    let author = Signature::now("Ada", "ada@example.com").unwrap();
    let first = place.commit(None, &[("a.yaml", Put::File("a"))]);
    let tree = place.repository.find_commit(first).unwrap().tree().unwrap();
    let buffer = place.repository.commit_create_buffer(&author, &author, message, &tree, &[]).unwrap();
    buffer.as_str().unwrap().to_owned()
}

fn allow(place: &Place, keys: &[&str]) {
    let key = |name: &&str| fs::read_to_string(place.path(&format!("{name}.pub"))).unwrap();
    let lines: Vec<String> = keys.iter().map(|name| format!("{name}@example.com {}", key(name))).collect();
    fs::write(place.path("signers"), lines.join("")).unwrap();
}

#[test]
fn a_commit_is_taken_when_a_key_of_the_list_signed_it() {
    let place = Place::new();
    let mut mirror = place.mirror(None);
    mirror.signed_by = Some(place.path("signers"));
    let kinds = ["ed25519", "ecdsa 256", "ecdsa 384", "ecdsa 521", "rsa 3072"];
    let names = kinds.map(|kind| kind.replace(' ', ""));
    kinds.iter().zip(&names).for_each(|(kind, name)| make_key(&place, name, kind));
    allow(&place, &names.each_ref().map(String::as_str));
    for name in &names {
        let text = text(&place, name);
        let commit = place.repository.commit_signed(&text, &sign(&place, name, "git", &text), None).unwrap();
        let id = place.push(commit);
        assert_eq!(mirror.fetch().map_err(|error| error.to_string()).unwrap().commit, id, "{name}");
    }
}

#[test]
fn a_commit_that_nobody_signed_who_has_to_is_not_taken() {
    let place = Place::new();
    ["ada", "eve"].iter().for_each(|name| make_key(&place, name, "ed25519"));
    allow(&place, &["ada"]);
    let mut mirror = place.mirror(None);
    // Commits that were active before signatures were required are no longer active.
    let unsigned = place.push(place.commit(None, &[("a.yaml", Put::File("a"))]));
    mirror.fetch().unwrap();
    assert_eq!(mirror.unsigned(), None);
    mirror.signed_by = Some(place.path("signers"));
    assert_eq!((mirror.commit(), mirror.unsigned()), (None, Some(unsigned)));

    let good = text(&place, "good");
    let good = place.repository.commit_signed(&good, &sign(&place, "ada", "git", &good), None).unwrap();
    let id = place.push(good);
    mirror.fetch().unwrap();
    assert_eq!(mirror.unsigned(), None);

    let signed = |signature: &str, message: &str| {
        place.repository.commit_signed(&text(&place, message), signature, None).unwrap()
    };
    let pgp = "-----BEGIN PGP SIGNATURE-----\n\niQ==\n-----END PGP SIGNATURE-----";
    let x509 = "-----BEGIN SIGNED MESSAGE-----\nMIIB\n-----END SIGNED MESSAGE-----";
    let broken = "-----BEGIN SSH SIGNATURE-----\nAAAA\n-----END SSH SIGNATURE-----";
    let of = |key, namespace| sign(&place, key, namespace, &text(&place, "signed"));
    let eve = fs::read_to_string(place.path("eve.pub")).unwrap();
    let mut told = Vec::new();
    for commit in [
        place.commit(None, &[("b.yaml", Put::File("b"))]),
        place.commit(Some(good), &[("b.yaml", Put::File("b"))]),
        signed(&of("eve", "git"), "signed"),
        signed(&of("ada", "file"), "signed"),
        signed(&of("ada", "git"), "another"),
        signed(pgp, "pgp"),
        signed(x509, "x509"),
        signed(broken, "broken"),
    ] {
        let commit = place.push(commit);
        let said = place.refused(mirror.fetch()).replace(&commit, "COMMIT");
        told.push(said.split('\n').next().unwrap().to_owned());
        assert_eq!(mirror.commit(), Some(id.clone()));
        assert_eq!(mirror.snapshot().unwrap().revision, id);
    }
    let shown = |name: &str| {
        let mut keygen = Command::new("ssh-keygen");
        let said = keygen.arg("-lf").arg(place.path(name)).output().unwrap().stdout;
        String::from_utf8(said).unwrap().split(' ').nth(1).unwrap().to_owned()
    };
    let told = told.join("\n").replace(&shown("ada"), "SHA256:ADA").replace(&shown("eve"), "SHA256:EVE");
    insta::assert_snapshot!(told);

    fs::write(place.path("signers"), format!("eve cert-authority {eve}")).unwrap();
    insta::assert_snapshot!(place.refused(mirror.fetch()), @r"
    cannot use /signers from `source.signed_by`: line 1: `cert-authority` is not supported; to revoke a key, remove its line
    = check what is in the file, and that the user that runs streamfleet can read it
    ");
    assert_eq!(mirror.commit(), Some(id));
}

#[test]
fn what_is_written_is_signed_where_that_is_asked_for() {
    use crate::source::{Author, FileEdit, SourceChange};
    use write::WriteError;
    let place = Place::new();
    ["ada", "own", "other"].iter().for_each(|name| make_key(&place, name, "ed25519"));
    make_key(&place, "long", "rsa 3072");
    allow(&place, &["ada", "own"]);
    let first = text(&place, "first");
    let first = place.repository.commit_signed(&first, &sign(&place, "ada", "git", &first), None).unwrap();
    place.push(first);
    let mut mirror = place.mirror(None);
    mirror.signed_by = Some(place.path("signers"));
    let author = Author { name: "Ada".to_owned(), email: "ada@example.com".to_owned() };
    let write = |mirror: &Mirror| {
        let edit = FileEdit { path: "b.yaml".parse().unwrap(), content: Some(b"b".to_vec()) };
        let change = SourceChange { message: "change".to_owned(), edits: vec![edit] };
        mirror.write(&author, |_| Ok::<_, std::convert::Infallible>(change.clone()))
    };
    let mut told = Vec::new();
    for key in [None, Some("other"), Some("long"), Some("signers"), Some("gone")] {
        mirror.signing_key = key.map(|key| place.path(key));
        let error = write(&mirror).unwrap_err();
        assert!(matches!(error, WriteError::Commit(_) | WriteError::Unsigned));
        told.push(error.to_string());
        assert_eq!(place.repository.refname_to_id(BRANCH).unwrap(), first);
    }
    let told = told.join("\n").replace(place.folder.path().to_str().unwrap(), "");
    let words = told.split(' ').map(|word| if word.starts_with("SHA256:") { "SHA256:OTHER," } else { word });
    let words: Vec<_> = words.map(|word| if word.len() == 40 { "COMMIT" } else { word }).collect();
    insta::assert_snapshot!(words.join(" "));

    mirror.signing_key = Some(place.path("own"));
    let written = write(&mirror).unwrap();
    assert_eq!(place.repository.refname_to_id(BRANCH).unwrap().to_string(), written.commit);
    assert!(!mirror.fetch().unwrap().is_new);
    // Git itself accepts the signature, too.
    let mut git = Command::new("git");
    git.arg("-c").arg(format!("gpg.ssh.allowedSignersFile={}", place.path("signers")));
    git.args(["verify-commit", &written.commit]).current_dir(place.path("remote.git"));
    let said = git.output().unwrap();
    assert!(said.status.success(), "{}", String::from_utf8_lossy(&said.stderr));
}
