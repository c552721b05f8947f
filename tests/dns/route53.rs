//! What only Route 53 does: refusals, limits, and lists in pages.

pub mod service;

use jiff::SignedDuration;
use serde_json::json;
use streamfleet::spec::CloudAccount;
use streamfleet::target::dns::{
    DnsLogin, DnsZones, RecordFault, Route53Login, add_challenge, allowed_authorities, release,
    remove_challenge, see, see_now, write,
};

use super::client::{HOST, address, zones_of};
use super::{APPLY, BOOTSTRAP, ORDERS, PLAN, broker, serve, serve_all};
use crate::kubernetes::on;
use crate::support::control_plane::ControlPlane;
use crate::support::names::{certificate, fields, keep_in};
use service::{KEY, Route53, SECRET};

const CHALLENGE: &str = "_acme-challenge.kafka.example.test";

fn account(region: Option<&str>) -> CloudAccount {
    let account = json!({"organization": "acme", "identifier": "dns", "provider": "aws", "region": region,
        "credentials": "unused"});
    serde_json::from_value(account).unwrap()
}

fn login(route53: &Route53, key: &str, secret: &str) -> Route53Login {
    let keys = format!("[default]\naws_access_key_id = {key}\naws_secret_access_key = {secret}\n");
    with_keys(route53, &keys)
}

fn with_keys(route53: &Route53, keys: &str) -> Route53Login {
    let login = Route53Login::new(&account(None), Some(route53.url()), keys.to_owned().into());
    login.trusting(route53.roots())
}

pub fn zones(route53: &Route53) -> DnsZones {
    zones_of("example.test", Ok(DnsLogin::Route53(login(route53, KEY, SECRET))))
}

async fn refusal(login: Route53Login, zone: &str, host: &str) -> RecordFault {
    let zones = zones_of(zone, Ok(DnsLogin::Route53(login)));
    write(&zones, host, &address(1), ("one", None)).await.unwrap_err()
}

#[tokio::test]
async fn each_refusal_of_route_53_is_told_apart() {
    let route53 = Route53::start();
    let ours = || login(&route53, KEY, SECRET);
    let session = format!(
        "[default]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\naws_session_token=over\n"
    );
    let session = with_keys(&route53, &session);
    for (login, zone, host, expected, hint) in [
        (
            login(&route53, "AKIANOBODY", SECRET),
            "example.test",
            HOST,
            "Route 53 doesn't know the access key",
            "`aws_access_key_id`",
        ),
        (
            login(&route53, KEY, "wrong"),
            "example.test",
            HOST,
            "the secret key isn't that of the access key",
            "`aws_secret_access_key`",
        ),
        (
            session,
            "example.test",
            HOST,
            "the access keys were valid for a time that is over",
            "without a session token",
        ),
        (
            with_keys(&route53, "[other]\n"),
            "example.test",
            HOST,
            "the credentials of the cloud account can't be used: it has no section `[default]`",
            "`[default]`",
        ),
        (
            ours(),
            "example.net",
            "a.example.net",
            "the account has no hosted zone `example.net`",
            "`dns_base_domain`",
        ),
    ] {
        let fault = refusal(login, zone, host).await;
        assert_eq!(fault.to_string(), expected);
        assert!(fault.hint().contains(hint), "{}", fault.hint());
    }
    assert_eq!(route53.serial(), 0);

    route53.refuse(1, 403, "AccessDenied");
    let fault = refusal(ours(), "example.test", HOST).await;
    assert_eq!(fault.to_string(), "the access key may not do that: Rate exceeded");
    assert!(fault.hint().contains("`route53:ChangeResourceRecordSets`"), "{}", fault.hint());
    route53.refuse(1, 400, "Unheard");
    let fault = refusal(ours(), "example.test", HOST).await;
    assert_eq!(fault.to_string(), "Route 53 answers 400 Bad Request (Unheard: Rate exceeded)");

    route53.set_clock_ahead(SignedDuration::from_mins(10));
    let fault = refusal(ours(), "example.test", HOST).await;
    assert!(fault.to_string().starts_with("it is 20"), "{fault}");
    assert!(fault.to_string().ends_with(" at Route 53"), "{fault}");
    route53.set_clock_ahead(SignedDuration::ZERO);

    // A private zone is for those inside; two public ones are one too many.
    route53.add_zone("example.test", true);
    route53.add_zone("example.net", true);
    let fault = refusal(ours(), "example.net", "a.example.net").await;
    assert_eq!(
        fault.to_string(),
        "the hosted zone `example.net` is private: clients elsewhere don't find its names"
    );
    write(&zones(&route53), HOST, &address(1), ("one", None)).await.unwrap();
    assert_eq!(route53.answers(HOST, "A"), ["192.0.2.1"]);
    route53.add_zone("example.test", false);
    let fault = refusal(ours(), "example.test", HOST).await;
    assert_eq!(fault.to_string(), "the account has several hosted zones `example.test`");
    let untrusted = Route53Login::new(&account(None), Some(route53.url()), ours().keys);
    let fault = refusal(untrusted, "example.test", HOST).await;
    assert!(
        fault.to_string().starts_with(&format!(
            "Route 53 can't be reached at {}: invalid peer certificate",
            route53.url()
        )),
        "{fault}"
    );
}

#[tokio::test]
async fn what_is_asked_too_often_is_asked_again_a_little_later() {
    let route53 = Route53::start();
    let zones = zones(&route53);
    route53.refuse(2, 400, "Throttling");
    write(&zones, HOST, &address(1), ("one", None)).await.unwrap();
    assert_eq!(route53.answers(HOST, "A"), ["192.0.2.1"]);
    let elsewhere = |url: &str| {
        let keys = format!("[default]\naws_access_key_id={KEY}\naws_secret_access_key={SECRET}\n");
        Route53Login::new(&account(None), Some(url.to_owned()), keys.into())
    };
    for url in ["http://localhost:1", "localhost:1"] {
        let fault = refusal(elsewhere(url), "example.test", HOST).await;
        assert_eq!(fault.to_string(), format!("Route 53 can't be reached at {url}: that is no https URL"));
        assert!(fault.hint().contains("`AWS_ENDPOINT_URL_ROUTE_53`"), "{}", fault.hint());
    }
    route53.refuse(1, 400, "PriorRequestNotComplete");
    write(&zones, HOST, &address(2), ("one", None)).await.unwrap();
    assert_eq!(route53.serial(), 2);
}

/// An account may ask five times a second.
#[tokio::test]
async fn a_plan_asks_for_all_names_of_a_domain_at_once() {
    let route53 = Route53::start();
    for number in 0..700 {
        route53.set(&format!("host-{number}.kafka.example.test"), "A", &["192.0.2.7"]);
    }
    // It is sorted before the domain, and isn't in it.
    route53.set("a.kafka-a.example.test", "A", &["192.0.2.8"]);
    route53.set("*.kafka.example.test", "A", &["192.0.2.9"]);
    let zones = zones(&route53);
    for number in 0..700 {
        let seen = see(&zones, &format!("host-{number}.kafka.example.test")).await.unwrap().unwrap();
        assert_eq!((seen.records, seen.owner), (address(7), None));
    }
    assert_eq!(see(&zones, HOST).await, Ok(None));
    assert_eq!(route53.asked().len(), 4, "the zone, and three pages");
    // What was changed from here is seen.
    write(&zones, HOST, &address(1), ("one", None)).await.unwrap();
    assert_eq!(see(&zones, HOST).await.unwrap().unwrap().owner.as_deref(), Some("one"));
    // A fault is one for all names.
    let refused = super::route53::zones(&route53);
    route53.refuse(1, 403, "AccessDenied");
    route53.asked();
    for _ in 0..3 {
        assert_eq!(
            see(&refused, HOST).await.unwrap_err().to_string(),
            "the access key may not do that: Rate exceeded"
        );
    }
    assert_eq!(route53.asked().len(), 1);
}

#[tokio::test]
async fn names_with_records_of_other_kinds_belong_to_somebody() {
    let route53 = Route53::start();
    let zones = zones(&route53);
    route53.set(HOST, "MX", &["10 mail.example.test."]);
    let taken = write(&zones, HOST, &address(1), ("one", None)).await;
    assert_eq!(taken, Err(RecordFault::Foreign));
    let seen = see_now(&zones, HOST).await.unwrap().unwrap();
    assert_eq!(seen.owner.as_deref(), Some("a record of kind MX"));
    route53.remove(HOST, "MX");
    // Of a routing policy, a plan would show addresses alone.
    route53.route(HOST, "A", "blue", "192.0.2.51");
    route53.route(HOST, "A", "green", "192.0.2.52");
    let seen = see_now(&zones, HOST).await.unwrap().unwrap();
    assert_eq!(seen.owner.as_deref(), Some("a routing policy of Route 53"));
    let adopted = write(&zones, HOST, &address(1), ("one", Some(&seen.identity()))).await;
    assert_eq!(adopted, Err(RecordFault::Foreign));
    assert_eq!(route53.answers(HOST, "A"), ["192.0.2.51", "192.0.2.52"]);
    route53.remove(HOST, "A");
    // A record of another kind that is made in the same moment.
    route53.make_after_next_change(HOST, "AAAA", "2001:db8::7");
    assert_eq!(write(&zones, HOST, &address(1), ("one", None)).await, Err(RecordFault::Foreign));
    assert_eq!(route53.answers(HOST, "AAAA"), ["2001:db8::7"]);
    assert!(route53.answers(HOST, "A").is_empty());
    assert!(route53.answers(&format!("_streamfleet.{HOST}"), "TXT").is_empty());
    route53.remove(HOST, "AAAA");
    // Records of AWS's own kind have no values.
    let by_alias: fn(&Route53) = |route53| route53.lead(HOST, "lb.example.net");
    let by_name: fn(&Route53) = |route53| route53.set(HOST, "CNAME", &["lb.example.net."]);
    for lead in [by_alias, by_name] {
        lead(&route53);
        let seen = see_now(&zones, HOST).await.unwrap().unwrap();
        assert_eq!(seen.records.alias.as_deref(), Some("lb.example.net"));
        assert_eq!(write(&zones, HOST, &address(1), ("one", None)).await, Err(RecordFault::Foreign));
        write(&zones, HOST, &address(1), ("one", Some(&seen.identity()))).await.unwrap();
        assert_eq!(see_now(&zones, HOST).await.unwrap().unwrap().records, address(1));
        release(&zones, HOST, "one").await.unwrap();
    }
}

#[tokio::test]
async fn a_challenge_stands_beside_those_of_others_until_all_servers_have_it() {
    let route53 = Route53::start();
    let zones = zones(&route53);
    let domain = "kafka.example.test".parse().unwrap();
    let asks_of_change =
        || route53.asked().iter().filter(|asked| asked.starts_with("GET /2013-04-01/change/")).count();
    route53.set(CHALLENGE, "TXT", &["\"theirs\""]);
    add_challenge(&zones, &domain, "ours").await.unwrap();
    assert_eq!(route53.answers(CHALLENGE, "TXT"), ["\"ours\"", "\"theirs\""]);
    assert_eq!(asks_of_change(), 2);
    // A run that was killed left it there, and didn't wait.
    add_challenge(&zones, &domain, "ours").await.unwrap();
    assert_eq!(route53.answers(CHALLENGE, "TXT"), ["\"ours\"", "\"theirs\""]);
    assert_eq!(asks_of_change(), 2);
    remove_challenge(&zones, &domain, "ours").await.unwrap();
    assert_eq!(route53.answers(CHALLENGE, "TXT"), ["\"theirs\""]);
    let before = route53.serial();
    remove_challenge(&zones, &domain, "ours").await.unwrap();
    assert_eq!(route53.serial(), before);
    route53.remove(CHALLENGE, "TXT");
    add_challenge(&zones, &domain, "ours").await.unwrap();
    remove_challenge(&zones, &domain, "ours").await.unwrap();
    assert!(route53.answers(CHALLENGE, "TXT").is_empty());

    route53.set(CHALLENGE, "CNAME", &["elsewhere.example.net."]);
    let fault = add_challenge(&zones, &domain, "ours").await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!("a text that was added to `{CHALLENGE}` isn't there, as where there is a CNAME")
    );
    route53.remove(CHALLENGE, "CNAME");

    // Some tools make each text a record of its own.
    route53.route(CHALLENGE, "TXT", "theirs", "\"theirs\"");
    let fault = add_challenge(&zones, &domain, "ours").await.unwrap_err();
    assert_eq!(
        fault.to_string(),
        format!("the texts of `{CHALLENGE}` have a routing policy or an alias, so none can be added")
    );
    assert_eq!(route53.answers(CHALLENGE, "TXT"), ["\"theirs\""]);
}

#[tokio::test]
async fn the_authorities_that_a_domain_allows_are_read() {
    let route53 = Route53::start();
    let zones = zones(&route53);
    let domain = "kafka.example.test".parse().unwrap();
    assert_eq!(allowed_authorities(&zones, &domain).await, Ok(None));
    route53.set("example.test", "CAA", &["0 issue \"one.example\"", "0 iodef \"mailto:a@example.test\""]);
    assert_eq!(allowed_authorities(&zones, &domain).await, Ok(Some(vec!["one.example".to_owned()])));
    route53.set(
        "kafka.example.test",
        "CAA",
        &["0 issuewild \"two.example; policy=ev\"", "0 issue \"one.example\""],
    );
    assert_eq!(allowed_authorities(&zones, &domain).await, Ok(Some(vec!["two.example".to_owned()])));
    route53.set("kafka.example.test", "CAA", &["0 issue \";\""]);
    assert_eq!(allowed_authorities(&zones, &domain).await, Ok(Some(Vec::new())));
}

/// The same fleet as on other DNS servers, with its own account at AWS.
#[test]
fn the_names_of_a_fleet_are_kept_in_its_account() {
    let mut plane = ControlPlane::lease();
    plane.run_controllers();
    let route53 = Route53::start();
    let tree = on(&plane);
    let own = certificate(&["acme.kafka.example.test", "*.acme.kafka.example.test"]);
    keep_in(
        &tree,
        "route53",
        &format!(
            "provider: aws\ncredentials: |\n  [default]\n  aws_access_key_id = {KEY}\n  aws_secret_access_key = {SECRET}\n"
        ),
        &fields(&own),
    );
    let (authority, url) = (route53.authority(), route53.url());
    let run = |command: &str| {
        let variables = [("SSL_CERT_FILE", authority.as_str()), ("AWS_ENDPOINT_URL_ROUTE_53", url.as_str())];
        tree.run_with(command, &variables, "").says_nothing_of(&[SECRET])
    };
    route53.set(&broker(1), "A", &["192.0.2.66"]);
    run(APPLY).expect(0);
    serve_all(&plane);
    run(PLAN).expect(2).says(&[
        "makes 3 DNS records",
        "the DNS name broker-1--orders.acme.kafka.example.test leads to 192.0.2.66 already",
    ]);
    assert_eq!(route53.serial(), 0);
    run(APPLY).expect(0);
    assert_eq!(route53.answers(&broker(1), "A"), ["192.0.2.66"]);
    route53.remove(&broker(1), "A");
    run(APPLY).expect(0);
    assert_eq!(route53.answers(BOOTSTRAP, "A"), ["192.0.2.10"]);
    assert_eq!(route53.answers(&broker(1), "A"), ["192.0.2.12"]);
    let owner = route53.answers(&format!("_streamfleet.{BOOTSTRAP}"), "TXT");
    assert!(owner[0].contains("resource=acme/orders"), "{owner:?}");
    let serial = route53.serial();
    run(APPLY).expect(0).says(&["Nothing to do"]);
    assert_eq!(route53.serial(), serial);

    // What can't be asked for stays as it is.
    route53.refuse(100, 403, "AccessDenied");
    serve(&plane, BOOTSTRAP, json!([{"ip": "192.0.2.20"}]));
    run(APPLY).expect(0).says(&[
        "the DNS records of example.test can't be read, and stay as they are: the access key may not do that: Rate exceeded",
    ]);
    route53.refuse(0, 0, "");
    run(APPLY).expect(0);
    assert_eq!(route53.answers(BOOTSTRAP, "A"), ["192.0.2.20"]);

    tree.edit(ORDERS, "cluster_access: Internal & External", "cluster_access: Internal");
    run(APPLY).expect(0);
    assert!(route53.answers(BOOTSTRAP, "A").is_empty());
    assert!(route53.answers(&format!("_streamfleet.{BOOTSTRAP}"), "TXT").is_empty());
    assert_eq!(route53.answers("theirs.kafka.example.test", "A"), ["192.0.2.99"]);
}

#[test]
fn each_partition_of_aws_has_a_route_53_of_its_own() {
    let of = |region| format!("{:?}", Route53Login::new(&account(region), None, "".to_owned().into()));
    assert_eq!(of(Some("eu-central-1")), "Route53Login(https://route53.amazonaws.com)");
    assert_eq!(of(None), "Route53Login(https://route53.amazonaws.com)");
    assert_eq!(of(Some("cn-north-1")), "Route53Login(https://route53.amazonaws.com.cn)");
    assert_eq!(of(Some("us-gov-west-1")), "Route53Login(https://route53.us-gov.amazonaws.com)");
}
