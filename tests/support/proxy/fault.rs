//! What can happen to a call, and to which.

use std::io::{self, Write as _};
use std::thread::sleep;
use std::time::Duration;

use serde_json::Value;

use super::attack::{Attack, attack};
use super::tls::{ToClient, ToServer, reset};
use super::wire::Message;
use super::{Call, Shared, forward};

/// What stands in no path.
const NOTHING: &str = " ";

/// What happens to a call.
#[derive(Debug, Clone)]
pub enum Fault {
    /// It takes that much longer.
    Late(Duration),
    /// The server never sees it, and this is the answer: a head and a body.
    Answer(String),
    /// The server never sees it, and the connection is reset.
    Reset,
    /// The server never sees it, and no answer ever comes.
    Silence,
    /// The server answers, and the client hears a reset instead.
    Lost,
    /// The server answers, and the connection is reset in the middle of that.
    ResetInBody,
    /// Half of the answer comes, with the length of the whole.
    Cut,
    /// Half of the answer comes, in chunks without an end.
    CutChunked,
    /// Half of the answer comes, with the length of that half.
    Half,
    /// The answer comes a byte a second.
    Trickle,
    /// More comes than anybody reads: 65 MiB.
    Huge,
    /// The server never sees it, and harm is done by the answer.
    Attack(Attack),
    /// The answer is another one.
    Altered(fn(&mut Value)),
    /// The call stops there until everything is let go; then its connection ends.
    Hold(Side),
}

/// On which side of the server a call is held.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Side {
    /// The server hasn't seen it.
    Before,
    /// The server has answered, and the client doesn't know.
    After,
}

/// Which calls something happens to: those of a method with some text in their paths, from the first of these on. Calls that
/// are made at the same time come in no certain order, so that only what all of them have in common tells them apart.
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
    /// It happens to every call.
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

    /// It happens to calls with this method, and this text in the path, only.
    pub fn on(self, method: &'static str, path: &'static str) -> Rule {
        Rule { method: Some(method), path, ..self }
    }

    /// It happens to calls with this text in the path only.
    pub fn to(self, path: &'static str) -> Rule {
        Rule { path, ..self }
    }

    /// It happens to no call with this text in the path.
    pub fn but(self, spared: &'static str) -> Rule {
        Rule { spared, ..self }
    }

    /// It happens to calls only that change something on the server, or only to those that don't.
    pub fn changing(self, changing: bool) -> Rule {
        Rule { changing: Some(changing), ..self }
    }

    /// It happens from the nth such call on, of which 1 is the first.
    pub fn from(self, first: usize) -> Rule {
        Rule { first, ..self }
    }

    /// It happens that many times, and then no more.
    pub fn times(self, times: usize) -> Rule {
        Rule { times, ..self }
    }

    /// Once it has happened, it happens to every call.
    pub fn and_all_after(self) -> Rule {
        Rule { all_after: true, ..self }
    }

    /// Counts a call, and gives what happens to it.
    pub(super) fn strikes(&mut self, call: &Call, path: &str) -> Option<Fault> {
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
    /// A plain answer.
    pub fn answer(status: &str, headers: &str, body: &str) -> Fault {
        Fault::Answer(format!("HTTP/1.1 {status}\r\n{headers}content-length: {}\r\n\r\n{body}", body.len()))
    }

    /// An answer of the API server's own, when it refuses.
    pub fn refusal(code: u16, reason: &str, headers: &str) -> Fault {
        // What a role lacks is told with the user that lacks it.
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

    /// Lets it happen. An error ends the connection.
    pub(super) fn strike(
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
