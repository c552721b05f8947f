//! Metrics of brokers and controllers, read through the API server.
//!
//! They are written by programs that a tenant runs, and passed on by an API server that a tenant owns: each pod's are
//! bounded in time, bytes and series, and taken as a whole or not at all.

use std::pin::pin;
use std::time::Duration;

use futures_util::StreamExt as _;
use futures_util::io::{AsyncBufRead, AsyncBufReadExt as _};
use futures_util::stream;
use serde_json::Value;
use tokio::time::timeout;

use super::KubernetesTarget;
use super::answer::CallError;
use super::api::{Api, KindRef};
use super::budget::Budget;
use super::error::KubeError;
use crate::component::federation::{self, PodMetrics, PodSamples};

/// The most time for a pod.
const LONGEST: Duration = Duration::from_secs(5);

/// How many pods of a cluster are read at a time.
const AT_ONCE: usize = 32;

/// The most bytes of a pod. A broker with a unit's 1,500 partitions has 2 MiB.
const MOST_BYTES: usize = 16 * 1024 * 1024;

/// The longest line.
const MOST_LINE: usize = 16 * 1024;

/// Why a pod's metrics were not read.
enum Unread {
    /// The API server refuses to pass them on.
    Refused(Box<KubeError>),
    /// Otherwise, as a sentence without a full stop.
    Because(String),
}

impl KubernetesTarget {
    /// Reads the metrics of a cluster's brokers and controllers. A pod that can't be read is among them, with the
    /// reason.
    ///
    /// # Errors
    /// When the server can't be read, or refuses to reach any pod.
    pub async fn pod_metrics(&self, namespace: &str, cluster: &str) -> Result<Vec<PodMetrics>, KubeError> {
        let api = self.api().await?;
        let name = |pod: Value| pod.pointer("/metadata/name").cloned();
        let selector = federation::pod_selector(cluster);
        let mut pods = api.list(KindRef::core("Pod"), Some(namespace), &selector, name).await?;
        pods.sort_by(|one, other| one.as_str().cmp(&other.as_str()));
        let pods = pods.into_iter().filter_map(|pod| pod.as_str().map(str::to_owned));
        let read = stream::iter(pods).map(|pod| async move {
            let samples = timeout(LONGEST, read_pod(api, namespace, &pod)).await;
            let late = || Err(Unread::Because(format!("no answer within {} s", LONGEST.as_secs())));
            (pod, samples.unwrap_or_else(|_| late()))
        });
        let read: Vec<_> = read.buffered(AT_ONCE).collect().await;
        let mut refusal = None;
        let mut metrics = Vec::new();
        for (pod, samples) in read {
            let samples = samples.map_err(|unread| match unread {
                Unread::Because(reason) => reason,
                Unread::Refused(error) => {
                    refusal = Some(error);
                    "the API server refuses to reach it".to_owned()
                }
            });
            metrics.push(PodMetrics { pod, samples });
        }
        // A pod can make such a refusal up, so it counts only if no pod was read.
        match refusal.filter(|_| metrics.iter().all(|pod| pod.samples.is_err())) {
            Some(refusal) => Err(*refusal),
            None => Ok(metrics),
        }
    }
}

async fn read_pod(api: &Api, namespace: &str, pod: &str) -> Result<PodSamples, Unread> {
    match api.pod_metrics(namespace, pod).await {
        Ok(text) => read_samples(text, api.budget()).await.map_err(Unread::Because),
        Err(failed) if failed.is_refusal(401) || failed.is_refusal(403) => {
            let attempted = format!("read the metrics of pod {pod}");
            Err(Unread::Refused(Box::new(failed.into_kube_error(&attempted, 1))))
        }
        // The server's own words may tell of addresses in its network.
        Err(CallError::Refused { status, .. }) => {
            Err(Unread::Because(format!("the API server can't reach it ({})", status.code)))
        }
        Err(CallError::Stray { code, .. }) => {
            Err(Unread::Because(format!("it has no metrics: it answered {code}")))
        }
        Err(_) => Err(Unread::Because("the API server can't be read now".to_owned())),
    }
}

/// Reads a pod's text to its end.
async fn read_samples(text: impl AsyncBufRead, budget: &Budget) -> Result<PodSamples, String> {
    let mut text = pin!(text);
    let (mut samples, mut line, mut read) = (PodSamples::default(), Vec::new(), 0);
    loop {
        let bytes = text.fill_buf().await.map_err(|_| "its answer broke off".to_owned())?;
        if bytes.is_empty() {
            break;
        }
        let end = bytes.iter().position(|byte| *byte == b'\n');
        let taken = end.unwrap_or(bytes.len());
        line.extend_from_slice(&bytes[..taken]);
        let used = taken + usize::from(end.is_some());
        text.as_mut().consume_unpin(used);
        read += used;
        if line.len() > MOST_LINE {
            return Err(format!("its answer has a line of more than {} KiB, the limit", MOST_LINE / 1024));
        }
        if read > MOST_BYTES {
            return Err(format!("its answer is longer than {} MiB, the limit", MOST_BYTES / 1024 / 1024));
        }
        budget.pace(used).await;
        if end.is_some() {
            take(&mut samples, &line)?;
            line.clear();
        }
    }
    take(&mut samples, &line)?;
    samples.finish().map_err(|why| why.to_string())
}

fn take(samples: &mut PodSamples, line: &[u8]) -> Result<(), String> {
    let line = String::from_utf8_lossy(line);
    samples.read(line.trim_end_matches('\r')).map(drop).map_err(|why| why.to_string())
}

#[cfg(test)]
mod tests {
    use super::*;

    async fn read(text: Vec<u8>) -> Result<usize, String> {
        read_samples(text.as_slice(), &Budget::default()).await.map(|samples| samples.len())
    }

    #[tokio::test]
    async fn a_text_is_read_to_its_end_or_refused() {
        let size = "kafka_log_log_size{topic=\"a\"} 1";
        assert_eq!(read([b"# HELP x y\r\n", size.as_bytes(), b"\r\n\n\xff"].concat()).await, Ok(1));
        assert_eq!(read(size.as_bytes().to_vec()).await, Ok(1));
        for (text, expected) in [
            (vec![b'x'; MOST_LINE + 1], "its answer has a line of more than 16 KiB, the limit"),
            (b"x 1\n".repeat(MOST_BYTES / 4 + 1), "its answer is longer than 16 MiB, the limit"),
            (Vec::new(), "its answer has none of the metrics of Kafka"),
            (b"kafka_log_log_size\xff".to_vec(), "its answer has none of the metrics of Kafka"),
            (b"kafka_log_log_size{\xff".to_vec(), "its answer is not in Prometheus' text format"),
        ] {
            assert_eq!(read(text).await, Err(expected.to_owned()));
        }
    }
}
