//! TLS to both sides, with a CA of the proxy's own towards the client.

use std::io::{self, BufReader};
use std::net::TcpStream;
use std::os::fd::AsRawFd as _;
use std::sync::{Arc, Mutex};

use base64::Engine as _;
use base64::engine::general_purpose::STANDARD;
use rcgen::{BasicConstraints, CertificateParams, DnType, IsCa, Issuer, KeyPair};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, ServerConfig, ServerConnection, StreamOwned};
use serde_json::Value;

use super::wire::Message;

pub type ToClient = BufReader<StreamOwned<ServerConnection, TcpStream>>;

pub type ToServer = BufReader<StreamOwned<ClientConnection, TcpStream>>;

pub struct Authority {
    /// Its certificate, as in a kubeconfig: PEM in base64.
    pub certificate: String,
    server: Arc<ServerConfig>,
}

impl Authority {
    pub fn new() -> Authority {
        let mut params = CertificateParams::default();
        params.distinguished_name.push(DnType::CommonName, "a proxy for tests");
        params.is_ca = IsCa::Ca(BasicConstraints::Unconstrained);
        let key = KeyPair::generate().unwrap();
        let certificate = STANDARD.encode(params.self_signed(&key).unwrap().pem());
        let issuer = Issuer::new(params, key);
        let key = KeyPair::generate().unwrap();
        let params = CertificateParams::new(["127.0.0.1".to_owned()]).unwrap();
        let chain = vec![params.signed_by(&key, &issuer).unwrap().der().clone()];
        let server = ServerConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_no_client_auth()
            .with_single_cert(chain, PrivateKeyDer::try_from(key.serialize_der()).unwrap())
            .unwrap();
        Authority { certificate, server: Arc::new(server) }
    }

    pub fn accept(&self, socket: TcpStream) -> io::Result<StreamOwned<ServerConnection, TcpStream>> {
        let connection = ServerConnection::new(Arc::clone(&self.server)).map_err(io::Error::other)?;
        Ok(StreamOwned::new(connection, socket))
    }
}

/// Closes a connection so that the client gets a reset, whatever was sent before.
pub fn reset(client: &ToClient) {
    let linger = libc::linger { l_onoff: 1, l_linger: 0 };
    // SAFETY: the socket is open, and the option's value has the given size.
    unsafe {
        libc::setsockopt(
            client.get_ref().sock.as_raw_fd(),
            libc::SOL_SOCKET,
            libc::SO_LINGER,
            std::ptr::from_ref(&linger).cast(),
            size_of::<libc::linger>() as libc::socklen_t,
        );
    }
}

pub struct Upstream {
    address: String,
    token: String,
    config: Arc<ClientConfig>,
    /// The connection for the test's own calls.
    own: Mutex<Option<ToServer>>,
}

impl Upstream {
    pub fn of(kubeconfig: &Value) -> Upstream {
        let cluster = &kubeconfig["clusters"][0]["cluster"];
        let authority = STANDARD.decode(cluster["certificate-authority-data"].as_str().unwrap()).unwrap();
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(&authority).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_no_client_auth();
        Upstream {
            address: cluster["server"].as_str().unwrap().replace("https://", ""),
            token: kubeconfig["users"][0]["user"]["token"].as_str().unwrap().to_owned(),
            config: Arc::new(config),
            own: Mutex::new(None),
        }
    }

    pub fn connect(&self) -> io::Result<ToServer> {
        let socket = TcpStream::connect(&self.address)?;
        socket.set_nodelay(true)?;
        let name = ServerName::try_from("127.0.0.1").map_err(io::Error::other)?;
        let connection = ClientConnection::new(Arc::clone(&self.config), name).map_err(io::Error::other)?;
        Ok(BufReader::new(StreamOwned::new(connection, socket)))
    }

    pub fn ask(&self, method: &str, path: &str, body: &Value) -> io::Result<(u16, Value)> {
        let mut own = self.own.lock().unwrap();
        let server = match &mut *own {
            Some(server) => server,
            none => none.insert(self.connect()?),
        };
        let head = format!(
            "{method} {path} HTTP/1.1\r\nhost: test\r\naccept: application/json\r\ncontent-type: application/json\r\n\
             authorization: Bearer {}\r\n\r\n",
            self.token
        );
        let body = if body.is_null() { Vec::new() } else { body.to_string().into_bytes() };
        Message { head, body }.write(server.get_mut())?;
        let answer = Message::read(server)?.ok_or(io::ErrorKind::UnexpectedEof)?;
        Ok((answer.status(), serde_json::from_slice(&answer.body).unwrap_or_default()))
    }
}
