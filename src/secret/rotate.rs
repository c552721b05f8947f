//! Seals the blocks of a spec file again, to the newest identity, changing nothing else of the file.

use std::ops::Range;

use granit_parser::{Event, Parser, ScalarStyle, Span};

use super::envelope::{self, NotOpened};
use super::{Keyring, SecretError};
use crate::names::SpecPath;

#[cfg(test)]
mod tests;

/// Why a block was not sealed again.
pub(super) enum NotRenewed {
    /// It can't be opened.
    NotOpened(NotOpened),
    /// It can't be sealed.
    NotSealed(SecretError),
}

impl From<NotOpened> for NotRenewed {
    fn from(error: NotOpened) -> Self {
        NotRenewed::NotOpened(error)
    }
}

impl From<SecretError> for NotRenewed {
    fn from(error: SecretError) -> Self {
        NotRenewed::NotSealed(error)
    }
}

/// Seals every `encrypted` block of a file again to the newest identity, and gives the new text with the number of
/// blocks that changed. Blocks that are sealed to it already stay as they are; comments, order and quoting stay.
///
/// What a block is for is inside of it and is kept.
///
/// # Errors
/// When the file is not YAML, a block can't be opened or is written in a way that can't be edited safely. The file is
/// as before then: it is changed as a whole or not at all.
pub fn rotate_text(text: &str, file: &SpecPath, keyring: &Keyring) -> Result<(String, usize), SecretError> {
    let before = parse(text, file)?;
    let mut edits = Vec::new();
    for index in sealed_scalars(&before) {
        edits.extend(renewed(&before, index, text, file, keyring)?);
    }
    let after = apply(text, &edits);
    require_only_these_changed(&before, &edits, &after, file)?;
    Ok((after, edits.len()))
}

/// A change of one block.
struct Edit {
    /// Which event of the file it is.
    index: usize,
    /// The new block.
    armour: String,
    /// The bytes of the file that give way.
    range: Range<usize>,
    /// What comes in their place.
    replacement: String,
}

type Events<'a> = Vec<(Event<'a>, Span)>;

fn parse<'a>(text: &'a str, file: &SpecPath) -> Result<Events<'a>, SecretError> {
    Parser::new_from_str(text).collect::<Result<_, _>>().map_err(|error| {
        let line = error.marker().line();
        failed(file, line, "it is not YAML", "mend the file first: `streamfleet plan` shows what is wrong")
    })
}

/// The values of keys named `encrypted` that look like age armour, wherever they are.
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

/// The edit that seals a block again; none where it is sealed to the newest identity already.
fn renewed(
    events: &Events<'_>,
    index: usize,
    text: &str,
    file: &SpecPath,
    keyring: &Keyring,
) -> Result<Option<Edit>, SecretError> {
    let (event, span) = &events[index];
    let Some((block, style)) = event.scalar() else { return Ok(None) };
    let line = span.start.line();
    let armour = match keyring.renew(block) {
        Ok(Some(armour)) => armour,
        Ok(None) => return Ok(None),
        Err(NotRenewed::NotSealed(error)) => return Err(error),
        Err(NotRenewed::NotOpened(NotOpened::NoIdentity)) => {
            return Err(failed(
                file,
                line,
                "no identity here opens the block",
                "run this where the identity is, or seal the value again with `streamfleet secret encrypt`",
            ));
        }
        Err(NotRenewed::NotOpened(NotOpened::Damaged(why))) => {
            let hint = "seal the value again with `streamfleet secret encrypt`";
            return Err(failed(file, line, &format!("the block is damaged: {why}"), hint));
        }
        // Renewing never asks what a block is for.
        Err(NotRenewed::NotOpened(NotOpened::Elsewhere)) => return Ok(None),
    };
    let edit = span.byte_range().and_then(|range| match style {
        ScalarStyle::Literal => literal_edit(text, range, &armour),
        ScalarStyle::Folded => None,
        _ => Some((range, format!("\"{}\"", armour.trim_end().replace('\n', "\\n") + "\\n"))),
    });
    let (range, replacement) = edit.ok_or_else(|| {
        failed(file, line, "the block is written in an unusual way", "write it as `encrypted: |`")
    })?;
    Ok(Some(Edit { index, armour, range, replacement }))
}

/// The lines of a literal block scalar, with the indentation and line ends that they have.
fn literal_edit(text: &str, span: Range<usize>, armour: &str) -> Option<(Range<usize>, String)> {
    let begin = span.start + text.get(span.clone())?.find(envelope::BEGIN)?;
    let end = span.start + text.get(span)?.find(envelope::END)? + envelope::END.len();
    let line_start = text.get(..begin)?.rfind('\n')? + 1;
    let indentation = text.get(line_start..begin)?;
    let line_end = if text.get(begin..end)?.contains("\r\n") { "\r\n" } else { "\n" };
    let lines: Vec<&str> = armour.trim_end().lines().collect();
    Some((begin..end, lines.join(&format!("{line_end}{indentation}"))))
}

fn apply(text: &str, edits: &[Edit]) -> String {
    let mut after = String::with_capacity(text.len());
    let mut position = 0;
    for edit in edits {
        after.push_str(&text[position..edit.range.start]);
        after.push_str(&edit.replacement);
        position = edit.range.end;
    }
    after.push_str(&text[position..]);
    after
}

/// The net under the edit: parsed again, the file says what it said but for the new blocks.
fn require_only_these_changed(
    before: &Events<'_>,
    edits: &[Edit],
    after: &str,
    file: &SpecPath,
) -> Result<(), SecretError> {
    let unsafe_edit = || {
        failed(file, 1, "the edit would have changed more than the blocks", "write each as `encrypted: |`")
    };
    let parsed = parse(after, file).map_err(|_| unsafe_edit())?;
    let same = |index: usize| match edits.iter().find(|edit| edit.index == index) {
        Some(edit) => {
            parsed[index].0.scalar().is_some_and(|(text, _)| text.trim_end() == edit.armour.trim_end())
        }
        None => before[index].0 == parsed[index].0,
    };
    let all_same = parsed.len() == before.len() && (0..parsed.len()).all(same);
    if all_same { Ok(()) } else { Err(unsafe_edit()) }
}

fn failed(file: &SpecPath, line: usize, why: &str, hint: &str) -> SecretError {
    SecretError::new(
        "rotate-failed",
        format!("the secrets of {file} can't be sealed again: {why} (line {line})"),
        hint,
    )
}
