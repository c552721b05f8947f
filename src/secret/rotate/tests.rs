use secrecy::ExposeSecret as _;

use super::*;
use crate::names::SecretRef;
use crate::secret::seal;

fn reference() -> SecretRef {
    SecretRef::try_from("BaseDomain/acme/k.example.com#tls_key".to_owned()).unwrap()
}

fn file() -> SpecPath {
    "acme/domains.yaml".parse().unwrap()
}

/// A keyring with a second identity, and a block that was sealed to the first one.
fn rotated() -> (Keyring, String) {
    let mut keyring = Keyring::ephemeral().unwrap();
    let armour = seal(&keyring.recipient(), &reference(), &"hunter2".into()).unwrap();
    drop(keyring.add_identity().unwrap());
    (keyring, armour)
}

/// A document with the block as a literal scalar, surrounded by text that must not change.
fn literal(armour: &str, header: &str, line_end: &str) -> String {
    let block: String = armour.lines().map(|line| format!("      {line}\n")).collect();
    format!(
        "# our domains: ÄÖ\nkind: BaseDomain   # kind\n\"organization\": 'acme'\ntls_key:\n    encrypted: {header}\n{block}\n\
         # after\ndomain: ÄÖ.example.com\n---\nkind: Cluster\n"
    )
    .replace('\n', line_end)
}

fn told(text: &str, keyring: &Keyring) -> String {
    let error = rotate_text(text, &file(), keyring).expect_err("the file is refused");
    let told = format!("{error} ({})", error.hint);
    assert!(!told.contains("hunter2"), "{told}");
    told
}

fn blocks(text: &str) -> Vec<String> {
    edit::strings(text, "encrypted").unwrap().into_iter().map(|field| field.text).collect()
}

fn block(text: &str) -> String {
    blocks(text).swap_remove(0)
}

#[test]
fn only_the_lines_of_the_block_change() {
    let (keyring, armour) = rotated();
    for header in ["|", "|-", "|+", "|2", "| # sealed"] {
        for (line_end, mark) in [("\n", ""), ("\r\n", ""), ("\n", "\u{feff}")] {
            let before = mark.to_owned() + &literal(&armour, header, line_end);
            let (after, count) = rotate_text(&before, &file(), &keyring).unwrap();
            assert_eq!(count, 1, "{header}");
            let new = block(&after);
            assert_eq!(after, mark.to_owned() + &literal(new.trim_end(), header, line_end), "{header}");
            assert_eq!(keyring.open(&new, &reference()).unwrap().expose_secret(), "hunter2");
            assert_ne!(new.trim_end(), armour.trim_end());
        }
    }
}

#[test]
fn the_header_of_a_block_at_the_end_of_a_file_stays() {
    let (keyring, armour) = rotated();
    for header in ["|1+", "|+1", "|2", "|+"] {
        let written = |block: &str| {
            format!("tls_key:\n  encrypted: {header}\n    {}\n", block.trim_end().replace('\n', "\n    "))
        };
        let (after, _) = rotate_text(&written(&armour), &file(), &keyring).unwrap();
        assert!(after.starts_with(&format!("tls_key:\n  encrypted: {header}\n ")), "{after}");
        assert!(after.ends_with("-----END AGE ENCRYPTED FILE-----\n"), "{after}");
    }
}

#[test]
fn lines_around_the_armour_keep_their_line_ends() {
    let (keyring, armour) = rotated();
    let block = armour.trim_end().replace('\n', "\n    ");
    let before = format!("tls_key:\r\n  encrypted: |+\r\n \n    {block}\n\r\n\nb: 2\n");
    let (after, _) = rotate_text(&before, &file(), &keyring).unwrap();
    assert!(after.starts_with("tls_key:\r\n  encrypted: |+\r\n \n    -----BEGIN"), "{after:?}");
    assert!(after.ends_with("FILE-----\n\r\n\nb: 2\n"), "{after:?}");
}

#[test]
fn quoted_and_flow_forms_are_edited_in_their_place() {
    let (keyring, armour) = rotated();
    let escaped = armour.replace('\n', "\\n");
    let folded = armour.trim_end().replace('\n', "\n\n    ");
    for (before, around) in [
        (
            format!("a: 1\ntls_key: {{encrypted: \"{escaped}\"}} # x\nb: 2\n"),
            ("a: 1\ntls_key: {encrypted: \"", "\"} # x\nb: 2\n"),
        ),
        // An item of a list keeps its comment.
        (
            format!("tls_key:\n - a: {{encrypted: \"{escaped}\"}} # x\nb: 2\n"),
            ("tls_key:\n - a: {encrypted: \"", "\"} # x\nb: 2\n"),
        ),
        (format!("tls_key:\n  encrypted: \"{folded}\"\nb: 2\n"), ("tls_key:\n  encrypted: \"", "\"\nb: 2\n")),
        (
            format!("tls_key:\n  \"encrypted\": '{folded}'\nb: 2\n"),
            ("tls_key:\n  \"encrypted\": \"", "\"\nb: 2\n"),
        ),
    ] {
        let (after, count) = rotate_text(&before, &file(), &keyring).unwrap();
        assert_eq!(count, 1);
        assert!(after.starts_with(around.0) && after.ends_with(around.1), "{after}");
        assert_eq!(keyring.open(&block(&after), &reference()).unwrap().expose_secret(), "hunter2");
    }
}

#[test]
fn rotating_again_changes_nothing() {
    let (keyring, armour) = rotated();
    let (once, _) = rotate_text(&literal(&armour, "|", "\n"), &file(), &keyring).unwrap();
    assert_eq!(rotate_text(&once, &file(), &keyring).unwrap(), (once.clone(), 0));
    let plain = "tls_key: {from_file: a}\nencrypted: no block\n";
    assert_eq!(rotate_text(plain, &file(), &keyring).unwrap(), (plain.to_owned(), 0));
}

#[test]
fn several_blocks_of_a_file_are_sealed_again_each_for_its_own_field() {
    let other = SecretRef::try_from("CloudAccount/acme/s3#credentials".to_owned()).unwrap();
    let mut keyring = Keyring::ephemeral().unwrap();
    let [one, two] = [reference(), other.clone()]
        .map(|reference| seal(&keyring.recipient(), &reference, &"hunter2".into()).unwrap());
    drop(keyring.add_identity().unwrap());
    let text = literal(&one, "|", "\n") + "---\n" + &literal(&two, "|-", "\n");
    let (after, count) = rotate_text(&text, &file(), &keyring).unwrap();
    assert_eq!(count, 2);
    let [one, two] = &blocks(&after)[..] else { panic!("there are two blocks") };
    assert!(keyring.open(one, &reference()).is_ok() && keyring.open(two, &other).is_ok());
    assert_eq!(keyring.open(two, &reference()).map(|_| ()), Err(NotOpened::WrongField));
}

#[test]
fn what_cannot_be_sealed_again_is_told_with_its_line() {
    let (keyring, armour) = rotated();
    let start = "cannot seal the secrets of acme/domains.yaml again:";
    let again = "(seal the value again with `streamfleet secret encrypt`)";
    let stranger = Keyring::ephemeral().unwrap();
    assert_eq!(
        told(&literal(&armour, "|", "\n"), &stranger),
        format!(
            "{start} no identity here opens the block (line 6) (run this on a host with the identity, or seal the value \
             again with `streamfleet secret encrypt`)"
        )
    );
    let torn = armour.replacen("-----END", "END", 1);
    assert_eq!(
        told(&literal(&torn, "|", "\n"), &keyring),
        format!("{start} the block is damaged: its BEGIN or END line is missing (line 6) {again}")
    );
    // Some readers take U+0085 for a line break, so it is not written into lines.
    let odd = literal(&armour, "|", "\n").replace("FILE-----\n\n", "FILE-----\u{85}\n\n");
    for unusual in [literal(&armour, ">", "\n"), odd] {
        assert_eq!(
            told(&unusual, &keyring),
            format!("{start} the block is written in an unusual form (line 6) (write it as `encrypted: |`)")
        );
    }
    assert_eq!(
        told("a: [", &keyring),
        format!(
            "{start} it is not YAML (line 1) (fix the file first: `streamfleet plan` shows what is wrong)"
        )
    );
}

fn before_block(text: &str) -> &str {
    text.split(envelope::BEGIN).next().unwrap_or_default().trim_end_matches(['"', '\'', ' ', '\n'])
}

proptest::proptest! {
    #![proptest_config(proptest::prelude::ProptestConfig::with_cases(200))]

    #[test]
    fn a_mangled_file_is_refused_or_changed_in_its_block_alone(
        start in 0..1200_usize,
        length in 0..40_usize,
        insert in "[ #\"'|>:\n-]{0,3}",
    ) {
        let (keyring, armour) = rotated();
        let mut text = literal(&armour, "|", "\n");
        let range = text.floor_char_boundary(start)..text.floor_char_boundary(start + length);
        text.replace_range(range, &insert);
        match rotate_text(&text, &file(), &keyring) {
            Ok((after, 0)) => proptest::prop_assert_eq!(after, text),
            Ok((after, _)) => {
                proptest::prop_assert_eq!(before_block(&after), before_block(&text));
                proptest::prop_assert!(keyring.open(&block(&after), &reference()).is_ok());
            }
            Err(error) => proptest::prop_assert_eq!(error.code, "rotate-failed"),
        }
    }
}
