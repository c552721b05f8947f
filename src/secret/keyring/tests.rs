use std::os::unix::fs::PermissionsExt as _;

use super::*;
use crate::secret::seal;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new() -> Folder {
        let folder = Folder(tempfile::tempdir().unwrap());
        folder.set_mode("", 0o700);
        folder
    }

    fn path(&self) -> &Utf8Path {
        Utf8Path::from_path(self.0.path()).unwrap()
    }

    fn set_mode(&self, name: &str, mode: u32) {
        std::fs::set_permissions(self.path().join(name), std::fs::Permissions::from_mode(mode)).unwrap();
    }

    fn mode(&self, name: &str) -> u32 {
        std::fs::metadata(self.path().join(name)).unwrap().permissions().mode() & 0o777
    }

    fn write(&self, name: &str, text: &str) {
        std::fs::write(self.path().join(name), text).unwrap();
        self.set_mode(name, 0o600);
    }

    fn refusal(&self) -> String {
        let error = Keyring::load_or_create(self.path()).expect_err("the keys are refused");
        let told = format!("{error} ({})", error.hint);
        assert!(!told.contains("AGE-SECRET-KEY"), "{told}");
        told.replace(self.path().as_str(), "DIR")
    }
}

fn reference() -> SecretRef {
    SecretRef::try_from("BaseDomain/acme/k.example.com#tls_key".to_owned()).unwrap()
}

#[test]
fn keys_are_made_once_for_their_owner_alone_and_stay() {
    let folder = Folder::new();
    assert!(Keyring::load(&folder.path().join("state")).unwrap().is_none());
    let dir = folder.path().join("state");
    let made = Keyring::load_or_create(&dir).unwrap();
    assert_eq!(folder.mode("state"), 0o700);
    for file in [IDENTITIES, FINGERPRINT] {
        assert_eq!(folder.mode(&format!("state/{file}")), 0o600);
    }
    let read = Keyring::load(&dir).unwrap().unwrap();
    assert_eq!(read.recipient(), made.recipient());
    assert_eq!(*read.fingerprint_key, *made.fingerprint_key);
    assert_eq!(std::fs::read_dir(&dir).unwrap().count(), 3, "no temporary file is left beside keys and lock");
}

#[test]
fn after_a_new_identity_the_old_one_still_opens() {
    let folder = Folder::new();
    let mut keyring = Keyring::load_or_create(folder.path()).unwrap();
    let before = keyring.recipient();
    let old = seal(&before, &reference(), &"hunter2".into()).unwrap();
    drop(keyring.add_identity().unwrap());
    assert_ne!(keyring.recipient(), before);
    let read = Keyring::load(folder.path()).unwrap().unwrap();
    assert_eq!(read.recipient(), keyring.recipient());
    assert_eq!(read.open(&old, &reference()).unwrap().expose_secret(), "hunter2");
    assert_eq!(folder.mode(IDENTITIES), 0o600);
}

#[test]
fn an_identity_that_cannot_be_kept_is_not_used() {
    let folder = Folder::new();
    let dir = folder.path().join("state");
    let mut keyring = Keyring::load_or_create(&dir).unwrap();
    let before = keyring.recipient();
    std::fs::remove_dir_all(&dir).unwrap();
    let error = keyring.add_identity().unwrap_err();
    assert!(error.message.starts_with("cannot write the keys to"), "{error}");
    assert_eq!(keyring.recipient(), before);
}

#[test]
fn what_others_can_read_is_refused_with_the_command_that_mends_it() {
    let folder = Folder::new();
    Keyring::load_or_create(folder.path()).unwrap();
    folder.set_mode(IDENTITIES, 0o604);
    assert_eq!(
        folder.refusal(),
        "other users of this host can read or write the key file DIR/identity.age-keys (run `chmod 600 \
         DIR/identity.age-keys`, and rotate the keys if other users may have read them)"
    );
    folder.set_mode("", 0o755);
    assert_eq!(
        folder.refusal(),
        "other users of this host can read or write the state folder DIR (run `chmod 700 DIR`, and rotate the keys if \
         other users may have read them)"
    );
}

#[test]
fn keys_that_the_group_of_a_pod_can_read_in_a_private_folder_are_closed_and_used() {
    let folder = Folder::new();
    let recipient = Keyring::load_or_create(folder.path()).unwrap().recipient();
    [IDENTITIES, FINGERPRINT].into_iter().for_each(|file| folder.set_mode(file, 0o660));
    assert_eq!(Keyring::load_or_create(folder.path()).unwrap().recipient(), recipient);
    for file in [IDENTITIES, FINGERPRINT] {
        assert_eq!(folder.mode(file), 0o600);
    }
}

#[test]
fn damaged_or_missing_keys_are_never_replaced() {
    let identity =
        format!("create a new one with `age-keygen -o DIR/{IDENTITIES}` and seal every secret again");
    let fingerprint = format!(
        "create a new one with `(umask 077; openssl rand -hex 32 > DIR/{FINGERPRINT})`, after which every secret counts as \
         changed"
    );
    let again = |file: &str, or: &str| {
        format!(
            "(move it out of the folder and take it from a backup: tar -xf FILE -C DIR {file}; without a backup, {or})"
        )
    };
    let no_list = format!(
        "the key file DIR/{IDENTITIES} is damaged: it is not a list of age identities {}",
        again(IDENTITIES, &identity)
    );
    let no_key = format!(
        "the key file DIR/{FINGERPRINT} is damaged: it is not 64 hexadecimal characters {}",
        again(FINGERPRINT, &fingerprint)
    );
    let cases = [
        (IDENTITIES, "", no_list.clone()),
        (IDENTITIES, "AGE-SECRET-KEY-1X\n", no_list),
        (FINGERPRINT, "12ab\n", no_key),
    ];
    for (file, text, expected) in cases {
        let folder = Folder::new();
        Keyring::load_or_create(folder.path()).unwrap();
        folder.write(file, text);
        assert_eq!(folder.refusal(), expected);
        assert_eq!(std::fs::read_to_string(folder.path().join(file)).unwrap(), text);
    }
    let one = |missing: &str, there: &str, anew: &str| {
        format!(
            "the key file {missing} is missing from DIR, where {there} is (take it from a backup: tar -xf FILE -C DIR {missing}; \
             if it is lost for good, {anew})"
        )
    };
    let both = format!(
        "the key files {IDENTITIES} and {FINGERPRINT} are missing from DIR, which was used with them (take both from a \
         backup, since without them no sealed secret can be opened: tar -xf FILE -C DIR {IDENTITIES} {FINGERPRINT}; if they \
         are lost for good, \
         {identity}, and {fingerprint})"
    );
    let cases: [(&[&str], String); 3] = [
        (&[IDENTITIES], one(IDENTITIES, FINGERPRINT, &identity)),
        (&[FINGERPRINT], one(FINGERPRINT, IDENTITIES, &fingerprint)),
        (&[IDENTITIES, FINGERPRINT], both),
    ];
    for (missing, expected) in cases {
        let folder = Folder::new();
        Keyring::load_or_create(folder.path()).unwrap();
        folder.write("registry.jsonl", "{\"id\"}\n{\"applied\"}\n");
        for file in missing {
            std::fs::remove_file(folder.path().join(file)).unwrap();
        }
        assert_eq!(folder.refusal(), expected);
        assert!(missing.iter().all(|file| !folder.path().join(file).exists()));
    }
}

#[test]
fn a_first_start_that_was_killed_is_finished() {
    for missing in [&[IDENTITIES] as &[&str], &[FINGERPRINT], &[IDENTITIES, FINGERPRINT]] {
        let folder = Folder::new();
        let before = Keyring::load_or_create(folder.path()).unwrap();
        // The registry exists before the keys do.
        folder.write("registry.jsonl", "{\"id\"}\n");
        folder.write(".keys-x1y2z3", "AGE-SECRET-KEY-1HALF");
        for file in missing {
            std::fs::remove_file(folder.path().join(file)).unwrap();
        }
        let after = Keyring::load_or_create(folder.path()).unwrap();
        assert_eq!(after.recipient() == before.recipient(), !missing.contains(&IDENTITIES));
        assert_eq!(*after.fingerprint_key == *before.fingerprint_key, !missing.contains(&FINGERPRINT));
        assert!(!folder.path().join(".keys-x1y2z3").exists());
    }
}

#[test]
fn identities_that_are_added_at_the_same_time_all_stay() {
    let folder = Folder::new();
    Keyring::load_or_create(folder.path()).unwrap();
    let recipients: Vec<String> = std::thread::scope(|scope| {
        let add = || {
            let mut keyring = Keyring::load(folder.path()).unwrap().unwrap();
            drop(keyring.add_identity().unwrap());
            keyring.recipient()
        };
        let threads: Vec<_> = (0..8).map(|_| scope.spawn(add)).collect();
        threads.into_iter().map(|thread| thread.join().unwrap()).collect()
    });
    let kept = Keyring::load(folder.path()).unwrap().unwrap();
    let kept: Vec<String> = kept.identities.iter().map(|identity| identity.to_public().to_string()).collect();
    assert_eq!(kept.len(), 9);
    assert!(recipients.iter().all(|recipient| kept.contains(recipient)));
}

#[test]
fn a_fingerprint_tells_values_fields_and_installations_apart() {
    let (keyring, other) = (Keyring::ephemeral().unwrap(), Keyring::ephemeral().unwrap());
    let fingerprint = |keyring: &Keyring, field: &str, value: &str| {
        let reference = SecretRef { field: field.to_owned(), ..reference() };
        keyring.mark(&reference, &value.into(), None).fingerprint.unwrap()
    };
    let first = fingerprint(&keyring, "tls_key", "hunter2");
    assert!(first.starts_with("hmac:") && first.len() == 37, "{first}");
    assert_eq!(fingerprint(&keyring, "tls_key", "hunter2"), first);
    assert_ne!(fingerprint(&keyring, "tls_key", "hunter3"), first);
    assert_ne!(fingerprint(&keyring, "kubeconfig", "hunter2"), first);
    assert_ne!(fingerprint(&other, "tls_key", "hunter2"), first);
}

/// The numbers of two events that a caller sees would tell how many happened between them elsewhere.
#[test]
fn the_id_of_an_event_tells_neither_its_number_nor_its_order() {
    let (keyring, other) = (Keyring::ephemeral().unwrap(), Keyring::ephemeral().unwrap());
    let ids: Vec<String> = (0..100).map(|number| keyring.event_id(number)).collect();
    assert_eq!(ids, (0..100).map(|number| keyring.event_id(number)).collect::<Vec<_>>());
    assert!(ids.iter().all(|id| id.len() == EVENT_ID_LENGTH), "{ids:?}");
    assert!(!ids.is_sorted());
    let theirs: Vec<String> = (0..100).map(|number| other.event_id(number)).collect();
    assert!(!ids.iter().any(|id| theirs.contains(id)), "only the keys of the installation lead to an id");
}

#[test]
fn debug_output_holds_no_key() {
    let keyring = Keyring::ephemeral().unwrap();
    assert_eq!(format!("{keyring:?}"), "Keyring(1 identities)");
}
