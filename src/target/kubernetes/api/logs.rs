//! Calls that read the log of a pod. The API server passes it on from the kubelet.

use futures_util::io::AsyncBufRead;
use http::Method;
use http::header::{ACCEPT, HeaderValue};
use jiff::Timestamp;
use serde_json::Value;
use tokio::time::timeout;

use super::super::answer::{CallError, stream};
use super::super::error::KubeError;
use super::super::retry::HASTE;
use super::{Api, encoded, request};
use crate::component::BROKER_CONTAINER;

/// The part of a pod's log to read.
#[derive(Debug, Clone, Copy)]
pub(in crate::target::kubernetes) enum LogPart {
    /// From the second of this time on.
    Since(Timestamp),
    /// So many of the last lines.
    Last(u32),
}

impl Api {
    /// Opens the log of a broker's pod, whose lines begin with their times. It ends with the present or, if
    /// `follows`, with the container.
    pub(in crate::target::kubernetes) async fn log(
        &self,
        namespace: &str,
        pod: &str,
        part: LogPart,
        follows: bool,
    ) -> Result<impl AsyncBufRead + Send + use<>, KubeError> {
        let attempted = format!("read the log of pod {pod}");
        let part = match part {
            LogPart::Since(at) => format!("sinceTime={}", at.strftime("%Y-%m-%dT%H:%M:%SZ")),
            LogPart::Last(lines) => format!("tailLines={lines}"),
        };
        let path = format!(
            "/api/v1/namespaces/{}/pods/{}/log?container={BROKER_CONTAINER}&timestamps=true&follow={follows}&{part}",
            encoded(namespace),
            encoded(pod)
        );
        let mut request = request(&attempted, Method::GET, &path, None, &Value::Null)?;
        // The log is plain text; a refusal is JSON.
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, */*"));
        let opened = timeout(HASTE, stream(&self.client, &self.budget, request)).await;
        let opened = opened.unwrap_or(Err(CallError::Overdue(HASTE)));
        opened.map_err(|failed| failed.into_kube_error(&attempted, 1))
    }
}
