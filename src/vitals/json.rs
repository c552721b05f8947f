//! Writes the log as JSON, one object per line, for log collectors.

use std::io::Write;
use std::sync::Mutex;

use jiff::Timestamp;
use serde_json::{Map, Value};
use tracing::{Event, Subscriber};
use tracing_subscriber::Layer;
use tracing_subscriber::layer::Context;

use super::entry::{self, LogEntry};
use crate::parallel::locked;

pub struct JsonLines<W>(Mutex<W>);

impl<W: Write> JsonLines<W> {
    pub fn to(writer: W) -> Self {
        JsonLines(Mutex::new(writer))
    }
}

impl<S: Subscriber, W: Write + Send + 'static> Layer<S> for JsonLines<W> {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let mut entry = LogEntry::default();
        event.record(&mut entry);
        let line = line(entry, Timestamp::now(), event) + "\n";
        // The process continues even if its log can't be written.
        let _ = locked(&self.0).write_all(line.as_bytes());
    }
}

/// One line. The fields of the event are nested, so that they can't collide with those of the line.
fn line(entry: LogEntry, at: Timestamp, event: &Event<'_>) -> String {
    let value = |value: entry::Value| match value {
        entry::Value::Text(text) => Value::String(text),
        entry::Value::Other(text) => serde_json::from_str(&text)
            .ok()
            .filter(|value: &Value| value.is_number() || value.is_boolean())
            .unwrap_or(Value::String(text)),
    };
    let fields: Map<String, Value> =
        entry.fields.into_iter().map(|(name, field)| (name.to_owned(), value(field))).collect();
    let line = serde_json::json!({
        "time": at,
        "level": event.metadata().level().as_str(),
        "target": event.metadata().target(),
        "message": entry.message,
        "fields": fields,
    });
    line.to_string()
}

#[cfg(test)]
mod tests {
    use std::sync::{Arc, PoisonError};

    use tracing_subscriber::layer::SubscriberExt as _;

    use super::*;

    #[derive(Clone, Default)]
    struct Written(Arc<Mutex<Vec<u8>>>);

    impl Write for Written {
        fn write(&mut self, bytes: &[u8]) -> std::io::Result<usize> {
            self.0.lock().unwrap_or_else(PoisonError::into_inner).write(bytes)
        }

        fn flush(&mut self) -> std::io::Result<()> {
            Ok(())
        }
    }

    #[test]
    fn a_line_is_an_object_with_its_words_its_level_its_time_and_its_fields() {
        let written = Written::default();
        let log = tracing_subscriber::registry().with(JsonLines::to(written.clone()));
        tracing::subscriber::with_default(log, || {
            tracing::warn!(fleet = "acme/eu", resource = %"cluster acme/a", line = 7, author = None::<&str>, "waits: a\nb");
            tracing::info!(message = "done", level = "true");
        });
        let bytes = locked(&written.0).clone();
        let lines: Vec<Value> = String::from_utf8(bytes)
            .unwrap()
            .lines()
            .map(|line| serde_json::from_str(line).unwrap())
            .collect();
        assert_eq!(lines.len(), 2);
        assert!(lines[0]["time"].as_str().unwrap().parse::<Timestamp>().is_ok());
        assert_eq!(lines[0]["level"], "WARN");
        assert_eq!(lines[0]["target"], "streamfleet::vitals::json::tests");
        assert_eq!(lines[0]["message"], "waits: a\nb");
        let fields = serde_json::json!({"fleet": "acme/eu", "resource": "cluster acme/a", "line": 7});
        assert_eq!(lines[0]["fields"], fields);
        assert_eq!((&lines[1]["level"], &lines[1]["fields"]["level"]), (&"INFO".into(), &"true".into()));
    }
}
