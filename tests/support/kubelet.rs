//! A kubelet that has only logs: the API server reads those of pods from it, over TLS, without knowing its certificate.

use std::collections::BTreeMap;
use std::io::{self, BufReader, Write};
use std::net::{TcpListener, TcpStream};
use std::sync::{Arc, Condvar, Mutex};
use std::thread;
use std::time::Duration;

use jiff::Timestamp;
use serde_json::{Value, json};

use super::control_plane::ControlPlane;
use super::proxy::tls::Authority;
use super::proxy::wire::read_head;

/// A container's log, and how often the container was restarted.
#[derive(Default)]
struct Log {
    lines: Vec<(Timestamp, Vec<u8>)>,
    restarts: usize,
}

#[derive(Default)]
struct Logs {
    of_pods: Mutex<BTreeMap<String, Log>>,
    changed: Condvar,
}

pub struct Kubelet {
    logs: Arc<Logs>,
    node: String,
}

impl Kubelet {
    /// Starts one, and registers it as a node.
    pub fn start(plane: &ControlPlane, node: &str) -> Kubelet {
        let listener = TcpListener::bind("127.0.0.1:0").unwrap();
        let port = listener.local_addr().unwrap().port();
        let (logs, authority) = (Arc::new(Logs::default()), Arc::new(Authority::new()));
        let served = Arc::clone(&logs);
        thread::spawn(move || {
            for socket in listener.incoming().flatten() {
                let (logs, authority) = (Arc::clone(&served), Arc::clone(&authority));
                // The API server may close a connection at any time.
                thread::spawn(move || drop(answer(&logs, &authority, socket)));
            }
        });
        let object = json!({
            "apiVersion": "v1",
            "kind": "Node",
            "metadata": {"name": node},
            "status": {
                "addresses": [{"type": "InternalIP", "address": "127.0.0.1"}],
                "daemonEndpoints": {"kubeletEndpoint": {"Port": port}},
            },
        });
        plane.kubectl("create -f -", &object.to_string()).expect(0);
        Kubelet { logs, node: node.to_owned() }
    }

    /// Creates the pod of a broker on its node.
    pub fn run(&self, plane: &ControlPlane, namespace: &str, cluster: &str, pod: &str) {
        let labels = json!({"strimzi.io/cluster": cluster, "strimzi.io/broker-role": "true"});
        let object = self::pod(namespace, pod, labels, Some(&self.node));
        plane.kubectl("create -f -", &object.to_string()).expect(0);
    }

    /// Adds a line to the log of a pod.
    pub fn log(&self, pod: &str, at: Timestamp, line: impl AsRef<[u8]>) {
        let mut logs = self.logs.of_pods.lock().unwrap();
        logs.entry(pod.to_owned()).or_default().lines.push((at, line.as_ref().to_owned()));
        self.logs.changed.notify_all();
    }

    /// Restarts a pod's container: the log that is read ends.
    pub fn restart(&self, pod: &str) {
        let mut logs = self.logs.of_pods.lock().unwrap();
        logs.entry(pod.to_owned()).or_default().restarts += 1;
        self.logs.changed.notify_all();
    }
}

/// A pod of Kafka that the pod security `restricted` admits.
pub fn pod(namespace: &str, name: &str, labels: Value, node: Option<&str>) -> Value {
    json!({
        "apiVersion": "v1",
        "kind": "Pod",
        "metadata": {"name": name, "namespace": namespace, "labels": labels},
        "spec": {
            "nodeName": node,
            "automountServiceAccountToken": false,
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": "kafka",
                "image": "example.com/none",
                "securityContext": {"allowPrivilegeEscalation": false, "capabilities": {"drop": ["ALL"]}},
            }],
        },
    })
}

/// The disks that it knows: of a broker, and of another's pod.
const DISKS: &str = "kubelet_volume_stats_available_bytes{namespace=\"kafka-acme--orders\",persistentvolumeclaim=\"data-0-orders-broker-0\"} 7\n\
    kubelet_volume_stats_capacity_bytes{namespace=\"kafka-acme--orders\",persistentvolumeclaim=\"data-0-orders-broker-0\"} 100\n\
    kubelet_volume_stats_available_bytes{namespace=\"other\",persistentvolumeclaim=\"postgres-0\"} 1\n\
    kubelet_running_pods 3\n";

/// Answers `GET /containerLogs/NAMESPACE/POD/CONTAINER` or `GET /metrics`, then closes the connection.
fn answer(logs: &Logs, authority: &Authority, socket: TcpStream) -> io::Result<()> {
    socket.set_read_timeout(Some(Duration::from_secs(60)))?;
    let mut client = BufReader::new(authority.accept(socket)?);
    let Some(head) = read_head(&mut client)? else { return Ok(()) };
    let target = head.split(' ').nth(1).unwrap_or_default();
    if target == "/metrics" {
        let is_known = head.to_ascii_lowercase().contains("\r\nauthorization: bearer ey");
        let (status, body) = if is_known { ("200 OK", DISKS) } else { ("401 Unauthorized", "") };
        let head =
            format!("HTTP/1.1 {status}\r\ncontent-type: text/plain; version=0.0.4\r\nconnection: close\r\n");
        let client = client.get_mut();
        write!(client, "{head}content-length: {}\r\n\r\n{body}", body.len())?;
        return client.flush();
    }
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let pod = path.split('/').nth(3).unwrap_or_default().to_owned();
    let parameter = |name: &str| {
        let mut pairs = form_urlencoded::parse(query.as_bytes());
        pairs.find_map(|(key, value)| (key == name).then(|| value.into_owned()))
    };
    let since: Option<Timestamp> = parameter("sinceTime").map(|at| at.parse().unwrap());
    let last: Option<usize> = parameter("tailLines").map(|lines| lines.parse().unwrap());
    let follows = parameter("follow").as_deref() == Some("true");
    assert_eq!(parameter("timestamps").as_deref(), Some("true"));
    let client = client.get_mut();
    client.write_all(b"HTTP/1.1 200 OK\r\ncontent-type: text/plain\r\ntransfer-encoding: chunked\r\n\r\n")?;
    let (restarts, mut sent) = {
        let of_pods = logs.of_pods.lock().unwrap();
        let log = of_pods.get(&pod);
        let begin = last.map_or(0, |last| log.map_or(0, |log| log.lines.len().saturating_sub(last)));
        (log.map_or(0, |log| log.restarts), begin)
    };
    loop {
        let (lines, is_over) = {
            let mut of_pods = logs.of_pods.lock().unwrap();
            loop {
                let nothing = Log::default();
                let log = of_pods.get(&pod).unwrap_or(&nothing);
                let is_over = !follows || log.restarts != restarts;
                if is_over || log.lines.len() > sent {
                    break (log.lines.get(sent..).unwrap_or_default().to_vec(), is_over);
                }
                of_pods = logs.changed.wait(of_pods).unwrap();
            }
        };
        sent += lines.len();
        for (at, line) in lines {
            if since.is_none_or(|since| at.as_second() >= since.as_second()) {
                let whole = [at.to_string().as_bytes(), b" ", &line, b"\n"].concat();
                write!(client, "{:x}\r\n", whole.len())?;
                client.write_all(&whole)?;
                client.write_all(b"\r\n")?;
            }
        }
        client.flush()?;
        if is_over {
            client.write_all(b"0\r\n\r\n")?;
            return client.flush();
        }
    }
}
