//! Programs that end with the test, and folders that are removed soon after it.

use std::fs::{self, File};
use std::io;
use std::os::unix::process::CommandExt as _;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus};
use std::sync::LazyLock;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use tempfile::TempDir;

use super::programs::{lock_root, root};

/// A program that runs until drop, and never longer than the test process.
pub struct Process {
    child: Child,
    log: PathBuf,
}

impl Process {
    /// Starts a program that logs to a file.
    pub fn start(mut command: Command, log: PathBuf) -> Process {
        let file = File::create(&log).unwrap();
        command.stdin(std::process::Stdio::null()).stdout(file.try_clone().unwrap()).stderr(file);
        Process { child: spawn(command).unwrap(), log }
    }

    pub fn id(&self) -> u32 {
        self.child.id()
    }

    pub fn end(&mut self) {
        // It may have ended by itself.
        let _ = self.child.kill();
        let _ = self.child.wait();
    }

    pub fn ended(&mut self) -> Option<ExitStatus> {
        self.child.try_wait().unwrap()
    }

    pub fn last_words(&mut self) -> Option<String> {
        self.ended().map(|_| self.said())
    }

    pub fn said(&self) -> String {
        fs::read_to_string(&self.log).unwrap_or_default()
    }

    /// Prints the end of its log if the test that drops it has failed.
    pub fn tell_of_failure(&self, name: &str) {
        if std::thread::panicking() {
            let log = self.said();
            let lines: Vec<&str> = log.lines().collect();
            println!("{name} logged:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
        }
    }
}

impl Drop for Process {
    fn drop(&mut self) {
        self.end();
    }
}

/// Starts a program that the kernel kills when this process ends for whatever reason.
///
/// The kernel ties this to the thread that started the program, not to the process, and a test's thread ends
/// with the test; so one thread that never ends starts them all.
fn spawn(command: Command) -> io::Result<Child> {
    type Order = (Command, Sender<io::Result<Child>>);
    static ORDERS: LazyLock<Sender<Order>> = LazyLock::new(|| {
        let (orders, taken) = channel::<Order>();
        thread::spawn(move || {
            for (command, reply) in taken {
                let _ = reply.send(bound_to_this_thread(command).spawn());
            }
        });
        orders
    });
    let (reply, child) = channel();
    ORDERS.send((command, reply)).expect("the thread that starts programs never ends");
    child.recv().expect("the thread that starts programs never ends")
}

fn bound_to_this_thread(mut command: Command) -> Command {
    let parent = std::process::id();
    let bind = move || {
        // SAFETY: both are plain system calls, which may be made between fork and exec.
        let (bound, orphaned) = unsafe {
            (
                libc::prctl(libc::PR_SET_PDEATHSIG, libc::SIGKILL) == 0,
                libc::getppid().cast_unsigned() != parent,
            )
        };
        // The parent may have ended before the signal was requested.
        if bound && !orphaned { Ok(()) } else { Err(io::Error::last_os_error()) }
    };
    // SAFETY: the closure allocates nothing and takes no lock.
    unsafe { command.pre_exec(bind) };
    command
}

/// A temporary folder. A killed process leaves its folders behind; the next process that creates one removes
/// them, and recognizes them by their locks, which the kernel has released.
pub struct Folder {
    folder: TempDir,
    _lock: File,
}

impl Folder {
    pub fn new() -> Folder {
        let _others_wait = lock_root().unwrap();
        for left in fs::read_dir(root()).unwrap().map(|entry| entry.unwrap().path()) {
            let is_one =
                left.file_name().is_some_and(|name| name.to_string_lossy().starts_with(Self::PREFIX));
            let in_use = File::open(left.join(Self::LOCK)).is_ok_and(|lock| lock.try_lock().is_err());
            if is_one && !in_use {
                // Files still in use, say by a program that is ending, are removed by the next one.
                let _ = fs::remove_dir_all(left);
            }
        }
        let folder = TempDir::with_prefix_in(Self::PREFIX, root()).unwrap();
        let lock = File::create(folder.path().join(Self::LOCK)).unwrap();
        lock.lock().unwrap();
        Folder { folder, _lock: lock }
    }

    const PREFIX: &str = "running-";
    const LOCK: &str = "in-use";

    pub fn path(&self) -> &Path {
        self.folder.path()
    }
}
