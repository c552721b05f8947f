//! The logs of brokers, as text.

use std::collections::BTreeSet;

use jiff::Timestamp;
use tokio::time::Instant;

use crate::names::{FleetKey, Kind, ResourceKey};
use crate::record::Audience;
use crate::round::Round;
use crate::target::{LogEntry, LogError, LogReader, LogRequest, Target, TargetError};

/// A request for the logs of a cluster, or of all clusters of a fleet.
#[derive(Debug, Clone, Copy, Default)]
pub struct LogQuery {
    /// The only broker to read.
    pub broker: Option<u32>,
    /// Only lines after this time.
    pub since: Option<Timestamp>,
    /// Go on with what is logged from now on.
    pub follows: bool,
    /// When to end; none to end with the logs.
    pub ends: Option<Instant>,
}

/// Why there are no logs.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NoLogs {
    pub cause: NoLogsCause,
    /// A sentence without a full stop.
    pub message: String,
    pub hint: String,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NoLogsCause {
    /// There are none, or not of this broker.
    Missing,
    /// The Kubernetes cluster refuses them.
    Refused,
    /// Too many were asked for.
    TooMany,
    /// The Kubernetes cluster can't be read now.
    Unreadable,
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
) -> Result<LogReader, NoLogs> {
    let missing =
        |message: String, hint: &str| NoLogs { cause: NoLogsCause::Missing, message, hint: hint.to_owned() };
    let not_applied = || missing(format!("{key} has no logs: it was not applied yet"), "apply it first");
    let fleet = fleet_of(round, key).ok_or_else(not_applied)?;
    let target = round.targets.get(&fleet).ok_or_else(not_applied)?;
    let Target::Kubernetes(cluster) = target else {
        let message = format!(
            "{key} has no logs: fleet {fleet} is a folder, so streamfleet can't read those of its pods"
        );
        return Err(missing(message, "read them where the manifests are applied: kubectl logs"));
    };
    let clusters = round.checked.catalog.clusters.values();
    let is_applied = |key: &ResourceKey| round.checked.recorded.resources.contains_key(key);
    let clusters = clusters.filter(|it| it.fleet == fleet && is_applied(&it.key));
    let namespaces =
        clusters.filter(|it| key.kind == Kind::Fleet || it.key == *key).map(|it| it.namespace.clone());
    let namespaces: BTreeSet<String> = namespaces.collect();
    if namespaces.is_empty() {
        return Err(not_applied());
    }
    let LogQuery { broker, since, follows, ends } = query;
    let name = (key.kind == Kind::Cluster).then(|| key.name.to_string());
    let request = LogRequest { namespaces, cluster: name, broker, since, follows, ends };
    cluster.logs(request).await.map_err(|error| why_not(key, &fleet, error, audience))
}

fn fleet_of(round: &Round, key: &ResourceKey) -> Option<FleetKey> {
    match key.kind {
        Kind::Fleet => key.as_fleet(),
        _ => round.applied_cluster(key).map(|(cluster, _)| cluster.fleet.clone()),
    }
}

fn why_not(key: &ResourceKey, fleet: &FleetKey, error: LogError, audience: Audience) -> NoLogs {
    let no_logs = |cause, message: String, hint: String| NoLogs { cause, message, hint };
    match error {
        LogError::NoBroker { broker, known } => {
            let known: Vec<String> = known.iter().map(ToString::to_string).collect();
            let hint = match known.is_empty() {
                true => "no broker of it runs".to_owned(),
                false => format!("its brokers are {}", known.join(", ")),
            };
            no_logs(NoLogsCause::Missing, format!("{key} has no broker {broker} that runs"), hint)
        }
        LogError::TooManyPods { .. } => {
            let hint = "read the logs of one cluster, or of one broker".to_owned();
            no_logs(NoLogsCause::TooMany, format!("cannot read all logs of {key}: {error}"), hint)
        }
        LogError::Kubernetes(error) if error.is_code(401) || error.is_code(403) => {
            let message = format!(
                "cannot read the logs of {key}: the Kubernetes cluster of fleet {fleet} refuses them to streamfleet's user"
            );
            let hint =
                "an administrator of the Kubernetes cluster gives the right with: streamfleet role --logs";
            no_logs(NoLogsCause::Refused, message, hint.to_owned())
        }
        LogError::Kubernetes(error) => {
            let error = TargetError::from(error);
            tracing::debug!(%fleet, %error, "cannot read logs of fleet {fleet}");
            let words = match audience {
                Audience::Host => error.to_string(),
                Audience::Tenants => "its Kubernetes cluster can't be read now".to_owned(),
            };
            let message = format!("cannot read the logs of {key}: {words}");
            no_logs(NoLogsCause::Unreadable, message, "try again in a moment".to_owned())
        }
    }
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
    }
}
