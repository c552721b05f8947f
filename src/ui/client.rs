//! The client of the API: calls its routes in this process.

use std::io::{self, Write};

use axum::Router;
use axum::body::{Body, Bytes};
use axum::http::header::{AUTHORIZATION, CONTENT_TYPE, ETAG, HeaderValue, IF_MATCH};
use axum::http::{Method, Request, StatusCode};
use axum::response::Response;
use http_body_util::BodyExt as _;
use serde::de::DeserializeOwned;
use serde_json::Value;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tower::ServiceExt as _;
use zeroize::Zeroizing;

use super::Ui;
use crate::api::route::{RequiredAccess, Route};
use crate::http::peer::Peer;
use crate::http::problem::{FieldError, ProblemDocument, code};

const JSON: HeaderValue = HeaderValue::from_static("application/json");

pub struct ApiClient {
    api: Router,
    base: String,
    peer: Peer,
    bearer: HeaderValue,
}

/// How many pages are parsed and rendered at a time: it takes a processor, and memory for a whole plan.
static PAGES: Semaphore = Semaphore::const_new(4);

/// Does what takes a while outside of the threads that serve connections.
pub async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> Result<T, Refusal> {
    let _turn = PAGES.acquire().await.map_err(|_| ProblemDocument::internal())?;
    Ok(spawn_blocking(work).await.map_err(|_| ProblemDocument::internal())?)
}

/// Why the API refused a request, in its own words.
#[derive(Debug, Clone)]
pub struct Refusal {
    pub status: StatusCode,
    pub title: &'static str,
    pub detail: String,
    pub hint: Option<String>,
    pub errors: Vec<FieldError>,
}

impl ApiClient {
    pub fn new(ui: &Ui, peer: Peer, bearer: HeaderValue) -> ApiClient {
        ApiClient { api: ui.api.clone(), base: ui.base.clone(), peer, bearer }
    }

    pub async fn get<T: DeserializeOwned + Send + 'static>(&self, path: &str) -> Result<T, Refusal> {
        let (answer, _) = self.answer(Method::GET, path, None, "").await?;
        // A plan may be large.
        let parsed = blocking(move || serde_json::from_slice(&answer)).await?;
        parsed.map_err(|error| {
            tracing::error!(%error, path, "the answer of the API has another form than the page expects");
            Refusal::from(ProblemDocument::internal())
        })
    }

    /// Returns a record with the tag of its spec, which is empty if there is no spec.
    pub async fn tagged(&self, path: &str) -> Result<(Value, String), Refusal> {
        let (answer, tag) = self.answer(Method::GET, path, None, "").await?;
        Ok((parsed(&answer)?, tag))
    }

    /// Sends a request; the answer is null if it has no body.
    pub async fn send(&self, method: Method, path: &str, body: Option<&Value>) -> Result<Value, Refusal> {
        self.send_if(method, path, body, "").await
    }

    /// Sends a request that is refused if the spec has another tag by now.
    pub async fn send_if(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        tag: &str,
    ) -> Result<Value, Refusal> {
        let (answer, _) = self.answer(method, path, body, tag).await?;
        if answer.is_empty() { Ok(Value::Null) } else { parsed(&answer) }
    }

    /// The body of an answer, and the tag that it has.
    async fn answer(
        &self,
        method: Method,
        path: &str,
        body: Option<&Value>,
        tag: &str,
    ) -> Result<(Bytes, String), Refusal> {
        let mut request = Request::new(body.map_or_else(Body::empty, wiped));
        *request.uri_mut() = format!("{}{path}", self.base).parse().map_err(|_| Refusal::no_page())?;
        *request.method_mut() = method;
        request.extensions_mut().insert(self.peer);
        request.headers_mut().insert(AUTHORIZATION, self.bearer.clone());
        if body.is_some() {
            request.headers_mut().insert(CONTENT_TYPE, JSON);
        }
        if !tag.is_empty() {
            let tag = tag.parse().map_err(|_| Refusal::no_draft())?;
            request.headers_mut().insert(IF_MATCH, tag);
        }
        let response: Response = match self.api.clone().oneshot(request).await {
            Ok(response) => response,
            Err(never) => match never {},
        };
        let (mut parts, body) = response.into_parts();
        if let Some(problem) = parts.extensions.remove::<ProblemDocument>() {
            return Err(problem.into());
        }
        let is_refused = !parts.status.is_success();
        if is_refused {
            return Err(Refusal { status: parts.status, ..Refusal::no_page() });
        }
        let tag = parts.headers.get(ETAG).and_then(|tag| tag.to_str().ok()).unwrap_or_default();
        Ok((body.collect().await.map_err(|_| ProblemDocument::internal())?.to_bytes(), tag.to_owned()))
    }
}

/// The text of a body, which may contain secrets: it is overwritten after it was read.
fn wiped(body: &Value) -> Body {
    let mut size = Size(0);
    // Neither fails: nothing is written to a disk, and all keys are strings.
    let _ = serde_json::to_writer(&mut size, body);
    // A larger one would leave a copy in freed memory.
    let mut text = Zeroizing::new(Vec::with_capacity(size.0));
    let _ = serde_json::to_writer(&mut *text, body);
    Body::from(Bytes::from_owner(text))
}

/// Counts bytes.
struct Size(usize);

impl Write for Size {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        self.0 += bytes.len();
        Ok(bytes.len())
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

fn parsed(answer: &[u8]) -> Result<Value, Refusal> {
    serde_json::from_slice(answer).map_err(|_| ProblemDocument::internal().into())
}

/// What pages say in place of the API's words for programs: the reason, unless the API's own is for people, too; and the
/// hint.
static OWN_WORDS: [(&code::Code, &str, &str); 3] = [
    (
        &code::STALE,
        "somebody else changed it since you opened the form",
        "the form has their values now, and those that you changed; review it again",
    ),
    (&code::DUPLICATE, "", "choose another name, or change the one that is there"),
    (
        &code::UNSURE,
        "",
        "look in a minute whether the change is there, and repeat it if it isn't: a form is never carried out twice",
    ),
];

impl From<ProblemDocument> for Refusal {
    fn from(problem: ProblemDocument) -> Refusal {
        let ProblemDocument { status, kind, detail, hint, mut errors, .. } = problem;
        let title = if status == StatusCode::NOT_FOUND { "Not found" } else { kind.title };
        let told = OWN_WORDS.iter().find(|(code, ..)| code.word == kind.word);
        let (detail, hint) = match told {
            Some((_, why, how)) => {
                let same = errors.iter_mut().filter(|error| error.detail == detail);
                same.for_each(|error| error.hint = Some((*how).to_owned()));
                (if why.is_empty() { detail } else { (*why).to_owned() }, Some((*how).to_owned()))
            }
            None => (detail, hint),
        };
        Refusal { status, title, detail, hint, errors }
    }
}

impl Refusal {
    pub fn no_page() -> Refusal {
        ProblemDocument::not_found("there is no such page").into()
    }

    /// Whether the sender can do something about it with what was typed.
    pub fn is_correctable(&self) -> bool {
        !matches!(self.status, StatusCode::UNAUTHORIZED | StatusCode::FORBIDDEN | StatusCode::NOT_FOUND)
    }

    /// A form that would be refused, whatever it says.
    pub fn lacks(route: &Route, organization: Option<&str>) -> Refusal {
        let place = organization
            .map_or(" in an organization".to_owned(), |name| format!(" in organization `{name}`"));
        let role = match route.needs {
            RequiredAccess::Super => {
                let why = format!("{} requires a super user, and you are signed in as none", route.doing);
                return ProblemDocument::forbidden(why).hint("ask a super user").into();
            }
            RequiredAccess::Admin => "admin",
            RequiredAccess::Nobody | RequiredAccess::Read | RequiredAccess::Write => "editor",
        };
        let why =
            format!("{} requires the role `{role}`{place}, and you are signed in without it", route.doing);
        let hint = "ask an administrator of the organization for that role; the page of your name shows yours, and what the token allows \
                    that you signed in with";
        ProblemDocument::forbidden(why).hint(hint).into()
    }

    /// A form with the values of the record.
    pub fn no_change() -> Refusal {
        let why = "nothing would change: all fields are as they were";
        ProblemDocument::invalid(why, Vec::new()).hint("change a field first").into()
    }

    /// A click below a plan that is another one by now.
    pub fn other_plan() -> Refusal {
        let detail = "nothing was deleted: what the deletion changes is no longer what you read".to_owned();
        let hint = Some("read the plan below, which is the one now, and type the name again".to_owned());
        Refusal { detail, hint, ..ProblemDocument::new(&code::STALE, "").into() }
    }

    /// A click on a page whose draft is gone.
    pub fn no_draft() -> Refusal {
        let why = "what was typed is no longer kept";
        ProblemDocument::malformed(why).hint("go back to the form, and review it again").into()
    }

    /// Refuses what was typed, before it is sent.
    pub fn mistakes(errors: Vec<FieldError>) -> Refusal {
        ProblemDocument::mistakes(errors).into()
    }

    /// An answer to what was typed, with the mistakes that were found before it was sent.
    pub fn with<T>(mistakes: Vec<FieldError>, answer: Result<T, Refusal>) -> Result<T, Refusal> {
        if mistakes.is_empty() {
            return answer;
        }
        let others = answer.err().filter(Refusal::is_correctable).map(|refusal| refusal.errors);
        let of_others = others.unwrap_or_default().into_iter().filter(|other| {
            // A field that isn't sent is no mistake.
            !mistakes.iter().any(|known| known.pointer.is_some() && known.pointer == other.pointer)
        });
        Err(Refusal::mistakes(mistakes.iter().cloned().chain(of_others).collect()))
    }

    pub fn too_large(limit: usize) -> Refusal {
        let why = format!("the form is larger than {} KiB, so it was not taken", limit >> 10);
        let hint = "go back to the form, and shorten what is long";
        ProblemDocument { detail: why, ..ProblemDocument::too_large(limit) }.hint(hint).into()
    }

    /// A refusal that was written as a document for programs.
    pub fn of_document(status: StatusCode, document: &Value) -> Refusal {
        let text = |name: &str| document[name].as_str().unwrap_or_default().to_owned();
        let code = code::ALL.iter().find(|code| code.word == document["code"]);
        let title = code.map_or("Refused", |code| code.title);
        let mut hint = text("hint");
        if status.is_server_error() {
            hint = format!("{hint} (request {})", text("request_id")).trim().to_owned();
        }
        let hint = Some(hint).filter(|hint| !hint.is_empty());
        Refusal { status, title, detail: text("detail"), hint, errors: Vec::new() }
    }

    /// Refuses a form whose part from a field on wasn't read.
    pub fn too_large_field(name: &str, limit: usize) -> Refusal {
        let why =
            format!("what was typed is larger than {} KiB, so from here on it was not read", limit >> 10);
        let hint = "shorten this field, and fill in those after it again";
        let error = FieldError::at(name, why, hint);
        let errors = if name.starts_with('/') { vec![error] } else { Vec::new() };
        Refusal { errors, ..Refusal::too_large(limit) }
    }

    /// A form without the token of the session.
    pub fn forged() -> Refusal {
        let why = "the form was not sent from a page of this session";
        ProblemDocument::forbidden(why).hint("open the page again, and repeat it").into()
    }
}
