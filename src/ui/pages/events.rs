//! The events, the newest first.

use askama::Template;
use axum::http::StatusCode;
use serde_json::Value;

use crate::api::answer::ListAnswer;
use crate::ui::client::encoded;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "events.html")]
struct Events {
    frame: Frame,
    list: ListAnswer<Value>,
}

pub async fn show(visit: &Visit) -> Shown {
    let page = encoded(visit.parameter("page"));
    let after = if page.is_empty() { String::new() } else { format!("&page_token={page}") };
    let list = visit.api.get(&format!("/v1/events?order=desc&page_size=50{after}")).await?;
    Ok(shown(StatusCode::OK, &Events { frame: visit.frame("/events"), list }))
}
