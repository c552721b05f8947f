//! A tree that is resolved after another is the same as one that is resolved alone.

use proptest::prelude::*;

use super::properties::pieces;
use super::*;

#[derive(Debug, Clone)]
enum Edit {
    /// One cluster more or less, or another size, in its organization's folder.
    Cluster {
        organization: &'static str,
        name: &'static str,
        units: u32,
        more: &'static str,
    },
    Remove {
        organization: &'static str,
        name: &'static str,
    },
    /// Any documents in any file.
    Put {
        path: &'static str,
        parts: Vec<String>,
    },
    Drop {
        path: &'static str,
    },
    Domains {
        shared: bool,
    },
    /// A fleet, or what clusters refer to, in a file of its own.
    Provider {
        organization: &'static str,
        claim: &'static str,
    },
    Account {
        organization: &'static str,
        provider: &'static str,
        credentials: &'static str,
    },
    Fleet {
        organization: &'static str,
        units: u32,
        domain: &'static str,
    },
    /// A base domain whose records are kept by the account above.
    Records {
        organization: &'static str,
        domain: &'static str,
    },
    User {
        organization: &'static str,
        password: &'static str,
    },
    Topic {
        organization: &'static str,
        name: &'static str,
        replicas: u32,
    },
    Apply,
    LoseCache,
    Removed {
        organization: &'static str,
        name: &'static str,
    },
    Time(&'static str),
    Settings(u32),
}

/// `root` has no document.
const ORGANIZATIONS: [&str; 3] = ["acme", "globex", "root"];
const NAMES: [&str; 3] = ["orders", "sales", "stock"];

fn edit() -> impl Strategy<Value = Edit> {
    let organization = || prop::sample::select(ORGANIZATIONS.to_vec());
    let name = || prop::sample::select(NAMES.to_vec());
    let path = || {
        prop::sample::select(vec![
            "a.yaml",
            "acme/a.yaml",
            "globex/a.yaml",
            "acme/orders.yaml",
            "platform/a.yaml",
        ])
    };
    let claim = prop::sample::select(vec!["$.groups", "$.a[0]", ""]);
    let provider = prop::sample::select(vec!["aws", "rfc2136", ""]);
    let more = prop::sample::select(vec![
        "",
        "  cluster_access: External\n",
        "  cluster_access: External\n  oauth: acme-sso\n",
        "  oauth: other-sso\n",
    ]);
    let parts = prop::collection::vec(prop::sample::select(pieces()), 0..3);
    prop_oneof![
        12 => (organization(), name(), 1..6_u32, more)
            .prop_map(|(organization, name, units, more)| Edit::Cluster { organization, name, units, more }),
        2 => (organization(), name()).prop_map(|(organization, name)| Edit::Remove { organization, name }),
        2 => (path(), parts).prop_map(|(path, parts)| Edit::Put { path, parts }),
        2 => path().prop_map(|path| Edit::Drop { path }),
        1 => any::<bool>().prop_map(|shared| Edit::Domains { shared }),
        2 => (organization(), claim).prop_map(|(organization, claim)| Edit::Provider { organization, claim }),
        2 => (organization(), provider, prop::sample::select(vec!["one", "another"])).prop_map(
            |(organization, provider, credentials)| Edit::Account { organization, provider, credentials }
        ),
        2 => (organization(), 1..6_u32, prop::sample::select(vec!["k.acme.com", "a.k.globex.com", "other.com"]))
            .prop_map(|(organization, units, domain)| Edit::Fleet { organization, units, domain }),
        1 => (organization(), prop::sample::select(vec!["a.k.acme.com", "a.k.globex.com", "other.com"]))
            .prop_map(|(organization, domain)| Edit::Records { organization, domain }),
        2 => (organization(), prop::sample::select(vec!["one", "another", ""]))
            .prop_map(|(organization, password)| Edit::User { organization, password }),
        2 => (organization(), prop::sample::select(vec!["a", "b"]), prop::sample::select(vec![3, 50]))
            .prop_map(|(organization, name, replicas)| Edit::Topic { organization, name, replicas }),
        5 => Just(Edit::Apply),
        1 => Just(Edit::LoseCache),
        1 => (organization(), name()).prop_map(|(organization, name)| Edit::Removed { organization, name }),
        1 => prop::sample::select(vec!["2026-06-01T00:00:00Z", "2027-01-01T00:00:00Z", "2031-01-01T00:00:00Z"])
            .prop_map(Edit::Time),
        1 => (1..3_u32).prop_map(Edit::Settings),
    ]
}

impl World {
    /// A file of an organization; without a `value`, there is none.
    fn own(&mut self, organization: &str, name: &str, value: &str, text: &str) {
        let path = format!("{organization}/{name}.yaml");
        match value {
            "" => drop(self.files.remove(&path)),
            _ => drop(self.put(&path, text)),
        }
    }

    fn edited(&mut self, edit: &Edit) {
        match edit {
            Edit::Cluster { organization, name, units, more } => {
                let text = cluster(organization, name, *units, more);
                let fleet = match *organization {
                    "acme" => "eu",
                    "globex" => "us",
                    _ => "main",
                };
                let text = text.replace("infrastructure: eu", &format!("infrastructure: {fleet}"));
                self.put(&format!("{organization}/{name}.yaml"), &text);
            }
            Edit::Remove { organization, name } => {
                drop(self.files.remove(&format!("{organization}/{name}.yaml")))
            }
            Edit::Put { path, parts } => drop(self.put(path, &parts.join("---\n"))),
            Edit::Drop { path } => drop(self.files.remove(*path)),
            Edit::Domains { shared } => {
                let both = ORGANIZATIONS.map(|owner| base(owner, "shared", "both.example.com")).join("---\n");
                let text = if *shared { both } else { String::new() };
                self.put("domains.yaml", &text);
            }
            Edit::Provider { organization, claim } => {
                let text = format!(
                    "kind: IdentityProvider\norganization: {organization}\nidentifier: other-sso\n\
                     issuer: https://id.example.com\njwks_uri: https://id.example.com/keys\naudience: kafka\n\
                     groups_claim: {claim}\n"
                );
                self.own(organization, "provider", claim, &text);
            }
            Edit::Account { organization, provider, credentials } => {
                let text = format!(
                    "kind: CloudAccount\norganization: {organization}\nidentifier: other\nprovider: {provider}\n\
                     credentials: {credentials}\n"
                );
                self.own(organization, "account", provider, &text);
            }
            Edit::Fleet { organization, units, domain } => {
                let parts = base(organization, "more", domain);
                let fleet = parts.split("---\n").nth(1).unwrap();
                let fleet = fleet.replace("max_kafka_units: 10", &format!("max_kafka_units: {units}"));
                self.own(organization, "fleet", domain, &fleet);
            }
            Edit::Records { organization, domain } => {
                let text = format!(
                    "kind: BaseDomain\norganization: {organization}\ndomain: {domain}\ntls_cert: $*.{domain}\n\
                     tls_key: $key\ndns_provider: rfc2136\ncloud_account: other\n"
                );
                self.own(organization, "records", domain, &text);
            }
            Edit::User { organization, password } => {
                let text = format!(
                    "kind: User\norganization: {organization}\ncluster: orders\nidentifier: reader\npassword: {password}\n"
                );
                self.put(&format!("{organization}/users.yaml"), &text);
            }
            Edit::Topic { organization, name, replicas } => {
                let text = format!(
                    "kind: Topic\norganization: {organization}\ncluster: orders\nname: {name}\npartitions: 3\nreplicas: {replicas}\n"
                );
                self.put(&format!("{organization}/topic-{name}.yaml"), &text);
            }
            Edit::Apply => drop(self.apply()),
            Edit::LoseCache => drop(self.lose_cache()),
            Edit::Removed { organization, name } => {
                self.files.remove(&format!("{organization}/{name}.yaml"));
                let key = format!("Cluster/{organization}/{name}").try_into().unwrap();
                self.recorded.removed.insert(key);
            }
            Edit::Time(now) => self.now = (*now).to_owned(),
            Edit::Settings(days) => self.config.policy.cluster_deletions_per_hour = *days,
        }
    }

    fn after(&self, before: Option<&ResolvedTree>) -> ResolvedTree {
        let documents = Arc::new(self.documents());
        let secrets = self.open(&documents);
        let (config, hosts) = (Arc::new(self.config.clone()), host_names());
        let now = self.now.parse().unwrap();
        ResolvedTree::resolve(documents, self.recorded.clone(), secrets, (&config, &hosts), now, before)
    }
}

/// Without the times between which it holds: a tree that takes over parts of another knows less of them.
fn told(catalog: &Catalog) -> String {
    let (steady_from, steady_until) = (Timestamp::MIN, Timestamp::MAX);
    format!("{:?}", Catalog { steady_from, steady_until, ..catalog.clone() })
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 50, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_tree_resolved_after_another_is_the_same_as_one_resolved_alone(edits in prop::collection::vec(edit(), 20)) {
        let mut world = World::new();
        world.put("root/base.yaml", &base("root", "main", "k.root.com"));
        // Both may have the other's domains.
        world.edit("organizations.yaml", "[acme.com]", "[acme.com, globex.com]");
        world.edit("organizations.yaml", "[globex.com]", "[acme.com, globex.com]");
        let mut before = world.after(None);
        for (at, edit) in edits.iter().enumerate() {
            world.edited(edit);
            let tree = world.after(Some(&before));
            let alone = world.after(None);
            prop_assert!(alone.catalog.is_steady(world.now.parse().unwrap()));
            prop_assert_eq!(told(&tree.catalog), told(&alone.catalog), "after edit {} of {:?}", at, edits);
            before = tree;
        }
    }
}

#[test]
fn an_edited_cluster_has_only_its_organization_resolved_again() {
    let mut world = World::new();
    world.put("globex/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us"));
    world.put("root/base.yaml", &base("root", "main", "k.root.com"));
    world.apply();
    let before = world.after(None);
    world.put("acme/orders.yaml", &cluster("acme", "orders", 2, ""));
    let tree = world.after(Some(&before));
    assert!(tree.is_part_of(&before));
    let stock: ResourceKey = "Cluster/globex/stock".to_owned().try_into().unwrap();
    assert!(Arc::ptr_eq(&tree.catalog.resources[&stock], &before.catalog.resources[&stock]));
    assert!(Arc::ptr_eq(&tree.catalog.clusters[&stock], &before.catalog.clusters[&stock]));
    // Applying it changes its record.
    world.apply();
    assert!(world.after(Some(&tree)).is_part_of(&before));
    world.edited(&Edit::Cluster { organization: "root", name: "orders", units: 1, more: "" });
    world.apply();
    let before = world.after(None);
    world.edited(&Edit::Cluster { organization: "root", name: "orders", units: 2, more: "" });
    world.apply();
    let tree = world.after(Some(&before));
    assert!(tree.is_part_of(&before));
    // The reason why a resource is missing depends on the whole tree.
    world.remove("globex/stock.yaml");
    assert!(!world.after(Some(&tree)).is_part_of(&before));
}

#[test]
fn what_concerns_no_other_organization_has_only_its_own_resolved_again() {
    let mut world = World::new();
    world.put("globex/stock.yaml", &cluster("globex", "stock", 1, "").replace("eu", "us"));
    world.apply();
    let mut before = world.after(None);
    let orders: ResourceKey = "Cluster/acme/orders".to_owned().try_into().unwrap();
    for edit in [
        Edit::Account { organization: "acme", provider: "rfc2136", credentials: "one" },
        Edit::Provider { organization: "acme", claim: "$.groups" },
        Edit::Fleet { organization: "acme", units: 3, domain: "k.acme.com" },
    ] {
        world.edited(&edit);
        let tree = world.after(Some(&before));
        assert!(tree.is_part_of(&before), "{edit:?}");
        assert_eq!(tree.catalog.resources.len(), before.catalog.resources.len() + 1, "{edit:?}");
        assert!(Arc::ptr_eq(&tree.catalog.clusters[&orders], &before.catalog.clusters[&orders]));
        before = tree;
    }
    // Another organization may want the same domain.
    world.edited(&Edit::Records { organization: "acme", domain: "a.k.acme.com" });
    assert!(!world.after(Some(&before)).is_part_of(&before));
}

#[test]
fn nothing_is_resolved_again_until_a_certificate_expires() {
    let mut world = World::new();
    let before = world.after(None);
    "2026-06-02T00:00:00Z".clone_into(&mut world.now);
    let tree = world.after(Some(&before));
    assert!(Arc::ptr_eq(&tree.catalog, &before.catalog));
    "2035-06-02T00:00:00Z".clone_into(&mut world.now);
    assert!(!world.after(Some(&tree)).is_part_of(&before));
    "2026-06-01T00:00:00Z".clone_into(&mut world.now);
    assert!(world.after(Some(&before)).is_part_of(&before));
}
