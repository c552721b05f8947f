//! Hides connection errors from tenants. A kubeconfig leads wherever a tenant wants, so their details would
//! let a tenant scan a network from this host, which may reach more than the tenant can.

use std::borrow::Cow;

use crate::plan::{FleetPlan, Reach, Remark, Waiting};

/// The reason shown for any failure to reach an API server.
pub const UNREACHED: &str = "the cluster's API server can't be reached";

/// Why there was no dry run. The server's error follows after a colon.
pub const UNASKED: &str = "because the API server can't be reached";

const HINT: &str = "check the `kubeconfig`, the API server and the network to it; nothing is deleted while it is unreachable";

impl Waiting {
    /// Returns the wait without details that are only for administrators.
    pub fn redacted_for_tenants(&self) -> Cow<'_, Waiting> {
        match self {
            Waiting::Unreachable { concealed: true, refused, .. } => Cow::Owned(Waiting::Unreachable {
                reason: UNREACHED.to_owned(),
                hint: HINT.to_owned(),
                refused: *refused,
                lost: false,
                concealed: true,
            }),
            other => Cow::Borrowed(other),
        }
    }
}

impl FleetPlan {
    /// Returns the plan without details that are only for administrators.
    pub(in crate::plan) fn for_tenants(mut self) -> FleetPlan {
        if let Reach::Unreachable { reason, hint, lost, concealed: true, .. } = &mut self.reach {
            (*reason, *hint, *lost) = (UNREACHED.to_owned(), HINT.to_owned(), false);
        }
        for change in &mut self.changes {
            for waiting in &mut change.waiting {
                if let Cow::Owned(told) = waiting.redacted_for_tenants() {
                    *waiting = told;
                }
            }
            for remark in &mut change.remarks {
                if let Remark::Unverified { why, .. } = remark
                    && why.starts_with(UNASKED)
                {
                    UNASKED.clone_into(why);
                }
            }
        }
        self
    }
}
