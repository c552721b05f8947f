//! Checks the references of documents, which are always within their own organization. Another organization's
//! resource is reported exactly as one that doesn't exist.

use crate::catalog::draft::{CatalogDraft, CatalogFinding, EffectiveSpec, ReferenceTarget};
use crate::catalog::{Hold, OpenedSecret, buckets, hosts, topics, versions};
use crate::config::UnitCatalogue;
use crate::names::{Identifier, Kind, ResourceKey, SecretRef};
use crate::problem::Problem;
use crate::spec::aws_keys::AwsKeys;
use crate::spec::{
    BaseDomain, CloudProvider, Cluster, Document, Fleet, Organization, Role, Spec, TenancyMode, ZoneCount,
};

#[derive(Default)]
struct ReferenceCheck {
    findings: Vec<CatalogFinding>,
    waits: Option<Hold>,
}

/// Checks the references of all documents of a kind. The kinds that it refers to must be settled before.
pub(super) fn check(draft: &mut CatalogDraft, kind: Kind) {
    for document in draft.documents_of(kind) {
        let mut outcome = ReferenceCheck::default();
        outcome.organization(draft, document);
        match &document.spec {
            Spec::BaseDomain(domain) => outcome.base_domain(draft, document, domain),
            Spec::Fleet(fleet) => outcome.fleet(draft, document, fleet),
            Spec::Cluster(cluster) => outcome.cluster(draft, document, cluster),
            Spec::Organization(organization) => {
                let warning = last_admin_gone(draft, document, organization);
                draft.problems.extend(warning);
            }
            Spec::Topic(topic) => {
                if let Some(cluster) = outcome.on_cluster(draft, document, &topic.cluster) {
                    outcome.findings.extend(topics::unfit(draft, topic, cluster));
                    outcome.findings.extend(topics::not_on_a_folder(draft, document, cluster));
                }
            }
            Spec::User(user) => {
                if let Some(cluster) = outcome.on_cluster(draft, document, &user.cluster) {
                    outcome.findings.extend(topics::unfit_user(user, cluster));
                    outcome.findings.extend(topics::not_on_a_folder(draft, document, cluster));
                }
            }
            Spec::IdentityProvider(_) | Spec::CloudAccount(_) => {}
        }
        draft.refuse(document, outcome.findings);
        if let Some(hold) = outcome.waits {
            draft.wait(&document.key, hold);
        }
    }
}

impl ReferenceCheck {
    fn wait(&mut self, hold: Hold) {
        self.waits.get_or_insert(hold);
    }

    /// Follows one reference. A target that can't be used yet adds no finding: its problem is reported
    /// already.
    fn follow<'d>(
        &mut self,
        draft: &'d CatalogDraft,
        pointer: &'static str,
        target: &ResourceKey,
    ) -> Option<&'d EffectiveSpec> {
        match draft.target(target) {
            ReferenceTarget::Found(settled) => return Some(settled),
            ReferenceTarget::NotUsable(hold) => self.wait(hold),
            ReferenceTarget::Missing => self.findings.push(dangling(draft, pointer, target)),
        }
        None
    }

    fn organization(&mut self, draft: &CatalogDraft, document: &Document) {
        let organization = &document.key.organization;
        let key = ResourceKey::organization(organization);
        if organization.as_str() == Identifier::ROOT || document.key == key {
            return;
        }
        match draft.target(&key) {
            ReferenceTarget::Found(_) => {}
            ReferenceTarget::NotUsable(hold) => self.wait(hold),
            // The resource is described in a file that may not contain it, which is reported there.
            ReferenceTarget::Missing
                if draft.misplaced_documents.iter().any(|(displaced, _)| *displaced == key) =>
            {
                self.wait(Hold::Dependency { on: key });
            }
            ReferenceTarget::Missing => self.findings.push(unknown_organization(draft, organization)),
        }
    }

    fn base_domain(&mut self, draft: &CatalogDraft, document: &Document, domain: &BaseDomain) {
        if let Some(account) = &domain.cloud_account {
            let target = ResourceKey::new(Kind::CloudAccount, &document.key.organization, account.as_str());
            let found = self.follow(draft, "/cloud_account", &target).map(|settled| &settled.spec);
            let Some(Spec::CloudAccount(account)) = found else { return };
            let Some(needed) = domain.dns_provider.account() else { return };
            let name = &account.identifier;
            let (problem, label) = if account.provider != needed {
                let (what, wanted) = match needed {
                    CloudProvider::Aws => ("isn't of AWS", "aws"),
                    _ => ("is of no DNS server", "rfc2136"),
                };
                let problem = Problem::error("other-account", format!("cloud account `{name}` {what}"))
                    .hint(format!("name a cloud account with `provider: {wanted}`"));
                (problem, "is of another provider")
            } else if needed == CloudProvider::Aws
                && let Some(OpenedSecret::Value { value, .. }) =
                    draft.secrets.opened.get(&credentials(&target))
                && let Err(why) = AwsKeys::parse(value)
            {
                let message =
                    format!("the credentials of cloud account `{name}` can't be used for Route 53: {why}");
                let hint = "write a section `[default]` with `aws_access_key_id` and `aws_secret_access_key`, each on a line \
                            of its own, without quotes and comments";
                (Problem::error("bad-key", message).hint(hint), "has no access keys")
            } else {
                return;
            };
            self.findings.push(CatalogFinding::new("/cloud_account", label, problem));
        }
    }

    fn fleet(&mut self, draft: &CatalogDraft, document: &Document, fleet: &Fleet) {
        let organization = &document.key.organization;
        if let Some(domain) = &fleet.domain {
            let target = draft
                .find_domain(organization, domain)
                .unwrap_or_else(|| ResourceKey::new(Kind::BaseDomain, organization, domain.as_str()));
            self.follow(draft, "/domain", &target);
        }
        if fleet.tenancy_mode == TenancyMode::Dedicated && fleet.max_tenants != 1 {
            let problem = Problem::error("dedicated-tenants", "a Dedicated fleet hosts exactly one cluster")
                .hint("set `max_tenants: 1`, or use Shared or Isolated");
            self.findings.push(CatalogFinding::new("/max_tenants", "must be 1", problem));
        }
        if fleet.suspend {
            self.wait(Hold::Suspended { by: document.key.clone() });
        }
    }

    /// Follows a topic's or user's reference to its cluster.
    fn on_cluster<'d>(
        &mut self,
        draft: &'d CatalogDraft,
        document: &Document,
        cluster: &Identifier,
    ) -> Option<&'d Cluster> {
        let key = ResourceKey::new(Kind::Cluster, &document.key.organization, cluster.as_str());
        let settled = self.follow(draft, "/cluster", &key)?;
        if let Some(hold) = draft.suspension(&key) {
            self.wait(hold);
        }
        match &settled.spec {
            Spec::Cluster(cluster) => Some(cluster),
            _ => None,
        }
    }

    /// A fleet kept as it was applied may name a domain that is gone. External clusters wait for that domain.
    fn domain_of_fleet(&mut self, draft: &CatalogDraft, cluster: &Cluster, fleet: &Fleet) {
        if let Some(domain) = &fleet.domain
            && cluster.advanced_config.cluster_access.is_external()
            && hosts::domain_of(draft, cluster).is_none()
        {
            self.wait(Hold::Dependency {
                on: ResourceKey::new(Kind::BaseDomain, &cluster.organization, domain.as_str()),
            });
        }
    }

    fn cluster(&mut self, draft: &CatalogDraft, document: &Document, cluster: &Cluster) {
        let organization = &document.key.organization;
        let named = |kind, name: &Identifier| ResourceKey::new(kind, organization, name.as_str());
        let config = &cluster.advanced_config;
        if cluster.suspend {
            self.wait(Hold::Suspended { by: document.key.clone() });
        }
        let fleet_key = named(Kind::Fleet, &cluster.infrastructure);
        if let Some(settled) = self.follow(draft, "/infrastructure", &fleet_key) {
            if let Some(hold) = draft.suspension(&fleet_key) {
                self.wait(hold);
            }
            if let Spec::Fleet(fleet) = &settled.spec {
                let document = draft.claims.get(&fleet_key).and_then(|claim| claim.document);
                self.findings.extend(disagreements(cluster, fleet, document));
                self.domain_of_fleet(draft, cluster, fleet);
            }
        }
        if let Some(provider) = &config.oauth {
            self.follow(draft, "/advanced_config/oauth", &named(Kind::IdentityProvider, provider));
        }
        let account = config.tiered_storage_provider.as_ref().and_then(|provider| {
            let pointer = "/advanced_config/tiered_storage_provider/cloud_account";
            self.follow(draft, pointer, &named(Kind::CloudAccount, &provider.cloud_account))
        });
        let account = account.and_then(|settled| match &settled.spec {
            Spec::CloudAccount(account) => Some(account),
            _ => None,
        });
        self.findings.extend(buckets::check(cluster, account));
        let before = match draft.last_good(&document.key) {
            Some(Spec::Cluster(before)) => Some(&**before),
            _ => None,
        };
        self.findings.extend(unfit(cluster, before, &draft.config.units));
    }
}

/// Returns what is wrong with a cluster wherever it is. `before` is its spec as it was last applied.
pub(super) fn unfit(
    cluster: &Cluster,
    before: Option<&Cluster>,
    units: &UnitCatalogue,
) -> impl Iterator<Item = CatalogFinding> {
    let version = unknown_version(&cluster.advanced_config.version);
    let layout = unfit_layout(cluster, before, units);
    version.into_iter().chain(layout).chain(too_many_in_sync(cluster, units))
}

/// The number of broker ids that node pools reserve: 0 to 999.
const MAX_BROKERS: u32 = 1000;

/// Refuses a broker layout that can't work. Kafka spreads copies evenly over zones, so with zones of unequal
/// size the brokers of smaller zones would get more copies. With fewer zones than copies, Cruise Control
/// moves nothing: one of its hard goals wants each copy in its own zone. An existing cluster with too few
/// zones for its copies is accepted if its zones and units don't change.
fn unfit_layout(
    cluster: &Cluster,
    before: Option<&Cluster>,
    units: &UnitCatalogue,
) -> Option<CatalogFinding> {
    let config = &cluster.advanced_config;
    let sizes = units.sizes(config.profile);
    let brokers = sizes.brokers(cluster.units());
    let copies = sizes.copies(cluster.units());
    let zones = config.number_of_zones.get();
    if brokers > MAX_BROKERS {
        let message =
            format!("a cluster can't have {brokers} brokers, because broker ids end at {}", MAX_BROKERS - 1);
        let problem = Problem::error("too-many-brokers", message)
            .hint("use fewer `kafka_units`, or larger brokers in the `units` of the settings");
        return Some(CatalogFinding::new("/kafka_units", format!("{brokers} brokers"), problem));
    }
    let is_even = |zones: u32| brokers.is_multiple_of(zones);
    let holds_copies = |zones: u32| zones == 1 || zones >= copies;
    let layout = |cluster: &Cluster| (cluster.advanced_config.number_of_zones.get(), cluster.units());
    let is_so_already = before.is_some_and(|before| layout(before) == layout(cluster));
    if is_even(zones) && (holds_copies(zones) || is_so_already) {
        return None;
    }
    let message = if zones > brokers {
        format!("{brokers} brokers can't be in {zones} zones")
    } else if !is_even(zones) {
        format!("{brokers} brokers can't be spread evenly over {zones} zones")
    } else {
        format!(
            "{copies} copies of a partition don't fit in {zones} zones, one copy per zone, so Cruise Control would \
                move nothing: added brokers would stay empty, and brokers couldn't be removed"
        )
    };
    let fit = (1..=ZoneCount::MAX).filter(|zones| is_even(*zones) && holds_copies(*zones));
    let fit: Vec<String> = fit.map(|zones| zones.to_string()).collect();
    let problem = Problem::error("unfit-zones", message)
        .hint(format!("use other `kafka_units`, or set `number_of_zones` to one of {}", fit.join(", ")));
    Some(CatalogFinding::new("/advanced_config/number_of_zones", format!("{zones} zones"), problem))
}

fn last_admin_gone(
    draft: &CatalogDraft,
    document: &Document,
    organization: &Organization,
) -> Option<Problem> {
    let has_admin = |it: &Organization| it.members.iter().any(|member| member.role == Role::Admin);
    let Spec::Organization(before) = draft.last_good(&document.key)? else { return None };
    let is_gone = has_admin(before) && !has_admin(organization);
    is_gone.then(|| {
        let message = format!(
            "organization `{}` has no admin: only super users can change its members and approve its changes",
            document.key.name
        );
        Problem::warning("no-admin", message)
            .at(document.locate("/members"), "no admin among them")
            .hint("set `role: admin` on a member, or ignore this if it is intended")
    })
}

/// Returns what keeps a cluster from being on a fleet. `document` is the fleet's, for the positions in it.
pub(super) fn disagreements(
    cluster: &Cluster,
    fleet: &Fleet,
    document: Option<&Document>,
) -> Vec<CatalogFinding> {
    let name = &fleet.identifier;
    let elsewhere = |problem: Problem, pointer: &str, label: String| match document {
        Some(document) => problem.related(document.locate(pointer), label),
        None => problem,
    };
    let mut findings = Vec::new();
    if cluster.tenancy_mode != fleet.tenancy_mode {
        let (ours, theirs) = (word(&cluster.tenancy_mode), word(&fleet.tenancy_mode));
        let problem = Problem::error(
            "tenancy-mismatch",
            format!("the cluster's tenancy_mode is {ours} and that of fleet `{name}` is {theirs}"),
        )
        .hint(format!("set `tenancy_mode: {theirs}`, or choose a fleet that is {ours}"));
        let problem = elsewhere(problem, "/tenancy_mode", format!("{theirs} here"));
        findings.push(CatalogFinding::new("/tenancy_mode", format!("must be {theirs}"), problem));
    }
    if let Some(provider) = cluster.cloud_provider.filter(|provider| *provider != fleet.infra_type) {
        let (ours, theirs) = (provider.word(), fleet.infra_type.word());
        let problem = Problem::error(
            "provider-mismatch",
            format!(
                "the cluster's cloud_provider is `{ours}` and the infra_type of fleet `{name}` is `{theirs}`"
            ),
        )
        .hint(format!("set `cloud_provider: {theirs}`, or remove it"));
        let problem = elsewhere(problem, "/infra_type", format!("`{theirs}` here"));
        findings.push(CatalogFinding::new("/cloud_provider", format!("must be `{theirs}`"), problem));
    }
    findings.extend(gateway_mismatch(cluster, fleet).map(|(ours, problem)| {
        let problem = elsewhere(problem, "/advanced_config/gateway", format!("{} here", !ours));
        CatalogFinding::new("/advanced_config/private_access", format!("must be {}", !ours), problem)
    }));
    if cluster.advanced_config.auto_upgrade && !fleet.infra_type.capabilities().observes {
        let word = fleet.infra_type.word();
        let problem = Problem::error(
            "not-supported",
            format!("`auto_upgrade: true` is not supported on fleet `{name}`, whose infra_type is `{word}`"),
        )
        .hint("streamfleet can't see which versions its operator runs: remove `auto_upgrade`, and raise `version` to \
               upgrade");
        findings.push(CatalogFinding::new(
            "/advanced_config/auto_upgrade",
            format!("not supported on a {word} fleet"),
            problem,
        ));
    }
    if cluster.advanced_config.cluster_access.is_external() && fleet.domain.is_none() {
        let problem = Problem::error(
            "no-domain",
            format!("external access needs a base domain, and fleet `{name}` has none"),
        )
        .hint("set `domain` in the fleet, or `cluster_access: Internal` here");
        findings.push(CatalogFinding::new(
            "/advanced_config/cluster_access",
            "reachable from outside",
            problem,
        ));
    }
    findings
}

/// Returns a mismatch between a cluster's `private_access` and its fleet's Gateway: the cluster's value, and
/// the problem. One Gateway can't be both, and one cluster's document must not make it public.
fn gateway_mismatch(cluster: &Cluster, fleet: &Fleet) -> Option<(bool, Problem)> {
    let config = &cluster.advanced_config;
    let gateway = fleet.advanced_config.gateway.as_ref()?;
    let ours = config.private_access;
    if !config.cluster_access.is_external() || ours == gateway.private {
        return None;
    }
    let (is, word) = if ours { ("private", "public") } else { ("public", "private") };
    let problem = Problem::error(
        "gateway-mismatch",
        format!("the cluster's external listener is {is}, and the Gateway of fleet `{}` is {word}", fleet.identifier),
    )
    .hint(format!(
        "set `private_access: {}`, or `private: {ours}` in the fleet's `advanced_config.gateway`, for all of its \
            clusters",
        gateway.private
    ));
    Some((ours, problem))
}

fn word(value: &impl serde::Serialize) -> String {
    match serde_json::to_value(value) {
        Ok(serde_json::Value::String(word)) => word,
        other => other.map(|value| value.to_string()).unwrap_or_default(),
    }
}

fn unknown_version(version: &str) -> Option<CatalogFinding> {
    if versions::find(version).is_some() {
        return None;
    }
    let supported: Vec<_> = versions::SUPPORTED.iter().map(|supported| supported.version).collect();
    let problem = Problem::error("unknown-version", format!("Kafka {version} is not supported"))
        .hint(format!("use one of {}", supported.join(", ")));
    Some(CatalogFinding::new("/advanced_config/version", "not a supported version", problem))
}

/// If every copy had to be in sync, each restart of a broker would stop all writes, and Strimzi restarts
/// none.
fn too_many_in_sync(cluster: &Cluster, units: &UnitCatalogue) -> Option<CatalogFinding> {
    let config = &cluster.advanced_config;
    let wanted = config.config.number("min.insync.replicas")?;
    let copies = units.sizes(config.profile).copies(cluster.units());
    let most = copies.saturating_sub(1).max(1);
    if wanted <= i64::from(most) {
        return None;
    }
    let kept = if copies == 1 { "1 copy".to_owned() } else { format!("{copies} copies") };
    let message = format!("`min.insync.replicas` is {wanted}, and the cluster keeps {kept} of each record");
    let problem = Problem::error("too-many-in-sync", message).hint(format!(
        "use at most {most}: if every copy is needed, no broker can restart without blocking all writes"
    ));
    Some(CatalogFinding::new(
        "/advanced_config/config/min.insync.replicas",
        format!("at most {most}"),
        problem,
    ))
}

fn unknown_organization(draft: &CatalogDraft, organization: &Identifier) -> CatalogFinding {
    let hint = match draft.unreadable_for(organization) {
        Some(unreadable) => format!("fix {unreadable}, which can't be read and may contain it"),
        None => "describe it in an Organization document in an administrator's file, or correct the name"
            .to_owned(),
    };
    let problem =
        Problem::error("unknown-organization", format!("there is no organization `{organization}`"))
            .hint(hint);
    CatalogFinding::new("/organization", "no such organization", problem)
}

fn dangling(draft: &CatalogDraft, pointer: &'static str, target: &ResourceKey) -> CatalogFinding {
    let (noun, name, organization) = (target.kind.noun(), &target.name, &target.organization);
    let names = names(draft, organization, target.kind);
    let mut hint = match (closest(name, &names), names.is_empty()) {
        (Some(close), _) => format!("did you mean `{close}`?"),
        (None, true) => format!("organization `{organization}` has no {noun} yet; describe `{name}` first"),
        (None, false) => format!("known: {}; or describe `{name}` first", listed(&names)),
    };
    if let Some(unreadable) = draft.unreadable_for(organization) {
        let joint = if hint.ends_with('?') { "" } else { ";" };
        hint.push_str(&format!("{joint} {unreadable} can't be read and may contain it"));
    }
    let problem =
        Problem::error("dangling-reference", format!("organization `{organization}` has no {noun} `{name}`"))
            .hint(hint);
    CatalogFinding::new(pointer, format!("no such {noun}"), problem)
}

fn names(draft: &CatalogDraft, organization: &Identifier, kind: Kind) -> Vec<String> {
    let mut names: Vec<String> = draft
        .named(organization, kind)
        .flat_map(|(key, spec)| {
            let submitted = match spec {
                Some(Spec::BaseDomain(domain)) => Some(domain.domain.to_string()),
                _ => None,
            };
            [Some(key.name.to_string()), submitted]
        })
        .flatten()
        .collect();
    names.sort_unstable();
    names.dedup();
    names
}

fn closest<'n>(name: &str, names: &'n [String]) -> Option<&'n String> {
    let allowed = (name.len() / 3).clamp(1, 3);
    names
        .iter()
        .map(|candidate| (strsim::damerau_levenshtein(name, candidate), candidate))
        .filter(|(distance, _)| *distance <= allowed)
        .min()
        .map(|(_, candidate)| candidate)
}

fn listed(names: &[String]) -> String {
    const SHOWN: usize = 5;
    let mut shown: Vec<_> = names.iter().take(SHOWN).map(|name| format!("`{name}`")).collect();
    if names.len() > SHOWN {
        shown.push(format!("{} more", names.len() - SHOWN));
    }
    shown.join(", ")
}

fn credentials(account: &ResourceKey) -> SecretRef {
    SecretRef { resource: account.clone(), field: "credentials".to_owned() }
}
