//! Rounds while the public names of all clusters lead to a server that never answers, beside the same rounds before.

use std::io;
use std::net::TcpListener;
use std::path::Path;
use std::sync::Arc;
use std::thread;
use std::time::Duration;

use streamfleet::component::probe::{ProbeOrder, ProbeTrust, PublicName};
use streamfleet::config::AddressRange;
use streamfleet::names::{Kind, ResourceKey};
use streamfleet::probe::{ProbeLimits, Prober, SystemResolver};

use crate::floor;
use crate::process::Process;
use crate::tree::{Hosts, Tree};

/// The rounds of each side, of which the median counts.
const ROUNDS: usize = 11;

pub fn measure(folder: &Path, clusters: usize) -> io::Result<()> {
    let hosts = Hosts { clusters: 100, infra_type: "directory", settings: String::new() };
    let tree = Tree::write(&folder.join("probed"), clusters, hosts);
    let mut process = Process::open(&tree)?;
    process.plan()?;
    let (before, memory) = (median(&mut process)?, floor::memory_kib("self", "VmRSS"));
    let runtime = tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?;
    let allowed: AddressRange = "127.0.0.0/8".to_owned().try_into().map_err(io::Error::other)?;
    let (resolver, limits) = (SystemResolver, ProbeLimits::default());
    let prober = Arc::new(Prober::new(Box::new(resolver), vec![allowed], limits));
    let port = silent_server()?;
    for number in 0..tree.clusters {
        let (prober, order) = (Arc::clone(&prober), order(number, port));
        // Each begins again at once, so that the limit of connections is used up all the time.
        runtime.spawn(async move {
            loop {
                prober.check(&order).await;
            }
        });
    }
    let start = floor::processor_time();
    let (during, more) = (median(&mut process)?, floor::memory_kib("self", "VmRSS").saturating_sub(memory));
    println!(
        "{} clusters: a round takes {} ms; while all of them are probed at dead addresses, {} ms (ratio {:.2}), and {} \
         KiB more ({} ms of processor time for {ROUNDS} rounds and the probes)",
        tree.clusters,
        before.as_millis(),
        during.as_millis(),
        during.as_secs_f64() / before.as_secs_f64(),
        more,
        (floor::processor_time() - start).as_millis(),
    );
    runtime.shutdown_background();
    Ok(())
}

fn median(process: &mut Process) -> io::Result<Duration> {
    let rounds: io::Result<Vec<Duration>> =
        (0..ROUNDS).map(|_| process.plan().map(|(_, parts)| parts.whole())).collect();
    let mut rounds = rounds?;
    rounds.sort();
    Ok(rounds[ROUNDS / 2])
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

fn order(number: usize, port: u16) -> ProbeOrder {
    let name = PublicName { host: "127.0.0.1".to_owned(), port };
    ProbeOrder {
        cluster: ResourceKey::new(
            Kind::Cluster,
            &"acme".parse().expect("an identifier"),
            format!("c{number}"),
        ),
        bootstrap: name.clone(),
        brokers: (0..3).map(|id| (id, name.clone())).collect(),
        trust: ProbeTrust::System,
        certificate: None,
        login: None,
    }
}
