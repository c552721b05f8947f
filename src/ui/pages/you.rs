//! Who is signed in, how, and which role comes from which line of which file.

use askama::Template;
use axum::http::StatusCode;
use serde_json::Value;

use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "you.html")]
struct You {
    frame: Frame,
    me: Value,
}

impl You {
    fn organizations(&self) -> &[Value] {
        self.me["organizations"].as_array().map(Vec::as_slice).unwrap_or_default()
    }
}

pub async fn show(visit: &Visit) -> Shown {
    let me = visit.api.get("/v1/me").await?;
    Ok(shown(StatusCode::OK, &You { frame: visit.frame("/you"), me }))
}
