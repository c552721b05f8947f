//! `streamfleet serve`, run as a service manager would.

use std::fs::{self, File};
use std::process::{Child, Command, ExitStatus, Stdio};

use super::control_plane::within_patience;
use super::{Tree, skipped};

pub struct Serve<'t> {
    pub tree: &'t Tree,
    process: Child,
}

impl<'t> Serve<'t> {
    pub fn start(tree: &'t Tree, words: &str) -> Self {
        Self::start_with(tree, words, &[])
    }

    pub fn start_with(tree: &'t Tree, words: &str, variables: &[(&str, &str)]) -> Self {
        let log = File::create(tree.beside("serve.log")).unwrap();
        let process = tree
            .command(words)
            .env("STREAMFLEET_LOG", "streamfleet=debug,warn")
            .envs(variables.iter().copied())
            .stdout(Stdio::null())
            .stderr(log)
            .spawn()
            .unwrap();
        Self { tree, process }
    }

    /// Starts it in a namespace of its own with this kernel limit; `None` where users may not create one.
    pub fn start_limited(tree: &'t Tree, words: &str, limit: &str, number: u32) -> Option<Self> {
        Self::start_apart(tree, words, ("--user", &format!("echo {number} > /proc/sys/{limit}")), &[])
    }

    /// Starts it in a network of its own, in which every port is free and nobody else can be reached.
    pub fn start_in_own_network(tree: &'t Tree, words: &str) -> Option<Self> {
        Self::start_in_own_network_with(tree, words, &[])
    }

    pub fn start_in_own_network_with(
        tree: &'t Tree,
        words: &str,
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        // Without `ip`, the network has no addresses. This setting allows listening on them nevertheless.
        let set = "echo 1 > /proc/sys/net/ipv4/ip_nonlocal_bind && (ip link set lo up || true) 2>/dev/null";
        Self::start_apart(tree, words, ("--net", set), variables)
    }

    /// Starts it where names have the addresses of a file `hosts` beside the tree, whose lines may change.
    pub fn start_with_hosts(tree: &'t Tree, words: &str) -> Option<Self> {
        let mount = format!("mount --bind {} /etc/hosts", tree.beside("hosts").display());
        let own = ["unshare", "--user", "--map-root-user", "--mount", "sh", "-c"];
        let may = Command::new(own[0]).args(&own[1..]).arg(&mount).stderr(Stdio::null()).status();
        if !may.is_ok_and(|status| status.success()) {
            skipped("a file of its own in the place of /etc/hosts can't be had here");
            return None;
        }
        let script = format!("{mount} && exec \"$@\"");
        Some(Self::start_through(tree, &[&own[..], &[&script, "sh"]].concat(), words))
    }

    fn start_apart(
        tree: &'t Tree,
        words: &str,
        (namespace, set): (&str, &str),
        variables: &[(&str, &str)],
    ) -> Option<Self> {
        let own = ["unshare", "--user", "--map-root-user", namespace, "sh", "-c"];
        let may = Command::new(own[0]).args(&own[1..]).arg(set).stderr(Stdio::null()).status();
        if !may.is_ok_and(|status| status.success()) {
            skipped(&format!("a user namespace with a setting of its own ({set}) can't be had here"));
            return None;
        }
        let script = format!("{set} && exec \"$@\"");
        let wrapper = [&own[..], &[&script, "sh"]].concat();
        Some(Self::start_through_with(tree, &wrapper, words, variables))
    }

    /// Starts it by a wrapper that execs its arguments.
    pub fn start_through(tree: &'t Tree, wrapper: &[&str], words: &str) -> Self {
        Self::start_through_with(tree, wrapper, words, &[])
    }

    pub fn start_through_with(
        tree: &'t Tree,
        wrapper: &[&str],
        words: &str,
        variables: &[(&str, &str)],
    ) -> Self {
        let plain = tree.command(words);
        let mut command = Command::new(wrapper[0]);
        command.args(&wrapper[1..]).arg(plain.get_program()).args(plain.get_args()).env_clear();
        command.envs(plain.get_envs().filter_map(|(name, value)| Some((name, value?))));
        command
            .current_dir(plain.get_current_dir().unwrap())
            .env("STREAMFLEET_LOG", "streamfleet=debug,warn")
            .envs(variables.iter().copied());
        let log = File::create(tree.beside("serve.log")).unwrap();
        let process = command.stdout(Stdio::null()).stderr(log).spawn().unwrap();
        Self { tree, process }
    }

    pub fn id(&self) -> u32 {
        self.process.id()
    }

    pub fn ended(mut self) -> Option<i32> {
        let ended = within_patience(|| self.process.try_wait().unwrap());
        ended.unwrap_or_else(|| panic!("it still runs\n{}", self.log())).code()
    }

    pub fn end(&mut self) -> Option<ExitStatus> {
        self.process.try_wait().unwrap()
    }

    pub fn log(&self) -> String {
        fs::read_to_string(self.tree.beside("serve.log")).unwrap()
    }

    #[track_caller]
    pub fn says(&self, words: &[&str]) {
        let said = || self.log().lines().any(|line| words.iter().all(|word| line.contains(word)));
        self.until(&format!("it says {words:?}"), || said().then_some(()));
    }

    #[track_caller]
    pub fn until<T>(&self, what: &str, ask: impl FnMut() -> Option<T>) -> T {
        within_patience(ask).unwrap_or_else(|| panic!("it is still not so that {what}\n{}", self.log()))
    }

    /// Waits until these clusters are created, and a later round has seen them.
    #[track_caller]
    pub fn has_made(&self, resources: &[&str]) {
        self.until(&format!("{resources:?} are made"), || {
            let log = self.log();
            let last = |words: &[&str]| {
                let lines = log.lines().enumerate();
                lines.filter(|(_, line)| words.iter().all(|word| line.contains(word))).last()
            };
            let made = resources.iter().map(|resource| last(&["done", resource]));
            let made: Vec<_> = made.collect::<Option<_>>()?;
            (made.into_iter().max() < last(&["looked="])).then_some(())
        });
    }

    pub fn rounds(&self) -> usize {
        self.log().lines().filter(|line| line.contains("looked=")).count()
    }

    pub fn memory(&self) -> usize {
        self.status("VmRSS:")
    }

    pub fn most_memory(&self) -> usize {
        self.status("VmHWM:")
    }

    fn status(&self, field: &str) -> usize {
        let status = fs::read_to_string(format!("/proc/{}/status", self.process.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix(field)).unwrap();
        line.split_whitespace().next().unwrap().parse::<usize>().unwrap() * 1024
    }

    pub fn signal(&self, name: &str) {
        let id = self.process.id().to_string();
        assert!(Command::new("kill").args(["-s", name, &id]).status().unwrap().success());
    }

    /// Stops it with SIGTERM, as a service manager does, and returns its exit code.
    pub fn stop(mut self) -> Option<i32> {
        self.signal("TERM");
        self.process.wait().unwrap().code()
    }
}

impl Drop for Serve<'_> {
    fn drop(&mut self) {
        // It may have ended.
        let _ = self.process.kill();
        let _ = self.process.wait();
    }
}
