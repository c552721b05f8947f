//! The rows. The first row of a field that covers a change applies to it.

use super::FieldCondition::{
    Becomes, BrokerOption, Changes, Down, KeepsLess, Off, On, OtherAuthority, OtherChain, Up,
};
use super::{FieldCondition, FieldEffect};
use crate::names::Kind;
use crate::names::Kind::{BaseDomain, CloudAccount, Cluster, Fleet, IdentityProvider, Organization};
use crate::plan::Verdict;
use crate::plan::Verdict::{
    BrokerRemoval, ClientsReconnect, DataLoss, InPlace, NoOp, Refused, RollingRestart, StorageGrowth,
};
use crate::spec::broker_option::Effect;

const fn row(
    kind: Kind,
    field: &'static str,
    when: FieldCondition,
    verdict: Verdict,
    why: &'static str,
) -> FieldEffect {
    // Objects show how they change, but not which clients are cut off, and nothing if no object changes.
    let told = matches!(verdict, NoOp | ClientsReconnect);
    FieldEffect { kind, field, when, verdict, why, told }
}

/// Makes plans print a row, too: who gains access or has to connect differently, which objects don't show.
const fn told(row: FieldEffect) -> FieldEffect {
    FieldEffect { told: true, ..row }
}

const RECORDED: &str = "it is recorded, and nothing else changes";
const ANOTHER: &str =
    "with another one it is another resource; put it back and describe the new one beside it";
const NEW_CLUSTER: &str =
    "it can't change; describe a new cluster beside it and move the data with MirrorMaker 2";
const NEW_FLEET: &str = "it can't change; describe a new fleet beside it and make new clusters there";
const LIMIT_UP: &str = "what waited for room goes on";
const LIMIT_DOWN: &str =
    "nothing that is applied is taken away; what is new or grows waits while more is in use";
const SUSPENDED: &str = "from now on it is left as it is, whatever else its specs say";
const RESUMED: &str = "what was held up is done now";
const PROTECTED: &str = "from now on it is not deleted, even when its file is removed";
const UNPROTECTED: &str = "from now on it is deleted when its file is removed";
const OTHER_LOGIN: &str =
    "clients log in otherwise, so all of them need other settings; brokers restart one by one";
const OAUTH: &str = "the brokers of the clusters that use it restart one by one; clients whose tokens no longer fit can't log in";
const OTHER_ISSUER: &str = "the brokers of the clusters that use it restart one by one; clients whose tokens are of the old issuer can't log in, and users of the new one can log in under any name that has ACLs";
const OTHER_NAMES: &str = "the brokers of the clusters that use it restart one by one; clients log in under other names, so that their ACLs no longer match, or match somebody else's name";
const TIERING: &str = "once a person has approved it, the brokers of the clusters that use it restart one by one; the bucket has to hold the same log as before";
const MORE_ZONES: &str = "brokers and controllers restart one by one; disks and copies stay where they are, so a broker whose zone has more than its share can't start again there";
const FEWER_ZONES: &str = "brokers and controllers restart one by one and are no longer kept apart so strictly; disks and copies stay where they are";

#[rustfmt::skip]
pub const FIELD_EFFECTS: &[FieldEffect] = &[
    row(Cluster, "organization", Changes, Refused, ANOTHER),
    row(Cluster, "infrastructure", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "identifier", Changes, Refused, ANOTHER),
    row(Cluster, "cluster_type", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "tenancy_mode", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "kafka_units", Up, InPlace, "brokers are added and partitions moved onto them; clients keep their connections"),
    row(Cluster, "kafka_units", Down, BrokerRemoval, "refused unless `advanced_config.scale_down_to` confirms it, and at most by half at a time; Cruise Control moves what the brokers that go hold to the others, and then the operator removes them"),
    row(Cluster, "cloud_provider", Changes, NoOp, RECORDED),
    row(Cluster, "region", Changes, NoOp, RECORDED),
    row(Cluster, "tags", Changes, NoOp, RECORDED),
    row(Cluster, "provisioner_name", Changes, NoOp, RECORDED),
    row(Cluster, "suspend", On, NoOp, SUSPENDED),
    row(Cluster, "suspend", Off, NoOp, RESUMED),
    row(Cluster, "deletion_protection", On, NoOp, PROTECTED),
    row(Cluster, "deletion_protection", Off, NoOp, UNPROTECTED),
    told(row(Cluster, "advanced_config.number_of_zones", Up, RollingRestart, MORE_ZONES)),
    told(row(Cluster, "advanced_config.number_of_zones", Down, RollingRestart, FEWER_ZONES)),
    told(row(Cluster, "advanced_config.cluster_access", Becomes("Internal & External"), RollingRestart, "brokers can be reached from inside and from outside of Kubernetes, and so by more people than before")),
    row(Cluster, "advanced_config.cluster_access", Becomes("Internal"), ClientsReconnect, "brokers restart one by one, and clients outside of Kubernetes can't reach them any more"),
    row(Cluster, "advanced_config.cluster_access", Becomes("External"), ClientsReconnect, "brokers restart one by one and can be reached from outside of Kubernetes only; clients inside can't reach them any more but by the outer way"),
    row(Cluster, "advanced_config.private_access", On, ClientsReconnect, "load balancers become private, where the cloud's controller changes those that are there, so clients outside of the private network can't reach the brokers any more"),
    row(Cluster, "advanced_config.private_access", Off, ClientsReconnect, "load balancers become public, where the cloud's controller changes those that are there: whoever can reach them from outside of the private network can now try to log in; they may get other addresses"),
    row(Cluster, "advanced_config.version", Up, RollingRestart, "brokers and controllers restart one by one; when all run a new release and are well, the metadata follows, and then there is no way back"),
    row(Cluster, "advanced_config.version", Down, Refused, "metadata only goes forward, so only a patch of the same release, or a release that it has not followed yet, can be taken back; describe a new cluster beside it"),
    row(Cluster, "advanced_config.oauth", Changes, ClientsReconnect, OTHER_LOGIN),
    row(Cluster, "advanced_config.authentication", Changes, ClientsReconnect, OTHER_LOGIN),
    row(Cluster, "advanced_config.tiered_storage_bucket_name", On, RollingRestart, "brokers restart one by one; topics use the bucket when they ask for it"),
    row(Cluster, "advanced_config.tiered_storage_bucket_name", Off, Refused, "the older part of the log is in the bucket, and brokers fail without it; put it back"),
    row(Cluster, "advanced_config.tiered_storage_bucket_name", Changes, Refused, "the older part of the log is in the bucket that was given first; put it back"),
    row(Cluster, "advanced_config.tiered_storage_provider.cloud_account", Changes, RollingRestart, "once a person has approved it, brokers restart one by one; the account has to lead to the same bucket"),
    row(Cluster, "advanced_config.tiered_storage_provider.cloud_region", Changes, RollingRestart, "once a person has approved it, brokers restart one by one; the region has to be that of the bucket"),
    row(Cluster, "advanced_config.tiered_storage_create_bucket", On, Refused, "buckets are not made here, so that no mistake here can remove one; make it yourself"),
    row(Cluster, "advanced_config.auto_upgrade", On, RollingRestart, "now and whenever the fleet's operator runs a newer patch of `version`'s release, brokers restart one by one with it; refused on fleets of files, where nothing tells what the operator runs"),
    row(Cluster, "advanced_config.auto_upgrade", Off, RollingRestart, "brokers go back to `version`, one by one; write the version that runs there to stay at it"),
    row(Cluster, "advanced_config.storage.class", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "advanced_config.storage.size_gib", Up, StorageGrowth, "disks grow, which can't be taken back; brokers may restart one by one, and Cruise Control restarts where there is one"),
    row(Cluster, "advanced_config.storage.size_gib", Down, Refused, "disks only grow; put the size back, or describe a new cluster beside it"),
    row(Cluster, "advanced_config.storage.on_delete", Becomes("Delete"), InPlace, "from now on, deleting the cluster deletes its data"),
    row(Cluster, "advanced_config.storage.on_delete", Becomes("Retain"), InPlace, "from now on, the disks stay when the cluster is deleted"),
    row(Cluster, "advanced_config.profile", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "advanced_config.scale_down_to", Changes, NoOp, "`scale_down_to` confirms fewer `kafka_units`, and does nothing by itself"),
    row(Cluster, "advanced_config.operations.metrics", On, RollingRestart, "brokers and controllers restart one by one; then Prometheus can read their metrics"),
    row(Cluster, "advanced_config.operations.metrics", Off, RollingRestart, "brokers and controllers restart one by one, and nothing can read their metrics any more"),
    row(Cluster, "advanced_config.operations.kafka_exporter", On, InPlace, "Kafka Exporter starts beside the brokers; clients notice nothing"),
    row(Cluster, "advanced_config.operations.kafka_exporter", Off, InPlace, "Kafka Exporter goes; clients notice nothing"),
    row(Cluster, "advanced_config.operations.topic_operator", On, InPlace, "the topic operator starts, and makes topics of the KafkaTopics in the cluster's namespace; clients notice nothing"),
    row(Cluster, "advanced_config.operations.topic_operator", Off, InPlace, "the topic operator goes; topics stay, and nothing follows KafkaTopics any more"),
    row(Cluster, "advanced_config.config", KeepsLess, DataLoss, "what is beyond it is deleted for good, so a person has to approve it; without the option, Kafka's default decides"),
    row(Cluster, "advanced_config.config", BrokerOption(Effect::Live), InPlace, "brokers take it while they run"),
    row(Cluster, "advanced_config.config", BrokerOption(Effect::Brokers), RollingRestart, "brokers restart one by one"),
    row(Cluster, "advanced_config.config", BrokerOption(Effect::Restart), RollingRestart, "brokers and controllers restart one by one"),

    row(Fleet, "organization", Changes, Refused, ANOTHER),
    row(Fleet, "identifier", Changes, Refused, ANOTHER),
    row(Fleet, "infra_type", Changes, Refused, NEW_FLEET),
    row(Fleet, "domain", On, NoOp, "from now on, clusters of the fleet can be reached from outside"),
    row(Fleet, "domain", Changes, Refused, "clusters that are reached from outside have their addresses from it; make their `cluster_access` `Internal` first"),
    row(Fleet, "tenancy_mode", Changes, Refused, NEW_FLEET),
    row(Fleet, "max_tenants", Up, NoOp, LIMIT_UP),
    row(Fleet, "max_tenants", Down, NoOp, LIMIT_DOWN),
    row(Fleet, "max_kafka_units", Up, NoOp, LIMIT_UP),
    row(Fleet, "max_kafka_units", Down, NoOp, LIMIT_DOWN),
    row(Fleet, "placement_config", Changes, NoOp, RECORDED),
    row(Fleet, "suspend", On, NoOp, SUSPENDED),
    row(Fleet, "suspend", Off, NoOp, RESUMED),
    row(Fleet, "deletion_protection", On, NoOp, PROTECTED),
    row(Fleet, "deletion_protection", Off, NoOp, UNPROTECTED),
    row(Fleet, "advanced_config.kubeconfig", Changes, NoOp, "the fleet is reached with it from now on; it has to lead to the same Kubernetes cluster, or nothing is done there"),
    row(Fleet, "advanced_config.exposure", Becomes("tlsroute"), ClientsReconnect, "a Gateway is made, and the brokers of clusters that are reached from outside restart one by one behind it; clients find them at another port"),
    row(Fleet, "advanced_config.exposure", Becomes("loadbalancer"), ClientsReconnect, "the brokers of clusters that are reached from outside restart one by one behind load balancers of their own; clients find them at another port, and the Gateway goes after the last"),
    row(Fleet, "advanced_config.gateway.class", Changes, InPlace, "once a person has approved it, another implementation takes the Gateway over: clients outside are cut off from every cluster of the fleet until it has an address from there and their host names lead to it"),
    told(row(Fleet, "advanced_config.gateway.private", On, InPlace, "the Gateway's load balancer becomes private, where the cloud's controller changes one that is there, so clients outside of the private network can't reach any cluster of the fleet any more; what is reached through it has to say the same in `private_access`")),
    told(row(Fleet, "advanced_config.gateway.private", Off, InPlace, "the Gateway's load balancer becomes public, where the cloud's controller changes one that is there: whoever can reach it from outside of the private network can now try to log in to every cluster behind it; it may get another address, and what is reached through it has to say the same in `private_access`")),
    row(Fleet, "advanced_config.components.strimzi", Up, RollingRestart, "a new version of the operator restarts the brokers of every cluster; refused while a cluster has a Kafka that it doesn't run"),
    row(Fleet, "advanced_config.components.strimzi", Down, Refused, "an older operator doesn't know what a newer one left behind; put the version back"),
    row(Fleet, "advanced_config.components.strimzi", Changes, RollingRestart, "the operator is installed, or goes so that another one can take over; clusters go on running until it restarts their brokers for the pod security that comes with it"),
    row(Fleet, "advanced_config.storage_class", Changes, Refused, "clusters that name no class have theirs from here, and it can't change; name the new class in new clusters"),
    row(Fleet, "advanced_config.path", Changes, Refused, NEW_FLEET),

    row(BaseDomain, "organization", Changes, Refused, ANOTHER),
    row(BaseDomain, "domain", Changes, Refused, "with another one it is another base domain, and clusters would lose their addresses; put it back and describe the new one beside it"),
    row(BaseDomain, "tls_cert", OtherChain, InPlace, "no broker restarts, since Strimzi compares only the domain's own certificate: brokers show the new chain from their next restart on, and the plan says how to restart them where clients need it sooner"),
    row(BaseDomain, "tls_cert", OtherAuthority, ClientsReconnect, "another authority signed it: clients that trust only the old one's can't connect to clusters that have it until they trust the new one, too; the brokers of clusters that are reached from outside restart one by one with it"),
    row(BaseDomain, "tls_cert", Changes, RollingRestart, "the brokers of clusters that are reached from outside restart one by one with it; clients reconnect and go on if they trust it"),
    row(BaseDomain, "tls_key", Changes, RollingRestart, "together with a certificate that fits it, the brokers of clusters that are reached from outside restart one by one"),
    row(BaseDomain, "dns_provider", Changes, Refused, "managed DNS puts the organization in front of the domain, which makes it another base domain; only where it stands there already, load balancers are annotated anew instead"),
    row(BaseDomain, "dns_base_domain", Changes, NoOp, RECORDED),
    row(BaseDomain, "cloud_account", Changes, NoOp, RECORDED),

    row(IdentityProvider, "organization", Changes, Refused, ANOTHER),
    row(IdentityProvider, "identifier", Changes, Refused, ANOTHER),
    row(IdentityProvider, "issuer", Changes, ClientsReconnect, OTHER_ISSUER),
    told(row(IdentityProvider, "jwks_uri", Changes, RollingRestart, "the brokers of the clusters that use it restart one by one and fetch the keys there; clients reconnect and go on, if these are the keys that their tokens are signed with")),
    row(IdentityProvider, "token_endpoint", Changes, NoOp, "it is what clients are told; brokers don't use it"),
    row(IdentityProvider, "audience", Changes, ClientsReconnect, OAUTH),
    row(IdentityProvider, "username_claim", Changes, ClientsReconnect, OTHER_NAMES),
    row(IdentityProvider, "groups_claim", Changes, RollingRestart, "the brokers of the clusters that use it restart one by one; clients reconnect and go on, since Kafka's own authorizer doesn't look at groups"),
    told(row(IdentityProvider, "ca_cert", Changes, RollingRestart, "the brokers of the clusters that use it restart one by one and trust the provider by it; clients reconnect and go on, if brokers can fetch the provider's keys so")),

    row(CloudAccount, "organization", Changes, Refused, ANOTHER),
    row(CloudAccount, "identifier", Changes, Refused, ANOTHER),
    row(CloudAccount, "provider", Changes, RollingRestart, TIERING),
    row(CloudAccount, "region", Changes, RollingRestart, TIERING),
    row(CloudAccount, "endpoint", Changes, RollingRestart, TIERING),
    row(CloudAccount, "credentials", Changes, RollingRestart, "the brokers of the clusters that use it restart one by one with the new credentials"),

    row(Organization, "identifier", Changes, Refused, ANOTHER),
    row(Organization, "display_name", Changes, NoOp, RECORDED),
    row(Organization, "quotas.fleets", Up, NoOp, LIMIT_UP),
    row(Organization, "quotas.fleets", Off, NoOp, LIMIT_UP),
    row(Organization, "quotas.fleets", Changes, NoOp, LIMIT_DOWN),
    row(Organization, "quotas.clusters", Up, NoOp, LIMIT_UP),
    row(Organization, "quotas.clusters", Off, NoOp, LIMIT_UP),
    row(Organization, "quotas.clusters", Changes, NoOp, LIMIT_DOWN),
    row(Organization, "quotas.kafka_units", Up, NoOp, LIMIT_UP),
    row(Organization, "quotas.kafka_units", Off, NoOp, LIMIT_UP),
    row(Organization, "quotas.kafka_units", Changes, NoOp, LIMIT_DOWN),
    row(Organization, "quotas.base_domains", Up, NoOp, LIMIT_UP),
    row(Organization, "quotas.base_domains", Off, NoOp, LIMIT_UP),
    row(Organization, "quotas.base_domains", Changes, NoOp, LIMIT_DOWN),
    row(Organization, "quotas.identity_providers", Up, NoOp, LIMIT_UP),
    row(Organization, "quotas.identity_providers", Off, NoOp, LIMIT_UP),
    row(Organization, "quotas.identity_providers", Changes, NoOp, LIMIT_DOWN),
    row(Organization, "quotas.cloud_accounts", Up, NoOp, LIMIT_UP),
    row(Organization, "quotas.cloud_accounts", Off, NoOp, LIMIT_UP),
    row(Organization, "quotas.cloud_accounts", Changes, NoOp, LIMIT_DOWN),
    row(Organization, "domains", Changes, NoOp, "it says what base domains there may be; one that is applied and not named any more stays as it is"),
    row(Organization, "members", Changes, NoOp, "other people may read, write or approve through the API, as their roles say"),
];
