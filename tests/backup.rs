//! Backup files: their content, who can read them, and what is refused.

use std::fs;
use std::path::Path;

use secrecy::ExposeSecret as _;

use crate::restore::{FINGERPRINT, IDENTITIES, REGISTRY, STATE, applied, backed_up, kept, lose, mode};
use crate::support::Tree;

fn entries(file: &Path) -> Vec<(String, Vec<u8>)> {
    let mut archive = tar::Archive::new(fs::File::open(file).unwrap());
    let read = |entry: std::io::Result<tar::Entry<fs::File>>| {
        let mut entry = entry.unwrap();
        let mut bytes = Vec::new();
        std::io::Read::read_to_end(&mut entry, &mut bytes).unwrap();
        (entry.path().unwrap().to_str().unwrap().to_owned(), bytes)
    };
    archive.entries().unwrap().map(read).collect()
}

fn write_archive(file: &Path, entries: &[(String, Vec<u8>)]) {
    let mut tar = tar::Builder::new(fs::File::create(file).unwrap());
    for (name, bytes) in entries {
        let mut header = tar::Header::new_ustar();
        header.set_size(bytes.len() as u64);
        // The library refuses names that lead out of a folder; an attacker's wouldn't.
        header.as_mut_bytes()[..name.len()].copy_from_slice(name.as_bytes());
        header.set_mode(0o600);
        header.set_cksum();
        tar.append(&header, bytes.as_slice()).unwrap();
    }
    tar.finish().unwrap();
}

#[test]
fn a_backup_is_its_owners_alone_holds_all_that_is_kept_and_says_that_keys_are_in_it() {
    let tree = applied();
    let run = tree.run("backup FILE.tar tree").expect(0).says(&[
        "Backed up the state in ",
        "It contains the installation's private keys, which open every sealed secret. Restrict its permissions to \
            yourself, or encrypt it with --recipient.\nTo restore it: streamfleet restore FILE.tar tree\n",
    ]);
    assert!(!run.out.contains("AGE-SECRET-KEY"));
    let file = tree.beside("FILE.tar");
    assert_eq!(mode(&file), 0o600);
    let entries = entries(&file);
    let names: Vec<&str> = entries.iter().map(|(name, _)| name.as_str()).collect();
    assert_eq!(
        names,
        [
            "manifest.json",
            "registry.jsonl",
            "audit.jsonl",
            "sizes.jsonl",
            "identity.age-keys",
            "fingerprint.key"
        ]
    );
    let bytes: Vec<Vec<u8>> = entries.into_iter().skip(1).map(|(_, bytes)| bytes).collect();
    assert_eq!(bytes, kept(&tree));
}

#[test]
fn a_backup_replaces_nothing_and_lies_where_it_is_not_lost_or_committed() {
    let tree = backed_up();
    let before = fs::read(tree.beside("FILE.tar")).unwrap();
    tree.run("backup FILE.tar tree").expect(1).says(&[
        "cannot write the backup `FILE.tar`",
        "a backup doesn't overwrite files: choose another file",
    ]);
    assert_eq!(fs::read(tree.beside("FILE.tar")).unwrap(), before);
    for file in ["tree/FILE.tar", "tree/.streamfleet/state/FILE.tar"] {
        tree.run(&format!("backup {file} tree")).expect(1).says(&[&format!(
            "cannot write the backup `{file}`: it would be inside the tree or the state that it saves"
        )]);
        assert!(!tree.beside(file).exists());
    }
    let empty = Tree::example("quickstart");
    empty.run("backup FILE.tar tree").expect(1).says(&[
        "nothing is recorded in ",
        "there is nothing to back up before the first `streamfleet apply tree`",
    ]);
    assert!(!empty.beside("FILE.tar").exists());
}

#[test]
fn a_damaged_state_is_not_backed_up() {
    for (file, says) in [(REGISTRY, "it is damaged"), (IDENTITIES, "is damaged"), (FINGERPRINT, "is damaged")]
    {
        let tree = applied();
        let text = tree.read(file);
        tree.write(file, format!("x{text}"));
        tree.run("backup FILE.tar tree").expect(1).says(&["cannot back up the state in", says]);
        assert!(!tree.beside("FILE.tar").exists());
    }
}

#[test]
fn an_encrypted_backup_opens_with_its_identity_alone() {
    let tree = applied();
    let identity = age::x25519::Identity::generate();
    let recipient = identity.to_public();
    let text = format!("# for backups\n{}\n", identity.to_string().expose_secret());
    fs::write(tree.beside("id"), text).unwrap();
    tree.run("backup FILE.age tree --recipient age1nonsense")
        .expect(1)
        .says(&["`age1nonsense` is not an age recipient"]);
    let own = tree.run("secret recipient tree").expect(0).out;
    tree.run(&format!("backup FILE.age tree --recipient {own}")).expect(64).says(&[
        "cannot encrypt the backup to the installation's own identity, which would be lost with it",
        "create an identity for backups with `age-keygen`, and keep it elsewhere",
    ]);
    let run = tree.run(&format!("backup FILE.age tree --recipient {recipient}")).expect(0);
    run.says(&[
        "It is encrypted; to restore it: streamfleet restore FILE.age tree --identity IDENTITY_FILE\n",
    ]);
    let sealed = fs::read(tree.beside("FILE.age")).unwrap();
    assert!(!sealed.windows(14).any(|part| part == b"AGE-SECRET-KEY"));
    assert_eq!(mode(&tree.beside("FILE.age")), 0o600);
    lose(&tree, STATE);
    tree.run("restore FILE.age tree")
        .expect(64)
        .says(&["cannot read the backup `FILE.age`: it is encrypted"]);
    fs::write(tree.beside("other"), applied().read(IDENTITIES)).unwrap();
    tree.run("restore FILE.age tree --identity other").expect(1).says(&[
        "it is sealed to none of the identities in the identity file",
        "give the identity whose recipient it was sealed to",
    ]);
    fs::write(tree.beside("cut"), &sealed[..sealed.len() - 20]).unwrap();
    tree.run("restore cut tree --identity id").expect(1).says(&["the sealed file is damaged"]);
    assert!(!tree.path().join(REGISTRY).exists());
    tree.run("restore FILE.age tree --identity id").expect(0);
    tree.run("plan tree").expect(0).says(&["Nothing to do"]);
}

#[test]
fn an_archive_that_is_not_as_it_was_made_is_refused_before_anything_is_written() {
    type Harm = fn(&mut Vec<(String, Vec<u8>)>);
    let cases: [(&str, Harm); 8] = [
        ("it is damaged: `registry.jsonl` differs from what was saved", |entries| entries[1].1[5] ^= 1),
        ("it is damaged: `identity.age-keys` is missing from it", |entries| drop(entries.remove(4))),
        ("it contains `../../evil`, which no backup contains", |entries| entries[2].0 = "../../evil".into()),
        ("it contains `/etc/passwd`, which no backup contains", |entries| {
            entries[2].0 = "/etc/passwd".into()
        }),
        ("it contains `lock`, which no backup contains", |entries| {
            entries.push(("lock".into(), b"1".to_vec()))
        }),
        ("it contains `registry.jsonl`, which no backup contains", |entries| {
            entries.push(entries[1].clone())
        }),
        ("it is not a backup of streamfleet (it has no `manifest.json`)", |entries| drop(entries.remove(0))),
        ("a newer version of streamfleet created it (format 2, this one reads up to 1)", |entries| {
            let text = String::from_utf8(entries[0].1.clone()).unwrap();
            entries[0].1 = text.replace("\"format\": 1", "\"format\": 2, \"new\": true").into_bytes();
        }),
    ];
    let tree = backed_up();
    let whole = entries(&tree.beside("FILE.tar"));
    lose(&tree, STATE);
    for (number, (says, harm)) in cases.into_iter().enumerate() {
        let mut entries = whole.clone();
        harm(&mut entries);
        let file = format!("harmed-{number}");
        write_archive(&tree.beside(&file), &entries);
        tree.run(&format!("restore {file} tree"))
            .expect(1)
            .says(&[&format!("cannot read the backup `{file}`"), says]);
        assert!(!tree.path().join(STATE).exists(), "{says}");
    }
    let bytes = fs::read(tree.beside("FILE.tar")).unwrap();
    for length in (0..bytes.len() - 1024).step_by(311) {
        fs::write(tree.beside("cut"), &bytes[..length]).unwrap();
        tree.run("restore cut tree").expect(1).says(&["cannot read the backup `cut`"]);
        assert!(!tree.path().join(STATE).exists(), "{length}");
    }
    fs::write(tree.beside("text"), "kind: Cluster\n".repeat(100)).unwrap();
    tree.run("restore text tree").expect(1).says(&["it is not a backup of streamfleet"]);
    tree.run("restore nothing tree").expect(1).says(&["cannot read the backup `nothing`", "No such file"]);
    tree.run("restore FILE.tar tree").expect(0);
}

#[test]
fn a_link_in_an_archive_is_refused() {
    let tree = backed_up();
    let manifest = entries(&tree.beside("FILE.tar")).remove(0).1;
    let mut tar = tar::Builder::new(fs::File::create(tree.beside("linked")).unwrap());
    let mut header = tar::Header::new_ustar();
    header.set_size(manifest.len() as u64);
    tar.append_data(&mut header, "manifest.json", manifest.as_slice()).unwrap();
    let mut header = tar::Header::new_ustar();
    header.set_entry_type(tar::EntryType::Symlink);
    header.set_size(0);
    tar.append_link(&mut header, "registry.jsonl", "/etc/passwd").unwrap();
    tar.finish().unwrap();
    lose(&tree, STATE);
    tree.run("restore linked tree")
        .expect(1)
        .says(&["it contains `registry.jsonl`, which no backup contains"]);
    assert!(!tree.path().join(STATE).exists());
}
