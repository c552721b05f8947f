//! Client of a running daemon, over its socket.

use std::cmp::Ordering;
use std::io::{self, ErrorKind};
use std::os::unix::net::UnixStream;
use std::time::Duration;

use camino::Utf8PathBuf;
use http_body_util::{BodyExt as _, Full, Limited};
use hyper::body::Bytes;
use hyper::client::conn::http1;
use hyper::header::HOST;
use hyper::{Method, Request, StatusCode};
use hyper_util::rt::TokioIo;
use jiff::Timestamp;
use serde::Deserialize;
use serde::de::DeserializeOwned;

use crate::api::answer::{CommandAnswer, CommandProblem, Daemon, PlanId, VERSION};
use crate::api::socket::SocketPath;
use crate::cli::console::Console;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::settings::Settings;
use crate::cli::{round, why};

const SOFTWARE: &str = env!("CARGO_PKG_VERSION");

/// The timeout of an answer. The daemon gives up before that.
const ANSWER_TIMEOUT: Duration = Duration::from_secs(200);

/// The largest answer, in bytes: the same as for a saved plan.
const LARGEST: usize = 1 << 30;

/// A connection to the daemon that has the state.
pub struct RunningDaemon {
    stream: UnixStream,
    socket: Utf8PathBuf,
    source: String,
}

pub struct DaemonRequest {
    method: Method,
    path: String,
    words: Vec<(&'static str, String)>,
    body: Vec<u8>,
}

impl DaemonRequest {
    pub fn get(path: &str, words: &[(&'static str, &str)]) -> DaemonRequest {
        let words = words.iter().map(|(name, value)| (*name, (*value).to_owned())).collect();
        DaemonRequest { method: Method::GET, path: path.to_owned(), words, body: Vec::new() }
    }

    pub fn post(path: &str, words: &[(&'static str, &str)], body: Vec<u8>) -> DaemonRequest {
        DaemonRequest { method: Method::POST, body, ..DaemonRequest::get(path, words) }
    }

    pub fn delete(path: &str, words: &[(&'static str, &str)]) -> DaemonRequest {
        DaemonRequest { method: Method::DELETE, ..DaemonRequest::get(path, words) }
    }

    /// Asks for the answer as of a time.
    pub fn at(mut self, at: Option<Timestamp>) -> DaemonRequest {
        self.words.extend(at.map(|at| ("at", at.to_string())));
        self
    }
}

/// The fields that answers of all versions have.
#[derive(Deserialize)]
struct Head {
    version: u32,
    daemon: Daemon,
}

impl RunningDaemon {
    /// Connects to the daemon that has the state; none if no daemon runs.
    ///
    /// # Errors
    /// When there may be one but this user has no permission to connect.
    pub fn of(settings: &Settings) -> Result<Option<RunningDaemon>, Failure> {
        let socket = settings.socket.clone();
        match SocketPath::of(&socket).and_then(|place| UnixStream::connect(place.path())) {
            Ok(stream) => Ok(Some(RunningDaemon { stream, source: settings.source().0, socket })),
            Err(error) if error.kind() == ErrorKind::PermissionDenied => {
                Err(Failure::during(format!("cannot reach the running daemon at `{socket}`"), &error)
                    .hint("run the command as the daemon's user: sudo -u streamfleet streamfleet …"))
            }
            // No daemon runs, or it has stopped and left its socket behind.
            Err(_) => Ok(None),
        }
    }

    /// Sends a request, and prints on standard error which daemon answered.
    ///
    /// # Errors
    /// When the daemon refuses, doesn't answer in time, or has another version.
    pub fn ask<T: DeserializeOwned>(
        self,
        question: DaemonRequest,
        console: &mut Console,
    ) -> Result<T, Failure> {
        let CommandAnswer { daemon, plan, warnings, data, .. } = self.answer(question)?;
        let by = plan.map(|PlanId { id, made_at }| {
            format!(", by plan {id} of {} ago", why::format_age(Timestamp::now().duration_since(made_at)))
        });
        console.tell(&format!("the running daemon (pid {}) answers{}\n", daemon.pid, by.unwrap_or_default()));
        warnings.iter().for_each(|warning| console.warn(warning));
        Ok(data)
    }

    pub fn answer<T: DeserializeOwned>(self, question: DaemonRequest) -> Result<CommandAnswer<T>, Failure> {
        let attempt = format!("cannot reach the running daemon at `{}`", self.socket);
        let failed = |error: &dyn std::error::Error| {
            Failure::during(attempt.clone(), error)
                .hint("check whether it still runs and read its log; then try again")
        };
        let (status, body) =
            round::runtime()?.block_on(self.exchange(question)).map_err(|error| failed(&error))?;
        let head: Head = serde_json::from_slice(&body).map_err(|error| failed(&error))?;
        if head.version != VERSION {
            return Err(other_version(&head));
        }
        if status.is_success() {
            return serde_json::from_slice(&body).map_err(|error| match head.daemon.software == SOFTWARE {
                true => failed(&error),
                false => other_version(&head),
            });
        }
        let CommandProblem { status, detail, hint, .. } =
            serde_json::from_slice(&body).map_err(|error| failed(&error))?;
        let code = if status == StatusCode::BAD_REQUEST.as_u16() { exit::USAGE } else { exit::PROBLEM };
        Err(Failure { chain: vec![detail], hint, code })
    }

    async fn exchange(self, question: DaemonRequest) -> io::Result<(StatusCode, Bytes)> {
        let RunningDaemon { stream, source, .. } = self;
        let DaemonRequest { method, path, words, body } = question;
        let words = form_urlencoded::Serializer::new(String::new())
            .append_pair("source", &source)
            .extend_pairs(words)
            .finish();
        let request = Request::builder()
            .method(method)
            .uri(format!("/commands{path}?{words}"))
            .header(HOST, "localhost");
        let request = request.body(Full::new(Bytes::from(body))).map_err(io::Error::other)?;
        stream.set_nonblocking(true)?;
        let stream = TokioIo::new(tokio::net::UnixStream::from_std(stream)?);
        let exchange = async {
            let (mut sender, connection) = http1::handshake(stream).await.map_err(io::Error::other)?;
            let connection = tokio::spawn(connection);
            let answer = sender.send_request(request).await.map_err(io::Error::other)?;
            let status = answer.status();
            let body = Limited::new(answer.into_body(), LARGEST).collect().await.map_err(io::Error::other)?;
            connection.abort();
            Ok((status, body.to_bytes()))
        };
        let late = || {
            io::Error::new(ErrorKind::TimedOut, format!("no answer within {} s", ANSWER_TIMEOUT.as_secs()))
        };
        tokio::time::timeout(ANSWER_TIMEOUT, exchange).await.unwrap_or_else(|_| Err(late()))
    }
}

/// Refuses the answer of another version, whose fields may mean something else.
fn other_version(Head { version, daemon: Daemon { pid, software } }: &Head) -> Failure {
    let failure = Failure::new(format!(
        "the running daemon (pid {pid}) is streamfleet {software}, and this command, {SOFTWARE}, can't read its answers"
    ));
    match version.cmp(&VERSION) {
        Ordering::Less => failure
            .hint("restart the daemon with the installed version: systemctl restart streamfleet"),
        Ordering::Equal => failure.hint(format!(
            "use the command of streamfleet {software}, or restart the daemon, so that both have the same version"
        )),
        Ordering::Greater => failure.hint(format!("use the command of streamfleet {software}")),
    }
}
