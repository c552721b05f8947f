//! `streamfleet logs`: prints the logs of a cluster's brokers.

use std::collections::BTreeMap;

use clap::Args;
use jiff::{SignedDuration, Timestamp};

use crate::cli::console::Console;
use crate::cli::daemon_client::RunningDaemon;
use crate::cli::exit;
use crate::cli::failure::Failure;
use crate::cli::named_cluster;
use crate::cli::round::{self, StateAccess};
use crate::cli::settings::{Settings, TreeArgs};
use crate::record::Audience;
use crate::views::find_cluster;
use crate::views::logs::{self, LogQuery};
use crate::views::pods::{NotRead, NotReadCause};

/// Print the logs of a cluster's brokers, oldest line first, each with its time and, unless you ask for one broker, its
/// pod. Lines that begin with `#` are streamfleet's own.
///
/// The fleet's user needs the right to read logs: streamfleet role --logs
#[derive(Debug, Args)]
pub struct Logs {
    /// The cluster: `acme/orders`, or `orders` if only one organization has a cluster of that name.
    #[arg(value_name = "CLUSTER")]
    cluster: String,
    #[command(flatten)]
    tree: TreeArgs,
    /// Only this broker, by its number.
    #[arg(long, value_name = "N")]
    broker: Option<u32>,
    /// Only lines of this time or later, or of so much time until now: `2026-01-31T12:00:00Z`, `10m`, `2h`. By default the
    /// last 500 lines of each broker.
    #[arg(long, value_name = "TIME", value_parser = since)]
    since: Option<Since>,
    /// Go on with what is logged from now on, until you press Ctrl-C. Restarts of pods are followed.
    #[arg(long, short)]
    follow: bool,
}

#[derive(Debug, Clone, Copy)]
enum Since {
    Time(Timestamp),
    Ago(SignedDuration),
}

fn since(text: &str) -> Result<Since, String> {
    let ago = || text.parse::<SignedDuration>().ok().filter(|ago| !ago.is_negative()).map(Since::Ago);
    let time = text.parse().ok().map(Since::Time);
    time.or_else(ago)
        .ok_or_else(|| "use a time such as 2026-01-31T12:00:00Z, or a duration such as 10m".to_owned())
}

impl Since {
    fn at(self, now: Timestamp) -> Timestamp {
        match self {
            Since::Time(at) => at,
            Since::Ago(ago) => now.checked_sub(ago).unwrap_or(Timestamp::MIN),
        }
    }
}

pub fn run(verb: &Logs, console: &mut Console) -> Result<u8, Failure> {
    let settings = Settings::settle(&verb.tree)?;
    let now = round::time(None);
    let since = verb.since.map(|since| since.at(now));
    match RunningDaemon::of(&settings)? {
        Some(daemon) => of_daemon(verb, since, (&settings, daemon), console)?,
        None => {
            let look = round::plan_tree(settings, StateAccess::ReadOnly, now, console)?;
            let cluster = find_cluster(&look.round.clusters(), &verb.cluster)?;
            let query = LogQuery { broker: verb.broker, since, follows: verb.follow, ends: None };
            let opened = look.runtime().block_on(logs::open(&look.round, &cluster, query, Audience::Host));
            let mut reader = opened.map_err(failure)?;
            let names_pods = reader.names_pods();
            while let Some(entry) = look.runtime().block_on(reader.next()) {
                console.print(&logs::text(&entry, names_pods))?;
            }
        }
    }
    Ok(exit::OK)
}

fn failure(NotRead { cause, message, hint }: NotRead) -> Failure {
    let failure = match cause {
        NotReadCause::TooMany => Failure::usage(message),
        NotReadCause::Missing | NotReadCause::Refused | NotReadCause::Unreadable => Failure::new(message),
    };
    failure.hint(hint)
}

/// Reads from the daemon, whose answers end before their connection does, and goes on after the last line.
fn of_daemon(
    verb: &Logs,
    mut since: Option<Timestamp>,
    (settings, mut daemon): (&Settings, RunningDaemon),
    console: &mut Console,
) -> Result<(), Failure> {
    let mut printed = Printed::default();
    loop {
        let request = named_cluster::request(&verb.cluster, "logs")
            .with("broker", verb.broker)
            .with("since", since)
            .with("follow", Some(verb.follow));
        printed.begin_answer();
        let (mut cut, mut has_new) = (None, false);
        let read = daemon.read_lines(request, console, &mut |line, console| {
            if logs::is_cut(line) {
                cut = Some(line.to_owned());
            } else if printed.is_new(line) {
                has_new = true;
                console.print(line)?;
            }
            Ok(())
        });
        if let Err(error) = read {
            return Err(named_cluster::explained(&mut daemon, &verb.cluster, error, console)?);
        }
        match cut {
            // Another answer would begin and end like this one.
            Some(cut) if !verb.follow && !has_new => {
                console.print(&cut)?;
                return Ok(());
            }
            None if !verb.follow => return Ok(()),
            _ => {}
        }
        since = printed.resumes_at().or(since);
        // The connection ends with the answer, or soon after it.
        daemon = RunningDaemon::required(settings, "cannot go on with the logs")?.unnamed();
    }
}

/// The lines printed last, so that none is printed twice when the next answer begins a little earlier.
#[derive(Default)]
struct Printed {
    last: Option<Timestamp>,
    lines: BTreeMap<(Timestamp, String), Times>,
}

/// How often a line was printed, and how often the present answer had it.
#[derive(Default)]
struct Times {
    printed: usize,
    answered: usize,
}

impl Printed {
    /// Forgets the lines that the next answer won't have.
    fn begin_answer(&mut self) {
        let since = self.resumes_at();
        self.lines.retain(|(at, _), times| {
            times.answered = 0;
            Some(*at) >= since
        });
    }

    fn is_new(&mut self, line: &str) -> bool {
        let at = line.split(' ').next().and_then(|at| at.parse::<Timestamp>().ok());
        let Some(at) = at else { return true };
        self.last = self.last.max(Some(at));
        let times = self.lines.entry((at, line.to_owned())).or_default();
        times.answered += 1;
        let is_new = times.answered > times.printed;
        times.printed = times.printed.max(times.answered);
        is_new
    }

    fn resumes_at(&self) -> Option<Timestamp> {
        self.last?.checked_sub(logs::LOG_OVERLAP).ok()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_time_or_a_duration_says_since_when() {
        let now: Timestamp = "2026-11-23T12:00:00Z".parse().unwrap();
        for (text, expected) in [
            ("2026-11-23T11:00:00Z", "2026-11-23T11:00:00Z"),
            ("10m", "2026-11-23T11:50:00Z"),
            ("2h", "2026-11-23T10:00:00Z"),
            ("1h30m", "2026-11-23T10:30:00Z"),
        ] {
            assert_eq!(since(text).unwrap().at(now).to_string(), expected);
        }
        for wrong in ["", "yesterday", "-1h", "10"] {
            assert!(since(wrong).is_err(), "{wrong}");
        }
    }

    #[test]
    fn nothing_is_printed_twice_when_an_answer_begins_earlier() {
        let mut printed = Printed::default();
        let (first, second) = ("2026-11-23T12:00:00.5Z a x\n", "2026-11-23T12:00:07Z b y\n");
        assert!(printed.is_new(first) && printed.is_new(second) && printed.is_new(second));
        assert!(printed.is_new("# pod a is gone\n") && printed.is_new("# pod a is gone\n"));
        assert_eq!(printed.resumes_at().unwrap().to_string(), "2026-11-23T12:00:02Z");
        // The next answer has both of them, and one more of the same time with the same text.
        printed.begin_answer();
        assert!(!printed.is_new(second) && !printed.is_new(second) && printed.is_new(second));
        assert_eq!(printed.lines.len(), 1);
    }
}
