//! The logs of brokers, as text.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio::time::Instant;

use super::pods::{NotRead, NotReadCause, PodsToRead, ReadClusters};
use crate::names::{Kind, ResourceKey};
use crate::record::Audience;
use crate::round::Round;
pub use crate::target::LOG_OVERLAP;
use crate::target::{LOG_GOES_ON, LogEntry, LogError, LogReader, LogRequest};

pub const LOGS: PodsToRead = PodsToRead {
    what: "logs",
    right: "streamfleet role --logs",
    in_folder: "read them where the manifests are applied: kubectl logs",
};

/// A request for the logs of a cluster, or of all clusters of a fleet.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogQuery {
    /// The only broker to read.
    pub broker: Option<u32>,
    /// Only lines of this time or later.
    pub since: Option<Timestamp>,
    /// Go on with what is logged from now on.
    pub follows: bool,
    /// When to end; none to end with the logs.
    pub ends: Option<Instant>,
}

/// Opens the logs of a cluster or a fleet.
///
/// # Errors
/// With the reason, in words for the audience.
pub async fn open(
    round: &Round,
    key: &ResourceKey,
    query: LogQuery,
    audience: Audience,
) -> Result<LogReader, NotRead> {
    let ReadClusters { fleet, target, clusters } = LOGS.of(round, key)?;
    let namespaces: BTreeSet<String> = clusters.iter().map(|cluster| cluster.namespace.clone()).collect();
    let LogQuery { broker, since, follows, ends } = query;
    let name = (key.kind == Kind::Cluster).then(|| key.name.to_string());
    let request = LogRequest { namespaces, cluster: name, broker, since, follows, ends };
    target.logs(request).await.map_err(|error| match error {
        LogError::NoBroker { broker, known } => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            let hint = match known.is_empty() {
                true => "no broker of it runs".to_owned(),
                false => format!("its brokers are {}", known.join(", ")),
            };
            let message = format!("{key} has no broker {broker} that runs");
            NotRead { cause: NotReadCause::Missing, message, hint }
        }
        LogError::TooManyPods { .. } => {
            let hint = "read the logs of one cluster, or of one broker".to_owned();
            let message = format!("cannot read all logs of {key}: {error}");
            NotRead { cause: NotReadCause::TooMany, message, hint }
        }
        LogError::Kubernetes(error) => LOGS.why_not(key, &fleet, error, audience),
    })
}

/// Formats an entry as a line of text. A line of ours begins with `#`, one of a log with its time.
pub fn text(entry: &LogEntry, names_pods: bool) -> String {
    match entry {
        LogEntry::Note(note) => format!("# {note}\n"),
        LogEntry::Line { at, pod, text } => {
            let at = at.strftime("%Y-%m-%dT%H:%M:%S.%9fZ");
            if names_pods { format!("{at} {pod} {text}\n") } else { format!("{at} {text}\n") }
        }
    }
}

/// Whether a line says that the answer ended before the log.
pub fn is_cut(line: &str) -> bool {
    line.strip_prefix("# ").is_some_and(|note| note.starts_with(LOG_GOES_ON))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_line_begins_with_its_time_and_the_pod_where_there_are_several() {
        let at = "2026-11-23T12:00:00.1234Z".parse().unwrap();
        let line = LogEntry::Line { at, pod: "orders-broker-0".into(), text: "started".to_owned() };
        assert_eq!(text(&line, true), "2026-11-23T12:00:00.123400000Z orders-broker-0 started\n");
        assert_eq!(text(&line, false), "2026-11-23T12:00:00.123400000Z started\n");
        assert_eq!(text(&LogEntry::Note("pod x is gone".to_owned()), true), "# pod x is gone\n");
        let cut = text(&LogEntry::Note(format!("{LOG_GOES_ON}: its time is over")), true);
        assert!(is_cut(&cut) && !is_cut("# pod x is gone\n"));
    }
}
