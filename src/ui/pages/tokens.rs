//! Tokens and sessions: the own ones or, for super users, all.

use askama::Template;
use axum::http::{Method, StatusCode};
use axum::response::Response;
use serde_json::{Value, json};

use super::with_query;
use crate::api::answer::ListAnswer;
use crate::api::route::LARGEST_PAGE;
use crate::http::query::encoded;
use crate::state::{Access, Reach, Token};
use crate::ui::client::Refusal;
use crate::ui::form::{Target, Typed};
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit, value_of};

#[derive(Template)]
#[template(path = "tokens.html")]
struct Tokens {
    frame: Frame,
    /// The first of those that are valid, the newest first, and the number of the others.
    valid: Vec<Token>,
    others: usize,
    ended: usize,
    /// The secret of a token that was just created, which is shown once.
    created: Option<String>,
    error: Option<Refusal>,
    /// What was typed. After a new sign-in, the address has it.
    typed: Vec<(String, String)>,
    /// Others could create only tokens that end before their session.
    may_create: bool,
    /// The id of this session's token.
    current: String,
}

impl Tokens {
    fn typed(&self, name: &str) -> &str {
        value_of(&self.typed, name)
    }
}

/// The name of a new token's secret between its creation and the page that shows it.
const SECRET: &str = "/token";

pub async fn show(visit: &Visit) -> Shown {
    let found = visit.ui.drafts.find(&visit.holder(), visit.parameter("created"));
    let created = found.filter(|draft| draft.kind.is_none()).map(|draft| {
        visit.ui.drafts.forget(draft.id);
        draft.typed.text(SECRET).to_owned()
    });
    page(visit, StatusCode::OK, created, None).await
}

async fn page(visit: &Visit, status: StatusCode, created: Option<String>, error: Option<Refusal>) -> Shown {
    let me = &visit.me;
    let mut tokens = all(visit, "/v1/tokens").await?;
    tokens.extend(all(visit, "/v1/sessions").await?);
    tokens.sort_by_key(|token| token.created_at);
    let now = jiff::Timestamp::now();
    let known = tokens.len();
    let mut valid: Vec<Token> = tokens.into_iter().filter(|token| token.is_valid_at(now)).collect();
    valid.reverse();
    let typed = [&visit.form[..], &visit.query].concat();
    let may_create = me.is_super_user && me.organization == Reach::All && me.access == Access::Admin;
    let current = me.token_id.as_ref().map(|id| id.to_string()).unwrap_or_default();
    let (frame, ended) = (visit.frame("tokens"), known - valid.len());
    let others = valid.len().saturating_sub(SHOWN);
    valid.truncate(SHOWN);
    Ok(shown(status, &Tokens { frame, valid, others, ended, created, error, typed, may_create, current }))
}

/// How many tokens and sessions are shown.
const SHOWN: usize = 100;

/// How many pages of tokens are read.
const MOST_PAGES: usize = 25;

/// The tokens of a list that the session may see, the oldest first.
async fn all(visit: &Visit, list: &str) -> Result<Vec<Token>, Refusal> {
    let (mut tokens, mut next) = (Vec::new(), String::new());
    let size = LARGEST_PAGE.to_string();
    for _ in 0..MOST_PAGES {
        let path = with_query(list.to_owned(), &[("page_size", &size), ("page_token", &next)]);
        let list: ListAnswer<Token> = visit.api.get(&path).await?;
        tokens.extend(list.items);
        match list.next_page_token {
            Some(token) => next = token,
            None => break,
        }
    }
    Ok(tokens)
}

pub async fn create(visit: &Visit) -> Shown {
    let typed = ["name", "organization", "access", "days"].map(|name| (name, visit.field(name)));
    let form = visit.ui.address(&with_query("/tokens".to_owned(), &typed));
    if let Some(sign_in) = visit.signs_in_again_to(&form) {
        return Ok(sign_in);
    }
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
        // The page that follows shows the secret once. Loading it again creates no second token.
        Ok(made) => {
            let mut secret = Typed::default();
            secret.set(SECRET, made["token"].as_str().unwrap_or_default());
            let id = visit.ui.keep(visit.holder(), None, Target::New, secret);
            Ok(visit.go(&format!("/tokens?created={id}")))
        }
        Err(error) => page(visit, error.status, None, Some(error)).await,
    }
}

pub async fn revoke(visit: &Visit) -> Result<Response, Refusal> {
    let path = format!("/v1/tokens/{}", encoded(visit.segment(0)));
    visit.api.send(Method::DELETE, &path, None).await?;
    Ok(visit.go("/tokens"))
}
