//! The offers of this installation, and why it doesn't offer the rest of what the interface specification names.

use std::borrow::Cow;

use axum::http::StatusCode;
use serde_json::json;

use super::{Answered, Call, written};
use crate::api::answer::{FleetOffers, Offer, OfferedFeature, Offers, StorageOffers};
use crate::catalog::{Resource, versions};
use crate::names::{FleetKey, Identifier, Kind};
use crate::plan::preflight::FleetSupport;
use crate::spec::{Choice, Cluster, ClusterAccess, Fleet, Spec, choices};
use crate::views::records;

/// The public clouds on which the interface specification lets fleets run.
const CLOUDS: [&str; 4] = ["AWS", "Azure", "Google Cloud", "Oracle Cloud"];

const NO_CLOUD: &str = "Streamfleet runs on Kubernetes clusters of your own and creates none: create one there, and use \
                        `byok` with its kubeconfig";

/// The cluster types of the interface specification beside Kafka.
const OTHER_TYPES: [&str; 3] = ["Redpanda", "Apache Pulsar", "NATS"];

const NO_DRIVER: &str = "there is no driver for this cluster type yet; `kafka` is available";

const ACCESS: &str = "/advanced_config/cluster_access";

pub(super) fn read(call: &Call) -> Answered {
    let organization = call.queried_organization()?;
    let fleets = call.fleets(organization.as_ref());
    let clouds = CLOUDS.iter().map(|name| missing(name, NO_CLOUD));
    let types = OTHER_TYPES.iter().map(|name| missing(name, NO_DRIVER));
    let offers = Offers {
        infra_types: offered(Kind::Fleet, "/infra_type").chain(clouds).collect(),
        cluster_types: offered(Kind::Cluster, "/cluster_type").chain(types).collect(),
        tenancy_modes: offered(Kind::Fleet, "/tenancy_mode").collect(),
        cluster_access: offered(Kind::Cluster, ACCESS).collect(),
        profiles: offered(Kind::Cluster, "/advanced_config/profile").collect(),
        authentication: offered(Kind::Cluster, "/advanced_config/authentication").collect(),
        storage_on_delete: offered(Kind::Cluster, "/advanced_config/storage/on_delete").collect(),
        exposures: offered(Kind::Fleet, "/advanced_config/exposure").collect(),
        dns_providers: offered(Kind::BaseDomain, "/dns_provider").collect(),
        cloud_providers: offered(Kind::CloudAccount, "/provider").collect(),
        kafka_versions: kafka_versions(&FleetSupport::default()),
        fleets: fleets.iter().map(|(key, fleet)| call.offers_of(key, fleet)).collect(),
    };
    Ok(call.with_current_plan(written(StatusCode::OK, &offers)))
}

impl Call {
    /// The fleets that the caller may see, of one organization or of all, as their specs are now.
    pub(super) fn fleets(&self, organization: Option<&Identifier>) -> Vec<(FleetKey, Fleet)> {
        let keys = self.keys(Kind::Fleet).into_iter().filter(|key| {
            self.caller.sees(&key.organization)
                && organization.is_none_or(|wanted| key.organization == *wanted)
        });
        let found = keys.filter_map(|key| {
            let resource: Cow<Resource> = match self.resource_written(key) {
                Some(written) => Cow::Borrowed(written),
                None => records::find(&self.made.round, key)?,
            };
            match &resource.spec {
                Spec::Fleet(fleet) => Some((key.as_fleet()?, Fleet::clone(fleet))),
                _ => None,
            }
        });
        found.collect()
    }

    /// The versions and disks that a fleet has for its clusters, as far as known.
    pub(super) fn support(&self, fleet: &FleetKey) -> Cow<'_, FleetSupport> {
        self.made.round.support.get(fleet).map_or_else(Cow::default, Cow::Borrowed)
    }

    fn offers_of(&self, key: &FleetKey, fleet: &Fleet) -> FleetOffers {
        let support = self.support(key);
        let kafka_versions = kafka_versions(&support);
        let newest = kafka_versions.iter().find(|offer| offer.is_default);
        let default_kafka_version = newest.and_then(|offer| offer.value.clone());
        let with_access = |offer: Offer| {
            let access = serde_json::from_value(json!(offer.value)).unwrap_or_default();
            let reason = self.refused(fleet, |cluster| cluster.advanced_config.cluster_access = access);
            Offer { is_offered: reason.is_none(), reason, ..offer }
        };
        let follows = self.refused(fleet, |cluster| cluster.advanced_config.auto_upgrade = true);
        let storage = support.storage.as_ref();
        let usual = || storage?.default.clone();
        FleetOffers {
            fleet: key.clone(),
            infra_type: fleet.infra_type,
            tenancy_mode: fleet.tenancy_mode,
            kafka_versions,
            default_kafka_version,
            is_operator_known: support.kafka_versions.is_some(),
            auto_upgrade: OfferedFeature { is_offered: follows.is_none(), reason: follows },
            cluster_access: offered(Kind::Cluster, ACCESS).map(with_access).collect(),
            storage: StorageOffers {
                default_class: fleet.advanced_config.storage_class.clone().or_else(usual),
                classes: storage.map(|storage| storage.classes.iter().cloned().collect()),
            },
        }
    }

    /// Why the document of a cluster would be refused that differs in one field from one that a fleet takes.
    fn refused(&self, fleet: &Fleet, differs: impl FnOnce(&mut Cluster)) -> Option<String> {
        let mut cluster = plain_cluster(fleet)?;
        differs(&mut cluster);
        let fit = self.made.round.checked.catalog.fit(&cluster, fleet);
        fit.problems.first().map(|problem| problem.message.clone())
    }
}

/// The smallest cluster that a fleet takes if it has room.
fn plain_cluster(fleet: &Fleet) -> Option<Cluster> {
    let gateway = fleet.advanced_config.gateway.as_ref();
    let cluster = json!({
        "organization": fleet.organization,
        "infrastructure": fleet.identifier,
        "identifier": fleet.identifier,
        "cluster_type": "kafka",
        "tenancy_mode": fleet.tenancy_mode,
        "kafka_units": 1,
        "advanced_config": {
            "version": versions::newest(|_| true),
            "cluster_access": ClusterAccess::Internal,
            "private_access": gateway.is_some_and(|gateway| gateway.private),
        },
    });
    // Can't fail: every field that has no default is there.
    serde_json::from_value(cluster).ok()
}

/// The values of a field, as documents are checked by.
fn offered(kind: Kind, pointer: &str) -> impl Iterator<Item = Offer> {
    choices(kind, pointer).into_iter().map(|Choice { value, description, is_default }| Offer {
        name: value.clone(),
        value: Some(value),
        is_offered: true,
        is_default,
        description,
        reason: None,
    })
}

fn missing(name: &str, reason: &str) -> Offer {
    Offer {
        name: name.to_owned(),
        value: None,
        is_offered: false,
        is_default: false,
        description: String::new(),
        reason: Some(reason.to_owned()),
    }
}

/// The versions that Streamfleet knows, the newest first, and which of them a fleet runs.
fn kafka_versions(support: &FleetSupport) -> Vec<Offer> {
    let newest = versions::newest(|version| support.runs(version));
    let known: Vec<&str> = support.kafka_versions.iter().flatten().map(String::as_str).collect();
    let offer = |version: &str| {
        let is_offered = support.runs(version);
        let reason = || format!("the fleet's operator runs {}", known.join(", "));
        Offer {
            name: version.to_owned(),
            value: Some(version.to_owned()),
            is_offered,
            is_default: newest == Some(version),
            description: String::new(),
            reason: (!is_offered).then(reason),
        }
    };
    versions::SUPPORTED.iter().rev().map(|supported| offer(supported.version)).collect()
}
