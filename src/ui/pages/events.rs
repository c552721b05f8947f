//! The events, the newest first.

use askama::Template;
use axum::http::StatusCode;
use serde_json::Value;

use super::with_query;
use crate::api::answer::ListAnswer;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "events.html")]
struct Events {
    frame: Frame,
    list: ListAnswer<Value>,
    /// The resource that they are about; empty for all.
    about: String,
}

pub async fn show(visit: &Visit) -> Shown {
    let about = visit.parameter("about").to_owned();
    let page = [
        ("order", "desc"),
        ("page_size", "50"),
        ("page_token", visit.parameter("page")),
        ("about", about.as_str()),
    ];
    let list = visit.api.get(&with_query("/v1/events".to_owned(), &page)).await?;
    Ok(shown(StatusCode::OK, &Events { frame: visit.frame("events"), list, about }))
}
