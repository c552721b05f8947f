//! Opens the pages of the web UI: how long each takes, how large it is, what tabs that stay open cost callers of the
//! API, and the memory that pages take.

use std::fs;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Command, Stdio};
use std::sync::atomic::{AtomicBool, Ordering};
use std::thread::{self, sleep};
use std::time::{Duration, Instant};

use crate::Run;
use crate::api::{Asks, ONE, bearer, has_wrk, listening, port, token};
use crate::daemon::FEW;
use crate::floor::{memory_kib, processor_time_of};
use crate::serve::{Serve, Told};
use crate::tree::{Hosts, Tree};

/// Target for the 99th percentile of lists, in milliseconds.
const LIST: f64 = 50.0;

/// Target for the size of a list, in kB after gzip.
const SIZE: f64 = 100.0;

/// Target for the memory that pages take, in MB.
const MEMORY: u64 = 10;

const LISTS: [&str; 14] = [
    "/clusters",
    "/clusters?q=cluster-0&status=Written",
    "/clusters?organization=org-00&fleet=fleet-000&tag=team%3Dteam-7",
    "/clusters?sort=status",
    "/clusters?sort=-updated_at",
    "/fleets",
    "/fleets?organization=org-00&sort=status",
    "/base-domains",
    "/identity-providers",
    "/cloud-accounts",
    "/organizations",
    "/events",
    "/tokens",
    "/fleets/org-00/fleet-000",
];

/// Pages that show the whole installation, without a target of their own.
const WHOLE: [&str; 2] = ["/", "/plan"];

/// Tabs that stay open. Each is requested again as the script does.
const TABS: usize = 20;
const TABBED: [&str; 5] = ["/", "/plan", "/clusters", "/fleets", "/clusters/org-00/cluster-00007"];
const PAUSE: Duration = Duration::from_secs(1);
const SHARE: u32 = 5;

/// Measures with few clusters and with many.
pub fn measure(folder: &Path, clusters: usize) -> io::Result<()> {
    if !has_wrk() {
        return Ok(());
    }
    println!(
        "\npages; aims: 99 of 100 lists within {LIST} ms and {SIZE} kB compressed, pages take less than {MEMORY} MB of \
         memory, and the API answers with {TABS} tabs open as without\n"
    );
    for clusters in [FEW, clusters] {
        let folder = folder.join(format!("shown-{clusters}"));
        let hosts = Hosts { clusters: 100, infra_type: "directory", settings: String::new() };
        let tree = Tree::write(&folder.join("tree"), clusters, hosts);
        Run::of(&["apply", "--yes"], tree.root())?;
        println!("{clusters} clusters");
        of_tree(&folder, &tree)?;
    }
    Ok(())
}

fn of_tree(folder: &Path, tree: &Tree) -> io::Result<()> {
    let (settings, port) = (folder.join("pages.toml"), port()?);
    fs::write(&settings, listening(port))?;
    let mut serve = Serve::start(&[Path::new("--specs"), tree.root(), Path::new("--config"), &settings])?;
    serve.wait_for(Told::Planned)?;
    serve.wait_until_idle()?;
    let token = token(&[tree.root(), Path::new("--config"), &settings])?;
    let id = serve.id().to_string();
    let browser = Browser::sign_in(port, &token, &id)?;
    let (pages, api) = (browser.asks(), Asks { port, header: bearer(&token) });
    // What the API itself takes isn't the pages'.
    api.ask("/v1/clusters?page_size=50", 1, None)?;
    let floor = pages.ask("/ui/style.css", 1, None)?;
    println!(
        "  floor: the stylesheet, half within {:.1} ms, 99 of 100 within {:.1} ms",
        floor.half, floor.most
    );
    let before = memory_kib(&id, "VmRSS:") / 1024;
    for path in LISTS {
        browser.tell(&pages, path, Some(LIST))?;
    }
    // The allocator gives back what the last answers took within ten seconds.
    std::thread::sleep(std::time::Duration::from_secs(15));
    let after = memory_kib(&id, "VmRSS:") / 1024;
    println!(
        "  memory: {before} MB before these, {after} MB after: {} MB more (aim: less than {MEMORY})",
        after.saturating_sub(before)
    );
    for path in WHOLE {
        browser.tell(&pages, path, None)?;
    }
    let after = memory_kib(&id, "VmRSS:") / 1024;
    println!("  memory: {after} MB after these, {} MB at most", memory_kib(&id, "VmHWM:") / 1024);

    let before = memory_kib(&id, "VmRSS:") / 1024;
    let alone = api.ask(ONE, 1, None)?;
    let beside = browser.with_tabs(|| api.ask(ONE, 1, None))?;
    let again = api.ask(ONE, 1, None)?;
    println!(
        "  a read of the API: 99 of 100 within {:.2} ms, with {TABS} tabs open within {:.2} ms ({:.1} x), and {:.2} ms \
         without them once more; half within {:.2}, {:.2} and {:.2} ms",
        alone.most,
        beside.most,
        beside.most / alone.most,
        again.most,
        alone.half,
        beside.half,
        again.half
    );
    let after = memory_kib(&id, "VmRSS:") / 1024;
    println!(
        "  memory: {before} MB before the tabs, {after} MB after them, {} MB at most",
        memory_kib(&id, "VmHWM:") / 1024
    );
    serve.stop()
}

struct Browser<'d> {
    port: u16,
    cookie: String,
    /// The process id of the daemon.
    daemon: &'d str,
}

impl Browser<'_> {
    fn sign_in<'d>(port: u16, token: &str, daemon: &'d str) -> io::Result<Browser<'d>> {
        let body = format!("organization=root&token={token}");
        let request = format!(
            "POST /ui/sign-in HTTP/1.1\r\nOrigin: http://127.0.0.1:{port}\r\n\
             Content-Type: application/x-www-form-urlencoded\r\nContent-Length: {}\r\n",
            body.len()
        );
        let (head, _) = exchange(port, &request, &body)?;
        let line = head.lines().find_map(|line| line.strip_prefix("set-cookie: ")?.split(';').next());
        let cookie = line.ok_or_else(|| io::Error::other(format!("nobody was signed in:\n{head}")))?;
        Ok(Browser { port, cookie: format!("Cookie: {cookie}"), daemon })
    }

    fn asks(&self) -> Asks {
        Asks { port: self.port, header: self.cookie.clone() }
    }

    fn page(&self, path: &str) -> io::Result<Vec<u8>> {
        Ok(self.newer(path, "")?.1)
    }

    /// The head of the answer, and a page that hasn't the tag; empty if there is none.
    fn newer(&self, path: &str, tag: &str) -> io::Result<(String, Vec<u8>)> {
        let tag = if tag.is_empty() { String::new() } else { format!("If-None-Match: {tag}\r\n") };
        let request = format!("GET /ui{path} HTTP/1.1\r\n{}\r\n{tag}", self.cookie);
        let (head, body) = exchange(self.port, &request, "")?;
        match head.starts_with("HTTP/1.1 200 ") || head.starts_with("HTTP/1.1 304 ") {
            true => Ok((head, body)),
            false => Err(io::Error::other(format!("{path} is not shown:\n{head}"))),
        }
    }

    fn tell(&self, asks: &Asks, path: &str, aim: Option<f64>) -> io::Result<()> {
        let page = self.page(path)?;
        #[allow(clippy::cast_precision_loss, reason = "pages are small")]
        let [plain, packed] = [page.len(), gzipped(&page)?].map(|bytes| bytes as f64 / 1000.0);
        let before = processor_time_of(self.daemon);
        let took = asks.ask(&format!("/ui{path}"), 1, None)?;
        let processor = processor_time_of(self.daemon).saturating_sub(before) / took.requests.max(1);
        let ratio = |aim: f64| format!(" ({:.2} x the aim)", took.most / aim);
        println!(
            "  {path}: half within {:.1} ms, 99 of 100 within {:.1} ms{}, {:.1} ms of processor time, \
             {plain:.0} kB, {packed:.1} kB compressed ({:.2} x the aim)",
            took.half,
            took.most,
            aim.map(ratio).unwrap_or_default(),
            processor.as_secs_f64() * 1000.0,
            packed / SIZE
        );
        Ok(())
    }

    /// Keeps tabs open during some work.
    fn with_tabs<T>(&self, work: impl FnOnce() -> io::Result<T>) -> io::Result<T> {
        let is_over = AtomicBool::new(false);
        thread::scope(|scope| {
            let tabs = (0..TABS).map(|tab| {
                let path = TABBED[tab % TABBED.len()];
                scope.spawn(|| self.keep_open(path, &is_over))
            });
            let tabs: Vec<_> = tabs.collect();
            let result = work();
            is_over.store(true, Ordering::Relaxed);
            for tab in tabs {
                tab.join().map_err(|_| io::Error::other("a tab panicked"))??;
            }
            result
        })
    }

    fn keep_open(&self, path: &str, is_over: &AtomicBool) -> io::Result<()> {
        let mut tag = String::new();
        while !is_over.load(Ordering::Relaxed) {
            let start = Instant::now();
            let (head, _) = self.newer(path, &tag)?;
            let known = head.lines().find_map(|line| line.strip_prefix("etag: "));
            tag = known.map(str::to_owned).unwrap_or(tag);
            let next = Instant::now() + PAUSE.max(SHARE * start.elapsed());
            while Instant::now() < next && !is_over.load(Ordering::Relaxed) {
                sleep(Duration::from_millis(50));
            }
        }
        Ok(())
    }
}

/// Sends a request on a connection of its own, and returns the head and the body of the answer.
fn exchange(port: u16, request: &str, body: &str) -> io::Result<(String, Vec<u8>)> {
    let mut connection = TcpStream::connect(("127.0.0.1", port))?;
    write!(connection, "{request}Host: 127.0.0.1:{port}\r\nConnection: close\r\n\r\n{body}")?;
    let mut answer = Vec::new();
    connection.read_to_end(&mut answer)?;
    let end = answer.windows(4).position(|bytes| bytes == b"\r\n\r\n");
    let end = end.ok_or_else(|| io::Error::other("the answer has no head"))?;
    let body = answer.split_off(end + 4);
    Ok((String::from_utf8_lossy(&answer).into_owned(), body))
}

fn gzipped(page: &[u8]) -> io::Result<usize> {
    let mut gzip =
        Command::new("gzip").arg("--stdout").stdin(Stdio::piped()).stdout(Stdio::piped()).spawn()?;
    let mut input = gzip.stdin.take().expect("it is a pipe");
    thread::scope(|scope| {
        scope.spawn(move || input.write_all(page));
        Ok(gzip.wait_with_output()?.stdout.len())
    })
}
