//! The reachability probe: connects to a cluster's public names as its clients do, and finds out how far it gets.
//!
//! A check resolves, connects, does TLS, logs in, asks who answers, and writes and reads a record, at the bootstrap
//! name and at each broker's. Every connection is for one check, so nothing is kept that could age. Names,
//! addresses and answers are those of tenants: each address is judged by the settings, each answer is bounded in
//! size and time, and no text of a server is passed on as it is.

mod batch;
mod check;
mod conversation;
mod fault;
mod login;
mod requests;
mod resolve;
mod scram;
mod shares;
mod tls;
mod token;
mod topic;
mod wire;

use std::io;
use std::net::IpAddr;
use std::sync::OnceLock;
use std::time::Duration;

use futures_util::stream::{self, StreamExt as _};
use tokio::net::TcpStream;
use tokio::time::{Instant, timeout};

use crate::component::probe::{
    LookupFault, ProbeFailure, ProbeOrder, ProbePlace, ProbeReport, PublicName, ServerText,
};
use crate::config::AddressRange;
use crate::names::Identifier;
use check::Check;
pub use resolve::{Found, Resolver, SystemResolver};
pub use shares::Share;
use shares::Shares;

/// The most names of one cluster that are checked at a time.
const CONCURRENT: usize = 8;

/// The most lookups at a time, and of one organization. Each blocks a thread until the operating system gives up,
/// which is long after we have, and a server for names that doesn't answer may be one organization's.
const MAX_LOOKUPS: usize = 32;
const LOOKUPS_EACH: usize = 4;

/// Limits of time and of connections.
#[derive(Debug, Clone, Copy)]
pub struct ProbeLimits {
    /// For each thing that a server has to answer.
    pub step: Duration,
    /// For all levels at one name.
    pub name: Duration,
    /// For all names of a cluster.
    pub check: Duration,
    /// The most connections of all checks together. One for a token may come on top for each check.
    pub connections: usize,
    /// The most connections of the checks of one organization.
    pub each: usize,
}

impl Default for ProbeLimits {
    fn default() -> Self {
        let (name, check) = (Duration::from_secs(60), Duration::from_secs(180));
        ProbeLimits { step: conversation::STEP, name, check, connections: 128, each: 32 }
    }
}

/// Checks clusters. All checks of a process share one, and with it the limit of connections.
pub struct Prober {
    resolver: Box<dyn Resolver>,
    /// `targets.allow_addresses` of the settings.
    allowed: Vec<AddressRange>,
    limits: ProbeLimits,
    connections: Shares,
    lookups: Shares,
    /// The authorities that this host trusts, read when they are needed first.
    system: OnceLock<tls::Trust>,
}

impl Prober {
    pub fn new(resolver: Box<dyn Resolver>, allowed: Vec<AddressRange>, limits: ProbeLimits) -> Prober {
        let connections = Shares::new(limits.connections, limits.each);
        let lookups = Shares::new(MAX_LOOKUPS, LOOKUPS_EACH);
        Prober { resolver, allowed, limits, connections, lookups, system: OnceLock::new() }
    }

    /// Checks every name of a cluster. Waits first until there is room among the connections of all checks and of
    /// those of its organization; that time doesn't count.
    pub async fn check(&self, order: &ProbeOrder) -> ProbeReport {
        let names = std::iter::once((ProbePlace::Bootstrap, &order.bootstrap));
        let names = names.chain(order.brokers.iter().map(|(id, name)| (ProbePlace::Broker(*id), name)));
        let names: Vec<_> = names.collect();
        let width = names.len().min(CONCURRENT).min(self.connections.each());
        let _room = self.connections.take(&order.cluster.organization, width).await;
        let began = Instant::now();
        let check = Check::new(self, order, began + self.limits.check);
        let names: Vec<_> = names.into_iter().map(|(place, name)| check.name(place, name)).collect();
        let verdicts = stream::iter(names).buffer_unordered(width).collect().await;
        ProbeReport {
            cluster: order.cluster.clone(),
            verdicts: check.conclude(verdicts),
            took: began.elapsed(),
        }
    }

    pub fn allowed(&self) -> &[AddressRange] {
        &self.allowed
    }

    fn system_trust(&self) -> tls::Trust {
        self.system.get_or_init(tls::Trust::of_system).clone()
    }

    async fn resolve(&self, organization: &Identifier, host: &str) -> Result<Vec<IpAddr>, ProbeFailure> {
        let ProbeLimits { step, name, .. } = self.limits;
        // While an organization's lookups aren't answered, its next ones wait, and their other names are still due.
        let turn = timeout(name / 2, self.lookups.take(organization, 1)).await.map_err(|_| {
            ProbeFailure::Lookup(LookupFault::Failed(ServerText::new("too many lookups aren't answered")))
        })?;
        resolve::resolve(&*self.resolver, (host, turn), (&self.allowed, step)).await
    }

    async fn connect(
        &self,
        organization: &Identifier,
        name: &PublicName,
    ) -> Result<(TcpStream, IpAddr), ProbeFailure> {
        let addresses = self.resolve(organization, &name.host).await?;
        self.dial(&addresses, name.port).await.map_err(|(failure, _)| failure)
    }

    /// Connects to the first address that answers, and returns it, too. The addresses share the time. If none
    /// answers, the last one's failure is returned.
    async fn dial(
        &self,
        addresses: &[IpAddr],
        port: u16,
    ) -> Result<(TcpStream, IpAddr), (ProbeFailure, Option<IpAddr>)> {
        let step = self.limits.step;
        let share = step / u32::try_from(addresses.len().max(1)).unwrap_or(1);
        let mut last = (ProbeFailure::Silent(step), None);
        for address in addresses {
            let failure = match timeout(share, TcpStream::connect((*address, port))).await {
                Ok(Ok(stream)) => {
                    // The probe's messages are small and each waits for its answer.
                    let _ = stream.set_nodelay(true);
                    return Ok((stream, *address));
                }
                Ok(Err(error)) if error.kind() == io::ErrorKind::ConnectionRefused => ProbeFailure::Refused,
                Ok(Err(error)) => ProbeFailure::Unconnected(ServerText::new(&error.to_string())),
                Err(_) => ProbeFailure::Silent(share),
            };
            last = (failure, Some(*address));
        }
        Err(last)
    }
}
