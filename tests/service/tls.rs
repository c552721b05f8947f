//! TLS on the port: the certificate, its renewal, and clients that speak something else.

use std::fs::{self, Permissions};
use std::io::{Read as _, Write as _};
use std::net::TcpStream;
use std::os::unix::fs::PermissionsExt as _;
use std::sync::Arc;

use rcgen::{KeyPair, generate_simple_self_signed};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::http::{address, ask};
use super::quiet;
use crate::support::Tree;
use crate::support::control_plane::PATIENCE;
use crate::support::serve::Serve;

const HOST: &str = "fleet.example.com";
const SERVE: &str = "serve --specs tree --config settings.toml";

fn tls_tree() -> Tree {
    let tree = quiet();
    let settings =
        "[api]\nlisten = \"127.0.0.1:0\"\ntls_cert_file = \"tls.crt\"\ntls_key_file = \"tls.key\"\n";
    fs::write(tree.beside("settings.toml"), settings).unwrap();
    renew(&tree);
    tree
}

fn renew(tree: &Tree) -> String {
    let made = generate_simple_self_signed([HOST.to_owned()]).unwrap();
    write(tree, "tls.key", &made.signing_key.serialize_pem());
    write(tree, "tls.crt", &made.cert.pem());
    made.cert.pem()
}

fn write(tree: &Tree, name: &str, text: &str) {
    fs::write(tree.beside(name), text).unwrap();
    fs::set_permissions(tree.beside(name), Permissions::from_mode(0o600)).unwrap();
}

/// The answer to a client that trusts this certificate alone.
fn ask_trusting(pem: &str, address: &str) -> std::io::Result<String> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let client =
        ClientConnection::new(Arc::new(config.with_no_client_auth()), ServerName::try_from(HOST).unwrap());
    let stream = TcpStream::connect(address)?;
    stream.set_read_timeout(Some(PATIENCE))?;
    let mut stream = StreamOwned::new(client.unwrap(), stream);
    stream.write_all(b"GET /healthz HTTP/1.1\r\nHost: h\r\nConnection: close\r\n\r\n")?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer)?;
    Ok(answer)
}

#[test]
fn a_certificate_is_renewed_while_the_daemon_runs_and_a_broken_one_is_not_taken() {
    let tree = tls_tree();
    let first = renew(&tree);
    let serve = Serve::start(&tree, SERVE);
    let address = &address(&serve);
    let is_shown =
        |pem: &str| ask_trusting(pem, address).is_ok_and(|answer| answer.starts_with("HTTP/1.1 200 "));
    assert!(is_shown(&first));

    // Plain HTTP gets an error, and silent or incomplete handshakes cost nothing.
    let plain = ask(address, "GET /healthz");
    assert_eq!(plain.status, 400);
    assert!(plain.body.contains("this port requires TLS, and the request came without"), "{}", plain.body);
    let silent: Vec<TcpStream> = (0..50).map(|_| TcpStream::connect(address).unwrap()).collect();
    for mut stream in &silent[..25] {
        stream.write_all(b"\x16\x03\x01\x02\x00\x01").unwrap();
    }
    assert!(is_shown(&first));
    drop(silent);

    let second = renew(&tree);
    serve.signal("HUP");
    serve.says(&["certificate reloaded"]);
    assert!(is_shown(&second) && !is_shown(&first));

    write(&tree, "tls.key", &KeyPair::generate().unwrap().serialize_pem());
    let told = || {
        serve
            .log()
            .lines()
            .filter(|line| line.contains("cannot reload the certificate; the previous one stays active"))
            .count()
    };
    let anew = "settings reloaded";
    let reloads = || serve.log().lines().filter(|line| line.contains(anew)).count();
    for _ in 0..3 {
        let before = reloads();
        serve.signal("HUP");
        serve.until("the settings are read anew", || (reloads() > before).then_some(()));
        assert!(is_shown(&second));
    }
    assert_eq!(told(), 1);
    serve.says(&["the private key does not belong to the certificate"]);

    // Also without a signal.
    let third = renew(&tree);
    serve.until("the new certificate is shown", || is_shown(&third).then_some(()));
    assert_eq!(serve.stop(), Some(0));
}

#[test]
fn settings_that_name_no_sound_certificate_are_refused() {
    let tree = tls_tree();
    let check = |code: i32, words: &[&str]| {
        tree.run("config check settings.toml").expect(code).says(words);
    };
    check(0, &["settings.toml is valid"]);
    fs::set_permissions(tree.beside("tls.key"), Permissions::from_mode(0o644)).unwrap();
    check(
        0,
        &[
            "every user of this machine may read `api.tls_key_file`",
            "remove that permission with `chmod o-r`",
        ],
    );
    write(&tree, "tls.key", &KeyPair::generate().unwrap().serialize_pem());
    check(
        1,
        &["the config file `settings.toml` is invalid", "the private key does not belong to the certificate"],
    );
    tree.run(SERVE).expect(1).says(&["the private key does not belong to the certificate"]);
    write(&tree, "tls.crt", "hello");
    check(1, &["the certificate is not PEM: it has no `-----BEGIN CERTIFICATE-----` line"]);
    fs::remove_file(tree.beside("tls.crt")).unwrap();
    check(0, &["`api.tls_cert_file` is", "and there is no such file"]);
    tree.run(SERVE).expect(1).says(&["cannot read `api.tls_cert_file`", "No such file or directory"]);

    fs::write(tree.beside("settings.toml"), "[api]\nlisten = \"0.0.0.0:0\"\n").unwrap();
    let clear = "which other machines may reach, and TLS is off: tokens and secrets are sent in plain text; set \
         `api.tls_cert_file` and `api.tls_key_file";
    check(0, &[clear]);
    let serve = Serve::start(&tree, SERVE);
    serve.says(&["WARN", clear]);
    assert_eq!(serve.stop(), Some(0));
}
