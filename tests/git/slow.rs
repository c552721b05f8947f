//! Servers that receive a push, disconnect, and may accept it later.

use std::fs;

use streamfleet::source::git::write::{CommitResult, WriteError};

use super::write::{BareRepository, put, write};
use crate::support::control_plane::until;

/// Makes the server disconnect at the first push, and accept it once a file `go` exists.
fn delay_first_push(place: &BareRepository) {
    place.hook(
        "pre-receive",
        "[ -e ../received ] && exit 0\ntouch ../received\nuntil [ -e ../go ]; do sleep 0.01; done",
    );
}

/// Lets the server accept or refuse the commit, and waits until it is done.
fn finish_push(place: &BareRepository) {
    fs::write(place.path().join("go"), "").unwrap();
    until("the server is done with the first commit", || {
        let mut objects = fs::read_dir(place.path().join("remote.git/objects")).unwrap();
        let is_incoming = |name: &str| name.starts_with("tmp_objdir") || name.starts_with("incoming");
        let is_held = objects.any(|entry| is_incoming(entry.unwrap().file_name().to_str().unwrap()));
        (!is_held).then_some(())
    });
}

#[test]
fn what_a_server_may_still_take_is_not_said_to_be_unwritten() {
    let place = BareRepository::new();
    delay_first_push(&place);
    let (server, tip) = (place.serve(&["-leaving"]), place.tip());
    let mirror = place.by_ssh(&server, "clone");
    let error = write(&mirror, &[put("a.yaml", "a: 2")]).unwrap_err();
    assert!(!error.may_be_tried_again());
    let WriteError::Unsure { commit, .. } = &error else { panic!("{error}") };
    assert!(
        error.to_string().starts_with(&format!(
            "whether {} received commit {commit} is unknown: ",
            server.url("remote.git")
        )),
        "{error}"
    );
    assert_eq!(
        error.hint(),
        Some("check in a minute whether the branch has the commit; a repeated request is not written twice")
    );
    assert_eq!((place.tip(), mirror.commit()), (tip.clone(), Some(tip)));

    // The commit arrives in the end, and a repeated request doesn't write it again.
    finish_push(&place);
    until("the server took it", || (place.tip() == *commit).then_some(()));
    let again = write(&mirror, &[put("a.yaml", "a: 2")]).unwrap();
    assert_eq!(again, CommitResult { commit: commit.clone(), is_new: false });
    assert_eq!(place.git("-C remote.git rev-list --count main"), "2");
}

#[test]
fn what_is_asked_for_again_before_a_server_takes_it_is_written_once() {
    let place = BareRepository::new();
    delay_first_push(&place);
    let server = place.serve(&["-leaving"]);
    let mirror = place.by_ssh(&server, "clone");
    let error = write(&mirror, &[put("a.yaml", "a: 2")]).unwrap_err();
    let WriteError::Unsure { commit, .. } = &error else { panic!("{error}") };
    // Meanwhile the repository is reachable at another address.
    let open = place.serve(&[]);
    let mirror = place.by_ssh(&open, "clone");
    let again = write(&mirror, &[put("a.yaml", "a: 2\nb: 1\n")]).unwrap();
    assert!(again.is_new && again.commit != *commit && place.tip() == again.commit);
    finish_push(&place);
    assert_eq!(place.tip(), again.commit, "the first one was sent for where the branch was");
    assert_eq!(place.git("-C remote.git rev-list --count main"), "2");
    place.git("-C remote.git fsck --strict");
}
