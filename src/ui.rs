//! The web UI below `/ui/`: pages that the server renders from the API's answers.
//!
//! A page is a client of the API in the same process ([`client`]): it calls the API's routes with the session's
//! token, so it shows nothing that the API lacks, and all limits and permissions apply. Pages work without
//! script; the script only refreshes them.

mod assets;
mod bounded;
mod chart;
mod client;
mod form;
mod guard;
mod oidc;
mod pages;
mod read_plans;
mod refused;
mod session;
mod sign_in;
mod view;

use std::future::Future;
use std::ops::Deref;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::{Body, Bytes};
use axum::extract::{FromRequestParts as _, RawPathParams, Request};
use axum::http::header::{ACCEPT, CACHE_CONTROL, CONTENT_TYPE, ETAG, HOST, IF_NONE_MATCH, LOCATION, REFERER};
use axum::http::{HeaderMap, HeaderValue, StatusCode, Uri};
use axum::middleware::{from_fn_with_state, map_response};
use axum::response::{IntoResponse as _, Response};
use axum::routing::{MethodFilter, get, on};
use axum::{Extension, Router};
use http_body_util::BodyExt as _;
use hyper::body::Body as _;
use jiff::{SignedDuration, Timestamp};
use uuid::Uuid;
use zeroize::{Zeroize as _, Zeroizing};

use crate::api::answer::CallerDescription;
use crate::api::oidc::OpenIdConnect;
use crate::config::ApiConfig;
use crate::http::peer::Peer;
use crate::http::problem::Plain;
use crate::names::Kind;
use client::{ApiClient, Refusal};
use form::{DraftHolder, Drafts, KEPT, Target, Typed};
use read_plans::ReadPlans;
use session::Session;
use view::{Frame, failure};

pub use refused::shown_to_browsers;

/// The largest form, in bytes. The body limit of the port is larger. The script has it, too.
const LARGEST_FORM: usize = 256 << 10;

const HTML: HeaderValue = HeaderValue::from_static("text/html; charset=utf-8");

/// How long ago a person may have proved who they are for what can't be taken back. Later, somebody else may sit at the
/// screen.
pub const FRESH: SignedDuration = SignedDuration::from_mins(15);

/// The state that all pages share.
pub struct Ui {
    api: Router,
    /// The path prefix of the API and the pages, without a trailing slash.
    base: String,
    /// Whether browsers reach it by TLS.
    is_secure: bool,
    drafts: Drafts,
    read_plans: ReadPlans,
    /// Sign-in by OpenID Connect; `None` if the settings don't have it.
    oidc: Option<Arc<OpenIdConnect>>,
    /// Whether pages lead to the issuer instead of to the form.
    auto_redirect: bool,
}

/// A request for a page by somebody who is signed in.
pub struct Visit {
    ui: Arc<Ui>,
    api: ApiClient,
    session: Session,
    me: CallerDescription,
    /// The name and port by which the browser reaches this server.
    host: String,
    /// The page, or the one with the form.
    here: String,
    path: Vec<String>,
    query: Vec<(String, String)>,
    form: FormFields,
}

type Shown = Result<Response, Refusal>;
type Answer<'v> = Pin<Box<dyn Future<Output = Shown> + Send + 'v>>;

/// A page, or an action that a form on one requests.
pub struct Page {
    method: MethodFilter,
    /// The path below `/ui`, with parameters in braces.
    path: &'static str,
    answer: for<'v> fn(&'v Visit) -> Answer<'v>,
}

/// The pages below `/ui/` and the redirect from `/`.
pub fn routes(api: Router, config: &ApiConfig, oidc: Option<Arc<OpenIdConnect>>) -> Router {
    let base = config.base_path().to_owned();
    let is_secure = config.tls_cert_file.is_some()
        || config.base_url.as_deref().is_some_and(|url| url.starts_with("https://"));
    let auto_redirect = oidc.is_some() && config.oidc.auto_redirect;
    let drafts = Drafts::default();
    let read_plans = ReadPlans::default();
    let ui = Arc::new(Ui { api, base: base.clone(), is_secure, drafts, read_plans, oidc, auto_redirect });
    let sign_in = sign_in::routes(&ui).merge(oidc::routes(&ui));
    let pages = pages::PAGES.iter().fold(sign_in, |router, page| {
        let (ui, slashed) = (Arc::clone(&ui), Arc::clone(&ui));
        let path = format!("/ui{}", page.path);
        let router = match page.method == MethodFilter::GET && page.path != "/" {
            true => router.route(
                &format!("{path}/"),
                get(move |uri: Uri| std::future::ready(without_slash(&slashed, &uri))),
            ),
            false => router,
        };
        router.route(&path, on(page.method, move |request: Request| visit(ui, page, request)))
    });
    let refused = Arc::clone(&ui);
    let pages = pages.method_not_allowed_fallback(move || {
        std::future::ready(failure(&Frame::outside(&refused), &Refusal::no_page()))
    });
    let guarded = pages
        .layer(from_fn_with_state(ui, guard::same_origin))
        .merge(assets::routes())
        .layer(map_response(guard::headers));
    let home = format!("{base}/ui/");
    let to = move |request: Request| std::future::ready(start(&request, &home));
    let inner = guarded.route("/", get(to.clone())).route("/ui", get(to.clone()));
    match base.as_str() {
        "" => inner,
        base => Router::new().nest(base, inner).route(&format!("{base}/"), get(to)),
    }
}

/// Leads browsers to the first page; programs look for the API and get "not found".
fn start(request: &Request, home: &str) -> Response {
    let accept = request.headers().get(ACCEPT).and_then(|accept| accept.to_str().ok());
    match accept.is_some_and(|accept| accept.contains("text/html")) {
        true => see_other(home),
        false => StatusCode::NOT_FOUND.into_response(),
    }
}

/// Leads from an address with a slash at its end to the page.
fn without_slash(ui: &Ui, uri: &Uri) -> Response {
    see_other(&format!("{}{}", ui.base, uri.path().trim_end_matches('/')))
}

async fn visit(ui: Arc<Ui>, page: &'static Page, request: Request) -> Response {
    let (mut parts, body) = request.into_parts();
    let is_read = page.method == MethodFilter::GET;
    let here = if is_read { path_of(&ui.base, &parts.uri) } else { page_before(&parts.headers) };
    let host = parts.headers.get(HOST).and_then(|host| host.to_str().ok()).unwrap_or_default().to_owned();
    let path = RawPathParams::from_request_parts(&mut parts, &()).await;
    let path: Vec<String> =
        path.map(|path| path.iter().map(|(_, value)| value.to_owned()).collect()).unwrap_or_default();
    let sent = match form(body).await {
        Ok(sent) => sent,
        Err(refusal) => return failure(&Frame::outside(&ui), &refusal),
    };
    // A step of a form changes nothing, and its address has what was typed.
    let step = pages::next_step(page, &path, &sent.fields);
    // The form itself tells the owner of the session, if nothing else does.
    let signs_in = |sent: &SentForm| {
        let holder = ui.drafts.holder(value_of(&sent.fields, "csrf")).filter(|_| step.is_none());
        let draft = holder.and_then(|holder| pages::keep(&ui, holder, page, &path, sent));
        sign_in::ask(&ui, &step.as_ref().or(draft.as_ref()).map_or(here.clone(), |below| ui.address(below)))
    };
    let Some(session) = Session::of(&ui, &parts.headers) else { return signs_in(&sent) };
    let api = ApiClient::new(&ui, Peer::of(&parts.extensions), session.bearer());
    let query = pairs(parts.uri.query().unwrap_or_default().as_bytes());
    let me = match api.get::<CallerDescription>("/v1/me").await {
        Ok(me) => me,
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => return signs_in(&sent),
        Err(refusal) => return failure(&Frame::outside(&ui), &refusal),
    };
    // A page that says what was done just now is another one soon.
    let is_lasting = !pages::is_just_now(value_of(&query, "approved"));
    let tag = tag(&me).filter(|_| is_read && is_lasting);
    if tag.is_some() && tag.as_ref() == parts.headers.get(IF_NONE_MATCH) {
        return StatusCode::NOT_MODIFIED.into_response();
    }
    let (holder, form_token) = (session.holder(&me), value_of(&sent.fields, "csrf"));
    ui.drafts.meet(&holder);
    if let Some(step) = step {
        return see_other(&ui.address(&step));
    }
    // A form of a resource is kept first. The page of its draft can be loaded again, and returned to. It may have been
    // shown in an earlier session of the same person, which another tab replaced.
    let is_own = ui.drafts.holder(form_token).is_some_and(|shown_to| shown_to.is(&holder));
    if is_own && let Some(draft) = pages::keep(&ui, holder.clone(), page, &path, &sent) {
        return see_other(&ui.address(&draft));
    }
    if !is_read && form_token != holder.session {
        return failure(&Frame::outside(&ui), &Refusal::forged());
    }
    if let Some(cut) = sent.refusal {
        return failure(&Frame::outside(&ui), &cut);
    }
    let visit = Visit {
        ui: Arc::clone(&ui),
        api,
        session,
        me,
        host,
        here: here.clone(),
        path,
        query,
        form: sent.fields,
    };
    match (page.answer)(&visit).await {
        Ok(mut response) => {
            response.headers_mut().extend(tag.map(|tag| (ETAG, tag)));
            response
        }
        Err(refusal) if refusal.status == StatusCode::UNAUTHORIZED => sign_in::ask(&ui, &here),
        Err(refusal) => failure(&visit.frame("-"), &refusal),
    }
}

/// The tag of all pages of a visitor. The script asks with it whether there is anything new, which takes one call of the
/// API and no page.
fn tag(me: &CallerDescription) -> Option<HeaderValue> {
    let revision = me.revision.as_ref()?;
    HeaderValue::from_str(&format!("\"{}-{revision}\"", env!("CARGO_PKG_VERSION"))).ok()
}

/// The page with the form that was sent; empty if the browser doesn't say. Whoever leads there checks that it is one
/// of ours.
fn page_before(headers: &HeaderMap) -> String {
    let referer = headers.get(REFERER).and_then(|referer| referer.to_str().ok()).unwrap_or_default();
    referer.parse().map(|before: Uri| path_of("", &before)).unwrap_or_default()
}

fn path_of(base: &str, uri: &Uri) -> String {
    format!("{base}{}", uri.path_and_query().map_or("", |path| path.as_str()))
}

/// Reads the fields of a form; empty for a request without a body. Of a form that is too large, the fields that fit are
/// kept, and the rest is read: a browser shows no answer while it sends.
async fn form(mut body: Body) -> Result<SentForm, Refusal> {
    let announced = body.size_hint().upper().and_then(|size| usize::try_from(size).ok());
    let mut text = Zeroizing::new(Vec::with_capacity(announced.unwrap_or(LARGEST_FORM).min(LARGEST_FORM)));
    let mut is_cut = false;
    while let Some(part) = body.frame().await {
        let Ok(part) = part.map_err(|_| Refusal::too_large(LARGEST_FORM))?.into_data() else { continue };
        let room = LARGEST_FORM - text.len();
        is_cut |= part.len() > room;
        text.extend_from_slice(&part[..part.len().min(room)]);
        // It may contain a secret. The buffer has no other owner but the connection's.
        if let Ok(mut part) = part.try_into_mut() {
            part.as_mut().zeroize();
        }
    }
    if !is_cut {
        return Ok(SentForm { fields: FormFields(pairs(&text)), refusal: None });
    }
    let whole = text.iter().rposition(|byte| *byte == b'&').unwrap_or_default();
    let cut = pairs(&text[whole..]).into_iter().find(|(name, _)| !name.is_empty());
    let (name, mut part) = cut.unwrap_or_default();
    part.zeroize();
    let refusal = Refusal::too_large_field(&name, LARGEST_FORM);
    Ok(SentForm { fields: FormFields(pairs(&text[..whole])), refusal: Some(refusal) })
}

/// The fields that a form sent.
struct SentForm {
    fields: FormFields,
    /// Why it isn't whole.
    refusal: Option<Refusal>,
}

/// The fields of a form, which may be secrets.
struct FormFields(Vec<(String, String)>);

impl Deref for FormFields {
    type Target = [(String, String)];

    fn deref(&self) -> &Self::Target {
        &self.0
    }
}

impl Drop for FormFields {
    fn drop(&mut self) {
        self.0.iter_mut().for_each(|(_, value)| value.zeroize());
    }
}

fn pairs(text: &[u8]) -> Vec<(String, String)> {
    form_urlencoded::parse(text).into_owned().collect()
}

/// Returns the value with a name, trimmed; empty if it is missing.
fn value_of<'p>(pairs: &'p [(String, String)], name: &str) -> &'p str {
    let found = pairs.iter().find(|(known, _)| known == name);
    found.map(|(_, value)| value.trim()).unwrap_or_default()
}

fn see_other(path: &str) -> Response {
    // A path is percent-encoded, so it is a valid header.
    let to = HeaderValue::from_str(path).unwrap_or(HeaderValue::from_static("/ui/"));
    (StatusCode::SEE_OTHER, [(LOCATION, to)]).into_response()
}

fn html(status: StatusCode, page: String) -> Response {
    let headers = [(CONTENT_TYPE, HTML), (CACHE_CONTROL, HeaderValue::from_static("no-store"))];
    // Without the mark, a refusal would become a problem document.
    (status, headers, Extension(Plain), Bytes::from(page)).into_response()
}

impl Ui {
    /// One without an API, below a path.
    #[cfg(test)]
    fn of_test(base: &str) -> Ui {
        Ui {
            api: Router::new(),
            base: base.to_owned(),
            is_secure: false,
            drafts: Drafts::default(),
            read_plans: ReadPlans::default(),
            oidc: None,
            auto_redirect: false,
        }
    }

    /// The address of a page, by its path below `/ui`.
    fn address(&self, path: &str) -> String {
        format!("{}/ui{path}", self.base)
    }

    /// Keeps what was typed for its person, and returns the id of the draft. It is forgotten after a while.
    fn keep(
        self: &Arc<Self>,
        holder: DraftHolder,
        kind: impl Into<Option<Kind>>,
        target: Target,
        typed: Typed,
    ) -> Uuid {
        let id = self.drafts.keep(holder, kind, target, typed);
        let ui = Arc::clone(self);
        tokio::spawn(async move {
            tokio::time::sleep(KEPT).await;
            ui.drafts.end_old();
        });
        id
    }
}

impl Visit {
    /// A field of the form.
    fn field(&self, name: &str) -> &str {
        value_of(&self.form, name)
    }

    /// The values that were typed into a form, on a page or in the query.
    fn typed(&self) -> Typed {
        Typed::of(if self.form.is_empty() { &self.query } else { &self.form })
    }

    /// The owner of the drafts that the visitor may use.
    fn holder(&self) -> DraftHolder {
        self.session.holder(&self.me)
    }

    /// Leads to a new sign-in, and back to the page, before something that can't be taken back; `None` after a recent one.
    /// An identity provider that knows the browser begins a session without any proof.
    fn signs_in_again(&self) -> Option<Response> {
        self.signs_in_again_to(&self.here)
    }

    /// As `signs_in_again`, and then to another page.
    fn signs_in_again_to(&self, page: &str) -> Option<Response> {
        let at = self.me.sign_in.as_ref().and_then(|sign_in| sign_in.proved_at);
        let is_fresh = at.is_some_and(|at| Timestamp::now().duration_since(at) < FRESH);
        (!is_fresh).then(|| sign_in::ask_again(&self.ui, page))
    }

    /// The address of the API as the browser would use it.
    fn api_address(&self) -> String {
        let scheme = if self.ui.is_secure { "https" } else { "http" };
        format!("{scheme}://{}{}", self.host, self.ui.base)
    }

    /// A parameter of the query.
    fn parameter(&self, name: &str) -> &str {
        value_of(&self.query, name)
    }

    fn segment(&self, index: usize) -> &str {
        self.path.get(index).map(String::as_str).unwrap_or_default()
    }

    fn frame(&self, active: &'static str) -> Frame {
        Frame::of(self, active)
    }

    fn go(&self, path: &str) -> Response {
        see_other(&self.ui.address(path))
    }
}
