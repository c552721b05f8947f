//! Writes the log to journald with structured fields, so that `journalctl STREAMFLEET_FLEET=acme/prod` finds
//! lines by field.

use std::ffi::OsStr;
use std::io;
use std::os::fd::AsFd;
use std::os::unix::net::UnixDatagram;
use std::path::Path;

use tracing::{Event, Level, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::entry::LogEntry;

const SOCKET: &str = "/run/systemd/journal/socket";

/// The most bytes of a field, so that all fields fit into one datagram. Larger messages would need a memfd,
/// which our log lines don't justify.
const LONGEST: usize = 16 * 1024;

pub struct Journal {
    socket: UnixDatagram,
}

impl Journal {
    /// `None` unless standard error is connected to journald. There, the same lines would appear without
    /// their fields.
    pub fn of_service() -> Option<Journal> {
        let stream = std::env::var_os("JOURNAL_STREAM")?;
        if !is_stream(&stream, io::stderr()) {
            return None;
        }
        Journal::at(Path::new(SOCKET)).ok()
    }

    fn at(path: &Path) -> io::Result<Journal> {
        let socket = UnixDatagram::unbound()?;
        socket.connect(path)?;
        Ok(Journal { socket })
    }
}

/// Marks every line as an error where standard error of a service leads to journald, which takes lines without a
/// mark for information.
pub fn as_errors(text: String) -> String {
    let leads_there =
        std::env::var_os("JOURNAL_STREAM").is_some_and(|stream| is_stream(&stream, io::stderr()));
    if leads_there { marked(&text, Level::ERROR) } else { text }
}

/// The form that sd-daemon(3) describes.
fn marked(text: &str, level: Level) -> String {
    text.lines().map(|line| format!("<{}>{line}\n", priority(level))).collect()
}

/// Whether a file is the stream that `JOURNAL_STREAM` names by device and inode. The variable is inherited
/// even by a process that is started with another standard error.
fn is_stream(stream: &OsStr, file: impl AsFd) -> bool {
    let named = stream.to_str().and_then(|stream| stream.split_once(':'));
    let named = named.and_then(|(device, inode)| Some((device.parse().ok()?, inode.parse().ok()?)));
    named.is_some() && rustix::fs::fstat(file).ok().map(|found| (found.st_dev, found.st_ino)) == named
}

impl<S: Subscriber> Layer<S> for Journal {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = LogEntry::default();
        event.record(&mut entry);
        let datagram = datagram(&entry, *event.metadata().level(), event.metadata().target());
        if let Err(error) = self.socket.send(&datagram) {
            // Standard error reaches the journal too; the number is the priority.
            eprintln!("<4>cannot write to journald: {error}");
            eprintln!("<{}>{}", priority(*event.metadata().level()), entry.line(false));
        }
    }
}

/// An event in journald's native protocol.
fn datagram(entry: &LogEntry, level: Level, target: &str) -> Vec<u8> {
    let mut bytes = Vec::new();
    put(&mut bytes, "MESSAGE", &entry.line(false));
    put(&mut bytes, "PRIORITY", priority(level));
    put(&mut bytes, "SYSLOG_IDENTIFIER", "streamfleet");
    put(&mut bytes, "STREAMFLEET_TARGET", target);
    for (name, value) in &entry.fields {
        let name = name.to_ascii_uppercase().replace(|c: char| !c.is_ascii_alphanumeric(), "_");
        put(&mut bytes, &format!("STREAMFLEET_{name}"), value.as_str());
    }
    bytes
}

/// A field as its name, its length in 64 bits and its value, so that the value may contain line breaks.
fn put(bytes: &mut Vec<u8>, name: &str, value: &str) {
    let value = &value[..value.floor_char_boundary(LONGEST)];
    bytes.extend_from_slice(name.as_bytes());
    bytes.push(b'\n');
    bytes.extend_from_slice(&(value.len() as u64).to_le_bytes());
    bytes.extend_from_slice(value.as_bytes());
    bytes.push(b'\n');
}

/// The priority of syslog(3).
fn priority(level: Level) -> &'static str {
    match level {
        Level::ERROR => "3",
        Level::WARN => "4",
        Level::INFO => "6",
        Level::DEBUG | Level::TRACE => "7",
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::MetadataExt as _;

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    fn fields(mut bytes: &[u8]) -> Vec<(String, String)> {
        let mut fields = Vec::new();
        while let Some(end) = bytes.iter().position(|&byte| byte == b'\n') {
            let (name, rest) = (bytes[..end].to_vec(), &bytes[end + 1..]);
            let length = usize::try_from(u64::from_le_bytes(rest[..8].try_into().unwrap())).unwrap();
            let value = rest[8..8 + length].to_vec();
            assert_eq!(rest[8 + length], b'\n');
            bytes = &rest[9 + length..];
            fields.push((String::from_utf8(name).unwrap(), String::from_utf8(value).unwrap()));
        }
        assert!(bytes.is_empty());
        fields
    }

    #[test]
    fn every_line_of_a_text_has_its_level() {
        assert_eq!(marked("error: a\n  help: b\n", Level::ERROR), "<3>error: a\n<3>  help: b\n");
    }

    #[test]
    fn a_line_has_its_words_its_level_and_its_fields() {
        let dir = tempfile::tempdir().unwrap();
        let path = dir.path().join("journal");
        let journald = UnixDatagram::bind(&path).unwrap();
        let log = tracing_subscriber::registry().with(Journal::at(&path).unwrap());
        let long = "ä".repeat(LONGEST);
        tracing::subscriber::with_default(log, || {
            tracing::warn!(fleet = "acme/eu", resource = %"cluster acme/a", plan = 7, author = None::<&str>, "waits: a\nb");
            tracing::info!(a = long, b = long, c = long);
        });
        let mut bytes = [0; 1 << 17];
        let length = journald.recv(&mut bytes).unwrap();
        let heard = fields(&bytes[..length]);
        let expected = [
            ("MESSAGE", "waits: a\\nb fleet=\"acme/eu\" resource=\"cluster acme/a\" plan=7"),
            ("PRIORITY", "4"),
            ("SYSLOG_IDENTIFIER", "streamfleet"),
            ("STREAMFLEET_TARGET", "streamfleet::vitals::journal::tests"),
            ("STREAMFLEET_FLEET", "acme/eu"),
            ("STREAMFLEET_RESOURCE", "cluster acme/a"),
            ("STREAMFLEET_PLAN", "7"),
        ];
        assert_eq!(heard, expected.map(|(name, value)| (name.to_owned(), value.to_owned())));
        let length = journald.recv(&mut bytes).unwrap();
        let message = &fields(&bytes[..length])[0].1;
        assert!((LONGEST - 3..=LONGEST).contains(&message.len()), "{}", message.len());
    }

    #[test]
    fn only_the_stream_that_is_named_leads_to_journald() {
        let file = tempfile::tempfile().unwrap();
        let found = file.metadata().unwrap();
        let is = |text: &str| is_stream(OsStr::new(text), &file);
        assert!(is(&format!("{}:{}", found.dev(), found.ino())));
        for other in [format!("{}:{}", found.dev(), found.ino() + 1), "8:1:2".to_owned(), String::new()] {
            assert!(!is(&other), "{other}");
        }
    }
}
