//! Edits of block-style lists. Comments stay with the item that they are about.

use serde_json::Value;

use super::{DocumentEdits, EditRefusal, FieldOrder, ValuePosition, keeps_breaks};
use crate::spec::edit::align::{Step, align, is_same_item};
use crate::spec::edit::refusal::RefusalReason;
use crate::spec::edit::write::IndentStyle;
use crate::spec::yaml::Node;

impl DocumentEdits<'_> {
    pub(super) fn sequence(
        &mut self,
        items: &[Node<'_>],
        old: &[Value],
        new: &[Value],
        from: usize,
        order: &FieldOrder,
    ) -> Result<(), EditRefusal> {
        let dashes = self.source.dashes(items, from)?;
        let Some(first) = dashes.first().copied() else { return Ok(()) };
        let column = self.source.column(first);
        let mut ends = Vec::with_capacity(items.len());
        for (item, dash) in items.iter().zip(&dashes) {
            let end = self.source.end(item, dash + 1)?;
            ends.push(self.with_deeper_comments(end, column));
        }
        let steps = align(old, new);
        let steps = match self.items_apart {
            true => self.apart(steps, (old, new), |index| (dashes[index], ends[index]), column),
            false => steps,
        };
        let moves = steps.iter().any(|step| !matches!(step, Step::Keep(..)));
        let line = self.source.line_start(first);
        let shares_line = !self.source.slice(line, first).trim_matches(' ').is_empty();
        if moves && shares_line {
            let lines = first..ends.last().copied().unwrap_or(first);
            if self.source.slice(lines.start, lines.end).contains('#') {
                return Err(self.source.refuse(first, RefusalReason::Unusual));
            }
            // Its first item follows the dash of another list, so it has no line of its own to remove or move.
            let line_end = self.source.line_end(first);
            let text = IndentStyle { line_end, ..self.house }.items(new, column, order);
            self.edit(lines, text.trim_start_matches(' '));
            return Ok(());
        }
        let above = |index: usize| match index {
            0 => from,
            index => ends[index - 1],
        };
        let starts: Vec<usize> =
            (0..items.len()).map(|index| self.with_comments(dashes[index], above(index), column)).collect();
        // An item that is removed here and inserted there is the same one, and takes its comments along.
        let mut moved: Vec<usize> = steps.iter().filter_map(Step::removed).collect();
        let is_movable = |index: &usize| {
            let text = self.source.slice(starts[*index], ends[*index]);
            self.items_apart && !text.contains(['&', '*']) && !keeps_breaks(&items[*index])
        };
        moved.retain(is_movable);
        let (mut at, mut above) = (None, None);
        for step in steps {
            match step {
                Step::Keep(i, j) => {
                    let place = ValuePosition { from: dashes[i] + 1, column, is_item: true };
                    self.value(&items[i], &new[j], place, order)?;
                    (at, above) = (Some(i), Some(&items[i]));
                }
                Step::Remove(i) => {
                    self.remove_lines(starts[i], ends[i], above);
                    at = Some(i);
                }
                Step::Insert(j) => {
                    let place = at.map_or(starts[0], |index: usize| ends[index]);
                    let line_end = self.source.line_end(place);
                    let same = moved.iter().position(|index| old[*index] == new[j]);
                    let kin = || moved.iter().position(|index| is_same_item(&old[*index], &new[j]));
                    let fresh = || IndentStyle { line_end, ..self.house }.item(&new[j], column, order);
                    let item = match same.or_else(kin).map(|position| moved.remove(position)) {
                        Some(index) if same.is_some() => {
                            self.source.slice(starts[index], ends[index]).to_owned()
                        }
                        Some(index) => {
                            let line = self.source.line_start(dashes[index]);
                            self.source.slice(starts[index], line).to_owned() + &fresh()
                        }
                        None => fresh(),
                    };
                    let text = if at.is_some() { line_end.to_owned() + &item } else { item + line_end };
                    self.edit(place..place, text);
                }
            }
        }
        Ok(())
    }

    /// Splits the steps that would replace an item that has a comment by a different one, since the comment
    /// is about the old item.
    fn apart(
        &self,
        steps: Vec<Step>,
        (old, new): (&[Value], &[Value]),
        extent: impl Fn(usize) -> (usize, usize),
        column: usize,
    ) -> Vec<Step> {
        let has_comment = |index: usize| {
            let (dash, end) = extent(index);
            let line = self.source.line_start(dash);
            let above = line.checked_sub(1).map(|before| self.source.line_start(before));
            above.is_some_and(|above| self.source.comment_column(above) == Some(column))
                || self.source.slice(dash, end).contains(" #")
        };
        let split = |step: Step| match step {
            Step::Keep(i, j) if !is_same_item(&old[i], &new[j]) && has_comment(i) => {
                vec![Step::Remove(i), Step::Insert(j)]
            }
            step => vec![step],
        };
        steps.into_iter().flat_map(split).collect()
    }
}
