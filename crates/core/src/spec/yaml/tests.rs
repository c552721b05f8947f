use super::*;

fn errors(text: &str) -> Vec<String> {
    parse(text).into_iter().filter_map(|document| document.root.err()).map(|error| error.message).collect()
}

#[test]
fn scalars_mean_what_the_core_schema_says() {
    use Scalar::{Bool, Float, Integer, Null, String};
    for (text, expected) in [
        ("", Null),
        ("~", Null),
        ("Null", Null),
        ("true", Bool(true)),
        ("FALSE", Bool(false)),
        ("yes", String("yes")),
        ("on", String("on")),
        ("12", Integer(Some(12))),
        ("-0", Integer(Some(0))),
        ("+7", Integer(Some(7))),
        ("0o17", Integer(Some(15))),
        ("0xfF", Integer(Some(255))),
        ("017", Integer(Some(17))),
        ("99999999999999999999", Integer(None)),
        ("0x", String("0x")),
        ("1_000", String("1_000")),
        ("4.3", Float),
        ("1e3", Float),
        (".5", Float),
        ("5.", Float),
        ("-.inf", Float),
        (".nan", Float),
        ("nan", String("nan")),
        ("inf", String("inf")),
        ("infinity", String("infinity")),
        (".", String(".")),
        ("4.1.0", String("4.1.0")),
        ("2024-01-01", String("2024-01-01")),
    ] {
        assert_eq!(Scalar::resolve(text, true), expected, "{text}");
        assert_eq!(Scalar::resolve(text, false), String(text), "{text}");
    }
}

#[test]
fn nesting_is_limited_however_it_is_written() {
    let deep = 10_000;
    let message = "the document is nested more than 64 levels deep";
    assert_eq!(errors(&"[".repeat(deep)), [message]);
    assert_eq!(errors(&"{a: ".repeat(deep)), [message]);
    assert_eq!(errors(&"- ".repeat(deep)), [message]);
    let block: String = (0..1000).map(|level| format!("{}a:\n", " ".repeat(level))).collect();
    assert_eq!(errors(&block), [message]);
    // Flow inside of block, each below the parser's own limit.
    assert_eq!(errors(&format!("{}{}", "- ".repeat(60), "[".repeat(60) + &"]".repeat(60))), [message]);
    let fine = format!("{}{}", "[".repeat(MAX_DEPTH), "]".repeat(MAX_DEPTH));
    assert_eq!(errors(&fine), [""; 0]);
}

#[test]
fn aliases_can_not_make_a_small_file_large_or_deep() {
    let mut bomb = "a0: &a0 [x, x, x, x, x, x, x, x, x]\n".to_owned();
    for level in 1..12 {
        let aliases = vec![format!("*a{}", level - 1); 9].join(", ");
        bomb.push_str(&format!("a{level}: &a{level} [{aliases}]\n"));
    }
    assert_eq!(
        errors(&bomb),
        ["the file has more than 100000 values, if each alias counts as all that it refers to"]
    );
    // Nested anchors without an alias.
    let nested: String = (0..60).map(|level| format!("&n{level} [")).collect();
    assert_eq!(errors(&format!("{nested}{}", "x,".repeat(5_000) + &"]".repeat(60))).len(), 1);
    let mut tower = "a0: &a0 [x]\n".to_owned();
    for level in 1..80 {
        tower.push_str(&format!("a{level}: &a{level} [*a{}]\n", level - 1));
    }
    assert_eq!(errors(&tower), ["the document is nested more than 64 levels deep"]);
    assert_eq!(errors("a: &a [*a]\n"), ["an alias refers to a value that contains it"]);
}

#[test]
fn many_values_are_too_many() {
    let text = "- x\n".repeat(MAX_NODES + 1);
    assert_eq!(
        errors(&text),
        ["the file has more than 100000 values, if each alias counts as all that it refers to"]
    );
}

#[test]
fn an_alias_is_what_it_stands_for_and_remembers_both_places() {
    let text = "a: &x [1]\nb: *x\n";
    let document = parse(text).remove(0).root.unwrap().unwrap();
    let alias = document.only("b").unwrap();
    assert!(matches!(&alias.content, YamlContent::Sequence(items) if items.len() == 1));
    assert_eq!(&text[alias.span.start..alias.span.end], "*x");
    let target = alias.target.unwrap();
    assert_eq!(&text[target.start..target.end], "[1]");
}
