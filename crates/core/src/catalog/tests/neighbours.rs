use super::*;
use crate::names::Kind;

fn kept(world: &World, organization: &str) -> (Vec<String>, Vec<String>) {
    let documents = world.documents();
    let around =
        RelatedOrganizations::of(&organization.parse().unwrap(), &documents, &world.recorded).unwrap();
    let part = around.documents(&documents);
    let recorded = RelatedOrganizations::recorded(&documents, &part, &world.recorded);
    let files = part.files.into_keys().map(|path| path.to_string()).collect();
    let clusters = recorded.resources.keys().filter(|key| key.kind == Kind::Cluster);
    (files, clusters.map(ResourceKey::path).collect())
}

#[test]
fn the_clusters_of_others_matter_only_where_addresses_may_be_the_same() {
    let mut world = World::new();
    world.put("globex/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us"));
    world.put("shared.yaml", &cluster("globex", "bills", 1, "").replace("eu", "us"));
    world.put(
        "globex/mixed.yaml",
        &(cluster("globex", "a", 1, "") + "---\nkind: IdentityProvider\norganization: globex\nidentifier: sso\nissuer: https://a.example.com\njwks_uri: https://a.example.com\naudience: kafka\n").replace("eu", "us"),
    );
    world.apply();
    let (files, clusters) = kept(&world, "acme");
    let is_kept = |path: &str| files.iter().any(|file| file == path);
    assert!(!is_kept("globex/stock.yaml"), "{files:?}");
    assert!(is_kept("shared.yaml") && is_kept("globex/mixed.yaml"), "{files:?}");
    assert!(files.len() == world.files.len() - 1, "{files:?}");
    let is_kept = |path: &str| clusters.iter().any(|cluster| cluster == path);
    assert!(!is_kept("globex/stock") && is_kept("globex/bills"), "{clusters:?}");
    let (files, _) = kept(&world, "globex");
    assert!(files.iter().any(|file| file == "globex/stock.yaml"));
    // An administrator may grant one domain to both organizations.
    let both = ["acme", "globex"].map(|owner| base(owner, "shared", "both.example.com")).join("---\n");
    world.put("domains.yaml", &both);
    assert!(kept(&world, "acme").0.iter().any(|file| file == "globex/stock.yaml"));
    // The reason for a missing resource depends on the whole tree.
    world.files.remove("globex/stock.yaml");
    assert_eq!(RelatedOrganizations::of(&"acme".parse().unwrap(), &world.documents(), &world.recorded), None);
}
