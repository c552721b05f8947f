use serde_json::json;

use super::*;

const PAYMENTS: &str = "kind: Cluster\norganization: acme\nidentifier: payments\n";

#[test]
fn a_document_goes_with_what_is_about_it() {
    let others = |text: &str| text.replace("ORDERS", HEADER).replace("PAYMENTS", PAYMENTS);
    for (before, after) in [
        ("# of orders\nORDERS---\n# of payments\nPAYMENTS", "# of payments\nPAYMENTS"),
        ("# all\n\n# of orders\nORDERS---\nPAYMENTS", "# all\n\n---\nPAYMENTS"),
        ("# all\n---\nORDERS---\nPAYMENTS", "# all\n---\nPAYMENTS"),
        ("PAYMENTS---\n# of orders\nORDERS# end of orders\n", "PAYMENTS"),
        ("PAYMENTS# end\n...\n# of orders\n---\nORDERS", "PAYMENTS# end\n...\n"),
        ("%YAML 1.2\n---\nORDERS...\n%YAML 1.2\n---\nPAYMENTS", "%YAML 1.2\n---\nPAYMENTS"),
        ("ORDERS--- # with a comment\nPAYMENTS", "--- # with a comment\nPAYMENTS"),
        ("PAYMENTS---\nORDERS---\n# nothing\n", "PAYMENTS---\n# nothing\n"),
        ("{\"a\": 1}\n---\nORDERS---\n- ? a\n", "{\"a\": 1}\n---\n- ? a\n"),
    ] {
        let (before, after) = (others(before), others(after));
        assert_eq!(remove(&before, &orders()), Ok(Some(after.clone())), "{before}");
        let windows = |text: &str| format!("\u{feff}{}", text.replace('\n', "\r\n"));
        assert_eq!(remove(&windows(&before), &orders()), Ok(Some(windows(&after))));
    }
}

#[test]
fn with_the_last_document_the_file_goes() {
    for text in [HEADER.to_owned(), format!("# about it\n---\n{HEADER}...\n"), format!("---\n---\n{HEADER}")]
    {
        assert_eq!(remove(&text, &orders()), Ok(None), "{text}");
    }
}

#[test]
fn a_document_comes_behind_the_others() {
    let wanted = json!({"identifier": "orders", "kind": "Cluster", "organization": "acme"});
    let own = "kind: Cluster\norganization: acme\nidentifier: orders\n";
    for (before, after) in [
        ("", own.to_owned()),
        ("# only a comment", format!("# only a comment\n{own}")),
        ("a: 1", format!("a: 1\n---\n{own}")),
        ("---\na: |+\n  x\n\n", format!("---\na: |+\n  x\n\n---\n{own}")),
        ("a: 1\n...\n", format!("a: 1\n...\n---\n{own}")),
        ("\u{feff}a: 1\r\n", format!("\u{feff}a: 1\r\n---\r\n{}", own.replace('\n', "\r\n"))),
    ] {
        assert_eq!(append(before, &wanted).as_ref(), Ok(&after), "{before}");
        assert_eq!(read(&after, &orders()).as_ref(), Ok(&wanted));
    }
}

#[test]
fn a_new_file_reads_as_people_write_it() {
    let cluster = json!({
        "apiVersion": "streamfleet/v1", "kind": "Cluster", "organization": "acme", "infrastructure": "eu",
        "identifier": "orders", "cluster_type": "kafka", "tenancy_mode": "Shared", "kafka_units": 1,
        "tags": [{"key": "team", "value": "yes"}, {"key": "empty", "value": ""}],
        "advanced_config": {"version": "4.3.1", "number_of_zones": "3", "config": {"log.retention.ms": 5}},
        "deletion_protection": false, "unknown": [[1, 2], [], {}, null, "a\nb", {"c": {"d": [true]}}],
    });
    let text = write(&cluster).unwrap();
    assert_eq!(
        text,
        "apiVersion: streamfleet/v1\nkind: Cluster\norganization: acme\ninfrastructure: eu\nidentifier: orders\n\
         cluster_type: kafka\ntenancy_mode: Shared\nkafka_units: 1\ntags:\n  - key: team\n    value: \"yes\"\n  - key: empty\n    \
         value: \"\"\nadvanced_config:\n  number_of_zones: \"3\"\n  version: 4.3.1\n  config:\n    log.retention.ms: 5\n\
         deletion_protection: false\nunknown:\n  - - 1\n    - 2\n  - []\n  - {}\n  - null\n  - |-\n    a\n    b\n  - c:\n      \
         d:\n        - true\n"
    );
    let pem = "-----BEGIN CERTIFICATE-----\nMIIB\n-----END CERTIFICATE-----\n";
    let domain = json!({"kind": "BaseDomain", "organization": "acme", "domain": "k.example.com", "tls_cert": pem,
        "tls_key": {"encrypted": pem}});
    assert_eq!(
        write(&domain).unwrap(),
        "kind: BaseDomain\norganization: acme\ndomain: k.example.com\ntls_cert: |\n  -----BEGIN CERTIFICATE-----\n  MIIB\n  \
         -----END CERTIFICATE-----\ntls_key:\n  encrypted: |\n    -----BEGIN CERTIFICATE-----\n    MIIB\n    -----END \
         CERTIFICATE-----\n"
    );
}
