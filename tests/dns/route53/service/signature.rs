//! Signature Version 4, checked as its specification says.

use std::collections::BTreeMap;

use aws_lc_rs::hmac;
use jiff::{SignedDuration, Timestamp};
use sha2::{Digest as _, Sha256};

use super::zone::Refused;
use super::{KEY, SECRET};
use crate::support::proxy::wire::Message;

/// Services refuse what was signed longer ago, or is of the future.
const MOST_APART: SignedDuration = SignedDuration::from_mins(5);

const SCOPE: &str = "us-east-1/route53/aws4_request";

pub fn check(request: &Message, now: Timestamp) -> Result<(), Refused> {
    let forbidden = |code: &str, message: &str| Err(Refused::new(403, code, message));
    let headers: BTreeMap<String, &str> = request
        .head
        .lines()
        .skip(1)
        .filter_map(|line| line.split_once(':'))
        .map(|(name, value)| (name.to_lowercase(), value.trim()))
        .collect();
    let Some(signed) = headers.get("authorization").and_then(|it| it.strip_prefix("AWS4-HMAC-SHA256 "))
    else {
        return forbidden("MissingAuthenticationToken", "Request is missing Authentication Token");
    };
    let field = |name: &str| {
        let part = signed.split(", ").find_map(|part| part.strip_prefix(name)?.strip_prefix('='));
        part.unwrap_or_else(|| panic!("{signed} has no {name}"))
    };
    let (credential, names) = (field("Credential"), field("SignedHeaders"));
    let (key, scope) = credential.split_once('/').unwrap();
    if key != KEY {
        return forbidden("InvalidClientTokenId", "The security token included in the request is invalid.");
    }
    if headers.contains_key("x-amz-security-token") {
        return forbidden("ExpiredToken", "The security token included in the request is expired");
    }
    let date = headers["x-amz-date"];
    let at: Timestamp = jiff::civil::DateTime::strptime("%Y%m%dT%H%M%SZ", date)
        .unwrap()
        .to_zoned(jiff::tz::TimeZone::UTC)
        .unwrap()
        .timestamp();
    if now.duration_since(at).abs() > MOST_APART {
        return forbidden("SignatureDoesNotMatch", "Signature expired");
    }
    assert!(names.split(';').any(|name| name == "host"), "the host isn't signed: {names}");
    let (method, target) = request.method_and_path();
    let (path, query) = target.split_once('?').unwrap_or((target, ""));
    let mut query: Vec<&str> = query.split('&').filter(|pair| !pair.is_empty()).collect();
    query.sort_unstable();
    let canonical: String = names.split(';').map(|name| format!("{name}:{}\n", headers[name])).collect();
    let body = hex::encode(Sha256::digest(&request.body));
    let canonical = format!("{method}\n{path}\n{}\n{canonical}\n{names}\n{body}", query.join("&"));
    let day = &date[..8];
    let text = format!(
        "AWS4-HMAC-SHA256\n{date}\n{day}/{SCOPE}\n{}",
        hex::encode(Sha256::digest(canonical.as_bytes()))
    );
    let mut derived = format!("AWS4{SECRET}").into_bytes();
    for part in [day].into_iter().chain(SCOPE.split('/')) {
        derived = mac(&derived, part);
    }
    let is_right =
        scope == format!("{day}/{SCOPE}") && hex::encode(mac(&derived, &text)) == field("Signature");
    match is_right {
        true => Ok(()),
        false => forbidden(
            "SignatureDoesNotMatch",
            "The request signature we calculated does not match the signature you provided.",
        ),
    }
}

fn mac(key: &[u8], text: &str) -> Vec<u8> {
    hmac::sign(&hmac::Key::new(hmac::HMAC_SHA256, key), text.as_bytes()).as_ref().to_vec()
}
