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
        let install = ["install", "--print-uris", "--quiet=2", "--no-install-recommends"];
        let install = [&install[..], packages].concat();
        // The lists of packages may be missing.
        let needed = apt(folder, &install)
            .or_else(|_| apt(folder, &["update", "--quiet"]).and_then(|_| apt(folder, &install)))?;
        // 'http://…/knot_3.2.6-1_amd64.deb' knot_3.2.6-1_amd64.deb 123 SHA256:…
        let needed = String::from_utf8_lossy(&needed).into_owned();
        let files = needed.lines().filter_map(|line| line.split_whitespace().nth(1));
        let names: Vec<&str> = files.filter_map(|file| file.split('_').next()).collect();
        unpack(folder, &names)
    })
}

/// Fetches packages, and unpacks them into a folder.
pub fn unpack(folder: &Path, packages: &[&str]) -> Result<(), String> {
    let download = [&["download", "--quiet"][..], packages].concat();
    // The lists of packages may be missing or old.
    if apt(folder, &download).is_err() {
        apt(folder, &["update", "--quiet"])?;
        apt(folder, &download)?;
    }
    let fetched: Vec<PathBuf> =
        fs::read_dir(folder).map_err(at(folder))?.flatten().map(|entry| entry.path()).collect();
    if fetched.is_empty() {
        return Err("apt-get gave no package".to_owned());
    }
    for package in fetched {
        let mut unpack = Command::new("dpkg-deb");
        unpack.args(["--extract".as_ref(), package.as_os_str(), folder.as_os_str()]);
        run(unpack, "it unpacks packages of Debian").map(drop)?;
        fs::remove_file(&package).map_err(at(&package))?;
    }
    Ok(())
}

fn apt(folder: &Path, words: &[&str]) -> Result<Vec<u8>, String> {
    let mut apt = Command::new("apt-get");
    apt.current_dir(folder).args(words);
    run(apt, "the tests use packages of Debian: on Debian, run `apt-get update`")
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
