//! Tokens and sessions: the own ones or, for super users, all.

use askama::Template;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use crate::api::answer::ListAnswer;
use crate::api::route::LARGEST_PAGE;
use crate::state::Token;
use crate::ui::client::{Refusal, encoded};
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "tokens.html")]
struct Tokens {
    frame: Frame,
    /// Those that are valid, the newest first.
    valid: Vec<Token>,
    ended: usize,
    /// The secret of a token that was just created, which is shown once.
    created: Option<String>,
    error: Option<Refusal>,
    form: NewToken,
}

/// What was typed.
struct NewToken {
    name: String,
    organization: String,
    access: String,
    days: String,
}

pub async fn show(visit: &Visit) -> Shown {
    page(visit, StatusCode::OK, None, None).await
}

async fn page(visit: &Visit, status: StatusCode, created: Option<String>, error: Option<Refusal>) -> Shown {
    let list: ListAnswer<Token> = visit.api.get(&format!("/v1/tokens?page_size={LARGEST_PAGE}")).await?;
    let now = jiff::Timestamp::now();
    let all = list.items.len();
    let mut valid: Vec<Token> = list.items.into_iter().filter(|token| token.is_valid_at(now)).collect();
    valid.reverse();
    let typed = |name: &str| visit.field(name).to_owned();
    let form = NewToken {
        name: typed("name"),
        organization: typed("organization"),
        access: typed("access"),
        days: typed("days"),
    };
    let (frame, ended) = (visit.frame("/tokens"), all - valid.len());
    Ok(shown(status, &Tokens { frame, valid, ended, created, error, form }))
}

pub async fn create(visit: &Visit) -> Shown {
    let mut order = json!({
        "name": visit.field("name"),
        "organization": visit.field("organization"),
        "access": visit.field("access"),
    });
    if !visit.field("days").is_empty() {
        let days = visit.field("days");
        order["days"] = days.parse::<u32>().map_or_else(|_| Value::from(days), Value::from);
    }
    match visit.api.send(Method::POST, "/v1/tokens", Some(&order)).await {
        // The secret is in this answer alone, so it isn't a redirect.
        Ok(made) => page(visit, StatusCode::OK, made["token"].as_str().map(str::to_owned), None).await,
        Err(error) => page(visit, error.status, None, Some(error)).await,
    }
}

pub async fn revoke(visit: &Visit) -> Result<Response, Refusal> {
    let path = format!("/v1/tokens/{}", encoded(visit.segment(0)));
    visit.api.send(Method::DELETE, &path, None).await?;
    Ok(visit.go("/tokens"))
}
