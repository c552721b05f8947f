//! Concurrency limits: how many requests are answered at a time, each on a thread of its own.
//!
//! Reads don't queue behind slow requests, and revocations don't queue behind anything else. Writes and
//! proposals wait in fair queues, where no caller can occupy all slots.

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
}

/// An occupied slot, which is freed when this is dropped.
pub(super) type OccupiedSlot = Box<dyn Send>;

impl RequestQueues {
    pub fn new() -> RequestQueues {
        let [host, light, heavy, tokens, revoking, host_revoking] =
            [32, 32, 8, 4, 4, 4].map(|slots| Arc::new(Semaphore::new(slots)));
        let [turn, proposals] = [(); 2].map(|()| OrganizationQueue::new(1));
        RequestQueues { host, light, heavy, tokens, revoking, host_revoking, turn, proposals }
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
        for kind in
            [QueueKind::Light, QueueKind::Heavy, QueueKind::Tokens, QueueKind::Turn, QueueKind::Proposal]
        {
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
}
