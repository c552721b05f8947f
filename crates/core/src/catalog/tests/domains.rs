use super::*;

fn domain(organization: &str, domain: &str) -> String {
    format!(
        "kind: BaseDomain\norganization: {organization}\ndomain: {domain}\ntls_cert: $*.{domain}\ntls_key: $key\n"
    )
}

fn organization(name: &str, domains: &str) -> String {
    let domains = if domains.is_empty() { String::new() } else { format!("domains: [{domains}]\n") };
    format!("kind: Organization\nidentifier: {name}\n{domains}")
}

/// Organizations with these `domains`; an empty text means none.
fn world(organizations: &[(&str, &str)]) -> World {
    let mut world = World::new();
    world.files.clear();
    let documents = organizations.iter().map(|(name, domains)| organization(name, domains));
    world.put("organizations.yaml", &documents.collect::<Vec<_>>().join("---\n"));
    world
}

fn taken(organization: &str, name: &str) -> String {
    format!(
        "error domain-taken {organization}/more.yaml:3 [belongs to another organization] `{name}` overlaps a domain of another organization
         = use another domain, or have a super user assign this one in the `domains` of organization `{organization}`
         held base domain {organization}/{name}: invalid (1)"
    )
}

fn not_named(organization: &str, name: &str, add: &str) -> String {
    format!(
        "error domain-not-named {organization}/more.yaml:3 [not in its `domains`] organization `{organization}` may not use `{name}`: its `domains` don't contain it
         = add {add} organization `{organization}`; only super users can do that
         held base domain {organization}/{name}: invalid (1)"
    )
}

#[test]
fn an_organization_may_have_what_its_domains_name_and_what_is_below() {
    let mut world = world(&[("acme", "acme.com, k.example.org"), ("globex", "")]);
    for name in ["acme.com", "a.b.acme.com", "k.example.org"] {
        world.put("acme/more.yaml", &domain("acme", name)).check("");
    }
    for name in ["com.acme", "badacme.com", "example.org"] {
        world.put("acme/more.yaml", &domain("acme", name));
        world.check(&not_named("acme", name, &format!("`{name}` to the `domains` of")));
    }
    // The message doesn't disclose whether the domain is free.
    world.remove("acme/more.yaml");
    for name in ["acme.com", "free.com"] {
        world.put("globex/more.yaml", &domain("globex", name));
        world.check(&not_named("globex", name, &format!("`domains: [{name}]` to")));
    }
    // An empty list grants nothing, even to the only organization.
    world = self::world(&[("acme", "acme.com")]);
    world.edit("organizations.yaml", "[acme.com]", "[]").put("acme/more.yaml", &domain("acme", "acme.com"));
    world.check(&not_named("acme", "acme.com", "`acme.com` to the `domains` of"));
}

#[test]
fn the_domain_that_clusters_use_is_judged_and_not_the_one_that_was_submitted() {
    let mut world = world(&[("acme", "acme.example.com"), ("globex", "")]);
    let managed = domain("acme", "example.com").replace("$*.example", "$*.acme.example")
        + "dns_provider: external-dns\ncloud_account: dns\n";
    let account =
        "kind: CloudAccount\norganization: acme\nidentifier: dns\nprovider: aws\ncredentials: secret\n";
    world.put("acme/dns.yaml", account).put("acme/more.yaml", &managed).check("");
}

#[test]
fn the_only_organization_may_have_any_domain_and_a_second_one_holds_what_is_applied() {
    let mut world = world(&[("acme", "")]);
    world.put("acme/more.yaml", &base("acme", "eu", "k.example.com"));
    world.put("acme/orders.yaml", &cluster("acme", "orders", 1, "  cluster_access: External\n"));
    world.check("");
    world.apply();
    world.put("globex.yaml", &organization("globex", ""));
    world.check(&not_named("acme", "k.example.com", "`domains: [k.example.com]` to"));
    assert!(world.resolve().clusters.values().all(|cluster| cluster.domain.is_some()));
    // While the second organization is being deleted, it may come back.
    world.edit("organizations.yaml", "acme", "acme\ndomains: [k.example.com]").apply();
    world.edit("organizations.yaml", "domains: [k.example.com]\n", "").remove("globex.yaml");
    let refused = not_named("acme", "k.example.com", "`domains: [k.example.com]` to");
    world.check(&(refused + "\nabsent organization globex: removed"));
    world.recorded.resources.remove(&ResourceKey::organization(&"globex".parse().unwrap()));
    world.check("");
    // `root` doesn't count as a second organization, and can't take a domain from another.
    world.put("root.yaml", "kind: Organization\nidentifier: root\n");
    world.put("root/more.yaml", &domain("root", "k.root.com")).check("");
    world.put("root/more.yaml", &domain("root", "b.k.example.com")).check(&taken("root", "b.k.example.com"));
}

#[test]
fn a_public_suffix_is_refused_unless_it_is_named() {
    let refused = |line: &str, organization: &str, name: &str| {
        format!(
            "error public-suffix {line}:3 [a public suffix] `{name}` is a public suffix: others can register names below it
             = use a domain of your own below it; if you own all of it, a super user can add `domains: [{name}]` to organization `{organization}`
             held base domain {organization}/{name}: invalid (1)"
        )
    };
    let mut world = world(&[("acme", "")]);
    for name in ["co.uk", "github.io"] {
        world.put("acme/more.yaml", &domain("acme", name)).check(&refused("acme/more.yaml", "acme", name));
        world.remove("acme/more.yaml");
        world.put("more.yaml", &domain("acme", name)).check(&refused("more.yaml", "acme", name));
        world.remove("more.yaml");
    }
    world.edit("organizations.yaml", "acme", "acme\ndomains: [co.uk]");
    world.put("acme/more.yaml", &domain("acme", "co.uk")).check("");
    world.put("acme/more.yaml", &domain("acme", "k.example.co.uk")).check("");
    // A public suffix below a granted domain needs a grant of its own.
    world
        .edit("organizations.yaml", "co.uk", "amazonaws.com")
        .put("acme/more.yaml", &domain("acme", "s3.amazonaws.com"));
    world.check(&refused("acme/more.yaml", "acme", "s3.amazonaws.com"));
}

#[test]
fn a_part_of_a_domain_is_given_to_another_organization_by_naming_it() {
    let mut world = world(&[("acme", "acme.com"), ("globex", "eu.acme.com")]);
    world.put("acme/own.yaml", &domain("acme", "acme.com"));
    world.put("globex/own.yaml", &domain("globex", "eu.acme.com"));
    world.put("globex/more.yaml", &domain("globex", "k.eu.acme.com")).check("");
    world.clone().apply().check("");
    // The first organization has lost it, whether or not the other one uses it.
    world
        .remove("globex/own.yaml")
        .remove("globex/more.yaml")
        .put("acme/more.yaml", &domain("acme", "k.eu.acme.com"));
    world.check(&taken("acme", "k.eu.acme.com"));
}

#[test]
fn of_a_domain_that_several_may_have_the_first_has_it() {
    for name in ["k.both.com", "a.k.both.com", "both.com"] {
        let mut world = world(&[("acme", "both.com"), ("globex", "both.com")]);
        world.put("acme/own.yaml", &domain("acme", "k.both.com")).apply();
        world.put("globex/more.yaml", &domain("globex", name)).check(&taken("globex", name));
    }
    let mut world = world(&[("acme", "both.com"), ("globex", "both.com")]);
    world.put("globex/own.yaml", &domain("globex", "k.both.com")).apply();
    world.now = "2026-07-01T00:00:00Z".to_owned();
    world.put("acme/more.yaml", &domain("acme", "a.k.both.com")).check(&taken("acme", "a.k.both.com"));
}

#[test]
fn an_administrators_file_gives_the_domain_that_it_describes() {
    for name in ["acme.com", "k.acme.com", "a.k.acme.com"] {
        let mut world = World::new();
        world.edit("organizations.yaml", "globex.com", "globex.com, acme.com");
        world.put("globex/more.yaml", &domain("globex", name)).check(&taken("globex", name));
    }
    let mut world = World::new();
    world.put("delegations.yaml", &domain("globex", "a.k.acme.com")).check("");
    world.apply().check("");
    world.put("globex/more.yaml", &domain("globex", "b.a.k.acme.com")).check("");
    world.put("acme/more.yaml", &domain("acme", "c.a.k.acme.com")).check(&taken("acme", "c.a.k.acme.com"));
}

#[test]
fn a_domain_waits_for_an_organization_whose_document_can_not_be_read() {
    let mut world = world(&[("acme", "acme.com"), ("globex", "globex.com")]);
    world.put("acme/more.yaml", &domain("acme", "acme.com"));
    world.edit(
        "organizations.yaml",
        "kind: Organization\nidentifier: acme",
        "INVALID\nkind: Organization\nidentifier: acme",
    );
    world.check("held base domain acme/acme.com: waits for organization acme");
}

/// It stays applied, so its host names would belong to two organizations.
#[test]
fn what_is_applied_is_nobody_elses_though_it_is_no_longer_named() {
    let codes = |name: &str| -> Vec<_> {
        let mut world = world(&[("acme", "")]);
        world.put("acme/own.yaml", &domain("acme", "k.example.com")).apply();
        let organizations = [organization("acme", ""), organization("globex", "example.com")];
        world.put("organizations.yaml", &organizations.join("---\n"));
        world.put("globex/more.yaml", &domain("globex", name));
        world.resolve().problems.iter().map(|problem| problem.code.to_string()).collect()
    };
    for name in ["k.example.com", "a.k.example.com"] {
        assert_eq!(codes(name), ["domain-not-named", "domain-taken"], "{name}");
    }
    for name in ["example.com", "ak.example.com"] {
        assert_eq!(codes(name), ["domain-not-named"], "{name}");
    }
}
