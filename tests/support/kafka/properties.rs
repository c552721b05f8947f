//! The properties with which Strimzi 1.2.0 starts a node: the part of its `KafkaBrokerConfigurationBuilder`
//! that the rendered objects use, line by line. Values are written unescaped, as there, so the renderer has
//! to escape them.

use std::path::Path;

use serde_json::Value;

use super::node::Node;
use super::objects::{Objects, list, text};

struct Lines<'a> {
    node: &'a Node,
    folder: &'a Path,
    lines: Vec<String>,
}

struct Listener {
    name: String,
    port: u64,
    protocol: &'static str,
    host: String,
}

pub fn of(objects: &Objects, node: &Node, folder: &Path) -> String {
    let spec = &objects.kafka["spec"]["kafka"];
    let mut lines = Lines { node, folder, lines: Vec::new() };
    lines.node();
    let own = [("CONTROLPLANE-9090", 9090), ("REPLICATION-9091", 9091)];
    own.iter().for_each(|(name, _)| lines.between_nodes(&format!("listener.name.{}.", name.to_lowercase())));
    let of_nodes = |(name, port): (&str, u64)| Listener {
        name: name.to_owned(),
        port,
        protocol: "SSL",
        host: node.host.clone(),
    };
    let mut listeners: Vec<_> = own.map(of_nodes).into();
    for listener in list(&spec["listeners"]) {
        listeners.push(lines.listener(listener));
    }
    lines.addresses(&listeners);
    lines.authorization(&spec["authorization"]);
    lines.quotas(&spec["quotas"]);
    lines.config(&spec["config"]);
    // Mounts at the container's root are below the folder.
    let mounts = list(&objects.pool["spec"]["template"]["kafkaContainer"]["volumeMounts"]);
    mounts.iter().map(|mount| text(&mount["mountPath"])).fold(lines.lines.join("\n"), |text, path| {
        text.replace(&path, &format!("{}{path}", folder.display()))
    })
}

impl Lines<'_> {
    fn add(&mut self, key: &str, value: impl std::fmt::Display) {
        self.lines.push(format!("{key}={value}"));
    }

    /// Strimzi's provider reads a Secret from the API server; this one reads a folder.
    fn secret(&self, name: &str, key: &str) -> String {
        format!("${{secrets:{}:{key}}}", self.folder.join("secrets").join(name).display())
    }

    fn node(&mut self) {
        self.add("node.id", self.node.id);
        self.add("process.roles", "broker,controller");
        self.add("controller.listener.names", "CONTROLPLANE-9090");
        self.add("controller.quorum.voters", format!("{}@{}:9090", self.node.id, self.node.host));
        self.add("log.dirs", self.folder.join("data").display());
        self.add("config.providers", "secrets");
        let provider = "org.apache.kafka.common.config.provider.DirectoryConfigProvider";
        self.add("config.providers.secrets.class", provider);
    }

    /// TLS identity of nodes and of a node's own clients.
    fn between_nodes(&mut self, prefix: &str) {
        self.own_certificate(prefix);
        let authority = self.secret(&self.node.authority_secret(), "ca.crt");
        self.add(&format!("{prefix}ssl.truststore.certificates"), authority);
        self.add(&format!("{prefix}ssl.truststore.type"), "PEM");
        if prefix.starts_with("listener.name.") {
            self.add(&format!("{prefix}ssl.client.auth"), "required");
        }
    }

    fn own_certificate(&mut self, prefix: &str) {
        let pod = self.node.pod.clone();
        self.certificate(prefix, &pod, &format!("{pod}.crt"), &format!("{pod}.key"));
    }

    fn certificate(&mut self, prefix: &str, secret: &str, certificate: &str, key: &str) {
        self.add(&format!("{prefix}ssl.keystore.certificate.chain"), self.secret(secret, certificate));
        self.add(&format!("{prefix}ssl.keystore.key"), self.secret(secret, key));
        self.add(&format!("{prefix}ssl.keystore.type"), "PEM");
    }

    fn listener(&mut self, listener: &Value) -> Listener {
        let port = listener["port"].as_u64().unwrap();
        let name = format!("{}-{port}", text(&listener["name"])).to_uppercase();
        let prefix = format!("listener.name.{}.", name.to_lowercase());
        let protocol = self.authentication(&prefix, listener);
        let configuration = &listener["configuration"];
        for (field, key) in [
            ("maxConnections", "max.connections"),
            ("maxConnectionCreationRate", "max.connection.creation.rate"),
        ] {
            if let Some(limit) = configuration.get(field) {
                self.add(&format!("{prefix}{key}"), limit);
            }
        }
        match configuration.get("brokerCertChainAndKey") {
            Some(given) => {
                let [secret, certificate, key] =
                    ["secretName", "certificate", "key"].map(|it| text(&given[it]));
                self.certificate(&prefix, &secret, &certificate, &key);
            }
            None => self.own_certificate(&prefix),
        }
        let templates = ["advertisedHostTemplate", "hostTemplate"].map(|field| configuration[field].as_str());
        let host = templates.into_iter().flatten().next().unwrap_or(&self.node.host);
        let host = host.replace("{nodeId}", &self.node.id.to_string());
        Listener { name, port, protocol, host }
    }

    fn authentication(&mut self, prefix: &str, listener: &Value) -> &'static str {
        assert_eq!(listener["tls"], true, "{listener}");
        let authentication = &listener["authentication"];
        match authentication["type"].as_str() {
            Some("scram-sha-512") => {
                let module = "org.apache.kafka.common.security.scram.ScramLoginModule required;";
                self.add(&format!("{prefix}scram-sha-512.sasl.jaas.config"), module);
                self.add(&format!("{prefix}sasl.enabled.mechanisms"), "SCRAM-SHA-512");
                "SASL_SSL"
            }
            Some("tls") => {
                let authority = self.secret(&self.node.clients_authority_secret(), "ca.crt");
                self.add(&format!("{prefix}ssl.client.auth"), "required");
                self.add(&format!("{prefix}ssl.truststore.certificates"), authority);
                self.add(&format!("{prefix}ssl.truststore.type"), "PEM");
                "SSL"
            }
            Some("custom") => {
                for (key, value) in authentication["listenerConfig"].as_object().unwrap() {
                    self.add(&format!("{prefix}{key}"), text(value));
                }
                if authentication["sasl"] == true { "SASL_SSL" } else { "SSL" }
            }
            _ => panic!("nothing is known of {authentication}"),
        }
    }

    fn addresses(&mut self, listeners: &[Listener]) {
        let joined =
            |part: &dyn Fn(&Listener) -> String| listeners.iter().map(part).collect::<Vec<_>>().join(",");
        let protocols = joined(&|Listener { name, protocol, .. }| format!("{name}:{protocol}"));
        let bound = joined(&|Listener { name, port, .. }| format!("{name}://{}:{port}", self.node.address));
        let advertised = joined(&|Listener { name, port, host, .. }| format!("{name}://{host}:{port}"));
        self.add("listener.security.protocol.map", protocols);
        self.add("listeners", bound);
        self.add("inter.broker.listener.name", "REPLICATION-9091");
        self.add("advertised.listeners", advertised);
        self.add("sasl.enabled.mechanisms", "");
        self.add("ssl.endpoint.identification.algorithm", "HTTPS");
    }

    fn authorization(&mut self, authorization: &Value) {
        assert_eq!(authorization["type"], "simple");
        self.add("authorizer.class.name", "org.apache.kafka.metadata.authorizer.StandardAuthorizer");
        let users = list(&authorization["superUsers"]).iter().map(|user| format!("User:{}", text(user)));
        let own = format!("User:{}", self.node.principal());
        self.add("super.users", [own].into_iter().chain(users).collect::<Vec<_>>().join(";"));
    }

    fn quotas(&mut self, quotas: &Value) {
        assert_eq!(quotas["type"], "strimzi");
        let prefix = "client.quota.callback.static.";
        self.add("client.quota.callback.class", "io.strimzi.kafka.quotas.StaticQuotaCallback");
        let admin = format!("{prefix}kafka.admin.");
        self.add(&format!("{admin}bootstrap.servers"), format!("{}:9091", self.node.host));
        self.add(&format!("{admin}security.protocol"), "SSL");
        self.between_nodes(&admin);
        for (field, key) in [
            ("producerByteRate", "produce"),
            ("consumerByteRate", "fetch"),
            ("minAvailableBytesPerVolume", "storage.per.volume.limit.min.available.bytes"),
            ("minAvailableRatioPerVolume", "storage.per.volume.limit.min.available.ratio"),
        ] {
            if let Some(limit) = quotas.get(field) {
                self.add(&format!("{prefix}{key}"), limit);
            }
        }
        let own = format!("User:{}", self.node.principal());
        self.add(&format!("{prefix}excluded.principal.name.list"), own);
    }

    fn config(&mut self, config: &Value) {
        for (key, value) in config.as_object().unwrap() {
            self.add(key, text(value));
        }
    }
}
