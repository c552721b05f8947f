//! Programs of Debian's packages: the installed ones, or taken from the packages without installing them.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use super::control_plane::programs::{at, once, run};

/// The folder in which the programs are, by their paths.
pub fn programs(name: &str, programs: &[&str], packages: &[&str]) -> Result<PathBuf, String> {
    if programs.iter().all(|it| Path::new("/").join(it).exists()) {
        return Ok(PathBuf::from("/"));
    }
    once(&format!("debian-{name}"), &format!("fetching Debian's {name}"), |folder| {
        let purpose = "the tests use packages of Debian: on Debian, run `apt-get update`";
        let apt = |words: &[&str]| {
            let mut apt = Command::new("apt-get");
            apt.current_dir(folder).args(words);
            run(apt, purpose)
        };
        let install = ["install", "--print-uris", "--quiet=2", "--no-install-recommends"];
        let install = [&install[..], packages].concat();
        // The lists of packages may be missing.
        let needed = apt(&install).or_else(|_| apt(&["update", "--quiet"]).and_then(|_| apt(&install)))?;
        // 'http://…/knot_3.2.6-1_amd64.deb' knot_3.2.6-1_amd64.deb 123 SHA256:…
        let needed = String::from_utf8_lossy(&needed).into_owned();
        let files = needed.lines().filter_map(|line| line.split_whitespace().nth(1));
        let names: Vec<&str> = files.filter_map(|file| file.split('_').next()).collect();
        let download = [&["download", "--quiet"][..], &names].concat();
        if apt(&download).is_err() {
            apt(&["update", "--quiet"])?;
            apt(&download)?;
        }
        for package in fs::read_dir(folder).map_err(at(folder))?.flatten().map(|entry| entry.path()) {
            let mut unpack = Command::new("dpkg-deb");
            unpack.args(["--extract".as_ref(), package.as_os_str(), folder.as_os_str()]);
            run(unpack, "it unpacks packages of Debian").map(drop)?;
            fs::remove_file(&package).map_err(at(&package))?;
        }
        Ok(())
    })
}

/// A program in such a folder, with the libraries beside it.
pub fn command(folder: &Path, program: &str) -> Command {
    let mut command = Command::new(folder.join(program));
    if folder != Path::new("/") {
        let libraries = fs::read_dir(folder.join("usr/lib")).into_iter().flatten().flatten();
        let libraries: Vec<String> = libraries.map(|entry| entry.path().display().to_string()).collect();
        command.env("LD_LIBRARY_PATH", libraries.join(":"));
    }
    command
}
