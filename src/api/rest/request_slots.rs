//! Concurrency limits: how many requests are answered at a time, each on a thread of its own.
//!
//! Reads don't queue behind slow requests, and revocations don't queue behind anything else. Writes, proposals,
//! observations and approvals wait in fair queues, where no caller can occupy all slots.

use std::sync::Arc;

use tokio::sync::Semaphore;
use tokio::time::timeout;

use crate::api::organization_queue::{LONGEST, OrganizationQueue, QueuedCaller, no_capacity};
use crate::api::route::QueueKind;
use crate::http::problem::ProblemDocument;
use crate::names::Identifier;

pub(super) struct RequestQueues {
    /// For local users, so that API callers never keep them waiting.
    host: Arc<Semaphore>,
    light: Arc<Semaphore>,
    heavy: Arc<Semaphore>,
    tokens: Arc<Semaphore>,
    revoking: Arc<Semaphore>,
    host_revoking: Arc<Semaphore>,
    turn: OrganizationQueue,
    proposals: OrganizationQueue,
    observations: OrganizationQueue,
    approvals: OrganizationQueue,
}

/// The slots of a queue whose requests may each take long, and the slots beside them for organizations that
/// have none.
const SLOW: (usize, usize) = (4, 12);

/// An occupied slot, which is freed when this is dropped.
pub(super) type OccupiedSlot = Box<dyn Send>;

impl RequestQueues {
    pub fn new() -> RequestQueues {
        let [host, light, heavy, tokens, revoking, host_revoking] =
            [32, 32, 8, 4, 4, 4].map(|slots| Arc::new(Semaphore::new(slots)));
        let [turn, proposals] = [(); 2].map(|()| OrganizationQueue::new(1));
        let (slots, more) = SLOW;
        let [observations, approvals] = [(); 2].map(|()| OrganizationQueue::with_reserve_slots(slots, more));
        RequestQueues {
            host,
            light,
            heavy,
            tokens,
            revoking,
            host_revoking,
            turn,
            proposals,
            observations,
            approvals,
        }
    }

    /// Waits for a slot. The slot is occupied until the work ends, even if the client disconnects. `of`
    /// returns the organization that takes the turn in a fair queue.
    ///
    /// # Errors
    /// When the wait is too long, or the caller has too many requests queued already.
    pub async fn of(
        &self,
        kind: QueueKind,
        who: QueuedCaller,
        of: impl FnOnce() -> Option<Identifier>,
    ) -> Result<OccupiedSlot, ProblemDocument> {
        let slots = match kind {
            QueueKind::Turn => return Ok(Box::new(self.turn.pass(who, of()).await?)),
            QueueKind::Proposal => return Ok(Box::new(self.proposals.pass(who, of()).await?)),
            QueueKind::Revoking if who == QueuedCaller::Host => &self.host_revoking,
            _ if who == QueuedCaller::Host => &self.host,
            QueueKind::Observation => return Ok(Box::new(self.observations.pass(who, of()).await?)),
            QueueKind::Approval => return Ok(Box::new(self.approvals.pass(who, of()).await?)),
            QueueKind::Open | QueueKind::Light => &self.light,
            QueueKind::Heavy => &self.heavy,
            QueueKind::Tokens => &self.tokens,
            QueueKind::Revoking => &self.revoking,
        };
        match timeout(LONGEST, Arc::clone(slots).acquire_owned()).await {
            Ok(Ok(permit)) => Ok(Box::new(permit)),
            _ => Err(no_capacity()),
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt as _;

    use super::*;

    #[tokio::test]
    async fn a_token_is_revoked_whatever_else_goes_on() {
        let slots = RequestQueues::new();
        let ask = |kind| {
            let ada = QueuedCaller::Owner("ada@example.com".to_owned());
            slots.of(kind, ada, || None).now_or_never()
        };
        let mut kept = Vec::new();
        for kind in [
            QueueKind::Light,
            QueueKind::Heavy,
            QueueKind::Tokens,
            QueueKind::Turn,
            QueueKind::Proposal,
            QueueKind::Observation,
            QueueKind::Approval,
        ] {
            while let Some(taken) = ask(kind) {
                kept.push(taken.ok().unwrap());
            }
        }
        assert!(kept.len() > 40, "{}", kept.len());
        assert!(ask(QueueKind::Revoking).unwrap().is_ok());
    }

    #[tokio::test]
    async fn the_host_revokes_a_token_whatever_callers_and_its_other_commands_do() {
        let slots = RequestQueues::new();
        let ada = || QueuedCaller::Owner("ada@example.com".to_owned());
        let ask = |kind, who| slots.of(kind, who, || None).now_or_never();
        let mut kept = Vec::new();
        while let Some(taken) = ask(QueueKind::Revoking, ada()) {
            kept.push(taken.ok().unwrap());
        }
        while let Some(taken) = ask(QueueKind::Heavy, QueuedCaller::Host) {
            kept.push(taken.ok().unwrap());
        }
        assert!(kept.len() > 32, "{}", kept.len());
        assert!(ask(QueueKind::Revoking, QueuedCaller::Host).expect("it doesn't wait").is_ok());
    }

    #[tokio::test]
    async fn slow_reads_of_one_organization_hold_up_no_other_and_no_read_holds_up_an_approval() {
        let slots = RequestQueues::new();
        let ask = |kind, of: &str| {
            let who = QueuedCaller::Owner(format!("ada@{of}.example.com"));
            let of: Option<Identifier> = Some(of.parse().unwrap());
            slots.of(kind, who, || of).now_or_never()
        };
        let explain = crate::api::route::ROUTES.iter().find(|route| route.id == "explain_cluster").unwrap();
        let approve = crate::api::route::ROUTES.iter().find(|route| route.id == "approve_plan").unwrap();
        let mut kept = Vec::new();
        for kind in [explain.queue, QueueKind::Heavy, QueueKind::Light] {
            while let Some(taken) = ask(kind, "acme") {
                kept.push(taken.ok().unwrap());
            }
        }
        assert!(ask(explain.queue, "globex").expect("it doesn't wait").is_ok());
        while let Some(taken) = ask(approve.queue, "acme") {
            kept.push(taken.expect("reads keep no approval waiting"));
            assert!(kept.len() < 100);
        }
        assert!(ask(approve.queue, "globex").expect("it doesn't wait").is_ok());
    }
}
