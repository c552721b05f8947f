//! How far the probe gets at a real broker, by every login, and what it says when something is wrong.

use std::collections::BTreeMap;

use serde_json::json;
use streamfleet::component::probe::{
    ProbeFailure, ProbeLevel, ProbeLogin, ProbeOrder, ProbePlace, ProbeTrust, TOPIC, TokenRequest,
};
use streamfleet::probe::{ProbeLimits, Prober};

use super::pki::Authority;
use super::rights;
use super::stage::{
    ADVERTISED, CLOSED, EXPIRED, MTLS, OAUTH, OLD_LEAF, OTHER_NAME, PASSWORD, SCRAM, Stage, TOKEN_USER,
    Tokens, USER, broker_host, check, sentence, verdict,
};
use crate::kafka::identity_provider::IdentityProvider;

const AUDIENCE: &str = "kafka";
const CLIENT_SECRET: &str = "hush-hush-0815";
const BROKER: ProbePlace = ProbePlace::Broker(0);

/// Every name is reached, the bootstrap up to identity and the broker up to its record.
#[track_caller]
fn assert_reached(stage: &Stage, order: &ProbeOrder) {
    let report = stage.check_until("every name is reached", order, |report| {
        verdict(report, BROKER).reached == Some(ProbeLevel::Write)
    });
    assert!(report.is_reachable() && report.first_failure().is_none(), "{report:#?}");
    assert_eq!(verdict(&report, ProbePlace::Bootstrap).reached, Some(ProbeLevel::Identity));
    assert_eq!(verdict(&report, BROKER).note, None);
    for level in ProbeLevel::ALL {
        assert!(report.slowest(level).is_some(), "{level} {report:#?}");
    }
}

/// The broker's name fails at this level with this sentence.
#[track_caller]
fn assert_fails(stage: &Stage, order: &ProbeOrder, level: ProbeLevel, sentence: &str) {
    let report = stage.check(order);
    assert_eq!(self::sentence(&report, BROKER), format!("broker 0: {sentence}"));
    assert_eq!(verdict(&report, BROKER).failed_at(), Some(level), "{report:#?}");
    for secret in [PASSWORD, CLIENT_SECRET] {
        assert!(!format!("{order:?} {report:?}").contains(secret));
    }
}

fn scram(password: &str) -> Option<ProbeLogin> {
    Some(ProbeLogin::Scram { user: USER.to_owned(), password: password.to_owned().into() })
}

fn by_token(url: &str, client_id: &str, authority: Option<&str>) -> Option<ProbeLogin> {
    Some(ProbeLogin::OAuth(TokenRequest {
        token_endpoint: format!("{url}/token"),
        client_id: client_id.to_owned(),
        client_secret: CLIENT_SECRET.to_owned().into(),
        scope: None,
        authorities: authority.map(str::to_owned),
    }))
}

#[test]
fn a_cluster_is_reached_by_every_login_and_each_failure_has_its_level_and_sentence() {
    let claims = |audience: &str| json!({"sub": TOKEN_USER, "aud": [audience]});
    let provider = IdentityProvider::start(BTreeMap::from([
        ("probe", claims(AUDIENCE)),
        ("neighbour", claims("another")),
    ]));
    let tokens =
        Tokens { url: provider.url.clone(), authority: provider.authority.clone(), audience: AUDIENCE };
    let stage = Stage::set(&[0], Some(tokens));
    assert_reached(&stage, &stage.order(&[0], SCRAM));
    names_ports_and_certificates(&stage);
    passwords_and_identity(&stage);
    certificates_of_users(&stage);
    tokens_of_users(&stage, &provider);
    records(&stage);
    assert_reached(&stage, &stage.order(&[0], SCRAM));
    rights::every_other_call_is_refused(&stage);
    rights::every_right_is_needed(&stage);
}

fn names_ports_and_certificates(stage: &Stage) {
    let (resolve, connect, tls) = (ProbeLevel::Resolve, ProbeLevel::Connect, ProbeLevel::Tls);
    let host = broker_host(0);
    stage.names.remove(&host);
    assert_fails(stage, &stage.order(&[0], SCRAM), resolve, &format!("the name {host} has no address"));
    stage.names.set(&host, super::stage::address(0));

    // The same address is denied where the settings don't allow it.
    let prober = Prober::new(Box::new(stage.names.clone()), Vec::new(), ProbeLimits::default());
    let report = check(&prober, &stage.order(&[0], SCRAM));
    let denied = "is a loopback address of the host that Streamfleet runs on";
    let expected = format!(
        "broker 0: the name {host} leads to an address that the settings don't allow: ADDRESS-0 {denied}"
    );
    assert_eq!(sentence(&report, BROKER), expected);
    assert!(matches!(report.first_failure().unwrap().failure, Some(ProbeFailure::Denied(_))));

    let closed = stage.order(&[0], CLOSED);
    assert_fails(stage, &closed, connect, &format!("port {CLOSED} is closed (from ADDRESS-0)"));
    let other = "TLS ends with a certificate for other.example.com (from ADDRESS-0)";
    assert_fails(stage, &stage.order(&[0], OTHER_NAME), tls, other);
    let report = stage.check(&stage.order(&[0], EXPIRED));
    let said = sentence(&report, BROKER);
    let begin = format!(
        "broker 0: TLS ends with a certificate that expired at {:.7}",
        jiff::Timestamp::now().to_string()
    );
    assert!(said.starts_with(&begin) && said.ends_with("Z (from ADDRESS-0)"), "{said}");
    let report = stage.check(&stage.order(&[0], OLD_LEAF));
    let said = sentence(&report, BROKER);
    let begin = "broker 0: TLS ends with a certificate other than the one that the broker was given; it is valid until ";
    assert!(said.starts_with(begin), "{said}");
    assert_eq!(verdict(&report, BROKER).failed_at(), Some(tls));
    // If nobody knows which one was given, any that clients accept is fine.
    assert_reached(stage, &ProbeOrder { certificate: None, ..stage.order(&[0], OLD_LEAF) });

    let another = ProbeTrust::Certificates(Authority::new("another authority").pem);
    let order = ProbeOrder { trust: another, ..stage.order(&[0], SCRAM) };
    let issuer = "TLS ends with a certificate whose issuer clients aren't told to trust: \
                  CN=an authority for names (from ADDRESS-0)";
    assert_fails(stage, &order, tls, issuer);

    // Without a login, the probe ends after TLS.
    let report = stage.check(&ProbeOrder { login: None, ..stage.order(&[0], SCRAM) });
    assert!(report.is_reachable(), "{report:#?}");
    assert_eq!(verdict(&report, BROKER).reached, Some(tls));
}

fn passwords_and_identity(stage: &Stage) {
    let order = ProbeOrder { login: scram("guess"), ..stage.order(&[0], SCRAM) };
    let refused = "the login of orders-probe is refused: Authentication failed during authentication due to invalid \
                   credentials with SASL mechanism SCRAM-SHA-512 (from ADDRESS-0)";
    assert_fails(stage, &order, ProbeLevel::Login, refused);
    let order =
        ProbeOrder { login: by_token("https://127.0.0.1:1", "probe", None), ..stage.order(&[0], SCRAM) };
    let port_closed = "the identity provider gives no token: its port is closed (from ADDRESS-0)";
    assert_fails(stage, &order, ProbeLevel::Login, port_closed);

    let told = format!(
        "clients are told to connect to internal-0.example.net:{ADVERTISED} instead of {}:{ADVERTISED} (from ADDRESS-0)",
        broker_host(0)
    );
    assert_fails(stage, &stage.order(&[0], ADVERTISED), ProbeLevel::Identity, &told);
    let mut order = stage.order(&[0], SCRAM);
    order.brokers = stage.order(&[5], SCRAM).brokers;
    stage.names.set(&broker_host(5), super::stage::address(0));
    let report = stage.check(&order);
    let expected = format!(
        "broker 5: the name {} leads to another cluster, which advertises {}:{SCRAM} (from ADDRESS-0)",
        broker_host(5),
        broker_host(0)
    );
    assert_eq!(sentence(&report, ProbePlace::Broker(5)), expected);
    let order = stage.order(&[0, 5], SCRAM);
    let unlisted =
        "broker 5: the answering broker doesn't know it as a member of the cluster (from ADDRESS-0)";
    assert_eq!(sentence(&stage.check(&order), ProbePlace::Broker(5)), unlisted);
}

fn certificates_of_users(stage: &Stage) {
    let with = |authority: &Authority| {
        let own = authority.user(USER);
        let login = ProbeLogin::Mtls { certificate: own.certificate, key: own.key.into() };
        ProbeOrder { login: Some(login), ..stage.order(&[0], MTLS) }
    };
    assert_reached(stage, &with(&stage.users));
    let report = stage.check(&with(&Authority::new("a stranger")));
    let said = sentence(&report, BROKER);
    assert!(
        said.starts_with("broker 0: the login of the probe's certificate is refused: the broker says "),
        "{said}"
    );
    assert_eq!(verdict(&report, BROKER).failed_at(), Some(ProbeLevel::Login));
}

fn tokens_of_users(stage: &Stage, provider: &IdentityProvider) {
    let IdentityProvider { url, authority, .. } = provider;
    let with = |client: &str, authority: Option<&str>| ProbeOrder {
        login: by_token(url, client, authority),
        ..stage.order(&[0], OAUTH)
    };
    assert_reached(stage, &with("probe", Some(authority)));
    let unknown = "the identity provider gives no token: its answer is 401 Unauthorized, invalid_client \
                   (from ADDRESS-0)";
    assert_fails(stage, &with("nobody", Some(authority)), ProbeLevel::Login, unknown);
    let order = with("neighbour", Some(authority));
    let report = stage.check(&order);
    let said = sentence(&report, BROKER);
    assert!(said.starts_with("broker 0: the login of neighbour is refused: "), "{said}");
    assert_eq!(verdict(&report, BROKER).failed_at(), Some(ProbeLevel::Login));
    let order = with("probe", Some(&stage.authority.pem));
    let untrusted = "the identity provider gives no token: TLS ends with a certificate whose issuer clients aren't \
                     told to trust: CN=a proxy for tests";
    let said = sentence(&stage.check(&order), BROKER);
    assert!(said.starts_with(&format!("broker 0: {untrusted}")), "{said}");

    // A listener for tokens offers no passwords.
    let order = ProbeOrder { login: scram(PASSWORD), ..stage.order(&[0], OAUTH) };
    let mechanism = "the broker doesn't offer the login of the plan; it offers: OAUTHBEARER (from ADDRESS-0)";
    assert_fails(stage, &order, ProbeLevel::Login, mechanism);
}

fn records(stage: &Stage) {
    stage.set_option("max.message.bytes", "10");
    let refused = format!(
        "broker 0: a record for partition 0 of {TOPIC} is refused: MESSAGE_TOO_LARGE (from ADDRESS-0)"
    );
    let order = stage.order(&[0], SCRAM);
    let report = stage.check_until("the record is refused", &order, |report| !report.is_reachable());
    assert_eq!(sentence(&report, BROKER), refused);
    assert_eq!(verdict(&report, BROKER).failed_at(), Some(ProbeLevel::Write));
    stage.set_option("max.message.bytes", "65536");
}
