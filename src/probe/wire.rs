//! Kafka's protocol as far as the probe needs it: frames, and the values that they consist of.
//!
//! Responses come from a server that may belong to a tenant, or to nobody of ours, so a length in a response is
//! never believed: it is compared with the bytes that are there. General libraries reserve memory for as many
//! items as an array claims to have. All used versions are older than the protocol's "flexible" ones and known to
//! every Kafka from 4.0 on (KIP-896).

use tokio::io::{AsyncRead, AsyncReadExt as _, AsyncWrite, AsyncWriteExt as _};

use super::fault::Fault;

/// The largest response, in bytes, unless a request says otherwise.
pub const MAX_RESPONSE: usize = 64 << 10;

/// A length that no response of Kafka has, in bytes: the first four bytes of another protocol, read as one.
const ABSURD: usize = 100 << 20;

const CLIENT: &str = "streamfleet-probe";

/// A request of one version, and how its response is read.
pub trait Request {
    type Response;
    const NAME: &'static str;
    const KEY: i16;
    const VERSION: i16;
    const MAX_RESPONSE: usize = MAX_RESPONSE;

    fn write(&self, to: &mut WireWriter);

    fn read(from: &mut Reader<'_>) -> Result<Self::Response, Fault>;
}

/// Sends a request and reads the whole response to it.
pub async fn exchange<R: Request, S: AsyncRead + AsyncWrite + Unpin>(
    stream: &mut S,
    request: &R,
    correlation: i32,
) -> Result<R::Response, Fault> {
    let mut frame = WireWriter::default();
    // For the length.
    frame.int32(0);
    frame.int16(R::KEY);
    frame.int16(R::VERSION);
    frame.int32(correlation);
    frame.string(CLIENT);
    request.write(&mut frame);
    let frame = frame.framed();
    stream.write_all(&frame).await?;
    stream.flush().await?;
    let response = read_frame(stream, R::MAX_RESPONSE).await?;
    let mut reader = Reader(&response);
    if reader.int32()? != correlation {
        return Err(Fault::Garbled);
    }
    let read = R::read(&mut reader)?;
    if reader.0.is_empty() { Ok(read) } else { Err(Fault::Garbled) }
}

/// Reads a frame. Memory grows with what has arrived.
async fn read_frame<S: AsyncRead + Unpin>(stream: &mut S, most: usize) -> Result<Vec<u8>, Fault> {
    let length = usize::try_from(stream.read_i32().await?).map_err(|_| Fault::Garbled)?;
    match length {
        ABSURD.. => return Err(Fault::Garbled),
        length if length > most => return Err(Fault::Oversized(most)),
        _ => {}
    }
    let mut bytes = Vec::new();
    stream.take(length as u64).read_to_end(&mut bytes).await?;
    if bytes.len() == length { Ok(bytes) } else { Err(Fault::Closed) }
}

/// Writes the values of a request. A secret may be among them, so the bytes are wiped when they are dropped.
#[derive(Default)]
pub struct WireWriter(zeroize::Zeroizing<Vec<u8>>);

impl WireWriter {
    pub fn int8(&mut self, value: i8) {
        self.bare(&value.to_be_bytes());
    }

    pub fn int16(&mut self, value: i16) {
        self.bare(&value.to_be_bytes());
    }

    pub fn int32(&mut self, value: i32) {
        self.bare(&value.to_be_bytes());
    }

    pub fn int64(&mut self, value: i64) {
        self.bare(&value.to_be_bytes());
    }

    /// Cut at the longest that the protocol has.
    pub fn string(&mut self, value: &str) {
        let value = &value[..value.floor_char_boundary(i16::MAX as usize)];
        self.int16(value.len() as i16);
        self.bare(value.as_bytes());
    }

    pub fn null_string(&mut self) {
        self.int16(-1);
    }

    pub fn bytes(&mut self, value: &[u8]) {
        self.length(value.len());
        self.bare(value);
    }

    pub fn array<T>(&mut self, items: &[T], write: impl Fn(&mut WireWriter, &T)) {
        self.length(items.len());
        items.iter().for_each(|item| write(self, item));
    }

    pub fn bare(&mut self, bytes: &[u8]) {
        // A vector that grows leaves its old memory behind.
        if self.0.capacity() - self.0.len() < bytes.len() {
            let mut larger = zeroize::Zeroizing::new(Vec::with_capacity(2 * (self.0.len() + bytes.len())));
            larger.extend_from_slice(&self.0);
            self.0 = larger;
        }
        self.0.extend_from_slice(bytes);
    }

    /// Requests are small: their parts come from the plan.
    fn length(&mut self, length: usize) {
        self.int32(i32::try_from(length).unwrap_or(i32::MAX));
    }

    fn framed(mut self) -> zeroize::Zeroizing<Vec<u8>> {
        let length = i32::try_from(self.0.len() - 4).unwrap_or(i32::MAX);
        self.0[..4].copy_from_slice(&length.to_be_bytes());
        self.0
    }

    pub fn into_bytes(self) -> zeroize::Zeroizing<Vec<u8>> {
        self.0
    }
}

/// Reads the values of a response from the bytes that are left.
pub struct Reader<'r>(pub &'r [u8]);

impl<'r> Reader<'r> {
    pub fn int8(&mut self) -> Result<i8, Fault> {
        self.fixed().map(i8::from_be_bytes)
    }

    pub fn int16(&mut self) -> Result<i16, Fault> {
        self.fixed().map(i16::from_be_bytes)
    }

    pub fn int32(&mut self) -> Result<i32, Fault> {
        self.fixed().map(i32::from_be_bytes)
    }

    pub fn int64(&mut self) -> Result<i64, Fault> {
        self.fixed().map(i64::from_be_bytes)
    }

    pub fn string(&mut self) -> Result<String, Fault> {
        self.null_string()?.ok_or(Fault::Garbled)
    }

    pub fn null_string(&mut self) -> Result<Option<String>, Fault> {
        let length = self.int16()?;
        let Some(bytes) = self.counted(length.into())? else { return Ok(None) };
        Ok(Some(String::from_utf8_lossy(bytes).into_owned()))
    }

    /// `None` for null.
    pub fn bytes(&mut self) -> Result<Option<&'r [u8]>, Fault> {
        let length = self.int32()?;
        self.counted(length)
    }

    /// An array. Null counts as empty. Memory is taken for items that are there, since each has a byte at least.
    pub fn array<T>(&mut self, mut read: impl FnMut(&mut Self) -> Result<T, Fault>) -> Result<Vec<T>, Fault> {
        let count = match self.int32()? {
            -1 => 0,
            count => usize::try_from(count).map_err(|_| Fault::Garbled)?,
        };
        if count > self.0.len() {
            return Err(Fault::Garbled);
        }
        let mut items = Vec::new();
        for _ in 0..count {
            items.push(read(self)?);
        }
        Ok(items)
    }

    fn counted(&mut self, length: i32) -> Result<Option<&'r [u8]>, Fault> {
        if length == -1 {
            return Ok(None);
        }
        let length = usize::try_from(length).map_err(|_| Fault::Garbled)?;
        let (bytes, rest) = self.0.split_at_checked(length).ok_or(Fault::Garbled)?;
        self.0 = rest;
        Ok(Some(bytes))
    }

    fn fixed<const N: usize>(&mut self) -> Result<[u8; N], Fault> {
        let (bytes, rest) = self.0.split_first_chunk().ok_or(Fault::Garbled)?;
        self.0 = rest;
        Ok(*bytes)
    }
}
