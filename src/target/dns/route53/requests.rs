//! Requests to Route 53.

use std::fmt::Write as _;
use std::time::Duration;

use http::header::{DATE, HOST};
use http::{HeaderMap, Method, Request, StatusCode, Uri};
use http_body_util::Full;
use jiff::{SignedDuration, Timestamp};
use tokio::time::sleep;

use super::answer::{self, Page, RecordSet};
use super::{Route53Fault, Route53Zone};
use crate::target::aws::{AwsScope, sign};
use crate::target::dns::DnsFault;

const API: &str = "/2013-04-01";

/// Of the documents in requests.
const NAMESPACE: &str = "https://route53.amazonaws.com/doc/2013-04-01/";

/// How long it waits before it asks again what was asked too often, at first. An account may ask five times a second.
const PAUSE: Duration = Duration::from_secs(1);
const ATTEMPTS: u32 = 4;

/// How far the clocks may be apart (Signature Version 4).
const MOST_APART: SignedDuration = SignedDuration::from_mins(5);

/// The most records of a page, and the most pages: a hosted zone has up to 10,000 records unless AWS agreed to more.
const PAGE: usize = 300;
const PAGES: usize = 200;

impl Route53Zone<'_> {
    /// Returns the records of a name and of all names below it.
    pub(super) async fn sets_within(&self, name: &str) -> Result<Vec<RecordSet>, DnsFault> {
        let below = format!(".{name}");
        let mut found = Vec::new();
        let mut from = format!("name={name}.");
        for _ in 0..PAGES {
            let Page { sets, next } = self.page(&from, PAGE).await?;
            let count = sets.len();
            found.extend(sets.into_iter().filter(|set| set.name == name || set.name.ends_with(&below)));
            // They are sorted by their labels from the last to the first.
            match next {
                Some((name_of_next, kind, identifier))
                    if count > 0 && is_at_or_below(&name_of_next, name, &below) =>
                {
                    from = format!("name={}&type={}", encoded(&name_of_next), encoded(&kind));
                    if let Some(identifier) = identifier {
                        let _ = write!(from, "&identifier={}", encoded(&identifier));
                    }
                }
                _ => return Ok(found),
            }
        }
        Err(Route53Fault::Unreadable.into())
    }

    /// Returns the records of a name and a kind: several sets if they are routed.
    pub(super) async fn sets_at(&self, name: &str, kind: &str) -> Result<Vec<RecordSet>, DnsFault> {
        let Page { sets, .. } = self.page(&format!("name={name}.&type={kind}"), PAGE).await?;
        Ok(sets.into_iter().filter(|set| set.name == name && set.kind == kind).collect())
    }

    async fn page(&self, from: &str, most: usize) -> Result<Page, DnsFault> {
        let zone = self.zone_id().await?;
        let path = format!("{API}/hostedzone/{zone}/rrset?{from}&maxitems={most}");
        Ok(answer::page(&self.ask(Method::GET, &path, "").await?)?)
    }

    /// Deletes and makes records, all or none, and returns the number of the change. `unmet` is what it means that they
    /// aren't as they were told.
    pub(super) async fn change(
        &self,
        gone: impl Iterator<Item = &RecordSet>,
        made: &[RecordSet],
        unmet: DnsFault,
    ) -> Result<String, DnsFault> {
        let zone = self.zone_id().await?;
        let mut changes = String::new();
        for (action, set) in gone.map(|set| ("DELETE", set)).chain(made.iter().map(|set| ("CREATE", set))) {
            let _ = write!(changes, "<Change><Action>{action}</Action>{}</Change>", set.xml);
        }
        let body = format!(
            "<?xml version=\"1.0\" encoding=\"UTF-8\"?><ChangeResourceRecordSetsRequest xmlns=\"{NAMESPACE}\"><ChangeBatch>\
             <Changes>{changes}</Changes></ChangeBatch></ChangeResourceRecordSetsRequest>"
        );
        match self.ask(Method::POST, &format!("{API}/hostedzone/{zone}/rrset"), &body).await {
            Ok(answer) => Ok(answer::change(&answer)?.0),
            Err(Refusal { code, message, .. }) if code == "InvalidChangeBatch" && is_unmet(&message) => {
                Err(unmet)
            }
            Err(refusal) => Err(refusal.fault.into()),
        }
    }

    pub(super) async fn is_spread(&self, change: &str) -> Result<bool, DnsFault> {
        Ok(answer::change(&self.ask(Method::GET, &format!("{API}/change/{change}"), "").await?)?.1)
    }

    pub(super) async fn find_zone(&self) -> Result<String, DnsFault> {
        let path = format!("{API}/hostedzonesbyname?dnsname={}.&maxitems=100", self.zone);
        Ok(answer::zone_of(&self.ask(Method::GET, &path, "").await?, self.zone.as_str())?)
    }

    /// Asks, and asks again later what was asked too often.
    async fn ask(&self, method: Method, path: &str, body: &str) -> Result<String, Refusal> {
        let mut attempt = 1;
        loop {
            match self.ask_once(&method, path, body).await {
                Err(Refusal { fault: Route53Fault::Busy | Route53Fault::Failed(_), .. })
                    if attempt < ATTEMPTS =>
                {
                    let pause = PAUSE * (1 << (attempt - 1));
                    sleep(pause + pause.mul_f64(fastrand::f64())).await;
                    attempt += 1;
                }
                answered => return answered,
            }
        }
    }

    async fn ask_once(&self, method: &Method, path: &str, body: &str) -> Result<String, Refusal> {
        let request = self.request(method, path, body)?;
        let answer = self.https()?.send(request).await.map_err(|fault| self.unreached(&fault.to_string()))?;
        let text = String::from_utf8_lossy(answer.body()).into_owned();
        match answer.status().is_success() {
            true => Ok(text),
            false => Err(self.refusal(answer.status(), answer.headers(), &text)),
        }
    }

    fn request(
        &self,
        method: &Method,
        path: &str,
        body: &str,
    ) -> Result<Request<Full<hyper::body::Bytes>>, Route53Fault> {
        let unreached = || self.unreached("that is no https URL");
        let url = format!("{}{path}", self.login.endpoint.trim_end_matches('/'));
        let authority = url.parse::<Uri>().ok().and_then(|url| Some(url.authority()?.as_str().to_owned()));
        if !url.starts_with("https://") {
            return Err(unreached());
        }
        let mut request = Request::builder()
            .method(method)
            .uri(&url)
            .header(HOST, authority.ok_or_else(unreached)?)
            .body(body.to_owned())
            .map_err(|_| unreached())?;
        let scope =
            AwsScope { service: AwsScope::ROUTE53, region: self.login.region, time: (self.login.clock)() };
        sign(&mut request, &self.keys, scope).ok_or(Route53Fault::NoKeys("they can't be sent"))?;
        Ok(request.map(Full::from))
    }

    pub(super) fn unreached(&self, why: &str) -> Route53Fault {
        Route53Fault::Unreached { endpoint: self.login.endpoint.clone(), why: why.to_owned() }
    }

    fn refusal(&self, status: StatusCode, headers: &HeaderMap, text: &str) -> Refusal {
        let (code, message) = answer::error(text).unwrap_or_default();
        let ours = (self.login.clock)();
        let fault = match code.as_str() {
            "SignatureDoesNotMatch" | "RequestExpired" | "InvalidSignatureException"
                if let Some(theirs) = date(headers)
                    && theirs.duration_since(ours).abs() > MOST_APART =>
            {
                Route53Fault::Clock { ours, theirs }
            }
            "InvalidClientTokenId" => Route53Fault::UnknownKey,
            // Its text can have what was signed in it.
            "SignatureDoesNotMatch" | "InvalidSignatureException" => Route53Fault::WrongSecret,
            "ExpiredToken" | "ExpiredTokenException" => Route53Fault::Expired,
            "Throttling" | "ThrottlingException" | "PriorRequestNotComplete" => Route53Fault::Busy,
            "NoSuchHostedZone" => Route53Fault::NoZone(self.zone.to_string()),
            _ if status == StatusCode::TOO_MANY_REQUESTS => Route53Fault::Busy,
            _ if status.is_server_error() => Route53Fault::Failed(status),
            "AccessDenied" | "AccessDeniedException" => Route53Fault::forbidden(&message),
            _ => Route53Fault::refused(status, &code, &message),
        };
        Refusal { fault, code, message }
    }
}

/// An answer that isn't what was asked for.
pub(super) struct Refusal {
    fault: Route53Fault,
    code: String,
    message: String,
}

impl From<Route53Fault> for Refusal {
    fn from(fault: Route53Fault) -> Refusal {
        Refusal { fault, code: String::new(), message: String::new() }
    }
}

impl From<Refusal> for DnsFault {
    fn from(refusal: Refusal) -> DnsFault {
        refusal.fault.into()
    }
}

/// Whether a batch wasn't made because a record is there that should not be, or isn't as it was told.
fn is_unmet(message: &str) -> bool {
    ["Tried to ", "conflict", "other RRSets exist"].iter().any(|words| message.contains(words))
}

fn is_at_or_below(next: &str, name: &str, below: &str) -> bool {
    let next = answer::plain(next);
    next == name || next.ends_with(below)
}

fn date(headers: &HeaderMap) -> Option<Timestamp> {
    let text = headers.get(DATE)?.to_str().ok()?;
    Some(jiff::fmt::rfc2822::parse(text).ok()?.timestamp())
}

/// A value of a query.
fn encoded(text: &str) -> String {
    let mut all = String::new();
    for byte in text.bytes() {
        match byte {
            b'a'..=b'z' | b'A'..=b'Z' | b'0'..=b'9' | b'-' | b'_' | b'.' | b'~' => all.push(byte.into()),
            _ => drop(write!(all, "%{byte:02X}")),
        }
    }
    all
}
