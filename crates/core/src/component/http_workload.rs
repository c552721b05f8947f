//! A program beside the brokers of a cluster that clients reach by a host name of its own over TLS, which ends in the
//! program: its pods, and the way to them. Each such component says what is its own in an [`HttpWorkload`].

pub mod health;
pub mod kinds;
pub mod quarkus;

use k8s_openapi::apimachinery::pkg::apis::meta::v1::ObjectMeta;
use serde_json::{Value, json};

use crate::catalog::{HostNames, ResolvedCluster};
use crate::component::gateway::kinds::TLS_ROUTE;
use crate::component::kafka;
use crate::component::labels::{self, CLUSTER, MOUNTED, ZONE};
use crate::component::mount::Mount;
use crate::component::{
    ClusterPart, Component, Manifest, ObjectFacts, QuotaShare, Resources, Size, Traffic, exposure,
    load_balancers, manifest,
};
use crate::names::{Digest, Json};
use crate::spec::Exposure;
use kinds::{COMPONENT_LABEL, DEPLOYMENT, DISRUPTION_BUDGET, SERVICE};

/// The parts that all of them have.
pub static COMPONENT: Component = Component {
    kinds: &kinds::KINDS,
    is_installed: |extras| extras.workloads,
    objects: &[ObjectFacts { kind: "Service", size: of_service, ..ObjectFacts::NONE }],
    ..Component::NONE
};

fn of_service(service: &Json) -> Size {
    Size { other_load_balancers: exposure::is_balanced(&service.value()).into(), ..Size::default() }
}

/// The port for clients, with TLS.
pub const PORT: u16 = 8443;

/// The folder for files that the process makes: nothing else can be written.
const TEMPORARY: &str = "/tmp";

pub struct HttpWorkload<'a> {
    pub cluster: &'a ResolvedCluster,
    /// The name of its container, and the label of its objects.
    pub component: &'static str,
    /// The name of all its objects.
    pub name: String,
    pub image: &'a str,
    pub host: String,
    /// Its replicas have to be interchangeable.
    pub replicas: u64,
    pub resources: Resources,
    pub environment: Vec<Value>,
    pub mounts: Vec<Mount>,
    /// A mounted text that is read only at start: when it changes, the pods are replaced.
    pub read_at_start: Option<&'a str>,
    /// The port for the kubelet's probes, if it is another one, without TLS and login.
    pub management_port: Option<u16>,
    /// The name of the NetworkPolicy that lets clients connect.
    pub client_policy: &'static str,
    /// URLs outside of the Kubernetes cluster that it calls.
    pub outbound_urls: Vec<String>,
}

/// The host name of a cluster's workload, if it has one.
pub fn host(cluster: &ResolvedCluster, names: &HostNames) -> Option<String> {
    let domain = load_balancers::external_domain(cluster)?;
    (names.is_used)(&cluster.spec).then(|| names.template(&cluster.spec.identifier, &domain.domain))
}

/// Whether an object belongs to the workload.
pub fn is_of(component: &str, body: &Value) -> bool {
    let labels = body.pointer("/metadata/labels").and_then(|labels| labels.get(COMPONENT_LABEL));
    labels.is_some_and(|label| label == component)
}

/// Whether an object is the public load balancer of the workload.
pub fn is_public(component: &str, body: &Value) -> bool {
    is_of(component, body) && exposure::is_public(body)
}

impl HttpWorkload<'_> {
    /// Its part of the cluster, with further objects of its own.
    pub fn part(self, further: impl IntoIterator<Item = Manifest>) -> ClusterPart {
        let is_balanced = self.is_balanced();
        // An update starts a new pod before it stops an old one.
        let pods = self.replicas + 1;
        let Resources { cpu_millis, memory_mib } = self.resources;
        let own = [self.deployment()].into_iter().chain(self.disruption_budget()).chain(self.exposure());
        ClusterPart {
            objects: own.chain(further).collect(),
            traffic: Traffic {
                servers: vec![(COMPONENT_LABEL, self.component.to_owned())],
                client_ports: vec![PORT],
                client_policy: self.client_policy,
                outbound_urls: self.outbound_urls,
                ..Traffic::default()
            },
            quota: QuotaShare {
                requests: Resources { cpu_millis: pods * cpu_millis, memory_mib: pods * memory_mib },
                pods,
                load_balancers: is_balanced.into(),
                ..QuotaShare::default()
            },
            is_restricted: true,
        }
    }

    fn is_balanced(&self) -> bool {
        self.cluster.fleet_spec.advanced_config.exposure == Exposure::LoadBalancer
    }

    pub fn metadata(&self) -> ObjectMeta {
        let mut metadata = labels::metadata(self.cluster, self.name.clone());
        metadata.labels.get_or_insert_default().insert(COMPONENT_LABEL.to_owned(), self.component.to_owned());
        metadata
    }

    fn selector(&self) -> Value {
        json!({CLUSTER: self.cluster.spec.identifier, COMPONENT_LABEL: self.component})
    }

    fn deployment(&self) -> Manifest {
        let metadata = self.metadata();
        let annotations = self.read_at_start.map(|text| json!({MOUNTED: Digest::of(text).short()}));
        let spec = json!({
            "replicas": self.replicas,
            "selector": {"matchLabels": self.selector()},
            "strategy": {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": 0, "maxSurge": 1}},
            "template": {
                "metadata": {"labels": metadata.labels, "annotations": annotations},
                "spec": self.pod(),
            },
        });
        manifest::untyped(self.cluster, &DEPLOYMENT, &metadata, spec)
    }

    /// One pod at a time may be taken away; `None` for a single one, where it would block maintenance of its host.
    fn disruption_budget(&self) -> Option<Manifest> {
        let spec = json!({
            "maxUnavailable": 1,
            // Pods that don't serve keep no host from being emptied.
            "unhealthyPodEvictionPolicy": "AlwaysAllow",
            "selector": {"matchLabels": self.selector()},
        });
        let budget = manifest::untyped(self.cluster, &DISRUPTION_BUDGET, &self.metadata(), spec);
        (self.replicas > 1).then_some(budget)
    }

    fn pod(&self) -> Value {
        let temporary = json!({"name": "tmp", "emptyDir": {"sizeLimit": "256Mi"}});
        let volumes = self.mounts.iter().map(Mount::volume).chain([temporary]);
        let temporary = json!({"name": "tmp", "mountPath": TEMPORARY});
        let mounted = self.mounts.iter().map(Mount::mounted).chain([temporary]);
        let probe = |path: &str| {
            let mut get = json!({"path": path, "port": self.management_port.unwrap_or(PORT)});
            if self.management_port.is_none() {
                get["scheme"] = "HTTPS".into();
            }
            json!({"httpGet": get, "timeoutSeconds": 5})
        };
        let mut starts = probe("/health/ready");
        // Until it is ready for the first time it counts as neither ready nor alive. Ten minutes are enough for a long start.
        starts["failureThreshold"] = 60.into();
        starts["periodSeconds"] = 10.into();
        let management = self
            .management_port
            .map(|port| json!({"name": "management", "containerPort": port, "protocol": "TCP"}));
        let https = json!({"name": "https", "containerPort": PORT, "protocol": "TCP"});
        let ports: Vec<Value> = [https].into_iter().chain(management).collect();
        json!({
            "automountServiceAccountToken": false,
            "enableServiceLinks": false,
            "affinity": kafka::affinity(self.cluster, false),
            "tolerations": kafka::tolerations(self.cluster),
            "topologySpreadConstraints": [self.spread(ZONE), self.spread(kafka::HOST_TOPOLOGY)],
            "securityContext": {"runAsNonRoot": true, "seccompProfile": {"type": "RuntimeDefault"}},
            "containers": [{
                "name": self.component,
                "image": self.image,
                "env": self.environment,
                "ports": ports,
                // Until no new connections come any more.
                "lifecycle": {"preStop": {"sleep": {"seconds": 5}}},
                "startupProbe": starts,
                "readinessProbe": probe("/health/ready"),
                "livenessProbe": probe("/health/live"),
                "resources": self.resources.to_value(),
                "securityContext": {
                    "allowPrivilegeEscalation": false,
                    "capabilities": {"drop": ["ALL"]},
                    "readOnlyRootFilesystem": true,
                },
                "volumeMounts": mounted.collect::<Vec<_>>(),
            }],
            "volumes": volumes.collect::<Vec<_>>(),
        })
    }

    fn spread(&self, topology: &str) -> Value {
        json!({
            "maxSkew": 1,
            "topologyKey": topology,
            "whenUnsatisfiable": "ScheduleAnyway",
            "labelSelector": {"matchLabels": self.selector()},
        })
    }

    /// The way from outside of Kubernetes: through the fleet's Gateway, or by a load balancer of its own.
    fn exposure(&self) -> Vec<Manifest> {
        let Some(domain) = &self.cluster.domain else { return Vec::new() };
        let exposure = self.cluster.fleet_spec.advanced_config.exposure;
        let mut of_service = self.metadata();
        if self.is_balanced() {
            let private = self.cluster.spec.advanced_config.private_access;
            let annotations = load_balancers::annotations(domain, &self.host, private);
            of_service = labels::annotate(of_service, annotations);
        }
        let service = exposure::service(exposure, &self.selector(), PORT);
        let mut objects = vec![manifest::untyped(self.cluster, &SERVICE, &of_service, service)];
        if !self.is_balanced() {
            let annotations = load_balancers::route_annotations(domain).unwrap_or_default();
            let route = exposure::route(&self.host, &self.name);
            let metadata = labels::annotate(self.metadata(), annotations);
            objects.push(manifest::untyped(self.cluster, &TLS_ROUTE, &metadata, route));
        }
        objects
    }
}
