//! Error codes, as `/v1/errors` lists them. Programs depend on them, so a code never changes.

use axum::http::StatusCode;
use serde::Serialize;

#[derive(Debug, PartialEq, Eq, Serialize)]
pub struct Code {
    #[serde(rename = "code")]
    pub word: &'static str,
    pub status: u16,
    pub title: &'static str,
    pub next: &'static str,
}

impl Code {
    pub fn status(&self) -> StatusCode {
        StatusCode::from_u16(self.status).unwrap_or(StatusCode::INTERNAL_SERVER_ERROR)
    }
}

macro_rules! codes {
    ($($name:ident $status:literal $word:literal $title:literal $next:literal)*) => {
        $(
            #[doc = $title]
            pub static $name: Code = Code { word: $word, status: $status, title: $title, next: $next };
        )*
        /// Sorted by status.
        pub static ALL: &[&Code] = &[$(&$name),*];
    };
}

codes! {
    MALFORMED 400 "malformed"
        "Invalid request."
        "Correct what `detail` names: the JSON, a parameter, or a header."
    UNAUTHENTICATED 401 "unauthenticated"
        "Authentication required."
        "Send a valid token, in a header `Authorization: Bearer TOKEN`."
    FORBIDDEN 403 "forbidden"
        "The token or its owner lacks permission."
        "Use a token with that access, or ask an administrator of the organization for the role."
    NOT_FOUND 404 "not_found"
        "The resource doesn't exist, or the caller may not see it."
        "Look for it in the list of its kind."
    METHOD_NOT_ALLOWED 405 "method_not_allowed"
        "Method not allowed."
        "Use one of the methods in the header `Allow`."
    NOT_ACCEPTABLE 406 "not_acceptable"
        "No form of the answer that the caller accepts is supported."
        "Accept `application/json`."
    LATE 408 "late"
        "The request arrived too slowly."
        "Send it without pauses."
    DUPLICATE 409 "duplicate"
        "A resource with this name exists already."
        "Choose another name, or change the existing resource."
    CAPACITY 409 "capacity"
        "The fleet or the organization has no capacity left for it."
        "Request less, or raise the limit that `detail` names."
    PROTECTED 409 "protected"
        "The resource is protected against deletion."
        "Set `deletion_protection` to false first."
    GOING 409 "going"
        "The resource is being deleted."
        "Wait until it is deleted, or create it again, which cancels the deletion while nothing has been deleted."
    NOT_EMPTY 409 "not_empty"
        "Other resources depend on this one."
        "First delete the resources that `detail` names."
    NOT_EDITABLE 409 "not_editable"
        "Its file can't be edited safely."
        "Edit the file by hand, as `detail` says, or move the resource into its own file."
    DEPENDENCY 409 "dependency"
        "A resource that it refers to can't be used yet."
        "First fix the resource that `detail` names, or wait until it exists."
    READ_ONLY 409 "read_only"
        "The specs are read-only."
        "Make the change where the specs are, as `hint` says."
    OTHER_SOURCE 409 "other_source"
        "The daemon uses other specs than the command."
        "Use the specs that `detail` names as the daemon's."
    NOT_WAITING 409 "not_waiting"
        "Nothing waits for this approval."
        "See `/v1/plan` for what waits."
    NO_PORT 409 "no_port"
        "The daemon has no open port, and so no web UI."
        "Restart it with an address to listen on, such as `--listen 127.0.0.1:3000`."
    STALE 412 "stale"
        "The resource changed since it was read."
        "Read it again, and send its new `ETag` in `If-Match`."
    TOO_LARGE 413 "too_large"
        "The body is too large."
        "Send less."
    URI_TOO_LONG 414 "uri_too_long"
        "The path and its parameters are too long."
        "Send less."
    UNSUPPORTED 415 "unsupported"
        "The content type of the body isn't supported."
        "Send JSON, with a header `Content-Type: application/json`."
    EXPECTATION_FAILED 417 "expectation_failed"
        "The request's `Expect` header isn't supported."
        "Leave out the header `Expect`."
    INVALID 422 "invalid"
        "The request is well-formed, but its content is invalid."
        "Correct the fields in `errors`."
    TOO_MANY 429 "too_many"
        "Too many requests."
        "Wait as long as the header `Retry-After` says."
    HEAD_TOO_LARGE 431 "head_too_large"
        "Too many headers, or too long ones."
        "Send fewer."
    INTERNAL 500 "internal"
        "Internal error."
        "Report it, with the log of the `request_id`."
    UNAVAILABLE 503 "unavailable"
        "Not possible now; nothing was changed."
        "Try again after the time in the header `Retry-After`."
    UNSURE 503 "unsure"
        "The change was sent to the git repository, and it is unknown whether it arrived."
        "Read the resource again in a moment, and repeat the change if it is missing."
    TIMED_OUT 504 "timed_out"
        "Timed out; it is unknown whether anything was changed."
        "Check whether it was done before you repeat it."
    DISK_FULL 507 "disk_full"
        "The disk is full; nothing was changed."
        "Free space on the host of streamfleet."
}

/// The first code for a status, or a general one.
pub fn of(status: StatusCode) -> &'static Code {
    let fallback = if status.is_server_error() { &INTERNAL } else { &MALFORMED };
    ALL.iter().find(|code| code.status == status.as_u16()).copied().unwrap_or(fallback)
}
