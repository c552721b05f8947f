//! Topics and users: their cluster, names that can't be beside each other, and the partitions that a cluster has
//! room for.

use std::collections::BTreeMap;

use crate::catalog::draft::{CatalogDraft, CatalogFinding, SpecOrigin};
use crate::catalog::renderable;
use crate::catalog::{Hold, ResolvedCluster, ResolvedTopic, ResolvedUser};
use crate::names::{FleetKey, Kind, ResourceKey, topic_object};
use crate::problem::Problem;
use crate::spec::{Authentication, Cluster, Document, Spec, Topic, TopicOnDelete, User};

const KINDS: [Kind; 2] = [Kind::Topic, Kind::User];

/// Returns what is wrong with a topic on its cluster.
pub(super) fn unfit(draft: &CatalogDraft, topic: &Topic, cluster: &Cluster) -> Vec<CatalogFinding> {
    let sizes = draft.config.units.sizes(cluster.advanced_config.profile);
    let brokers = sizes.brokers(cluster.units());
    let copies = topic.replicas.unwrap_or_else(|| sizes.copies(cluster.units()));
    let mut findings = Vec::new();
    if copies > brokers {
        let message =
            format!("`replicas` is {copies}, and cluster `{}` has {brokers} brokers", topic.cluster);
        let problem = Problem::error("too-many-replicas", message)
            .hint(format!("use at most {brokers}, or give the cluster more `kafka_units`"));
        findings.push(CatalogFinding::new("/replicas", format!("at most {brokers}"), problem));
    }
    let most = copies.saturating_sub(1).max(1);
    if let Some(wanted) =
        topic.config.number("min.insync.replicas").filter(|wanted| *wanted > i64::from(most))
    {
        let kept = if copies == 1 { "1 copy".to_owned() } else { format!("{copies} copies") };
        let message = format!("`min.insync.replicas` is {wanted}, and the topic has {kept} of each record");
        let problem = Problem::error("too-many-in-sync", message).hint(format!(
            "use at most {most}: if every copy is needed, no broker can restart without blocking all writes"
        ));
        findings.push(CatalogFinding::new("/config/min.insync.replicas", format!("at most {most}"), problem));
    }
    let tiered = topic.config.get("remote.storage.enable").is_some_and(|value| *value == true);
    if tiered && cluster.advanced_config.tiered_storage_bucket_name.is_none() {
        let message = format!("cluster `{}` has no tiered storage", topic.cluster);
        let problem = Problem::error("no-tiered-storage", message).hint(
            "remove `remote.storage.enable`, or set `advanced_config.tiered_storage_bucket_name` in the cluster",
        );
        findings.push(CatalogFinding::new("/config/remote.storage.enable", "has no bucket", problem));
    }
    findings
}

/// Returns what is wrong with a user on its cluster.
pub(super) fn unfit_user(user: &User, cluster: &Cluster) -> Option<CatalogFinding> {
    user.password.as_ref()?;
    let with = match (&cluster.advanced_config.oauth, cluster.advanced_config.authentication) {
        (Some(_), _) => "tokens of an identity provider",
        (None, Authentication::Mtls) => "client certificates",
        (None, Authentication::ScramSha512) => return None,
    };
    let message = format!("`password` has no effect: users of cluster `{}` log in with {with}", user.cluster);
    let problem = Problem::error("no-effect", message).hint("remove `password`");
    Some(CatalogFinding::new("/password", "no effect", problem))
}

/// Returns the fields of a topic or user that need a target which tells what is there.
pub(super) fn not_on_a_folder(
    draft: &CatalogDraft,
    document: &Document,
    cluster: &Cluster,
) -> Vec<CatalogFinding> {
    let organization = document.key.organization.clone();
    let fleet = FleetKey { organization, fleet: cluster.infrastructure.clone() };
    let known = draft.fleet(&fleet.resource());
    if known.is_none_or(|fleet| fleet.infra_type.capabilities().observes) {
        return Vec::new();
    }
    let refuse = |pointer: &'static str, field: &str, hint: &'static str| {
        let message = format!("`{field}` is not supported on fleet `{}`, which is a folder", fleet.fleet);
        let problem = Problem::error("not-supported", message).hint(hint);
        CatalogFinding::new(pointer, "not supported on a folder", problem)
    };
    let retains = matches!(&document.spec, Spec::Topic(topic) if topic.on_delete == TopicOnDelete::Retain);
    let retains = retains.then(|| {
        let hint = "streamfleet can't see when the topic operator has let the topic go: remove `on_delete`, and keep \
                    `deletion_protection`";
        refuse("/on_delete", "on_delete: Retain", hint)
    });
    let adopts = document.spec.adopts().then(|| {
        refuse(
            "/adopt",
            "adopt: true",
            "remove `adopt`; if a file is in its place, move the file out of the folder",
        )
    });
    retains.into_iter().chain(adopts).collect()
}

/// Refuses topics that Kafka or Kubernetes can't tell apart from others of their cluster. An applied topic comes
/// before a new one, and then the first by name.
pub(super) fn check_names(draft: &mut CatalogDraft) {
    let mut in_kafka: BTreeMap<String, Vec<&Document>> = BTreeMap::new();
    for document in draft.documents_of(Kind::Topic) {
        let Some((cluster, name)) = document.key.within_cluster() else { continue };
        in_kafka.entry(format!("{}/{}", cluster.path(), name.replace('.', "_"))).or_default().push(document);
        let object = topic_object(name);
        in_kafka.entry(format!("{} {object}", cluster.path())).or_default().push(document);
    }
    let mut refused = Vec::new();
    for alike in in_kafka.values_mut().filter(|alike| alike.len() > 1) {
        alike.sort_by_key(|document| (draft.record(&document.key).is_none(), &document.key));
        let Some((first, others)) = alike.split_first() else { continue };
        for other in others {
            let message = format!("{} can't be beside {}", other.key, first.key);
            let problem = Problem::error("topics-collide", message)
                .related(first.locate("/name"), "this one")
                .hint("Kafka doesn't tell `.` and `_` apart in names of topics: choose another name");
            refused.push((*other, CatalogFinding::new("/name", "too similar", problem)));
        }
    }
    for (document, finding) in refused {
        draft.refuse(document, [finding]);
    }
}

/// Holds new and growing topics beyond the partitions that their cluster's units are made for.
pub(super) fn place(draft: &mut CatalogDraft) {
    let mut used: BTreeMap<ResourceKey, u32> = BTreeMap::new();
    for (key, record) in draft.recorded.resources.iter().filter(|(key, _)| key.kind == Kind::Topic) {
        let Some((cluster, _)) = key.within_cluster() else { continue };
        if let Some(Spec::Topic(topic)) = record.applied_spec(Kind::Topic) {
            let used = used.entry(cluster).or_default();
            *used = used.saturating_add(partitions(topic, None));
        }
    }
    let growing = draft.settled_of(Kind::Topic).filter(|(_, settled)| settled.basis == SpecOrigin::Document);
    let mut growing: Vec<(ResourceKey, ResourceKey, u32)> = growing
        .filter_map(|(key, settled)| {
            let (Spec::Topic(topic), Some((cluster, _))) = (&settled.spec, key.within_cluster()) else {
                return None;
            };
            let before = match draft.last_good(key) {
                Some(Spec::Topic(before)) => partitions(before, None),
                _ => 0,
            };
            let wanted = partitions(topic, cluster_spec(draft, &cluster)).saturating_sub(before);
            (wanted > 0).then(|| (key.clone(), cluster, wanted))
        })
        .collect();
    growing.sort_by_cached_key(|(key, ..)| (draft.seniority(key), key.clone()));
    for (key, cluster, wanted) in growing {
        let Some(spec) = cluster_spec(draft, &cluster) else { continue };
        let sizes = draft.config.units.sizes(spec.advanced_config.profile);
        let limit = sizes.partitions.saturating_mul(spec.units());
        let used = used.entry(cluster.clone()).or_default();
        if used.saturating_add(wanted) > limit {
            let (used, what) = (*used, "partitions".to_owned());
            draft.wait(&key, Hold::OverCapacity { limited_by: cluster, what, used, wanted, limit });
        } else {
            *used += wanted;
        }
    }
}

/// The partitions that a topic has. One that doesn't say has the cluster's default, or Kafka's.
fn partitions(topic: &Topic, cluster: Option<&Cluster>) -> u32 {
    let of_cluster = || cluster?.advanced_config.config.number("num.partitions")?.try_into().ok();
    topic.partitions.or_else(of_cluster).unwrap_or(1)
}

fn cluster_spec<'d>(draft: &'d CatalogDraft, cluster: &ResourceKey) -> Option<&'d Cluster> {
    match &draft.usable(cluster)?.spec {
        Spec::Cluster(spec) => Some(spec),
        _ => None,
    }
}

/// Holds the topics and users of clusters that aren't rendered, and of suspended ones. Otherwise their objects
/// would seem to be left over.
pub(super) fn hold_without_cluster(
    draft: &mut CatalogDraft,
    clusters: &BTreeMap<ResourceKey, ResolvedCluster>,
) {
    let mut held = Vec::new();
    for kind in KINDS {
        for (key, settled) in draft.settled_of(kind).filter(|(_, settled)| settled.hold.is_none()) {
            let Some((cluster, _)) = key.within_cluster() else { continue };
            match draft.suspension(&cluster) {
                Some(hold) => held.push((key.clone(), hold)),
                _ if clusters.contains_key(&cluster) && settled.is_usable() => {}
                _ => held.push((key.clone(), Hold::Dependency { on: cluster })),
            }
        }
    }
    for (key, hold) in held {
        draft.wait(&key, hold);
    }
}

/// Adds topics and users to the clusters that are rendered.
pub(super) fn join(draft: &CatalogDraft, clusters: &mut BTreeMap<ResourceKey, ResolvedCluster>) {
    for kind in KINDS {
        for (key, settled) in draft.settled_of(kind).filter(|(_, settled)| settled.is_usable()) {
            let cluster = key.within_cluster().and_then(|(cluster, _)| clusters.get_mut(&cluster));
            let (Some(cluster), key, id) = (cluster, key.clone(), draft.recorded.id_of(key)) else {
                continue;
            };
            match &settled.spec {
                Spec::Topic(spec) => cluster.topics.push(ResolvedTopic { key, id, spec: spec.clone() }),
                Spec::User(spec) => {
                    let password = renderable::secret(draft, &key, settled, "password");
                    cluster.users.push(ResolvedUser { key, id, spec: spec.clone(), password });
                }
                _ => {}
            }
        }
    }
    // The operator stays until the last topic is gone, since it is what deletes them.
    for key in draft.recorded.resources.keys().filter(|key| key.kind == Kind::Topic) {
        let cluster = key.within_cluster().and_then(|(cluster, _)| clusters.get_mut(&cluster));
        if let Some(cluster) = cluster {
            cluster.has_topics = true;
        }
    }
    clusters.values_mut().filter(|it| !it.topics.is_empty()).for_each(|it| it.has_topics = true);
}

/// Returns the fleet of a topic or user: that of its cluster, by the specs or by the record.
pub(super) fn fleet(draft: &CatalogDraft, key: &ResourceKey) -> Option<FleetKey> {
    let (cluster, _) = key.within_cluster()?;
    let recorded = || draft.record(key)?.fleet(key);
    match draft.settled.get(&cluster).map(|settled| &settled.spec) {
        Some(Spec::Cluster(spec)) => {
            let fleet = spec.infrastructure.clone();
            Some(FleetKey { organization: key.organization.clone(), fleet })
        }
        _ => recorded(),
    }
}
