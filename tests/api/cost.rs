//! What clusters cost, over the API: by sizes that were recorded when they were applied.

use std::fs;

use jiff::{SignedDuration, Timestamp};
use serde_json::Value;

use super::{Api, new_token};
use crate::serve::clock;
use crate::support::Tree;

const ORDERS: &str = "acme/clusters/orders.yaml";
const SETTINGS: &str = "[prices]\ncurrency = \"EUR\"\ncpu_hour = 0.03\nmemory_gib_hour = 0.004\ndisk_gib_month = 0.073\n\
                        loadbalancer_hour = 0.025\n";
const SERVE: &str = "serve --specs tree --config settings.toml";

fn time(text: &Value) -> Timestamp {
    text.as_str().unwrap().parse().unwrap()
}

/// An amount in millionths.
fn amount(text: &Value) -> i64 {
    text.as_str().unwrap().replace('.', "").parse().unwrap()
}

#[test]
fn the_cost_of_a_cluster_resized_at_noon_is_exact_to_the_minute() {
    let tree = Tree::example("quickstart");
    // The certificate of the example is younger than a fixed day would be.
    let yesterday = Timestamp::now() - SignedDuration::from_hours(24);
    let day = yesterday.strftime("%Y-%m-%d").to_string();
    let (morning, noon): (Timestamp, Timestamp) =
        (format!("{day}T08:00:00Z").parse().unwrap(), format!("{day}T12:00:00Z").parse().unwrap());
    let clock = tree.beside("clock");
    let library = clock::library(&tree);
    let variables = [("LD_PRELOAD", library.as_str()), ("CLOCK_FILE", clock.to_str().unwrap())];
    let at = |time: Timestamp| {
        let offset = time.duration_since(Timestamp::now()).as_secs();
        fs::write(&clock, offset.to_string()).unwrap();
    };
    fs::write(
        tree.beside("apply.toml"),
        format!("state_dir = \"state\"\noutput_dir = \"output\"\n{SETTINGS}"),
    )
    .unwrap();
    let apply = || tree.run_with("apply tree --yes --config apply.toml", &variables, "").expect(0);
    at(morning);
    let plan = tree.run_with("plan tree --config apply.toml", &variables, "").expect(2).out;
    // For 730 hours, with 4 load balancers.
    assert!(plan.contains("1152 GiB of disk, EUR 558.14 a month\n"), "{plan}");
    apply();
    at(noon);
    tree.edit(ORDERS, "kafka_units: 1", "kafka_units: 2");
    let plan = tree.run_with("plan tree --config apply.toml", &variables, "").expect(2).out;
    assert!(plan.contains(" GiB of disk, EUR 558.14 → "), "{plan}");
    apply();

    let settings = format!("base_url = \"https://kafka.example.com\"\n{SETTINGS}");
    let api = Api::start_with(&tree, SERVE, &settings);
    api.settle();
    let path = format!("/v1/clusters/orders/cost?from={day}T00:00:00Z&to={day}T23:59:59Z");
    let report = api.get(&path).expect(200).body;
    let clusters = report["clusters"].as_array().unwrap();
    let all = clusters[0]["periods"].as_array().unwrap();
    let minute = SignedDuration::from_secs(60);
    // Objects are applied one after the other, so that there are short periods between the two.
    let is_long = |period: &&Value| time(&period["to"]).duration_since(time(&period["from"])) > minute;
    let periods: Vec<&Value> = all.iter().filter(is_long).collect();
    assert_eq!((clusters.len(), periods.len(), &report["currency"]), (1, 2, &"EUR".into()), "{report:#}");
    assert!(all.windows(2).all(|pair| pair[0]["to"] == pair[1]["from"]), "{report:#}");
    for (period, begin, balancers) in [(periods[0], morning, 4), (periods[1], noon, 7)] {
        let from = time(&period["from"]);
        assert!(from >= begin && from.duration_since(begin) < minute, "{period}");
        assert_eq!(period["load_balancers"], balancers);
    }
    assert!(time(&periods[0]["to"]).duration_since(noon) < minute);
    let cost = |from: &str, to: &str| {
        let path = format!("/v1/clusters/orders/cost?from={day}T{from}:00Z&to={day}T{to}:00Z");
        amount(&api.get(&path).expect(200).body["cost"]["total"])
    };
    let [before, after] = [periods[0], periods[1]].map(|period| {
        move |seconds: i64| {
            let used = |amount: &str, price: i64, unit: i64| {
                (period[amount].as_i64().unwrap() * price * seconds + unit / 2) / unit
            };
            used("cpu_millis", 30_000, 1_000 * 3_600)
                + used("memory_mib", 4_000, 1_024 * 3_600)
                + used("disk_gib", 73_000, 730 * 3_600)
                + used("load_balancers", 25_000, 3_600)
        }
    });
    assert_eq!(cost("09:00", "10:00"), before(3_600));
    assert_eq!(cost("13:00", "14:00"), after(3_600));
    assert_eq!(cost("11:58", "11:59"), before(60));
    assert_eq!(cost("12:01", "12:02"), after(60));
    assert!(before(60) < after(60));

    // The fleet's cost is that of all its clusters, and its record says where it is.
    let fleet = api.get("/organizations/acme/infrastructure/eu").expect(200).body;
    let endpoint = "https://kafka.example.com/organizations/acme/infrastructure/eu/cost";
    assert_eq!(fleet["cost_endpoint"], endpoint);
    let path = format!("/organizations/acme/infrastructure/eu/cost?from={day}T00:00:00Z");
    let whole = api.get(&path).expect(200).body;
    let sum: i64 = whole["clusters"].as_array().unwrap().iter().map(|it| amount(&it["cost"]["total"])).sum();
    assert_eq!((amount(&whole["cost"]["total"]), whole["clusters"].as_array().unwrap().len()), (sum, 2));

    // A deleted cluster's cost stays in that of its fleet.
    tree.remove("acme/clusters/sandbox.yaml");
    api.serve.until("it is gone", || (api.get("/v1/clusters/sandbox").status == 404).then_some(()));
    api.get("/v1/clusters/sandbox/cost").refused(
        404,
        "not_found",
        "there is no cluster `sandbox`, or the caller may not see it",
    );
    let later = api.get(&path).expect(200).body;
    assert!(later["clusters"].as_array().unwrap().iter().any(|it| it["cluster"] == "acme/sandbox"));

    let path = format!("/v1/clusters/orders/cost?from={day}T12:00:00Z&to={day}T11:00:00Z");
    let why = "the query parameter `from` is after `to`, or in the future";
    api.get(&path).refused(400, "malformed", why);
    let stranger = new_token(&tree, "nobody@x.example", "*", "read");
    let hidden = api.call_as(&stranger, "GET /v1/clusters/orders/cost", &[], Value::Null);
    hidden.refused(404, "not_found", "there is no cluster `orders`, or the caller may not see it");
    assert_eq!(api.serve.stop(), Some(0));
}

#[test]
fn without_prices_there_is_no_cost_and_the_record_says_why() {
    let tree = Tree::example("quickstart");
    let api = Api::start(&tree);
    api.settle();
    api.get("/organizations/acme/infrastructure/eu/cost").refused(
        404,
        "not_found",
        "fleet acme/eu has no cost: the settings have no `[prices]`",
    );
    let fleet = api.get("/organizations/acme/infrastructure/eu").expect(200).body;
    assert_eq!(fleet["cost_endpoint"], Value::Null);
    assert_eq!(fleet["null_reasons"]["cost_endpoint"], "the settings have no `[prices]`");
    let cluster = api.get("/v1/clusters/orders").expect(200).body;
    assert_eq!(
        cluster["null_reasons"]["console_url"],
        "the cluster's `advanced_config.operations.console` is not on, and the settings have no `console_url_template`"
    );
    assert_eq!(api.serve.stop(), Some(0));
}
