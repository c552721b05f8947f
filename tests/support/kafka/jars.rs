//! The jars of the broker and of its clients, from Maven.

use std::env;
use std::ffi::OsString;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use sha2::{Digest as _, Sha256};

use super::super::control_plane::programs::{at, java, once, run};

/// The digest of all jars, in the order of their names.
const DIGEST: &str = "eb7e75816dfd76618fbdc8a2b620dcaa69da288aca820f3a7c35079e0b003677";

const JAVA: &str = "the broker of the tests needs a Java";

pub fn program(options: &[String], class: &str) -> Command {
    static FOUND: OnceLock<Result<(PathBuf, OsString), String>> = OnceLock::new();
    let find = || Ok((java()?, jars()?.join("*").into_os_string()));
    let (java, class_path) = FOUND.get_or_init(find).as_ref().unwrap_or_else(|why| panic!("{JAVA}: {why}"));
    let mut command = Command::new(java);
    // On a small machine these options halve the start time.
    command.env_clear().args(["-XX:+UseSerialGC", "-XX:TieredStopAtLevel=1", "-Xmx256m"]);
    command.args(options).arg("-cp").arg(class_path).arg(class);
    command
}

/// The folder of the jars, created once for each content of the file that names them.
fn jars() -> Result<PathBuf, String> {
    let file = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/kafka/pom.xml");
    let named = hex::encode(Sha256::digest(fs::read(&file).map_err(at(&file))?));
    let what = "fetching Kafka's broker and Strimzi's plugins for it, 57 MB, some 30 seconds";
    once(&format!("kafka-{}", &named[..12]), what, |folder| {
        let mut maven = Command::new("mvn");
        maven.args(["-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy-dependencies"]);
        maven.arg("-DincludeScope=runtime").arg(format!("-DoutputDirectory={}", folder.display()));
        // Maven's working directory may contain a project, and isn't the place for its by-products.
        maven.arg("-f").arg(&file).current_dir(folder);
        run(maven, "the tests start a Kafka broker, whose jars come with Maven: install Maven 3.8 or newer")
            .map(drop)?;
        let found = digest(folder)?;
        if found == DIGEST {
            return Ok(());
        }
        Err(format!("Maven gave jars with the SHA-256 digest {found}, and it has to be {DIGEST}"))
    })
}

fn digest(folder: &Path) -> Result<String, String> {
    let entries = fs::read_dir(folder).map_err(at(folder))?;
    let mut files: Vec<PathBuf> = entries.flatten().map(|entry| entry.path()).collect();
    files.sort();
    let mut digest = Sha256::new();
    for file in files {
        digest.update(file.file_name().unwrap_or_default().as_encoded_bytes());
        digest.update(Sha256::digest(fs::read(&file).map_err(at(&file))?));
    }
    Ok(hex::encode(digest.finalize()))
}
