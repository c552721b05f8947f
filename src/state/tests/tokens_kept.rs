//! Tests of how long tokens are kept and how many, and that lookups don't wait for writers.

use std::collections::BTreeSet;
use std::fs;
use std::sync::mpsc;
use std::thread;
use std::time::Duration;

use secrecy::ExposeSecret as _;
use serde_json::Value;

use super::*;

const DAY: i64 = 24 * 60 * 60;

fn order(name: &str, days: u32) -> TokenOrder {
    let (name, owner) = (name.to_owned(), "ada@example.com".to_owned());
    TokenOrder { name, owner, organization: Reach::All, access: Access::Read, days }
}

fn add(state: &State, name: &str, day: i64) -> NewToken {
    state.add_token(order(name, 10), "ann", time(day * DAY)).unwrap()
}

fn names(state: &State) -> BTreeSet<String> {
    state.tokens().into_iter().map(|token| token.name).collect()
}

/// Adds `count` copies of the first token to a closed folder, named by numbers.
fn multiply(path: &Utf8Path, count: u32) {
    let file = path.join(TOKENS);
    let mut text = fs::read_to_string(&file).unwrap();
    let first: Value = serde_json::from_str(text.lines().next().unwrap()).unwrap();
    for number in 1..=count {
        let mut line = first.clone();
        line["id"] = Uuid::from_u128(number.into()).to_string().into();
        line["name"] = number.to_string().into();
        line["sha256"] = serde_json::to_value(Digest::of(number.to_string())).unwrap();
        text.push_str(&format!("{line}\n"));
    }
    fs::write(&file, text).unwrap();
}

/// A closed folder with `count` tokens besides the first, all of day 0.
fn with_many(count: u32) -> (TempDir, Utf8PathBuf) {
    let (dir, path) = place();
    add(&State::open(&path).unwrap(), "first", 0);
    multiply(&path, count);
    (dir, path)
}

#[test]
fn who_shows_a_token_does_not_wait_for_those_that_are_being_made() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let first = add(&state, "first", 0);
    // Simulates a slow disk.
    let slow = fs::File::open(path.join(TOKENS)).unwrap();
    slow.lock().unwrap();
    thread::scope(|scope| {
        let adds = scope.spawn(|| add(&state, "second", 0));
        let made = "created token second";
        while !fs::read_to_string(path.join("audit.jsonl")).unwrap().contains(made) {
            thread::yield_now();
        }
        let (told, tells) = mpsc::channel();
        let (state, shown) = (&state, first.secret.expose_secret());
        scope.spawn(move || {
            told.send((state.authenticate_token(shown, time(1)), names(state))).unwrap_or_default()
        });
        let answered = tells.recv_timeout(Duration::from_secs(30));
        slow.unlock().unwrap();
        // A token that is not on disk yet is not valid.
        assert_eq!(answered, Ok((Ok(first.token.clone()), ["first".to_owned()].into())));
        let second = adds.join().unwrap();
        assert_eq!(state.authenticate_token(second.secret.expose_secret(), time(1)), Ok(second.token));
    });
}

#[test]
fn what_was_over_long_ago_is_dropped_when_it_is_much() {
    let (_dir, path) = with_many(98);
    // Tokens are dropped as of the time of the previous token. On day 101, these 99 expired more than 90 days
    // ago, but the limit is 100.
    let state = State::open(&path).unwrap();
    add(&state, "later", 101);
    let later = add(&state, "too few", 101);
    assert_eq!(state.tokens().len(), 101);
    state.revoke_token(later.token.id, "bob", time(101 * DAY)).unwrap();
    drop(state);
    let (_dir, path) = with_many(99);
    let kept = {
        let state = State::open(&path).unwrap();
        // A clock that is ahead once must not drop any token.
        let ahead = add(&state, "ahead", 9_999);
        assert_eq!(state.tokens().len(), 101);
        state.revoke_token(ahead.token.id, "bob", time(99 * DAY)).unwrap();
        let newest = add(&state, "newest", 100);
        let last = add(&state, "last", 100);
        assert_eq!(names(&state), ["ahead", "newest", "last"].map(str::to_owned).into());
        // Lines after the compaction are in the new file.
        let after = add(&state, "after", 101);
        state.revoke_token(newest.token.id, "bob", time(101 * DAY)).unwrap();
        [last, after].map(|made| made.secret.expose_secret().to_owned())
    };
    assert_eq!(mode(&path.join(TOKENS)), 0o600);
    assert_eq!(fs::read_to_string(path.join(TOKENS)).unwrap().lines().count(), 5);
    let state = State::open(&path).unwrap();
    assert_eq!(state.warnings(), Vec::<String>::new());
    assert_eq!(names(&state), ["ahead", "newest", "last", "after"].map(str::to_owned).into());
    for shown in kept {
        assert!(state.authenticate_token(&shown, time(101 * DAY)).is_ok());
    }
    let revoked = state.tokens().into_iter().filter(|token| token.revoked_at.is_some()).count();
    assert_eq!(revoked, 2);
    let audit = fs::read_to_string(path.join("audit.jsonl")).unwrap();
    assert!(audit.contains("created token first"), "the trail keeps who made it");
}

#[test]
fn a_backup_undoes_no_revocation_where_the_tokens_are_still_there() {
    let (_dir, path) = with_many(120);
    let state = State::open(&path).unwrap();
    let revoked = add(&state, "revoked", 100);
    let before = back_up(&path, "0", time(100 * DAY)).unwrap().unwrap();
    add(&state, "newest", 100);
    assert_eq!(names(&state), ["revoked", "newest"].map(str::to_owned).into());
    let after = back_up(&path, "0", time(100 * DAY)).unwrap().unwrap();
    state.revoke_token(revoked.token.id, "bob", time(101 * DAY)).unwrap();
    drop(state);
    let shown = revoked.secret.expose_secret();
    for archive in [&before, &after] {
        fs::remove_file(path.join("registry.jsonl")).unwrap();
        assert!(restore(&path, archive).is_err());
        take_back(&path, archive, "registry.jsonl");
        let state = State::open(&path).unwrap();
        assert!(state.authenticate_token(shown, time(101 * DAY)).is_err(), "it stays revoked");
        assert_eq!(state.tokens().len(), 2);
        drop(state);
        // Into an empty folder, everything is restored.
        let (_other, lost) = place();
        restore(&lost, archive).unwrap();
        assert!(State::open(&lost).unwrap().authenticate_token(shown, time(101 * DAY)).is_ok());
    }
}

#[test]
fn who_makes_very_many_and_gives_them_up_gets_no_more_for_a_while() {
    let (_dir, path) = with_many(999);
    let state = State::open(&path).unwrap();
    let make = |day: i64| state.add_token(order("more", 10), "ann", time(day * DAY));
    let fault = |day: i64| match make(day).unwrap_err() {
        AddTokenError::Order(fault) => fault,
        AddTokenError::State(error) => panic!("{error}"),
    };
    let holding = fault(1);
    assert_eq!(holding.why, "ada@example.com has 1000 valid tokens, which is the limit");
    assert_eq!(holding.hint, "revoke tokens that aren't needed");
    let over = fault(99);
    assert_eq!(
        over.why,
        "ada@example.com has 1000 tokens, including those that expired or were revoked lately, which is the limit"
    );
    assert_eq!(
        over.hint,
        "reuse a token until it expires, instead of creating a new one each time; old tokens are dropped over time"
    );
    make(100).unwrap();
}

#[test]
fn killed_before_or_after_the_shorter_file_takes_its_place_nothing_is_lost() {
    let (_dir, path) = with_many(120);
    let file = path.join(TOKENS);
    let (kept, before) = {
        let state = State::open(&path).unwrap();
        let kept = add(&state, "kept", 100).secret.expose_secret().to_owned();
        let before = fs::read(&file).unwrap();
        add(&state, "newest", 100);
        (kept, before)
    };
    let shorter = fs::read(&file).unwrap();
    assert!(shorter.len() < before.len() / 10);
    // As after a power cut that lost the rename: half of the new file, and the old one still in place.
    fs::write(path.join(".tmpAbCdEf"), &shorter[..shorter.len() / 2]).unwrap();
    fs::write(&file, &before).unwrap();
    let state = State::open(&path).unwrap();
    assert_eq!((state.warnings(), state.tokens().len()), (Vec::<String>::new(), 122));
    assert!(state.authenticate_token(&kept, time(100 * DAY)).is_ok());
    add(&state, "again", 100);
    let left = ["kept", "again"].map(str::to_owned);
    assert_eq!(names(&state), left.clone().into());
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!(names(&state), left.into());
    assert!(state.authenticate_token(&kept, time(100 * DAY)).is_ok());
}
