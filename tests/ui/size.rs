//! Lists of an installation with many resources.

use std::fmt::Write as _;

use serde_json::json;

use super::Browser;
use crate::api::Api;
use crate::support::Tree;

/// The most bytes of a list, before any compression.
const LARGEST: usize = 100_000;

/// More than three pages of lists.
const MANY: usize = 160;

/// More than a form offers to choose from.
const ORGANIZATIONS: usize = 205;

const PLAN_ONLY: &str = "[policy]\nmode = \"plan-only\"\n";

/// As long as an identifier may be.
fn name(prefix: &str, number: usize) -> String {
    format!("{prefix}-{number:0width$}", width = 31 - prefix.len())
}

fn tree() -> Tree {
    let tree = Tree::empty();
    let header = |kind: &str| format!("apiVersion: streamfleet/v1\nkind: {kind}\n");
    let mut organizations = String::new();
    for number in 0..ORGANIZATIONS {
        let _ = writeln!(
            organizations,
            "---\n{}identifier: {}\ndisplay_name: {}",
            header("Organization"),
            name("org", number),
            "n".repeat(200)
        );
    }
    tree.write("organizations.yaml", organizations);
    let organization = name("org", 0);
    let mut fleets = String::new();
    for number in 0..MANY {
        let _ = writeln!(
            fleets,
            "---\n{}organization: {organization}\nidentifier: {}\ninfra_type: directory\ntenancy_mode: Shared\n\
             max_tenants: 1000\nmax_kafka_units: 1000",
            header("Fleet"),
            name("fleet", number)
        );
    }
    tree.write(&format!("{organization}/fleets.yaml"), fleets);
    for number in 0..MANY {
        let text = format!(
            "{}organization: {organization}\ninfrastructure: {}\nidentifier: {}\ncluster_type: kafka\n\
             tenancy_mode: Shared\nkafka_units: 1\nregion: {}\ntags:\n  - {{key: team, value: team-{number}}}\n\
             advanced_config: {{version: 4.3.1, profile: dev}}\n",
            header("Cluster"),
            name("fleet", number),
            name("cluster", number),
            "r".repeat(100),
        );
        tree.write(&format!("{organization}/clusters/{number}.yaml"), text);
    }
    tree
}

#[test]
fn lists_stay_small_and_the_server_filters_them() {
    let tree = tree();
    let api = Api::start_with(&tree, "serve --specs tree --config settings.toml", PLAN_ONLY);
    let browser = Browser::sign_in(&api, &api.token, "root");
    let (organization, last) = (name("org", 0), name("cluster", MANY - 1));
    let fleets = format!("/fleets?organization={organization}");
    for path in [
        "/",
        "/plan",
        "/clusters",
        "/clusters?sort=status",
        "/clusters?sort=-updated_at",
        &fleets,
        "/organizations",
        "/base-domains",
        "/identity-providers",
        "/cloud-accounts",
        "/events",
        "/tokens",
    ] {
        let page = browser.page(path);
        assert!(page.len() <= LARGEST, "{path} has {} bytes", page.len());
    }
    assert!(browser.page("/clusters").contains(&format!("{MANY} in all")));
    // The first page counts all, and names the first.
    let status = api.get("/v1/status?unwell=true").expect(200).body;
    let counts = json!({"fleets": MANY, "clusters": MANY, "healthy": 0, "unwell": 2 * MANY});
    assert_eq!(status["counts"], counts);
    assert_eq!(status["items"].as_array().unwrap().len(), 50);
    let overview = browser.page("/");
    assert!(overview.contains(&format!("These are the first of {}.", 2 * MANY)), "{overview}");
    let fleet = name("fleet", MANY - 1);
    for filter in [
        format!("q={last}"),
        format!("fleet={fleet}"),
        format!("tag=team%3Dteam-{}", MANY - 1),
        format!("status=Pending&q={last}&organization={organization}"),
    ] {
        let page = browser.page(&format!("/clusters?{filter}"));
        assert!(page.contains("1 in all") && page.contains(&last), "{filter}: {page}");
    }
    assert!(browser.page("/clusters?status=Failed").contains("None fits."));
    the_plan_is_whole(&browser);
    // Of too many organizations, one is typed. With `root`, there is one more.
    let fleets = browser.page("/fleets");
    let told = format!("Suggested are the first 200 of {}", ORGANIZATIONS + 1);
    assert!(fleets.contains(&told) && fleets.contains("href=\"/ui/organizations\""), "{fleets}");
    let form = browser.page("/new/fleets");
    let told = format!("There are {}, so type the name of one.", ORGANIZATIONS + 1);
    assert!(form.contains(&told) && form.contains("<input id=\"f-organization\""), "{form}");
    // Every cluster is on one of the pages.
    let (mut path, mut found) = ("/clusters".to_owned(), 0);
    loop {
        let page = browser.page(&path);
        found += page.matches(&format!("href=\"/ui/clusters/{organization}/")).count();
        let Some(link) = page.split("rel=\"next\"").next().filter(|start| start.len() < page.len()) else {
            break;
        };
        let link = link.rsplit("href=\"/ui").next().unwrap().split('"').next().unwrap();
        path = link.replace("&#38;", "&");
    }
    assert_eq!(found, MANY);
    assert_eq!(api.serve.stop(), Some(0));
}

/// The changes of each page of the plan, from this one on.
fn changes(browser: &Browser, first: &str) -> Vec<String> {
    let (mut path, mut found) = (first.to_owned(), Vec::new());
    loop {
        let page = browser.page(&path);
        assert!(page.len() <= LARGEST, "{path} has {} bytes", page.len());
        let told = page.split("<h3>").skip(1).filter_map(|rest| rest.split("</h3>").next());
        found.extend(told.map(str::to_owned));
        let Some((before, _)) = page.split_once("\" rel=\"next\"") else { return found };
        path = before.rsplit("href=\"/ui").next().unwrap().replace("&#38;", "&");
    }
}

/// A page says how much of the plan is elsewhere, and all pages together have every change once.
fn the_plan_is_whole(browser: &Browser) {
    let page = browser.page("/plan");
    let all = ORGANIZATIONS + 2 * MANY;
    let told = format!("50 of {all} changes are on this page");
    assert!(page.contains(&told), "{page}");
    assert!(page.contains(&format!("The other {} are on other pages", all - 50)), "{page}");
    let mut changes_of_all = changes(browser, "/plan");
    assert_eq!(changes_of_all.len(), all);
    changes_of_all.sort();
    changes_of_all.dedup();
    assert_eq!(changes_of_all.len(), all);
    let (organization, fleet) = (name("org", 0), name("fleet", 7));
    let of_fleet = changes(browser, &format!("/plan?organization={organization}&fleet={fleet}"));
    assert_eq!(of_fleet.len(), 2, "{of_fleet:?}");
    assert!(
        of_fleet[0].contains("create fleet") && of_fleet[1].contains(&name("cluster", 7)),
        "{of_fleet:?}"
    );
}
