//! Runs `streamfleet serve` and records when it logs what.

use std::io::{self, BufRead as _, BufReader};
use std::path::Path;
use std::process::{Child, Command, Stdio};
use std::sync::mpsc::{Receiver, channel};
use std::thread;
use std::time::{Duration, Instant};

const PATIENCE: Duration = Duration::from_secs(600);

/// Silence after which the process counts as idle: while there is work, it goes on at once.
const SILENCE: Duration = Duration::from_secs(3);

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Told {
    Noticed,
    Planned,
    Done,
    Other,
}

pub struct Serve {
    process: Child,
    told: Receiver<(Instant, Told)>,
    rounds: usize,
}

impl Serve {
    pub fn start(words: &[&Path]) -> io::Result<Serve> {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamfleet"));
        command.arg("serve").args(words);
        command.env("STREAMFLEET_LOG", "streamfleet::daemon=debug,streamfleet::execute=info,warn");
        let mut process =
            command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::piped()).spawn()?;
        let lines = BufReader::new(process.stderr.take().expect("it is a pipe"));
        let (tell, told) = channel();
        thread::spawn(move || {
            for line in lines.lines().map_while(Result::ok) {
                let what = match line {
                    line if line.contains("specs may have changed") => Told::Noticed,
                    line if line.contains("looked=") => Told::Planned,
                    line if line.contains("execute: done") => Told::Done,
                    line if line.contains("ERROR") => {
                        eprintln!("{line}");
                        Told::Other
                    }
                    _ => Told::Other,
                };
                if tell.send((Instant::now(), what)).is_err() {
                    return;
                }
            }
        });
        Ok(Serve { process, told, rounds: 0 })
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn rounds(&self) -> usize {
        self.rounds
    }

    /// Reads the log up to now, and returns when a file change was last noticed.
    pub fn listen(&mut self) -> Option<Instant> {
        let mut noticed = None;
        while let Ok((at, told)) = self.told.try_recv() {
            self.count(told);
            noticed = noticed.max((told == Told::Noticed).then_some(at));
        }
        noticed
    }

    /// Waits for this log line, and returns when it came.
    pub fn wait_for(&mut self, what: Told) -> io::Result<Instant> {
        loop {
            let (at, told) = self.told.recv_timeout(PATIENCE).map_err(io::Error::other)?;
            self.count(told);
            if told == what {
                return Ok(at);
            }
        }
    }

    /// Triggers a full round with a signal, and waits until it is done.
    pub fn look(&mut self) -> io::Result<Instant> {
        self.listen();
        self.signal("HUP")?;
        self.wait_for(Told::Planned)
    }

    pub fn signal(&self, name: &str) -> io::Result<()> {
        let sent = Command::new("kill").args(["-s", name, &self.id().to_string()]).status()?;
        if sent.success() { Ok(()) } else { Err(io::Error::other(format!("could not send SIG{name}"))) }
    }

    /// Waits until everything was created and a round found nothing to do.
    pub fn wait_until_idle(&mut self) -> io::Result<()> {
        while self.rounds < 1 {
            let (_, told) = self.told.recv_timeout(PATIENCE).map_err(io::Error::other)?;
            self.count(told);
        }
        while self.told.recv_timeout(SILENCE).map(|(_, told)| self.count(told)).is_ok() {}
        Ok(())
    }

    /// Stops it with SIGTERM, as a service manager does.
    pub fn stop(mut self) -> io::Result<()> {
        self.signal("TERM")?;
        match self.process.wait()? {
            ended if ended.success() => Ok(()),
            ended => Err(io::Error::other(format!("`serve` ended with {ended}"))),
        }
    }

    fn count(&mut self, told: Told) {
        self.rounds += usize::from(told == Told::Planned);
    }
}

impl Drop for Serve {
    fn drop(&mut self) {
        // It may have ended already.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
