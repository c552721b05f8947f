//! Properties of all trees.

use proptest::prelude::*;

use super::*;

pub(super) fn pieces() -> Vec<String> {
    let mut pieces = vec![
        cluster("acme", "orders", 1, ""),
        cluster("acme", "orders", 4, "  cluster_access: External\n"),
        cluster("acme", "sales", 9, "  cluster_access: External\n  oauth: acme-sso\n"),
        cluster("globex", "stock", 3, "").replace("eu", "us"),
        cluster("globex", "orders", 30, ""),
        "UNREADABLE\n".to_owned(),
        "INVALID\nkind: Fleet\norganization: acme\nidentifier: eu\n".to_owned(),
        "INVALID\nkind: Cluster\norganization: globex\nidentifier: stock\n".to_owned(),
        "kind: Organization\nidentifier: globex\nquotas: {kafka_units: 2, base_domains: 1}\ndomains: [globex.com, k.acme.com]\n".to_owned(),
        "kind: Organization\nidentifier: acme\ndomains: [k.globex.com, k.acme.com]\n".to_owned(),
        "kind: Organization\nidentifier: platform\n".to_owned(),
        String::new(),
    ];
    // Domains that overlap another organization's.
    for domain in ["globex.com", "k.globex.com", "a.k.globex.com"] {
        let base = base("acme", "eu", domain);
        pieces.extend(base.split("---\n").next().map(str::to_owned));
    }
    // A certificate that covers no cluster.
    let base_domain = base("acme", "eu", "k.acme.com").replace("$*.k.acme.com", "$*.other.com@2031");
    pieces.extend(base_domain.split("---\n").next().map(str::to_owned));
    for organization in ["acme", "globex"] {
        let base = base(organization, if organization == "acme" { "eu" } else { "us" }, "k.acme.com");
        pieces.extend(base.split("---\n").map(str::to_owned));
    }
    pieces
}

fn files() -> impl Strategy<Value = BTreeMap<String, String>> {
    let path = prop::sample::select(vec![
        "a.yaml",
        "organizations.yaml",
        "acme/a.yaml",
        "acme/b.yaml",
        "globex/a.yaml",
        "globex/b.yaml",
        "platform/a.yaml",
    ]);
    let text =
        prop::collection::vec(prop::sample::select(pieces()), 0..4).prop_map(|parts| parts.join("---\n"));
    prop::collection::btree_map(path.prop_map(str::to_owned), text, 0..6)
}

fn reversed(documents: &Documents) -> Documents {
    let reverse = |file: &ParsedFile| {
        let mut documents = file.documents.clone();
        let mut invalid = file.invalid.clone();
        documents.reverse();
        invalid.reverse();
        ParsedFile {
            remnants: file.remnants.clone(),
            digest: None,
            documents,
            invalid,
            unreadable: file.unreadable.clone(),
            problems: file.problems.clone(),
            text: file.text.clone(),
        }
    };
    let files = documents.files.iter().map(|(path, file)| (path.clone(), Arc::new(reverse(file))));
    Documents {
        source: documents.source.clone(),
        revision: documents.revision.clone(),
        commit: documents.commit.clone(),
        skipped: documents.skipped.clone(),
        files: files.collect(),
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 96, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn a_catalog_depends_on_its_inputs_only_and_keeps_its_promises(before in files(), after in files()) {
        let mut world = World::new();
        world.files.extend(before);
        world.apply();
        world.files = after;
        let documents = world.documents();
        let secrets = world.open(&documents);
        let config = Arc::new(world.config.clone());
        let resolve = |documents: &Documents| {
            resolve(documents, &world.recorded, &secrets, &config, &host_names(), world.now.parse().unwrap())
        };
        let catalog = resolve(&documents);
        let text = format!("{catalog:?}");
        prop_assert_eq!(&text, &format!("{:?}", resolve(&documents)));
        prop_assert_eq!(&text, &format!("{:?}", resolve(&reversed(&documents))));
        for (key, cluster) in &catalog.clusters {
            let resource = &catalog.resources[key];
            prop_assert!(catalog.fleets.contains_key(&cluster.fleet));
            prop_assert!(resource.hold.is_none() || world.recorded.resources.contains_key(key));
        }
        for (key, resource) in &catalog.resources {
            let is_cluster = key.kind == crate::names::Kind::Cluster;
            let rendered = catalog.clusters.contains_key(key);
            prop_assert!(rendered || resource.hold.is_some() || !is_cluster, "{key} is neither rendered nor held");
        }
        for key in world.recorded.resources.keys() {
            let told = catalog.resources.contains_key(key) || catalog.absent.contains_key(key);
            prop_assert!(told || key.name == "root", "{key} is neither kept nor absent");
            let removed = catalog.absent.get(key) == Some(&Absence::Removed);
            prop_assert!(!(removed && catalog.resources.contains_key(key)));
        }
    }

    #[test]
    fn one_organizations_folder_changes_nothing_for_another(text in prop::collection::vec(prop::sample::select(pieces()), 0..5)) {
        let mut world = World::new();
        world.put("globex/stock.yaml", &cluster("globex", "stock", 3, "").replace("eu", "us"));
        world.apply();
        let of_globex = |world: &World| {
            let catalog = world.resolve();
            let foreign = |key: &ResourceKey| key.organization.as_str() == "globex";
            let resources: Vec<_> = catalog.resources.values().filter(|found| foreign(&found.key)).collect();
            let clusters: Vec<_> = catalog.clusters.values().filter(|found| foreign(&found.key)).collect();
            let absent: Vec<_> = catalog.absent.iter().filter(|(key, _)| foreign(key)).collect();
            format!("{resources:?} {clusters:?} {absent:?}")
        };
        let before = of_globex(&world);
        world.put("acme/more.yaml", &text.join("---\n"));
        prop_assert_eq!(before, of_globex(&world));
    }
}
