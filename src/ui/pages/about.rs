//! This installation, and the specs that it carries out.

use askama::Template;
use axum::http::StatusCode;

use crate::api::answer::About;
use crate::config::Mode;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "about.html")]
struct AboutPage {
    frame: Frame,
    about: About,
}

pub async fn show(visit: &Visit) -> Shown {
    let about = visit.api.get("/v1/about").await?;
    Ok(shown(StatusCode::OK, &AboutPage { frame: visit.frame("about"), about }))
}
