use std::fs::Permissions;

use rcgen::{CertificateParams, KeyPair, date_time_ymd, generate_simple_self_signed};
use rustls::pki_types::ServerName;
use rustls::{ClientConfig, RootCertStore};
use tempfile::TempDir;
use tokio::io::{DuplexStream, duplex};
use tokio_rustls::TlsConnector;

use super::*;

const HOST: &str = "fleet.example.com";

struct Folder(TempDir);

impl Folder {
    fn new() -> Folder {
        Folder(TempDir::new().unwrap())
    }

    fn path(&self, name: &str) -> Utf8PathBuf {
        Utf8PathBuf::try_from(self.0.path().join(name)).unwrap()
    }

    fn write(&self, name: &str, text: impl AsRef<[u8]>) {
        fs::write(self.path(name), text).unwrap();
        fs::set_permissions(self.path(name), Permissions::from_mode(0o600)).unwrap();
    }

    fn files(&self) -> Files {
        Files { certificate: self.path("tls.crt"), key: self.path("tls.key") }
    }

    /// Replaces the configured files by a new pair.
    fn renew(&self, names: &[&str]) {
        let made =
            generate_simple_self_signed(names.iter().map(|name| (*name).to_owned()).collect::<Vec<_>>());
        let made = made.unwrap();
        self.write("tls.crt", made.cert.pem());
        self.write("tls.key", made.signing_key.serialize_pem());
    }

    fn refusal(&self) -> UnusableCertificate {
        self.files().doubts(Timestamp::UNIX_EPOCH).unwrap_err()
    }
}

/// The certificate that clients get.
fn shown(tls: &Tls) -> Vec<u8> {
    locked(&tls.held).pair.cert[0].to_vec()
}

async fn connect(pem: &str, stream: DuplexStream) -> std::io::Result<()> {
    let mut roots = RootCertStore::empty();
    roots.add(CertificateDer::from_pem_slice(pem.as_bytes()).unwrap()).unwrap();
    let config = ClientConfig::builder_with_provider(Arc::new(default_provider()));
    let config = config.with_safe_default_protocol_versions().unwrap().with_root_certificates(roots);
    let connector = TlsConnector::from(Arc::new(config.with_no_client_auth()));
    let mut stream = connector.connect(ServerName::try_from(HOST).unwrap(), stream).await?;
    stream.write_all(b"hello").await?;
    stream.shutdown().await?;
    // A server that has gone may cut the end of the handshake short.
    let _ = stream.read_to_end(&mut Vec::new()).await;
    Ok(())
}

#[tokio::test]
async fn who_speaks_tls_is_shown_the_certificate() {
    let folder = Folder::new();
    folder.renew(&[HOST]);
    let handshake = Handshake::new(Tls::open(folder.files()).unwrap()).unwrap();
    let (near, far) = duplex(1 << 16);
    let pem = fs::read_to_string(folder.path("tls.crt")).unwrap();
    let client = tokio::spawn(async move { connect(&pem, near).await });
    let mut stream = handshake.shake(far, "").await.unwrap();
    let mut read = Vec::new();
    stream.read_to_end(&mut read).await.unwrap();
    assert_eq!(read, b"hello");
    drop(stream);
    client.await.unwrap().unwrap();
}

#[tokio::test(start_paused = true)]
async fn who_speaks_http_is_told_and_who_says_nothing_is_left() {
    let folder = Folder::new();
    folder.renew(&[HOST]);
    let handshake = Handshake::new(Tls::open(folder.files()).unwrap()).unwrap();
    let (mut near, far) = duplex(1 << 16);
    near.write_all(b"GET /healthz HTTP/1.1\r\nHost: h\r\n\r\n").await.unwrap();
    assert!(handshake.shake(far, "").await.is_none());
    let mut answer = String::new();
    near.read_to_string(&mut answer).await.unwrap();
    let (head, body) = answer.split_once("\r\n\r\n").unwrap();
    assert!(head.starts_with("HTTP/1.1 400 Bad Request\r\n"), "{head}");
    let problem: serde_json::Value = serde_json::from_str(body).unwrap();
    assert_eq!(problem["detail"], "this port requires TLS, and the request came without");
    assert_eq!(problem["hint"], "use the same address with `https://`");

    for said in [&b""[..], b"\x16", b"\x16\x03\x01\x02\x00"] {
        let (mut near, far) = duplex(1 << 16);
        near.write_all(said).await.unwrap();
        assert!(handshake.shake(far, "").await.is_none(), "{said:?}");
    }
}

#[test]
fn a_new_pair_is_shown_and_a_broken_one_is_not() {
    let folder = Folder::new();
    folder.renew(&[HOST]);
    let tls = Tls::open(folder.files()).unwrap();
    let first = shown(&tls);
    folder.renew(&[HOST]);
    tls.reload();
    let second = shown(&tls);
    assert_ne!(first, second);
    // Only the key has been replaced so far.
    folder.write("tls.key", KeyPair::generate().unwrap().serialize_pem());
    tls.reload();
    assert_eq!(shown(&tls), second);
    assert!(locked(&tls.held).told.is_some());
    tls.reload();
    assert_eq!(shown(&tls), second);
    folder.renew(&[HOST]);
    tls.reload();
    assert_ne!(shown(&tls), second);
    assert!(locked(&tls.held).told.is_none());
}

#[test]
fn what_is_wrong_with_the_files_is_told() {
    let folder = Folder::new();
    let (certificate, key) = (folder.path("tls.crt"), folder.path("tls.key"));
    let both = format!(
        "the certificate and key in `api.tls_cert_file`, `{certificate}`, and `api.tls_key_file`, `{key}`, can't be used"
    );
    let missing = folder.refusal();
    let why =
        format!("cannot read `api.tls_cert_file`, `{certificate}`: No such file or directory (os error 2)");
    assert_eq!((missing.why, missing.is_unread), (why, true));
    assert_eq!(missing.hint, "set the path of the file, or create it");

    folder.renew(&[HOST]);
    folder.write("tls.crt", [0x30, 0x82, 0xff]);
    let binary = folder.refusal();
    assert_eq!(binary.why, format!("`api.tls_cert_file`, `{certificate}`, is not PEM: it is not text"));
    assert_eq!(
        (binary.hint.as_str(), binary.is_unread),
        ("convert it with `openssl`, from DER or PKCS#12 to PEM", false)
    );
    folder.write("tls.crt", "hello");
    let why = "the certificate is not PEM: it has no `-----BEGIN CERTIFICATE-----` line";
    assert_eq!(folder.refusal().why, format!("{both}: {why}"));

    folder.renew(&[HOST]);
    folder.write("tls.key", KeyPair::generate().unwrap().serialize_pem());
    let misfit = folder.refusal();
    assert_eq!(misfit.why, format!("{both}: the private key does not belong to the certificate"));
    assert!(!misfit.is_unread);
}

#[test]
fn what_can_be_used_and_is_likely_not_meant_is_told() {
    let folder = Folder::new();
    folder.renew(&["127.0.0.1"]);
    let doubts = || folder.files().doubts(Timestamp::now()).unwrap();
    assert_eq!(doubts(), [""; 0]);
    let key = KeyPair::generate().unwrap();
    let mut params = CertificateParams::new(vec![HOST.to_owned()]).unwrap();
    params.not_after = date_time_ymd(2020, 1, 1);
    folder.write("tls.crt", params.self_signed(&key).unwrap().pem());
    folder.write("tls.key", key.serialize_pem());
    fs::set_permissions(folder.path("tls.key"), Permissions::from_mode(0o644)).unwrap();
    let expected = [
        format!(
            "the certificate in `api.tls_cert_file`, `{}`, expired at 2020-01-01T00:00:00Z",
            folder.path("tls.crt")
        ),
        format!(
            "every user of this machine may read `api.tls_key_file`, `{}`; remove that permission with `chmod o-r`",
            folder.path("tls.key")
        ),
    ];
    assert_eq!(doubts(), expected);
}
