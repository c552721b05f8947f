//! Calls that return many objects: lists and watches.

use futures_util::io::{AsyncBufRead, AsyncBufReadExt as _};
use futures_util::{Stream, stream};
use http::Method;
use serde_json::Value;
use tokio::time::timeout;

use super::super::answer::{CallError, KubeListPage, page, stream as open};
use super::super::budget::{Charge, Listing};
use super::super::error::KubeError;
use super::super::retry::{CALL_TIMEOUT, Repeatability};
use super::super::untrusted::{self, MAX_OBJECT, ParseFailure, Weigh};
use super::{
    Api, KindRef, SECRET, collection, encoded, metadata_alone, request, unexpected_response, version,
};

const LIST_OF_METADATA: &str = "PartialObjectMetadataList";

const PAGE: usize = 500;

/// The longest `continue` token that is accepted, in bytes. It is a version and an object's name in base64,
/// which take 600.
const LONGEST_TOKEN: usize = 2 * 1024;

/// The most that an event has beside its object, in bytes.
const AROUND_EVENT: usize = 1024;

pub(in crate::target::kubernetes) struct ListResult<T> {
    pub(in crate::target::kubernetes) kept: Vec<T>,
    pub(in crate::target::kubernetes) version: String,
    pub(in crate::target::kubernetes) charge: Charge,
}

/// A watch: its response, the line that is being read, and the budget that the line takes.
struct Watch<R> {
    answer: R,
    line: Vec<u8>,
    held: Charge,
}

impl Api {
    /// Lists the objects of a kind that a selector matches, in one namespace or in all, and returns what
    /// `keep` keeps of them. `selector` is a part of the URL's query. The list is empty when the server
    /// doesn't know the kind.
    pub(in crate::target::kubernetes) async fn list<T: Weigh>(
        &self,
        kind: KindRef<'_>,
        namespace: Option<&str>,
        selector: &str,
        keep: impl Fn(Value) -> Option<T>,
    ) -> Result<Vec<T>, KubeError> {
        Ok(self.list_counted(kind, namespace, selector, keep).await?.kept)
    }

    /// Like [`Self::list`]. The result counts against the budget until it is dropped.
    pub(in crate::target::kubernetes) async fn list_counted<T: Weigh>(
        &self,
        kind: KindRef<'_>,
        namespace: Option<&str>,
        selector: &str,
        keep: impl Fn(Value) -> Option<T>,
    ) -> Result<ListResult<T>, KubeError> {
        self.list_form((kind, kind.kind == SECRET), namespace, selector, keep).await
    }

    /// Like [`Self::list`], but the server sends only the metadata of each object.
    pub(in crate::target::kubernetes) async fn list_metadata<T: Weigh>(
        &self,
        kind: KindRef<'_>,
        namespace: Option<&str>,
        selector: &str,
        keep: impl Fn(Value) -> Option<T>,
    ) -> Result<Vec<T>, KubeError> {
        Ok(self.list_form((kind, true), namespace, selector, keep).await?.kept)
    }

    async fn list_form<T: Weigh>(
        &self,
        (kind, is_metadata): (KindRef<'_>, bool),
        namespace: Option<&str>,
        selector: &str,
        keep: impl Fn(Value) -> Option<T>,
    ) -> Result<ListResult<T>, KubeError> {
        let Some(path) = self.selected(kind, namespace, selector).await? else {
            let charge = Charge::new(&self.budget);
            return Ok(ListResult { kept: Vec::new(), version: String::new(), charge });
        };
        let keep = |object| {
            let kept = keep(object)?;
            let weight = kept.weight();
            Some((kept, weight))
        };
        let form = (kind.kind, is_metadata);
        let mut listed = self.pages_of(form, &path, keep, || false).await;
        if listed.as_ref().is_err_and(|error| error.is_code(410)) {
            // The server has forgotten the list that the pages come from, so start over.
            listed = self.pages_of(form, &path, keep, || false).await;
        }
        listed
    }

    /// The beginning of the URL of a kind's selected objects. None when the server doesn't know the kind.
    pub(in crate::target::kubernetes) async fn selected(
        &self,
        kind: KindRef<'_>,
        namespace: Option<&str>,
        selector: &str,
    ) -> Result<Option<String>, KubeError> {
        let Some((plural, _)) = self.served(kind).await? else { return Ok(None) };
        Ok(Some(format!("{}?{selector}", collection(kind.api_version, &plural, namespace))))
    }

    /// Lists a collection page by page. `keep` is called with each object as it arrives, and returns what to
    /// keep and its size in bytes. When the budget is exceeded, `make_room` may drop other data and says
    /// whether it did.
    pub(in crate::target::kubernetes) async fn pages<T>(
        &self,
        kind: &str,
        path: &str,
        keep: impl Fn(Value) -> Option<(T, usize)>,
        make_room: impl FnMut() -> bool,
    ) -> Result<ListResult<T>, KubeError> {
        self.pages_of((kind, kind == SECRET), path, keep, make_room).await
    }

    async fn pages_of<T>(
        &self,
        (kind, is_metadata): (&str, bool),
        path: &str,
        keep: impl Fn(Value) -> Option<(T, usize)>,
        mut make_room: impl FnMut() -> bool,
    ) -> Result<ListResult<T>, KubeError> {
        let attempted = format!("list objects of kind {kind}");
        let keep = |object: Value| match untrusted::is_named_properly(kind, &object) {
            true => Ok(keep(object)),
            false => Err(CallError::Misnamed),
        };
        let listed = if is_metadata { LIST_OF_METADATA.to_owned() } else { format!("{kind}List") };
        let (mut listing, mut next) = (Listing::begin(), String::new());
        let (mut kept, mut charge) = (Vec::new(), Charge::new(&self.budget));
        loop {
            let url = format!("{path}&limit={PAGE}&continue={next}");
            let mut request = request(&attempted, Method::GET, &url, None, &Value::Null)?;
            if is_metadata {
                metadata_alone(LIST_OF_METADATA, &mut request);
            }
            let ask = || page(&self.client, &self.budget, request.clone(), keep);
            let mut answer = self.send_by(Repeatability::Repeatable, request.uri().path(), ask).await;
            if matches!(answer, Err((CallError::OverBudget(_), _))) && make_room() {
                answer = self.send_by(Repeatability::Repeatable, request.uri().path(), ask).await;
            }
            let answer = answer.map_err(|(failed, tries)| failed.into_kube_error(&attempted, tries));
            if answer.as_ref().is_err_and(|error| error.is_code(404)) {
                self.lock().clear();
            }
            let KubeListPage { kept: items, envelope, objects, bytes, charge: more } = answer?;
            let is_list = envelope["kind"] == listed.as_str() && !version(&envelope).is_empty();
            // By now all objects were taken out of the text. Any that are left came in an unexpected form,
            // and were not checked. An empty list of metadata comes without the array.
            let has_items = envelope["items"].as_array().is_some_and(Vec::is_empty)
                || is_metadata && envelope["items"].is_null();
            if !is_list || !has_items || !untrusted::is_named_properly(kind, &envelope) {
                return Err(unexpected_response(&attempted));
            }
            listing
                .page(objects, bytes)
                .map_err(|over| CallError::OverBudget(over).into_kube_error(&attempted, 1))?;
            kept.extend(items);
            charge.absorb(more);
            let token = envelope.pointer("/metadata/continue").and_then(Value::as_str).unwrap_or_default();
            match token {
                "" => return Ok(ListResult { kept, version: version(&envelope).to_owned(), charge }),
                token if token.len() > LONGEST_TOKEN => return Err(unexpected_response(&attempted)),
                token if !listing.is_next(token) => {
                    let reason = "the server repeats the same `continue`, so the list never ends";
                    return Err(KubeError::connection(&attempted, reason));
                }
                token => next = encoded(token),
            }
            self.budget.pace(bytes).await;
        }
    }

    /// Watches a collection from a `resourceVersion` on, for so many seconds, and returns each event's type
    /// and object. Returns when the response has begun.
    pub(in crate::target::kubernetes) async fn watch(
        &self,
        kind: &str,
        path: &str,
        version: &str,
        seconds: u64,
    ) -> Result<impl Stream<Item = Result<(String, Value), KubeError>> + Unpin + use<>, KubeError> {
        let attempted = format!("watch objects of kind {kind}");
        let version = encoded(version);
        let url = format!(
            "{path}&watch=true&allowWatchBookmarks=true&resourceVersion={version}&timeoutSeconds={seconds}"
        );
        let mut request = request(&attempted, Method::GET, &url, None, &Value::Null)?;
        if kind == SECRET {
            metadata_alone("PartialObjectMetadata", &mut request);
        }
        let answer = timeout(CALL_TIMEOUT, open(&self.client, &self.budget, request)).await;
        let answer = answer
            .unwrap_or(Err(CallError::Overdue(CALL_TIMEOUT)))
            .map_err(|failed| failed.into_kube_error(&attempted, 1))?;
        let watch = Watch { answer: Box::pin(answer), line: Vec::new(), held: Charge::new(&self.budget) };
        let (kind, budget) = (kind.to_owned(), std::sync::Arc::clone(&self.budget));
        let told = (watch, attempted, kind, budget);
        Ok(Box::pin(stream::unfold(told, |(mut watch, attempted, kind, budget)| async move {
            let event = watch.next(&kind).await.transpose()?;
            let event = event.map_err(|failed| failed.into_kube_error(&attempted, 1));
            if let Ok((_, _, bytes)) = &event {
                budget.pace_event(*bytes).await;
            }
            let event = event.map(|(happened, object, _)| (happened, object));
            Some((event, (watch, attempted, kind, budget)))
        })))
    }
}

impl<R: AsyncBufRead + Unpin> Watch<R> {
    /// The next event, with its length in bytes. None at the end of the response.
    async fn next(&mut self, kind: &str) -> Result<Option<(String, Value, usize)>, CallError> {
        if !self.read_line().await? {
            return Ok(None);
        }
        let line = std::mem::take(&mut self.line);
        self.held.set(0)?;
        let (happened, object) = untrusted::event(&line).map_err(|unreadable| match unreadable {
            ParseFailure::TooMuch => CallError::TooLong(MAX_OBJECT),
            // The parser's message may quote the response.
            ParseFailure::NotJson => CallError::Lost("the server sends invalid JSON".to_owned()),
        })?;
        match untrusted::is_named_properly(kind, &object) {
            true => Ok(Some((happened, object, line.len()))),
            false => Err(CallError::Misnamed),
        }
    }

    async fn read_line(&mut self) -> Result<bool, CallError> {
        loop {
            let bytes = self.answer.fill_buf().await.map_err(|error| CallError::Lost(error.to_string()))?;
            let end = bytes.iter().position(|byte| *byte == b'\n');
            let taken = end.unwrap_or(bytes.len());
            self.line.extend_from_slice(&bytes[..taken]);
            let is_over = bytes.is_empty();
            self.answer.consume_unpin(taken + usize::from(end.is_some()));
            if self.line.len() > MAX_OBJECT + AROUND_EVENT {
                return Err(CallError::TooLong(MAX_OBJECT));
            }
            self.held.set(self.line.len())?;
            if end.is_some() || is_over {
                return Ok(!self.line.is_empty());
            }
        }
    }
}
