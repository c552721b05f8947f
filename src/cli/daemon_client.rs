//! Client of a running daemon: the API, over its socket.

use std::fs;
use std::io::{self, ErrorKind};
use std::os::unix::fs::MetadataExt as _;
use std::os::unix::net::UnixStream;
use std::time::Duration;

use camino::{Utf8Path, Utf8PathBuf};
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::{Bytes, Incoming};
use hyper::client::conn::http1::{self, SendRequest};
use hyper::header::{CONTENT_TYPE, HOST, HeaderMap};
use hyper::{Method, Request, Response, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;
use tokio::runtime::Runtime;

use crate::api::answer::ListAnswer;
use crate::api::local::{self, Daemon};
use crate::api::openapi::JSON;
use crate::api::route::LARGEST_PAGE;
use crate::cli::command;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::settings::Settings;
use crate::cli::{round, why};
use crate::http::problem::code::Code;
use crate::http::socket::SocketPath;

const VERSION: &str = env!("CARGO_PKG_VERSION");

/// The timeout of an answer. The daemon gives up before that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(200);

/// The timeout of a probe. Less than what service managers and container engines wait for a health check.
const PROBE_TIMEOUT: Duration = Duration::from_secs(5);

/// The largest answer, in bytes: the same as for a saved plan.
const LARGEST: usize = 1 << 30;

/// A connection to the daemon that has the state.
pub struct RunningDaemon {
    runtime: Runtime,
    sender: SendRequest<Full<Bytes>>,
    socket: Utf8PathBuf,
    headers: HeaderMap,
    /// Whether the user was told that a daemon answers.
    is_named: bool,
}

pub struct DaemonRequest {
    method: Method,
    path: String,
    query: Vec<(&'static str, String)>,
    body: Option<Vec<u8>>,
}

impl DaemonRequest {
    pub fn get(path: impl Into<String>) -> DaemonRequest {
        DaemonRequest { method: Method::GET, path: path.into(), query: Vec::new(), body: None }
    }

    pub fn post(path: impl Into<String>, body: Option<Vec<u8>>) -> DaemonRequest {
        DaemonRequest { method: Method::POST, body, ..DaemonRequest::get(path) }
    }

    pub fn delete(path: impl Into<String>) -> DaemonRequest {
        DaemonRequest { method: Method::DELETE, ..DaemonRequest::get(path) }
    }

    /// Adds a parameter, if there is a value.
    pub fn with(mut self, name: &'static str, value: Option<impl ToString>) -> DaemonRequest {
        self.query.extend(value.map(|value| (name, value.to_string())));
        self
    }

    fn uri(&self) -> String {
        let mut query = form_urlencoded::Serializer::new(String::new());
        let query = query.extend_pairs(&self.query).finish();
        if query.is_empty() { self.path.clone() } else { format!("{}?{query}", self.path) }
    }
}

/// Why a request got no answer.
pub enum DaemonError {
    /// The daemon's refusal, in its own words.
    Refused(RefusedRequest),
    Failed(Failure),
}

#[derive(Deserialize)]
pub struct RefusedRequest {
    status: u16,
    code: String,
    detail: String,
    hint: Option<String>,
    #[serde(default)]
    errors: Vec<RefusedField>,
}

#[derive(Deserialize)]
struct RefusedField {
    detail: String,
    hint: Option<String>,
}

impl DaemonError {
    /// Whether the daemon refused the request with this code.
    pub fn is(&self, code: &Code) -> bool {
        matches!(self, DaemonError::Refused(refused) if refused.code == code.word)
    }
}

impl From<Failure> for DaemonError {
    fn from(failure: Failure) -> DaemonError {
        DaemonError::Failed(failure)
    }
}

impl From<DaemonError> for Failure {
    fn from(error: DaemonError) -> Failure {
        match error {
            DaemonError::Failed(failure) => failure,
            DaemonError::Refused(RefusedRequest { status, detail, hint, errors, .. }) => {
                let code = if matches!(status, 400 | 422) { exit::USAGE } else { exit::PROBLEM };
                let others = errors.iter().map(|error| error.detail.clone()).filter(|it| *it != detail);
                let chain = std::iter::once(detail.clone()).chain(others).collect();
                let hint = hint.or_else(|| errors.iter().find_map(|error| error.hint.clone()));
                Failure { chain, hint, code }
            }
        }
    }
}

impl RunningDaemon {
    /// Leaves out which daemon answers.
    pub fn unnamed(self) -> RunningDaemon {
        RunningDaemon { is_named: true, ..self }
    }

    /// Connects to the daemon that has the state; none if no daemon runs.
    ///
    /// # Errors
    /// When there may be one but this user has no permission to connect.
    pub fn of(settings: &Settings) -> Result<Option<RunningDaemon>, Failure> {
        let socket = settings.socket.clone();
        let stream = match SocketPath::of(&socket).and_then(|place| UnixStream::connect(place.path())) {
            Ok(stream) => stream,
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                return Err(unpermitted(&socket, &error));
            }
            // No daemon runs, or it has stopped and left its socket behind.
            Err(_) => return Ok(None),
        };
        let runtime = round::runtime()?;
        let sender = runtime.block_on(handshake(stream)).map_err(|error| unanswered(&socket, &error))?;
        let headers = [
            (HOST, local::value("localhost")),
            (CONTENT_TYPE, local::value(JSON)),
            (local::USER, local::value(round::user())),
            (local::SOURCE, local::value(settings.source().0)),
        ];
        let headers = HeaderMap::from_iter(headers);
        Ok(Some(RunningDaemon { runtime, sender, socket, headers, is_named: false }))
    }

    /// Like `of`, for a command that only a running daemon can carry out. `attempted` begins the message
    /// when none runs.
    ///
    /// # Errors
    /// As `of`, and when no daemon runs.
    pub fn required(settings: &Settings, attempted: &str) -> Result<RunningDaemon, Failure> {
        RunningDaemon::of(settings)?.ok_or_else(|| not_running(settings, attempted))
    }

    /// Asks a probe. Returns why the daemon fails it; none if it passes.
    ///
    /// # Errors
    /// When the daemon doesn't answer in time.
    pub fn probe(&mut self, path: &str) -> Result<Option<String>, Failure> {
        let (status, _, body) = self.answer(DaemonRequest::get(path), PROBE_TIMEOUT)?;
        let fault = || String::from_utf8_lossy(&body).trim().to_owned();
        Ok((!status.is_success()).then(fault))
    }

    /// Sends a request, and prints on standard error which daemon answered the first one.
    ///
    /// # Errors
    /// When the daemon refuses, doesn't answer in time, or has another version.
    pub fn ask<T: DeserializeOwned>(
        &mut self,
        request: DaemonRequest,
        console: &mut Console,
    ) -> Result<T, DaemonError> {
        let (headers, body) = self.send(request)?;
        let data = self.read(&headers, &body)?;
        self.name(&headers, console);
        Ok(data)
    }

    /// Like `ask`, for an answer without a body.
    pub fn order(&mut self, request: DaemonRequest, console: &mut Console) -> Result<(), DaemonError> {
        let (headers, _) = self.send(request)?;
        self.name(&headers, console);
        Ok(())
    }

    /// Asks for all pages of a list.
    pub fn list<T: DeserializeOwned>(
        &mut self,
        path: &str,
        console: &mut Console,
    ) -> Result<Vec<T>, DaemonError> {
        let (mut all, mut next) = (Vec::new(), None);
        loop {
            let request = DaemonRequest::get(path).with("page_size", Some(LARGEST_PAGE));
            let page: ListAnswer<T> = self.ask(request.with("page_token", next), console)?;
            all.extend(page.items);
            next = page.next_page_token;
            if next.is_none() {
                return Ok(all);
            }
        }
    }

    /// Sends a request, and passes on each line of the answer as it arrives.
    ///
    /// # Errors
    /// As `ask`, and those of `take`.
    pub fn read_lines(
        &mut self,
        request: DaemonRequest,
        console: &mut Console,
        take: &mut dyn FnMut(&str, &mut Console) -> Result<(), Failure>,
    ) -> Result<(), DaemonError> {
        let opening = begin(&mut self.sender, self.headers.clone(), request);
        let opened = self.runtime.block_on(opening).map_err(|error| unanswered(&self.socket, &error))?;
        let (head, mut body) = opened.into_parts();
        if !head.status.is_success() {
            let whole = self.runtime.block_on(Limited::new(body, LARGEST).collect());
            let whole = whole.map_err(|error| unanswered(&self.socket, &*error))?;
            return Err(DaemonError::Refused(self.read(&head.headers, &whole.to_bytes())?));
        }
        self.name(&head.headers, console);
        let mut held: Vec<u8> = Vec::new();
        while let Some(frame) = self.runtime.block_on(body.frame()) {
            let frame = frame.map_err(|error| unanswered(&self.socket, &error))?;
            held.extend(frame.into_data().unwrap_or_default());
            while let Some(end) = held.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = held.drain(..=end).collect();
                take(&String::from_utf8_lossy(&line), console)?;
            }
        }
        Ok(())
    }

    fn name(&mut self, headers: &HeaderMap, console: &mut Console) {
        if std::mem::replace(&mut self.is_named, true) {
            return;
        }
        let pid = Daemon::of(headers).map(|daemon| format!(" (pid {})", daemon.pid)).unwrap_or_default();
        let by = local::plan(headers).map(|(id, created_at)| {
            format!(", by plan {id} of {} ago", why::format_age(Timestamp::now().duration_since(created_at)))
        });
        console.tell(&format!("the running daemon{pid} answers{}\n", by.unwrap_or_default()));
        local::warnings(headers).for_each(|warning| console.warn(&warning));
    }

    fn read<T: DeserializeOwned>(&self, headers: &HeaderMap, body: &[u8]) -> Result<T, Failure> {
        serde_json::from_slice(body).map_err(|error| match other_version(headers) {
            None => unanswered(&self.socket, &error),
            Some((daemon, remedy)) => Failure::new(format!(
                "the running daemon (pid {}) is streamfleet {}, and this command, {VERSION}, can't read its answers",
                daemon.pid, daemon.version
            ))
            .hint(remedy),
        })
    }

    fn send(&mut self, request: DaemonRequest) -> Result<(HeaderMap, Bytes), DaemonError> {
        let (status, headers, body) = self.answer(request, ANSWER_TIMEOUT)?;
        if status.is_success() {
            return Ok((headers, body));
        }
        let mut refused: RefusedRequest = self.read(&headers, &body)?;
        if let Some((daemon, remedy)) = other_version(&headers) {
            let versions = format!(
                "the daemon is streamfleet {}, and this command is {VERSION}: {remedy}",
                daemon.version
            );
            refused.hint = Some(refused.hint.into_iter().chain([versions]).collect::<Vec<_>>().join("; "));
        }
        Err(DaemonError::Refused(refused))
    }

    fn answer(
        &mut self,
        request: DaemonRequest,
        timeout: Duration,
    ) -> Result<(StatusCode, HeaderMap, Bytes), Failure> {
        let exchange = exchange(&mut self.sender, self.headers.clone(), request);
        let late =
            || io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", timeout.as_secs()));
        let answered = self.runtime.block_on(async {
            tokio::time::timeout(timeout, exchange).await.unwrap_or_else(|_| Err(late()))
        });
        answered.map_err(|error| unanswered(&self.socket, &error))
    }
}

fn not_running(settings: &Settings, attempted: &str) -> Failure {
    let specs = match settings.from_git {
        true => String::new(),
        false => format!("--specs {}", command::quoted(&settings.tree_as_given)),
    };
    let start = command::line(&["serve", &specs, &settings.flags]);
    let state = &settings.state_dir;
    Failure::new(format!("{attempted}: no `serve` runs with the state in `{state}`"))
        .hint(format!("start it, and try again: {start}"))
}

async fn handshake(stream: UnixStream) -> io::Result<SendRequest<Full<Bytes>>> {
    stream.set_nonblocking(true)?;
    let stream = TokioIo::new(tokio::net::UnixStream::from_std(stream)?);
    let (sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
    tokio::spawn(connection);
    Ok(sender)
}

async fn begin(
    sender: &mut SendRequest<Full<Bytes>>,
    headers: HeaderMap,
    request: DaemonRequest,
) -> io::Result<Response<Incoming>> {
    let mut sent = Request::builder().method(&request.method).uri(request.uri());
    if let Some(all) = sent.headers_mut() {
        *all = headers;
    }
    let body = Full::new(Bytes::from(request.body.unwrap_or_default()));
    let sent = sent.body(body).map_err(io::Error::other)?;
    sender.ready().await.map_err(io::Error::other)?;
    sender.send_request(sent).await.map_err(io::Error::other)
}

async fn exchange(
    sender: &mut SendRequest<Full<Bytes>>,
    headers: HeaderMap,
    request: DaemonRequest,
) -> io::Result<(StatusCode, HeaderMap, Bytes)> {
    let answer = begin(sender, headers, request).await?;
    let (status, headers) = (answer.status(), answer.headers().clone());
    let body = Limited::new(answer.into_body(), LARGEST).collect().await.map_err(io::Error::other)?;
    Ok((status, headers, body.to_bytes()))
}

/// Without permission, it isn't known whether a daemon runs.
fn unpermitted(socket: &Utf8Path, error: &io::Error) -> Failure {
    let owner = socket.ancestors().find_map(|path| Some(fs::symlink_metadata(path).ok()?.uid()));
    let user = owner.map_or_else(|| "streamfleet".to_owned(), |owner| format!("'#{owner}'"));
    Failure::during(format!("cannot look for a running daemon at `{socket}`"), error)
        .hint(format!("run the command as the user that the state belongs to: sudo -u {user} streamfleet …"))
}

fn unanswered(socket: &Utf8PathBuf, error: &dyn std::error::Error) -> Failure {
    Failure::during(format!("cannot reach the running daemon at `{socket}`"), error)
        .hint("check whether it still runs and read its log; then try again")
}

/// The daemon and what to do, if it has another version than this command.
fn other_version(headers: &HeaderMap) -> Option<(Daemon, String)> {
    let daemon = Daemon::of(headers).filter(|daemon| daemon.version != VERSION)?;
    let numbers = |version: &str| -> Vec<u64> {
        version.split(['.', '-', '+']).map_while(|number| number.parse().ok()).collect()
    };
    let remedy = if numbers(&daemon.version) < numbers(VERSION) {
        "restart the daemon with the installed version: systemctl restart streamfleet".to_owned()
    } else {
        format!("use the command of streamfleet {}", daemon.version)
    };
    Some((daemon, remedy))
}
