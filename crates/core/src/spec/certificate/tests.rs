use rcgen::{
    BasicConstraints, CertificateParams, DnType, ExtendedKeyUsagePurpose, IsCa, Issuer, KeyPair,
    KeyUsagePurpose, date_time_ymd,
};

use super::*;

fn key() -> KeyPair {
    KeyPair::generate().unwrap()
}

fn params(names: &[&str]) -> CertificateParams {
    let mut params =
        CertificateParams::new(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>()).unwrap();
    params.not_before = date_time_ymd(2026, 1, 1);
    params.not_after = date_time_ymd(2027, 1, 1);
    params
}

/// A chain of three as an authority issues it: the domain's own certificate, an intermediate one, the root.
struct Authority {
    chain: [String; 3],
    key: String,
}

impl Authority {
    fn new(names: &[&str]) -> Authority {
        let authority = |name: &str| {
            let mut params = params(&[]);
            params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
            params.distinguished_name.push(DnType::CommonName, name);
            params
        };
        let (root_key, middle_key, own_key) = (key(), key(), key());
        let root = authority("root");
        let mut middle = authority("middle");
        middle.not_after = date_time_ymd(2026, 6, 1);
        let root_pem = root.self_signed(&root_key).unwrap().pem();
        let root = Issuer::new(root, root_key);
        let middle_pem = middle.signed_by(&middle_key, &root).unwrap().pem();
        let middle = Issuer::new(middle, middle_key);
        let own_pem = params(names).signed_by(&own_key, &middle).unwrap().pem();
        Authority { chain: [own_pem, middle_pem, root_pem], key: own_key.serialize_pem() }
    }
}

fn self_signed(names: &[&str]) -> (String, String) {
    let key = key();
    (params(names).self_signed(&key).unwrap().pem(), key.serialize_pem())
}

fn faults(cert: &str, key: Option<&str>) -> String {
    let faults = Certificate::parse(cert, key).expect_err("the certificate is at fault");
    let line = |fault: &MaterialFault| {
        format!("{:?} {}: {} ({})\n", fault.part, fault.code, fault.message, fault.hint)
    };
    faults.iter().map(line).collect()
}

#[test]
fn a_chain_in_order_is_accepted_and_lasts_as_long_as_its_shortest_part() {
    let authority = Authority::new(&["*.K.example.com", "k.example.com"]);
    let certificate = Certificate::parse(&authority.chain.concat(), Some(&authority.key)).unwrap();
    assert_eq!(certificate.names, ["*.k.example.com", "k.example.com"]);
    assert_eq!(certificate.not_before.to_string(), "2026-01-01T00:00:00Z");
    assert_eq!(certificate.not_after.to_string(), "2026-06-01T00:00:00Z");
}

#[test]
fn a_wildcard_stands_for_one_label() {
    let (cert, _) = self_signed(&["*.k.example.com", "exact.example.com"]);
    let certificate = Certificate::parse(&cert, None).unwrap();
    for covered in ["orders.k.example.com", "BROKER-0--orders.K.example.com", "exact.example.com"] {
        assert!(certificate.covers(covered), "{covered}");
    }
    for other in [
        "k.example.com",
        "a.b.k.example.com",
        ".k.example.com",
        "x.exact.example.com",
        "orders.xk.example.com",
        "",
    ] {
        assert!(!certificate.covers(other), "{other}");
    }
}

#[test]
fn each_mistake_in_a_certificate_is_told_with_what_to_do() {
    let (cert, key) = self_signed(&["k.example.com"]);
    let (nameless, _) = self_signed(&[]);
    let [own, middle, root] = Authority::new(&["k.example.com"]).chain;
    let broken = cert.replacen("MII", "M*I", 1);
    let no_certificate = "-----BEGIN CERTIFICATE-----\nAAAA\n-----END CERTIFICATE-----\n";
    let request = "-----BEGIN CERTIFICATE REQUEST-----\nAAAA\n-----END CERTIFICATE REQUEST-----\n";
    let cases: [(&str, &str); 9] = [
        (
            "k.example.com",
            "certificate-not-pem: the certificate is not PEM: it has no `-----BEGIN CERTIFICATE-----` line (convert it \
             with `openssl x509 -inform DER -in CERT`; in YAML, put `|` before a text of several lines)\n",
        ),
        (
            &cert.replace("-----END", ""),
            "certificate-damaged: the certificate is damaged: its `CERTIFICATE` block has no END line (copy the whole \
             certificate again, from its BEGIN line to its END line)\n",
        ),
        (
            &broken,
            "certificate-damaged: the certificate is damaged: its base64 can't be decoded (copy the whole certificate again, from its BEGIN line to its END line)\n",
        ),
        (
            no_certificate,
            "certificate-damaged: the certificate is damaged: block 1 is not an X.509 certificate (copy the whole certificate again, from its BEGIN line to its END line)\n",
        ),
        (
            &format!("{cert}{key}"),
            "key-in-certificate: the certificate contains a private key, which would be stored and shown in plain text \
             (move the key to the key's field, and replace it if this text was shared)\n",
        ),
        (
            request,
            "certificate-foreign-block: the certificate contains a `CERTIFICATE REQUEST` block (keep only `CERTIFICATE` \
             blocks: the domain's own first, then the intermediate ones)\n",
        ),
        (
            &nameless,
            "certificate-no-names: the certificate names no host: clients check its subject alternative names, not the \
             common name (request a new one with the host names as subject alternative names of type DNS)\n",
        ),
        (
            &format!("{own}{root}"),
            "certificate-chain-order: certificate 1 of the chain is not signed by certificate 2 (put the domain's own certificate first, then each one that signed the one before it)\n",
        ),
        (
            &format!("{own}{middle}{cert}"),
            "certificate-chain-order: certificate 2 of the chain is not signed by certificate 3 (put the domain's own certificate first, then each one that signed the one before it)\n",
        ),
    ];
    for (text, expected) in cases {
        assert_eq!(faults(text, None), format!("Certificate {expected}"));
    }
}

/// Java's clients refuse such certificates, whatever their names.
#[test]
fn a_certificate_has_to_be_for_what_it_is_used_for() {
    use ExtendedKeyUsagePurpose::{Any, ClientAuth, ServerAuth};
    use KeyUsagePurpose::{DigitalSignature, KeyCertSign, KeyEncipherment};
    let own = |extended: &[ExtendedKeyUsagePurpose], usages: &[KeyUsagePurpose]| {
        let mut params = params(&["k.example.com"]);
        (params.extended_key_usages, params.key_usages) = (extended.to_vec(), usages.to_vec());
        params.self_signed(&key()).unwrap().pem()
    };
    assert_eq!(
        faults(&own(&[ClientAuth], &[]), None),
        "Certificate certificate-not-for-servers: the certificate is not for servers, so clients refuse it: its extended \
         key usage lacks `serverAuth` (request a new one with `serverAuth` in its extended key usage, or without an \
         extended key usage)\n"
    );
    assert_eq!(
        faults(&own(&[], &[KeyEncipherment]), None),
        "Certificate certificate-not-for-signing: the certificate's key may not sign, so clients refuse it: its key usage \
         lacks `digitalSignature` (request a new one with `digitalSignature` in its key usage, or without a key usage)\n"
    );
    for good in [
        own(&[ClientAuth, ServerAuth], &[DigitalSignature, KeyEncipherment]),
        own(&[Any], &[DigitalSignature]),
    ] {
        assert!(Certificate::parse(&good, None).is_ok());
    }
    let signed = |is_ca: IsCa, usages: &[KeyUsagePurpose]| {
        let mut issuer = params(&[]);
        issuer.distinguished_name.push(DnType::CommonName, "issuer");
        (issuer.is_ca, issuer.key_usages) = (is_ca, usages.to_vec());
        let issuer_key = key();
        let issuer_pem = issuer.self_signed(&issuer_key).unwrap().pem();
        let own =
            params(&["k.example.com"]).signed_by(&key(), &Issuer::new(issuer, issuer_key)).unwrap().pem();
        format!("{own}{issuer_pem}")
    };
    let ca = || IsCa::Ca(BasicConstraints::Unconstrained);
    for bad in [signed(IsCa::ExplicitNoCa, &[]), signed(IsCa::NoCa, &[]), signed(ca(), &[DigitalSignature])] {
        assert_eq!(
            faults(&bad, None),
            "Certificate certificate-issuer-no-ca: certificate 2 of the chain may not sign others, so clients refuse the \
             whole chain (request a chain from a certificate authority: each certificate after the first needs `CA:TRUE`, \
             and `keyCertSign` if it has a key usage)\n"
        );
    }
    assert!(Certificate::parse(&signed(ca(), &[KeyCertSign]), None).is_ok());
}

#[test]
fn a_key_that_belongs_elsewhere_is_told_from_a_chain_that_begins_at_the_wrong_end() {
    let (cert, _) = self_signed(&["k.example.com"]);
    let (_, other) = self_signed(&["k.example.com"]);
    assert_eq!(
        faults(&cert, Some(&other)),
        "Key key-does-not-fit: the private key does not belong to the certificate (use the key that the certificate was \
         requested with, and change both fields together)\n"
    );
    let Authority { chain: [own, middle, root], key } = Authority::new(&["k.example.com"]);
    let told = faults(&format!("{root}{middle}{own}"), Some(&key));
    assert!(told.contains("it belongs to certificate 3 of the chain: put that certificate first"), "{told}");
}

#[test]
fn all_mistakes_are_told_at_once() {
    let (nameless, _) = self_signed(&[]);
    let (other, _) = self_signed(&["k.example.com"]);
    let told = faults(&format!("{nameless}{other}"), Some("nothing"));
    let codes: Vec<&str> = told.lines().filter_map(|line| line.split([' ', ':']).nth(1)).collect();
    assert_eq!(codes, ["key-not-pem", "certificate-chain-order", "certificate-no-names"]);
}

#[test]
fn another_authority_is_told_from_the_same_one_by_its_name_and_key() {
    let signed = |name: &str, key: &KeyPair| {
        let mut authority = params(&[]);
        authority.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        authority.distinguished_name.push(DnType::CommonName, name);
        let root = authority.self_signed(key).unwrap().pem();
        let mut own = params(&["k.example.com"]);
        own.use_authority_key_identifier_extension = true;
        let issuer = Issuer::new(authority, key);
        (own.signed_by(&self::key(), &issuer).unwrap().pem(), root)
    };
    let (one, two) = (key(), key());
    let (first, root) = signed("one", &one);
    let whole = format!("{first}{root}");
    let Authority { chain, .. } = Authority::new(&["k.example.com"]);
    let [own, middle, top] = &chain;
    for (before, after, other) in [
        (&first, &signed("one", &one).0, false),
        (&first, &signed("two", &one).0, true),
        (&first, &signed("one", &two).0, true),
        // Whether the chain includes the authority's own certificate doesn't matter to clients.
        (&first, &whole, false),
        (&whole, &first, false),
        (&chain.concat(), &format!("{own}{middle}"), false),
        (own, &format!("{own}{middle}"), false),
        // A client that trusts the root can't build the path to it without the intermediate certificate.
        (&format!("{own}{middle}"), own, true),
        (top, top, false),
        (&first, &"…".to_owned(), false),
    ] {
        assert_eq!(is_of_another_authority(before, after), other, "{before}\n{after}");
    }
}
