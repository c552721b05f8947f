//! Probes clusters beside the loop: each at its time, as clients outside of Kubernetes connect to it.

use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use secrecy::SecretString;
use tokio::sync::mpsc::UnboundedSender;
use tokio::sync::watch;
use tokio::time::sleep_until;
use zeroize::Zeroizing;

use super::Event;
use crate::component::health::{ProbeUser, PublicSide};
use crate::component::probe::{NameVerdict, ProbeLogin};
use crate::config::AddressRange;
use crate::parallel::locked;
use crate::probe::{ProbeLimits, Prober, SystemResolver};
use crate::round::{
    ChangedFinding, DueProbe, FailureWords, NameFinding, ProbeFindings, ReachabilityTable, Round,
};
use crate::target::{SecretValues, Target};
use crate::vitals::Vitals;

#[derive(Clone)]
pub struct ProbeTask {
    table: Arc<ReachabilityTable>,
    /// The last plan, which has the connections to Kubernetes.
    rounds: watch::Receiver<Option<Arc<Round>>>,
    tell: UnboundedSender<Event>,
    vitals: Arc<Vitals>,
    /// With the addresses that the settings allow, which may change.
    prober: Arc<Mutex<Arc<Prober>>>,
}

impl ProbeTask {
    pub fn new(
        table: Arc<ReachabilityTable>,
        rounds: watch::Receiver<Option<Arc<Round>>>,
        tell: UnboundedSender<Event>,
        vitals: Arc<Vitals>,
    ) -> Self {
        Self { table, rounds, tell, vitals, prober: Arc::new(Mutex::new(Arc::new(prober(Vec::new())))) }
    }

    /// Runs until the process ends.
    pub async fn run(self) {
        loop {
            let (due, next) = self.table.due(Instant::now());
            for probe in due {
                tokio::spawn(self.clone().probe(probe));
            }
            tokio::select! {
                () = sleep_until(next.into()) => {}
                () = self.table.changed() => {}
            }
        }
    }

    async fn probe(self, probe: DueProbe) {
        let known = self.rounds.borrow().as_ref().and_then(|round| {
            let config = &round.checked.catalog.config;
            let interval = Duration::from_secs(config.daemon.probe_seconds.into());
            Some((round.targets.get(&probe.fleet)?.clone(), config.targets.allow_addresses.clone(), interval))
        });
        // A newer plan doesn't have the fleet.
        let Some((target, allowed, interval)) = known else { return };
        let finding = self.find(&probe, &target, allowed).await;
        let found = self.table.found(&probe, finding, interval, Instant::now());
        let Some(changed) = found else { return };
        let cluster = &probe.cluster;
        match changed {
            ChangedFinding::Unreached(why) => {
                tracing::warn!(%cluster, "clients may not reach {cluster}: {why}");
            }
            ChangedFinding::Reached => tracing::info!(%cluster, "clients reach {cluster} again"),
            ChangedFinding::Confirmed => {}
        }
        // The send fails only when the process is about to end.
        let _ = self.tell.send(Event::Target);
    }

    fn prober(&self, allowed: Vec<AddressRange>) -> Arc<Prober> {
        let mut present = locked(&self.prober);
        if present.allowed() != allowed {
            *present = Arc::new(prober(allowed));
        }
        Arc::clone(&present)
    }

    async fn find(&self, probe: &DueProbe, target: &Target, allowed: Vec<AddressRange>) -> ProbeFindings {
        let (login, lacking) = match &probe.side.listener.user {
            None => (None, None),
            Some(ProbeUser { name, .. }) if !probe.side.user_is_ready => {
                (None, Some(format!("its Kafka user `{name}` isn't ready")))
            }
            Some(user) => match login(target, &probe.side, user).await {
                Ok(login) => (Some(login), None),
                Err(why) => (None, Some(why)),
            },
        };
        let order = probe.side.order(probe.cluster.clone(), login);
        let report = self.prober(allowed).check(&order).await;
        self.vitals.probed(&report);
        let finding = |verdict| match (finding(verdict), &lacking) {
            // Without a login, it ended before it could learn that.
            (NameFinding::Reached, Some(lacking)) => NameFinding::Hindered(lacking.clone()),
            (finding, _) => finding,
        };
        report.verdicts.iter().map(|it| (it.place, finding(it))).collect()
    }
}

fn prober(allowed: Vec<AddressRange>) -> Prober {
    Prober::new(Box::new(SystemResolver), allowed, ProbeLimits::default())
}

fn finding(verdict: &NameVerdict) -> NameFinding {
    match &verdict.failure {
        None => NameFinding::Reached,
        Some(_) if verdict.is_hindered() => NameFinding::Hindered(verdict.whole_sentence()),
        Some(_) => NameFinding::Unreached(FailureWords {
            for_tenants: verdict.for_tenants(),
            for_the_log: verdict.whole_sentence(),
        }),
    }
}

/// Reads the login of the probe's user, for one probe.
async fn login(target: &Target, side: &PublicSide, user: &ProbeUser) -> Result<ProbeLogin, String> {
    let ProbeUser { name, has_certificate } = user;
    let read = target.secret_values(&side.namespace, name).await;
    let values = read.map_err(|error| {
        tracing::debug!(secret = %name, %error, "cannot read the Secret {}/{name}", side.namespace);
        format!("the Secret `{name}` of its Kafka user can't be read")
    })?;
    let mut values = values.ok_or_else(|| format!("its Kafka user has no Secret `{name}`"))?;
    let login = match has_certificate {
        true => take(&mut values, "user.crt").zip(take(&mut values, "user.key")).map(|(certificate, key)| {
            ProbeLogin::Mtls { certificate: certificate.to_string(), key: secret(key) }
        }),
        false => take(&mut values, "password")
            .map(|password| ProbeLogin::Scram { user: name.clone(), password: secret(password) }),
    };
    login.ok_or_else(|| format!("the Secret `{name}` of its Kafka user has no login"))
}

fn take(values: &mut SecretValues, key: &str) -> Option<Zeroizing<String>> {
    let bytes = values.remove(key)?;
    std::str::from_utf8(&bytes).ok().map(|text| Zeroizing::new(text.to_owned()))
}

fn secret(text: Zeroizing<String>) -> SecretString {
    SecretString::from(text.as_str())
}
