//! Tests of the accounts that people sign in with.

use super::*;

const ISSUER: &str = "https://login.example.com";

fn account(email: &str, subject: &str) -> BoundAccount {
    let (email, subject) = (email.to_owned(), subject.to_owned());
    BoundAccount { email, issuer: ISSUER.to_owned(), subject, bound_at: time(0) }
}

#[track_caller]
fn refused(state: &State, account: &BoundAccount) -> String {
    state.bind_account(account, "ann").unwrap_err().to_string()
}

#[test]
fn an_account_and_its_address_stay_together_until_somebody_releases_them_also_after_a_restart() {
    let (_dir, path) = place();
    let state = State::open(&path).unwrap();
    let ada = account("ada@example.com", "1");
    let bind = |state: &State, account: &BoundAccount| state.bind_account(account, "ann").unwrap();
    let lines = || std::fs::read_to_string(path.join("registry.jsonl")).unwrap().lines().count();
    bind(&state, &ada);
    let count = lines();
    bind(&state, &account("Ada@Example.com", "1"));
    assert_eq!(lines(), count, "the same account is bound once");
    bind(
        &state,
        &BoundAccount { issuer: "https://other.example.com".to_owned(), ..account("ada@example.com", "9") },
    );
    drop(state);
    let state = State::open(&path).unwrap();
    assert_eq!(
        refused(&state, &account("ADA@example.com", "2")),
        "ADA@example.com is bound to another account of this issuer; if both are the same person's, or the address was \
         given to somebody else: streamfleet sign-in ADA@example.com --forget-account"
    );
    assert_eq!(
        refused(&state, &account("bob@example.com", "1")),
        "the account is bound to ada@example.com, and not to bob@example.com; if the person's address changed: streamfleet \
         sign-in ada@example.com --forget-account"
    );
    assert_eq!(state.release_accounts("ADA@example.com", "ann", time(1)).unwrap(), 2, "of every issuer");
    assert_eq!(state.release_accounts("ada@example.com", "ann", time(1)).unwrap(), 0);
    bind(&state, &account("ada@example.com", "2"));
    assert!(refused(&state, &ada).contains("is bound to another account"));
    let told = std::fs::read_to_string(path.join("audit.jsonl")).unwrap();
    for what in [
        "bound ada@example.com to account 1 of https://login.example.com",
        "released ADA@example.com from the accounts that it was bound to",
        "bound ada@example.com to account 2 of https://login.example.com",
    ] {
        assert_eq!(told.matches(what).count(), 1, "{what}: {told}");
    }
}

#[test]
fn bindings_are_in_a_backup_and_outlive_compaction() {
    let (dir, path) = place();
    let state = State::open(&path).unwrap();
    state.bind_account(&account("ada@example.com", "1"), "ann").unwrap();
    for second in 0..1100 {
        state.set_source(&SourceId(second.to_string())).unwrap();
    }
    drop(state);
    let long = std::fs::metadata(path.join("registry.jsonl")).unwrap().len();
    drop(State::open(&path).unwrap());
    assert!(std::fs::metadata(path.join("registry.jsonl")).unwrap().len() < long, "it was compacted");
    let archive = back_up(&path, "test", time(0)).unwrap().unwrap();
    let other = Utf8PathBuf::from_path_buf(dir.path().join("other")).unwrap();
    drop(State::open(&other).unwrap());
    take_back(&other, &archive, "registry.jsonl");
    let state = State::open(&other).unwrap();
    assert!(refused(&state, &account("ada@example.com", "2")).contains("is bound to another account"));
}
