use std::process::{Child, Stdio};

use super::{APPLY, CHALLENGE, KEPT, PLAN, QUARTER, chain, kept, managed, renewal, set};
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
        let is_killed = door.kills(|| quiet(&tree), Moment { message, is_answered: false });
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
    let slow = [("PEBBLE_VA_NOSLEEP", "0"), ("PEBBLE_VA_SLEEPTIME", "5")];
    let pebble = Pebble::start_with(knot.address, QUARTER, &slow);
    let door = Door::before_stream(pebble.address);
    let tree = managed(&knot, &pebble);
    set(&tree, &pebble.settings(door.port));
    let looks = || pebble.log().contains("Pulled a task");
    for message in 1.. {
        let is_killed = door.kills(|| quiet(&tree), Moment { message, is_answered: false });
        assert!(is_killed, "the run ended before the authority looked\n{}", pebble.log());
        if looks() {
            break;
        }
    }
    tree.run(APPLY).expect(3);
    tree.run(APPLY).expect(0);
    tree.run(PLAN).expect(0).says(&["Nothing to do"]);
    assert_eq!(pebble.orders(), 1, "{}", pebble.log());
    assert!(knot.answers(CHALLENGE, "TXT").is_empty());
}

fn quiet(tree: &Tree) -> Child {
    let mut command = tree.command(APPLY);
    command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
}

/// Whether the certificate was stored that the killed run got.
fn has_new(tree: &Tree, is_renewal: bool) -> bool {
    let issued = &kept(tree)["certificates"]["BaseDomain/acme/acme.kafka.example.test"]["issued"];
    match is_renewal {
        false => !issued.is_null(),
        true => issued["chain"] != chain(tree, "orders"),
    }
}
