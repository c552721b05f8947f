//! What the machine itself needs for the same files: the least that any program would.

use std::fs::{self, File};
use std::io::{self, Write as _};
use std::ops::Add;
use std::path::Path;
use std::time::{Duration, Instant};

use streamfleet::names::Digest;

use crate::files;

/// How many files are written with a wait for the disk after each: enough to tell what one costs.
const EACH: usize = 500;

/// Something that has to be done, and how long it takes.
pub struct Floor {
    /// What was done.
    pub what: String,
    /// How long it took.
    pub time: Duration,
}

impl Add for &Floor {
    type Output = Floor;
    fn add(self, other: &Floor) -> Floor {
        Floor { what: "reading and hashing specs and manifests".to_owned(), time: self.time + other.time }
    }
}

/// Reads and hashes every file of a folder. It is done twice, and the second time counts: what is measured afterwards
/// finds the files in memory too.
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

/// Writes every file of a folder into another one and waits for the disk once.
pub fn write_and_sync(from: &Path, to: &Path) -> io::Result<Floor> {
    let contents = contents(from, usize::MAX)?;
    let start = Instant::now();
    for (path, bytes) in &contents {
        write(&to.join(path), bytes)?;
    }
    rustix::fs::syncfs(File::open(to)?)?;
    Ok(Floor { what: format!("writing {} files and syncing once", contents.len()), time: start.elapsed() })
}

/// Says what writing takes when the disk is waited for after each file.
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

/// The most memory that this process ever held, in KiB; 0 where the system doesn't say.
pub fn peak_kib() -> u64 {
    memory_kib("self", "VmHWM:")
}

/// The memory of a process by one of the names that Linux has for it, in KiB; 0 where the system doesn't say.
pub fn memory_kib(process: &str, name: &str) -> u64 {
    let status = fs::read_to_string(format!("/proc/{process}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix(name));
    line.and_then(|line| line.trim().trim_end_matches(" kB").parse().ok()).unwrap_or(0)
}

/// How many ticks of its clock Linux counts a second in `/proc`, on every architecture.
const TICKS: u64 = 100;

/// The processor time that this process took, which other processes don't add to; zero where the system doesn't say.
pub fn processor_time() -> Duration {
    processor_time_of("self")
}

/// The processor time that a process took.
pub fn processor_time_of(process: &str) -> Duration {
    let stat = fs::read_to_string(format!("/proc/{process}/stat")).unwrap_or_default();
    // After the name in parentheses, which may hold anything: user and system time are the 12th and 13th field.
    let fields = stat.rsplit(')').next().unwrap_or_default().split_whitespace().skip(11).take(2);
    let ticks: u64 = fields.filter_map(|field| field.parse::<u64>().ok()).sum();
    Duration::from_millis(ticks * 1000 / TICKS)
}
