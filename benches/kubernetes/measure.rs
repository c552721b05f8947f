//! Measures time, memory and the requests that reach the API server.

use std::collections::BTreeMap;
use std::fs;
use std::io::{self, Read as _};
use std::process::{Command, Stdio};
use std::thread;
use std::time::{Duration, Instant};

use crate::tests::support::control_plane::ControlPlane;

/// How often a running process's memory is sampled. A peak in its last moments may be missed.
const INTERVAL: Duration = Duration::from_millis(5);

pub struct Measured {
    pub time: Duration,
    /// Processor time of the control plane alone.
    pub server: Duration,
    pub client: Duration,
    pub requests: Requests,
    pub peak_kib: Option<u64>,
}

/// Request counts by verb and resource, such as `POST configmaps`.
pub struct Requests(BTreeMap<String, f64>);

impl Measured {
    pub fn of(plane: &ControlPlane, act: impl FnOnce() -> io::Result<()>) -> io::Result<Measured> {
        let client = processor_time([std::process::id()]);
        let measured = Self::beside(plane, act)?;
        Ok(Measured { client: processor_time([std::process::id()]).saturating_sub(client), ..measured })
    }

    pub fn of_command(plane: &ControlPlane, mut command: Command) -> io::Result<Measured> {
        let (mut client, mut peak_kib) = (Duration::ZERO, 0);
        let measured = Self::beside(plane, || {
            let mut child =
                command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
            let mut errors = child.stderr.take().expect("it is a pipe");
            let told = thread::spawn(move || {
                let mut told = String::new();
                errors.read_to_string(&mut told).map(|_| told)
            });
            let status = loop {
                peak_kib = peak_kib.max(memory_kib(child.id(), Memory::Peak));
                client = client.max(processor_time([child.id()]));
                match child.try_wait()? {
                    Some(status) => break status,
                    None => thread::sleep(INTERVAL),
                }
            };
            let told = told.join().expect("the thread reads to the end")?;
            if status.success() {
                Ok(())
            } else {
                Err(io::Error::other(format!("{command:?} failed:\n{told}")))
            }
        })?;
        Ok(Measured { client, peak_kib: Some(peak_kib), ..measured })
    }

    fn beside(plane: &ControlPlane, act: impl FnOnce() -> io::Result<()>) -> io::Result<Measured> {
        let (before, server) = (Requests::read(plane)?, processor_time(plane.processes()));
        let start = Instant::now();
        act()?;
        let time = start.elapsed();
        let server = processor_time(plane.processes()).saturating_sub(server);
        let requests = Requests::read(plane)?.beyond(&before);
        Ok(Measured { time, server, client: Duration::ZERO, requests, peak_kib: None })
    }
}

impl Requests {
    /// Requests that the server counted, without watches, leases and the server's own settings. The request
    /// for the count isn't counted.
    fn read(plane: &ControlPlane) -> io::Result<Requests> {
        const OWN: [&str; 4] =
            ["verb=\"WATCH\"", "resource=\"leases\"", "group=\"flowcontrol", "group=\"apiregistration"];
        let metrics = plane.kubectl("get --raw /metrics", "");
        if metrics.code != 0 {
            return Err(io::Error::other(metrics.err));
        }
        let lines = metrics.out.lines().filter(|line| line.starts_with("apiserver_request_total{"));
        let mut counts = BTreeMap::new();
        for line in lines.filter(|line| !OWN.iter().any(|own| line.contains(own))) {
            let count = line.rsplit(' ').next().and_then(|count| count.parse::<f64>().ok());
            *counts.entry(what(line)).or_default() += count.unwrap_or(0.0);
        }
        Ok(Requests(counts))
    }

    /// The requests in `self` that exceed those in `others`.
    pub fn beyond(&self, others: &Requests) -> Requests {
        let there = |what: &String| others.0.get(what).copied().unwrap_or(0.0);
        let beyond = self.0.iter().map(|(what, count)| (what.clone(), count - there(what)));
        Requests(beyond.filter(|(_, count)| *count > 0.0).collect())
    }

    pub fn sum(&self) -> f64 {
        self.0.values().sum()
    }

    /// Each kind of request with its count, the most frequent first.
    pub fn tell(&self) -> String {
        let mut counts: Vec<_> = self.0.iter().collect();
        counts.sort_by(|(_, a), (_, b)| b.total_cmp(a));
        counts.iter().map(|(what, count)| format!("{count} {what}")).collect::<Vec<_>>().join(", ")
    }
}

/// The verb and resource of a line of the server's metrics, as `POST configmaps`.
fn what(line: &str) -> String {
    let label = |name: &str| {
        let value = line.split_once(&format!("{name}=\""))?.1.split_once('"')?.0;
        (!value.is_empty()).then_some(value)
    };
    let dry = label("dry_run").map(|_| "dry-run ").unwrap_or_default();
    let resource = label("resource").unwrap_or("of the server itself");
    format!("{dry}{} {resource}", label("verb").unwrap_or_default())
}

/// Which memory figure to read.
#[derive(Clone, Copy)]
pub enum Memory {
    Now,
    Peak,
}

/// Memory of a process in KiB; 0 after it has ended.
pub fn memory_kib(process: u32, memory: Memory) -> u64 {
    let name = match memory {
        Memory::Now => "VmRSS:",
        Memory::Peak => "VmHWM:",
    };
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Clock ticks per second in `/proc`: 100 on every Linux architecture.
pub const TICKS: u64 = 100;

/// Processor time of processes; zero where the system doesn't report it.
fn processor_time(processes: impl IntoIterator<Item = u32>) -> Duration {
    let ticks = |process: u32| {
        let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
        // Fields are counted after the parenthesized name, which may contain anything: user and system time
        // are the 12th and 13th.
        let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
        fields.filter_map(|field| field.parse::<u64>().ok()).sum::<u64>()
    };
    Duration::from_millis(processes.into_iter().map(ticks).sum::<u64>() * 1000 / TICKS)
}
