//! Calls that read the metrics of a pod. The API server passes them on from a port of the pod.

use futures_util::io::AsyncBufRead;
use http::Method;
use http::header::{ACCEPT, HeaderValue};
use serde_json::Value;

use super::super::answer::{CallError, stream};
use super::{Api, encoded, request};
use crate::component::federation::PORT;

impl Api {
    /// Opens the metrics of a pod of Kafka.
    pub(in crate::target::kubernetes) async fn pod_metrics(
        &self,
        namespace: &str,
        pod: &str,
    ) -> Result<impl AsyncBufRead + Send + use<>, CallError> {
        let path =
            format!("/api/v1/namespaces/{}/pods/{}:{PORT}/proxy/metrics", encoded(namespace), encoded(pod));
        let unsent = |_| CallError::Unreached("its name can't be part of a URL".to_owned());
        let mut request = request("read metrics", Method::GET, &path, None, &Value::Null).map_err(unsent)?;
        // The metrics are plain text; a refusal is JSON.
        request.headers_mut().insert(ACCEPT, HeaderValue::from_static("application/json, text/plain, */*"));
        stream(&self.client, &self.budget, request).await
    }
}
