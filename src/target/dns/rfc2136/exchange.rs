//! Signed messages and their answers, by TCP.

use std::io;
use std::net::SocketAddr;
use std::time::Duration;

use hickory_proto::op::Message;
use hickory_proto::rr::TSigner;
use hickory_proto::rr::rdata::tsig::{self, TSIG, TsigError};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::TcpStream;
use tokio::time::timeout;
use tower::BoxError;

use super::{DnsFault, Rfc2136Login};
use crate::config::DeniedAddress;
use crate::spec::tsig_key::{TsigAlgorithm, TsigKey};
use crate::target::kubernetes::resolve;

/// How far the clocks of this host and of the server may be apart, in seconds, as RFC 8945 recommends.
const FUDGE: u16 = 300;

/// The longest time for all messages of a connection.
const TIME: Duration = Duration::from_secs(5);

/// A server, by name or address, and the key that it knows us by.
pub struct DnsServer<'l> {
    login: &'l Rfc2136Login,
    key: TSigner,
}

impl DnsServer<'_> {
    /// # Errors
    /// If the key can't be used.
    pub fn new(login: &Rfc2136Login) -> Result<DnsServer<'_>, DnsFault> {
        let key = TsigKey::parse(login.key.expose_secret()).map_err(DnsFault::NoKey)?;
        let algorithm = match key.algorithm {
            TsigAlgorithm::HmacSha256 => tsig::TsigAlgorithm::HmacSha256,
            TsigAlgorithm::HmacSha384 => tsig::TsigAlgorithm::HmacSha384,
            TsigAlgorithm::HmacSha512 => tsig::TsigAlgorithm::HmacSha512,
        };
        let secret = key.secret.expose_secret().to_vec();
        let signer = TSigner::new(secret, algorithm, super::name(&key.name)?, FUDGE);
        let key = signer.map_err(|_| DnsFault::NoKey("it can't be used"))?;
        Ok(DnsServer { login, key })
    }

    /// Sends messages one after the other, and returns the answers once their signatures have been checked.
    ///
    /// # Errors
    /// If there is no answer that the key's holder gave.
    pub(super) async fn exchange<const N: usize>(
        &self,
        messages: [Message; N],
    ) -> Result<[Message; N], DnsFault> {
        timeout(TIME, self.exchange_all(messages)).await.unwrap_or(Err(DnsFault::Silent(TIME)))
    }

    async fn exchange_all<const N: usize>(&self, messages: [Message; N]) -> Result<[Message; N], DnsFault> {
        let mut stream = self.connect().await?;
        let mut answers = messages;
        for message in &mut answers {
            *message = self.ask(&mut stream, message.clone()).await?;
        }
        Ok(answers)
    }

    async fn ask(&self, stream: &mut TcpStream, mut message: Message) -> Result<Message, DnsFault> {
        let now = (self.login.clock)();
        let seconds = u64::try_from(now.as_second()).unwrap_or_default();
        let signed = self.key.sign_message(&message, seconds);
        let (signature, verifier) = signed.map_err(|_| DnsFault::Unreadable)?;
        message.set_signature(signature);
        let bytes = message.to_vec().map_err(|_| DnsFault::Unreadable)?;
        let answer = talk(stream, &bytes).await?;
        let read = Message::from_vec(&answer).map_err(|_| DnsFault::Unreadable)?;
        if read.metadata.id != message.metadata.id {
            return Err(DnsFault::Unreadable);
        }
        // A server that can't sign says why beside the signature that it leaves out, which can't be checked then.
        let told = read.signature().map(|record| &record.data);
        if let Some(fault) = told.and_then(|told| of_signature(told, now)) {
            return Err(fault);
        }
        let Some(mut verifier) = verifier else { return Err(DnsFault::Unsigned) };
        match (told, verifier.verify(&answer)) {
            (Some(_), Ok(_)) => Ok(read),
            (Some(_), Err(_)) => Err(DnsFault::Forged),
            // Without a signature, only that the message didn't do is believed.
            (None, _) => Err(match DnsFault::of_code(read.metadata.response_code) {
                DnsFault::Other(_) => DnsFault::Unsigned,
                refused => refused,
            }),
        }
    }

    async fn connect(&self) -> Result<TcpStream, DnsFault> {
        let Rfc2136Login { host, port, allowed, .. } = self.login;
        let name = host.parse().map_err(|_| DnsFault::NoName(host.clone()))?;
        let found = resolve(name, allowed.as_slice().into()).await.map_err(unresolved)?;
        let addresses: Vec<SocketAddr> = found.map(|it| SocketAddr::new(it.ip(), *port)).collect();
        TcpStream::connect(addresses.as_slice()).await.map_err(failed)
    }
}

async fn talk(stream: &mut TcpStream, bytes: &[u8]) -> Result<Vec<u8>, DnsFault> {
    let length = u16::try_from(bytes.len()).map_err(|_| DnsFault::Unreadable)?;
    stream.write_all(&[&length.to_be_bytes(), bytes].concat()).await.map_err(failed)?;
    let mut length = [0; 2];
    stream.read_exact(&mut length).await.map_err(failed)?;
    let mut answer = vec![0; u16::from_be_bytes(length).into()];
    stream.read_exact(&mut answer).await.map_err(failed)?;
    Ok(answer)
}

fn unresolved(error: BoxError) -> DnsFault {
    match error.downcast_ref::<DeniedAddress>() {
        Some(denied) => DnsFault::Denied(denied.to_string()),
        None => DnsFault::Connection(error.to_string()),
    }
}

fn failed(error: io::Error) -> DnsFault {
    match error.kind() {
        io::ErrorKind::UnexpectedEof | io::ErrorKind::ConnectionReset | io::ErrorKind::BrokenPipe => {
            DnsFault::Closed
        }
        _ => DnsFault::Connection(error.to_string()),
    }
}

fn of_signature(told: &TSIG, ours: Timestamp) -> Option<DnsFault> {
    Some(match told.error.as_ref()? {
        TsigError::BadKey => DnsFault::BadKey,
        TsigError::BadSig | TsigError::BadTrunc => DnsFault::BadSignature,
        TsigError::BadTime => {
            // Six bytes: seconds since 1970.
            let bytes = <[u8; 6]>::try_from(told.other.as_slice()).ok();
            let seconds = bytes.map(|bytes| bytes.iter().fold(0, |sum, byte| sum << 8 | i64::from(*byte)));
            let theirs = seconds.and_then(|seconds| Timestamp::from_second(seconds).ok());
            DnsFault::BadTime { ours, theirs }
        }
        TsigError::Unknown(code) => DnsFault::Other(format!("TSIG error {code}")),
    })
}
