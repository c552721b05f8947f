//! A real cluster with a listener for each way to log in, and some that are set up wrongly.

use std::collections::BTreeMap;
use std::fs;
use std::net::{IpAddr, Ipv4Addr};
use std::path::PathBuf;
use std::sync::{Arc, Mutex, MutexGuard};
use std::time::Duration;

use kafka_protocol::messages::alter_configs_request::{
    AlterConfigsRequest, AlterConfigsResource, AlterableConfig,
};
use kafka_protocol::messages::create_acls_request::{AclCreation, CreateAclsRequest};
use kafka_protocol::protocol::StrBytes;
use streamfleet::component::probe::{
    LookupFault, NameVerdict, ProbeLogin, ProbeOrder, ProbePlace, ProbeReport, ProbeTrust, PublicName, TOPIC,
    TOPIC_OPTIONS,
};
use streamfleet::config::AddressRange;
use streamfleet::names::{Kind, ResourceKey};
use streamfleet::probe::{Found, ProbeLimits, Prober, Resolver, Share};
use tempfile::TempDir;

use super::pki::{Authority, Pair};
use super::raw::RawClient;
use crate::support::control_plane::process::{Folder, Process};
use crate::support::control_plane::until;
use crate::support::kafka::{finish, jars, turn};
use crate::support::memory_folder;

pub const BOOTSTRAP: &str = "orders.k.example.com";
pub const USER: &str = "orders-probe";
pub const PASSWORD: &str = "open-sesame-4711";
/// The user of the identity provider.
pub const TOKEN_USER: &str = "probe-of-orders";
const ADMIN: &str = "admin";

/// The listeners' ports.
pub const SCRAM: u16 = 9094;
pub const OTHER_NAME: u16 = 9101;
pub const EXPIRED: u16 = 9102;
pub const OLD_LEAF: u16 = 9103;
pub const ADVERTISED: u16 = 9104;
pub const OAUTH: u16 = 9105;
pub const MTLS: u16 = 9106;
/// No listener has it.
pub const CLOSED: u16 = 9199;

/// Longer than in production: the machine of the tests is slow.
const LIMITS: ProbeLimits = ProbeLimits {
    step: Duration::from_secs(30),
    name: Duration::from_secs(180),
    check: Duration::from_secs(600),
    connections: 64,
    each: 64,
};

pub fn broker_host(id: u32) -> String {
    format!("broker-{id}--{BOOTSTRAP}")
}

/// Names and their addresses, as DNS would have them.
#[derive(Clone, Default)]
pub struct Names(Arc<Mutex<BTreeMap<String, IpAddr>>>);

impl Names {
    pub fn set(&self, host: &str, address: IpAddr) {
        self.0.lock().unwrap().insert(host.to_owned(), address);
    }

    pub fn remove(&self, host: &str) {
        self.0.lock().unwrap().remove(host);
    }
}

impl Resolver for Names {
    fn addresses<'f>(&'f self, host: &'f str, _: Share) -> Found<'f> {
        let found = self.0.lock().unwrap().get(host).copied();
        Box::pin(async move { found.map(|address| vec![address]).ok_or(LookupFault::Missing) })
    }
}

pub fn loopback() -> Vec<AddressRange> {
    vec!["127.0.0.0/8".to_owned().try_into().unwrap()]
}

/// Its name, port and protocol, and the host that it advertises.
type Listener = (&'static str, u16, &'static str, String);

/// What brokers need to accept tokens.
pub struct Tokens {
    pub url: String,
    pub authority: String,
    pub audience: &'static str,
}

pub struct Stage {
    // Dropped before the folder that they write to.
    running: BTreeMap<u32, Process>,
    pub names: Names,
    pub authority: Authority,
    pub users: Authority,
    pub certificate: Pair,
    tokens: Option<Tokens>,
    folder: Folder,
    disk: TempDir,
    _turn: MutexGuard<'static, ()>,
}

impl Drop for Stage {
    fn drop(&mut self) {
        if std::thread::panicking() {
            for (id, process) in &self.running {
                let log = process.said();
                let lines: Vec<&str> = log.lines().collect();
                println!("Broker {id} logged:\n{}", lines[lines.len().saturating_sub(40)..].join("\n"));
            }
        }
    }
}

impl Stage {
    /// Starts these brokers; 0 is the controller, too.
    pub fn set(ids: &[u32], tokens: Option<Tokens>) -> Stage {
        let turn = turn();
        let authority = Authority::new("an authority for names");
        let certificate = authority.server(&[BOOTSTRAP, "*.k.example.com"]);
        let mut stage = Stage {
            running: BTreeMap::new(),
            names: Names::default(),
            users: Authority::new("an authority for users"),
            certificate,
            authority,
            tokens,
            folder: Folder::new(),
            disk: memory_folder(),
            _turn: turn,
        };
        stage.names.set(BOOTSTRAP, address(0));
        stage.write("users.pem", &stage.users.pem);
        let pairs = [
            ("own", stage.certificate.clone()),
            ("other", stage.authority.server(&["other.example.com"])),
            ("expired", stage.authority.expired("*.k.example.com")),
            ("old", stage.authority.server(&[BOOTSTRAP, "*.k.example.com"])),
        ];
        for (name, pair) in pairs {
            stage.write(&format!("{name}.pem"), &format!("{}{}", pair.key, pair.chain(&stage.authority)));
        }
        if let Some(tokens) = &stage.tokens {
            stage.write("tokens.pem", &tokens.authority);
        }
        ids.iter().for_each(|id| stage.format(*id));
        stage.start(ids);
        stage.allow();
        stage
    }

    fn write(&self, file: &str, text: &str) {
        fs::write(self.path(file), text).unwrap();
    }

    fn path(&self, file: &str) -> PathBuf {
        self.folder.path().join(file)
    }

    /// Lays out a broker that is to be started.
    pub fn format(&self, id: u32) {
        self.names.set(&broker_host(id), address(id));
        self.write(&format!("{id}.properties"), &self.properties(id));
        let mut command = jars::program(&[], "kafka.tools.StorageTool");
        command.args([
            "format",
            "--cluster-id",
            "AAAAAAAAAAAAAAAAAAAAAA",
            "--config",
            &format!("{id}.properties"),
        ]);
        command.arg("--add-scram").arg(format!("SCRAM-SHA-512=[name={USER},password={PASSWORD}]"));
        command.current_dir(self.folder.path());
        finish(Process::start(command, self.path("format.log"))).succeeds();
    }

    /// Starts brokers, and waits until they serve.
    pub fn start(&mut self, ids: &[u32]) {
        for id in ids {
            let mut options = vec!["-Dorg.slf4j.simpleLogger.defaultLogLevel=info".to_owned()];
            let keys = self.tokens.as_ref().map(|tokens| format!("{}/keys", tokens.url));
            options.extend(keys.map(|url| format!("-Dorg.apache.kafka.sasl.oauthbearer.allowed.urls={url}")));
            let mut command = jars::program(&options, "kafka.Kafka");
            command.arg(format!("{id}.properties")).current_dir(self.folder.path());
            let process = Process::start(command, self.path(&format!("{id}.log")));
            self.running.insert(*id, process);
        }
        for id in ids {
            until("a broker is started", || {
                let process = self.running.get_mut(id).unwrap();
                if let Some(said) = process.last_words() {
                    panic!("broker {id} ended\n{said}");
                }
                process.said().contains("Kafka Server started").then_some(())
            });
        }
    }

    pub fn kill(&mut self, id: u32) {
        drop(self.running.remove(&id));
    }

    /// Gives the probe's user, however it logs in, the rights that it is said to need.
    fn allow(&self) {
        use streamfleet::component::probe::TOPIC_RIGHTS;
        let operation = |name: &str| match name {
            "Read" => 3,
            "Write" => 4,
            "Create" => 5,
            "Alter" => 7,
            other => panic!("{other}"),
        };
        let users = [USER.to_owned(), format!("CN={USER}"), TOKEN_USER.to_owned()];
        let right = |user: &String, name: &str| {
            AclCreation::default()
                // A topic, named literally; allowed.
                .with_resource_type(2)
                .with_resource_pattern_type(3)
                .with_resource_name(StrBytes::from_static_str(TOPIC))
                .with_principal(StrBytes::from_string(format!("User:{user}")))
                .with_host(StrBytes::from_static_str("*"))
                .with_operation(operation(name))
                .with_permission_type(3)
        };
        let rights = users.iter().flat_map(|user| TOPIC_RIGHTS.map(|name| right(user, name))).collect();
        let response = self.admin().call(&CreateAclsRequest::default().with_creations(rights), 3);
        assert!(response.results.iter().all(|it| it.error_code == 0), "{response:?}");
        // Other brokers and listeners hear of it a moment later; the first check waits.
    }

    /// Sets the options of the probe's topic, one of them to another value.
    pub fn set_option(&self, option: &str, value: &str) {
        let entry = |(name, usual): (&'static str, &'static str)| {
            let value = if name == option { value } else { usual };
            AlterableConfig::default()
                .with_name(StrBytes::from_static_str(name))
                .with_value(Some(StrBytes::from_string(value.to_owned())))
        };
        let resource = AlterConfigsResource::default()
            .with_resource_type(2)
            .with_resource_name(StrBytes::from_static_str(TOPIC))
            .with_configs(TOPIC_OPTIONS.map(entry).into());
        let response = self.admin().call(&AlterConfigsRequest::default().with_resources(vec![resource]), 1);
        assert_eq!(response.responses[0].error_code, 0, "{response:?}");
    }

    /// A client with all rights.
    pub fn admin(&self) -> RawClient {
        self.raw(ADMIN)
    }

    /// A client with the certificate of a user.
    pub fn raw(&self, user: &str) -> RawClient {
        RawClient::new((address(0), MTLS), BOOTSTRAP, &self.authority.pem, &self.users.user(user))
    }

    /// To check these brokers at a listener.
    pub fn order(&self, ids: &[u32], port: u16) -> ProbeOrder {
        let name = |host: String| PublicName { host, port };
        ProbeOrder {
            cluster: ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), "orders"),
            bootstrap: name(BOOTSTRAP.to_owned()),
            brokers: ids.iter().map(|id| (*id, name(broker_host(*id)))).collect(),
            trust: ProbeTrust::of_chain(&self.certificate.chain(&self.authority)),
            certificate: Some(self.certificate.chain(&self.authority)),
            login: Some(ProbeLogin::Scram { user: USER.to_owned(), password: PASSWORD.to_owned().into() }),
        }
    }

    pub fn check(&self, order: &ProbeOrder) -> ProbeReport {
        check(&Prober::new(Box::new(self.names.clone()), loopback(), LIMITS), order)
    }

    /// Checks until the report is as awaited.
    #[track_caller]
    pub fn check_until(
        &self,
        what: &str,
        order: &ProbeOrder,
        is_it: impl Fn(&ProbeReport) -> bool,
    ) -> ProbeReport {
        let mut last = None;
        let found = crate::support::control_plane::within_patience(|| {
            let report = self.check(order);
            let done = is_it(&report).then(|| report.clone());
            last = Some(report);
            done
        });
        found.unwrap_or_else(|| panic!("{what}: {last:#?}"))
    }

    fn properties(&self, id: u32) -> String {
        let own = address(id);
        let mut lines = vec![
            format!("node.id={id}"),
            format!("process.roles={}", if id == 0 { "broker,controller" } else { "broker" }),
            "controller.listener.names=CONTROLLER".to_owned(),
            format!("controller.quorum.voters=0@{}:9090", address(0)),
            "inter.broker.listener.name=REPLICATION".to_owned(),
            format!("log.dirs={}", self.disk.path().join(id.to_string()).display()),
            "authorizer.class.name=org.apache.kafka.metadata.authorizer.StandardAuthorizer".to_owned(),
            format!("super.users=User:ANONYMOUS;User:CN={ADMIN}"),
            "auto.create.topics.enable=false".to_owned(),
            "compression.type=gzip".to_owned(),
            "log.cleanup.policy=compact".to_owned(),
            "sasl.enabled.mechanisms=".to_owned(),
        ];
        let scram = "org.apache.kafka.common.security.scram.ScramLoginModule required;";
        let host = broker_host(id);
        let wrong = format!("internal-{id}.example.net");
        let mut listeners: Vec<Listener> = vec![("REPLICATION", 9091, "PLAINTEXT", own.to_string())];
        if id == 0 {
            listeners.push(("CONTROLLER", 9090, "PLAINTEXT", own.to_string()));
        }
        for (name, port, pem, advertised) in [
            ("SCRAM", SCRAM, "own", &host),
            ("OTHERNAME", OTHER_NAME, "other", &host),
            ("EXPIRED", EXPIRED, "expired", &host),
            ("OLDLEAF", OLD_LEAF, "old", &host),
            ("ADVERTISED", ADVERTISED, "own", &wrong),
        ] {
            listeners.push((name, port, "SASL_SSL", advertised.clone()));
            let prefix = format!("listener.name.{}", name.to_lowercase());
            lines.push(format!("{prefix}.sasl.enabled.mechanisms=SCRAM-SHA-512"));
            lines.push(format!("{prefix}.scram-sha-512.sasl.jaas.config={scram}"));
            lines.extend(self.keystore(&prefix, pem));
        }
        listeners.push(("MTLS", MTLS, "SSL", host.clone()));
        lines.extend(self.keystore("listener.name.mtls", "own"));
        lines.extend([
            "listener.name.mtls.ssl.client.auth=required".to_owned(),
            "listener.name.mtls.ssl.truststore.type=PEM".to_owned(),
            format!("listener.name.mtls.ssl.truststore.location={}", self.path("users.pem").display()),
        ]);
        if let Some(tokens) = &self.tokens {
            listeners.push(("OAUTH", OAUTH, "SASL_SSL", host));
            lines.extend(self.keystore("listener.name.oauth", "own"));
            lines.extend(self.accept_tokens(tokens));
        }
        let all =
            |part: &dyn Fn(&Listener) -> String| listeners.iter().map(part).collect::<Vec<_>>().join(",");
        let is_client = |(name, ..): &&Listener| *name != "CONTROLLER";
        let of_clients = listeners.iter().filter(is_client);
        let advertised = of_clients.map(|(name, port, _, host)| format!("{name}://{host}:{port}"));
        let mut protocols = all(&|(name, _, protocol, _)| format!("{name}:{protocol}"));
        if id != 0 {
            protocols += ",CONTROLLER:PLAINTEXT";
        }
        lines.push(format!("listener.security.protocol.map={protocols}"));
        lines.push(format!("listeners={}", all(&|(name, port, ..)| format!("{name}://{own}:{port}"))));
        lines.push(format!("advertised.listeners={}", advertised.collect::<Vec<_>>().join(",")));
        lines.join("\n")
    }

    fn keystore(&self, prefix: &str, pem: &str) -> [String; 2] {
        let file = self.path(&format!("{pem}.pem"));
        [
            format!("{prefix}.ssl.keystore.type=PEM"),
            format!("{prefix}.ssl.keystore.location={}", file.display()),
        ]
    }

    /// As the renderer does it.
    fn accept_tokens(&self, tokens: &Tokens) -> Vec<String> {
        let Tokens { url, authority: _, audience } = tokens;
        let prefix = "listener.name.oauth";
        let file = self.path("tokens.pem");
        let options = [
            ("unsecuredLoginStringClaim_sub", "unused"),
            ("oauth.valid.issuer.uri", url),
            ("oauth.jwks.endpoint.uri", &format!("{url}/keys")),
            ("oauth.check.audience", "true"),
            ("oauth.client.id", audience),
            ("oauth.check.access.token.type", "false"),
            ("oauth.username.claim", "sub"),
            ("oauth.ssl.truststore.location", &file.display().to_string()),
            ("oauth.ssl.truststore.type", "PEM"),
        ];
        let options: Vec<String> =
            options.iter().map(|(name, value)| format!("{name}=\"{value}\"")).collect();
        vec![
            format!("{prefix}.sasl.enabled.mechanisms=OAUTHBEARER"),
            format!(
                "{prefix}.oauthbearer.sasl.server.callback.handler.class=\
                 io.strimzi.kafka.oauth.server.JaasServerOauthValidatorCallbackHandler"
            ),
            format!(
                "{prefix}.oauthbearer.sasl.jaas.config=\
                 org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required {};",
                options.join(" ")
            ),
        ]
    }
}

/// The address of a broker. Every process has its own, so that ports never collide.
pub fn address(id: u32) -> IpAddr {
    let [_, high, middle, low] = std::process::id().to_be_bytes();
    // Process ids have 22 bits. The brokers of `support::kafka` have 0x80 here.
    let first = if id == 0 { high | 0x40 } else { high | 0xc0 };
    Ipv4Addr::new(127, first, middle, low).into()
}

pub fn check(prober: &Prober, order: &ProbeOrder) -> ProbeReport {
    let runtime = tokio::runtime::Builder::new_current_thread().enable_all().build().unwrap();
    runtime.block_on(prober.check(order))
}

/// The verdict of a place.
#[track_caller]
pub fn verdict(report: &ProbeReport, place: ProbePlace) -> &NameVerdict {
    report.of(place).unwrap_or_else(|| panic!("{report:#?}"))
}

/// The sentence of a place, with `ADDRESS` for a broker's.
#[track_caller]
pub fn sentence(report: &ProbeReport, place: ProbePlace) -> String {
    let said = verdict(report, place).to_string();
    [0, 1].iter().fold(said, |said, id| said.replace(&address(*id).to_string(), &format!("ADDRESS-{id}")))
}
