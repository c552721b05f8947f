//! The checks, one per thing that a Kubernetes cluster may lack.

use std::collections::{BTreeMap, BTreeSet};

use jiff::SignedDuration;
use serde::Deserialize;

use super::context::{PreflightContext, PreflightFinding, listed};
use super::facts::Version;
use super::needs::{self, Permission};
use super::operator::Operator;
use super::{monitoring, nodes, operators};
use crate::component::{self, Disk, Extras, Manifest, ObjectRole, TLS_ROUTE, requests_of_units};
use crate::names::{Json, ResourceKey, tenths};
use crate::plan::Size;
use crate::plan::model::Step;
use crate::spec::Exposure;

/// The oldest Kubernetes that Strimzi 1.x supports.
pub(super) const OLDEST: Version = Version { major: 1, minor: 30 };

/// The release in which image volumes became enabled by default.
const IMAGE_VOLUMES: Version = Version { major: 1, minor: 35 };

/// How many rules of a role are shown before the message refers to the command that prints all.
const RULES: usize = 4;

/// How long a load balancer may take to get an address before that is reported. Clouds take a minute or two.
const LOAD_BALANCER_PATIENCE: SignedDuration = SignedDuration::from_mins(10);

/// The condition of a cluster without a Strimzi operator.
pub(in crate::plan) const OPERATOR_MISSING: &str = "OperatorMissing";

const GATEWAY: &str = "gateway.networking.k8s.io";

/// All checks, in the order of their findings. Our own user's permissions come first.
pub(super) const ALL: &[fn(&PreflightContext) -> Vec<PreflightFinding>] = &[
    missing_permissions,
    old_kubernetes,
    unfit_operators,
    missing_definitions,
    unsupported_kafka,
    storage_classes,
    image_volumes,
    missing_gateway,
    waiting_load_balancers,
    little_room,
    nodes::unfit,
    monitoring::missing,
    monitoring::unselected,
];

fn missing_permissions(look: &PreflightContext) -> Vec<PreflightFinding> {
    let denied = look.facts.denied.iter().flatten();
    let denied: BTreeSet<&Permission> = denied.collect();
    if denied.is_empty() {
        return Vec::new();
    }
    let lacks = |change: &&crate::plan::Change| {
        change.steps.iter().flat_map(needs::of_step).any(|needed| denied.contains(&needed))
    };
    let stopped = look.changes.iter().filter(lacks).map(|change| &change.resource);
    let rules = needs::rules(denied.iter().copied());
    let shown: Vec<String> = rules.iter().take(RULES).map(ToString::to_string).collect();
    let more = match rules.len().saturating_sub(RULES) {
        0 => String::new(),
        more => format!(", and {more} more: `{}` prints the whole role", role_command(look, &denied)),
    };
    let names: Vec<String> = denied.iter().map(ToString::to_string).collect();
    let is_in_cluster = look.fleet().is_some_and(|fleet| fleet.spec.advanced_config.in_cluster);
    let user = match is_in_cluster {
        true => "the service account of streamfleet's pod",
        false => "the user of the fleet's `kubeconfig`",
    };
    let why = format!("{user} may not {}", listed(&names));
    let remedy = format!("add to the `rules` of its ClusterRole: {}{more}", shown.join(", "));
    vec![PreflightFinding::warning("PermissionsMissing", why, remedy).stops(stopped)]
}

fn role_command(look: &PreflightContext, denied: &BTreeSet<&Permission>) -> String {
    let fleet = look.fleet().map(|fleet| &fleet.spec);
    let steps = look
        .changes
        .iter()
        .flat_map(|change| change.steps.iter().map(|step| (&step.object, &change.resource)));
    // Whoever prints the role again must not take rights away that other clusters need.
    let desired = look.all_desired().map(|manifest| (&manifest.key, &manifest.owner));
    let installs = fleet.map(|fleet| Extras::of(fleet)).unwrap_or_default().with(steps.chain(desired));
    let lacks = |extras: Extras| {
        let (with, without) = (needs::permissions(extras), needs::permissions(installs));
        denied.iter().any(|denied| with.contains(denied) && !without.contains(denied))
    };
    let mut command = "streamfleet role".to_owned();
    if installs.operator || lacks(Extras { operator: true, ..Extras::default() }) {
        command += " --operator";
    }
    if installs.gateway || lacks(Extras { gateway: true, ..Extras::default() }) {
        command += " --gateway";
    }
    if installs.workloads {
        command += " --workloads";
    }
    if installs.prometheus {
        command += " --prometheus";
    }
    if let Some(monitoring) = fleet.and_then(|fleet| fleet.advanced_config.prometheus()) {
        command += " --monitoring";
        command.extend(monitoring.namespace.iter().flat_map(|namespace| ["=", namespace]));
    }
    command
}

fn old_kubernetes(look: &PreflightContext) -> Vec<PreflightFinding> {
    let Some(version) = look.facts.version.filter(|version| *version < OLDEST) else { return Vec::new() };
    let why = format!("the cluster runs Kubernetes {version}, and Strimzi needs {OLDEST} or newer");
    let finding = PreflightFinding::warning("KubernetesTooOld", why, "upgrade the Kubernetes cluster");
    vec![finding.stops(look.writing().map(|(resource, _)| resource))]
}

fn missing_definitions(look: &PreflightContext) -> Vec<PreflightFinding> {
    let made = made_definitions(look);
    let mut missing: BTreeMap<(&str, &str), BTreeSet<&ResourceKey>> = BTreeMap::new();
    for (resource, writes) in look.writing() {
        for key in writes.map(|write| &write.key) {
            let is_served = look.facts.kinds.get(&key.api_version).is_none_or(|it| it.contains(&key.kind));
            // Other missing groups are reported by checks of their own.
            if !is_served
                && component::has_definitions(key.group())
                && !made.contains(&(key.group().to_owned(), key.kind.clone()))
            {
                missing.entry((&key.api_version, &key.kind)).or_default().insert(resource);
            }
        }
    }
    let (kinds, stopped): (Vec<_>, Vec<_>) = missing.into_iter().unzip();
    let Some((api_version, _)) = kinds.first().copied() else { return Vec::new() };
    let names: Vec<String> = kinds.iter().map(|(_, kind)| (*kind).to_owned()).collect();
    let group = api_version.split('/').next().unwrap_or_default();
    let versions = look.facts.groups.as_ref().and_then(|groups| groups.get(group));
    let others: Vec<String> = versions.into_iter().flatten().cloned().collect();
    let but = match others.iter().any(|version| *api_version == format!("{group}/{version}")) {
        false if !others.is_empty() => format!(", and that group only in {}", listed(&others)),
        _ => String::new(),
    };
    let why = format!("the cluster doesn't have {} of {api_version}{but}", listed(&names));
    let remedy = "install Strimzi 1.0 or newer with its resource definitions, or set a version to install in \
                  `advanced_config.components.strimzi` of the fleet";
    vec![PreflightFinding::warning("DefinitionsMissing", why, remedy).stops(stopped.into_iter().flatten())]
}

/// Returns the group and kind of each definition that this plan creates. Waiting changes create nothing.
fn made_definitions(look: &PreflightContext) -> BTreeSet<(String, String)> {
    #[derive(Deserialize)]
    struct Definition {
        spec: DefinitionSpec,
    }
    #[derive(Deserialize)]
    struct DefinitionSpec {
        group: String,
        names: Names,
    }
    #[derive(Deserialize)]
    struct Names {
        kind: String,
    }
    let waits = |resource: &ResourceKey| {
        look.changes.iter().any(|change| change.resource == *resource && !change.waiting.is_empty())
    };
    let made = look.written("CustomResourceDefinition").filter(|(resource, _)| !waits(resource));
    let made = made.filter_map(|(_, definition)| definition.body.read::<Definition>().ok());
    made.map(|Definition { spec }| (spec.group, spec.names.kind)).collect()
}

fn unfit_operators(look: &PreflightContext) -> Vec<PreflightFinding> {
    match operators::all(look.site, look.facts) {
        None => Vec::new(),
        Some((others, Some(_))) => second_operator(look, &others).into_iter().collect(),
        Some((others, None)) if others.is_empty() => {
            let has_clusters = look.desired_as(ObjectRole::Cluster).next().is_some();
            has_clusters.then(missing_operator).into_iter().collect()
        }
        Some((others, None)) => unwatched(look, &others).into_iter().collect(),
    }
}

fn missing_operator() -> PreflightFinding {
    PreflightFinding::warning(
        OPERATOR_MISSING,
        "no Deployment of the cluster runs the Strimzi operator, so applied changes have no effect",
        "install it, or set a version to install in `advanced_config.components.strimzi` of the fleet",
    )
}

/// Two operators on one cluster undo each other's work.
fn second_operator(look: &PreflightContext, others: &[Operator]) -> Option<PreflightFinding> {
    let other = others.first()?;
    let why = format!("{other} is on the cluster already, and a second operator would conflict with it");
    let remedy = "set `strimzi: existing` in `advanced_config.components` of the fleet; taking over an operator is not \
                  supported yet";
    let deployments = look.written("Deployment");
    let operators = deployments.filter(|(_, it)| Operator::of(&it.body.value()).is_some());
    let stopped = operators.map(|(resource, _)| resource);
    Some(PreflightFinding::warning("SecondOperator", why, remedy).stops(stopped))
}

fn unwatched(look: &PreflightContext, operators: &[Operator]) -> Option<PreflightFinding> {
    let is_watched = |namespace: &str| operators.iter().any(|operator| operator.watches(namespace));
    // Existing clusters are reported, too: no change of them would take effect.
    let kafkas = look
        .desired_as(ObjectRole::Cluster)
        .filter_map(|kafka| Some((&kafka.owner, kafka.key.namespace.as_deref()?)));
    let (owners, namespaces): (BTreeSet<_>, BTreeSet<_>) =
        kafkas.filter(|(_, namespace)| !is_watched(namespace)).unzip();
    let namespace = namespaces.first()?;
    let more = match namespaces.len() {
        1 => String::new(),
        count => format!(" and {} more of ours", count - 1),
    };
    let names: Vec<String> = operators.iter().map(ToString::to_string).collect();
    let verb = if names.len() == 1 { "doesn't" } else { "don't" };
    let why = format!("{} {verb} watch the namespace {namespace}{more}", listed(&names));
    let remedy = "let it watch all namespaces: set `STRIMZI_NAMESPACE` to `*`, with the ClusterRoleBindings for its \
        service account from Strimzi's documentation";
    Some(PreflightFinding::warning("OperatorNotWatching", why, remedy).stops(look.writers(&owners)))
}

fn unsupported_kafka(look: &PreflightContext) -> Vec<PreflightFinding> {
    let Some((others, installed)) = operators::all(look.site, look.facts) else { return Vec::new() };
    let operators: Vec<Operator> = installed.map_or(others, |installed| vec![installed]);
    let mut unsupported: BTreeMap<String, BTreeSet<&ResourceKey>> = BTreeMap::new();
    for kafka in look.desired_as(ObjectRole::Cluster) {
        let Some(version) = (kafka.facts().version)(&kafka.body) else { continue };
        let namespace = kafka.key.namespace.as_deref().unwrap_or_default();
        let mut acting = operators.iter().filter(|operator| operator.watches(namespace)).peekable();
        if acting.peek().is_some() && !acting.any(|operator| operator.runs(&version)) {
            unsupported.entry(version).or_default().insert(&kafka.owner);
        }
    }
    let names: Vec<String> = operators.iter().map(ToString::to_string).collect();
    let known: BTreeSet<&String> = operators.iter().flat_map(|operator| &operator.kafka_versions).collect();
    let known: Vec<String> = known.into_iter().cloned().collect();
    let finding = |(version, owners): (String, BTreeSet<&ResourceKey>)| {
        let why = format!(
            "Kafka {version} is not supported by {}, which supports {}",
            listed(&names),
            listed(&known)
        );
        let remedy =
            "write one of those versions in the cluster's `advanced_config.version`, or upgrade the operator";
        PreflightFinding::warning("KafkaVersionUnsupported", why, remedy).stops(look.writers(&owners))
    };
    unsupported.into_iter().map(finding).collect()
}

/// Returns the StorageClasses that an object names; `None` stands for the default class.
fn classes_of(object: &Manifest) -> BTreeSet<Option<String>> {
    (object.facts().disks)(&object.body).into_iter().map(|disk| disk.class).collect()
}

/// Returns the resources whose disks of a class grow. Disks that name no class have the default one.
fn growing<'a>(look: &PreflightContext<'a>, class: &str, is_default: bool) -> BTreeSet<&'a ResourceKey> {
    let grows = |disks: fn(&Json) -> Vec<Disk>, before: &Json, after: &Json| {
        let is_of_class = |volume: &Disk| volume.class.as_deref().map_or(is_default, |name| name == class);
        let pairs = disks(before).into_iter().zip(disks(after));
        pairs.into_iter().any(|(before, after)| before.size != after.size && is_of_class(&after))
    };
    let grown = |step: &Step| {
        let both = step.before.as_ref().zip(step.after.as_ref());
        both.is_some_and(|(before, after)| grows(after.facts().disks, before, &after.body))
    };
    let changes = look.changes.iter().filter(|change| change.steps.iter().any(grown));
    changes.map(|change| &change.resource).collect()
}

fn storage_classes(look: &PreflightContext) -> Vec<PreflightFinding> {
    let Some(known) = &look.facts.storage_classes else { return Vec::new() };
    let used: BTreeSet<Option<String>> = look.desired_as(ObjectRole::Nodes).flat_map(classes_of).collect();
    let defaults: Vec<&String> =
        known.iter().filter(|(_, class)| class.default).map(|(name, _)| name).collect();
    let mut findings = Vec::new();
    for missing in used.iter().flatten().filter(|name| !known.contains_key(*name)) {
        let naming = look.written_as(ObjectRole::Nodes);
        let naming = naming.filter(|(_, pool)| classes_of(pool).contains(&Some(missing.clone())));
        let why = format!("there is no StorageClass {missing}");
        let remedy = match known.keys().cloned().collect::<Vec<_>>() {
            names if names.is_empty() => "create it: the cluster has none at all".to_owned(),
            names => format!("create it, or set an existing one: {}", listed(&names)),
        };
        let finding = PreflightFinding::warning("StorageClassMissing", why, remedy);
        findings.push(finding.stops(naming.map(|(resource, _)| resource)));
    }
    if used.contains(&None) {
        findings.extend(default_class(&defaults));
    }
    let used_names = used.iter().flatten().chain(defaults.iter().copied().filter(|_| used.contains(&None)));
    let fixed = used_names.filter(|name| known.get(*name).is_some_and(|class| !class.expands));
    let fixed: BTreeSet<&String> = fixed.collect();
    findings.extend(fixed.into_iter().map(|name| {
        let why = format!("disks of StorageClass {name} can't grow");
        let remedy = "set `allowVolumeExpansion: true` on it if its driver supports that, or choose another one before \
                      there is data: a full disk can't be enlarged";
        let is_default = defaults.contains(&name);
        PreflightFinding::warning("StorageCannotGrow", why, remedy).stops(growing(look, name, is_default))
    }));
    findings
}

/// Disks that wait for a default class take one that is created later, so nothing has to wait for it.
fn default_class(defaults: &[&String]) -> Option<PreflightFinding> {
    let names: Vec<String> = defaults.iter().map(|name| (*name).clone()).collect();
    match defaults.len() {
        0 => Some(PreflightFinding::warning(
            "DefaultStorageClassMissing",
            "no StorageClass is the default one, and disks without a class wait until there is one",
            "mark one with the annotation `storageclass.kubernetes.io/is-default-class: \"true\"`, or set one in \
             `advanced_config.storage_class` of the fleet",
        )),
        1 => None,
        _ => Some(PreflightFinding::warning(
            "DefaultStorageClassAmbiguous",
            format!("several StorageClasses are the default one: {}", listed(&names)),
            "keep the mark on one of them only, or set one in `advanced_config.storage_class` of the fleet",
        )),
    }
}

/// An older server may have image volumes enabled by a feature gate, which can't be queried.
fn image_volumes(look: &PreflightContext) -> Vec<PreflightFinding> {
    let Some(version) = look.facts.version.filter(|version| *version < IMAGE_VOLUMES) else {
        return Vec::new();
    };
    if !look.desired_as(ObjectRole::Nodes).any(|it| (it.facts().mounts_image)(&it.body)) {
        return Vec::new();
    }
    let why = format!(
        "the cluster runs Kubernetes {version}, where brokers can mount the image of `tiered_storage.plugin_image` \
         only with the feature gate ImageVolume"
    );
    let remedy = "turn the feature gate on, or upgrade the Kubernetes cluster to 1.35";
    vec![PreflightFinding::warning("ImageVolumesOff", why, remedy)]
}

fn missing_gateway(look: &PreflightContext) -> Vec<PreflightFinding> {
    #[derive(Deserialize)]
    struct Gateway {
        spec: GatewaySpec,
    }
    #[derive(Deserialize)]
    struct GatewaySpec {
        #[serde(rename = "gatewayClassName")]
        class: String,
    }
    let Some(gateway) = look.desired("Gateway").next() else { return Vec::new() };
    let served = look.facts.groups.as_ref().map(|groups| groups.contains_key(GATEWAY));
    let routes = look.facts.kinds.get(&gateway.key.api_version).map(|kinds| kinds.contains(TLS_ROUTE.kind));
    let class = gateway.body.read::<Gateway>().map(|gateway| gateway.spec.class).unwrap_or_default();
    let classes = look.facts.gateway_classes.as_ref();
    let (why, remedy) = match classes {
        _ if served == Some(false) => (
            "the cluster doesn't have the Gateway API, which `exposure: tlsroute` needs".to_owned(),
            "install the Gateway API 1.5 or newer with an implementation, or set `exposure: loadbalancer`"
                .to_owned(),
        ),
        _ if routes == Some(false) => (
            format!(
                "the cluster doesn't have {} of {}, which clients need to reach brokers",
                TLS_ROUTE.kind, gateway.key.api_version
            ),
            "upgrade the Gateway API to 1.5 or newer, or set `exposure: loadbalancer`".to_owned(),
        ),
        Some(classes) if !classes.contains(&class) => (
            format!("there is no GatewayClass {class}"),
            match classes.iter().cloned().collect::<Vec<_>>() {
                names if names.is_empty() => {
                    "install an implementation of the Gateway API: the cluster has no GatewayClass at all"
                        .to_owned()
                }
                names => format!(
                    "set an existing one in `advanced_config.gateway` of the fleet: {}",
                    listed(&names)
                ),
            },
        ),
        _ => return Vec::new(),
    };
    // Without a Gateway API, clusters would stay incomplete.
    let routed = look.written_as(ObjectRole::Cluster).filter(|(_, it)| (it.facts().is_routed)(&it.body));
    let stopped = routed.chain(look.written("Gateway")).map(|(resource, _)| resource);
    vec![PreflightFinding::warning("GatewayMissing", why, remedy).stops(stopped)]
}

/// Load balancer support can't be queried. If none was ever served and one waits for long, there is none.
fn waiting_load_balancers(look: &PreflightContext) -> Vec<PreflightFinding> {
    let exposure = look.fleet().map(|fleet| fleet.spec.advanced_config.exposure);
    let waiting = look.facts.load_balancers.as_ref().filter(|found| found.served == 0);
    let Some((since, service)) = waiting.and_then(|found| found.waiting.as_ref()) else { return Vec::new() };
    if exposure != Some(Exposure::LoadBalancer)
        || look.world.policy.now.duration_since(*since) < LOAD_BALANCER_PATIENCE
    {
        return Vec::new();
    }
    let since = since.strftime("%Y-%m-%d %H:%M");
    let why = format!(
        "no load balancers are provided: Service {service} has waited for an address since {since} UTC"
    );
    let remedy = "install a controller for load balancers, or set `cluster_access: Internal`";
    vec![PreflightFinding::warning("LoadBalancersUnserved", why, remedy)]
}

/// Nodes may be added on demand, so a lack of capacity is no reason to wait.
fn little_room(look: &PreflightContext) -> Vec<PreflightFinding> {
    let room = look.facts.room_beside(&look.site.namespaces());
    let (Some(room), Some(fleet)) = (room, look.fleet()) else { return Vec::new() };
    let (tenants, units) = (fleet.spec.max_tenants, fleet.spec.max_kafka_units);
    let of_units = |units| Size::from(requests_of_units(units, &look.world.catalog.config.units.standard));
    let fits = |needed: Size| room.cpu_millis >= needed.cpu_millis && room.memory_mib >= needed.memory_mib;
    let all: Size = look.desired_sizes().sum();
    // The operator of the fleet runs on the same nodes.
    let beside: Size = look.fleet_sizes().sum();
    let largest = of_units(units).plus(beside);
    let many = shares(tenants, units).map(of_units).sum::<Size>().plus(beside);
    let needs = |needed: Size| {
        let (cpus, memory) = (tenths(needed.cpu_millis, 1000), tenths(needed.memory_mib, 1024));
        format!("{cpus} CPUs and {memory} GiB of memory")
    };
    let (why, remedy) = if !fits(all) {
        (format!("the fleet's clusters need {}", needs(all)), "make clusters smaller")
    } else if !fits(largest) {
        let needed = needs(largest);
        (
            format!("the fleet's `max_kafka_units`, {units}, need {needed} in one cluster"),
            "lower `max_kafka_units`",
        )
    } else if !fits(many) {
        let needed = needs(many);
        (
            format!(
                "the fleet's `max_tenants`, {tenants}, need {needed} in clusters that share `max_kafka_units`, {units}"
            ),
            "lower `max_tenants`",
        )
    } else {
        return Vec::new();
    };
    let remedy = format!("add nodes, unless the cluster does so by itself, or {remedy}");
    vec![PreflightFinding::warning("CapacityShort", format!("{why}, and {}", room.words(" and ")), remedy)]
}

/// The units of each cluster if as many as possible share them evenly. Each has at least one.
fn shares(tenants: u32, units: u32) -> impl Iterator<Item = u32> {
    let clusters = tenants.min(units);
    (0..clusters).map(move |number| units / clusters + u32::from(number < units % clusters))
}
