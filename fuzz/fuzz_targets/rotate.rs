//! Fuzzes the resealing of any file with sealed blocks: each block keeps its plaintext and every other byte
//! stays, or the file is refused.
//!
//! A fuzzer can't guess a block, so an input has `%OLD%` or `%NEW%` in its place, for one sealed to an older
//! identity or to the newest: the lines of the block, indented like the first. `%OLD-QUOTED%` is the same on
//! one line, as it is written between double quotes.

#![no_main]

use std::ops::Range;
use std::sync::LazyLock;

use granit_parser::{Event, Parser, ScalarStyle, Span};
use libfuzzer_sys::fuzz_target;
use secrecy::ExposeSecret as _;
use streamfleet::names::{SecretRef, SpecPath};
use streamfleet::secret::{Keyring, rotate_text, seal};

const SECRET: &str = "hunter2hunter2";
const BEGIN: &str = "-----BEGIN AGE ENCRYPTED FILE-----";
const END: &str = "-----END AGE ENCRYPTED FILE-----";

static REFERENCE: LazyLock<SecretRef> =
    LazyLock::new(|| SecretRef::try_from("BaseDomain/acme/k.example.com#tls_key".to_owned()).unwrap());
static FILE: LazyLock<SpecPath> = LazyLock::new(|| "acme/a.yaml".parse().unwrap());

struct Keys {
    keyring: Keyring,
    old: String,
    new: String,
}

static KEYS: LazyLock<Keys> = LazyLock::new(|| {
    let mut keyring = Keyring::ephemeral().unwrap();
    let sealed = |keyring: &Keyring| seal(&keyring.recipient(), &REFERENCE, &SECRET.into()).unwrap();
    let old = sealed(&keyring);
    drop(keyring.add_identity().unwrap());
    let new = sealed(&keyring);
    Keys { keyring, old, new }
});

fuzz_target!(|template: &str| {
    let before = fill(template);
    match rotate_text(&before, &FILE, &KEYS.keyring) {
        Ok((after, 0)) => assert_eq!(after, before, "nothing was sealed again, so nothing changed"),
        Ok((after, count)) => {
            if !events(&before).iter().any(is_folded) {
                only_blocks_changed(&before, &after, count);
            }
            let again = rotate_text(&after, &FILE, &KEYS.keyring).unwrap();
            assert!(again == (after, 0), "there is nothing left to seal again");
        }
        Err(error) => {
            let told = format!("{error} {}", error.hint);
            assert!(!told.contains(SECRET), "the secret is told");
        }
    }
});

fn fill(template: &str) -> String {
    let mut text = String::new();
    for line in template.split_inclusive('\n') {
        let indentation = &line[..line.len() - line.trim_start_matches(' ').len()];
        let line_end = if line.ends_with("\r\n") { "\r\n" } else { "\n" };
        let mut line = line.to_owned();
        for (name, block) in [("OLD", &KEYS.old), ("NEW", &KEYS.new)] {
            let block = block.trim_end();
            let lines = block.replace('\n', &format!("{line_end}{indentation}"));
            line = line.replace(&format!("%{name}%"), &lines);
            line = line.replace(&format!("%{name}-QUOTED%"), &block.replace('\n', "\\n"));
        }
        text.push_str(&line);
    }
    text
}

/// Compares both texts event by event: exactly the counted blocks changed and still open, and everything
/// between them is byte-equal.
fn only_blocks_changed(before: &str, after: &str, count: usize) {
    let (old_events, new_events) = (events(before), events(after));
    assert_eq!(old_events.len(), new_events.len());
    let (mut old_end, mut new_end, mut changed) = (0, 0, 0);
    for (old, new) in old_events.iter().zip(&new_events).filter(|(old, new)| old.0 != new.0) {
        assert_eq!(opened(&old.0), SECRET);
        assert_eq!(opened(&new.0), SECRET);
        let (old_range, new_range) = (block(before, old), block(after, new));
        assert_eq!(before[old_end..old_range.start], after[new_end..new_range.start]);
        (old_end, new_end) = (old_range.end, new_range.end);
        changed += 1;
    }
    assert_eq!(before[old_end..], after[new_end..]);
    assert_eq!(changed, count);
}

fn events(text: &str) -> Vec<(Event<'_>, Span)> {
    Parser::new_from_str(text).collect::<Result<_, _>>().unwrap()
}

/// Whether a block's line breaks are lost, as between double quotes. It is written anew as lines, and so are the
/// brackets around it.
fn is_folded((event, _): &(Event<'_>, Span)) -> bool {
    event.scalar().is_some_and(|(text, _)| text.contains(BEGIN) && !text.contains('\n'))
}

fn opened(event: &Event<'_>) -> String {
    let (block, _) = event.scalar().expect("only scalars change");
    KEYS.keyring.open(block, &REFERENCE).unwrap().expose_secret().to_owned()
}

/// The byte range of a block: its lines, or the whole scalar where it is quoted.
fn block(text: &str, (event, span): &(Event<'_>, Span)) -> Range<usize> {
    let range = span.byte_range().unwrap();
    if event.scalar().unwrap().1 != ScalarStyle::Literal {
        return range;
    }
    let begin = range.start + text[range.clone()].find(BEGIN).unwrap();
    let end = range.start + text[range].find(END).unwrap() + END.len();
    begin..end
}
