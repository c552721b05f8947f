//! TLS as clients of the cluster do it, and what is wrong with the certificate that a broker presents.

use std::fmt;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use jiff::Timestamp;
use rustls::client::WebPkiServerVerifier;
use rustls::client::danger::{HandshakeSignatureValid, ServerCertVerified, ServerCertVerifier};
use rustls::crypto::CryptoProvider;
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::{CertificateError, ClientConfig, DigitallySignedStruct, RootCertStore, SignatureScheme};
use rustls_pki_types::pem::PemObject as _;
use rustls_pki_types::{CertificateDer, PrivateKeyDer, ServerName, UnixTime};
use secrecy::ExposeSecret as _;
use tokio::net::TcpStream;
use tokio::time::timeout;
use tokio_rustls::TlsConnector;
use tokio_rustls::client::TlsStream;

use super::fault::{Fault, tls_error};
use super::login::refused_certificate;
use crate::component::probe::{CertificateFault, ProbeFailure, ProbeLogin, ServerText};
use crate::spec::certificate::{self, Certificate};

/// The name of webpki's error for a certificate of an authority that a server presents as its own.
const OWN_AUTHORITY: &str = "CaUsedAsEndEntity";

/// The material for a handshake with a server.
#[derive(Clone)]
pub struct Trust {
    provider: Arc<CryptoProvider>,
    anchors: Arc<Vec<CertificateDer<'static>>>,
    roots: Arc<RootCertStore>,
    /// The certificate that the server was given.
    given: Option<CertificateDer<'static>>,
    /// The certificates that we show, and their key.
    own: Option<Arc<(Vec<CertificateDer<'static>>, PrivateKeyDer<'static>)>>,
}

impl Trust {
    /// Trusts the certificates of this host.
    pub fn of_system() -> Trust {
        let anchors = rustls_native_certs::load_native_certs().certs;
        let mut roots = RootCertStore::empty();
        // Old certificates that can't be parsed are common among those of a host.
        roots.add_parsable_certificates(anchors.iter().cloned());
        Trust {
            provider: Arc::new(default_provider()),
            anchors: Arc::new(Vec::new()),
            roots: Arc::new(roots),
            given: None,
            own: None,
        }
    }

    /// Trusts certificates in PEM.
    pub fn of_certificates(pem: &str) -> Result<Trust, ProbeFailure> {
        let anchors = certificates(pem)?;
        let mut roots = RootCertStore::empty();
        if anchors.is_empty() || roots.add_parsable_certificates(anchors.iter().cloned()).0 == 0 {
            return Err(unusable("no authority can be read that clients are told to trust"));
        }
        Ok(Trust { anchors: Arc::new(anchors), roots: Arc::new(roots), ..Trust::empty() })
    }

    fn empty() -> Trust {
        Trust {
            provider: Arc::new(default_provider()),
            anchors: Arc::default(),
            roots: Arc::new(RootCertStore::empty()),
            given: None,
            own: None,
        }
    }

    /// Accepts only the first certificate of a chain in PEM.
    pub fn only(mut self, chain: Option<&str>) -> Result<Trust, ProbeFailure> {
        self.given = chain.map(certificates).transpose()?.and_then(|chain| chain.into_iter().next());
        Ok(self)
    }

    /// Shows a client certificate, if the login has one.
    pub fn showing(mut self, login: Option<&ProbeLogin>) -> Result<Trust, ProbeFailure> {
        if let Some(ProbeLogin::Mtls { certificate, key }) = login {
            let chain = certificates(certificate)?;
            let key = PrivateKeyDer::from_pem_slice(key.expose_secret().as_bytes());
            let key = key.map_err(|_| unusable("the key of its certificate is no PEM"))?;
            self.own = Some(Arc::new((chain, key)));
        }
        Ok(self)
    }

    /// Shakes hands with a server that goes by a name.
    pub async fn shake_hands(
        &self,
        stream: TcpStream,
        (host, within): (&str, Duration),
    ) -> Result<TlsStream<TcpStream>, ProbeFailure> {
        let name = ServerName::try_from(host.to_owned()).map_err(|_| unusable("the name is no host name"))?;
        let judge = Arc::new(Judge {
            usual: WebPkiServerVerifier::builder_with_provider(
                Arc::clone(&self.roots),
                Arc::clone(&self.provider),
            )
            .build()
            .map_err(|_| unusable("this host trusts no authority"))?,
            trust: self.clone(),
            verdict: Mutex::default(),
        });
        let config = self.config(Arc::clone(&judge)).map_err(|error| unusable(&error.to_string()))?;
        let handshake = TlsConnector::from(Arc::new(config)).connect(name, stream);
        let error = match timeout(within, handshake).await {
            Ok(Ok(stream)) => return Ok(stream),
            Ok(Err(error)) => error,
            Err(_) => return Err(ProbeFailure::Silent(within)),
        };
        if let Some(fault) = judge.verdict.lock().unwrap_or_else(PoisonError::into_inner).take() {
            return Err(ProbeFailure::Certificate(fault));
        }
        match tls_error(&error) {
            Some(rustls::Error::AlertReceived(alert)) if self.own.is_some() => {
                Err(refused_certificate(*alert))
            }
            Some(rustls::Error::AlertReceived(_)) | None => Err(Fault::from(error).into()),
            Some(rustls::Error::InvalidMessage(_)) => {
                Err(ProbeFailure::Handshake(ServerText::new("the server speaks no TLS")))
            }
            Some(other) => Err(ProbeFailure::Handshake(ServerText::new(&other.to_string()))),
        }
    }

    fn config(&self, judge: Arc<Judge>) -> Result<ClientConfig, rustls::Error> {
        let config = ClientConfig::builder_with_provider(Arc::clone(&self.provider))
            .with_safe_default_protocol_versions()?
            .dangerous()
            .with_custom_certificate_verifier(judge);
        let mut config = match self.own.as_deref() {
            Some((chain, key)) => config.with_client_auth_cert(chain.clone(), key.clone_key())?,
            None => config.with_no_client_auth(),
        };
        // Every connection proves the certificate anew.
        config.resumption = rustls::client::Resumption::disabled();
        Ok(config)
    }
}

/// Judges a server's certificate as usual, and remembers what was wrong with it.
struct Judge {
    usual: Arc<WebPkiServerVerifier>,
    trust: Trust,
    verdict: Mutex<Option<CertificateFault>>,
}

impl Judge {
    fn fault(&self, error: &rustls::Error, presented: &Presented<'_>) -> Option<CertificateFault> {
        let rustls::Error::InvalidCertificate(error) = error else {
            return Some(CertificateFault::Unusable(ServerText::new(&error.to_string())));
        };
        let read = presented.read();
        Some(match error {
            CertificateError::Expired | CertificateError::ExpiredContext { .. } => {
                CertificateFault::Expired(read?.not_after)
            }
            CertificateError::NotValidYet | CertificateError::NotValidYetContext { .. } => {
                CertificateFault::Early(read?.not_before)
            }
            CertificateError::NotValidForName | CertificateError::NotValidForNameContext { .. } => {
                CertificateFault::Names(presented.names())
            }
            CertificateError::UnknownIssuer => CertificateFault::Issuer(presented.issuer()),
            other => CertificateFault::Unusable(ServerText::new(&other.to_string())),
        })
    }

    /// A certificate that clients trust by itself: they ask for no issuer then. Of it, webpki judges nothing.
    fn is_trusted_itself(&self, error: &rustls::Error, presented: &Presented<'_>) -> bool {
        let rustls::Error::InvalidCertificate(CertificateError::Other(other)) = error else { return false };
        format!("{other:?}").contains(OWN_AUTHORITY)
            && self.trust.anchors.iter().any(|it| *it == *presented.leaf)
    }
}

impl fmt::Debug for Judge {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Judge").finish_non_exhaustive()
    }
}

impl ServerCertVerifier for Judge {
    fn verify_server_cert(
        &self,
        leaf: &CertificateDer<'_>,
        chain: &[CertificateDer<'_>],
        name: &ServerName<'_>,
        ocsp: &[u8],
        now: UnixTime,
    ) -> Result<ServerCertVerified, rustls::Error> {
        let presented = Presented { leaf, chain };
        let usual = match self.usual.verify_server_cert(leaf, chain, name, ocsp, now) {
            Err(error) if self.is_trusted_itself(&error, &presented) => presented.judge(&name.to_str(), now),
            Err(error) => Err((self.fault(&error, &presented), error)),
            Ok(_) => Ok(()),
        };
        let judged = usual.and_then(|()| match &self.trust.given {
            Some(given) if **given != **leaf => {
                let until = presented.read().map(|read| read.not_after);
                Err((
                    Some(CertificateFault::NotGiven { until }),
                    CertificateError::ApplicationVerificationFailure.into(),
                ))
            }
            _ => Ok(()),
        });
        judged.map(|()| ServerCertVerified::assertion()).map_err(|(fault, error)| {
            let damaged = || CertificateFault::Unusable(ServerText::new(&error.to_string()));
            let fault = fault.unwrap_or_else(damaged);
            *self.verdict.lock().unwrap_or_else(PoisonError::into_inner) = Some(fault);
            error
        })
    }

    fn verify_tls12_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls12_signature(message, leaf, signed)
    }

    fn verify_tls13_signature(
        &self,
        message: &[u8],
        leaf: &CertificateDer<'_>,
        signed: &DigitallySignedStruct,
    ) -> Result<HandshakeSignatureValid, rustls::Error> {
        self.usual.verify_tls13_signature(message, leaf, signed)
    }

    fn supported_verify_schemes(&self) -> Vec<SignatureScheme> {
        self.usual.supported_verify_schemes()
    }
}

/// The certificates of a server.
struct Presented<'p> {
    leaf: &'p CertificateDer<'p>,
    chain: &'p [CertificateDer<'p>],
}

impl Presented<'_> {
    /// The names of the first certificate, and the validity of the whole chain.
    fn read(&self) -> Option<Certificate> {
        let whole: String = std::iter::once(self.leaf).chain(self.chain).map(|it| pem(it)).collect();
        Certificate::read(&whole).or_else(|| Certificate::read(&pem(self.leaf)))
    }

    fn names(&self) -> Vec<ServerText> {
        let names = self.read().map(|read| read.names).unwrap_or_default();
        names.iter().map(|name| ServerText::new(name)).collect()
    }

    /// The issuer that the chain ends with.
    fn issuer(&self) -> ServerText {
        let issuer = certificate::issuer(&pem(self.chain.last().unwrap_or(self.leaf)));
        ServerText::new(issuer.as_deref().unwrap_or("its name can't be read"))
    }

    /// Judges name and time.
    fn judge(&self, host: &str, now: UnixTime) -> Result<(), (Option<CertificateFault>, rustls::Error)> {
        let read = self.read();
        let now = i64::try_from(now.as_secs()).ok().and_then(|now| Timestamp::from_second(now).ok());
        let (Some(read), Some(now)) = (read, now) else {
            return Err((None, CertificateError::BadEncoding.into()));
        };
        let (fault, error) = match () {
            () if now > read.not_after => {
                (CertificateFault::Expired(read.not_after), CertificateError::Expired)
            }
            () if now < read.not_before => {
                (CertificateFault::Early(read.not_before), CertificateError::NotValidYet)
            }
            () if !read.covers(host) => {
                (CertificateFault::Names(self.names()), CertificateError::NotValidForName)
            }
            () => return Ok(()),
        };
        Err((Some(fault), error.into()))
    }
}

fn pem(der: &[u8]) -> String {
    format!("-----BEGIN CERTIFICATE-----\n{}\n-----END CERTIFICATE-----\n", STANDARD.encode(der))
}

fn certificates(pem: &str) -> Result<Vec<CertificateDer<'static>>, ProbeFailure> {
    let all: Result<Vec<_>, _> = CertificateDer::pem_slice_iter(pem.as_bytes()).collect();
    all.map_err(|_| unusable("a certificate of it is no PEM"))
}

fn unusable(why: &str) -> ProbeFailure {
    ProbeFailure::Unusable(ServerText::new(why))
}
