//! A client that sends any request, by an independent implementation of Kafka's protocol. It logs in with a
//! certificate.

use std::io::{Read as _, Write as _};
use std::net::{IpAddr, TcpStream};
use std::sync::Arc;

use axum::body::Bytes;
use kafka_protocol::messages::{RequestHeader, ResponseHeader};
use kafka_protocol::protocol::{Decodable as _, Encodable as _, HeaderVersion as _, Request, StrBytes};
use rustls::crypto::aws_lc_rs::default_provider;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, PrivateKeyDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};

use super::pki::Pair;

pub struct RawClient(StreamOwned<ClientConnection, TcpStream>);

impl RawClient {
    pub fn new((address, port): (IpAddr, u16), host: &str, authority: &str, own: &Pair) -> RawClient {
        let mut roots = RootCertStore::empty();
        roots.add(CertificateDer::from_pem_slice(authority.as_bytes()).unwrap()).unwrap();
        let config = ClientConfig::builder_with_provider(Arc::new(default_provider()))
            .with_safe_default_protocol_versions()
            .unwrap()
            .with_root_certificates(roots)
            .with_client_auth_cert(
                vec![CertificateDer::from_pem_slice(own.certificate.as_bytes()).unwrap()],
                PrivateKeyDer::from_pem_slice(own.key.as_bytes()).unwrap(),
            )
            .unwrap();
        let name = ServerName::try_from(host.to_owned()).unwrap();
        let connection = ClientConnection::new(Arc::new(config), name).unwrap();
        RawClient(StreamOwned::new(connection, TcpStream::connect((address, port)).unwrap()))
    }

    #[track_caller]
    pub fn call<R: Request>(&mut self, request: &R, version: i16) -> R::Response {
        let header = RequestHeader::default()
            .with_request_api_key(R::KEY)
            .with_request_api_version(version)
            .with_client_id(Some(StrBytes::from_static_str("test")));
        let mut bytes = vec![0; 4];
        header.encode(&mut bytes, R::header_version(version)).unwrap();
        request.encode(&mut bytes, version).unwrap();
        let length = i32::try_from(bytes.len() - 4).unwrap();
        bytes[..4].copy_from_slice(&length.to_be_bytes());
        self.0.write_all(&bytes).unwrap();
        self.0.flush().unwrap();
        let mut length = [0; 4];
        self.0.read_exact(&mut length).unwrap();
        let mut bytes = vec![0; usize::try_from(i32::from_be_bytes(length)).unwrap()];
        self.0.read_exact(&mut bytes).unwrap();
        let mut bytes = Bytes::from(bytes);
        ResponseHeader::decode(&mut bytes, R::Response::header_version(version)).unwrap();
        R::Response::decode(&mut bytes, version).unwrap()
    }
}
