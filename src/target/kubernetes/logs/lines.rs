//! The lines of one log.

use std::pin::Pin;
use std::sync::Arc;

use futures_util::io::{AsyncBufRead, AsyncBufReadExt as _};
use jiff::Timestamp;

use super::super::budget::Budget;
use crate::names::log_line;

/// The longest line that is shown, in characters. What comes after that is left out.
const MAX_LINE: usize = 16 * 1024;

/// The most bytes of a line that are kept: its time, and characters of up to four bytes.
const MAX_KEPT: usize = 4 * MAX_LINE + 64;

/// A line, escaped, with the time that the kubelet put in front of it.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct ReadLine {
    pub(super) at: Option<Timestamp>,
    pub(super) text: String,
}

pub(super) struct LogLines {
    log: Pin<Box<dyn AsyncBufRead + Send>>,
    budget: Arc<Budget>,
    line: Vec<u8>,
}

impl LogLines {
    pub(super) fn new(log: impl AsyncBufRead + Send + 'static, budget: Arc<Budget>) -> LogLines {
        LogLines { log: Box::pin(log), budget, line: Vec::new() }
    }

    /// The next line; none at the end, or if the connection breaks.
    pub(super) async fn next(&mut self) -> Option<ReadLine> {
        loop {
            let bytes = self.log.fill_buf().await.ok()?;
            if bytes.is_empty() {
                // Without its line break, a line may be half of one: it is read again with the next request.
                return None;
            }
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(bytes.len());
            let room = MAX_KEPT.saturating_sub(self.line.len());
            self.line.extend_from_slice(&bytes[..taken.min(room)]);
            let read = taken + usize::from(end.is_some());
            self.log.as_mut().consume_unpin(read);
            self.budget.pace(read).await;
            if end.is_some() {
                let line = std::mem::take(&mut self.line);
                return Some(parsed(&String::from_utf8_lossy(&line)));
            }
        }
    }
}

fn parsed(line: &str) -> ReadLine {
    let timed = line.split_once(' ').unwrap_or((line, ""));
    match timed.0.parse() {
        Ok(at) => ReadLine { at: Some(at), text: log_line(timed.1.trim_end_matches('\r'), MAX_LINE) },
        Err(_) => ReadLine { at: None, text: log_line(line, MAX_LINE) },
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn lines(log: &'static [u8]) -> Vec<(bool, String)> {
        let mut lines = LogLines::new(log, Arc::default());
        let mut all = Vec::new();
        while let Some(ReadLine { at, text }) = lines.next().await {
            all.push((at.is_some(), text));
        }
        all
    }

    #[tokio::test]
    async fn a_line_is_escaped_and_has_its_time() {
        let log = b"2026-11-23T12:00:00.123456789Z INFO started\n2026-11-23T12:00:01Z \tat a.b.C\r\nno time \x1b[31m\n\xff\nhalf";
        let expected = [
            (true, "INFO started".to_owned()),
            (true, "    at a.b.C".to_owned()),
            (false, "no time \\u{1b}[31m".to_owned()),
            (false, "\u{fffd}".to_owned()),
        ];
        assert_eq!(lines(log).await, expected);
    }

    #[tokio::test]
    async fn a_line_without_end_takes_no_memory_without_end() {
        let mut log = vec![b'x'; 5 * MAX_KEPT];
        log.extend(b"\n2026-11-23T12:00:01Z next\n");
        let found = lines(log.leak()).await;
        assert_eq!(found.len(), 2);
        assert_eq!(found[0].1.chars().count(), MAX_LINE + 1);
        assert!(found[0].1.ends_with('…') && found[1].1 == "next");
    }
}
