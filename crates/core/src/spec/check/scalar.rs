//! Strings, numbers, booleans and choices.

use serde_json::Value;

use super::{SpecFinding, found};
use crate::problem::quote_untrusted;
use crate::spec::shape::{self, Rule, Shape};
use crate::spec::yaml::{Node, Scalar, Span, YamlContent};

/// Converts a scalar to its exact form, or returns what is wrong with it.
pub(super) fn exact(shape: &Shape, node: &Node<'_>, name: &str) -> Result<Value, Box<SpecFinding>> {
    let scalar = node.scalar();
    match (&shape.rule, scalar) {
        (Rule::Text { min, max, pattern, lines }, Some(Scalar::String(text))) => {
            if !lines && let Some(finding) = control_character(text, node.span, &format!("`{name}`")) {
                return Err(finding);
            }
            let length = text.chars().count();
            let fits = (*min..=*max).contains(&length) && pattern.as_ref().is_none_or(|p| p.is_match(text));
            if fits {
                return Ok(Value::String(text.to_owned()));
            }
            Err(misfit(shape, node, name, length))
        }
        (Rule::Integer { min, max }, Some(Scalar::Integer(number))) => match number {
            Some(number) if (*min..=*max).contains(&number) => Ok(Value::from(number)),
            _ => Err(unexpected("out-of-range", shape, node, name)),
        },
        (Rule::Boolean, Some(Scalar::Bool(value))) => Ok(Value::Bool(value)),
        (Rule::Choice { values, any_case, driver }, Some(Scalar::String(text))) => {
            let same = |value: &&String| *value == text || (*any_case && value.eq_ignore_ascii_case(text));
            match values.iter().find(same) {
                Some(value) => Ok(Value::String(value.clone())),
                None => Err(unknown_value(values, driver.as_deref(), shape, node, name, text)),
            }
        }
        _ => {
            let mut finding = unexpected("wrong-type", shape, node, name);
            finding.hint = hint(shape, node);
            Err(finding)
        }
    }
}

/// Refuses control characters, which other programs may take for the end of a value or of a line.
pub(super) fn control_character(text: &str, span: Span, what: &str) -> Option<Box<SpecFinding>> {
    let letter = text.chars().find(|letter| letter.is_control())?;
    let code = u32::from(letter);
    let message = format!("{what} contains the control character U+{code:04X}");
    let hint = match letter {
        '\n' | '\r' => "write it on one line",
        _ => "remove it",
    };
    Some(Box::new(SpecFinding::new(span, "control-character", message).hint(hint)))
}

fn unexpected(code: &'static str, shape: &Shape, node: &Node<'_>, name: &str) -> Box<SpecFinding> {
    let message = format!("`{name}`: expected {}, found {}", shape.expected, found(node, shape.secret));
    Box::new(SpecFinding::new(node.span, code, message))
}

/// Describes a string of the wrong form or length. If only the length is wrong, the numbers are more useful
/// than the form.
fn misfit(shape: &Shape, node: &Node<'_>, name: &str, length: usize) -> Box<SpecFinding> {
    let Rule::Text { min, max, pattern, .. } = &shape.rule else {
        return unexpected("wrong-format", shape, node, name);
    };
    let by_length = pattern.is_none() || (length > *max && *max < usize::MAX);
    if !by_length || length == 0 {
        let mut finding = unexpected("wrong-format", shape, node, name);
        if shape.secret {
            finding.message = format!("`{name}`: expected {}, found another string", shape.expected);
        }
        // DNS tools write names so.
        let plain = node.scalar().and_then(|scalar| match scalar {
            Scalar::String(text) => text.strip_suffix('.'),
            _ => None,
        });
        if plain.zip(pattern.as_ref()).is_some_and(|(plain, pattern)| pattern.is_match(plain)) {
            finding.hint = Some("remove the dot at its end".to_owned());
        }
        if length == 0 && pattern.is_none() {
            finding.message = format!("`{name}` is empty");
            finding.hint = Some(format!("give `{name}` a value"));
        }
        return finding;
    }
    let message = match length > *max {
        true => format!("`{name}` has {length} characters; at most {max} are allowed"),
        false => format!("`{name}` has {length} characters; at least {min} are needed"),
    };
    Box::new(SpecFinding::new(node.span, if length > *max { "too-long" } else { "too-short" }, message))
}

fn unknown_value(
    values: &[String],
    driver: Option<&str>,
    shape: &Shape,
    node: &Node<'_>,
    name: &str,
    text: &str,
) -> Box<SpecFinding> {
    let names = || values.iter().map(String::as_str);
    let meant = nearest(text, names()).map(|value| format!("did you mean `{value}`?"));
    if let Some(driver) = driver.filter(|_| node.target.is_none()) {
        let verb = if values.len() == 1 { "is" } else { "are" };
        let available = shape::list(names(), "and");
        let message = format!(
            "there is no driver for {driver} `{}` yet; {available} {verb} available",
            quote_untrusted(text)
        );
        let finding = SpecFinding::new(node.span, "no-driver", message);
        return Box::new(SpecFinding { hint: meant, ..finding });
    }
    let mut finding = unexpected("unknown-value", shape, node, name);
    finding.hint = meant;
    finding
}

fn hint(shape: &Shape, node: &Node<'_>) -> Option<String> {
    let YamlContent::Scalar { text, .. } = &node.content else { return None };
    if node.target.is_some() {
        return None;
    }
    match (&shape.rule, node.scalar()?) {
        (Rule::Boolean, Scalar::String(word)) => {
            let truth = match word.to_ascii_lowercase().as_str() {
                "yes" | "on" | "y" | "true" => true,
                "no" | "off" | "n" | "false" => false,
                _ => return None,
            };
            Some(format!("YAML 1.2 has only true and false; write {truth} without quotes"))
        }
        (Rule::Text { pattern, .. }, Scalar::Integer(_) | Scalar::Float | Scalar::Bool(_))
            if pattern.as_ref().is_none_or(|pattern| pattern.is_match(text)) =>
        {
            Some(format!("put it in quotes: \"{}\"", quote_untrusted(text)))
        }
        (Rule::Integer { .. }, Scalar::String(word)) if word.parse::<i64>().is_ok() => {
            Some(format!("write {word} without quotes"))
        }
        _ => None,
    }
}

/// Returns the name that a misspelt one was probably meant to be.
pub fn nearest<'a>(word: &str, names: impl Iterator<Item = &'a str>) -> Option<&'a str> {
    // No name is close to a longer word, and comparing takes quadratic time.
    const LONGEST: usize = 64;
    if word.len() > LONGEST {
        return None;
    }
    let lower = word.to_ascii_lowercase();
    let score = |name: &str| strsim::damerau_levenshtein(&lower, &name.to_ascii_lowercase());
    // A third of the letters may be wrong, as in rustc's suggestions.
    names
        .map(|name| (score(name), name))
        .filter(|(d, name)| *d <= name.len().max(3) / 3)
        .min()
        .map(|(_, n)| n)
}
