//! A pod that has only metrics. The API server reaches no pod at a loopback address, so each has one of its own from the
//! range for measurements (RFC 2544), which leads back to this host.

use std::io::{self, BufReader, Read as _, Write as _};
use std::net::{Ipv4Addr, TcpListener, TcpStream};
use std::process::Command;
use std::sync::atomic::{AtomicUsize, Ordering};
use std::sync::{Arc, Mutex};
use std::thread;
use std::time::Duration;

use serde_json::json;

use super::control_plane::ControlPlane;
use super::kubelet::pod;
use super::proxy::wire::read_head;
use super::skipped;

const RANGE: &str = "198.18.0.0/15";

#[derive(Clone)]
enum Says {
    Text(String),
    /// The answer never comes.
    Nothing,
    /// The answer never ends.
    Endless,
}

pub struct Exporter {
    address: Ipv4Addr,
    says: Arc<Mutex<Says>>,
    reads: Arc<AtomicUsize>,
}

impl Exporter {
    /// Leads the range to this host; whether that is so now.
    pub fn are_possible() -> bool {
        let mut route = Command::new("ip");
        route.args(["route", "replace", "local", RANGE, "dev", "lo"]);
        let is_there = route.status().is_ok_and(|status| status.success());
        if !is_there {
            skipped(&format!("pods' metrics take root and iproute2, for: ip route add local {RANGE} dev lo"));
        }
        is_there
    }

    /// Starts one with this text.
    pub fn start(text: &str) -> Exporter {
        let (address, listener) = listener();
        let says = Arc::new(Mutex::new(Says::Text(text.to_owned())));
        let reads = Arc::new(AtomicUsize::new(0));
        let (said, counted) = (Arc::clone(&says), Arc::clone(&reads));
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let says = said.lock().unwrap().clone();
                counted.fetch_add(1, Ordering::Relaxed);
                // The API server closes the connection when it has waited for long enough.
                thread::spawn(move || drop(answer(socket, &says)));
            }
        });
        Exporter { address, says, reads }
    }

    pub fn says(&self, text: &str) {
        *self.says.lock().unwrap() = Says::Text(text.to_owned());
    }

    pub fn hangs(&self) {
        *self.says.lock().unwrap() = Says::Nothing;
    }

    pub fn never_ends(&self) {
        *self.says.lock().unwrap() = Says::Endless;
    }

    /// How often it was read.
    pub fn reads(&self) -> usize {
        self.reads.load(Ordering::Relaxed)
    }

    /// Creates the pod of a broker or controller with its address.
    pub fn run(&self, plane: &ControlPlane, namespace: &str, cluster: &str, name: &str) {
        let labels = json!({"strimzi.io/cluster": cluster, "strimzi.io/component-type": "kafka"});
        plane.kubectl("create -f -", &pod(namespace, name, labels, None).to_string()).expect(0);
        let ip = self.address;
        let status = format!("{{\"status\":{{\"podIP\":\"{ip}\",\"podIPs\":[{{\"ip\":\"{ip}\"}}]}}}}");
        let patch =
            format!("patch pod {name} --namespace={namespace} --subresource=status --type=merge -p {status}");
        plane.kubectl(&patch, "").expect(0);
    }
}

/// A listener at the fixed port of metrics, on an address that no other test has.
fn listener() -> (Ipv4Addr, TcpListener) {
    loop {
        let [_, one, two, three] = fastrand::u32(..).to_be_bytes();
        let address = Ipv4Addr::new(198, 18 + one % 2, two, three);
        if let Ok(listener) = TcpListener::bind((address, 9404)) {
            return (address, listener);
        }
    }
}

fn answer(mut socket: TcpStream, says: &Says) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let Some(head) = read_head(&mut BufReader::new(socket.try_clone()?))? else { return Ok(()) };
    assert!(head.starts_with("GET /metrics HTTP/1.1\r\n"), "{head}");
    let begin =
        "HTTP/1.1 200 OK\r\nconnection: close\r\ncontent-type: text/plain; version=0.0.4; charset=utf-8\r\n";
    match says {
        Says::Text(text) => write!(socket, "{begin}content-length: {}\r\n\r\n{text}", text.len()),
        Says::Nothing => socket.read(&mut [0]).map(drop),
        Says::Endless => {
            write!(socket, "{begin}\r\n")?;
            // Long lines, so that a busy machine reads up to the limit of bytes before that of time.
            let line = format!("# {}\n", "x".repeat(8_000));
            loop {
                socket.write_all(line.as_bytes())?;
            }
        }
    }
}
