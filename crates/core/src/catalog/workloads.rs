//! Checks of clusters with a schema registry or a console, against the settings and the identity provider.

use crate::catalog::draft::{CatalogDraft, CatalogFinding};
use crate::catalog::images::without_image;
use crate::names::{Kind, ResourceKey};
use crate::problem::Problem;
use crate::spec::{Cluster, Spec};

const SCHEMA_REGISTRY: &str = "/advanced_config/schema_registry/enabled";
const CONSOLE: &str = "/advanced_config/operations/console";

pub(super) fn check(draft: &mut CatalogDraft) {
    for document in draft.documents_of(Kind::Cluster) {
        let Spec::Cluster(cluster) = &document.spec else { continue };
        let images = &draft.config.images;
        let mut found = Vec::new();
        if cluster.advanced_config.schema_registry.enabled {
            let remedy = "`images.schema_registry`, or turn `schema_registry` off";
            let without =
                without_image(&images.schema_registry, "registry-without-image", "a schema registry", remedy);
            let problems = without.into_iter().chain(unreadable_groups(draft, cluster));
            found.extend(problems.map(|problem| CatalogFinding::new(SCHEMA_REGISTRY, "", problem)));
        }
        if cluster.advanced_config.operations.console {
            let remedy = "`images.console`, or turn `console` off";
            let without = without_image(&images.console, "console-without-image", "a console", remedy);
            found.extend(without.map(|problem| CatalogFinding::new(CONSOLE, "", problem)));
        }
        draft.refuse(document, found);
    }
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
