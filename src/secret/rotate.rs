//! Seals secrets again to the newest identity.

#[cfg(test)]
mod tests;

use super::envelope::{self, NotOpened};
use super::{Keyring, SecretError};
use crate::names::SpecPath;
use crate::spec::edit::{self, EditRefusal, RefusalReason, StringField};

/// Seals every `encrypted` block of a file again to the newest identity. Returns the new text and the number
/// of changed blocks. Blocks that are sealed to that identity already stay as they are, and so do comments,
/// order and quoting. Each block remains bound to its field, which is inside of it.
///
/// # Errors
/// If the file is not YAML, a block can't be opened, or a block is written in a way that can't be edited
/// safely. A file is changed as a whole or not at all.
pub fn rotate_text(text: &str, file: &SpecPath, keyring: &Keyring) -> Result<(String, usize), SecretError> {
    let mut renewed = Vec::new();
    for field in edit::strings(text, "encrypted").map_err(|refusal| not_edited(file, &refusal))? {
        if let Some(block) = renew(&field, file, keyring)? {
            renewed.push((field, block));
        }
    }
    let after = edit::set_strings(text, &renewed).map_err(|refusal| not_edited(file, &refusal))?;
    Ok((after, renewed.len()))
}

/// Seals a block again; none if it is no block, or is sealed to the newest identity already.
fn renew(field: &StringField, file: &SpecPath, keyring: &Keyring) -> Result<Option<String>, SecretError> {
    let block = field.text.trim();
    if !block.starts_with(envelope::BEGIN) {
        return Ok(None);
    }
    let plaintext = keyring.open_old(block).map_err(|error| not_opened(file, field.line, error))?;
    let Some(plaintext) = plaintext else { return Ok(None) };
    if field.is_unusual {
        let why = "the block is written in an unusual form";
        return Err(failed(file, field.line, why, "write it as `encrypted: |`"));
    }
    let armour = keyring.seal_again(&plaintext)?;
    Ok(Some(field.text.replace(block, armour.trim_end())))
}

fn not_edited(file: &SpecPath, refusal: &EditRefusal) -> SecretError {
    let (why, hint) = match refusal.reason {
        RefusalReason::Unreadable { .. } => {
            ("it is not YAML", "fix the file first: `streamfleet plan` shows what is wrong")
        }
        _ => ("the edit would have changed more than the blocks", "write each block as `encrypted: |`"),
    };
    failed(file, refusal.line.max(1), why, hint)
}

fn not_opened(file: &SpecPath, line: u32, error: NotOpened) -> SecretError {
    let seal_anew = "seal the value again with `streamfleet secret encrypt`";
    match error {
        NotOpened::NoIdentity => {
            let hint = format!("run this on a host with the identity, or {seal_anew}");
            failed(file, line, "no identity here opens the block", &hint)
        }
        NotOpened::WrongField => {
            failed(file, line, "the block was sealed for another field or resource", seal_anew)
        }
        NotOpened::Damaged(why) => failed(file, line, &format!("the block is damaged: {why}"), seal_anew),
    }
}

fn failed(file: &SpecPath, line: u32, why: &str, hint: &str) -> SecretError {
    SecretError::new(
        "rotate-failed",
        format!("cannot seal the secrets of {file} again: {why} (line {line})"),
        hint,
    )
}
