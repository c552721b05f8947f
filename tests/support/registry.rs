//! A real Apicurio Registry, run with the rendered Deployment beside a real broker.

use std::collections::BTreeMap;
use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;
use std::sync::OnceLock;

use serde_json::{Value, json};
use sha2::{Digest as _, Sha256};

use super::control_plane::process::{Folder, Process};
use super::control_plane::programs::{at, java, once, run};
use super::control_plane::until;
use super::curl::Server;
use super::free_port;
use super::kafka::Broker;

pub const IMAGE: &str = "quay.io/apicurio/apicurio-registry@sha256:0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a0a";

const VERSION: &str = "3.3.3";
const DIGEST: &str = "8bc6751c76d963734224b01d5e7f84ccb3cb61c87d3bd77c36c35f10a5cbed63";

/// The program, fetched and unpacked once.
fn program() -> PathBuf {
    static FOUND: OnceLock<Result<PathBuf, String>> = OnceLock::new();
    let what = "fetching Apicurio Registry, 159 MB";
    let find = || {
        once(&format!("apicurio-{VERSION}"), what, |folder| {
            let artifact = format!("io.apicurio:apicurio-registry-app:{VERSION}:tar.gz:all");
            let mut maven = Command::new("mvn");
            maven.args(["-q", "-B", "org.apache.maven.plugins:maven-dependency-plugin:3.8.1:copy"]);
            maven
                .arg(format!("-Dartifact={artifact}"))
                .arg(format!("-DoutputDirectory={}", folder.display()));
            maven.args(["-Dmdep.stripVersion=true", "-Dmdep.stripClassifier=true"]).current_dir(folder);
            run(
                maven,
                "the tests start a schema registry, which comes with Maven: install Maven 3.8 or newer",
            )
            .map(drop)?;
            let archive = folder.join("apicurio-registry-app.tar.gz");
            let found = hex::encode(Sha256::digest(fs::read(&archive).map_err(at(&archive))?));
            if found != DIGEST {
                return Err(format!(
                    "Maven gave a registry with the SHA-256 digest {found}, and it has to be {DIGEST}"
                ));
            }
            let mut tar = Command::new("tar");
            tar.arg("-xzf").arg(&archive).current_dir(folder);
            run(tar, "the tests unpack a schema registry: install tar").map(drop)?;
            fs::remove_file(&archive).map_err(at(&archive))
        })
    };
    FOUND.get_or_init(find).clone().unwrap_or_else(|why| panic!("{why}"))
}

/// A pod of the rendered Deployment.
pub struct Registry {
    pub process: Process,
    /// Below it is what is mounted at the container's root.
    pub root: Folder,
    pub port: u16,
    management: u16,
    /// Its name for clients outside of Kubernetes.
    host: &'static str,
}

impl Drop for Registry {
    fn drop(&mut self) {
        self.process.tell_of_failure("The registry");
    }
}

/// What a kubelet would give the container: `$$` is a dollar, and nothing here is a reference to a variable.
fn environment(
    deployment: &Value,
    broker: &Broker,
    user: (&str, &str),
    root: &Path,
) -> BTreeMap<String, String> {
    let container = &deployment["spec"]["template"]["spec"]["containers"][0];
    let text = |value: &Value| value.as_str().unwrap().to_owned();
    let variables = container["env"].as_array().unwrap().iter().map(|variable| {
        let value = match variable.pointer("/valueFrom/secretKeyRef") {
            Some(reference) => {
                assert_eq!(
                    (&reference["name"], &reference["key"]),
                    (&json!(user.0), &json!("sasl.jaas.config"))
                );
                let module = "org.apache.kafka.common.security.scram.ScramLoginModule";
                format!("{module} required username=\"{}\" password=\"{}\";", user.0, user.1)
            }
            None => text(&variable["value"]).replace("$$", "$"),
        };
        let value = if value.starts_with("/mnt/") { format!("{}{value}", root.display()) } else { value };
        (text(&variable["name"]), value)
    });
    let mut variables: BTreeMap<String, String> = variables.collect();
    let options = variables.get_mut("JAVA_TOOL_OPTIONS").unwrap();
    *options += &format!(" -Djdk.net.hosts.file={} -XX:TieredStopAtLevel=1", broker.hosts().display());
    variables
}

impl Registry {
    /// Starts one whose user of Kafka has this name and password.
    pub fn start(broker: &Broker, deployment: &Value, user: (&str, &str), host: &'static str) -> Registry {
        let root = Folder::new();
        let spec = &deployment["spec"]["template"]["spec"];
        for mount in spec["containers"][0]["volumeMounts"].as_array().unwrap() {
            let volume =
                spec["volumes"].as_array().unwrap().iter().find(|it| it["name"] == mount["name"]).unwrap();
            let place = root.path().join(mount["mountPath"].as_str().unwrap().trim_start_matches('/'));
            match volume["secret"]["secretName"].as_str().or(volume["configMap"]["name"].as_str()) {
                Some(name) => broker.mount(name, &place),
                None => fs::create_dir_all(place).unwrap(),
            }
        }
        let [port, management] = [(); 2].map(|()| free_port());
        let mut command = Command::new(java().unwrap());
        command.env_clear().envs(environment(deployment, broker, user, root.path()));
        command.env("QUARKUS_HTTP_SSL_PORT", port.to_string());
        command.env("QUARKUS_MANAGEMENT_PORT", management.to_string());
        // The least that there is; it has a minute.
        command.env("QUARKUS_HTTP_SSL_CERTIFICATE_RELOAD_PERIOD", "30s");
        command.arg(format!("-Djava.io.tmpdir={}/tmp", root.path().display()));
        command
            .args(["-XX:+UseSerialGC", "-jar"])
            .arg(program().join("quarkus-run.jar"))
            .current_dir(root.path());
        let process = Process::start(command, root.path().join("log"));
        Registry { process, root, port, management, host }
    }

    /// What the kubelet is answered.
    pub fn probed(&self, deployment: &Value, probe: &str) -> String {
        let container = &deployment["spec"]["template"]["spec"]["containers"][0];
        let path = container[probe]["httpGet"]["path"].as_str().unwrap();
        let url = format!("http://127.0.0.1:{}{path}", self.management);
        let said = Command::new("curl").args(["-s", "-o", "/dev/null", "-w", "%{http_code}", &url]).output();
        String::from_utf8(said.unwrap().stdout).unwrap()
    }

    pub fn is_ready(&mut self, deployment: &Value) {
        until("the registry is ready", || {
            if let Some(said) = self.process.last_words() {
                panic!("the registry ended\n{said}");
            }
            (self.probed(deployment, "readinessProbe") == "200").then_some(())
        });
    }

    /// Calls it by its host name over TLS.
    #[track_caller]
    pub fn call(&self, token: &str, call: &str, body: Option<&Value>) -> (u16, Value) {
        self.try_call(token, call, body).unwrap_or_else(|why| panic!("{call}: {why}"))
    }

    /// As above. The error is curl's.
    pub fn try_call(&self, token: &str, call: &str, body: Option<&Value>) -> Result<(u16, Value), String> {
        let (method, path) = call.split_once(' ').unwrap();
        let (trusted, authorization) =
            (self.root.path().join("mnt/tls/tls.crt"), format!("authorization: Bearer {token}"));
        let mut words = vec!["--request", method, "--header", "content-type: application/json"];
        if !token.is_empty() {
            words.extend(["--header", &authorization]);
        }
        let body = body.map(Value::to_string);
        words.extend(body.iter().flat_map(|body| ["--data", body]));
        Server { host: self.host, port: self.port, trusted: &trusted }.call(path, &words)
    }
}
