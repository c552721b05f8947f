//! Formats problems for people: file, line, the line itself, and the remedy.

use annotate_snippets::renderer::DecorStyle;
use annotate_snippets::{AnnotationKind, Group, Level, Origin, Renderer, Snippet};

use super::{Location, Problem, Severity};
use crate::problem::plain::harmless;

/// Formats problems in the order of files and lines, separated by blank lines. Untrusted text can't command
/// the terminal.
pub fn render(problems: &[Problem], color: bool) -> String {
    let mut sorted: Vec<&Problem> = problems.iter().collect();
    sorted.sort_by_key(|problem| (place(problem), *problem));
    let renderer = if color { Renderer::styled() } else { Renderer::plain() };
    let renderer = renderer.decor_style(DecorStyle::Ascii);
    let mut text = String::new();
    for (index, problem) in sorted.into_iter().enumerate() {
        if index > 0 {
            text.push('\n');
        }
        text.push_str(renderer.render(&[group(problem)]).trim_end());
        text.push('\n');
    }
    text
}

/// Problems without a file come last.
fn place(problem: &Problem) -> (bool, Option<(&str, u32, u32)>) {
    let place = problem.location.as_ref().map(|at| (at.path.as_str(), at.line, at.column));
    (place.is_none(), place)
}

fn group(problem: &Problem) -> Group<'static> {
    let level = match problem.severity {
        Severity::Error => Level::ERROR,
        Severity::Warning => Level::WARNING,
    };
    let mut group = Group::with_title(level.primary_title(line(&problem.message)));
    if let Some(location) = &problem.location {
        group = quote(group, location, &problem.label, AnnotationKind::Primary);
    }
    for (location, label) in &problem.related {
        group = quote(group, location, label, AnnotationKind::Context);
    }
    match &problem.hint {
        Some(hint) => group.element(Level::HELP.message(lines(hint))),
        None => group,
    }
}

/// Adds a position with its line, or without it if the line can't be shown.
fn quote(group: Group<'static>, at: &Location, label: &str, kind: AnnotationKind) -> Group<'static> {
    let path = line(at.path.as_str());
    let text = line_with_tabs(&at.text);
    let characters = || text.char_indices().map(|(byte, _)| byte).chain([text.len()]);
    let from = characters().nth((at.column as usize).saturating_sub(1));
    let Some(from) = from.filter(|_| at.line > 0 && !text.trim().is_empty()) else {
        let origin = Origin::path(path);
        return group.element(match at.line {
            0 => origin,
            number => origin.line(number as usize).char_column(at.column as usize),
        });
    };
    let last = (at.column as usize).saturating_sub(1) + at.width.max(1) as usize;
    let to = characters().nth(last).unwrap_or(text.len());
    let mut annotation = kind.span(from..to);
    if !label.is_empty() {
        annotation = annotation.label(line(label));
    }
    group.element(Snippet::source(text).line_start(at.line as usize).path(path).annotation(annotation))
}

/// For a single line.
fn line(text: &str) -> String {
    text.chars().map(harmless).collect()
}

fn line_with_tabs(text: &str) -> String {
    text.chars().map(|c| if c == '\t' { c } else { harmless(c) }).collect()
}

/// Keeps line breaks.
fn lines(text: &str) -> String {
    text.chars().map(|c| if c == '\n' { c } else { harmless(c) }).collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn at(line: u32, column: u32, width: u32, text: &str) -> Location {
        Location { path: "acme/orders.yaml".parse().unwrap(), line, column, width, text: text.into() }
    }

    fn unknown_key() -> Problem {
        Problem::error("unknown-key", "unknown key `kafka_unit`")
            .at(at(8, 1, 10, "kafka_unit: 2"), "not a field of Cluster")
            .hint("did you mean `kafka_units`?")
    }

    #[test]
    fn a_problem_shows_its_line_and_what_to_do() {
        insta::assert_snapshot!(render(&[unknown_key()], false), @r"
        error: unknown key `kafka_unit`
         --> acme/orders.yaml:8:1
          |
        8 | kafka_unit: 2
          | ^^^^^^^^^^ not a field of Cluster
          |
          = help: did you mean `kafka_units`?
        ");
    }

    #[test]
    fn problems_are_sorted_by_place_and_those_without_one_come_last() {
        let earlier = Problem::warning("w", "worth knowing")
            .at(at(2, 4, 3, "größe: x"), "")
            .related(at(12, 1, 4, "日本: y"), "wide characters");
        let nowhere = Problem::error("n", "nowhere");
        let whole = Problem::error("f", "the file is too large")
            .at(Location::file("acme/a.yaml".parse().unwrap()), "");
        insta::assert_snapshot!(render(&[nowhere, unknown_key(), earlier, whole], false), @r"
        error: the file is too large
        --> acme/a.yaml

        warning: worth knowing
          --> acme/orders.yaml:2:4
           |
         2 | größe: x
           |    ^^^
           |
          ::: acme/orders.yaml:12:1
           |
        12 | 日本: y
           | ------ wide characters

        error: unknown key `kafka_unit`
         --> acme/orders.yaml:8:1
          |
        8 | kafka_unit: 2
          | ^^^^^^^^^^ not a field of Cluster
          |
          = help: did you mean `kafka_units`?

        error: nowhere
        ");
    }

    #[test]
    fn columns_are_right_behind_wide_characters_and_tabs() {
        let wide = Problem::error("w", "wide").at(at(1, 5, 1, "日本: x"), "here");
        let tab = Problem::error("t", "tab").at(at(2, 2, 1, "\tx"), "here");
        insta::assert_snapshot!(render(&[wide, tab], false), @r"
        error: wide
         --> acme/orders.yaml:1:5
          |
        1 | 日本: x
          |       ^ here

        error: tab
         --> acme/orders.yaml:2:2
          |
        2 |     x
          |     ^ here
        ");
    }

    #[test]
    fn what_would_command_a_terminal_is_made_harmless() {
        let evil = "\u{1b}[31mred\u{7}\u{202e}";
        let problem = Problem::error("e", evil).at(at(1, 1, 3, evil), evil).hint(evil);
        let text = render(&[problem], false);
        assert!(text.contains("[31mred") && !text.contains(['\u{1b}', '\u{7}', '\u{202e}']), "{text:?}");
    }

    #[test]
    fn places_outside_of_their_line_are_shown_without_it() {
        let problem = Problem::error("e", "far out").at(at(3, 999, 5, "short"), "here");
        insta::assert_snapshot!(render(&[problem], false), @r"
        error: far out
        --> acme/orders.yaml:3:999
        ");
    }
}
