//! Rounds, and the probes of another organization's cluster, while the public names of all clusters lead to a server
//! that never answers, beside the same before. The clusters take their turns by the table that `serve` uses.

use std::collections::BTreeMap;
use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc::{Receiver, Sender, channel};
use std::thread;
use std::time::{Duration, Instant};

use streamfleet::component::health::{PublicListener, PublicSide};
use streamfleet::config::AddressRange;
use streamfleet::names::{Digest, FleetKey, Kind, ResourceKey};
use streamfleet::probe::{ProbeLimits, Prober, SystemResolver};
use streamfleet::round::{FailureWords, NameFinding, ReachabilityTable};

use crate::floor;
use crate::process::Process;
use crate::tree::{Hosts, Tree};

/// The rounds and probes of each side, of which the median counts.
const TIMES: usize = 11;

pub fn measure(folder: &Path, clusters: usize) -> io::Result<()> {
    let hosts = Hosts { clusters: 100, infra_type: "directory", settings: String::new() };
    let tree = Tree::write(&folder.join("probed"), clusters, hosts);
    let mut process = Process::open(&tree)?;
    process.plan()?;
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let allowed: AddressRange = "127.0.0.0/8".to_owned().try_into().map_err(io::Error::other)?;
    let prober = Arc::new(Prober::new(Box::new(SystemResolver), vec![allowed], ProbeLimits::default()));
    let (dead, other) = (fleet("acme"), fleet("globex"));
    let table = Arc::new(ReachabilityTable::default());
    table.planned([&dead, &other].into_iter());
    let (told, findings) = channel();
    runtime.spawn(probe_in_turn(Arc::clone(&table), prober, told));

    // A port at which nobody listens answers at once.
    let closed = TcpListener::bind("127.0.0.1:0")?.local_addr()?.port();
    let mut version = 0;
    let mut probes = || {
        median((0..TIMES).map(|_| {
            version += 1;
            let side = PublicSide { applied: vec![Digest::of(version.to_string())], ..side(closed) };
            findings.try_iter().for_each(drop);
            let begin = Instant::now();
            table.observed(&other, [(cluster("globex", 0), side)].into(), begin);
            until_found(&findings, "globex").map(|()| begin.elapsed())
        }))
    };
    let mut rounds = || median((0..TIMES).map(|_| process.plan().map(|(_, parts)| parts.whole())));
    let (probe_before, round_before) = (probes()?, rounds()?);
    let memory = floor::memory_kib("self", "VmRSS");
    let silent = silent_server()?;
    let all = (0..tree.clusters).map(|number| (cluster("acme", number), side(silent)));
    table.observed(&dead, all.collect(), Instant::now());
    until_found(&findings, "acme")?;
    let start = floor::processor_time();
    let (probe, round) = (probes()?, rounds()?);
    let more = floor::memory_kib("self", "VmRSS").saturating_sub(memory);
    println!("{} clusters at dead addresses, all of them due:", tree.clusters);
    for (what, before, during) in [
        ("a round", round_before, round),
        ("a probe of another organization's cluster, from when it is due", probe_before, probe),
    ] {
        println!(
            "  {what} takes {:.1} ms before, and {:.1} ms meanwhile (ratio {:.2})",
            before.as_secs_f64() * 1e3,
            during.as_secs_f64() * 1e3,
            during.as_secs_f64() / before.as_secs_f64(),
        );
    }
    println!(
        "  {more} KiB more, and {} ms of processor time for {TIMES} rounds and the probes",
        (floor::processor_time() - start).as_millis()
    );
    runtime.shutdown_background();
    Ok(())
}

/// Probes whatever is due, as the daemon does, and tells whose cluster was found out about.
async fn probe_in_turn(table: Arc<ReachabilityTable>, prober: Arc<Prober>, told: Sender<String>) {
    loop {
        let (due, next) = table.due(Instant::now());
        for probe in due {
            let (table, prober, told) = (Arc::clone(&table), Arc::clone(&prober), told.clone());
            tokio::spawn(async move {
                let report = prober.check(&probe.side.order(probe.cluster.clone(), None)).await;
                let words = |why: String| FailureWords { for_tenants: why.clone(), for_the_log: why };
                let finding = |why: String| NameFinding::Unreached(words(why));
                let findings: BTreeMap<_, _> =
                    report.verdicts.iter().map(|it| (it.place, finding(it.whole_sentence()))).collect();
                let organization = probe.cluster.organization.to_string();
                // At dead addresses, the next probe follows at once, so that the share of connections is always used up.
                let interval =
                    if organization == "acme" { Duration::ZERO } else { Duration::from_secs(3600) };
                table.found(&probe, findings, interval, Instant::now());
                let _ = told.send(organization);
            });
        }
        tokio::select! {
            () = tokio::time::sleep_until(next.into()) => {}
            () = table.changed() => {}
        }
    }
}

/// Waits for the next probe of an organization's cluster.
fn until_found(findings: &Receiver<String>, organization: &str) -> io::Result<()> {
    loop {
        if findings.recv().map_err(io::Error::other)? == organization {
            return Ok(());
        }
    }
}

fn median(times: impl Iterator<Item = io::Result<Duration>>) -> io::Result<Duration> {
    let mut times: Vec<Duration> = times.collect::<io::Result<_>>()?;
    times.sort();
    Ok(times[times.len() / 2])
}

/// A server that accepts every connection and says nothing.
fn silent_server() -> io::Result<u16> {
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let port = listener.local_addr()?.port();
    thread::spawn(move || {
        for mut socket in listener.incoming().flatten() {
            thread::spawn(move || io::copy(&mut socket, &mut io::sink()));
        }
    });
    Ok(port)
}

fn fleet(organization: &str) -> FleetKey {
    format!("{organization}/eu").try_into().expect("a fleet")
}

fn cluster(organization: &str, number: usize) -> ResourceKey {
    let organization = organization.parse().expect("an identifier");
    ResourceKey::new(Kind::Cluster, &organization, format!("c{number}"))
}

fn side(port: u16) -> PublicSide {
    PublicSide {
        namespace: "kafka".to_owned(),
        listener: PublicListener {
            bootstrap: "127.0.0.1".to_owned(),
            broker: "127.0.0.1".to_owned(),
            port,
            chain: None,
            user: None,
        },
        user_is_ready: false,
        applied: Vec::new(),
        brokers: (0..3).map(|id| (id, true)).collect(),
    }
}
