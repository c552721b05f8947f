//! The stylesheet, the script and the icon.

use axum::Router;
use axum::http::header::{CACHE_CONTROL, CONTENT_TYPE};
use axum::routing::get;

const STYLE: &str = include_str!("assets/style.css");
const ICON: &str = include_str!("assets/icon.svg");
const SCRIPT: &str = include_str!("assets/script.js");

pub fn routes() -> Router {
    let answer = |kind: &'static str, text: &'static str| {
        get(move || std::future::ready(([(CONTENT_TYPE, kind), (CACHE_CONTROL, "no-cache")], text)))
    };
    Router::new()
        .route("/ui/style.css", answer("text/css; charset=utf-8", STYLE))
        .route("/ui/icon.svg", answer("image/svg+xml", ICON))
        .route("/ui/script.js", answer("text/javascript; charset=utf-8", SCRIPT))
}
