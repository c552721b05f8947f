//! Answers that are the same for all callers, who need no token for them.

use std::sync::OnceLock;

use axum::body::Bytes;
use axum::response::Response;

use super::{Base, bytes, json_text};
use crate::api::openapi;
use crate::http::problem::code;

pub(super) fn errors(_: &Base) -> Response {
    static TEXT: OnceLock<Bytes> = OnceLock::new();
    json_text(TEXT.get_or_init(|| bytes(&serde_json::json!({"items": code::ALL}))).clone())
}

pub(super) fn document(base: &Base) -> Response {
    let server = if base.url.is_empty() { "/" } else { &base.url };
    json_text(base.document.get_or_init(|| bytes(&openapi::document(server))).clone())
}
