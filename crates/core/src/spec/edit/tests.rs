mod files;
mod properties;
mod refusals;

use super::*;

const HEADER: &str = "kind: Cluster\norganization: acme\nidentifier: orders\n";

pub(super) fn orders() -> ResourceKey {
    ResourceKey::try_from("Cluster/acme/orders".to_owned()).unwrap()
}

fn domain() -> ResourceKey {
    ResourceKey::try_from("BaseDomain/acme/k.example.com".to_owned()).unwrap()
}

pub(super) fn patched(text: &str, key: &ResourceKey, patch: &Value) -> Result<String, EditRefusal> {
    let mut wanted = read(text, key)?;
    merge_patch(&mut wanted, patch);
    let after = set(text, key, &wanted)?;
    assert_eq!(read(&after, key).as_ref(), Ok(&wanted));
    assert_eq!(set(&after, key, &wanted).as_ref(), Ok(&after), "what is wanted is there already");
    Ok(after)
}

struct Case {
    name: &'static str,
    before: String,
    patch: Value,
    after: String,
}

fn cases() -> Vec<Case> {
    let file = include_str!("tests/cases.txt");
    let blocks: Vec<(&str, &str)> =
        file.split(">>> ").skip(1).filter_map(|block| block.split_once('\n')).collect();
    let full = |text: &str| match text.contains("kind") {
        true => text.to_owned(),
        false => HEADER.to_owned() + text,
    };
    let case = |parts: &[(&'static str, &'static str)]| {
        let [(name, before), ("patch", patch), ("after", after)] = parts else { panic!("{parts:?}") };
        // An empty line separates the cases.
        let after = after.strip_suffix("\n\n").map_or((*after).to_owned(), |after| format!("{after}\n"));
        Case {
            name,
            before: full(before),
            patch: serde_json::from_str(patch).expect(name),
            after: full(&after),
        }
    };
    blocks.chunks(3).map(case).collect()
}

fn key_of(text: &str) -> ResourceKey {
    if text.contains("BaseDomain") { domain() } else { orders() }
}

#[test]
fn a_change_is_made_as_a_person_would_make_it() {
    let mut wrong = String::new();
    for Case { name, before, patch, after } in cases() {
        let changed =
            patched(&before, &key_of(&before), &patch).unwrap_or_else(|refusal| refusal.to_string());
        if changed != after {
            wrong.push_str(&format!("{name}:\n{changed}\n"));
        }
    }
    assert!(wrong.is_empty(), "{wrong}");
}

#[test]
fn line_ends_and_the_byte_order_mark_stay() {
    for Case { name, before, patch, after } in cases() {
        let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
        let before = windows(&before);
        assert_eq!(patched(&before, &key_of(&before), &patch), Ok(windows(&after)), "{name}");
    }
}

#[test]
fn a_file_without_a_line_end_at_its_end_stays_so() {
    for Case { name, before, patch, after } in cases() {
        // In these cases the break is part of the text, or its last line changes.
        if before.ends_with("\n\n") || name.starts_with("lines") {
            continue;
        }
        let cut = |text: &str| text.strip_suffix('\n').unwrap_or(text).to_owned();
        assert_eq!(patched(&cut(&before), &key_of(&before), &patch), Ok(cut(&after)), "{name}");
    }
}
