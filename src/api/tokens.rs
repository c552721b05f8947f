//! Tokens, created, listed and revoked by commands on the socket.

use std::collections::BTreeMap;
use std::sync::Arc;

use axum::Router;
use axum::body::Bytes;
use axum::extract::{Extension, Path, State};
use axum::http::{StatusCode, Uri};
use axum::routing::{delete, get};
use jiff::Timestamp;
use secrecy::ExposeSecret as _;
use serde::{Deserialize, Serialize};
use uuid::Uuid;

use super::answer::{CommandAnswer, CommandProblem};
use super::caller::{missing_organization, shortfall_by_plan};
use super::commands::{Answered, Words, blocking, unknown};
use super::request_queue::{CurrentPlan, RequestQueue};
use super::socket::Peer;
use crate::state::{self, AddTokenError, NewToken, Token, TokenOrder};

/// A new token with its secret, which is shown once.
#[derive(Serialize, Deserialize)]
pub struct ShownToken {
    #[serde(flatten)]
    pub kept: Token,
    /// The secret that a caller sends.
    pub token: String,
}

impl From<NewToken> for ShownToken {
    fn from(NewToken { token, secret }: NewToken) -> ShownToken {
        ShownToken { kept: token, token: secret.expose_secret().to_owned() }
    }
}

pub(super) fn routes() -> Router<Arc<RequestQueue>> {
    Router::new().route("/tokens", get(list).post(create)).route("/tokens/{id}", delete(revoke))
}

async fn list(State(desk): State<Arc<RequestQueue>>) -> Answered {
    Ok(CommandAnswer::new(None, state_of(&desk).await?.tokens()).written())
}

async fn create(
    State(desk): State<Arc<RequestQueue>>,
    Extension(peer): Extension<Peer>,
    uri: Uri,
    body: Bytes,
) -> Answered {
    let (state, by) = (state_of(&desk).await?, Words::of(&uri).by(peer)?);
    let order: TokenOrder = serde_json::from_slice(&body).map_err(|error| {
        CommandProblem::new(StatusCode::BAD_REQUEST, format!("invalid token request: {error}"))
    })?;
    blocking(move || {
        let planned = desk.made();
        let missing = planned.and_then(|plan| {
            missing_organization(&order.organization, &plan.documents, &plan.round.checked.recorded)
        });
        if let Some((why, hint)) = missing {
            return Err(CommandProblem::new(StatusCode::BAD_REQUEST, why).hint(hint));
        }
        let made = state.add_token(order, &by, Timestamp::now())?;
        // Members are unknown before the first plan.
        let lacks = |plan: CurrentPlan| shortfall_by_plan(&made.token, &plan, &BTreeMap::new());
        let warnings = desk.made().and_then(lacks).into_iter().collect();
        Ok(CommandAnswer { warnings, ..CommandAnswer::new(None, ShownToken::from(made)) }.written())
    })
    .await
}

async fn revoke(
    State(desk): State<Arc<RequestQueue>>,
    Extension(peer): Extension<Peer>,
    Path(id): Path<String>,
    uri: Uri,
) -> Answered {
    let (state, by) = (state_of(&desk).await?, Words::of(&uri).by(peer)?);
    let id: Uuid =
        id.parse().map_err(|_| CommandProblem::new(StatusCode::BAD_REQUEST, "invalid token id"))?;
    blocking(move || Ok(CommandAnswer::new(None, state.revoke_token(id, &by, Timestamp::now())?).written()))
        .await
}

async fn state_of(desk: &RequestQueue) -> Result<Arc<state::State>, CommandProblem> {
    match desk.state.clone() {
        Some(state) => Ok(state),
        None => Err(unknown().await),
    }
}

impl From<AddTokenError> for CommandProblem {
    fn from(why: AddTokenError) -> CommandProblem {
        match why {
            AddTokenError::Order(fault) => {
                CommandProblem::new(StatusCode::BAD_REQUEST, fault.why).hint(fault.hint)
            }
            AddTokenError::State(error) => error.into(),
        }
    }
}
