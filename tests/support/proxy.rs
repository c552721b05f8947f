//! A proxy between a client and an API server, which does what networks and servers do on bad days. It ends the client's
//! TLS with an authority of its own and speaks HTTP/1.1 to both sides.

pub mod attack;
mod fault;
pub mod tls;
pub mod wire;

use std::io::{self, BufReader, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::thread;
use std::time::Duration;

use serde_json::Value;

use super::control_plane::ControlPlane;
use tls::{Authority, ToClient, ToServer, Upstream};
use wire::{Message, answer_has_body, read_head, relay_body};

pub use fault::{Fault, Rule, Side};

/// A proxy that runs until this is dropped.
pub struct Proxy {
    shared: Arc<Shared>,
    port: u16,
    kubeconfig: Value,
}

/// How the proxy meets who connects.
#[derive(Clone, Copy, PartialEq, Eq)]
pub enum Greeting {
    /// With the certificate that the kubeconfig's authority vouches for.
    Known,
    /// With one of another authority.
    Stranger,
    /// Not at all: the connection is taken, and nothing comes.
    Deaf,
}

/// A call that was made.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Call {
    /// Its method and path, without what was asked for beside that.
    pub text: String,
    /// Whether anything is another on the server after it.
    pub changes: bool,
}

impl Call {
    fn of(method: &str, path: &str) -> Call {
        let asks =
            method == "GET" || path.contains("dryRun=All") || path.ends_with("/selfsubjectaccessreviews");
        let text = format!("{method} {}", path.split('?').next().unwrap_or_default());
        Call { text, changes: !asks }
    }
}

struct Shared {
    upstream: Upstream,
    known: Authority,
    stranger: Authority,
    state: Mutex<State>,
    changed: Condvar,
    /// How many calls harm was done by.
    harmed: AtomicU64,
}

struct State {
    greeting: Greeting,
    rules: Vec<Rule>,
    calls: Vec<Call>,
    /// How many connections there are.
    open: usize,
    /// Whether a call is held.
    held: bool,
    /// Counts how often everything was let go.
    releases: u64,
    closed: bool,
}

impl Proxy {
    /// Starts one before a control plane.
    pub fn before(plane: &ControlPlane) -> Proxy {
        let kubeconfig: Value = serde_json::from_str(&plane.kubeconfig()).unwrap();
        let shared = Arc::new(Shared {
            upstream: Upstream::of(&kubeconfig),
            known: Authority::new(),
            stranger: Authority::new(),
            state: Mutex::new(State {
                greeting: Greeting::Known,
                rules: Vec::new(),
                calls: Vec::new(),
                open: 0,
                held: false,
                releases: 0,
                closed: false,
            }),
            changed: Condvar::new(),
            harmed: AtomicU64::new(0),
        });
        let listener = TcpListener::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let port = listener.local_addr().unwrap().port();
        let shared_with_all = Arc::clone(&shared);
        thread::spawn(move || {
            for socket in listener.incoming().map_while(Result::ok) {
                if shared_with_all.lock().closed {
                    return;
                }
                let shared = Arc::clone(&shared_with_all);
                shared.lock().open += 1;
                thread::spawn(move || {
                    // Whatever ends a connection is what a bad day brings.
                    drop(shared.serve(socket));
                    shared.lock().open -= 1;
                    shared.changed.notify_all();
                });
            }
        });
        Proxy { shared, port, kubeconfig }
    }

    /// A kubeconfig that leads through the proxy.
    pub fn kubeconfig(&self) -> String {
        let mut kubeconfig = self.kubeconfig.clone();
        let cluster = &mut kubeconfig["clusters"][0]["cluster"];
        cluster["server"] = format!("https://127.0.0.1:{}", self.port).into();
        cluster["certificate-authority-data"] = self.shared.known.certificate.clone().into();
        kubeconfig.to_string()
    }

    /// From now on, this happens.
    pub fn inject(&self, rule: Rule) {
        self.shared.lock().rules.push(rule);
    }

    /// How many calls were answered to do harm.
    pub fn harmed(&self) -> u64 {
        self.shared.harmed.load(Ordering::SeqCst)
    }

    /// From now on, who connects is met like this.
    pub fn greet(&self, greeting: Greeting) {
        self.shared.lock().greeting = greeting;
    }

    /// All is well again: nothing is injected any more, what was held is let go, and the calls are forgotten. Gives them.
    pub fn reset(&self) -> Vec<Call> {
        let mut state = self.shared.lock();
        state.greeting = Greeting::Known;
        state.rules.clear();
        state.held = false;
        state.releases += 1;
        self.shared.changed.notify_all();
        std::mem::take(&mut state.calls)
    }

    /// Waits until all have gone who were connected. What they had asked for is done by then, also for those who were killed.
    pub fn wait_until_quiet(&self) {
        drop(self.shared.changed.wait_while(self.shared.lock(), |state| state.open > 0).unwrap());
    }

    /// Waits until a call is held; not if something else comes about first.
    pub fn holds_unless(&self, mut over: impl FnMut() -> bool) -> bool {
        let mut state = self.shared.lock();
        while !state.held {
            if over() {
                return false;
            }
            state = self.shared.changed.wait_timeout(state, Duration::from_millis(2)).unwrap().0;
        }
        true
    }

    /// Asks the API server itself. Nothing is injected or counted.
    pub fn ask(&self, method: &str, path: &str, body: &Value) -> (u16, Value) {
        self.shared.upstream.ask(method, path, body).expect("the API server answers")
    }
}

impl Drop for Proxy {
    fn drop(&mut self) {
        self.reset();
        self.shared.lock().closed = true;
        // So that the listener looks.
        drop(TcpStream::connect((Ipv4Addr::LOCALHOST, self.port)));
    }
}

impl Shared {
    fn lock(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap()
    }

    /// Serves one connection to its end.
    fn serve(&self, socket: TcpStream) -> io::Result<()> {
        socket.set_nodelay(true)?;
        let greeting = self.lock().greeting;
        let authority = match greeting {
            Greeting::Known => &self.known,
            Greeting::Stranger => &self.stranger,
            Greeting::Deaf => {
                self.wait_for_release();
                return Ok(());
            }
        };
        let mut client = BufReader::new(authority.accept(socket)?);
        let mut server = None;
        while let Some(request) = Message::read(&mut client)? {
            let server = match &mut server {
                Some(server) => server,
                none => none.insert(self.upstream.connect()?),
            };
            match self.fault_of(&request) {
                None => forward(&request, &mut client, server)?,
                Some(fault) => fault.strike(self, &request, &mut client, server)?,
            }
        }
        Ok(())
    }

    /// Counts a call, and gives what happens to it.
    fn fault_of(&self, request: &Message) -> Option<Fault> {
        let mut state = self.lock();
        let (method, path) = request.method_and_path();
        let call = Call::of(method, path);
        // Every rule counts, also those that come second.
        let strikes: Vec<_> = state.rules.iter_mut().map(|rule| rule.strikes(&call, path)).collect();
        state.calls.push(call);
        strikes.into_iter().flatten().next()
    }

    /// Waits until the next time that everything is let go.
    fn wait_for_release(&self) {
        let state = self.lock();
        let before = state.releases;
        drop(self.changed.wait_while(state, |state| state.releases == before).unwrap());
    }

    /// Holds a call until everything is let go.
    fn hold(&self) {
        self.lock().held = true;
        self.changed.notify_all();
        self.wait_for_release();
    }
}

/// Passes a request on, and the answer back as it comes, so that a watch comes event by event.
fn forward(request: &Message, client: &mut ToClient, server: &mut ToServer) -> io::Result<()> {
    request.write(server.get_mut())?;
    let head = read_head(server)?.ok_or(io::ErrorKind::UnexpectedEof)?;
    client.get_mut().write_all(head.as_bytes())?;
    client.get_mut().flush()?;
    match answer_has_body(&head) {
        true => relay_body(&head, server, client.get_mut()),
        false => Ok(()),
    }
}
