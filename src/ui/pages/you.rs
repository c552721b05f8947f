//! The person who is signed in, how, and which role comes from which line of which file.

use askama::Template;
use axum::http::StatusCode;

use crate::api::answer::CallerDescription;
use crate::state::Reach;
use crate::ui::view::{self, Frame, filters, shown};
use crate::ui::{Shown, Visit};

#[derive(Template)]
#[template(path = "you.html")]
struct You {
    frame: Frame,
    me: CallerDescription,
}

pub async fn show(visit: &Visit) -> Shown {
    Ok(shown(StatusCode::OK, &You { frame: visit.frame("you"), me: visit.me.clone() }))
}
