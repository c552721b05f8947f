//! Route 53, played by the rules of its API reference (2013-04-01): the order and the pages of lists, batches of which all
//! or none is done, records that are deleted only with their values, signatures, and changes that take time to spread.

mod signature;
mod zone;

use std::collections::BTreeMap;
use std::io::{BufReader, Write as _};
use std::sync::{Arc, Mutex, MutexGuard};

use jiff::{SignedDuration, Timestamp};
use rustls::RootCertStore;
use rustls::pki_types::CertificateDer;
use rustls::pki_types::pem::PemObject as _;
use tempfile::TempDir;

use crate::probe::lies::serve;
use crate::probe::pki::Authority;
use crate::support::proxy::wire::Message;
use zone::{Refused, Zone};

/// The keys that it knows.
pub const KEY: &str = "AKIAEXAMPLEOFROUTE53";
pub const SECRET: &str = "a-secret-key-of-route-53-4711";

/// How often a change is asked for until all servers have it.
const LOOKS: u32 = 1;

pub struct Route53 {
    port: u16,
    pem: String,
    folder: TempDir,
    state: Arc<Mutex<State>>,
}

#[derive(Default)]
struct State {
    zones: BTreeMap<String, Zone>,
    /// The batches that were done, and how often each has been asked for.
    changes: BTreeMap<String, u32>,
    asked: Vec<String>,
    /// What somebody makes right after the next batch.
    next: Option<(String, &'static str, &'static str)>,
    /// What the next requests are answered with.
    refusals: Vec<(u16, &'static str)>,
    ahead: SignedDuration,
}

impl Route53 {
    /// It has the zone `example.test` with a record of somebody.
    pub fn start() -> Route53 {
        let authority = Authority::new("an authority for Route 53");
        let own = authority.server(&["localhost"]);
        let state = Arc::new(Mutex::new(State::default()));
        let shared = Arc::clone(&state);
        let port = serve(&own, move |stream| {
            let Some(request) = Message::read(&mut BufReader::new(&mut *stream))? else { return Ok(()) };
            let (status, date, body) = locked(&shared).answer(&request);
            let head =
                format!("HTTP/1.1 {status} -\r\ndate: {date}\r\nconnection: close\r\ncontent-type: text/xml");
            Message { head: format!("{head}\r\n\r\n"), body: body.into_bytes() }.write(stream)?;
            stream.conn.send_close_notify();
            stream.flush()
        });
        let folder = TempDir::new().unwrap();
        std::fs::write(folder.path().join("authority.pem"), &authority.pem).unwrap();
        let route53 = Route53 { port, pem: authority.pem, folder, state };
        route53.add_zone("example.test", false);
        route53.set("theirs.kafka.example.test", "A", &["192.0.2.99"]);
        route53
    }

    pub fn url(&self) -> String {
        format!("https://localhost:{}", self.port)
    }

    /// The file with the certificate of its authority.
    pub fn authority(&self) -> String {
        self.folder.path().join("authority.pem").display().to_string()
    }

    pub fn roots(&self) -> RootCertStore {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(self.pem.as_bytes()).unwrap()).unwrap();
        roots
    }

    pub fn add_zone(&self, name: &str, is_private: bool) {
        let mut state = self.state();
        let id = format!("Z{:04}", state.zones.len());
        state.zones.insert(id, Zone::new(name, is_private));
    }

    /// What somebody does by hand.
    pub fn set(&self, name: &str, kind: &str, values: &[&str]) {
        self.state().first().put(name, kind, values);
    }

    /// A record that leads to a load balancer of AWS.
    pub fn lead(&self, name: &str, target: &str) {
        self.state().first().lead(name, target);
    }

    /// One of several records of a name.
    pub fn route(&self, name: &str, kind: &str, identifier: &str, value: &str) {
        self.state().first().route(name, kind, identifier, value);
    }

    pub fn remove(&self, name: &str, kind: &str) {
        self.state().first().take(name, kind);
    }

    pub fn answers(&self, name: &str, kind: &str) -> Vec<String> {
        self.state().first().values(name, kind)
    }

    /// The number of batches that were done.
    pub fn serial(&self) -> usize {
        self.state().changes.len()
    }

    /// The requests since the last call.
    pub fn asked(&self) -> Vec<String> {
        std::mem::take(&mut self.state().asked)
    }

    pub fn make_after_next_change(&self, name: &str, kind: &'static str, value: &'static str) {
        self.state().next = Some((name.to_owned(), kind, value));
    }

    pub fn refuse(&self, times: usize, status: u16, code: &'static str) {
        self.state().refusals = vec![(status, code); times];
    }

    pub fn set_clock_ahead(&self, ahead: SignedDuration) {
        self.state().ahead = ahead;
    }

    fn state(&self) -> MutexGuard<'_, State> {
        locked(&self.state)
    }
}

fn locked(state: &Mutex<State>) -> MutexGuard<'_, State> {
    state.lock().unwrap()
}

impl State {
    fn first(&mut self) -> &mut Zone {
        self.zones.values_mut().next().unwrap()
    }

    fn answer(&mut self, request: &Message) -> (u16, String, String) {
        let now = Timestamp::now() + self.ahead;
        let (method, target) = request.method_and_path();
        self.asked.push(format!("{method} {target}"));
        let date = now.strftime("%a, %d %b %Y %H:%M:%S GMT").to_string();
        let answered = match self.refusals.pop() {
            Some((status, code)) => Err(Refused::new(status, code, "Rate exceeded")),
            None => signature::check(request, now).and_then(|()| self.act(method, target, &request.body)),
        };
        match answered {
            Ok(body) => (200, date, body),
            Err(refused) => (refused.status, date, refused.document()),
        }
    }

    fn act(&mut self, method: &str, target: &str, body: &[u8]) -> Result<String, Refused> {
        let (path, query) = target.split_once('?').unwrap_or((target, ""));
        let query: BTreeMap<String, String> =
            form_urlencoded::parse(query.as_bytes()).map(|(key, value)| (key.into(), value.into())).collect();
        let parts: Vec<&str> = path.split('/').skip(1).collect();
        match (method, parts.as_slice()) {
            ("GET", ["2013-04-01", "hostedzonesbyname"]) => Ok(self.list_zones(&query["dnsname"])),
            ("GET", ["2013-04-01", "hostedzone", id, "rrset"]) => Ok(self.zone(id)?.list(&query)),
            ("POST", ["2013-04-01", "hostedzone", id, "rrset"]) => {
                self.zone(id)?.change(std::str::from_utf8(body).unwrap())?;
                if let Some((name, kind, value)) = self.next.take() {
                    self.first().put(&name, kind, &[value]);
                }
                let change = format!("C{:04}", self.changes.len());
                self.changes.insert(change.clone(), 0);
                Ok(of_change(&change, false))
            }
            ("GET", ["2013-04-01", "change", id]) => {
                let looks = self.changes.get_mut(*id).ok_or(Refused::new(404, "NoSuchChange", ""))?;
                *looks += 1;
                Ok(of_change(id, *looks > LOOKS))
            }
            _ => Err(Refused::new(400, "InvalidInput", "There is no such action")),
        }
    }

    fn zone(&mut self, id: &str) -> Result<&mut Zone, Refused> {
        let missing =
            || Refused::new(404, "NoSuchHostedZone", &format!("No hosted zone found with ID: {id}"));
        self.zones.get_mut(id).ok_or_else(missing)
    }

    /// The zones from a name on, by name.
    fn list_zones(&self, from: &str) -> String {
        let from = zone::sort_key(from);
        let mut listed: Vec<_> = self.zones.iter().filter(|(_, zone)| zone.key() >= from).collect();
        listed.sort_by_key(|(_, zone)| zone.key());
        let zones = listed.into_iter().map(|(id, zone)| {
            format!(
                "<HostedZone><Id>/hostedzone/{id}</Id><Name>{}.</Name><CallerReference>a</CallerReference><Config>\
                 <PrivateZone>{}</PrivateZone></Config></HostedZone>",
                zone.name, zone.is_private
            )
        });
        document(
            "ListHostedZonesByNameResponse",
            &format!("<HostedZones>{}</HostedZones>", zones.collect::<String>()),
        )
    }
}

fn of_change(id: &str, is_spread: bool) -> String {
    let status = if is_spread { "INSYNC" } else { "PENDING" };
    document(
        "ChangeResourceRecordSetsResponse",
        &format!("<ChangeInfo><Id>/change/{id}</Id><Status>{status}</Status></ChangeInfo>"),
    )
}

fn document(root: &str, content: &str) -> String {
    format!(
        "<?xml version=\"1.0\"?>\n<{root} xmlns=\"https://route53.amazonaws.com/doc/2013-04-01/\">{content}</{root}>"
    )
}
