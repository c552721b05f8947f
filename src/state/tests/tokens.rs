//! Tests of tokens: what is stored, when they are valid, and what happens when their file is damaged.

use std::fs;

use secrecy::ExposeSecret as _;

use super::*;

const DAY: i64 = 24 * 60 * 60;

fn order(name: &str) -> TokenOrder {
    TokenOrder {
        name: name.to_owned(),
        owner: "ada@example.com".to_owned(),
        organization: Reach::Organization("acme".parse().unwrap()),
        access: Access::Write,
        days: 30,
    }
}

fn add(state: &State, name: &str) -> NewToken {
    state.add_token(order(name), "ann", time(0)).unwrap()
}

#[test]
fn a_token_holds_from_when_it_is_made_until_it_ends_or_is_revoked_also_after_a_restart() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    assert_eq!(state.tokens(), []);
    assert!(!path.join("tokens.jsonl").exists(), "no token, no file");
    let (ci, lost) = (add(&state, "ci"), add(&state, "lost"));
    let (ci_secret, lost_secret) = (ci.secret.expose_secret(), lost.secret.expose_secret());
    assert!(looks_like_token(ci_secret) && ci_secret != lost_secret);
    assert_eq!(state.revoke_token(lost.token.id, "bob", time(5)).unwrap(), {
        RevocationOutcome::Now(Token { revoked_at: Some(time(5)), ..lost.token.clone() })
    });
    let check = |state: &State| {
        let lost = Token { revoked_at: Some(time(5)), ..lost.token.clone() };
        assert_eq!(state.tokens(), [ci.token.clone(), lost.clone()]);
        assert_eq!(state.authenticate_token(ci_secret, time(30 * DAY - 1)), Ok(ci.token.clone()));
        assert_eq!(
            state.authenticate_token(ci_secret, time(30 * DAY)),
            Err(TokenRejection::Expired(ci.token.clone().into()))
        );
        assert_eq!(
            state.authenticate_token(lost_secret, time(6)),
            Err(TokenRejection::Revoked(lost.clone().into()))
        );
        for unknown in ["", "sf_", &ci_secret[1..], &format!("{ci_secret} "), &ci_secret.to_uppercase()] {
            assert_eq!(state.authenticate_token(unknown, time(6)), Err(TokenRejection::Unknown));
        }
        assert_eq!(state.revoke_token(lost.id, "ann", time(9)).unwrap(), RevocationOutcome::Before(lost));
        assert_eq!(state.revoke_token(Uuid::nil(), "ann", time(9)).unwrap(), RevocationOutcome::Unknown);
    };
    check(&state);
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!(state.warnings(), Vec::<String>::new());
    check(&state);
}

#[test]
fn a_token_may_be_granted_for_less_than_a_day() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    assert!(!state.has_made_tokens());
    let TokenOrder { name, owner, organization, access, .. } = order("short");
    let lasts = SignedDuration::from_mins(15);
    let (purpose, sign_in) = (TokenPurpose::Session, None);
    let grant = TokenGrant { name, owner, organization, access, purpose, sign_in, lasts };
    let made = state.grant_token(grant, "ann", time(0)).unwrap();
    let secret = made.secret.expose_secret();
    assert!(state.authenticate_token(secret, time(15 * 60 - 1)).is_ok());
    let expired = TokenRejection::Expired(made.token.clone().into());
    assert_eq!(state.authenticate_token(secret, time(15 * 60)), Err(expired));
    state.revoke_token(made.token.id, "ann", time(0)).unwrap();
    assert!(state.has_made_tokens());
}

#[test]
fn of_a_token_only_its_digest_is_kept_and_only_in_its_file() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let made = add(&state, "ci");
    state.revoke_token(made.token.id, "bob", time(5)).unwrap();
    let secret = made.secret.expose_secret().to_owned();
    let digest = Digest::of(&secret);
    assert!(!format!("{made:?} {:?}", state.tokens()).contains(&secret[3..]));
    state.flush().unwrap();
    drop(state);
    assert_eq!(mode(&path.join("tokens.jsonl")), 0o600);
    let holds = |bytes: &[u8], text: &str| bytes.windows(text.len()).any(|part| part == text.as_bytes());
    let mut folders = vec![path.clone()];
    let mut with_digest = Vec::new();
    while let Some(folder) = folders.pop() {
        for entry in folder.read_dir_utf8().unwrap() {
            let entry = entry.unwrap();
            if entry.file_type().unwrap().is_dir() {
                folders.push(entry.path().to_owned());
                continue;
            }
            let bytes = fs::read(entry.path()).unwrap();
            assert!(!holds(&bytes, &secret[3..]), "{}", entry.path());
            if holds(&bytes, digest.as_str()) {
                with_digest.push(entry.file_name().to_owned());
            }
        }
    }
    assert_eq!(with_digest, ["tokens.jsonl"]);
    let id = made.token.id;
    let audit = fs::read_to_string(path.join("audit.jsonl")).unwrap();
    let what: Vec<String> = audit
        .lines()
        .map(|line| serde_json::from_str::<RecordedEvent>(line).unwrap())
        .map(|entry| format!("{}: {}", entry.actor, entry.what))
        .collect();
    assert_eq!(
        what,
        [
            format!(
                "ann: created token ci ({id}) of ada@example.com: write in organization acme, until \
                 2027-02-14T08:00:00.000000Z"
            ),
            format!("bob: revoked token ci ({id}) of ada@example.com"),
        ]
    );
}

#[test]
fn what_nobody_could_have_is_refused() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let name =
        "the name of a token must have 1 to 64 characters, without control characters and spaces at its ends";
    let cases: [(TokenOrder, &str, String); 11] = [
        (order(""), "/name", name.to_owned()),
        (order(" ci"), "/name", name.to_owned()),
        (order("c\ni"), "/name", name.to_owned()),
        (order(&"c".repeat(65)), "/name", name.to_owned()),
        (owned("ada"), "/owner", "`ada` is not an e-mail address".to_owned()),
        (owned("@example.com"), "/owner", "`@example.com` is not an e-mail address".to_owned()),
        (owned("a@b@c"), "/owner", "`a@b@c` is not an e-mail address".to_owned()),
        (owned("a@b\n> x"), "/owner", "`a@b> x` is not an e-mail address".to_owned()),
        (owned("<a@b>"), "/owner", "`<a@b>` is not an e-mail address".to_owned()),
        (
            TokenOrder { days: 0, ..order("ci") },
            "/days",
            "a token is valid for 1 to 365 days, not 0".to_owned(),
        ),
        (
            TokenOrder { days: 366, ..order("ci") },
            "/days",
            "a token is valid for 1 to 365 days, not 366".to_owned(),
        ),
    ];
    for (order, pointer, why) in cases {
        match state.add_token(order, "ann", time(0)).unwrap_err() {
            AddTokenError::Order(fault) => {
                assert_eq!((fault.pointer, fault.why), (pointer, why));
                assert!(!fault.hint.is_empty());
            }
            AddTokenError::State(error) => panic!("{error}"),
        }
    }
    assert_eq!(state.tokens(), []);
    assert_eq!(fs::read_to_string(path.join("audit.jsonl")).unwrap(), "");
    for (days, name) in [(1, "c"), (365, &"ü".repeat(64))] {
        state.add_token(TokenOrder { days, ..order(name) }, "ann", time(0)).unwrap();
    }
}

fn owned(owner: &str) -> TokenOrder {
    TokenOrder { owner: owner.to_owned(), ..order("ci") }
}

#[test]
fn who_has_very_many_tokens_gets_no_more_until_some_are_gone() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let first = add(&state, "first").token;
    for _ in 1..100 {
        add(&state, "ci");
    }
    let refused = state.add_token(owned("ADA@example.com"), "ann", time(0)).unwrap_err().to_string();
    assert_eq!(refused, "ADA@example.com has 100 valid tokens, which is the limit");
    state.add_token(owned("bob@example.com"), "ann", time(0)).unwrap();
    state.revoke_token(first.id, "ann", time(1)).unwrap();
    state.add_token(owned("ada@example.com"), "ann", time(1)).unwrap();
}

/// A closed folder with three tokens, the second of them revoked, and their secrets.
fn with_tokens() -> (TempDir, Utf8PathBuf, [String; 3]) {
    let (dir, path) = place();
    let state = State::open(&path).unwrap();
    let made = ["a", "b", "c"].map(|name| add(&state, name));
    state.revoke_token(made[1].token.id, "ann", time(1)).unwrap();
    (dir, path, made.map(|made| made.secret.expose_secret().to_owned()))
}

fn holding(path: &Utf8Path, secrets: &[String; 3]) -> [bool; 3] {
    let state = State::open(path).unwrap();
    secrets.each_ref().map(|secret| state.authenticate_token(secret, time(2)).is_ok())
}

#[test]
fn a_file_cut_anywhere_in_its_last_line_is_mended_and_lines_that_are_there_twice_bring_nothing_back() {
    let (_dir, path, secrets) = with_tokens();
    let file = path.join("tokens.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    let start = whole.len() - lines[3].len();
    for end in start..whole.len() {
        fs::write(&file, &whole[..end]).unwrap();
        let state = State::open(&path).unwrap();
        let is_whole_record = end + 1 == whole.len();
        assert_eq!(state.warnings().len(), usize::from(end != start && !is_whole_record), "{end}");
        drop(state);
        assert_eq!(holding(&path, &secrets), [true, !is_whole_record, true], "{end}");
    }
    for from in 0..lines.len() {
        for to in from..lines.len() {
            fs::write(&file, format!("{whole}{}", lines[from..to].concat())).unwrap();
            assert_eq!(holding(&path, &secrets), [true, false, true], "{from}..{to}");
        }
    }
    fs::write(&file, whole.replace("\"v\":1", "\"v\":1,\"colour\":\"blue\"")).unwrap();
    assert_eq!(holding(&path, &secrets), [true, false, true]);
}

#[test]
fn a_damaged_file_is_refused_and_left_as_it_is() {
    let (_dir, path, _) = with_tokens();
    let file = path.join("tokens.jsonl");
    let whole = fs::read_to_string(&file).unwrap();
    for (number, reason, text) in [
        (2, "it is damaged (EOF while parsing a string", whole.replacen("}\n{", "}\n{\"v\":1,\"rec\n{", 1)),
        (1, "it is damaged (expected ident", format!("no JSON\n{whole}")),
        (1, "a newer version of streamfleet wrote it", whole.replacen("\"v\":1", "\"v\":2", 1)),
    ] {
        fs::write(&file, &text).unwrap();
        let error = State::open(&path).err().unwrap();
        let said = error.to_string().replace(path.as_str(), "DIR");
        assert!(said.starts_with(&format!("cannot read `DIR/tokens.jsonl:{number}`: ")), "{said}");
        assert!(said.contains(reason), "{said}");
        assert!(back_up(&path, "0", time(0)).is_err(), "a backup of that is none");
        assert_eq!(fs::read_to_string(&file).unwrap(), text);
        let hint = error.hint().replace(path.as_str(), "DIR");
        assert!(
            hint.contains("restore an older backup") || hint.contains("tar -xf FILE -C DIR tokens.jsonl"),
            "{hint}"
        );
    }
    // If the file is lost or emptied, no token is valid, and a warning says so until a token is created.
    for lost in [false, true] {
        match lost {
            true => fs::remove_file(&file).unwrap(),
            false => fs::OpenOptions::new().write(true).open(&file).unwrap().set_len(0).unwrap(),
        }
        for _ in 0..2 {
            let warnings = State::open(&path).unwrap().warnings();
            let told: Vec<String> = warnings.iter().map(|text| text.replace(path.as_str(), "DIR")).collect();
            assert_eq!(
                told,
                [
                    "`DIR/tokens.jsonl` is missing or empty, so all existing tokens are invalid; take it from a \
                     backup: tar -xf FILE -C DIR tokens.jsonl, or create new ones: streamfleet token create"
                ]
            );
        }
    }
    add(&State::open(&path).unwrap(), "new");
    assert_eq!(State::open(&path).unwrap().warnings(), Vec::<String>::new());
}

#[test]
fn a_backup_has_them() {
    let (_dir, path, secrets) = with_tokens();
    let archive = back_up(&path, "0", time(2)).unwrap().unwrap();
    assert!(archive.manifest.files.iter().any(|file| file.name == TOKENS));
    let (_other, lost) = place();
    restore(&lost, &archive).unwrap();
    assert_eq!(holding(&lost, &secrets), [true, false, true]);
    // A revocation after the backup stays.
    drop(State::open(&path).map(|state| state.revoke_token(state.tokens()[0].id, "ann", time(3)).unwrap()));
    fs::remove_file(path.join("registry.jsonl")).unwrap();
    assert!(restore(&path, &archive).is_err());
    take_back(&path, &archive, "registry.jsonl");
    assert_eq!(holding(&path, &secrets), [false, false, true]);
}
