//! The way to a server, which kills a process at one of its messages.

use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::process::Child;
use std::sync::{Arc, Mutex};
use std::thread;

use super::control_plane::until;

/// When to kill: at this message, before the server has it or after the server has answered.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Moment {
    pub message: usize,
    pub is_answered: bool,
}

#[derive(Default)]
struct Guard {
    seen: usize,
    moment: Option<Moment>,
    process: Option<Child>,
}

pub struct Door {
    pub port: u16,
    guard: Arc<Mutex<Guard>>,
}

impl Door {
    /// Before a DNS server.
    pub fn before(server: SocketAddr) -> Door {
        Self::open(move |stream, guard| pass(stream, server, guard))
    }

    /// Before a server of anything. Each part of what it answers is a message.
    pub fn before_stream(server: SocketAddr) -> Door {
        Self::open(move |stream, guard| pass_stream(stream, server, guard))
    }

    fn open(pass: impl Fn(TcpStream, &Mutex<Guard>) -> Option<()> + Clone + Send + 'static) -> Door {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let guard = Arc::<Mutex<Guard>>::default();
        let shared = Arc::clone(&guard);
        thread::spawn(move || {
            for stream in listener.incoming().flatten() {
                let (guard, pass) = (Arc::clone(&shared), pass.clone());
                thread::spawn(move || pass(stream, &guard));
            }
        });
        Door { port, guard }
    }

    /// Lets a process go on until the moment, and returns whether it was killed then.
    pub fn kills(&self, start: impl FnOnce() -> Child, moment: Moment) -> bool {
        {
            let mut guard = self.guard.lock().unwrap();
            // The process has sent nothing yet.
            *guard = Guard { seen: 0, moment: Some(moment), process: Some(start()) };
        }
        let status = until("the process ends", || {
            self.guard.lock().unwrap().process.as_mut().unwrap().try_wait().unwrap()
        });
        *self.guard.lock().unwrap() = Guard::default();
        status.code().is_none()
    }
}

fn pass(mut client: TcpStream, server: SocketAddr, guard: &Mutex<Guard>) -> Option<()> {
    let mut server = TcpStream::connect(server).ok()?;
    loop {
        let message = read(&mut client).ok()?;
        strike(guard, false)?;
        server.write_all(&message).ok()?;
        let answer = read(&mut server).ok()?;
        strike(guard, true)?;
        client.write_all(&answer).ok()?;
    }
}

fn pass_stream(mut client: TcpStream, server: SocketAddr, guard: &Mutex<Guard>) -> Option<()> {
    let mut server = TcpStream::connect(server).ok()?;
    let (mut asks, mut asked) = (client.try_clone().ok()?, server.try_clone().ok()?);
    thread::spawn(move || {
        let _ = io::copy(&mut asks, &mut asked);
        let _ = asked.shutdown(Shutdown::Write);
    });
    let mut part = vec![0; 64 << 10];
    loop {
        let length = server.read(&mut part).ok().filter(|length| *length > 0)?;
        strike(guard, false)?;
        client.write_all(&part[..length]).ok()?;
    }
}

/// `None` if this was the moment.
fn strike(guard: &Mutex<Guard>, is_answered: bool) -> Option<()> {
    let mut guard = guard.lock().unwrap();
    if !is_answered {
        guard.seen += 1;
    }
    let now = Moment { message: guard.seen, is_answered };
    if guard.moment != Some(now) {
        return Some(());
    }
    guard.process.as_mut()?.kill().unwrap();
    None
}

/// A message with its length.
fn read(stream: &mut TcpStream) -> io::Result<Vec<u8>> {
    let mut length = [0; 2];
    stream.read_exact(&mut length)?;
    let mut message = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut message)?;
    Ok([&length[..], &message].concat())
}
