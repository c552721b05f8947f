//! The rows. The first row of a field that covers a change applies to it.

use super::row::FieldCondition::{
    Becomes, BrokerOption, Changes, Down, KeepsLess, Off, On, OtherAuthority, OtherChain, TopicOption, Up,
};
use super::row::{FieldCondition, FieldEffect};
use crate::names::Kind;
use crate::names::Kind::{
    BaseDomain, CloudAccount, Cluster, Fleet, IdentityProvider, Organization, Topic, User,
};
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
    // Changed objects don't show which clients are cut off, and some changes change no object.
    let told = matches!(verdict, NoOp | ClientsReconnect);
    FieldEffect { kind, field, when, verdict, why, told }
}

/// Makes plans print a row, too: objects don't show which clients gain access or have to connect differently.
const fn told(row: FieldEffect) -> FieldEffect {
    FieldEffect { told: true, ..row }
}

const RECORDED: &str = "only recorded; nothing else changes";
const ANOTHER: &str = "not possible: it would be another resource; restore the old value and describe the new resource in a document of its \
     own";
const NEW_CLUSTER: &str = "not possible: describe a new cluster and move the data with MirrorMaker 2";
const NEW_FLEET: &str = "not possible: describe a new fleet and create new clusters on it";
const LIMIT_UP: &str = "changes that waited for capacity continue";
const LIMIT_DOWN: &str =
    "existing resources are kept; new or growing ones wait while more than the limit is in use";
const SUSPENDED: &str = "streamfleet leaves it unchanged from now on, whatever its specs say";
const RESUMED: &str = "changes that were held are applied";
const PROTECTED: &str = "it can no longer be deleted, even if its file is removed";
const ADOPTED: &str = "matters only while an object that Streamfleet didn't make is in its place";
const UNPROTECTED: &str = "it is deleted if its file is removed";
const RIGHTS: &str =
    "its clients may do more or less; one that loses a right gets an authorization error at the next call";
const OTHER_LOGIN: &str =
    "clients log in in another way, so all of them need other settings; brokers restart one by one";
const OAUTH: &str = "brokers of the clusters that use it restart one by one; clients whose tokens are no longer valid \
                     can't log in";
const OTHER_ISSUER: &str = "brokers of the clusters that use it restart one by one; clients with tokens of the old issuer \
                            can't log in, and users of the new issuer can log in under any name that has ACLs";
const OTHER_NAMES: &str = "brokers of the clusters that use it restart one by one; clients log in under other names, so \
                           their ACLs no longer match or match those of another user";
const TIERING: &str = "after approval, brokers of the clusters that use it restart one by one; the bucket must contain the \
                       same log as before. With `rfc2136`, nothing restarts";
const REGISTRY: &str =
    "the schema registry's pods are replaced one at a time, and judge new schemas by the new rule";
const REGISTRY_GROUP: &str = "the schema registry's pods are replaced one at a time; then members of the old group lose these \
                              rights, and those of the new one have them";
const MORE_ZONES: &str = "brokers and controllers restart one by one; disks and copies stay where they are, so a broker in \
                          a zone with more than its share can't start again there";
const FEWER_ZONES: &str = "brokers and controllers restart one by one and are spread less strictly; disks and copies stay \
                           where they are";

#[rustfmt::skip]
pub const FIELD_EFFECTS: &[FieldEffect] = &[
    row(Cluster, "organization", Changes, Refused, ANOTHER),
    row(Cluster, "infrastructure", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "identifier", Changes, Refused, ANOTHER),
    row(Cluster, "cluster_type", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "tenancy_mode", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "kafka_units", Up, InPlace, "brokers are added and partitions moved to them; clients keep their \
                                              connections"),
    row(Cluster, "kafka_units", Down, BrokerRemoval, "refused unless `advanced_config.scale_down_to` confirms it; at most \
                                                      half of the brokers at a time; Cruise Control moves their partitions \
                                                      to the other brokers, and then the operator removes them"),
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
    told(row(Cluster, "advanced_config.cluster_access", Becomes("Internal & External"), RollingRestart, "clients \
         outside of Kubernetes can reach the brokers too")),
    row(Cluster, "advanced_config.cluster_access", Becomes("Internal"), ClientsReconnect, "brokers restart one by one, and clients outside of Kubernetes can't reach them any more"),
    row(Cluster, "advanced_config.cluster_access", Becomes("External"), ClientsReconnect, "brokers restart one by one and \
         can be reached only from outside of Kubernetes; clients inside need the external address"),
    row(Cluster, "advanced_config.private_access", On, ClientsReconnect, "load balancers become private if the cloud's \
         controller changes existing ones; clients outside of the private network can't reach the brokers any more"),
    row(Cluster, "advanced_config.private_access", Off, ClientsReconnect, "load balancers become public if the cloud's \
         controller changes existing ones: anyone who can reach them from outside of the private network can try to log \
         in; their addresses may change"),
    row(Cluster, "advanced_config.version", Up, RollingRestart, "brokers and controllers restart one by one; when all of \
                                                                 them run a new release and are healthy, the metadata \
                                                                 version follows, which can't be undone"),
    row(Cluster, "advanced_config.version", Down, Refused, "metadata versions only go forward, so only a patch of the same \
                                                            release, or a release whose metadata version isn't used yet, \
                                                            can be reverted; otherwise describe a new cluster"),
    row(Cluster, "advanced_config.oauth", Changes, ClientsReconnect, OTHER_LOGIN),
    row(Cluster, "advanced_config.authentication", Changes, ClientsReconnect, OTHER_LOGIN),
    row(Cluster, "advanced_config.tiered_storage_bucket_name", On, RollingRestart, "brokers restart one by one; topics use \
         the bucket if they enable it"),
    row(Cluster, "advanced_config.tiered_storage_bucket_name", Off, Refused, "the older part of the log is in the bucket, \
         and brokers fail without it; restore the old value"),
    row(Cluster, "advanced_config.tiered_storage_bucket_name", Changes, Refused, "the older part of the log is in the \
         first bucket; restore the old value"),
    row(Cluster, "advanced_config.tiered_storage_provider.cloud_account", Changes, RollingRestart, "after approval, \
         brokers restart one by one; the account must lead to the same bucket"),
    row(Cluster, "advanced_config.tiered_storage_provider.cloud_region", Changes, RollingRestart, "after approval, brokers \
         restart one by one; the region must be that of the bucket"),
    row(Cluster, "advanced_config.tiered_storage_create_bucket", On, NoOp, "a bucket that the account has already is \
         used as it is"),
    row(Cluster, "advanced_config.auto_upgrade", On, RollingRestart, "now, and whenever the fleet's operator runs a newer \
                                                                      patch of `version`'s release, brokers restart one by \
                                                                      one with it; refused on directory fleets, where the \
                                                                      operator's version is unknown"),
    row(Cluster, "advanced_config.auto_upgrade", Off, RollingRestart, "brokers return to `version`, one by one; set \
                                                                       `version` to the running version to keep it"),
    row(Cluster, "advanced_config.storage.class", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "advanced_config.storage.size_gib", Up, StorageGrowth, "disks grow, which can't be undone; brokers may \
         restart one by one, and Cruise Control restarts if the cluster has one"),
    row(Cluster, "advanced_config.storage.size_gib", Down, Refused, "disks only grow; restore the size, or describe a new \
                                                                     cluster"),
    row(Cluster, "advanced_config.storage.on_delete", Becomes("Delete"), InPlace, "deleting the cluster now deletes its \
         data"),
    row(Cluster, "advanced_config.storage.on_delete", Becomes("Retain"), InPlace, "deleting the cluster now keeps its disks"),
    row(Cluster, "advanced_config.profile", Changes, Refused, NEW_CLUSTER),
    row(Cluster, "advanced_config.scale_down_to", Changes, NoOp, "no effect by itself: `scale_down_to` confirms fewer \
                                                                  `kafka_units`"),
    row(Cluster, "advanced_config.operations.metrics", On, RollingRestart, "brokers and controllers restart one by one; then Prometheus can read their metrics"),
    row(Cluster, "advanced_config.operations.metrics", Off, RollingRestart, "brokers and controllers restart one by one, \
         and their metrics can't be read any more"),
    row(Cluster, "advanced_config.operations.kafka_exporter", On, InPlace, "Kafka Exporter starts beside the brokers; clients notice nothing"),
    row(Cluster, "advanced_config.operations.kafka_exporter", Off, InPlace, "Kafka Exporter is removed; clients notice \
         nothing"),
    row(Cluster, "advanced_config.schema_registry.enabled", On, InPlace, "a schema registry starts beside the brokers; clients of \
         Kafka notice nothing"),
    row(Cluster, "advanced_config.schema_registry.enabled", Off, InPlace, "the schema registry is removed; its schemas stay in topics \
         of the cluster"),
    row(Cluster, "advanced_config.schema_registry.compatibility", Changes, InPlace, REGISTRY),
    row(Cluster, "advanced_config.schema_registry.admin_group", Changes, InPlace, REGISTRY_GROUP),
    row(Cluster, "advanced_config.schema_registry.developer_group", Changes, InPlace, REGISTRY_GROUP),
    row(Cluster, "advanced_config.schema_registry.reader_group", Changes, InPlace, REGISTRY_GROUP),
    row(Cluster, "advanced_config.operations.console", On, InPlace, "a console starts beside the brokers: whoever reaches it sees \
         the cluster's name and the console's own metrics, and has to log in as one of the cluster's users for more"),
    row(Cluster, "advanced_config.operations.console", Off, InPlace, "the console is removed"),
    row(Cluster, "advanced_config.operations.topic_operator", On, InPlace, "the topic operator starts, and creates topics \
         from the KafkaTopics in the cluster's namespace; clients notice nothing"),
    row(Cluster, "advanced_config.operations.topic_operator", Off, InPlace, "the topic operator is removed; topics are \
         kept, and KafkaTopics have no effect any more"),
    row(Cluster, "advanced_config.config", KeepsLess, DataLoss, "older data is deleted for good, so the change needs \
                                                                 approval; without the option, Kafka's default applies"),
    row(Cluster, "advanced_config.config", BrokerOption(Effect::Live), InPlace, "brokers use it without a restart"),
    row(Cluster, "advanced_config.config", BrokerOption(Effect::Brokers), RollingRestart, "brokers restart one by one"),
    row(Cluster, "advanced_config.config", BrokerOption(Effect::Restart), RollingRestart, "brokers and controllers restart one by one"),

    row(Topic, "organization", Changes, Refused, ANOTHER),
    row(Topic, "cluster", Changes, Refused, ANOTHER),
    row(Topic, "name", Changes, Refused, ANOTHER),
    row(Topic, "partitions", Up, InPlace, "the topic gets more partitions: records with the same key may go to another one than before"),
    row(Topic, "partitions", Down, Refused, "partitions only grow; describe a new topic and move the records to it"),
    row(Topic, "partitions", Changes, InPlace, "the topic keeps the partitions that it has; Kafka refuses fewer"),
    row(Topic, "replicas", Up, InPlace, "Cruise Control copies the topic's records to more brokers"),
    row(Topic, "replicas", Down, InPlace, "Cruise Control removes copies, so fewer failures can lose records"),
    row(Topic, "replicas", Changes, InPlace, "Cruise Control changes the number of copies if it is another one"),
    row(Topic, "config", KeepsLess, DataLoss, "older data is deleted for good, so the change needs approval; without the \
                                               option, the cluster's value applies"),
    row(Topic, "config", TopicOption, InPlace, "brokers use it without a restart"),
    row(Topic, "adopt", Changes, NoOp, ADOPTED),
    row(Topic, "on_delete", Becomes("Retain"), NoOp, "the topic stays in Kafka when its spec is removed"),
    row(Topic, "on_delete", Changes, NoOp, "the topic is deleted with its records when its spec is removed, after approval"),
    row(Topic, "deletion_protection", On, NoOp, PROTECTED),
    row(Topic, "deletion_protection", Off, NoOp, UNPROTECTED),

    row(User, "organization", Changes, Refused, ANOTHER),
    row(User, "cluster", Changes, Refused, ANOTHER),
    row(User, "identifier", Changes, Refused, ANOTHER),
    row(User, "produce", Changes, InPlace, RIGHTS),
    row(User, "consume", Changes, InPlace, RIGHTS),
    row(User, "transactional_ids", Changes, InPlace, RIGHTS),
    row(User, "rules", Changes, InPlace, RIGHTS),
    row(User, "password", Changes, ClientsReconnect, "the user gets another password within two minutes: from then on its clients need it to connect"),
    row(User, "adopt", Changes, NoOp, ADOPTED),

    row(Fleet, "organization", Changes, Refused, ANOTHER),
    row(Fleet, "identifier", Changes, Refused, ANOTHER),
    row(Fleet, "infra_type", Changes, Refused, NEW_FLEET),
    row(Fleet, "domain", On, NoOp, "clusters of the fleet can be reached from outside"),
    row(Fleet, "domain", Changes, Refused, "clusters that can be reached from outside use it for their addresses; set \
                                            their `cluster_access` to `Internal` first"),
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
    row(Fleet, "advanced_config.kubeconfig", Changes, NoOp, "streamfleet connects to the fleet with it from now on; it \
                                                             must lead to the same Kubernetes cluster, or nothing is \
                                                             applied"),
    row(Fleet, "advanced_config.in_cluster", Changes, NoOp, "streamfleet connects to the fleet as the service account of its \
                                                             own pod, or no longer; it must be the same Kubernetes \
                                                             cluster, or nothing is applied"),
    row(Fleet, "advanced_config.exposure", Becomes("tlsroute"), ClientsReconnect, "a Gateway is created, and brokers of \
         clusters that can be reached from outside restart one by one behind it; clients need another port"),
    row(Fleet, "advanced_config.exposure", Becomes("loadbalancer"), ClientsReconnect, "brokers of clusters that can be \
         reached from outside restart one by one behind their own load balancers; clients need another port, and the \
         Gateway is removed after the last cluster"),
    row(Fleet, "advanced_config.reachability", Becomes("probe"), InPlace, "clusters that can be reached from outside get a \
         Kafka user as which streamfleet connects; clients notice nothing"),
    row(Fleet, "advanced_config.reachability", Becomes("none"), InPlace, "streamfleet no longer sees whether clients reach \
         the clusters, and its Kafka user is removed; clients notice nothing"),
    row(Fleet, "advanced_config.maintenance", Changes, InPlace, "disruptions that nobody asks for at that moment begin at \
        other times; clients notice nothing"),
    row(Fleet, "advanced_config.monitoring.federate", On, NoOp, "the API passes on the metrics of the fleet's clusters"),
    row(Fleet, "advanced_config.monitoring.federate", Off, NoOp, "the API no longer passes on the metrics of the fleet's \
        clusters"),
    row(Fleet, "advanced_config.monitoring.prometheus", Becomes("existing"), RollingRestart, "brokers and controllers with \
        metrics restart one by one, with the metrics that alerts need; Prometheus gets what it reads, alerts and dashboards"),
    row(Fleet, "advanced_config.monitoring.prometheus", Becomes("none"), RollingRestart, "brokers and controllers with \
        metrics restart one by one, with the metrics that the operator chooses; what Prometheus reads, alerts and \
        dashboards are deleted"),
    row(Fleet, "advanced_config.monitoring.prometheus", Becomes("own"), RollingRestart, "brokers and controllers with \
        metrics restart one by one, with the metrics that alerts need, unless a Prometheus reads them already; the fleet gets \
        a Prometheus, with a disk, at a name of its own"),
    row(Fleet, "advanced_config.monitoring.own.password", Changes, InPlace, "whoever reads Prometheus needs the new password, \
        within two minutes"),
    row(Fleet, "advanced_config.monitoring.own.retention_days", Up, InPlace, "Prometheus restarts, and keeps metrics for \
        longer, as far as its disk has room for them"),
    row(Fleet, "advanced_config.monitoring.own.retention_days", Down, InPlace, "Prometheus restarts, and deletes the metrics \
        that are older"),
    row(Fleet, "advanced_config.monitoring.own.disk_gib", Changes, Refused, "the disk of Prometheus can't change"),
    row(Fleet, "advanced_config.monitoring.own.private", On, InPlace, "the load balancer of Prometheus becomes private if the \
        cloud's controller changes an existing one"),
    row(Fleet, "advanced_config.monitoring.own.private", Off, InPlace, "the load balancer of Prometheus becomes public if the \
        cloud's controller changes an existing one: anyone who can reach it can try to log in"),
    row(Fleet, "advanced_config.monitoring.labels", Changes, NoOp, "the objects for Prometheus and Grafana get other \
        labels; clients notice nothing"),
    row(Fleet, "advanced_config.monitoring.namespace", Changes, InPlace, "alerts and dashboards move to another namespace; \
        clients notice nothing"),
    row(Fleet, "advanced_config.monitoring.dashboards", On, InPlace, "Grafana gets dashboards; clients notice nothing"),
    row(Fleet, "advanced_config.monitoring.dashboards", Off, InPlace, "the dashboards are deleted; clients notice nothing"),
    row(Fleet, "advanced_config.monitoring.alerts", On, InPlace, "Prometheus gets alerts; clients notice nothing"),
    row(Fleet, "advanced_config.monitoring.alerts", Off, InPlace, "the alerts are deleted; clients notice nothing"),
    row(Fleet, "advanced_config.gateway.class", Changes, InPlace, "after approval, another implementation takes over the \
                                                                   Gateway: clients outside are cut off from every cluster \
                                                                   of the fleet until the Gateway has a new address and \
                                                                   their host names lead to it"),
    told(row(Fleet, "advanced_config.gateway.private", On, InPlace, "the Gateway's load balancer becomes private if the \
                                                                     cloud's controller changes an existing one, so \
                                                                     clients outside of the private network can't reach \
                                                                     any cluster of the fleet any more; clusters behind it \
                                                                     need the same value in `private_access`")),
    told(row(Fleet, "advanced_config.gateway.private", Off, InPlace, "the Gateway's load balancer becomes public if the \
                                                                      cloud's controller changes an existing one: anyone \
                                                                      who can reach it from outside of the private network \
                                                                      can try to log in to every cluster behind it; its \
                                                                      address may change, and clusters behind it need the \
                                                                      same value in `private_access`")),
    row(Fleet, "advanced_config.components.strimzi", Up, RollingRestart, "a new version of the operator restarts the \
         brokers of every cluster; refused while a cluster has a Kafka version that it doesn't run"),
    row(Fleet, "advanced_config.components.strimzi", Down, Refused, "an older operator can't handle what a newer one \
                                                                     wrote; restore the version"),
    row(Fleet, "advanced_config.components.strimzi", Changes, RollingRestart, "the operator is installed, or removed so \
         that another one can take over; clusters keep running until it restarts their brokers for its pod security"),
    row(Fleet, "advanced_config.storage_class", Changes, Refused, "clusters without a class use this one, and theirs can't \
                                                                   change; set the new class in new clusters"),
    row(Fleet, "advanced_config.path", Changes, Refused, NEW_FLEET),

    row(BaseDomain, "organization", Changes, Refused, ANOTHER),
    row(BaseDomain, "domain", Changes, Refused, "not possible: it would be another base domain, and clusters would lose \
                                                 their addresses; restore it and describe the new one in a document of its \
                                                 own"),
    row(BaseDomain, "tls_cert", OtherChain, InPlace, "no broker restarts, because Strimzi compares only the domain's own \
                                                      certificate: brokers use the new chain from their next restart, and \
                                                      the plan says how to restart them sooner"),
    row(BaseDomain, "tls_cert", OtherAuthority, ClientsReconnect, "another authority signed it: clients that trust only \
                                                                   the old authority can't connect until they trust the \
                                                                   new one; brokers of clusters that can be reached from \
                                                                   outside restart one by one with it"),
    row(BaseDomain, "tls_cert", Changes, RollingRestart, "brokers of clusters that can be reached from outside restart one \
                                                          by one with it; clients reconnect and continue if they trust it"),
    row(BaseDomain, "tls_key", Changes, RollingRestart, "together with a matching certificate, brokers of clusters that \
                                                         can be reached from outside restart one by one"),
    row(BaseDomain, "dns_provider", Changes, Refused, "managed DNS puts the organization in front of the domain, which \
                                                       makes it another base domain; if the organization is there already, \
                                                       only the annotations of load balancers change"),
    row(BaseDomain, "dns_base_domain", Changes, NoOp, "with `rfc2136` and `route53`, records are made in this zone; those in the zone \
                                                       before stay there, and are removed by hand"),
    row(BaseDomain, "cloud_account", Changes, NoOp, "with `rfc2136` and `route53`, records are changed with its keys; those \
                                                     of the account before stay there, and are removed by hand"),

    row(IdentityProvider, "organization", Changes, Refused, ANOTHER),
    row(IdentityProvider, "identifier", Changes, Refused, ANOTHER),
    row(IdentityProvider, "issuer", Changes, ClientsReconnect, OTHER_ISSUER),
    told(row(IdentityProvider, "jwks_uri", Changes, RollingRestart, "brokers of the clusters that use it restart one by \
                                                                     one and fetch the keys there; clients reconnect and \
                                                                     continue if their tokens are signed with these keys")),
    row(IdentityProvider, "token_endpoint", Changes, NoOp, "shown to clients; brokers don't use it"),
    row(IdentityProvider, "audience", Changes, ClientsReconnect, OAUTH),
    row(IdentityProvider, "username_claim", Changes, ClientsReconnect, OTHER_NAMES),
    row(IdentityProvider, "groups_claim", Changes, RollingRestart, "brokers of the clusters that use it restart one by \
                                                                    one; clients reconnect and continue, because Kafka's \
                                                                    own authorizer ignores groups; schema registries \
                                                                    grant their rights by the groups there"),
    told(row(IdentityProvider, "ca_cert", Changes, RollingRestart, "brokers of the clusters that use it restart one by one \
                                                                    and trust the provider by it; clients reconnect and \
                                                                    continue if brokers can fetch the provider's keys with \
                                                                    it")),

    row(CloudAccount, "organization", Changes, Refused, ANOTHER),
    row(CloudAccount, "identifier", Changes, Refused, ANOTHER),
    row(CloudAccount, "provider", Changes, RollingRestart, TIERING),
    row(CloudAccount, "region", Changes, RollingRestart, TIERING),
    row(CloudAccount, "endpoint", Changes, RollingRestart, TIERING),
    row(CloudAccount, "credentials", Changes, RollingRestart, "brokers of the clusters that use it restart one by one with \
                                                               the new credentials; with `rfc2136`, nothing restarts"),

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
    row(Organization, "domains", Changes, NoOp, "lists the allowed base domains; an existing one that is no longer listed \
                                                 is kept unchanged"),
    row(Organization, "members", Changes, NoOp, "other people may read, write or approve through the API, according to \
                                                 their roles"),
];
