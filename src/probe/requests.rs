//! The requests of the probe, each in one version, and what is read of their responses.

use super::fault::Fault;
use super::wire::{Reader, Request, WireWriter};
use crate::component::probe::{TOPIC, TOPIC_OPTIONS};

/// The largest response with brokers or partitions, in bytes: enough for 1,000 brokers and 1,000 partitions.
const MAX_METADATA: usize = 1 << 20;

/// The versions that a broker knows.
pub struct ApiVersions;

pub struct KnownVersions {
    pub error: i16,
    /// Each with its key, its first and its last version.
    pub known: Vec<(i16, i16, i16)>,
}

impl KnownVersions {
    pub fn has<R: Request>(&self) -> bool {
        let fits =
            |(key, first, last): &(i16, i16, i16)| *key == R::KEY && (*first..=*last).contains(&R::VERSION);
        self.known.iter().any(fits)
    }
}

impl Request for ApiVersions {
    type Response = KnownVersions;
    const NAME: &'static str = "ApiVersions";
    const KEY: i16 = 18;
    const VERSION: i16 = 0;

    fn write(&self, _: &mut WireWriter) {}

    fn read(from: &mut Reader<'_>) -> Result<KnownVersions, Fault> {
        Ok(KnownVersions {
            error: from.int16()?,
            known: from.array(|from| Ok((from.int16()?, from.int16()?, from.int16()?)))?,
        })
    }
}

/// The brokers, and the topic of the probe if `with_topic`.
pub struct Metadata {
    pub with_topic: bool,
}

#[derive(Debug)]
pub struct ClusterMetadata {
    pub brokers: Vec<AdvertisedBroker>,
    pub cluster: Option<String>,
    /// The topic's error code and partitions.
    pub topic: Option<(i16, Vec<Partition>)>,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct AdvertisedBroker {
    pub id: i32,
    pub host: String,
    pub port: i32,
}

#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Partition {
    pub index: i32,
    /// Negative if there is none.
    pub leader: i32,
    pub replicas: Vec<i32>,
}

impl Request for Metadata {
    type Response = ClusterMetadata;
    const NAME: &'static str = "Metadata";
    const KEY: i16 = 3;
    const VERSION: i16 = 4;
    const MAX_RESPONSE: usize = MAX_METADATA;

    fn write(&self, to: &mut WireWriter) {
        let topics = if self.with_topic { &[TOPIC][..] } else { &[] };
        to.array(topics, |to, topic| to.string(topic));
        // Topics are never created automatically by this request.
        to.int8(0);
    }

    fn read(from: &mut Reader<'_>) -> Result<ClusterMetadata, Fault> {
        let _throttle = from.int32()?;
        let brokers = from.array(|from| {
            let broker = AdvertisedBroker { id: from.int32()?, host: from.string()?, port: from.int32()? };
            let _rack = from.null_string()?;
            Ok(broker)
        })?;
        let cluster = from.null_string()?;
        let _controller = from.int32()?;
        let topics = from.array(|from| {
            let error = from.int16()?;
            let name = from.string()?;
            let _is_internal = from.int8()?;
            let partitions = from.array(|from| {
                let _error = from.int16()?;
                let (index, leader) = (from.int32()?, from.int32()?);
                let replicas = from.array(Reader::int32)?;
                let _in_sync = from.array(Reader::int32)?;
                Ok(Partition { index, leader, replicas })
            })?;
            Ok((name, (error, partitions)))
        })?;
        let topic = topics.into_iter().find(|(name, _)| name == TOPIC).map(|(_, topic)| topic);
        Ok(ClusterMetadata { brokers, cluster, topic })
    }
}

/// The latest offsets of partitions: only their leader tells them, and every leader does.
pub struct ListOffsets<'r> {
    pub partitions: &'r [i32],
}

impl Request for ListOffsets<'_> {
    /// The error code of each partition.
    type Response = Vec<(i32, i16)>;
    const NAME: &'static str = "ListOffsets";
    const KEY: i16 = 2;
    const VERSION: i16 = 2;
    const MAX_RESPONSE: usize = MAX_METADATA;

    fn write(&self, to: &mut WireWriter) {
        // Of a client, not of a replica; without transactions.
        to.int32(-1);
        to.int8(0);
        to.array(&[TOPIC], |to, topic| {
            to.string(topic);
            to.array(self.partitions, |to, partition| {
                to.int32(*partition);
                // The latest.
                to.int64(-1);
            });
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Vec<(i32, i16)>, Fault> {
        let _throttle = from.int32()?;
        let topics = from.array(|from| {
            let _name = from.string()?;
            from.array(|from| {
                let (partition, error) = (from.int32()?, from.int16()?);
                let (_timestamp, _offset) = (from.int64()?, from.int64()?);
                Ok((partition, error))
            })
        })?;
        Ok(topics.into_iter().flatten().collect())
    }
}

/// Creates the topic, with the replicas of each partition from 0 on.
pub struct CreateTopic<'r> {
    pub replicas: &'r [Vec<u32>],
    pub timeout_ms: i32,
}

impl Request for CreateTopic<'_> {
    /// The error code.
    type Response = i16;
    const NAME: &'static str = "CreateTopics";
    const KEY: i16 = 19;
    const VERSION: i16 = 4;

    fn write(&self, to: &mut WireWriter) {
        to.array(&[TOPIC], |to, topic| {
            to.string(topic);
            // Both numbers follow from the assignment.
            to.int32(-1);
            to.int16(-1);
            let numbered: Vec<_> = (0..).zip(self.replicas).collect();
            to.array(&numbered, |to, (partition, replicas)| {
                to.int32(*partition);
                to.array(replicas, |to, broker| to.int32(*broker as i32));
            });
            to.array(&TOPIC_OPTIONS, |to, (option, value)| {
                to.string(option);
                to.string(value);
            });
        });
        to.int32(self.timeout_ms);
        // Not only validated.
        to.int8(0);
    }

    fn read(from: &mut Reader<'_>) -> Result<i16, Fault> {
        topic_result(from)
    }
}

/// Gives the topic further partitions.
pub struct CreatePartitions<'r> {
    /// How many there are afterwards.
    pub count: i32,
    /// The replicas of each new one.
    pub replicas: &'r [Vec<u32>],
    pub timeout_ms: i32,
}

impl Request for CreatePartitions<'_> {
    /// The error code.
    type Response = i16;
    const NAME: &'static str = "CreatePartitions";
    const KEY: i16 = 37;
    const VERSION: i16 = 1;

    fn write(&self, to: &mut WireWriter) {
        to.array(&[TOPIC], |to, topic| {
            to.string(topic);
            to.int32(self.count);
            to.array(self.replicas, |to, replicas| {
                to.array(replicas, |to, broker| to.int32(*broker as i32));
            });
        });
        to.int32(self.timeout_ms);
        // Not only validated.
        to.int8(0);
    }

    fn read(from: &mut Reader<'_>) -> Result<i16, Fault> {
        topic_result(from)
    }
}

fn topic_result(from: &mut Reader<'_>) -> Result<i16, Fault> {
    let _throttle = from.int32()?;
    let results = from.array(|from| {
        let (_name, error) = (from.string()?, from.int16()?);
        let _message = from.null_string()?;
        Ok(error)
    })?;
    results.first().copied().ok_or(Fault::Garbled)
}

/// Writes one record, and waits for all replicas that are in sync.
pub struct Produce<'r> {
    pub partition: i32,
    /// A record batch.
    pub batch: &'r [u8],
    pub timeout_ms: i32,
}

pub struct Produced {
    pub error: i16,
    pub offset: i64,
}

impl Request for Produce<'_> {
    type Response = Produced;
    const NAME: &'static str = "Produce";
    const KEY: i16 = 0;
    const VERSION: i16 = 7;

    fn write(&self, to: &mut WireWriter) {
        // No transaction; all replicas.
        to.null_string();
        to.int16(-1);
        to.int32(self.timeout_ms);
        to.array(&[TOPIC], |to, topic| {
            to.string(topic);
            to.array(&[self.partition], |to, partition| {
                to.int32(*partition);
                to.bytes(self.batch);
            });
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Produced, Fault> {
        let topics = from.array(|from| {
            let _name = from.string()?;
            from.array(|from| {
                let _partition = from.int32()?;
                let produced = Produced { error: from.int16()?, offset: from.int64()? };
                let (_append_time, _start) = (from.int64()?, from.int64()?);
                Ok(produced)
            })
        })?;
        let _throttle = from.int32()?;
        topics.into_iter().flatten().next().ok_or(Fault::Garbled)
    }
}

/// Reads records of a partition from an offset on.
pub struct Fetch {
    pub partition: i32,
    pub offset: i64,
    pub wait_ms: i32,
}

pub struct Fetched {
    pub error: i16,
    pub records: Vec<u8>,
}

impl Fetch {
    /// The most bytes of records. A broker sends more only if the first batch is larger.
    const MOST: i32 = 16 << 10;
}

impl Request for Fetch {
    type Response = Fetched;
    const NAME: &'static str = "Fetch";
    const KEY: i16 = 1;
    const VERSION: i16 = 6;

    fn write(&self, to: &mut WireWriter) {
        // Of a client, not of a replica.
        to.int32(-1);
        to.int32(self.wait_ms);
        // At least one byte, at most these.
        to.int32(1);
        to.int32(Fetch::MOST);
        // Without transactions.
        to.int8(0);
        to.array(&[TOPIC], |to, topic| {
            to.string(topic);
            to.array(&[self.partition], |to, partition| {
                to.int32(*partition);
                to.int64(self.offset);
                // The start of a follower's log.
                to.int64(-1);
                to.int32(Fetch::MOST);
            });
        });
    }

    fn read(from: &mut Reader<'_>) -> Result<Fetched, Fault> {
        let _throttle = from.int32()?;
        let topics = from.array(|from| {
            let _name = from.string()?;
            from.array(|from| {
                let (_partition, error) = (from.int32()?, from.int16()?);
                let (_high_watermark, _stable, _start) = (from.int64()?, from.int64()?, from.int64()?);
                let _aborted = from.array(|from| Ok((from.int64()?, from.int64()?)))?;
                Ok(Fetched { error, records: from.bytes()?.unwrap_or_default().to_vec() })
            })
        })?;
        topics.into_iter().flatten().next().ok_or(Fault::Garbled)
    }
}

/// Chooses how to log in.
pub struct SaslHandshake {
    pub mechanism: &'static str,
}

pub struct Mechanisms {
    pub error: i16,
    pub offered: Vec<String>,
}

impl Request for SaslHandshake {
    type Response = Mechanisms;
    const NAME: &'static str = "SaslHandshake";
    const KEY: i16 = 17;
    const VERSION: i16 = 1;

    fn write(&self, to: &mut WireWriter) {
        to.string(self.mechanism);
    }

    fn read(from: &mut Reader<'_>) -> Result<Mechanisms, Fault> {
        Ok(Mechanisms { error: from.int16()?, offered: from.array(Reader::string)? })
    }
}

/// A message of the chosen mechanism.
pub struct SaslAuthenticate<'r> {
    pub message: &'r [u8],
}

pub struct SaslAnswer {
    pub error: i16,
    pub says: Option<String>,
    pub message: Vec<u8>,
}

impl Request for SaslAuthenticate<'_> {
    type Response = SaslAnswer;
    const NAME: &'static str = "SaslAuthenticate";
    const KEY: i16 = 36;
    const VERSION: i16 = 1;

    fn write(&self, to: &mut WireWriter) {
        to.bytes(self.message);
    }

    fn read(from: &mut Reader<'_>) -> Result<SaslAnswer, Fault> {
        let (error, says) = (from.int16()?, from.null_string()?);
        let message = from.bytes()?.unwrap_or_default().to_vec();
        let _session_ms = from.int64()?;
        Ok(SaslAnswer { error, says, message })
    }
}

#[cfg(test)]
mod tests;
