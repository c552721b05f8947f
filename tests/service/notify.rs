//! The service manager's side of sd_notify(3).

use std::collections::BTreeMap;
use std::os::linux::net::SocketAddrExt as _;
use std::os::unix::net::{SocketAddr, UnixDatagram};
use std::time::Instant;

use super::quiet;
use crate::support::control_plane::PATIENCE;
use crate::support::serve::Serve;

struct Manager(UnixDatagram);

impl Manager {
    fn listening(address: &SocketAddr) -> Self {
        let socket = UnixDatagram::bind_addr(address).unwrap();
        socket.set_read_timeout(Some(PATIENCE)).unwrap();
        Self(socket)
    }

    fn hears(&self) -> BTreeMap<String, String> {
        let mut bytes = [0; 4096];
        let length = self.0.recv(&mut bytes).expect("it is told something");
        let text = std::str::from_utf8(&bytes[..length]).unwrap();
        let pair = |line: &str| line.split_once('=').map(|(name, value)| (name.to_owned(), value.to_owned()));
        text.lines().map(|line| pair(line).unwrap()).collect()
    }

    /// Waits for a message with this value, and returns all of it.
    #[track_caller]
    fn waits_for(&self, name: &str, value: &str) -> BTreeMap<String, String> {
        let start = Instant::now();
        loop {
            let heard = self.hears();
            if heard.get(name).is_some_and(|heard| heard == value) {
                return heard;
            }
            assert!(start.elapsed() < PATIENCE, "{name}={value} never came, but {heard:?}");
        }
    }
}

#[test]
fn the_service_manager_is_told_when_it_is_ready_how_it_is_and_that_it_stops() {
    let tree = quiet();
    let path = tree.beside("notify");
    let manager = Manager::listening(&SocketAddr::from_pathname(&path).unwrap());
    let serve = Serve::start_with(&tree, "serve --specs tree", &[("NOTIFY_SOCKET", path.to_str().unwrap())]);
    let first = manager.hears();
    assert_eq!(first.get("READY").map(String::as_str), Some("1"), "{first:?}");
    assert_eq!(first["STATUS"], "the specs have not been read yet");
    manager.waits_for("STATUS", "1 fleet, 2 clusters, 0 waiting");

    tree.write("acme/clusters/orders.yaml", "apiVersion: streamfleet/v1\nkind: Cluster\n");
    let told = || {
        let heard = manager.hears();
        heard.get("STATUS").filter(|status| status.contains("problems in the specs")).cloned()
    };
    let status = serve.until("mistakes are told", told);
    assert!(status.starts_with("1 fleet, 2 clusters, "), "{status}");

    serve.signal("HUP");
    let reloading = manager.waits_for("RELOADING", "1");
    assert!(reloading["MONOTONIC_USEC"].parse::<u64>().unwrap() > 0);
    manager.waits_for("READY", "1");

    serve.signal("TERM");
    manager.waits_for("STOPPING", "1");
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn a_socket_without_a_file_is_spoken_to_and_the_watchdog_fed_while_the_loop_turns() {
    let tree = quiet();
    let name = format!("streamfleet-test-{}", std::process::id());
    let manager = Manager::listening(&SocketAddr::from_abstract_name(&name).unwrap());
    let socket = format!("@{name}");
    let variables = [("NOTIFY_SOCKET", socket.as_str()), ("WATCHDOG_USEC", "400000")];
    let serve = Serve::start_with(&tree, "serve --specs tree", &variables);
    manager.waits_for("READY", "1");
    for _ in 0..5 {
        manager.waits_for("WATCHDOG", "1");
    }
    // A stopped process sends no more watchdog messages, and a service manager would kill it.
    serve.signal("STOP");
    manager.0.set_nonblocking(true).unwrap();
    while manager.0.recv(&mut [0; 4096]).is_ok() {}
    manager.0.set_nonblocking(false).unwrap();
    serve.signal("CONT");
    manager.waits_for("WATCHDOG", "1");
}

#[test]
fn a_name_that_is_no_sockets_stops_nothing() {
    let tree = quiet();
    let long = "x".repeat(200);
    let serve = Serve::start_with(&tree, "serve --specs tree", &[("NOTIFY_SOCKET", &long)]);
    serve.says(&["NOTIFY_SOCKET is not the path of a socket, so the service manager gets no notifications"]);
    serve.says(&["done", "cluster acme/orders"]);
    assert_eq!(serve.stop(), Some(0));
    let nobody = tree.beside("nobody");
    let serve =
        Serve::start_with(&tree, "serve --specs tree", &[("NOTIFY_SOCKET", nobody.to_str().unwrap())]);
    serve.says(&["cannot notify the service manager"]);
    serve.says(&["looked="]);
    assert_eq!(serve.stop(), Some(0));
}
