//! A real Kafka broker, run with the rendered configuration as Strimzi would, and Kafka's own tools as its
//! clients.

pub mod jars;
mod node;
mod objects;
mod properties;

use std::fs;
use std::os::unix::fs::symlink;
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use serde_json::{Value, json};
use tempfile::TempDir;

use super::control_plane::process::{Folder, Process};
use super::control_plane::{ControlPlane, until};
use super::memory_folder;
use node::Node;
pub use node::address;
use objects::{Objects, list, text, write};

/// A broker that is also its only controller, stopped on drop.
pub struct Broker {
    // Dropped before the folder that it writes to.
    process: Process,
    folder: Folder,
    /// In memory, since Kafka blocks producers on a nearly full disk.
    _disk: TempDir,
    node: Node,
    objects: Objects,
    /// The machine has memory for one at a time.
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Broker {
    /// Prints the end of the broker's log if the test fails.
    fn drop(&mut self) {
        if std::thread::panicking() {
            let log = self.log();
            let lines: Vec<&str> = log.lines().collect();
            println!("The broker logged:\n{}", lines[lines.len().saturating_sub(60)..].join("\n"));
        }
    }
}

pub struct Outcome {
    pub succeeded: bool,
    pub said: String,
}

impl Outcome {
    #[track_caller]
    pub fn succeeds(self) -> String {
        assert!(self.succeeded, "{}", self.said);
        self.said
    }

    /// Asserts that the output contains this, whatever the exit code.
    #[track_caller]
    pub fn says(self, what: &str) -> Self {
        assert!(self.said.contains(what), "`{what}` is missing in\n{}", self.said);
        self
    }
}

impl Broker {
    /// Starts the rendered cluster of a namespace, with users and their passwords and certificates, as the
    /// user operator would create them from a KafkaUser. `hosts` are names of this host beside the node's
    /// own. Returns when it serves.
    pub fn start(plane: &ControlPlane, namespace: &str, users: &[(&str, &str)], hosts: &[&str]) -> Broker {
        Broker::start_with(plane, namespace, users, hosts, &[])
    }

    /// As above, with further options of its Java.
    pub fn start_with(
        plane: &ControlPlane,
        namespace: &str,
        users: &[(&str, &str)],
        hosts: &[&str],
        more: &[String],
    ) -> Broker {
        let turn = turn();
        let objects = Objects::read(plane, namespace);
        let node = Node::from_objects(&objects);
        let (folder, disk) = (Folder::new(), memory_folder());
        symlink(disk.path(), folder.path().join("data")).unwrap();
        lay_out(folder.path(), &objects, &node, users, hosts);
        format(folder.path(), &objects, users);
        let mut options = vec!["-Dorg.slf4j.simpleLogger.defaultLogLevel=info".to_owned()];
        options.push(resolver(folder.path()));
        options.extend_from_slice(more);
        let mut command = jars::program(&options, "kafka.Kafka");
        command.arg("server.properties").current_dir(folder.path());
        let root = folder.path().display();
        // Mounts at the container's root are below the folder.
        command.envs(objects.environment().into_iter().map(|(name, value)| (name, format!("{root}{value}"))));
        let process = Process::start(command, folder.path().join("broker.log"));
        let mut broker = Broker { process, folder, _disk: disk, node, objects, _turn: turn };
        until("the broker is started", || {
            if let Some(said) = broker.process.last_words() {
                panic!("the broker ended\n{said}");
            }
            broker.log().contains("Kafka Server started").then_some(())
        });
        broker
    }

    /// Kills it.
    pub fn end(&mut self) {
        self.process.end();
    }

    /// Has clients find a name at an address from now on.
    pub fn resolve(&self, name: &str, address: &str) {
        let path = self.folder.path().join("hosts");
        let hosts = fs::read_to_string(&path).unwrap();
        fs::write(path, format!("{hosts}{address} {name}\n")).unwrap();
    }

    pub fn log(&self) -> String {
        self.process.said()
    }

    pub fn address(&self, port: u16) -> String {
        format!("{}:{port}", self.node.address)
    }

    /// The file with which Java programs find its names.
    pub fn hosts(&self) -> PathBuf {
        self.folder.path().join("hosts")
    }

    /// Writes the files of a Secret or ConfigMap into a folder, as Kubernetes mounts them.
    pub fn mount(&self, name: &str, place: &Path) {
        let secret = self.folder.path().join("secrets").join(name);
        let files = match fs::read_dir(secret) {
            Ok(entries) => entries
                .map(|entry| entry.unwrap())
                .map(|it| (it.file_name().into_string().unwrap(), fs::read(it.path()).unwrap()))
                .collect(),
            Err(_) => self.objects.files[&("configMap", name.to_owned())].clone(),
        };
        write(place, &files);
    }

    pub fn write(&self, file: &str, text: &str) {
        fs::write(self.folder.path().join(file), text).unwrap();
    }

    pub fn kafka(&self) -> &Value {
        &self.objects.kafka
    }

    /// The Kafka with the status that the operator would write: listener addresses and CA certificates.
    pub fn with_status(&self) -> Value {
        let listeners = list(&self.kafka()["spec"]["kafka"]["listeners"]).iter();
        let mut kafka = self.kafka().clone();
        kafka["status"] =
            json!({"listeners": listeners.map(|listener| self.status(listener)).collect::<Value>()});
        kafka
    }

    fn status(&self, listener: &Value) -> Value {
        let given = &listener["configuration"]["brokerCertChainAndKey"];
        let (secret, file, host) = match given["secretName"].as_str() {
            // The address of a load balancer, which no certificate names.
            Some(secret) => (secret.to_owned(), text(&given["certificate"]), self.node.address.to_string()),
            None => (self.node.authority_secret(), "ca.crt".to_owned(), self.node.bootstrap.clone()),
        };
        let certificate = self.folder.path().join("secrets").join(secret).join(file);
        json!({
            "name": listener["name"],
            "addresses": [{"host": host, "port": listener["port"]}],
            "bootstrapServers": format!("{host}:{}", listener["port"]),
            "certificates": [fs::read_to_string(certificate).unwrap()],
        })
    }

    /// A client with the certificate of a user, as the user operator would create one.
    pub fn certified(&self, client: Client, user: &str) -> Client {
        let pem = |file: &str| {
            fs::read_to_string(self.folder.path().join("secrets").join(user).join(file)).unwrap()
        };
        let with_chain = client.with("ssl.keystore.certificate.chain", &pem("user.crt"));
        with_chain.with("ssl.keystore.key", &pem("user.key"))
    }

    /// Runs a tool to its end, as a client. Each tool has another option for the bootstrap server.
    pub fn tool(&self, client: &Client, class: &str, words: &str) -> Outcome {
        self.write("client.properties", &client.file);
        let mut options = vec!["-Dorg.slf4j.simpleLogger.defaultLogLevel=warn".to_owned()];
        options.push(resolver(self.folder.path()));
        options.extend(client.options.iter().cloned());
        let mut command = jars::program(&options, class);
        command.args(words.split_whitespace()).args(["--command-config", "client.properties"]);
        command.args(["--bootstrap-server", client.bootstrap()]).current_dir(self.folder.path());
        finish(Process::start(command, self.folder.path().join("tool.log")))
    }
}

#[derive(Clone)]
pub struct Client {
    file: String,
    options: Vec<String>,
}

impl Client {
    pub fn new(file: &str) -> Client {
        Client { file: file.to_owned(), options: Vec::new() }
    }

    /// Adds a property, which overrides an earlier one of its name.
    pub fn with(mut self, property: &str, value: &str) -> Client {
        self.file += &format!("{property}={}\n", value.replace('\n', "\\n"));
        self
    }

    pub fn option(mut self, option: &str) -> Client {
        self.options.push(option.to_owned());
        self
    }

    /// Adds a user's password, as the user operator writes it into the user's Secret.
    pub fn user(self, (name, password): (&str, &str)) -> Client {
        let module = "org.apache.kafka.common.security.scram.ScramLoginModule";
        let login = format!(r#"{module} required username="{name}" password="{password}";"#);
        self.with("sasl.jaas.config", &login)
    }

    fn bootstrap(&self) -> &str {
        let mut named = self.file.lines().filter_map(|line| line.strip_prefix("bootstrap.servers="));
        named.next_back().unwrap()
    }
}

/// Waits until no other test runs a broker.
pub fn turn() -> MutexGuard<'static, ()> {
    static TURN: Mutex<()> = Mutex::new(());
    // A failed test leaves nothing behind that could be in the way.
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Writes the files a node needs at its start.
fn lay_out(folder: &Path, objects: &Objects, node: &Node, users: &[(&str, &str)], hosts: &[&str]) {
    for ((kind, name), files) in &objects.files {
        if *kind == "secret" {
            write(&folder.join("secrets").join(name), files);
        }
    }
    let users: Vec<&str> = users.iter().map(|(name, _)| *name).collect();
    node.secrets(&users).iter().for_each(|(name, files)| write(&folder.join("secrets").join(name), files));
    objects.mount(folder);
    let names = [node.host.as_str(), &node.bootstrap].into_iter().chain(hosts.iter().copied());
    let hosts: String = names.map(|name| format!("{} {name}\n", node.address)).collect();
    fs::write(folder.join("hosts"), hosts).unwrap();
    fs::write(folder.join("server.properties"), properties::of(objects, node, folder)).unwrap();
}

/// Formats the node's disk with the rendered metadata version.
fn format(folder: &Path, objects: &Objects, users: &[(&str, &str)]) {
    let mut command = jars::program(&[], "kafka.tools.StorageTool");
    command.args(["format", "--config", "server.properties", "--cluster-id", "AAAAAAAAAAAAAAAAAAAAAA"]);
    command.arg("--release-version").arg(text(&objects.kafka["spec"]["kafka"]["metadataVersion"]));
    for (name, password) in users {
        command.arg("--add-scram").arg(format!("SCRAM-SHA-512=[name={name},password={password}]"));
    }
    command.current_dir(folder);
    finish(Process::start(command, folder.join("format.log"))).succeeds();
}

pub fn finish(mut process: Process) -> Outcome {
    let status = until("a tool has ended", || process.ended());
    Outcome { succeeded: status.success(), said: process.said() }
}

/// Makes a Java VM look up names in a file of the folder instead of asking DNS.
fn resolver(folder: &Path) -> String {
    format!("-Djdk.net.hosts.file={}", folder.join("hosts").display())
}
