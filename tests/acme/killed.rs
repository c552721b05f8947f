use super::{APPLY, CHALLENGE, KEPT, PLAN, QUARTER, chain, kept, managed, renewal, set};
use crate::support::control_plane::until;
use crate::support::door::{Door, Moment};
use crate::support::knot::Knot;
use crate::support::pebble::Pebble;
use crate::support::{Tree, one_in};

#[test]
fn killed_at_any_answer_there_is_one_order_and_nothing_is_left_in_the_zone() {
    let knot = Knot::start();
    let (mut killed, mut message) = (0, 1);
    for is_renewal in [false, true].into_iter().cycle() {
        let pebble = Pebble::start(knot.address, QUARTER);
        let door = Door::before_stream(pebble.address);
        let tree = managed(&knot, &pebble);
        set(&tree, &pebble.settings(door.port));
        let mut before = 0;
        if is_renewal {
            tree.run(APPLY).expect(3);
            tree.run(APPLY).expect(0);
            pebble.renews_now(&chain(&tree, "orders"));
            renewal::ask_again(&tree);
            before = 1;
        }
        let is_killed = door.kills(|| tree.start(APPLY), Moment { message, is_answered: false });
        // Only the answer to the order itself can be lost: nobody else knows of it then.
        let is_stored = || kept(&tree)["certificates"].to_string().contains("\"url\":\"");
        let is_known = tree.path().join(KEPT).exists() && is_stored();
        let lost =
            usize::from(is_killed && pebble.orders() > before && !is_known && !has_new(&tree, is_renewal));
        tree.run(APPLY);
        tree.run(APPLY).expect(0);
        tree.run(PLAN).expect(0).says(&["Nothing to do"]);
        assert_eq!(pebble.orders(), before + 1 + lost, "message {message}\n{}", pebble.log());
        assert!(knot.answers(CHALLENGE, "TXT").is_empty(), "message {message}");
        killed += usize::from(is_killed);
        if !is_killed && is_renewal {
            break;
        }
        message += one_in(7);
    }
    assert!(killed > 3, "only {killed} runs were killed");
}

#[test]
fn killed_while_the_authority_looks_the_order_goes_on() {
    let knot = Knot::start();
    let (tree, pebble, _door) = killed_while_it_looks(&knot, "5");
    // A kill on the way may have cut off the answer to an order.
    let orders = pebble.orders();
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(pebble.orders(), orders, "{}", pebble.log());
    assert!(knot.answers(CHALLENGE, "TXT").is_empty());
}

#[test]
fn why_an_order_failed_is_told_by_the_run_after_the_one_that_was_killed() {
    let mut knot = Knot::start();
    let (tree, pebble, _door) = killed_while_it_looks(&knot, "15");
    let orders = pebble.orders();
    knot.stop();
    until("the authority has looked", || pebble.log().contains("set INVALID by").then_some(()));
    knot.start_again();
    tree.run(APPLY).expect(1).says(&["the authority says: Error retrieving TXT records for DNS challenge"]);
    assert_eq!(pebble.orders(), orders, "{}", pebble.log());
}

/// A tree whose run was killed once the authority looked, which takes it up to so many seconds.
fn killed_while_it_looks(knot: &Knot, seconds: &str) -> (Tree, Pebble, Door) {
    let slow = [("PEBBLE_VA_NOSLEEP", "0"), ("PEBBLE_VA_SLEEPTIME", seconds)];
    let pebble = Pebble::start_with(knot.address, QUARTER, &slow);
    let door = Door::before_stream(pebble.address);
    let tree = managed(knot, &pebble);
    set(&tree, &pebble.settings(door.port));
    for message in 1.. {
        let is_killed = door.kills(|| tree.start(APPLY), Moment { message, is_answered: false });
        assert!(is_killed, "the run ended before the authority looked\n{}", pebble.log());
        if pebble.log().contains("Pulled a task") {
            break;
        }
    }
    (tree, pebble, door)
}

/// Whether the certificate was stored that the killed run got.
fn has_new(tree: &Tree, is_renewal: bool) -> bool {
    let issued = &kept(tree)["certificates"][super::KEY]["issued"];
    match is_renewal {
        false => !issued.is_null(),
        true => issued["chain"] != chain(tree, "orders"),
    }
}
