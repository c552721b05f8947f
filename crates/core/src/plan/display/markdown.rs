//! The plan as a comment on a pull request, in Markdown that GitHub, GitLab and Gitea render alike.

mod escape;

use super::outline::{OutlineItem, OutlineSection, outline};
use super::parts::summary_sentence;
use super::terminal::{Audience, display};
use crate::plan::{Plan, Summary};
use crate::problem::{Problem, Severity};
use escape::{code, text};

/// The longest comment, in bytes. GitHub takes 65,536 characters, the others more.
const MAX: usize = 65_000;
/// The part of it that problems may take, in bytes.
const MAX_PROBLEMS: usize = 16_000;
/// The part of it that changes may take, in bytes.
const MAX_CHANGES: usize = 32_000;
/// The width of the folded text, in columns.
const WIDTH: usize = 100;

/// Formats a plan with its problems as Markdown of at most 65,000 bytes. If it is too long, the details are
/// cut first, and a note says so. `tree` is the spec tree as the user names it in commands.
///
/// Text from users is never interpreted as Markdown or HTML, and triggers no notifications.
pub fn markdown(plan: &Plan, tree: &str) -> String {
    let mut page = format!("### Streamfleet: {}\n\n", title(plan.summary));
    page.push_str(&origin(plan));
    let problems = plan.problems.iter().map(problem).collect();
    page.push_str(&section("\n#### Problems\n\n", problems, "more problems", MAX_PROBLEMS));
    let parts = outline(plan, tree, false).sections;
    let changes = parts.iter().flat_map(blocks).collect();
    page.push_str(&section("", changes, "more lines of this list", MAX_CHANGES));
    if plan.changes().next().is_some() {
        page.push_str(&details(plan, tree, MAX.saturating_sub(page.len())));
    }
    page
}

/// Summarizes the plan. Errors come first, since they matter most in a proposal.
fn title(summary: Summary) -> String {
    let Summary { create, change, delete, waiting, errors, .. } = summary;
    let told = summary_sentence(summary);
    match errors {
        _ if create + change + delete + waiting == 0 => told,
        0 => told,
        1 => format!("1 error. {told}"),
        errors => format!("{errors} errors. {told}"),
    }
}

fn origin(plan: &Plan) -> String {
    let of = plan.inputs.commit.as_ref();
    let of = of.map(|commit| {
        let edited = if commit.is_edited { ", with uncommitted changes" } else { "" };
        format!(" of commit {} by {}{edited}", code(&commit.id), text(&commit.author))
    });
    format!("Plan {}{}\n", code(&plan.id), of.unwrap_or_default())
}

fn section(title: &str, blocks: Vec<String>, what: &str, most: usize) -> String {
    if blocks.is_empty() {
        return String::new();
    }
    let mut section = title.to_owned();
    let count = blocks.len();
    for (index, block) in blocks.into_iter().enumerate() {
        if section.len() + block.len() > most {
            section.push_str(&format!("\n… and {} {what}, which were left out.\n", count - index));
            break;
        }
        section.push_str(&block);
    }
    section
}

fn problem(problem: &Problem) -> String {
    let severity = match problem.severity {
        Severity::Error => "error",
        Severity::Warning => "warning",
    };
    let place = problem.location.as_ref().map(|at| match at.line {
        0 => format!("{}: ", code(at.path.as_str())),
        line => format!("{}: ", code(&format!("{}:{line}:{}", at.path, at.column))),
    });
    let mut block = format!("- **{severity}** {}{}\n", place.unwrap_or_default(), text(&problem.message));
    let quoted = problem.location.as_ref().map(|at| at.text.trim()).filter(|line| !line.is_empty());
    block.extend(quoted.map(|line| format!("  - {}\n", code(line))));
    block.extend(problem.hint.as_ref().map(|hint| format!("  - help: {}\n", text(hint))));
    block
}

/// The heading of an organization or a fleet, and one block for each of its lines and changes.
fn blocks(part: &OutlineSection) -> impl Iterator<Item = String> {
    let OutlineSection { noun, name, state, gauges, lines, items, .. } = part;
    let gauges = gauges.join(", ");
    let rest: Vec<&str> = [state.as_str(), &gauges].into_iter().filter(|text| !text.is_empty()).collect();
    let title = heading(&format!("{noun} {name}"), &rest.join("; "));
    let lines = lines.iter().map(|line| format!("- {}\n", text(line)));
    [title].into_iter().chain(lines).chain(items.iter().map(change)).collect::<Vec<_>>().into_iter()
}

fn heading(name: &str, rest: &str) -> String {
    format!("\n#### {}\n\n{}\n\n", text(name), text(rest))
}

fn change(change: &OutlineItem) -> String {
    let OutlineItem { action, noun, name, place, fields, waiting, ways_out, effects, approval, .. } = change;
    let place = if place.is_empty() { String::new() } else { format!(" ({})", code(place)) };
    let mut block = format!("- **{action}** {noun} {}{place}\n", code(name));
    let mut item = |line: String| block.push_str(&format!("  - {line}\n"));
    fields.iter().for_each(|field| item(code(field)));
    waiting.iter().chain(ways_out).for_each(|line| item(text(line)));
    // Approvals are for a plan of the applied specs, and a proposal isn't applied yet.
    if approval.is_some() {
        item("the approval can be given once this is merged".to_owned());
    }
    effects.iter().for_each(|effect| item(text(effect)));
    block
}

fn details(plan: &Plan, tree: &str, room: usize) -> String {
    let all = display(plan, Audience { color: false, width: WIDTH, tree });
    let lines: Vec<String> = all.lines().map(with_mark_first).collect();
    let fence = escape::fence(&all);
    let folded = |kept: usize| {
        let cut = match lines.len() - kept {
            0 => String::new(),
            more => {
                let all = code(&format!("streamfleet plan {tree}"));
                format!("\n{more} lines were left out; {all} prints them.\n")
            }
        };
        let lines: String = lines[..kept].iter().map(|line| format!("{line}\n")).collect();
        let title = "<details>\n<summary>The full plan, with changed lines</summary>";
        format!("\n{title}\n\n{fence}diff\n{lines}{fence}\n\n</details>\n{cut}")
    };
    let whole = folded(lines.len());
    if whole.len() <= room {
        return whole;
    }
    let mut left = room.saturating_sub(folded(0).len());
    let fits = |line: &&String| {
        let rest = left.checked_sub(line.len() + 1);
        left = rest.unwrap_or_default();
        rest.is_some()
    };
    let kept = lines.iter().take_while(fits).count();
    folded(kept)
}

/// Moves a diff mark that is indented by at most eight columns to the start of the line, for colouring.
fn with_mark_first(line: &str) -> String {
    const DEEPEST: usize = 8;
    let rest = line.trim_start_matches(' ');
    let indent = line.len() - rest.len();
    match rest.as_bytes() {
        [mark @ (b'+' | b'-' | b'!'), b' ', ..] if indent <= DEEPEST => {
            format!("{}{} {}", char::from(*mark), " ".repeat(indent), &rest[2..])
        }
        _ => line.to_owned(),
    }
}
