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
        "The request can't be understood."
        "Mend what `detail` names: the JSON, a parameter, or a header."
    UNAUTHENTICATED 401 "unauthenticated"
        "Nobody knows who asks."
        "Send a token that has not expired, in a header `Authorization: Bearer TOKEN`."
    FORBIDDEN 403 "forbidden"
        "The token, or its owner, may not do this."
        "Use a token whose scope allows it, or ask an administrator of the organization for the role."
    NOT_FOUND 404 "not_found"
        "It isn't there, or the caller may not see it."
        "Look for it in the list of its kind."
    METHOD_NOT_ALLOWED 405 "method_not_allowed"
        "The path has nothing that is asked for in this way."
        "Use one of the methods that the header `Allow` names."
    NOT_ACCEPTABLE 406 "not_acceptable"
        "The answer can't be given in a form that the caller accepts."
        "Accept `application/json`."
    LATE 408 "late"
        "The request didn't come in time."
        "Send it in one go."
    DUPLICATE 409 "duplicate"
        "There is one of this name already."
        "Choose another name, or change the one that is there."
    CAPACITY 409 "capacity"
        "There is no room for it on the fleet or in the organization."
        "Ask for less, or raise the limit that `detail` names."
    PROTECTED 409 "protected"
        "It is protected against deletion."
        "Set `deletion_protection` to false first."
    GOING 409 "going"
        "It is being deleted."
        "Wait until it is gone, or create it again, which takes that back as long as nothing of it has gone."
    NOT_EMPTY 409 "not_empty"
        "Something else needs it."
        "Delete first what `detail` names."
    NOT_EDITABLE 409 "not_editable"
        "The file that it stands in can't be edited safely."
        "Edit the file by hand, as `detail` says, or move the resource into a file of its own."
    DEPENDENCY 409 "dependency"
        "What it refers to can't be used yet."
        "Mend first what `detail` names, or wait until it is there."
    READ_ONLY 409 "read_only"
        "The specs are somewhere where nothing may be written."
        "Make the change there by hand, as `hint` says."
    NOT_WAITING 409 "not_waiting"
        "Nothing waits for this approval."
        "Look at `/v1/plan` for what waits."
    STALE 412 "stale"
        "It was changed since it was read."
        "Read it again, and send its new `ETag` in `If-Match`."
    TOO_LARGE 413 "too_large"
        "The body is larger than what is taken."
        "Send less."
    URI_TOO_LONG 414 "uri_too_long"
        "The path and what stands behind it are longer than what is taken."
        "Send less."
    UNSUPPORTED 415 "unsupported"
        "The body is sent as something that isn't taken."
        "Send JSON, with a header `Content-Type: application/json`."
    EXPECTATION_FAILED 417 "expectation_failed"
        "The request expects something that isn't offered."
        "Leave the header `Expect` out."
    INVALID 422 "invalid"
        "The request is understood, and what it says is wrong."
        "Mend the fields that `errors` names."
    TOO_MANY 429 "too_many"
        "There were too many requests."
        "Wait as long as the header `Retry-After` says."
    HEAD_TOO_LARGE 431 "head_too_large"
        "There are too many headers, or they are too long."
        "Send fewer."
    INTERNAL 500 "internal"
        "A mistake in streamfleet itself."
        "Report it, with what the log says of the `request_id`."
    UNAVAILABLE 503 "unavailable"
        "It can't be done now, and nothing was changed."
        "Try again when the header `Retry-After` says."
    UNSURE 503 "unsure"
        "It was sent to the git repository, and nobody knows whether it arrived."
        "Read it again in a moment, and repeat the change if it isn't there."
    TIMED_OUT 504 "timed_out"
        "It took longer than it may, and whether anything was changed isn't known."
        "Look whether it was done before it is asked for again."
    DISK_FULL 507 "disk_full"
        "There is no room on the disk, and nothing was changed."
        "Make room on the host that streamfleet runs on."
}

/// The first code for a status, or a general one.
pub fn of(status: StatusCode) -> &'static Code {
    let fallback = if status.is_server_error() { &INTERNAL } else { &MALFORMED };
    ALL.iter().find(|code| code.status == status.as_u16()).copied().unwrap_or(fallback)
}
