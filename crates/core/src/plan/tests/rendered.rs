//! A stand-in for resolving and rendering the small installation.

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;

use super::*;

impl Lab {
    /// Returns the clusters with their base domain, if there is one: all that planning reads of them.
    pub(super) fn resolved_clusters(&self) -> BTreeMap<ResourceKey, ResolvedCluster> {
        let domain = self.resources.get(&key("BaseDomain/acme/k.example.com"));
        let resolved = |resource: &Resource| {
            let Spec::Cluster(spec) = &resource.spec else { return None };
            let fleet = key(&format!("Fleet/acme/{}", spec.infrastructure));
            let Spec::Fleet(fleet_spec) = &self.resources.get(&fleet)?.spec else { return None };
            let domain = domain?;
            let used = ResolvedDomain {
                key: domain.key.clone(),
                domain: "k.example.com".parse().unwrap(),
                dns_provider: crate::spec::DnsProvider::None,
                zone: "k.example.com".parse().unwrap(),
                tls_cert: "…".into(),
                tls_key: domain.secrets["tls_key"].clone(),
            };
            Some(ResolvedCluster {
                key: resource.key.clone(),
                id: resource.id,
                origin: resource.origin.clone(),
                spec: Arc::clone(spec),
                fleet: fleet_of(spec.infrastructure.as_str()),
                fleet_spec: Arc::new(fleet_spec.clone()),
                namespace: crate::names::namespace(&spec.organization, &spec.identifier),
                domain: Some(used),
                identity_provider: None,
                tiered_storage: None,
                topics: Vec::new(),
                users: Vec::new(),
                has_topics: false,
            })
        };
        let resolved = self.resources.values().filter_map(resolved);
        resolved.map(|cluster| (cluster.key.clone(), cluster)).collect()
    }

    /// Renders five objects per cluster, and its certificate if the fleet has a domain.
    pub(super) fn desired(&self) -> Desired {
        let gateway = self.gateway();
        let is_routed = gateway.is_some();
        let of_fleet: BTreeMap<_, _> = gateway.into_iter().map(|it| (it.key.clone(), it)).collect();
        let mut fleets = BTreeMap::from([(fleet_key(), of_fleet)]);
        for resource in self.resources.values().filter(|resource| resource.hold.is_none()) {
            let Spec::Cluster(cluster) = &resource.spec else { continue };
            let objects = fleets.entry(fleet_of(cluster.infrastructure.as_str())).or_default();
            let (name, config) = (cluster.identifier.as_str(), &cluster.advanced_config);
            let claim = config.storage.on_delete == crate::spec::OnDelete::Delete;
            let size = format!("{}Gi", config.storage.size_gib.unwrap_or(100));
            let mut storage = json!({"type": "jbod", "volumes": [{"size": size, "deleteClaim": claim}]});
            let fleet = self.resources.get(&key(&format!("Fleet/acme/{}", cluster.infrastructure)));
            let inherited = fleet.and_then(|fleet| match &fleet.spec {
                Spec::Fleet(fleet) => fleet.advanced_config.storage_class.clone(),
                _ => None,
            });
            if let Some(class) = config.storage.class.clone().or(inherited) {
                storage["volumes"][0]["class"] = json!(class);
            }
            let pool = |role: &str, replicas: u32| {
                json!({"spec": {"replicas": replicas, "roles": [role], "storage": storage,
                "resources": {"requests": {"cpu": "1500m", "memory": "8Gi"}}}})
            };
            let metadata = versions::find(&config.version).map_or("4.3-IV0", |found| found.metadata);
            let mut kafka = json!({"spec": {"kafka": {
                "version": config.version,
                "metadataVersion": metadata,
                "config": {"rendering": self.rendering},
            }}});
            for (option, value) in config.config.iter() {
                kafka["spec"]["kafka"]["config"][option] = value.clone();
            }
            if is_routed {
                let host = self.hosts.map(|domain| format!("{name}.{domain}"));
                kafka["spec"]["kafka"]["listeners"] = json!([{"name": "external", "type": "tlsroute",
                    "configuration": {"bootstrap": {"host": host}}}]);
            }
            let mut add = |kind: &str, object_name: &str, stage, body: Value| {
                let key = object(kind, name, object_name);
                let owner = resource.key.clone();
                objects.insert(key.clone(), Manifest { key, owner, stage, body: body.into() });
            };
            add("Namespace", "", Stage::Namespace, json!({"metadata": {"labels": {}}}));
            add("NetworkPolicy", "deny", Stage::Configuration, json!({"spec": {}}));
            add("KafkaNodePool", "broker", Stage::Custom, pool("broker", 3 * cluster.kafka_units));
            add("KafkaNodePool", "controller", Stage::Custom, pool("controller", 3));
            add("Kafka", name, Stage::Custom, kafka);
            if let Some(domain) = self.resources.get(&key("BaseDomain/acme/k.example.com")) {
                let secret = &domain.secrets["tls_key"];
                let slot = SecretSlot {
                    reference: secret.reference.clone(),
                    encoding: SecretEncoding::Pkcs8,
                    fingerprint: secret.mark.fingerprint.clone().unwrap_or_default(),
                };
                let data = json!({"tls.key": slot.to_value(), "tls.crt": STANDARD.encode(&self.chain)});
                add(
                    "Secret",
                    "tls",
                    Stage::Configuration,
                    json!({"type": "kubernetes.io/tls", "data": data}),
                );
            }
            if let Some(monitoring) = fleet.and_then(|fleet| match &fleet.spec {
                Spec::Fleet(fleet) => fleet.advanced_config.prometheus(),
                _ => None,
            }) {
                let namespace = monitoring.namespace.clone().unwrap_or_default();
                let mut add = |owner: &ResourceKey, kind: &str, namespace: &str, object_name: &str| {
                    let key = format!("monitoring.coreos.com/v1|{kind}|{namespace}|{object_name}");
                    let key: ObjectKey = key.try_into().unwrap();
                    let labels = json!({"app.kubernetes.io/part-of": "streamfleet"});
                    let body = json!({"metadata": {"labels": labels}, "spec": {}}).into();
                    let (owner, stage) = (owner.clone(), Stage::Configuration);
                    objects.insert(key.clone(), Manifest { key, owner, stage, body });
                };
                let of_cluster = format!("kafka-acme--{name}");
                add(&resource.key, "PodMonitor", &of_cluster, name);
                add(&resource.key, "PrometheusRule", &of_cluster, name);
                add(&fleet_key().resource(), "PrometheusRule", &namespace, "streamfleet-kafka");
            }
        }
        Desired { fleets }
    }
}
