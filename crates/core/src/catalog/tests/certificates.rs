use super::*;

fn external() -> World {
    let mut world = World::new();
    world.put("acme/orders.yaml", &cluster("acme", "orders", 1, "  cluster_access: External\n"));
    world
}

#[test]
fn a_new_or_changed_certificate_must_be_in_time_and_cover_its_hosts() {
    let cases = [
        (
            "$*.k.acme.com@2026",
            "error certificate-expired acme/base.yaml:4 [not valid now] the certificate expired on 2026-01-01
             = replace it by a valid one",
        ),
        (
            "$orders.k.acme.com",
            "error certificate-names acme/base.yaml:4 [covers `orders.k.acme.com`] the certificate of `k.acme.com` doesn't cover `broker-0--orders.k.acme.com`
             = use one for `*.k.acme.com`, which covers all clusters and brokers of the domain",
        ),
        (
            "$a.k.acme.com+b.k.acme.com",
            "error certificate-names acme/base.yaml:4 [covers `a.k.acme.com` and 1 more] the certificate of `k.acme.com` doesn't cover `orders.k.acme.com`
             = use one for `*.k.acme.com`, which covers all clusters and brokers of the domain",
        ),
    ];
    for (certificate, expected) in cases {
        let mut world = external();
        world.edit("acme/base.yaml", "$*.k.acme.com", certificate);
        world.check(&format!(
            "{expected}
             held base domain acme/k.acme.com: invalid (1)
             held fleet acme/eu: waits for base domain acme/k.acme.com
             held cluster acme/orders: waits for fleet acme/eu"
        ));
        let mut world = external();
        world.apply().edit("acme/base.yaml", "$*.k.acme.com", certificate);
        world.check(&format!("{expected}\nheld base domain acme/k.acme.com: invalid (1)"));
    }
}

#[test]
fn a_certificate_for_other_domains_is_told_before_there_is_a_cluster() {
    let mut world = World::new();
    world.edit("acme/base.yaml", "$*.k.acme.com", "$*.k.globex.com");
    let expected = "warning certificate-names acme/base.yaml:4 [covers `*.k.globex.com`] the certificate of `k.acme.com` covers no name below it, so no cluster could be reached there
         = use one for `*.k.acme.com`, which covers all clusters and brokers of the domain";
    world.check(expected);
    world.apply().check(expected);
}

#[test]
fn a_certificate_of_the_future_is_refused() {
    let mut world = external();
    world.now = "2019-06-01T00:00:00Z".to_owned();
    let text = describe(&world.resolve());
    assert!(text.contains("the certificate is not valid before 2020-01-01"), "{text}");
}

#[test]
fn an_applied_certificate_that_ends_degrades_its_fleets_and_is_warned_of_before() {
    let mut world = external();
    world.apply();
    for (now, condition, words) in [
        ("2026-11-01T00:00:00Z", None, ""),
        ("2026-12-15T00:00:00Z", Some(("CertificateExpiring", false)), "expires on 2027-01-01"),
        ("2027-01-02T00:00:00Z", Some(("CertificateExpired", true)), "expired on 2027-01-01"),
    ] {
        world.now = now.to_owned();
        let catalog = world.resolve();
        let fleet = catalog.fleets.values().next().unwrap();
        let found = fleet.conditions.first().map(|condition| (condition.kind.as_str(), condition.degraded));
        assert_eq!(found, condition, "{now}");
        if condition.is_some() {
            let warned = describe(&catalog);
            let expected = format!(
                "warning certificate-expiry acme/base.yaml:4 [until 2027-01-01] the certificate of `k.acme.com` {words}\n= \
                 renew it and put the new certificate and its key in the document"
            );
            assert!(warned.starts_with(&expected) && !warned.contains("error"), "{warned}");
        }
    }
}

#[test]
fn a_new_cluster_must_be_covered_by_an_applied_certificate() {
    let mut world = external();
    world.edit("acme/base.yaml", "$*.k.acme.com", "$orders.k.acme.com+broker-0--orders.k.acme.com");
    world.apply().check("");
    world.put("acme/new.yaml", &cluster("acme", "new", 1, "  cluster_access: External\n"));
    world.check(
        "error certificate-names acme/new.yaml:4 [an address without a certificate] the certificate of `k.acme.com` doesn't cover `new.k.acme.com`
         = use one for `*.k.acme.com`, which covers all clusters and brokers of the domain
         held cluster acme/new: invalid (1)",
    );
}

#[test]
fn a_fleets_own_prometheus_must_be_covered_and_have_a_name_that_fits() {
    let own = |domain: &str| {
        let mut world = World::new();
        world.config.images.prometheus = Some(format!("a@sha256:{}", "0".repeat(64)));
        world.put("acme/base.yaml", &base("acme", "eu", domain));
        let monitoring = "monitoring: {prometheus: own, own: {password: long enough for it}}";
        let advanced = format!("advanced_config: {{{monitoring}}}\nmax_tenants");
        world.edit("acme/base.yaml", "max_tenants", &advanced);
        world
    };
    own("k.acme.com").check("");
    let mut world = own("k.acme.com");
    world.edit("acme/base.yaml", "$*.k.acme.com", "$orders.k.acme.com");
    world.check(
        "error certificate-names acme/base.yaml:4 [covers `orders.k.acme.com`] the certificate of `k.acme.com` doesn't cover `metrics--eu.k.acme.com`
         = use one for `*.k.acme.com`, which covers all clusters and brokers of the domain
         held base domain acme/k.acme.com: invalid (1)
         held fleet acme/eu: waits for base domain acme/k.acme.com
         held cluster acme/orders: waits for fleet acme/eu",
    );
    let with_own = world.files["acme/base.yaml"].clone();
    world.edit("acme/base.yaml", "prometheus: own", "prometheus: none").edit(
        "acme/base.yaml",
        ", own: {password: long enough for it}",
        "",
    );
    world.apply().check("");
    world.put("acme/base.yaml", &with_own);
    world.check(
        "error certificate-names acme/base.yaml:13 [an address without a certificate] the certificate of `k.acme.com` doesn't cover `metrics--eu.k.acme.com`
         = use one for `*.k.acme.com`, which covers all clusters and brokers of the domain
         held fleet acme/eu: invalid (1)",
    );
    // A domain that has no certificate yet: what runs in the old one stays, and a new one comes later.
    let acme = serde_json::json!({"directory": "https://ca.example.com", "agree_to_terms": true, "challenge": "dns-persist-01"});
    let managed = "kind: BaseDomain\norganization: acme\ndomain: new.acme.com\n";
    let mut world = own("k.acme.com");
    world.config.acme = serde_json::from_value(acme).unwrap();
    world.put("acme/new.yaml", managed).apply().check("");
    let moved = world.files["acme/base.yaml"].replace("directory\ndomain: k.", "directory\ndomain: new.");
    world
        .put("acme/base.yaml", &moved)
        .check("held fleet acme/eu: waits for the certificate of base domain acme/new.acme.com");
    let mut first = own("k.acme.com");
    first.config.acme = world.config.acme.clone();
    first.put("acme/new.yaml", managed).put("acme/base.yaml", &moved).apply().check("");
    assert_eq!(first.resolve().fleets.values().next().unwrap().own_prometheus, None);
    let parts = ["a".repeat(60), "b".repeat(60), "c".repeat(60), "d".repeat(52)];
    let problems = own(&format!("{}.acme.com", parts.join("."))).resolve().problems;
    let said: Vec<&str> = problems.iter().map(|problem| &*problem.message).collect();
    assert_eq!(said, ["the Prometheus of `eu` would have host names that are too long for DNS"]);
}

#[test]
fn what_is_wrong_with_a_certificate_or_its_key_is_told_where_it_stands() {
    for (from, to, line) in
        [("tls_cert: $*.k.acme.com", "tls_cert: x", 4), ("tls_key: $key", "tls_key: x", 5)]
    {
        let mut world = external();
        world.edit("acme/base.yaml", from, to);
        let catalog = world.resolve();
        let lines: Vec<_> = catalog
            .problems
            .iter()
            .map(|problem| problem.location.as_ref().unwrap().origin().to_string())
            .collect();
        assert_eq!(lines, [format!("acme/base.yaml:{line}")]);
    }
}
