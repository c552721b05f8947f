//! A branch that lost a commit is doubted, whatever happens meanwhile to a process, a clone or a file.

use super::*;

/// A branch with two commits, of which the second was active.
fn place() -> (Place, Oid, Oid) {
    let place = Place::new();
    let first = place.commit(None, &[("a.yaml", Put::File("a"))]);
    let second = place.commit(Some(first), &[("b.yaml", Put::File("b"))]);
    place.push(second);
    place.mirror(None).fetch().unwrap();
    (place, first, second)
}

fn rewrote(mirror: &Mirror) -> Option<String> {
    mirror.snapshot().unwrap().commit.unwrap().rewrote
}

#[test]
fn a_commit_stays_doubted_while_another_is_about_to_take_its_place() {
    let (place, first, second) = place();
    let mirror = place.mirror(None);
    place.push(first);
    mirror.fetch().unwrap();
    // The process ends before the next commit is active: one that follows, or one with the lost commit.
    let repository = Repository::open_bare(&mirror.place).unwrap();
    let third = place.commit(Some(first), &[("c.yaml", Put::File("c"))]);
    for next in [third, second] {
        mirror.keep(&repository, next).unwrap();
        assert_eq!(mirror.commit(), Some(first.to_string()));
        assert_eq!(rewrote(&mirror), Some(second.to_string()));
        // The settled commit is not the one that is about to be active.
        assert!(!mirror.settle_rewrite(&first.to_string()));
    }
    place.push(third);
    mirror.fetch().unwrap();
    assert_eq!(rewrote(&mirror), Some(second.to_string()));
    assert!(mirror.settle_rewrite(&third.to_string()));
    assert_eq!(rewrote(&mirror), None);
}

#[test]
fn a_lost_clone_or_name_in_it_loses_no_doubt() {
    for what in ["", "/refs/streamfleet"] {
        let (place, first, second) = place();
        let mirror = place.mirror(None);
        fs::remove_dir_all(format!("{}{what}", mirror.place)).unwrap();
        assert_eq!(mirror.commit(), None);
        let id = place.push(first);
        assert_eq!(mirror.fetch().unwrap(), Fetched { commit: id, is_new: true, rewritten: true });
        assert_eq!(rewrote(&mirror), Some(second.to_string()));
    }
    let (place, first, second) = place();
    let mirror = place.mirror(None);
    fs::remove_dir_all(&mirror.place).unwrap();
    mirror.fetch().unwrap();
    assert_eq!((mirror.commit(), rewrote(&mirror)), (Some(second.to_string()), None));
    // Another source has no record of this branch.
    place.repository.reference("refs/heads/other", first, true, "push").unwrap();
    let mut other = place.mirror(None);
    other.branch = "other".to_owned();
    assert!(!other.fetch().unwrap().rewritten);
    assert_eq!(rewrote(&other), None);
}

#[test]
fn a_doubt_that_cannot_be_read_is_not_taken_for_none() {
    let (place, _, _) = place();
    let mirror = place.mirror(None);
    let file = place.path("clone.last");
    let whole = fs::read_to_string(&file).unwrap();
    for damaged in ["", "0123456789abcdef", &whole[..30], &format!("{} more", whole.trim())] {
        fs::write(&file, damaged).unwrap();
        let expected = "cannot read /clone.last to check whether /remote.git was rewritten: it is damaged\n= let the user \
                        that runs streamfleet read it; if it is damaged, check that the branch was not force-pushed, and \
                        remove it";
        assert_eq!(place.refused(mirror.fetch()), expected);
        assert!(matches!(mirror.snapshot(), Err(GitError::Kept { .. })));
    }
    fs::remove_file(&file).unwrap();
    fs::create_dir(&file).unwrap();
    assert!(
        place.refused(mirror.fetch()).starts_with(
            "cannot read /clone.last to check whether /remote.git was rewritten: Is a directory"
        )
    );
    fs::remove_dir(&file).unwrap();
    mirror.fetch().unwrap();
    assert_eq!(fs::read_to_string(&file).unwrap(), whole);
}

#[test]
fn a_commit_is_told_as_new_though_the_clone_was_made_anew_for_it() {
    let (place, first, _) = place();
    let mirror = place.mirror(None);
    let crowd = || {
        for number in 0..=MAX_PACKS {
            fs::write(mirror.place.join(format!("objects/pack/{number}.pack")), "").unwrap();
        }
    };
    crowd();
    let id = place.push(first);
    assert_eq!(mirror.fetch().unwrap(), Fetched { commit: id, is_new: true, rewritten: true });
    assert!(!mirror.is_crowded());
    crowd();
    let id = place.push(place.commit(Some(first), &[("c.yaml", Put::File("c"))]));
    assert_eq!(mirror.fetch().unwrap(), Fetched { commit: id, is_new: true, rewritten: false });
    assert!(!mirror.is_crowded());
}
