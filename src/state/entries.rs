//! Records as lines of an append-only file. A damaged line fails the whole read; a last line cut short by a
//! crash is repaired.

use camino::{Utf8Path, Utf8PathBuf};
use serde::Serialize;
use serde::de::{DeserializeOwned, Error as _};

use super::lines::{AppendFile, whole_length};
use super::records::{LineVersion, RegistryLine, VERSION, with_version};
use super::{StateError, folder};
use crate::names::Digest;

/// A record that is stored as a line.
pub(super) trait Record: Serialize + DeserializeOwned {
    /// Whether each line has a checksum, so that a damaged line is never read as another record.
    const IS_SUMMED: bool = false;
}

impl Record for RegistryLine {
    const IS_SUMMED: bool = true;
}

/// The text before and after the checksum at the beginning of a line.
const SUM: (&str, &str) = ("{\"sum\":\"", "\",");

/// The length of the checksum: this many characters of the digest.
const SUM_LENGTH: usize = 16;

/// A record as a line.
pub(super) fn line<T: Record>(record: &T) -> String {
    let line = with_version(record);
    if T::IS_SUMMED { summed(&line) } else { line }
}

/// Replaces a file by one with these records alone.
pub(super) fn replace<T: Record>(
    path: &Utf8Path,
    records: impl IntoIterator<Item = T>,
) -> Result<(), StateError> {
    let text: String = records.into_iter().map(|record| line(&record) + "\n").collect();
    folder::replace_file(path, text.as_bytes())
}

/// Adds to a JSON object, as its first field, the checksum of the rest of the line.
pub(super) fn summed(line: &str) -> String {
    let rest = line.strip_prefix('{').unwrap_or(line);
    format!("{}{}{}{rest}", SUM.0, sum(rest), SUM.1)
}

fn sum(rest: &str) -> String {
    Digest::of(rest).as_str().chars().take(SUM_LENGTH).collect()
}

/// Whether the checksum of a line is right.
fn is_whole(line: &[u8]) -> bool {
    let parts = || {
        let line = str::from_utf8(line).ok()?.strip_prefix(SUM.0)?;
        let (sum, rest) = line.split_at_checked(SUM_LENGTH)?;
        Some((sum, rest.strip_prefix(SUM.1)?))
    };
    parts().is_some_and(|(found, rest)| found == sum(rest))
}

/// Passes each record to `take` and returns their number. The last record may lack its line break. Any other
/// incomplete end had not taken effect and is ignored.
pub(super) fn read<T: Record>(
    path: &Utf8Path,
    bytes: &[u8],
    mut take: impl FnMut(T),
) -> Result<usize, StateError> {
    let whole = &bytes[..whole_length(bytes)];
    let mut count = 0;
    for (index, line) in whole.split(|&byte| byte == b'\n').enumerate() {
        if line.is_empty() {
            continue;
        }
        take(parse(line).map_err(|error| error.at(path, index + 1))?);
        count += 1;
    }
    if let Ok(entry) = parse(&bytes[whole.len()..]) {
        take(entry);
        count += 1;
    }
    Ok(count)
}

/// Repairs the end of a file. A record that lacks only its line break gets it; anything less is cut off,
/// which the returned warning says.
pub(super) fn repair<T: Record>(lines: &mut AppendFile, bytes: &[u8]) -> Result<Option<String>, StateError> {
    let whole = whole_length(bytes);
    let rest = &bytes[whole..];
    if rest.is_empty() {
        return Ok(None);
    }
    lines.truncate(whole as u64)?;
    if let (Ok(_), Ok(line)) = (parse::<T>(rest), str::from_utf8(rest)) {
        lines.append(&[line.to_owned()])?;
        return Ok(None);
    }
    let path = lines.path();
    Ok(Some(format!(
        "the last line of `{path}` was cut short by a crash and was dropped; it had not taken effect"
    )))
}

/// The bytes up to the end of the last complete record.
pub(super) fn whole<T: Record>(mut bytes: Vec<u8>) -> Vec<u8> {
    let whole = whole_length(&bytes);
    match parse::<T>(&bytes[whole..]) {
        Ok(_) => bytes.push(b'\n'),
        Err(_) => bytes.truncate(whole),
    }
    bytes
}

enum LineError {
    Newer(u32),
    Damaged(serde_json::Error),
}

impl LineError {
    fn at(self, path: &Utf8Path, line: usize) -> StateError {
        let path: Utf8PathBuf = path.to_owned();
        match self {
            LineError::Newer(found) => StateError::Newer { path, line, found, known: VERSION },
            LineError::Damaged(error) => {
                // The parser sees one line, so its own "line 1" would contradict ours.
                let text = error.to_string();
                let reason = text.split(" at line ").next().unwrap_or(&text).to_owned();
                StateError::Damaged { path, line, reason }
            }
        }
    }
}

fn parse<T: Record>(line: &[u8]) -> Result<T, LineError> {
    let LineVersion { v } = serde_json::from_slice(line).map_err(LineError::Damaged)?;
    if v > VERSION {
        return Err(LineError::Newer(v));
    }
    if T::IS_SUMMED && !is_whole(line) {
        return Err(LineError::Damaged(serde_json::Error::custom("its checksum doesn't match")));
    }
    serde_json::from_slice(line).map_err(LineError::Damaged)
}
