//! The floor: what the machine itself needs to read and write the same files.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Add;
use std::path::Path;
use std::time::{Duration, Instant};

use streamfleet::names::Digest;

use crate::files;

/// Number of files written with an fsync each: enough to tell the cost of one.
const EACH: usize = 500;

pub struct Floor {
    pub what: String,
    pub time: Duration,
}

impl Add for &Floor {
    type Output = Floor;
    fn add(self, other: &Floor) -> Floor {
        Floor { what: "reading and hashing specs and manifests".to_owned(), time: self.time + other.time }
    }
}

/// Reads and hashes every file of a folder. The second of two passes counts, since the later measurements
/// also find the files in the page cache.
pub fn read_and_hash(folder: &Path) -> io::Result<Floor> {
    let files = files(folder)?;
    let mut time = Duration::ZERO;
    for _ in 0..2 {
        let start = Instant::now();
        for file in &files {
            std::hint::black_box(Digest::of(fs::read(file)?));
        }
        time = start.elapsed();
    }
    Ok(Floor { what: format!("reading and hashing {} files", files.len()), time })
}

pub fn write_and_sync(from: &Path, to: &Path) -> io::Result<Floor> {
    let contents = contents(from, usize::MAX)?;
    let start = Instant::now();
    for (path, bytes) in &contents {
        write(&to.join(path), bytes)?;
    }
    rustix::fs::syncfs(File::open(to)?)?;
    Ok(Floor { what: format!("writing {} files and syncing once", contents.len()), time: start.elapsed() })
}

/// Measures writing with a sync after each file.
pub fn write_each(from: &Path, to: &Path) -> io::Result<String> {
    let contents = contents(from, EACH)?;
    let start = Instant::now();
    for (path, bytes) in &contents {
        write(&to.join(path), bytes)?.sync_all()?;
    }
    let each = start.elapsed().as_secs_f64() / contents.len().max(1) as f64;
    Ok(format!("({:.2} ms a file when each is waited for)", each * 1000.0))
}

fn contents(folder: &Path, most: usize) -> io::Result<Vec<(String, Vec<u8>)>> {
    let below = |path: &Path| path.strip_prefix(folder).map(|path| path.to_string_lossy().into_owned());
    let read = |path: &std::path::PathBuf| Ok((below(path).map_err(io::Error::other)?, fs::read(path)?));
    files(folder)?.iter().take(most).map(read).collect()
}

fn write(path: &Path, bytes: &[u8]) -> io::Result<File> {
    path.parent().map_or(Ok(()), fs::create_dir_all)?;
    let mut file = File::create(path)?;
    file.write_all(bytes)?;
    Ok(file)
}

/// Peak memory of this process in KiB; 0 where the system doesn't report it.
pub fn peak_kib() -> u64 {
    memory_kib("self", "VmHWM:")
}

/// A memory figure of a process from `/proc/<process>/status` by its name there, in KiB; 0 where the system
/// doesn't report it.
pub fn memory_kib(process: &str, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// Clock ticks per second in `/proc`: 100 on every Linux architecture.
const TICKS: u64 = 100;

/// Processor time of this process; zero where the system doesn't report it.
pub fn processor_time() -> Duration {
    processor_time_of("self")
}

pub fn processor_time_of(process: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // Fields are counted after the parenthesized name, which may contain anything: user and system time are
    // the 12th and 13th.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
