//! The check of one cluster: the levels at each name, and what follows from all of them together.

use std::collections::BTreeMap;
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};
use std::time::Duration;

use jiff::Timestamp;
use secrecy::SecretString;
use tokio::io::AsyncWriteExt as _;
use tokio::net::TcpStream;
use tokio::sync::OnceCell;
use tokio::time::{Instant, sleep, timeout};
use tokio_rustls::client::TlsStream;

use super::conversation::Conversation;
use super::login::Credentials;
use super::requests::{
    ApiVersions, ClusterMetadata, CreatePartitions, CreateTopic, Fetch, KnownVersions, ListOffsets, Metadata,
    Produce,
};
use super::topic::{self, Assignment, Layout};
use super::wire::Request;
use super::{ProbeLimits, Prober, batch, tls};
use crate::component::probe::{
    NameVerdict, ProbeFailure, ProbeLevel, ProbeLogin, ProbeNote, ProbeOrder, ProbePlace, ProbeTrust,
    PublicName, ServerText,
};

/// The length of a record, in bytes.
const RECORD: usize = 64;

/// The pause before something is asked again that may have been too early.
const PAUSE: Duration = Duration::from_millis(200);

/// How often a broker is asked which partitions it leads, before it is found to be another one. Leadership may
/// have moved between two questions.
const PROOFS: usize = 5;

/// How long the end of TLS may take.
const GOODBYE: Duration = Duration::from_secs(1);

/// Error codes of Kafka (`org.apache.kafka.common.protocol.Errors`).
const TIMED_OUT: i16 = 7;
/// `UNKNOWN_TOPIC_OR_PARTITION`, `LEADER_NOT_AVAILABLE`, `NOT_LEADER_OR_FOLLOWER`: another broker is asked, or one
/// that is about to know better.
const ELSEWHERE: [i16; 3] = [3, 5, 6];
/// `OFFSET_NOT_AVAILABLE`: a leader that was just elected.
const NEW_LEADER: i16 = 78;

type Broker = Conversation<TlsStream<TcpStream>>;

/// The state that all names of a cluster share during its check.
pub struct Check<'c> {
    prober: &'c Prober,
    order: &'c ProbeOrder,
    /// When the check of all names has to end.
    ends: Instant,
    trust: Result<tls::Trust, ProbeFailure>,
    token: OnceCell<Result<SecretString, ProbeFailure>>,
    /// The first broker that gets so far reads the topic's layout. `None` until one did.
    layout: tokio::sync::Mutex<Option<Result<Arc<Layout>, ProbeFailure>>>,
    seen: Mutex<Seen>,
}

#[derive(Default)]
struct Seen {
    /// The result of writing each broker's record.
    written: BTreeMap<u32, Result<Option<ProbeNote>, ProbeFailure>>,
    /// The id of the cluster that answered, and the first broker that it advertises.
    clusters: BTreeMap<ProbePlace, (Option<String>, Option<ServerText>)>,
}

impl<'c> Check<'c> {
    pub fn new(prober: &'c Prober, order: &'c ProbeOrder, ends: Instant) -> Self {
        let trust = match &order.trust {
            ProbeTrust::System => Ok(prober.system_trust()),
            ProbeTrust::Certificates(pem) => tls::Trust::of_certificates(pem),
        };
        let trust = trust
            .and_then(|trust| trust.only(order.certificate.as_deref()))
            .and_then(|trust| trust.showing(order.login.as_ref()));
        Check {
            prober,
            order,
            ends,
            trust,
            token: OnceCell::new(),
            layout: tokio::sync::Mutex::default(),
            seen: Mutex::default(),
        }
    }

    pub async fn name(&self, place: ProbePlace, name: &PublicName) -> NameVerdict {
        let mut verdict = NameVerdict {
            place,
            name: name.clone(),
            address: None,
            reached: None,
            failure: None,
            note: None,
            took: BTreeMap::new(),
        };
        let ProbeLimits { name, check, .. } = self.prober.limits;
        let rest = self.ends.saturating_duration_since(Instant::now());
        let checked = timeout(rest.min(name), self.levels(&mut verdict)).await;
        let late = Err(ProbeFailure::Late(if rest < name { check } else { name }));
        verdict.failure = checked.unwrap_or(late).err();
        verdict
    }

    async fn levels(&self, verdict: &mut NameVerdict) -> Result<(), ProbeFailure> {
        let PublicName { host, port } = verdict.name.clone();
        let step = self.prober.limits.step;
        let lookup = self.prober.resolve(&self.order.cluster.organization, &host);
        let addresses = level(verdict, ProbeLevel::Resolve, lookup).await?;
        let began = Instant::now();
        let (stream, address) = match self.prober.dial(&addresses, port).await {
            Ok((stream, address)) => (Ok(stream), Some(address)),
            Err((failure, address)) => (Err(failure), address),
        };
        verdict.address = address;
        let stream = level_since(verdict, ProbeLevel::Connect, (began, stream))?;
        let trust = self.trust.as_ref().map_err(Clone::clone);
        let handshake = async { trust?.shake_hands(stream, (&host, step)).await };
        let mut broker = Conversation::new(level(verdict, ProbeLevel::Tls, handshake).await?, step);
        let talked = match &self.order.login {
            Some(login) => self.talk(verdict, &mut broker, login).await,
            None => Ok(()),
        };
        // Whatever came of it, a server that hears the end of TLS logs no error.
        let _ = timeout(GOODBYE, broker.stream.shutdown()).await;
        talked
    }

    async fn talk(
        &self,
        verdict: &mut NameVerdict,
        broker: &mut Broker,
        login: &ProbeLogin,
    ) -> Result<(), ProbeFailure> {
        let known = level(verdict, ProbeLevel::Login, self.log_in(broker, login)).await?;
        match verdict.place {
            ProbePlace::Bootstrap => {
                level(verdict, ProbeLevel::Identity, self.is_a_bootstrap(broker, &known)).await
            }
            ProbePlace::Broker(id) => {
                let layout = level(verdict, ProbeLevel::Identity, self.is_broker(broker, id, &known)).await?;
                let began = Instant::now();
                let written = self.write(broker, id, layout).await;
                verdict.took.insert(ProbeLevel::Write, began.elapsed());
                written
            }
        }
    }

    async fn log_in(&self, broker: &mut Broker, login: &ProbeLogin) -> Result<KnownVersions, ProbeFailure> {
        let token = match login {
            ProbeLogin::OAuth(request) => {
                let organization = &self.order.cluster.organization;
                let token = self.token.get_or_init(|| self.prober.token(organization, request)).await;
                Some(token.as_ref().map_err(Clone::clone)?)
            }
            _ => None,
        };
        let unusable = || ProbeFailure::Unusable(ServerText::new("there is no token"));
        Credentials::new(login, token).ok_or_else(unusable)?.log_in(broker).await
    }

    /// Asks for the brokers of the cluster that answers.
    async fn brokers(
        &self,
        broker: &mut Broker,
        (place, known): (ProbePlace, &KnownVersions),
    ) -> Result<ClusterMetadata, ProbeFailure> {
        if known.error != 0 {
            return Err(ProbeFailure::Version { request: ApiVersions::NAME });
        }
        if let Some(request) = unknown(known) {
            return Err(ProbeFailure::Version { request });
        }
        let metadata = broker.ask(&Metadata { with_topic: false }).await?;
        let found = metadata.brokers.first().map(|it| PublicName::told(&it.host, it.port));
        let has_ours = metadata.brokers.iter().any(|it| self.is_of_plan(it.id));
        if !has_ours {
            return Err(ProbeFailure::AnotherCluster { found });
        }
        self.seen().clusters.insert(place, (metadata.cluster.clone(), found));
        Ok(metadata)
    }

    fn is_of_plan(&self, id: i32) -> bool {
        u32::try_from(id).is_ok_and(|id| self.order.brokers.contains_key(&id))
    }

    async fn is_a_bootstrap(&self, broker: &mut Broker, known: &KnownVersions) -> Result<(), ProbeFailure> {
        self.brokers(broker, (ProbePlace::Bootstrap, known)).await.map(drop)
    }

    /// Finds out whether the broker that answers is this one: it advertises its name, and leads what the cluster
    /// says that it leads. Returns the layout of the topic, or Kafka's refusal to tell or create it, without which
    /// the latter isn't known.
    async fn is_broker(
        &self,
        broker: &mut Broker,
        id: u32,
        known: &KnownVersions,
    ) -> Result<Result<Arc<Layout>, ProbeFailure>, ProbeFailure> {
        let metadata = self.brokers(broker, (ProbePlace::Broker(id), known)).await?;
        let listed = metadata.brokers.iter().find(|it| u32::try_from(it.id) == Ok(id));
        let (Some(listed), Some(name)) = (listed, self.order.brokers.get(&id)) else {
            return Err(ProbeFailure::Unlisted);
        };
        if !listed.host.eq_ignore_ascii_case(&name.host) || listed.port != i32::from(name.port) {
            return Err(ProbeFailure::Advertised { found: PublicName::told(&listed.host, listed.port) });
        }
        let layout = self.layout(broker).await?;
        if let Ok(layout) = &layout {
            prove(broker, id, layout).await?;
        }
        Ok(layout)
    }

    /// The topic's layout, or Kafka's refusal.
    async fn layout(&self, broker: &mut Broker) -> Result<Result<Arc<Layout>, ProbeFailure>, ProbeFailure> {
        let mut kept = self.layout.lock().await;
        if let Some(layout) = &*kept {
            return Ok(layout.clone());
        }
        let deadline = Instant::now() + self.prober.limits.step;
        let layout = match topic::ensure(broker, self.order, deadline).await {
            Ok(layout) => Ok(Arc::new(layout)),
            Err(refusal @ ProbeFailure::Topic { .. }) => Err(refusal),
            // The next broker may have more luck.
            Err(failure) => return Err(failure),
        };
        Ok(kept.insert(layout).clone())
    }

    /// Writes the records of all partitions that this broker leads, its own first. The verdicts follow when all
    /// brokers are done, since a partition may be led by another one.
    async fn write(
        &self,
        broker: &mut Broker,
        id: u32,
        layout: Result<Arc<Layout>, ProbeFailure>,
    ) -> Result<(), ProbeFailure> {
        let layout = layout?;
        let leads = |(_, it): &(&u32, &Assignment)| u32::try_from(it.leader) == Ok(id);
        let mut led: Vec<_> = layout.assigned.iter().filter(leads).collect();
        led.sort_by_key(|(owner, _)| **owner != id);
        for (owner, Assignment { partition, .. }) in led {
            let written = write_one(broker, *partition, self.prober.limits.step).await;
            self.seen().written.insert(*owner, written);
        }
        Ok(())
    }

    /// Completes the verdicts with what is only known when all names are checked.
    pub fn conclude(self, mut verdicts: Vec<NameVerdict>) -> Vec<NameVerdict> {
        let seen = self.seen.into_inner().unwrap_or_else(PoisonError::into_inner);
        let layout = self.layout.into_inner().and_then(Result::ok).unwrap_or_default();
        verdicts.sort_by_key(|verdict| verdict.place);
        for verdict in &mut verdicts {
            let is_whole = verdict.failure.is_none() && verdict.reached == Some(ProbeLevel::Identity);
            match verdict.place {
                ProbePlace::Bootstrap if is_whole => seen.judge_bootstrap(verdict),
                ProbePlace::Broker(id) if is_whole => seen.judge_write(verdict, (id, &layout)),
                _ => {}
            }
        }
        verdicts
    }

    fn seen(&self) -> MutexGuard<'_, Seen> {
        self.seen.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Seen {
    /// The bootstrap name leads to the cluster that one of the brokers' names leads to.
    fn judge_bootstrap(&self, verdict: &mut NameVerdict) {
        let Some((cluster, found)) = self.clusters.get(&ProbePlace::Bootstrap) else { return };
        let mut others =
            self.clusters.iter().filter(|(place, _)| **place != ProbePlace::Bootstrap).peekable();
        if others.peek().is_some() && others.all(|(_, (other, _))| other != cluster) {
            verdict.reached = Some(ProbeLevel::Login);
            verdict.failure = Some(ProbeFailure::AnotherCluster { found: found.clone() });
        }
    }

    fn judge_write(&self, verdict: &mut NameVerdict, (id, layout): (u32, &Layout)) {
        let Some(Assignment { partition, leader }) = layout.assigned.get(&id).copied() else {
            verdict.failure = layout.refused.get(&id).cloned();
            verdict.note = verdict.failure.is_none().then_some(ProbeNote::NoPartition);
            return;
        };
        let Ok(leader) = u32::try_from(leader) else {
            verdict.failure = Some(ProbeFailure::Leaderless { partition });
            return;
        };
        let is_moved = leader != id;
        match self.written.get(&id) {
            Some(Ok(None)) => {
                verdict.reached = Some(ProbeLevel::Write);
                verdict.note = is_moved.then_some(ProbeNote::Led { partition, by: leader });
            }
            // The record may be there, so it is neither fine nor a failure.
            Some(Ok(note)) => verdict.note.clone_from(note),
            Some(Err(failure)) if !is_moved || !failure.is_about_network() => {
                verdict.failure = Some(failure.clone());
            }
            _ => verdict.note = Some(ProbeNote::LeaderNotReached { partition, by: leader }),
        }
    }
}

/// Runs a level, and notes its time and its success.
async fn level<T>(
    verdict: &mut NameVerdict,
    level: ProbeLevel,
    work: impl Future<Output = Result<T, ProbeFailure>>,
) -> Result<T, ProbeFailure> {
    let began = Instant::now();
    let done = work.await;
    level_since(verdict, level, (began, done))
}

fn level_since<T>(
    verdict: &mut NameVerdict,
    level: ProbeLevel,
    (began, done): (Instant, Result<T, ProbeFailure>),
) -> Result<T, ProbeFailure> {
    verdict.took.insert(level, began.elapsed());
    if done.is_ok() {
        verdict.reached = Some(level);
    }
    done
}

/// The first request that the broker doesn't know in the version that is used.
fn unknown(known: &KnownVersions) -> Option<&'static str> {
    [
        (known.has::<Metadata>(), Metadata::NAME),
        (known.has::<ListOffsets>(), ListOffsets::NAME),
        (known.has::<CreateTopic>(), CreateTopic::NAME),
        (known.has::<CreatePartitions>(), CreatePartitions::NAME),
        (known.has::<Produce>(), Produce::NAME),
        (known.has::<Fetch>(), Fetch::NAME),
    ]
    .into_iter()
    .find_map(|(is_known, name)| (!is_known).then_some(name))
}

/// Finds out whether the broker that answers is the one with this id. No response of Kafka says so; but only the
/// leader of a partition tells its offsets, and every broker knows all leaders.
async fn prove(broker: &mut Broker, id: u32, layout: &Layout) -> Result<(), ProbeFailure> {
    let partitions: Vec<i32> = layout.leaders.keys().copied().collect();
    let mut found = None;
    for attempt in 0..PROOFS {
        if attempt > 0 {
            sleep(PAUSE).await;
        }
        let told = broker.ask(&ListOffsets { partitions: &partitions }).await?;
        let metadata = broker.ask(&Metadata { with_topic: true }).await?;
        let leaders = metadata.topic.map(|(_, partitions)| partitions).unwrap_or_default();
        let leader = |partition: i32| {
            let leader = leaders.iter().find(|it| it.index == partition)?.leader;
            u32::try_from(leader).ok()
        };
        let led = told.iter().filter(|(_, code)| [0, NEW_LEADER].contains(code));
        let led: Vec<u32> = led.filter_map(|(partition, _)| leader(*partition)).collect();
        let refuses_own =
            told.iter().any(|(partition, code)| leader(*partition) == Some(id) && ELSEWHERE.contains(code));
        if led.iter().all(|leader| *leader == id) && !refuses_own {
            return Ok(());
        }
        found = led.into_iter().find(|leader| *leader != id);
    }
    Err(ProbeFailure::AnotherBroker { node: found })
}

/// Writes a record to a partition that the broker leads, and reads it back.
async fn write_one(
    broker: &mut Broker,
    partition: i32,
    within: Duration,
) -> Result<Option<ProbeNote>, ProbeFailure> {
    let mut record = [0; RECORD];
    let no_random = |_| ProbeFailure::Unusable(ServerText::new("this host provides no random numbers"));
    aws_lc_rs::rand::fill(&mut record).map_err(no_random)?;
    let batch = batch::of_one(&record, Timestamp::now().as_millisecond());
    let deadline = Instant::now() + within;
    let offset = loop {
        let request = Produce { partition, batch: &batch, timeout_ms: broker.patience_ms() };
        let produced = broker.ask(&request).await?;
        match produced.error {
            0 => break produced.offset,
            // Replicas that fall behind hold up a write for up to half a minute, and the broker is reachable.
            TIMED_OUT => return Ok(Some(ProbeNote::ReplicasLate { partition })),
            code if ELSEWHERE.contains(&code) && Instant::now() < deadline => sleep(PAUSE).await,
            code => return Err(ProbeFailure::WriteRefused { partition, code }),
        }
    };
    let wait_ms = broker.patience_ms() / 8;
    loop {
        let fetched = broker.ask(&Fetch { partition, offset, wait_ms }).await?;
        let is_over = Instant::now() >= deadline;
        match fetched.error {
            0 if batch::has(&fetched.records, &record) => return Ok(None),
            // Readers see a record when all replicas are known to have it.
            0 if fetched.records.is_empty() && !is_over => {}
            0 => return Err(ProbeFailure::Lost { partition }),
            code if ELSEWHERE.contains(&code) && !is_over => sleep(PAUSE).await,
            code => return Err(ProbeFailure::ReadRefused { partition, code }),
        }
    }
}

#[cfg(test)]
mod tests;
