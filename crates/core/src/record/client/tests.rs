use std::sync::Arc;

use serde_json::json;

use super::*;
use crate::component::fixtures::{cluster, user, with_domain, with_identity_provider};
use crate::spec::{ClusterAccess, DnsProvider, Exposure};

/// A cluster with internal and external access.
fn both(overlay: Value) -> ResolvedCluster {
    let mut cluster = cluster(overlay);
    Arc::make_mut(&mut cluster.spec).advanced_config.cluster_access = ClusterAccess::InternalAndExternal;
    with_domain(cluster, DnsProvider::None)
}

fn named(cluster: &ResolvedCluster, known: Option<&Outputs>, listener: &str) -> ClientProperties {
    let mut all = client_properties(cluster, known, None).into_iter();
    all.find(|properties| properties.listener == listener).unwrap()
}

#[test]
fn before_anything_was_seen_addresses_are_known_and_the_authority_is_named() {
    insta::assert_snapshot!("inside_unseen", named(&both(json!({})), None, "tls").to_java());
}

#[test]
fn what_was_seen_of_the_cluster_is_trusted() {
    let known = Outputs {
        bootstrap: [("external".to_owned(), "lb-1.example.net:9094".to_owned())].into(),
        certificates: [(
            "admin".to_owned(),
            "-----BEGIN CERTIFICATE-----\nAA==\n-----END CERTIFICATE-----\n".to_owned(),
        )]
        .into(),
        ..Outputs::default()
    };
    insta::assert_snapshot!("inside_seen", named(&both(json!({})), Some(&known), "admin").to_java());
}

#[test]
fn from_outside_the_authority_that_comes_with_the_certificate_is_trusted() {
    let authority = rcgen::generate_simple_self_signed(["k.example.com".to_owned()]).unwrap().cert.pem();
    let mut cluster = both(json!({}));
    insta::assert_snapshot!("outside_unknown_authority", named(&cluster, None, "external").to_java());
    cluster.domain.as_mut().unwrap().tls_cert = format!("# ours\n{authority}");
    let properties = named(&cluster, None, "external").properties;
    let expected = BTreeMap::from([
        ("bootstrap.servers", "orders.k.example.com:9094"),
        ("sasl.mechanism", "SCRAM-SHA-512"),
        ("security.protocol", "SASL_SSL"),
        ("ssl.truststore.certificates", authority.as_str()),
        ("ssl.truststore.type", "PEM"),
    ]);
    assert!(properties.iter().map(|(key, value)| (*key, value.as_str())).eq(expected));
}

#[test]
fn clients_with_certificates_are_told_where_theirs_is() {
    let cluster = both(json!({"advanced_config": {"authentication": "mtls"}}));
    insta::assert_snapshot!("mtls", named(&cluster, None, "external").to_java());
    assert_eq!(named(&cluster, None, "admin").properties["sasl.mechanism"], "SCRAM-SHA-512");
}

#[test]
fn clients_with_tokens_are_told_where_they_get_them() {
    let provider = json!({"token_endpoint": "https://idp.example.com/token", "ca_cert": "x"});
    let cluster = with_identity_provider(both(json!({})), provider);
    insta::assert_snapshot!("oauth", named(&cluster, None, "external").to_java());
    let hostile = json!({"token_endpoint": "https://idp.example.com/$(halt)"});
    let properties = named(&with_identity_provider(both(json!({})), hostile), None, "external");
    assert!(properties.notes.iter().any(|note| note.ends_with("allowed.urls=URL")), "{:?}", properties.notes);
    let cluster = with_identity_provider(both(json!({})), json!({}));
    insta::assert_snapshot!("oauth_without_token_endpoint", named(&cluster, None, "tls").to_java());
    assert_eq!(named(&cluster, None, "admin").properties["sasl.mechanism"], "SCRAM-SHA-512");
}

#[test]
fn a_gateway_is_reached_at_its_own_port() {
    let mut cluster = both(json!({}));
    Arc::make_mut(&mut cluster.fleet_spec).advanced_config.exposure = Exposure::TlsRoute;
    let properties = named(&cluster, None, "external").properties;
    assert_eq!(properties["bootstrap.servers"], "orders.k.example.com:443");
}

#[test]
fn only_the_listeners_that_there_are_are_told() {
    for (access, expected) in [
        ("Internal", &["tls", "admin"][..]),
        ("External", &["external", "admin"]),
        ("Internal & External", &["tls", "external", "admin"]),
    ] {
        let cluster = cluster(json!({"advanced_config": {"cluster_access": access}}));
        let cluster = with_domain(cluster, DnsProvider::None);
        let all = client_properties(&cluster, None, None);
        let found: Vec<&str> = all.iter().map(|properties| properties.listener).collect();
        assert_eq!(found, expected, "{access}");
    }
}

#[test]
fn the_record_has_all_of_it_and_no_secret() {
    insta::assert_json_snapshot!("record", field(&cluster(json!({})), None));
}

#[test]
fn a_user_is_told_its_own_login_and_not_the_administrators_listener() {
    let scram = both(json!({}));
    let mtls = both(json!({"advanced_config": {"authentication": "mtls"}}));
    let provider = json!({"token_endpoint": "https://idp.example.com/token"});
    let oauth = with_identity_provider(both(json!({})), provider);
    for (cluster, property, expected) in [
        (
            scram,
            "sasl.jaas.config",
            "the value of `sasl.jaas.config` in the Secret kafka-acme--orders/billing".to_owned(),
        ),
        (
            mtls,
            "ssl.keystore.location",
            "a file with the values of `user.key` and `user.crt` in the Secret kafka-acme--orders/billing".to_owned(),
        ),
        (
            oauth,
            "sasl.jaas.config",
            "`org.apache.kafka.common.security.oauthbearer.OAuthBearerLoginModule required clientId=\"ID\" \
             clientSecret=\"SECRET\";`, with the id and secret of the client whose tokens name `billing` at the \
             identity provider"
                .to_owned(),
        ),
    ] {
        let of_user = client_properties(&cluster, None, Some(&user(json!({}))));
        let listeners: Vec<&str> = of_user.iter().map(|it| it.listener).collect();
        assert_eq!(listeners, ["tls", "external"]);
        let of_all = client_properties(&cluster, None, None);
        for (of_user, of_all) in of_user.iter().zip(&of_all) {
            assert_eq!(of_user.properties, of_all.properties);
            assert_eq!(of_user.to_add[property], expected);
        }
    }
}
