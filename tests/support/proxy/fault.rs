//! Faults, and the rules for which calls get them.

use std::io::{self, Write as _};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::attack::{Attack, attack};
use super::tls::{ToClient, ToServer, reset};
use super::wire::Message;
use super::{Call, Shared, forward};

/// Occurs in no path.
const NOTHING: &str = " ";

#[derive(Debug, Clone)]
pub enum Fault {
    Late(Duration),
    /// Answers with this head and body; the server never sees the call.
    Answer(String),
    /// Resets the connection; the server never sees the call.
    Reset,
    /// Never answers; the server never sees the call.
    Silence,
    /// The server answers, but the client gets a reset.
    Lost,
    /// Resets the connection in the middle of the server's answer.
    ResetInBody,
    /// Sends half of the answer with the length of the whole.
    Cut,
    /// Sends half of the answer in chunks without a last one.
    CutChunked,
    /// Sends half of the answer with the length of that half.
    Half,
    /// Sends the answer a byte per second.
    Trickle,
    /// Sends 65 MiB, more than any client reads.
    Huge,
    /// Attacks the client; the server never sees the call.
    Attack(Attack),
    Altered(fn(&mut Value)),
    /// Holds the call until the next release; then its connection ends.
    Hold(Side),
}

/// On which side of the server a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    Before,
    /// The server has answered, and the client hasn't read it.
    After,
}

/// Selects calls by method and path, from the first match on. Concurrent calls have no fixed order, so only
/// what they all share tells them apart.
#[derive(Debug, Clone)]
pub struct Rule {
    fault: Fault,
    method: Option<&'static str>,
    path: &'static str,
    spared: &'static str,
    changing: Option<bool>,
    first: usize,
    times: usize,
    all_after: bool,
    seen: usize,
}

impl Rule {
    pub fn always(fault: Fault) -> Rule {
        let (method, changing) = (None, None);
        Rule {
            fault,
            method,
            path: "",
            spared: NOTHING,
            changing,
            first: 1,
            times: usize::MAX,
            all_after: false,
            seen: 0,
        }
    }

    /// Limits the rule to this method, and paths with this text.
    pub fn on(self, method: &'static str, path: &'static str) -> Rule {
        Rule { method: Some(method), path, ..self }
    }

    pub fn to(self, path: &'static str) -> Rule {
        Rule { path, ..self }
    }

    pub fn except_path(self, spared: &'static str) -> Rule {
        Rule { spared, ..self }
    }

    /// Limits the rule to modifying calls, or to the others.
    pub fn changing(self, changing: bool) -> Rule {
        Rule { changing: Some(changing), ..self }
    }

    pub fn from(self, first: usize) -> Rule {
        Rule { first, ..self }
    }

    pub fn times(self, times: usize) -> Rule {
        Rule { times, ..self }
    }

    /// After its first application, the rule applies to every call.
    pub fn and_all_after(self) -> Rule {
        Rule { all_after: true, ..self }
    }

    /// Counts a call, and returns the fault for it.
    pub(super) fn fault_for_call(&mut self, call: &Call, path: &str) -> Option<Fault> {
        if self.all_after && self.seen >= self.first {
            return Some(self.fault.clone());
        }
        let is_other = self.method.is_some_and(|method| !call.text.starts_with(method))
            || self.changing.is_some_and(|changing| changing != call.changes);
        if is_other || !path.contains(self.path) || path.contains(self.spared) {
            return None;
        }
        self.seen += 1;
        let past = self.seen.checked_sub(self.first)?;
        (past < self.times).then(|| self.fault.clone())
    }
}

impl Fault {
    pub fn answer(status: &str, headers: &str, body: &str) -> Fault {
        Fault::Answer(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
    }

    /// A `Status` of the API server for a refusal.
    pub fn refusal(code: u16, reason: &str, headers: &str) -> Fault {
        // A 403 names the user.
        let message = if code == 403 { r#"User \"eu\" cannot do this"# } else { "injected" };
        let body = format!(
            r#"{{"kind":"Status","apiVersion":"v1","metadata":{{}},"status":"Failure","message":"{message}","reason":"{reason}","code":{code}}}"#
        );
        Fault::answer(
            &format!("{code} {reason}"),
            &format!("content-type: application/json\r\n{headers}"),
            &body,
        )
    }

    /// Applies the fault. An error ends the connection.
    pub(super) fn apply_fault(
        self,
        shared: &Shared,
        request: &Message,
        client: &mut ToClient,
        server: &mut ToServer,
    ) -> io::Result<()> {
        let over = || Err(io::ErrorKind::ConnectionReset.into());
        match &self {
            Fault::Late(time) => {
                sleep(*time);
                return forward(request, client, server);
            }
            Fault::Answer(text) => {
                client.get_mut().write_all(text.as_bytes())?;
                return client.get_mut().flush();
            }
            Fault::Huge => return huge(client),
            Fault::Attack(way) => return attack(*way, &shared.harmed, request.method_and_path().1, client),
            Fault::Reset => {
                reset(client);
                return over();
            }
            Fault::Silence => {
                shared.wait_for_release();
                return over();
            }
            Fault::Hold(Side::Before) => {
                shared.hold();
                return over();
            }
            _ => {}
        }
        request.write(server.get_mut())?;
        let mut answer = Message::read(server)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        let half = answer.body.len() / 2;
        let part = match self {
            Fault::Altered(alter) => {
                let mut value = serde_json::from_slice(&answer.body).unwrap_or_default();
                alter(&mut value);
                answer.body = value.to_string().into_bytes();
                return answer.write(client.get_mut());
            }
            Fault::Half => {
                answer.body.truncate(half);
                return answer.write(client.get_mut());
            }
            Fault::Hold(_) => {
                shared.hold();
                return over();
            }
            Fault::Trickle => return trickle(&answer, client),
            Fault::CutChunked => {
                let mut part = answer.head_with("transfer-encoding: chunked").into_bytes();
                part.extend(format!("{half:x}\r\n").into_bytes());
                part.extend(&answer.body[..half]);
                part.extend(b"\r\n");
                part
            }
            Fault::Lost => Vec::new(),
            _ => {
                let length = format!("content-length: {}", answer.body.len());
                let mut part = answer.head_with(&length).into_bytes();
                part.extend(&answer.body[..half]);
                part
            }
        };
        client.get_mut().write_all(&part)?;
        client.get_mut().flush()?;
        match self {
            Fault::Lost | Fault::ResetInBody => reset(client),
            _ => {
                client.get_mut().conn.send_close_notify();
                client.get_mut().flush()?;
            }
        }
        over()
    }
}

fn huge(client: &mut ToClient) -> io::Result<()> {
    let megabyte = vec![b' '; 1 << 20];
    client.get_mut().write_all(b"HTTP/1.1 200 OK\r\ncontent-type: application/json\r\n")?;
    client.get_mut().write_all(format!("content-length: {}\r\n\r\n", 65 << 20).as_bytes())?;
    for _ in 0..65 {
        client.get_mut().write_all(&megabyte)?;
    }
    client.get_mut().flush()
}

fn trickle(answer: &Message, client: &mut ToClient) -> io::Result<()> {
    let head = answer.head_with(&format!("content-length: {}", answer.body.len()));
    client.get_mut().write_all(head.as_bytes())?;
    for byte in &answer.body {
        client.get_mut().write_all(&[*byte])?;
        client.get_mut().flush()?;
        sleep(Duration::from_secs(1));
    }
    Ok(())
}
