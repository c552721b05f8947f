//! Checks of clusters with a schema registry, against the settings and the identity provider.

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::names::{Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::{Cluster, Spec};

const SCHEMA_REGISTRY: &str = "/advanced_config/schema_registry/enabled";

pub(super) fn check(draft: &mut CatalogDraft) {
    for document in draft.documents_of(Kind::Cluster) {
        let Spec::Cluster(cluster) = &document.spec else { continue };
        if !cluster.advanced_config.schema_registry.enabled {
            continue;
        }
        let problems = [without_image(draft), unreadable_groups(draft, cluster)];
        let finding = |problem| CatalogFinding::new(SCHEMA_REGISTRY, "", problem);
        draft.refuse(document, problems.into_iter().flatten().map(finding));
    }
}

fn without_image(draft: &CatalogDraft) -> Option<Problem> {
    let message = "the settings of the installation name no image of a schema registry";
    draft.config.images.schema_registry.is_none().then(|| {
        Problem::error("registry-without-image", message)
            .hint("have the administrators of the installation set `images.schema_registry`, or turn `schema_registry` off")
    })
}

/// The registry finds the groups of a token by a path of names, and brokers by any JSON path.
fn unreadable_groups(draft: &CatalogDraft, cluster: &Cluster) -> Option<Problem> {
    let name = cluster.advanced_config.oauth.as_ref()?;
    let key = ResourceKey::new(Kind::IdentityProvider, &cluster.organization, name.as_str());
    let Spec::IdentityProvider(provider) = &draft.usable(&key)?.spec else { return None };
    provider.groups_path().is_none().then(|| {
        let message = format!(
            "a schema registry can't read the groups of tokens of `{name}`, whose `groups_claim` is more than a path of names"
        );
        Problem::error("registry-groups", message)
            .hint("use a path such as `$.groups` or `$.realm_access.roles` in the identity provider")
    })
}
