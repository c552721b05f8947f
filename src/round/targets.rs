//! Determines the targets: those of the tree's fleets, and those of recorded fleets that may have to be
//! emptied.

use std::collections::BTreeMap;
use std::sync::Arc;

use camino::Utf8Path;
use jiff::Timestamp;
use secrecy::{ExposeSecret as _, SecretString};
use serde_json::Value;

use super::kubeconfigs::{self, Kept};
use crate::catalog::{CLUSTER_UID, Hold, OpenedSecret, RecordedResource, ResolvedTree};
use crate::config::{AddressRange, Config};
use crate::names::{Domain, FleetKey, Identifier, Kind, ResourceKey, SecretRef};
use crate::spec::kubeconfig::KubeAccess;
use crate::spec::material::MaterialFault;
use crate::spec::{BaseDomain, CloudProvider, Fleet, FleetAdvancedConfig, InfraType, Spec};
use crate::target::acme::Authority;
use crate::target::dns::{DnsLogin, DnsZones, KeptZone, Rfc2136Login, Route53Login};
use crate::target::{AccessField, KubernetesCluster, TargetLocation, Targets, service_account};

/// Another URL of Route 53. The tools of AWS read it, too.
const ROUTE53_ENDPOINT: &str = "AWS_ENDPOINT_URL_ROUTE_53";

pub(super) fn of(output_dir: &Utf8Path, config: &Config, checked: &ResolvedTree, kept: &Kept) -> Targets {
    let recorded = checked.recorded.resources.iter().filter_map(recorded_fleet);
    let planned = checked.catalog.fleets.values().map(|fleet| TargetBasis::of(&fleet.spec));
    let taken = Arc::new(bound_kubernetes_clusters(checked));
    let place = |basis: TargetBasis| {
        let fleet = basis.fleet.clone();
        let place = match basis.infra_type {
            InfraType::Directory => TargetLocation::Folder(basis.path),
            InfraType::Byok => {
                let Access { field, access, allowed } = access(config, checked, kept, &basis);
                TargetLocation::Kubernetes(KubernetesCluster {
                    field,
                    access,
                    described: is_described(checked, &fleet),
                    bound: checked
                        .recorded
                        .resources
                        .get(&fleet.resource())
                        .and_then(bound)
                        .map(str::to_owned),
                    taken: Arc::clone(&taken),
                    allowed,
                })
            }
        };
        (fleet, place)
    };
    Targets::for_fleets(output_dir, checked.recorded.installation, recorded.chain(planned).map(place))
        .with_allowed(config.targets.allow_addresses.clone())
        .with_zones(zones(config, checked))
        .with_authority(config.acme.clone().map(Authority::new))
}

/// The DNS servers of the base domains whose records are kept here, by organization. A key serves only base domains of
/// its own organization.
fn zones(config: &Config, checked: &ResolvedTree) -> BTreeMap<Identifier, DnsZones> {
    let mut zones: BTreeMap<Identifier, BTreeMap<Domain, KeptZone>> = BTreeMap::new();
    // All domains of an account share what is known of it.
    let mut logins: BTreeMap<(&Identifier, Option<&Identifier>), Result<DnsLogin, String>> = BTreeMap::new();
    let domains = checked.catalog.resources.iter().filter(|(key, _)| key.kind == Kind::BaseDomain);
    for (_, resource) in domains {
        let Spec::BaseDomain(domain) = &resource.spec else { continue };
        if !domain.dns_provider.is_kept() {
            continue;
        }
        let Some(derived) = domain.derived_domain() else { continue };
        let account = (&domain.organization, domain.cloud_account.as_ref());
        let login = logins.entry(account).or_insert_with(|| login(config, checked, domain)).clone();
        let kept = KeptZone { zone: domain.zone(), login };
        zones.entry(domain.organization.clone()).or_default().insert(derived, kept);
    }
    zones.into_iter().map(|(organization, domains)| (organization, DnsZones::new(domains))).collect()
}

fn login(config: &Config, checked: &ResolvedTree, domain: &BaseDomain) -> Result<DnsLogin, String> {
    let name = domain.cloud_account.as_ref().ok_or("its base domain names no cloud account")?;
    let key = ResourceKey::new(Kind::CloudAccount, &domain.organization, name.as_str());
    let missing = || format!("cloud account {name} isn't in the specs");
    let Spec::CloudAccount(account) = &checked.catalog.resources.get(&key).ok_or_else(missing)?.spec else {
        return Err(missing());
    };
    let field = SecretRef { resource: key, field: "credentials".to_owned() };
    let key = match checked.secrets.opened.get(&field) {
        Some(OpenedSecret::Value { value, .. }) => value.clone(),
        Some(OpenedSecret::Unavailable { reason, .. }) => {
            return Err(format!("the key of cloud account {name} can't be opened: {reason}"));
        }
        Some(OpenedSecret::Refused(problem)) => return Err(problem.message.clone()),
        None => return Err(format!("the key of cloud account {name} was not opened")),
    };
    if account.provider == CloudProvider::Aws {
        let endpoint = std::env::var(ROUTE53_ENDPOINT).ok().filter(|endpoint| !endpoint.is_empty());
        return Ok(DnsLogin::Route53(Route53Login::new(account, endpoint, key)));
    }
    let (host, port) =
        account.dns_server().ok_or_else(|| format!("cloud account {name} names no DNS server"))?;
    Ok(DnsLogin::Rfc2136(Rfc2136Login {
        host: host.to_owned(),
        port,
        key,
        allowed: config.targets.allow_addresses.clone(),
        clock: Timestamp::now,
    }))
}

/// The fields of a fleet that determine its target.
struct TargetBasis {
    fleet: FleetKey,
    infra_type: InfraType,
    /// The `path` of a directory fleet, if known.
    path: Option<String>,
    /// Whether it is the Kubernetes cluster that Streamfleet runs in, if known.
    in_cluster: Option<bool>,
}

impl TargetBasis {
    fn of(fleet: &Fleet) -> TargetBasis {
        let key = FleetKey { organization: fleet.organization.clone(), fleet: fleet.identifier.clone() };
        let FleetAdvancedConfig { path, in_cluster, .. } = &fleet.advanced_config;
        TargetBasis {
            fleet: key,
            infra_type: fleet.infra_type,
            path: path.clone(),
            in_cluster: Some(*in_cluster),
        }
    }
}

/// A recorded fleet. Its type is immutable and therefore in the registry, which survives the loss of the
/// cache. Its path isn't, but the folder's content is found without it.
fn recorded_fleet((key, record): (&ResourceKey, &RecordedResource)) -> Option<TargetBasis> {
    let fleet = key.as_fleet()?;
    if let Some(Spec::Fleet(fleet)) = record.applied_spec(key.kind) {
        return Some(TargetBasis::of(fleet));
    }
    let infra_type = serde_json::from_value(record.durable.immutable.get("/infra_type")?.clone()).ok()?;
    Some(TargetBasis { fleet, infra_type, path: None, in_cluster: None })
}

pub(super) fn bound_kubernetes_clusters(checked: &ResolvedTree) -> BTreeMap<String, FleetKey> {
    let recorded = checked.recorded.resources.iter();
    let fleets = recorded.filter_map(|(key, record)| Some((key.as_fleet()?, record)));
    fleets.filter_map(|(fleet, record)| Some((bound(record)?.to_owned(), fleet))).collect()
}

/// The UID of the Kubernetes cluster that a fleet was first applied to.
pub(super) fn bound(record: &RecordedResource) -> Option<&str> {
    record.durable.immutable.get(CLUSTER_UID).and_then(Value::as_str)
}

/// How a fleet is reached.
struct Access {
    field: AccessField,
    access: Result<KubeAccess, String>,
    allowed: Vec<AddressRange>,
}

/// Returns the connection settings of a fleet. Without its spec and a kept kubeconfig, only the settings tell that it
/// was `in_cluster`. They have to name such a fleet in any case: its spec may have been applied before they changed.
fn access(config: &Config, checked: &ResolvedTree, kept: &Kept, basis: &TargetBasis) -> Access {
    let is_named = config.targets.in_cluster.contains(&basis.fleet);
    if basis.in_cluster.unwrap_or_else(|| is_named && !kept.contains_key(&basis.fleet)) {
        let unnamed = || "the settings don't name the fleet".to_owned();
        return Access {
            field: AccessField::InCluster,
            access: is_named.then(service_account).unwrap_or_else(|| Err(unnamed())),
            // The address is the administrator's.
            allowed: AddressRange::ALL.to_vec(),
        };
    }
    Access {
        field: AccessField::Kubeconfig,
        access: by_kubeconfig(checked, kept, &basis.fleet),
        allowed: config.targets.allow_addresses.clone(),
    }
}

/// The connection settings from a fleet's kubeconfig; the error is the end of a sentence.
fn by_kubeconfig(checked: &ResolvedTree, kept: &Kept, fleet: &FleetKey) -> Result<KubeAccess, String> {
    match checked.secrets.opened.get(&kubeconfigs::field(fleet)) {
        Some(OpenedSecret::Value { value, .. }) => parsed(value),
        Some(OpenedSecret::Unavailable { reason, .. }) => Err(reason.clone()),
        Some(OpenedSecret::Refused(problem)) => Err(problem.message.clone()),
        None => match kept.get(fleet) {
            Some(kept) => parsed(kept.as_ref().map_err(Clone::clone)?),
            None => Err("no spec contains it any more, and none is recorded".to_owned()),
        },
    }
}

fn is_described(checked: &ResolvedTree, fleet: &FleetKey) -> bool {
    let resource = checked.catalog.resources.get(&fleet.resource());
    resource.is_some_and(|resource| resource.hold != Some(Hold::Absent))
}

pub(super) fn parsed(kubeconfig: &SecretString) -> Result<KubeAccess, String> {
    let message = |faults: Vec<MaterialFault>| faults.into_iter().next().map(|fault| fault.message);
    KubeAccess::parse(kubeconfig.expose_secret())
        .map_err(|faults| message(faults).unwrap_or_else(|| "it can't be read".to_owned()))
}
