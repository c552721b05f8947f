//! TLS on the network port: the handshake, and a certificate that may be replaced while the process runs.

use std::fs;
use std::io::{Cursor, ErrorKind};
use std::os::unix::fs::PermissionsExt as _;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use camino::{Utf8Path, Utf8PathBuf};
use jiff::Timestamp;
use rustls::ServerConfig;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::server::{ClientHello, ResolvesServerCert};
use rustls::sign::CertifiedKey;
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer};
use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _, join, split};
use tokio::time::timeout;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use zeroize::Zeroizing;

use super::problem::ProblemDocument;
use crate::config::ApiConfig;
use crate::parallel::locked;
use crate::spec::certificate::{Certificate, to_pkcs8_pem};

const HANDSHAKE: Duration = Duration::from_secs(10);

/// How long to wait before reading the files again. They are small, and read only when a client connects.
const FRESH: Duration = Duration::from_secs(10);

/// How long a client that speaks plain HTTP may take to read the refusal.
const REFUSAL: Duration = Duration::from_secs(1);

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Files {
    /// A PEM file with the certificate and its intermediates.
    pub certificate: Utf8PathBuf,
    pub key: Utf8PathBuf,
}

/// Why the files can't be used, as a sentence without a full stop.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{why}")]
pub struct UnusableCertificate {
    pub why: String,
    pub hint: String,
    /// Whether reading failed, so that the files themselves may be fine.
    pub is_unread: bool,
}

/// The active certificate, reloaded from its files.
#[derive(Debug)]
pub struct Tls {
    files: Files,
    /// Updates replace whole values, so a poisoned lock is safe to use.
    held: Mutex<LoadedCertificate>,
}

#[derive(Debug)]
struct LoadedCertificate {
    pair: Arc<CertifiedKey>,
    looked: Instant,
    /// The error of the last read, already logged; its files aren't used.
    told: Option<UnusableCertificate>,
}

impl Files {
    /// `None` if the settings have no files.
    pub fn of(config: &ApiConfig) -> Option<Files> {
        let (certificate, key) = (config.tls_cert_file.clone()?, config.tls_key_file.clone()?);
        Some(Files { certificate, key })
    }

    /// Warnings about usable files, each as a sentence.
    ///
    /// # Errors
    /// When the files can't be used.
    pub fn doubts(&self, now: Timestamp) -> Result<Vec<String>, UnusableCertificate> {
        let (_, certificate) = self.read()?;
        let end = certificate.filter(|certificate| certificate.not_after < now).map(|it| it.not_after);
        let expired = end.map(|end| {
            format!("the certificate in `api.tls_cert_file`, `{}`, expired at {end}", self.certificate)
        });
        let mode = fs::metadata(&self.key).map_or(0, |found| found.permissions().mode());
        let open = (mode & 0o004 != 0).then(|| {
            format!(
                "every user of this machine may read `api.tls_key_file`, `{}`; remove that permission with `chmod o-r`",
                self.key
            )
        });
        Ok(expired.into_iter().chain(open).collect())
    }

    fn read(&self) -> Result<(CertifiedKey, Option<Certificate>), UnusableCertificate> {
        let chain = text("api.tls_cert_file", &self.certificate)?;
        let key = text("api.tls_key_file", &self.key)?;
        let unusable = |why: &str, hint: &str| UnusableCertificate {
            why: format!(
                "the certificate and key in `api.tls_cert_file`, `{}`, and `api.tls_key_file`, `{}`, can't be used: \
                    {why}",
                self.certificate, self.key
            ),
            hint: hint.to_owned(),
            is_unread: false,
        };
        let certificate = match Certificate::parse(&chain, Some(&key)) {
            Ok(certificate) => Some(certificate),
            // A certificate without names is fine for clients that connect by address.
            Err(faults) if faults.iter().all(|fault| fault.code == "certificate-no-names") => None,
            Err(faults) => {
                let why: Vec<&str> = faults.iter().map(|fault| fault.message.as_str()).collect();
                return Err(unusable(&why.join("; "), faults.first().map_or("", |fault| &fault.hint)));
            }
        };
        let odd = |why: String| unusable(&why, "create the certificate and its key again, in PEM form");
        let key = to_pkcs8_pem(&key).map_err(|fault| unusable(&fault.message, &fault.hint))?;
        let key = PrivateKeyDer::from_pem_slice(key.as_bytes()).map_err(|error| odd(error.to_string()))?;
        let chain: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(chain.as_bytes()).collect();
        let chain = chain.map_err(|error| odd(error.to_string()))?;
        let pair = CertifiedKey::from_der(chain, key, &default_provider());
        Ok((pair.map_err(|error| odd(error.to_string()))?, certificate))
    }

    fn warn(&self) {
        for doubt in self.doubts(Timestamp::now()).unwrap_or_default() {
            tracing::warn!("{doubt}");
        }
    }
}

fn text(setting: &str, path: &Utf8Path) -> Result<Zeroizing<String>, UnusableCertificate> {
    fs::read_to_string(path).map(Zeroizing::new).map_err(|error| {
        let is_unread = error.kind() != ErrorKind::InvalidData;
        let why = match is_unread {
            true => format!("cannot read `{setting}`, `{path}`: {error}"),
            false => format!("`{setting}`, `{path}`, is not PEM: it is not text"),
        };
        let hint = match error.kind() {
            ErrorKind::InvalidData => "convert it with `openssl`, from DER or PKCS#12 to PEM",
            ErrorKind::NotFound => "set the path of the file, or create it",
            _ => "make it readable for the user that runs streamfleet",
        };
        UnusableCertificate { why, hint: hint.to_owned(), is_unread }
    })
}

impl Tls {
    /// Reads the files.
    ///
    /// # Errors
    /// When they can't be used.
    pub fn open(files: Files) -> Result<Arc<Tls>, UnusableCertificate> {
        let (pair, _) = files.read()?;
        files.warn();
        let held = LoadedCertificate { pair: Arc::new(pair), looked: Instant::now(), told: None };
        Ok(Arc::new(Tls { files, held: Mutex::new(held) }))
    }

    /// Reloads the files. If they can't be used, logs that once and keeps the active certificate.
    pub fn reload(&self) {
        let read = self.files.read();
        let mut held = locked(&self.held);
        match read {
            Ok((pair, _)) if pair.cert == held.pair.cert => held.told = None,
            Ok((pair, _)) => {
                (held.pair, held.told) = (Arc::new(pair), None);
                drop(held);
                tracing::info!(certificate = %self.files.certificate, "certificate reloaded");
                self.files.warn();
            }
            Err(why) if held.told.as_ref() == Some(&why) => {}
            Err(why) => {
                tracing::error!(error = %why, hint = why.hint, "cannot reload the certificate; the previous one stays \
                    active");
                held.told = Some(why);
            }
        }
    }

    /// Whether it is time to reload the files. Only one handshake at a time is told to.
    fn is_due(&self) -> bool {
        let mut held = locked(&self.held);
        let is_due = held.looked.elapsed() >= FRESH;
        if is_due {
            held.looked = Instant::now();
        }
        is_due
    }
}

#[derive(Debug)]
struct ActiveCertificate(Arc<Tls>);

impl ResolvesServerCert for ActiveCertificate {
    fn resolve(&self, _: ClientHello<'_>) -> Option<Arc<CertifiedKey>> {
        Some(Arc::clone(&locked(&self.0.held).pair))
    }
}

#[derive(Clone)]
pub struct Handshake {
    tls: Arc<Tls>,
    acceptor: TlsAcceptor,
}

impl Handshake {
    /// Sets up TLS with the active certificate.
    ///
    /// # Errors
    /// When the crypto provider supports none of our TLS versions, which would be a bug.
    pub fn new(tls: Arc<Tls>) -> Result<Handshake, rustls::Error> {
        let config = ServerConfig::builder_with_provider(Arc::new(default_provider()));
        let config = config.with_safe_default_protocol_versions()?.with_no_client_auth();
        let mut config = config.with_cert_resolver(Arc::new(ActiveCertificate(Arc::clone(&tls))));
        config.alpn_protocols = vec![b"http/1.1".to_vec()];
        Ok(Handshake { tls, acceptor: TlsAcceptor::from(Arc::new(config)) })
    }

    /// Performs the handshake; `None` if it fails or takes too long. A client that speaks plain HTTP gets an
    /// answer that says so.
    pub async fn shake(
        &self,
        stream: impl AsyncRead + AsyncWrite + Unpin,
        base: &str,
    ) -> Option<TlsStream<impl AsyncRead + AsyncWrite + Unpin>> {
        let shaken = async {
            if self.tls.is_due() {
                let tls = Arc::clone(&self.tls);
                // It logs its own errors.
                let _ = tokio::task::spawn_blocking(move || tls.reload()).await;
            }
            // An HTTP method starts with an upper-case letter, a TLS handshake with byte 22.
            let (mut reader, writer) = split(stream);
            let first = reader.read_u8().await.ok()?;
            if first.is_ascii_uppercase() {
                refuse(reader.unsplit(writer), base).await;
                return None;
            }
            self.acceptor.accept(join(Cursor::new([first]).chain(reader), writer)).await.ok()
        };
        timeout(HANDSHAKE, shaken).await.ok().flatten()
    }
}

/// Answers over plain HTTP that the port needs TLS.
async fn refuse(mut stream: impl AsyncRead + AsyncWrite + Unpin, base: &str) {
    let problem = ProblemDocument::malformed("this port requires TLS, and the request came without")
        .hint("use the same address with `https://`");
    let answer = problem.written(base);
    let told = async {
        stream.write_all(&answer).await?;
        stream.shutdown().await?;
        // Drains the input: closing with unread bytes resets the connection, which may discard the answer.
        while stream.read(&mut [0; 1024]).await? > 0 {}
        std::io::Result::Ok(())
    };
    let _ = timeout(REFUSAL, told).await;
}

#[cfg(test)]
mod tests;
