//! Sign-in to the web UI by OpenID Connect: the authorization code flow with PKCE. The pages lead the browser to
//! the issuer and back; everything is decided here.
//!
//! A browser that is refused learns nothing: the log has the reason. What may take a while (the issuer, the first
//! plan, the disk) is limited in number and time.

mod attempt;
mod id_token;
mod provider;

use std::collections::HashMap;
use std::fmt;
use std::sync::{Arc, Mutex};
use std::time::{Duration, Instant};

use aws_lc_rs::{hmac, rand};
use jiff::{SignedDuration, Timestamp};
use secrecy::SecretString;
use tokio::sync::Semaphore;
use tokio::task::spawn_blocking;
use tokio::time::timeout;

use super::caller::{memberships, organizations_with};
use super::rest::{Service, sessions};
use crate::config::OidcConfig;
use crate::http::limiter::Limiter;
use crate::http::peer::Peer;
use crate::http::rate_limits::RateLimited;
use crate::names::Identifier;
use crate::parallel::locked;
use crate::problem::quote_untrusted;
use crate::state::{
    Access, BindError, BoundAccount, EventOutcome, Reach, RecordedEvent, SignInProof, State, TokenGrant,
    is_same_email,
};
use attempt::Attempt;
use id_token::Person;
use provider::Provider;

/// How many browsers that came back are answered at a time.
const AT_ONCE: usize = 16;

/// How long a browser waits for the address of the issuer's page.
const PATIENCE: Duration = Duration::from_secs(20);

/// How many attempts that were used are remembered. An issuer accepts a code once; this is a second lock.
const MAX_USED: usize = 10_000;

/// The longest code, in bytes. Those of Entra ID have some 1,500.
const LONGEST_CODE: usize = 8 << 10;

/// The answer to the browser.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum SignInRefusal {
    /// Anything that is wrong. The log says what.
    Refused,
    /// The person ended it on the issuer's page.
    Declined,
    /// The issuer doesn't say that it asked for the password a moment ago, as it was told to.
    Unproved,
    /// The issuer can't be reached.
    Unreachable,
    Limited(RateLimited),
}

/// Why a sign-in is refused, for the log.
#[derive(Debug)]
struct Rejection {
    why: String,
    told: SignInRefusal,
}

/// The way to the issuer.
pub struct Departure {
    /// The issuer's page.
    pub page: String,
    /// The value of the cookie that the browser needs when it comes back.
    pub cookie: String,
    /// The value that the browser comes back with, by which the cookie is found among those of other tabs.
    pub state: String,
}

/// The parameters that the browser came back with.
pub struct Arrival<'a> {
    pub cookie: Option<&'a str>,
    /// The decoded query.
    pub query: &'a [(String, String)],
}

pub struct SignedIn {
    /// The token of the session.
    pub session: SecretString,
    /// The page that the person came for.
    pub next: String,
}

pub struct OpenIdConnect {
    provider: Provider,
    service: Arc<Service>,
    /// Signs the cookies of attempts. They end with this process.
    key: hmac::Key,
    /// The attempts that came back, by `state`, with their time.
    used: Mutex<HashMap<String, Timestamp>>,
    turns: Semaphore,
    /// Limits the entries in the audit trail, which is kept for ever, for each address.
    audited: Arc<Limiter<String>>,
}

impl OpenIdConnect {
    /// `ui` is the link of the web UI, with a slash at the end. `None` if the settings name no issuer.
    ///
    /// # Errors
    /// When the client's secret can't be read, or there are no random numbers.
    pub(super) fn of(
        config: &OidcConfig,
        ui: &str,
        service: &Arc<Service>,
    ) -> Result<Option<OpenIdConnect>, String> {
        let Some(provider) = Provider::of(config, format!("{ui}sign-in/callback"))? else { return Ok(None) };
        let key = hmac::Key::generate(hmac::HMAC_SHA256, &rand::SystemRandom::new());
        Ok(Some(OpenIdConnect {
            provider,
            service: Arc::clone(service),
            key: key.map_err(|_| "the operating system provides no random numbers".to_owned())?,
            used: Mutex::default(),
            turns: Semaphore::new(AT_ONCE),
            audited: Arc::new(Limiter::per_minute(1)),
        }))
    }

    /// The issuer's host, by which people know it.
    pub fn host(&self) -> &str {
        let rest = self.provider.issuer.split_once("://").map_or("", |(_, rest)| rest);
        rest.split('/').next().unwrap_or_default()
    }

    /// Begins an attempt. An empty organization stands for all of the person's. With `is_again`, the person has to
    /// prove to the issuer anew who they are.
    ///
    /// # Errors
    /// When the issuer can't be reached, or the address sends too many requests.
    pub async fn depart(
        &self,
        peer: Peer,
        organization: &str,
        next: &str,
        is_again: bool,
    ) -> Result<Departure, SignInRefusal> {
        self.count(peer)?;
        let no_random = || Rejection::new("the operating system provides no random numbers".to_owned());
        let attempt = Attempt::new(organization, next, Timestamp::now());
        let attempt = attempt.map(|attempt| attempt.again(is_again)).ok_or_else(no_random);
        let attempt = attempt.map_err(|why| why.logged(peer))?;
        // Others may wait for the issuer before this one.
        let page = timeout(PATIENCE, self.provider.sign_in_page(&attempt)).await;
        let late =
            || Rejection::unreachable(format!("no answer of the issuer within {} s", PATIENCE.as_secs()));
        let page = page.unwrap_or_else(|_| Err(late())).map_err(|why| why.logged(peer))?;
        Ok(Departure { page, cookie: attempt.seal(&self.key), state: attempt.state() })
    }

    /// Signs in whom the issuer sent back.
    ///
    /// # Errors
    /// When anything is wrong; the log says what.
    pub async fn arrive(&self, peer: Peer, arrival: Arrival<'_>) -> Result<SignedIn, SignInRefusal> {
        self.count(peer)?;
        self.accept(arrival).await.map_err(|why| match why.logged(peer) {
            SignInRefusal::Unreachable => SignInRefusal::Refused,
            told => told,
        })
    }

    /// The page that an attempt is for, by its cookie.
    pub fn awaited_page(&self, cookie: &str) -> Option<String> {
        Attempt::open(cookie, &self.key, Timestamp::now()).map(|attempt| attempt.next)
    }

    fn count(&self, peer: Peer) -> Result<(), SignInRefusal> {
        let Some(from) = peer.address() else { return Ok(()) };
        self.service.rate_limits.count_unauthenticated(from, Instant::now()).map_err(SignInRefusal::Limited)
    }

    async fn accept(&self, Arrival { cookie, query }: Arrival<'_>) -> Result<SignedIn, Rejection> {
        let _turn = self
            .turns
            .try_acquire()
            .map_err(|_| Rejection::new(format!("{AT_ONCE} others are signing in at this moment")))?;
        let value =
            |name: &str| query.iter().find(|(known, _)| known == name).map(|(_, value)| value.as_str());
        let attempt =
            cookie.and_then(|cookie| Attempt::open(cookie, &self.key, Timestamp::now())).ok_or_else(
                || Rejection::new("this browser began no sign-in within the last 10 minutes".to_owned()),
            )?;
        if !value("state").is_some_and(|state| attempt.has_state(state)) {
            return Err(Rejection::new(
                "its `state` is not that of the sign-in that this browser began".to_owned(),
            ));
        }
        self.use_up(attempt.state(), Timestamp::now())?;
        // An answer of another issuer (RFC 9207).
        if let Some(issuer) = value("iss").filter(|issuer| *issuer != self.provider.issuer) {
            return Err(Rejection::new(format!(
                "the answer is one of the issuer {}",
                quote_untrusted(issuer)
            )));
        }
        if let Some(error) = value("error") {
            let text = quote_untrusted(value("error_description").unwrap_or_default());
            let told =
                if error == "access_denied" { SignInRefusal::Declined } else { SignInRefusal::Refused };
            let why = format!("the issuer answers {}: {text}", quote_untrusted(error));
            return Err(Rejection { why, told });
        }
        let code = value("code").filter(|code| !code.is_empty() && code.len() <= LONGEST_CODE);
        let code = code.ok_or_else(|| Rejection::new("the answer of the issuer has no code".to_owned()))?;
        let person = self.provider.person(code, &attempt).await?;
        let organization = self.admitted(&person, &attempt.organization).await?;
        let session = self.begin_session(person, organization).await?;
        Ok(SignedIn { session, next: attempt.next })
    }

    /// Refuses an attempt that came back before.
    fn use_up(&self, state: String, now: Timestamp) -> Result<(), Rejection> {
        let mut used = locked(&self.used);
        used.retain(|_, at| now.duration_since(*at) < attempt::LIFETIME + SignedDuration::from_mins(1));
        if used.contains_key(&state) {
            return Err(Rejection::new("this sign-in came back before".to_owned()));
        }
        if used.len() >= MAX_USED
            && let Some(oldest) = used.iter().min_by_key(|(_, at)| **at).map(|(state, _)| state.clone())
        {
            used.remove(&oldest);
        }
        used.insert(state, now);
        Ok(())
    }

    /// The organization that a person may sign in for: they are a member, or a super user.
    async fn admitted(&self, person: &Person, named: &str) -> Result<Reach, Rejection> {
        let queue = &self.service.request_queue;
        let made = queue.last().await.map_err(|none| Rejection::new(none.why))?;
        let (plan, pending) = self.service.writer.newest(|| queue.made().unwrap_or(made));
        let email = &person.email;
        let super_users = &plan.installation.config.api.super_user_emails;
        let is_super = super_users.iter().any(|known| is_same_email(known, email));
        let shown = quote_untrusted(named);
        let reach = match (named, named.parse::<Identifier>()) {
            ("" | Identifier::ROOT, _) => Reach::All,
            (_, Ok(organization)) => Reach::Organization(organization),
            (_, Err(_)) => {
                return Err(Rejection::new(format!(
                    "{email} names organization `{shown}`, which can't exist"
                )));
            }
        };
        let is_admitted = match &reach {
            Reach::All if is_super => true,
            _ if named == Identifier::ROOT => false,
            reach if is_super => organizations_with(&plan, reach, &pending).next().is_some(),
            reach => !memberships(email, reach, &plan, &pending).is_empty(),
        };
        let place =
            if named.is_empty() { "any organization".to_owned() } else { format!("organization `{shown}`") };
        match is_admitted {
            true => Ok(reach),
            false => Err(Rejection::new(format!("{email} is not a member of {place}, or there is none"))),
        }
    }

    /// Binds the account to the address, and creates the token of a session.
    async fn begin_session(&self, person: Person, organization: Reach) -> Result<SecretString, Rejection> {
        let (state, now) = (Arc::clone(&self.service.state), Timestamp::now());
        let audited = Arc::clone(&self.audited);
        let Person { subject, email, proved_at } = person;
        let issuer = self.provider.issuer.clone();
        let grant = TokenGrant {
            sign_in: Some(SignInProof { with: issuer.clone(), proved_at }),
            ..sessions::grant(email.clone(), organization, Access::Admin, sessions::LIFETIME)
        };
        let account = BoundAccount { email, issuer, subject, bound_at: now };
        let begun = spawn_blocking(move || begin_session(&state, &account, grant, &audited)).await;
        begun.unwrap_or_else(|_| Err("internal error".to_owned())).map_err(Rejection::new)
    }
}

fn begin_session(
    state: &State,
    account: &BoundAccount,
    grant: TokenGrant,
    audited: &Limiter<String>,
) -> Result<SecretString, String> {
    let BoundAccount { email, issuer, subject, bound_at: now } = account;
    let by = format!("{email} (OpenID Connect)");
    match state.bind_account(account, &by) {
        Ok(()) => {}
        Err(why @ BindError::State(_)) => return Err(why.to_string()),
        Err(why) if audited.count(email.to_ascii_lowercase(), Instant::now()).is_err() => {
            return Err(why.to_string());
        }
        Err(why) => {
            // The person who is refused doesn't own the address.
            let stranger = format!("account {} of {issuer}", quote_untrusted(subject));
            let refused = RecordedEvent::done(*now, stranger, format!("refused to sign in {email}"));
            let refused = RecordedEvent { outcome: EventOutcome::Failed, why: why.to_string(), ..refused };
            if let Err(error) = state.audit_person(refused) {
                tracing::error!(%error, hint = error.hint(), "cannot record a refused sign-in");
            }
            return Err(why.to_string());
        }
    }
    let made = state.grant_token(grant, &by, *now);
    Ok(made.map_err(|why| why.to_string())?.secret)
}

impl Rejection {
    fn new(why: String) -> Rejection {
        Rejection { why, told: SignInRefusal::Refused }
    }

    fn unreachable(why: String) -> Rejection {
        Rejection { why, told: SignInRefusal::Unreachable }
    }

    /// Logs the reason, and returns the answer to the browser.
    fn logged(self, peer: Peer) -> SignInRefusal {
        let from = peer.address().map(tracing::field::display);
        tracing::warn!(from, "sign-in by OpenID Connect refused: {self}");
        self.told
    }
}

impl fmt::Display for Rejection {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.why)
    }
}
