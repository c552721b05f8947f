//! Headers of every answer of the pages. They keep other sites and injected scripts out.

use std::sync::Arc;

use axum::extract::{Request, State};
use axum::http::header::{
    CONTENT_SECURITY_POLICY, HOST, HeaderName, HeaderValue, ORIGIN, REFERRER_POLICY, X_FRAME_OPTIONS,
};
use axum::http::{HeaderMap, Method};
use axum::middleware::Next;
use axum::response::Response;

use super::Ui;
use super::view::{Frame, failure};
use crate::http::problem::ProblemDocument;

const POLICY: &str = "default-src 'none'; script-src 'self'; style-src 'self'; img-src 'self'; connect-src 'self'; \
                      form-action 'self'; base-uri 'none'; frame-ancestors 'none'; \
                      require-trusted-types-for 'script'; trusted-types streamfleet";

const SITE: HeaderName = HeaderName::from_static("sec-fetch-site");

/// Adds the headers. The referrer stays within this origin, since forms send no `Origin` without it.
pub async fn headers(mut response: Response) -> Response {
    let own = HeaderName::from_static("cross-origin-opener-policy");
    response.headers_mut().extend([
        (CONTENT_SECURITY_POLICY, HeaderValue::from_static(POLICY)),
        (X_FRAME_OPTIONS, HeaderValue::from_static("DENY")),
        (REFERRER_POLICY, HeaderValue::from_static("same-origin")),
        (own, HeaderValue::from_static("same-origin")),
    ]);
    response
}

/// Refuses changes that another site's page requests.
pub async fn same_origin(State(ui): State<Arc<Ui>>, request: Request, next: Next) -> Response {
    let is_read = matches!(*request.method(), Method::GET | Method::HEAD);
    if is_read || is_same_origin(request.headers()) {
        return next.run(request).await;
    }
    let why = "the request comes from a page of another site";
    let problem = ProblemDocument::forbidden(why).hint("use the form on the page itself");
    failure(&Frame::outside(&ui), &problem.into())
}

/// Browsers send at least one of the two headers with every form.
fn is_same_origin(headers: &HeaderMap) -> bool {
    let text = |name: HeaderName| headers.get(name).and_then(|value| value.to_str().ok());
    match (text(SITE), text(ORIGIN)) {
        (Some(site), _) => site == "same-origin",
        (None, Some(origin)) => {
            let host = origin.split_once("://").map(|(_, host)| host);
            host.is_some() && host == text(HOST)
        }
        (None, None) => false,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_pages_of_this_origin_may_change_something() {
        for (site, origin, expected) in [
            (Some("same-origin"), None, true),
            (Some("same-origin"), Some("http://h:3000"), true),
            (Some("same-site"), Some("http://h:3000"), false),
            (Some("cross-site"), Some("http://h:3000"), false),
            (Some("none"), None, false),
            (None, Some("http://h:3000"), true),
            (None, Some("https://evil.example.com"), false),
            (None, Some("http://h:3001"), false),
            (None, Some("null"), false),
            (None, None, false),
        ] {
            let pairs = [(SITE, site), (ORIGIN, origin), (HOST, Some("h:3000"))];
            let pairs = pairs.into_iter().filter_map(|(name, value)| Some((name, value?.parse().unwrap())));
            assert_eq!(is_same_origin(&HeaderMap::from_iter(pairs)), expected, "{site:?} {origin:?}");
        }
    }
}
