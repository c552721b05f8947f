//! The data plane of a Gateway. It passes a TLS connection on, unread, to the Service that a TLSRoute names for its host.

use std::collections::BTreeMap;
use std::io::{self, Read as _, Write as _};
use std::net::{Shutdown, SocketAddr, TcpListener, TcpStream};
use std::sync::{Arc, Mutex};
use std::thread;

use rustls::server::Acceptor;
use serde_json::Value;

use super::control_plane::ControlPlane;

pub struct Gateway {
    pub address: SocketAddr,
    /// The Service of each host, as `NAMESPACE/NAME:PORT`.
    pub routes: BTreeMap<String, String>,
    /// The addresses of the Services' pods.
    pods: Arc<Mutex<BTreeMap<String, SocketAddr>>>,
}

impl Gateway {
    /// Serves the fleet's Gateway at the address in its status, but at a port of its own.
    pub fn start(plane: &ControlPlane) -> Gateway {
        let get = |words: &str| -> Value {
            serde_json::from_str(&plane.kubectl(&format!("get {words} --output=json"), "").expect(0).out)
                .unwrap()
        };
        let gateway = get("gateway kafka --namespace=streamfleet-gateway");
        let [listener] = gateway["spec"]["listeners"].as_array().unwrap().as_slice() else {
            panic!("{gateway}")
        };
        let mut routes = BTreeMap::new();
        for route in get("tlsroutes --all-namespaces")["items"].as_array().unwrap() {
            let namespace = route["metadata"]["namespace"].as_str().unwrap();
            let labels = &get(&format!("namespace {namespace}"))["metadata"]["labels"];
            assert!(is_allowed(listener, labels), "{listener} lets in no route of {namespace}");
            let parent = &route["spec"]["parentRefs"][0];
            assert_eq!(
                (&parent["namespace"], &parent["name"]),
                (&gateway["metadata"]["namespace"], &gateway["metadata"]["name"])
            );
            let service = &route["spec"]["rules"][0]["backendRefs"][0];
            let service = format!("{namespace}/{}:{}", service["name"].as_str().unwrap(), service["port"]);
            for host in route["spec"]["hostnames"].as_array().unwrap() {
                let host = host.as_str().unwrap();
                let (_, domain) = host.split_once('.').unwrap();
                assert_eq!(listener["hostname"], format!("*.{domain}"));
                assert_eq!(routes.insert(host.to_owned(), service.clone()), None, "{host}");
            }
        }
        let address = gateway["status"]["addresses"][0]["value"].as_str().unwrap();
        let server = TcpListener::bind((address, 0)).unwrap();
        let gateway = Gateway { address: server.local_addr().unwrap(), routes, pods: Arc::default() };
        let (routes, pods) = (gateway.routes.clone(), Arc::clone(&gateway.pods));
        thread::spawn(move || {
            for client in server.incoming().flatten() {
                let (routes, pods) = (routes.clone(), Arc::clone(&pods));
                // A connection ends when either side has ended it.
                thread::spawn(move || {
                    drop(pass(client, |host| pods.lock().unwrap().get(routes.get(host)?).copied()))
                });
            }
        });
        gateway
    }

    /// Says where the pod of a Service is.
    pub fn leads(&self, service: &str, pod: SocketAddr) {
        self.pods.lock().unwrap().insert(service.to_owned(), pod);
    }
}

/// Whether a listener accepts routes of a namespace with these labels.
fn is_allowed(listener: &Value, labels: &Value) -> bool {
    let selector = listener["allowedRoutes"]["namespaces"]["selector"].as_object().unwrap();
    assert_eq!(selector.keys().collect::<Vec<_>>(), ["matchLabels"]);
    selector["matchLabels"].as_object().unwrap().iter().all(|(label, value)| labels[label] == *value)
}

fn pass(mut client: TcpStream, find: impl Fn(&str) -> Option<SocketAddr>) -> io::Result<()> {
    let (mut hello, mut acceptor) = (Vec::new(), Acceptor::default());
    let host = loop {
        let mut part = [0; 4096];
        let length = client.read(&mut part)?;
        hello.extend_from_slice(&part[..length]);
        acceptor.read_tls(&mut &part[..length])?;
        if let Some(accepted) = acceptor.accept().map_err(|(why, _)| io::Error::other(why))? {
            break accepted.client_hello().server_name().map(str::to_owned);
        }
        if length == 0 {
            return Ok(());
        }
    };
    let Some(pod) = host.and_then(|host| find(&host)) else { return Ok(()) };
    let mut pod = TcpStream::connect(pod)?;
    pod.write_all(&hello)?;
    let (mut asks, mut asked) = (client.try_clone()?, pod.try_clone()?);
    thread::spawn(move || {
        let _ = io::copy(&mut asks, &mut asked);
        let _ = asked.shutdown(Shutdown::Write);
    });
    io::copy(&mut pod, &mut client)?;
    client.shutdown(Shutdown::Write)
}
