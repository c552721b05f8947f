//! Refused edits with their exact messages. The file is unchanged.

use serde_json::json;

use super::*;

fn told(text: &str, patch: Value) -> String {
    let text = if text.contains("kind") { text.to_owned() } else { HEADER.to_owned() + text };
    let refusal = patched(&text, &orders(), &patch).expect_err(&text);
    let told = refusal.to_string();
    let told = told.strip_prefix("the file was not changed: ").expect("it says so");
    format!("{told}; {}: {}", refusal.code(), refusal.hint())
}

#[test]
fn each_refusal_says_why_where_and_what_to_do() {
    for (text, patch, expected) in [
        (
            "a: &x {b: 1}\nc: *x\n",
            json!({"a": {"b": 2}}),
            "the value to change has an anchor, and every alias of it would change too (line 4, column 7); edit-anchor: \
             replace its aliases by the value, or make the change in the file",
        ),
        (
            "a: &x 1\nc:   *x\n",
            json!({"c": 2}),
            "the value to change is an alias of another one (line 5, column 6); edit-alias: replace the alias by the \
             value, or make the change in the file",
        ),
        (
            "a: &x {b: 1}\nc: {<<: *x}\n",
            json!({"d": 2}),
            "merge keys are not supported (line 5, column 5); edit-merge-key: write the fields out",
        ),
        (
            "a: !!str 1\n",
            json!({"a": "2"}),
            "values with a tag are not supported (line 4, column 10); edit-tag: remove the tag: `!!str 1` is \"1\"",
        ),
        (
            "a: 1\nb:\n  c: 1\n  c: 2\n",
            json!({"a": 2}),
            "`c` is repeated (line 7, column 3); edit-duplicate-key: remove one of the two",
        ),
        (
            "? a\n: 1\n",
            json!({"a": 2}),
            "a key is written in a form that can't be edited (line 4, column 3); edit-key: write the key as a plain word \
             with a colon behind it",
        ),
        (
            "1: x\n",
            json!({"a": 2}),
            "a key is written in a form that can't be edited (line 4, column 1); edit-key: write the key as a plain word \
             with a colon behind it",
        ),
        (
            "ä: 99999999999999999999\n",
            json!({"a": 2}),
            "a number is too large, or not a JSON number (line 4, column 4); edit-number: put it in quotes, or write it as \
             an integer of at most 64 bits",
        ),
        (
            "a: 1\rb: 2\n",
            json!({"a": 2}),
            "its lines end with a bare carriage return (line 4, column 5); edit-carriage-return: save the file with the \
             line ends of Unix or Windows",
        ),
        (
            "a: [ # first\n  x, y]\n",
            json!({"a": []}),
            "there is a comment within the brackets to change (line 5, column 3); edit-comment-in-brackets: move the \
             comment out of the brackets, or make the change in the file",
        ),
        (
            "a: [&x b, c]\n",
            json!({"a": ["c"]}),
            "the value to change is written in an unusual form (line 4, column 4); edit-unusual: write this part as `key: \
             value`, one per line, or make the change in the file",
        ),
        (
            "a: 1\n",
            json!({"a": 18_446_744_073_709_551_615_u64}),
            "the edit would change more or less than requested; edit-unproven: make the change in the file",
        ),
        (
            "a: 1\n---\nb: [\n",
            json!({"a": 2}),
            "`[` is not closed (line 6, column 4); edit-unreadable: close the bracket",
        ),
        (
            "a: \u{7}\n",
            json!({"a": 2}),
            "it contains a control character (line 4, column 4); edit-unreadable: remove it",
        ),
        (
            "kind: Fleet\norganization: acme\nidentifier: orders\n",
            json!({"a": 2}),
            "it has no document of cluster acme/orders; edit-not-there: check whether it was moved to another file, \
             and try again",
        ),
        (
            "kind: Cluster\norganization: acme\nidentifier: orders\n---\nkind: Cluster\norganization: acme\nidentifier: orders\n",
            json!({"a": 2}),
            "it has more than one document of cluster acme/orders; edit-twice: remove one of the two",
        ),
    ] {
        assert_eq!(told(text, patch), expected, "{text}");
    }
    let long = HEADER.to_owned() + &"# x\n".repeat(300_000);
    assert_eq!(told(&long, json!({"a": 1})), "it is larger than 1 MiB; edit-unreadable: split the file");
}

#[test]
fn a_refusal_is_shown_as_a_problem_of_the_file() {
    let text = format!("\u{feff}{HEADER}ä: &x {{password: hunter2}}\nö: *x\n");
    let refusal = patched(&text, &orders(), &json!({"ä": 1})).unwrap_err();
    let problem = refusal.problem(&"acme/a.yaml".parse().unwrap(), &text);
    assert_eq!(
        crate::problem::render(&[problem], false).trim_end(),
        "error: the file was not changed: the value to change has an anchor, and every alias of it would change too\n --> \
         acme/a.yaml:4:7\n  |\n4 | ä: &x {password: …\n  |       ^\n  |\n  = help: replace its aliases by the value, or \
         make the change in the file"
    );
}

#[test]
fn anchors_and_aliases_elsewhere_in_the_document_are_no_hindrance() {
    let text = format!("{HEADER}a: &x 1 # one\nb: *x\nkafka_units: 1\nc:\n  &z d: 1\n  e: 2\n");
    let after = patched(&text, &orders(), &json!({"kafka_units": 2, "c": {"e": 3}})).unwrap();
    assert_eq!(after, text.replace("kafka_units: 1", "kafka_units: 2").replace("e: 2", "e: 3"));
}

#[test]
fn an_anchor_that_nothing_stands_for_is_no_hindrance() {
    for (text, patch, expected) in [
        ("a: &x 1 # one\n", json!({"a": 2}), "a: &x 2 # one\n"),
        ("a: &x {b: 1}\n", json!({"a": {"b": 2}}), "a: &x {b: 2}\n"),
        ("a: &x\n  b: 1\n", json!({"a": {"b": 2}}), "a: &x\n  b: 2\n"),
        ("a: &x 1\nb: &y 2\nc: *y\n", json!({"a": 2}), "a: &x 2\nb: &y 2\nc: *y\n"),
    ] {
        let after = patched(&format!("{HEADER}{text}"), &orders(), &patch).unwrap();
        assert_eq!(after, format!("{HEADER}{expected}"));
    }
}

#[test]
fn an_anchor_that_is_needed_does_not_go() {
    for text in ["a: &x 1\nb: *x\n", "b: &x 2\na: &x 1\nc: *x\n", "b: &x 2\na:\n  - &x 1\nc: *x\n"] {
        let refusal = patched(&format!("{HEADER}{text}"), &orders(), &json!({"a": null})).unwrap_err();
        assert_eq!(refusal.reason, RefusalReason::Unproven, "{text}");
    }
}

#[test]
fn what_a_document_is_may_change_and_what_it_says_is_exact() {
    let renamed = json!({"kind": "Cluster", "organization": "acme", "identifier": "payments"});
    assert_eq!(set(HEADER, &orders(), &renamed), Ok(HEADER.replace("orders", "payments")));
    let nothing = set(HEADER, &orders(), &json!([1])).unwrap_err();
    assert_eq!(nothing.reason, RefusalReason::Unusual);
}

#[test]
fn the_proof_sees_a_change_that_nobody_asked_for() {
    let source = Source { text: "a: 1\n---\nb: x\n" };
    let before = source.documents().unwrap();
    let wanted = json!({"a": 2});
    let holds =
        |after: &str| prove(after, &before, &[Expected::Wanted(&wanted), Expected::AsBefore(1)]).is_ok();
    assert!(holds("a: 2\n---\nb: x\n"));
    for wrong in [
        "a: 2\n---\nb: 'x'\n",
        "a: \"2\"\n---\nb: x\n",
        "a: 2.0\n---\nb: x\n",
        "a: 2\n---\nb: y\n",
        "a: 2\n---\nb: &y x\n",
        "a: 2\n---\nb: !!str x\n",
        "a: 2\n---\n- b: x\n",
        "a: 2\n---\nb: x\nc: y\n",
        "a: 2\n",
        "a: 2\n---\nb: x\n---\n",
        "a: 2\n---\nb: [\n",
        "---\n---\nb: x\n",
    ] {
        assert!(!holds(wrong), "{wrong}");
    }
}
