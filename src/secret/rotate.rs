use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::envelope::{self, NotOpened};
use super::{Keyring, SecretError};
use crate::names::SpecPath;

#[cfg(test)]
mod tests;

/// Seals every `encrypted` block of a file again to the newest identity. Returns the new text and the number
/// of changed blocks. Blocks that are sealed to that identity already stay as they are, and so do comments,
/// order and quoting. Each block remains bound to its field, which is inside of it.
///
/// # Errors
/// If the file is not YAML, a block can't be opened, or a block is written in a way that can't be edited
/// safely. A file is changed as a whole or not at all.
pub fn rotate_text(text: &str, file: &SpecPath, keyring: &Keyring) -> Result<(String, usize), SecretError> {
    let before = parse(text, file)?;
    let mut edits = Vec::new();
    for index in sealed_scalars(&before) {
        edits.extend(renewed(&before, index, text, file, keyring)?);
    }
    apply(text, &edits)
        .filter(|after| parse(after, file).is_ok_and(|after| only_these_changed(&before, &edits, &after)))
        .map(|after| (after, edits.len()))
        .ok_or_else(|| {
            let why = "the edit would have changed more than the blocks";
            failed(file, 1, why, "write each block as `encrypted: |`")
        })
}

struct BlockEdit {
    /// The index of the block's event in the parsed file.
    index: usize,
    armour: String,
    range: Range<usize>,
    replacement: String,
}

type Events<'a> = Vec<(Event<'a>, Span)>;

fn parse<'a>(text: &'a str, file: &SpecPath) -> Result<Events<'a>, SecretError> {
    Parser::new_from_str(text).collect::<Result<_, _>>().map_err(|error| {
        let line = error.marker().line();
        failed(file, line, "it is not YAML", "mend the file first: `streamfleet plan` shows what is wrong")
    })
}

/// Returns the values of keys named `encrypted` that look like age armour, at any depth.
fn sealed_scalars(events: &Events<'_>) -> Vec<usize> {
    let is_node = |(_, (event, _)): &(usize, &(Event<'_>, Span))| event.is_node();
    let nodes: Vec<_> = events.iter().enumerate().filter(is_node).collect();
    let pairs = nodes.windows(2).filter(|pair| {
        let [(_, (key, _)), (_, (value, _))] = pair else { return false };
        let is_armour =
            value.scalar().is_some_and(|(text, _)| text.trim_start().starts_with(envelope::BEGIN));
        is_armour && key.scalar().is_some_and(|(text, _)| text == "encrypted")
    });
    pairs.map(|pair| pair[1].0).collect()
}

/// Returns the edit that seals a block again; none if it is sealed to the newest identity already.
fn renewed(
    events: &Events<'_>,
    index: usize,
    text: &str,
    file: &SpecPath,
    keyring: &Keyring,
) -> Result<Option<BlockEdit>, SecretError> {
    let (event, span) = &events[index];
    let Some((block, style)) = event.scalar() else { return Ok(None) };
    let line = span.start.line();
    let plaintext = keyring.open_old(block).map_err(|error| not_opened(file, line, error))?;
    let Some(plaintext) = plaintext else { return Ok(None) };
    let armour = keyring.seal_again(&plaintext)?;
    let edit = span.byte_range().and_then(|range| match style {
        ScalarStyle::Literal => literal_edit(text, range, &armour),
        ScalarStyle::Folded => None,
        _ => Some((range, format!("\"{}\"", armour.trim_end().replace('\n', "\\n") + "\\n"))),
    });
    let (range, replacement) = edit.ok_or_else(|| {
        failed(file, line, "the block is written in an unusual way", "write it as `encrypted: |`")
    })?;
    Ok(Some(BlockEdit { index, armour, range, replacement }))
}

fn not_opened(file: &SpecPath, line: usize, error: NotOpened) -> SecretError {
    let seal_anew = "seal the value again with `streamfleet secret encrypt`";
    match error {
        NotOpened::NoIdentity => {
            let hint = format!("run this where the identity is, or {seal_anew}");
            failed(file, line, "no identity here opens the block", &hint)
        }
        NotOpened::WrongField => failed(file, line, "the block was sealed for something else", seal_anew),
        NotOpened::Damaged(why) => failed(file, line, &format!("the block is damaged: {why}"), seal_anew),
    }
}

/// Replaces the block in a literal scalar, with the same indentation and line ends.
fn literal_edit(text: &str, span: Range<usize>, armour: &str) -> Option<(Range<usize>, String)> {
    let begin = span.start + text.get(span.clone())?.find(envelope::BEGIN)?;
    let end = span.start + text.get(span)?.find(envelope::END)? + envelope::END.len();
    let line_start = text.get(..begin)?.rfind('\n')? + 1;
    let indentation = text.get(line_start..begin)?;
    let line_end = if text.get(begin..end)?.contains("\r\n") { "\r\n" } else { "\n" };
    let lines: Vec<&str> = armour.trim_end().lines().collect();
    Some((begin..end, lines.join(&format!("{line_end}{indentation}"))))
}

fn apply(text: &str, edits: &[BlockEdit]) -> Option<String> {
    let mut after = String::with_capacity(text.len());
    let mut position = 0;
    for edit in edits {
        after.push_str(text.get(position..edit.range.start)?);
        after.push_str(&edit.replacement);
        position = edit.range.end;
    }
    after.push_str(text.get(position..)?);
    Some(after)
}

/// Checks the edits: the file, parsed again, may differ in the new blocks only.
fn only_these_changed(before: &Events<'_>, edits: &[BlockEdit], after: &Events<'_>) -> bool {
    let same = |index: usize| match edits.iter().find(|edit| edit.index == index) {
        Some(edit) => {
            after[index].0.scalar().is_some_and(|(text, _)| text.trim_end() == edit.armour.trim_end())
        }
        None => before[index].0 == after[index].0,
    };
    before.len() == after.len() && (0..before.len()).all(same)
}

fn failed(file: &SpecPath, line: usize, why: &str, hint: &str) -> SecretError {
    SecretError::new(
        "rotate-failed",
        format!("the secrets of {file} can't be sealed again: {why} (line {line})"),
        hint,
    )
}
