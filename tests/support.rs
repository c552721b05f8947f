//! A spec tree per test, and the binary run on it as a person would.

pub mod bind;
pub mod control_plane;
pub mod curl;
pub mod debian;
pub mod door;
pub mod exporter;
pub mod gateway;
pub mod kafka;
pub mod knot;
pub mod kubelet;
pub mod names;
pub mod openssl;
pub mod pebble;
pub mod prometheus;
pub mod proxy;
pub mod registry;
pub mod serve;
pub mod ssh;

use std::fs;
use std::io::Write as _;
use std::net::TcpListener;
use std::os::unix::fs::{FileTypeExt as _, MetadataExt as _};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Output, Stdio};

use tempfile::TempDir;

pub fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("examples")
}

/// The example whose domain looks after itself. It has settings, for an authority that nobody asks here.
pub const MANAGED: &str = "managed-domain";

/// All other examples.
pub fn stories() -> Vec<String> {
    let entries = fs::read_dir(examples()).unwrap();
    let mut stories: Vec<_> =
        entries.map(|entry| entry.unwrap().file_name().into_string().unwrap()).collect();
    stories.retain(|story| story != MANAGED);
    stories.sort();
    assert!(stories.len() >= 6, "{stories:?}");
    stories
}

/// A port of this host that nobody uses at this moment.
pub fn free_port() -> u16 {
    TcpListener::bind("127.0.0.1:0").unwrap().local_addr().unwrap().port()
}

/// The option that names an example's settings, if it has some.
pub fn settings(story: &str) -> &'static str {
    let has_some = examples().join(story).join("streamfleet.toml").exists();
    if has_some { " --config tree/streamfleet.toml" } else { "" }
}

/// A copy of an example, or an empty tree, in a folder removed on drop.
pub struct Tree {
    folder: TempDir,
}

#[derive(Debug)]
pub struct Run {
    pub code: i32,
    pub out: String,
    pub err: String,
}

impl From<Output> for Run {
    fn from(Output { status, stdout, stderr }: Output) -> Self {
        let [out, err] = [stdout, stderr].map(|bytes| String::from_utf8(bytes).unwrap());
        Run { code: status.code().unwrap_or(-1), out, err }
    }
}

impl Run {
    /// Asserts the exit code, and shows all output on failure.
    #[track_caller]
    pub fn expect(self, code: i32) -> Self {
        assert_eq!(self.code, code, "\n--- stdout\n{}\n--- stderr\n{}", self.out, self.err);
        self
    }

    #[track_caller]
    pub fn says(self, expected: &[&str]) -> Self {
        for text in expected {
            assert!(
                self.out.contains(text) || self.err.contains(text),
                "`{text}` is missing\n--- stdout\n{}\n--- stderr\n{}",
                self.out,
                self.err
            );
        }
        self
    }

    #[track_caller]
    pub fn says_nothing_of(self, unexpected: &[&str]) -> Self {
        for text in unexpected {
            assert!(
                !self.out.contains(text) && !self.err.contains(text),
                "`{text}` should not be there\n--- stdout\n{}\n--- stderr\n{}",
                self.out,
                self.err
            );
        }
        self
    }
}

fn run(mut command: Command, input: &str) -> Run {
    let mut child =
        command.stdin(Stdio::piped()).stdout(Stdio::piped()).stderr(Stdio::piped()).spawn().unwrap();
    let mut stdin = child.stdin.take().unwrap();
    let output = std::thread::scope(|scope| {
        // A command that does not read its input may end before it is written.
        scope.spawn(move || stdin.write_all(input.as_bytes()));
        child.wait_with_output().unwrap()
    });
    output.into()
}

impl Tree {
    /// A copy of `examples/<name>`, without files that a run left there.
    pub fn example(name: &str) -> Self {
        let tree = Self::empty();
        copy_if(&examples().join(name), &tree.path(), &|name| !name.starts_with('.'));
        tree
    }

    pub fn empty() -> Self {
        let folder = memory_folder();
        fs::create_dir(folder.path().join("tree")).unwrap();
        Self { folder }
    }

    pub fn path(&self) -> PathBuf {
        self.folder.path().join("tree")
    }

    pub fn beside(&self, name: &str) -> PathBuf {
        self.folder.path().join(name)
    }

    /// Runs `streamfleet <words>` beside the tree, which is named `tree` there, with `PATH` as the only
    /// environment variable.
    pub fn run(&self, words: &str) -> Run {
        self.run_with(words, &[], "")
    }

    /// Runs the binary with environment variables and input.
    pub fn run_with(&self, words: &str, variables: &[(&str, &str)], input: &str) -> Run {
        let mut command = self.command(words);
        command.envs(variables.iter().copied());
        run(command, input)
    }

    /// Runs the binary so that permissions apply to it: root bypasses them by two capabilities, which are
    /// dropped.
    pub fn run_bound(&self, words: &str) -> Run {
        let mut command = self.command(words);
        if fs::metadata("/proc/self").unwrap().uid() == 0 {
            let mut bound = Command::new("setpriv");
            bound.args(["--bounding-set", "-dac_override,-dac_read_search"]);
            bound.arg(command.get_program()).args(command.get_args());
            bound.current_dir(command.get_current_dir().unwrap()).env_clear();
            bound.envs(command.get_envs().filter_map(|(name, value)| Some((name, value?))));
            command = bound;
        }
        command.output().expect("as root, the tests of permissions need setpriv, of util-linux").into()
    }

    pub fn command(&self, words: &str) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_streamfleet"));
        command.args(words.split_whitespace()).current_dir(self.folder.path());
        command.env_clear().env("PATH", std::env::var_os("PATH").unwrap_or_default()).env("USER", "tester");
        command
    }

    /// Starts a run to be killed. Its output is lost.
    pub fn start(&self, words: &str) -> Child {
        let mut command = self.command(words);
        command.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null()).spawn().unwrap()
    }

    pub fn write(&self, file: &str, text: impl AsRef<[u8]>) {
        let path = self.path().join(file);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, text).unwrap();
    }

    pub fn read(&self, file: &str) -> String {
        fs::read_to_string(self.path().join(file)).unwrap()
    }

    /// A file of the tree that may be no text.
    pub fn read_bytes(&self, file: &str) -> Vec<u8> {
        fs::read(self.path().join(file)).unwrap()
    }

    pub fn remove(&self, file: &str) {
        fs::remove_file(self.path().join(file)).unwrap();
    }

    /// Edits a file: `from` must occur in it exactly once.
    #[track_caller]
    pub fn edit(&self, file: &str, from: &str, to: &str) {
        let text = self.read(file);
        assert_eq!(text.matches(from).count(), 1, "`{from}` should stand once in {file}");
        self.write(file, text.replace(from, to));
    }

    /// Every file written for fleets, with its bytes, by path below the output folder.
    pub fn output(&self) -> Vec<(String, Vec<u8>)> {
        files(&self.path().join(".streamfleet/output"))
    }
}

/// A temporary folder, in memory where possible: the tests of kills and many others sync to disk a thousand
/// times, which an installation needs and which makes a test slow.
pub fn memory_folder() -> TempDir {
    TempDir::new_in("/dev/shm").or_else(|_| TempDir::new()).unwrap()
}

/// A plan's text without values unique to the installation: plan and approval ids, and fingerprints of
/// secrets.
pub fn stable(text: &str) -> String {
    let mut stable = text.to_owned();
    for mark in ["plan ", "Plan `", "approve ", "hmac:"] {
        let own = |part: &str| match part.bytes().take_while(u8::is_ascii_hexdigit).count() {
            length if length >= 8 => format!("…{}", &part[length..]),
            _ => part.to_owned(),
        };
        let mut parts = stable.split(mark);
        let first = parts.next().unwrap_or_default().to_owned();
        stable = parts.fold(first, |text, part| text + mark + &own(part));
    }
    stable
}

/// Objects without ids and keyed fingerprints, which are unique to the installation.
pub fn without_own(text: &str) -> String {
    let own = ["streamfleet.io/id: ", "streamfleet.io/mounted: "];
    let shown = |line: &str| match own.iter().find_map(|mark| Some(line.find(mark)? + mark.len())) {
        Some(end) => format!("{}…", &line[..end]),
        None => line.to_owned(),
    };
    text.lines().map(shown).collect::<Vec<_>>().join("\n")
}

/// Installs a program in a process of its own. A program that this process wrote may be "Text file busy": what another
/// thread starts meanwhile inherits the open file.
pub fn install(from: impl AsRef<Path>, to: &Path) {
    let installed =
        Command::new("install").args(["-D", "-m", "755"]).arg(from.as_ref()).arg(to).status().unwrap();
    assert!(installed.success());
}

/// A script for the shell, such as a hook of git.
pub fn install_script(path: &Path, text: &str) {
    let mut written = tempfile::NamedTempFile::new().unwrap();
    written.write_all(format!("#!/bin/sh\n{text}\n").as_bytes()).unwrap();
    install(written.path(), path);
}

pub fn copy(from: &Path, to: &Path) {
    copy_if(from, to, &|_| true);
}

fn copy_if(from: &Path, to: &Path, chosen: &dyn Fn(&str) -> bool) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let entry = entry.unwrap();
        let target = to.join(entry.file_name());
        if !chosen(&entry.file_name().to_string_lossy()) {
            continue;
        }
        if entry.path().is_dir() {
            copy_if(&entry.path(), &target, chosen);
        } else if !entry.file_type().unwrap().is_socket() {
            fs::copy(entry.path(), target).unwrap();
        }
    }
    fs::set_permissions(to, fs::metadata(from).unwrap().permissions()).unwrap();
}

/// Every file below a folder with its bytes, sorted by path, but sockets.
pub fn files(root: &Path) -> Vec<(String, Vec<u8>)> {
    fn walk(folder: &Path, root: &Path, found: &mut Vec<(String, Vec<u8>)>) {
        let Ok(entries) = fs::read_dir(folder) else { return };
        for entry in entries {
            let path = entry.unwrap().path();
            if path.is_dir() {
                walk(&path, root, found);
            } else if !fs::symlink_metadata(&path).unwrap().file_type().is_socket() {
                let name = path.strip_prefix(root).unwrap().to_str().unwrap().to_owned();
                found.push((name, fs::read(&path).unwrap()));
            }
        }
    }
    let mut found = Vec::new();
    walk(root, root, &mut found);
    found.sort();
    found
}

/// Which part of a loop a test does: everything with `STREAMFLEET_TESTS=all`, as in `.ci/run`, and otherwise
/// one in so many, evenly spread.
pub fn one_in(part: usize) -> usize {
    if std::env::var("STREAMFLEET_TESTS").is_ok_and(|tests| tests == "all") { 1 } else { part }
}

/// Reports a skipped test and the reason, bypassing the harness's capture of passing tests' output.
pub fn skipped(why: &str) {
    let thread = std::thread::current();
    let line = format!("skipped: {}: {why}\n", thread.name().unwrap_or_default());
    std::io::stderr().write_all(line.as_bytes()).unwrap();
}

pub fn approval_id(plan: &str) -> String {
    let after = plan.split("streamfleet approve ").nth(1).unwrap_or_else(|| panic!("no id in\n{plan}"));
    after.chars().take_while(char::is_ascii_hexdigit).collect()
}
