use super::*;

/// Keys made with `openssl` and `ssh-keygen` for these tests; for the usable ones, also the output of
/// `openssl pkey -pubout`.
macro_rules! sample {
    ($name:literal) => {
        include_str!(concat!("samples/", $name, ".pem"))
    };
}

fn refusal(key: &str) -> String {
    let fault = to_pkcs8_pem(key).expect_err("the key is at fault");
    assert_eq!(fault.part, Part::Key);
    let told = format!("{}: {} ({})", fault.code, fault.message, fault.hint);
    let quoted = key.lines().find(|line| !line.starts_with('-') && told.contains(*line) && line.len() > 8);
    assert_eq!(quoted, None, "a line of the key is quoted");
    told
}

#[test]
fn every_usual_form_becomes_pkcs8_of_the_same_key() {
    let samples = [
        (sample!("rsa-pkcs1"), sample!("rsa-pkcs1.public")),
        (sample!("rsa-pkcs8"), sample!("rsa-pkcs8.public")),
        (sample!("p256-sec1-with-parameters"), sample!("p256-sec1-with-parameters.public")),
        (sample!("p384-sec1"), sample!("p384-sec1.public")),
        (sample!("p521-sec1"), sample!("p521-sec1.public")),
        (sample!("ed25519-pkcs8"), sample!("ed25519-pkcs8.public")),
    ];
    for (key, public) in samples {
        let converted = to_pkcs8_pem(key).unwrap();
        assert!(converted.starts_with("-----BEGIN PRIVATE KEY-----\n"), "{public}");
        assert!(converted.ends_with("\n-----END PRIVATE KEY-----\n"), "{public}");
        assert!(converted.lines().all(|line| line.len() <= 64), "{public}");
        assert_eq!(
            *to_pkcs8_pem(&converted).unwrap(),
            *converted,
            "converting again changes nothing: {public}"
        );
        let spki = pem_blocks(public).unwrap()[0].decode().unwrap();
        let bits = PrivateKey::parse(&converted).unwrap().public;
        assert!(spki.ends_with(&bits), "{public}");
    }
}

#[test]
fn what_openssl_converts_is_the_same_to_the_byte() {
    assert_eq!(*to_pkcs8_pem(sample!("rsa-pkcs1")).unwrap(), sample!("rsa-pkcs8"));
    assert_eq!(*to_pkcs8_pem(sample!("ed25519-pkcs8")).unwrap(), sample!("ed25519-pkcs8"));
}

#[test]
fn version_2_of_pkcs8_which_java_cannot_read_becomes_version_1() {
    let key = Ed25519KeyPair::generate().unwrap();
    let version_2 = key.to_pkcs8().unwrap();
    let read = read_pkcs8(version_2.as_ref()).unwrap();
    assert_eq!(*read.pkcs8, key.to_pkcs8v1().unwrap().as_ref());
}

#[test]
fn each_unusable_key_is_told_with_the_way_out() {
    let encrypted = "key-encrypted: the private key is encrypted with a passphrase, which Streamfleet can't enter (decrypt \
                     it with `openssl pkey -in KEY -out PLAIN-KEY`; Streamfleet seals it again when it writes it)";
    let types = "(use an RSA key, an EC key on P-256, P-384 or P-521, or an Ed25519 key)";
    let again = "(copy the whole key again, from its BEGIN line to its END line)";
    let cases = [
        (sample!("encrypted-pkcs8").to_owned(), encrypted.to_owned()),
        (sample!("rsa-encrypted-header").to_owned(), encrypted.to_owned()),
        (
            sample!("openssh").to_owned(),
            format!("key-unknown-type: the private key is of the type `OPENSSH PRIVATE KEY` {types}"),
        ),
        (
            sample!("secp256k1-sec1").to_owned(),
            format!("key-unknown-type: the private key is not on P-256, P-384 or P-521, or damaged {types}"),
        ),
        (
            sample!("x25519-pkcs8").to_owned(),
            format!("key-unknown-type: the private key is of a type that TLS servers can't use, or damaged {types}"),
        ),
        (
            sample!("rsa-1024").to_owned(),
            "key-size: the private key is an RSA key of fewer than 2048 or more than 8192 bits (request a new certificate \
             for a key of 2048 to 8192 bits)"
                .to_owned(),
        ),
        (
            "secret".to_owned(),
            "key-not-pem: the private key is not PEM: it has no `-----BEGIN PRIVATE KEY-----` line (convert it with \
             `openssl pkey -inform DER -in KEY`; in YAML, put `|` before a text of several lines)"
                .to_owned(),
        ),
        (
            format!("{}{}", sample!("rsa-pkcs8"), sample!("p384-sec1")),
            "several-keys: there are several blocks instead of one private key (keep only the key that belongs to the \
             certificate)"
                .to_owned(),
        ),
        (
            format!("{}-----BEGIN CERTIFICATE-----\n-----END CERTIFICATE-----\n", sample!("rsa-pkcs8")),
            "certificate-in-key: the private key contains a certificate (move certificates to the certificate's field and \
             keep only the key here)"
                .to_owned(),
        ),
        (
            sample!("rsa-pkcs8").replace("-----END PRIVATE KEY-----", ""),
            format!("key-damaged: the private key is damaged: its `PRIVATE KEY` block has no END line {again}"),
        ),
        (
            sample!("rsa-pkcs8").replace('\n', " "),
            "key-on-one-line: the private key has lost its line breaks: BEGIN and END are not on lines of their own (in \
             YAML, write `tls_key: |` and indent the lines below it; elsewhere, keep its line breaks)"
                .to_owned(),
        ),
        (
            "-----BEGIN HUNTER2-----\n-----END HUNTER2-----\n".to_owned(),
            format!("key-unknown-type: the private key is of an unknown type {types}"),
        ),
        (
            "-----BEGIN HUNTER2-----\n".to_owned(),
            format!("key-damaged: the private key is damaged: one of its blocks has no END line {again}"),
        ),
        (
            sample!("rsa-pkcs8").replacen("MII", "M*I", 1),
            format!("key-damaged: the private key is damaged: its base64 can't be decoded {again}"),
        ),
        (
            sample!("rsa-pkcs1").replacen("MII", "MIJ", 1),
            format!("key-damaged: the private key is damaged: it is not an RSA key {again}"),
        ),
    ];
    for (key, expected) in cases {
        assert_eq!(refusal(&key), expected);
    }
}
