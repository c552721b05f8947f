//! Answers of the API that the command line reads, too.

use schemars::JsonSchema;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};

use crate::names::FleetKey;
use crate::state::{NewToken, Token};

/// A page of a list.
#[derive(Debug, Serialize, Deserialize)]
pub struct ListAnswer<T> {
    pub items: Vec<T>,
    pub next_page_token: Option<String>,
    pub total: usize,
}

/// The result of an approval.
#[derive(Debug, Serialize, Deserialize, JsonSchema)]
pub struct PlanApproval {
    /// The approval id.
    pub id: String,
    /// The fleet, such as `acme/eu`; null if its steps had been approved before.
    pub fleet: Option<FleetKey>,
    /// The approved steps, such as `delete cluster acme/orders`; null if they had been approved before.
    pub changes: Option<String>,
    /// Who approved it, now or before.
    pub approved_by: String,
}

/// A new token with its secret, which is shown once.
#[derive(Serialize, Deserialize)]
pub struct ShownToken {
    #[serde(flatten)]
    pub kept: Token,
    /// The secret that a caller sends.
    pub token: String,
}

/// A new token, and what to know of it.
#[derive(Serialize, Deserialize)]
pub struct CreatedToken {
    #[serde(flatten)]
    pub shown: ShownToken,
    pub warnings: Vec<String>,
}

impl From<NewToken> for ShownToken {
    fn from(NewToken { token, secret }: NewToken) -> ShownToken {
        ShownToken { kept: token, token: secret.expose_secret().to_owned() }
    }
}
