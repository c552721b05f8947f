//! A certificate authority, asked by ACME (RFC 8555).

mod fault;
mod http;

use std::time::Duration;

use instant_acme::{
    Account, AuthorizationStatus, CertificateIdentifier, ChallengeStatus, ChallengeType, Identifier,
    NewAccount, NewOrder, Order, OrderStatus, Problem, RetryPolicy,
};
use jiff::{SignedDuration, Timestamp};
use rustls_pki_types::CertificateDer;
use rustls_pki_types::pem::PemObject as _;
use secrecy::{ExposeSecret as _, SecretString};

use crate::catalog::RenewalWindow;
use crate::config::{AcmeConfig, Challenge};
use crate::spec::certificate::Certificate;
pub use fault::AcmeFault;
use http::Http;

/// How long a plan's execution waits for the authority to look, and then for the certificate. A later one goes on.
const PATIENCE: Duration = Duration::from_secs(45);

const BEGIN: &str = "-----BEGIN CERTIFICATE-----";
const END: &str = "-----END CERTIFICATE-----";

/// The authority that the settings name.
#[derive(Debug, Clone)]
pub struct Authority {
    config: AcmeConfig,
}

/// An account at the authority.
pub struct AcmeAccount {
    account: Account,
    config: AcmeConfig,
}

/// A certificate that was ordered.
pub struct AcmeOrder {
    order: Order,
    challenge: ChallengeType,
}

impl Authority {
    pub fn new(config: AcmeConfig) -> Authority {
        Authority { config }
    }

    /// # Errors
    /// If the files that the settings name can't be used.
    pub fn check(&self) -> Result<(), AcmeFault> {
        Http::new(self.config.roots.as_deref()).map(drop)
    }

    /// The URL of its directory.
    pub fn directory(&self) -> &str {
        &self.config.directory
    }

    pub fn challenge(&self) -> Challenge {
        self.config.challenge
    }

    /// How long a record is given to reach all servers of a zone.
    pub fn propagation(&self) -> Duration {
        Duration::from_secs(self.config.propagation_seconds.into())
    }

    /// Puts the root of a private authority at the end of a chain, where clients are told to look for it.
    pub fn with_root(&self, chain: String) -> String {
        let Some(text) = self.config.roots.as_ref().and_then(|path| std::fs::read_to_string(path).ok())
        else {
            return chain;
        };
        let roots = text.split_inclusive(END).filter_map(|part| Some(&part[part.find(BEGIN)?..]));
        let whole = roots.map(|root| format!("{}\n{root}\n", chain.trim_end()));
        whole.into_iter().find(|whole| Certificate::parse(whole, None).is_ok()).unwrap_or(chain)
    }

    /// Makes an account. Returns its URL, and what it is used with.
    ///
    /// # Errors
    /// If the authority can't be reached or refuses.
    pub async fn create_account(&self) -> Result<(String, SecretString), AcmeFault> {
        let contact: Vec<&str> = self.config.contact.iter().map(String::as_str).collect();
        let new = NewAccount {
            contact: &contact,
            terms_of_service_agreed: self.config.agree_to_terms,
            only_return_existing: false,
        };
        let builder = Account::builder_with_http(Box::new(Http::new(self.config.roots.as_deref())?));
        let (account, credentials) = builder.create(&new, self.config.directory.clone(), None).await?;
        let credentials = serde_json::to_string(&credentials).map_err(|_| AcmeFault::NoAccount)?;
        Ok((account.id().to_owned(), credentials.into()))
    }

    /// # Errors
    /// If the credentials can't be read, or the authority can't be reached.
    pub async fn account(&self, credentials: &SecretString) -> Result<AcmeAccount, AcmeFault> {
        let credentials =
            serde_json::from_str(credentials.expose_secret()).map_err(|_| AcmeFault::NoAccount)?;
        let builder = Account::builder_with_http(Box::new(Http::new(self.config.roots.as_deref())?));
        let account = builder.from_credentials(credentials).await?;
        Ok(AcmeAccount { account, config: self.config.clone() })
    }

    /// The record that lets an account get certificates of a domain for as long as it stands: its name and its text.
    ///
    /// # Errors
    /// If the authority can't be reached, or doesn't say which name it has in such records.
    pub async fn standing_record(&self, account: &str, domain: &str) -> Result<(String, String), AcmeFault> {
        let names = self.names().await?;
        let name = names.first().ok_or(AcmeFault::NoChallenge("dns-persist-01"))?;
        let text = format!("{name}; accounturi={account}; policy=wildcard");
        Ok((format!("_validation-persist.{domain}"), text))
    }

    /// The names that the authority has in DNS records; none if it doesn't say.
    ///
    /// # Errors
    /// If it can't be reached.
    pub async fn names(&self) -> Result<Vec<String>, AcmeFault> {
        let directory = Http::new(self.config.roots.as_deref())?.get(&self.config.directory).await?;
        let names = directory.pointer("/meta/caaIdentities").and_then(|names| names.as_array());
        Ok(names.into_iter().flatten().filter_map(|name| Some(fault::words(name.as_str()?))).collect())
    }
}

impl AcmeAccount {
    /// Orders a certificate for a name. `replaces` is the chain of the one that it replaces.
    ///
    /// # Errors
    /// If the authority can't be reached or refuses.
    pub async fn order(&self, name: &str, replaces: Option<&str>) -> Result<AcmeOrder, AcmeFault> {
        let names = [Identifier::Dns(name.to_owned())];
        let leaf = replaces.and_then(leaf);
        let replaced = leaf.as_ref().and_then(|leaf| CertificateIdentifier::try_from(leaf).ok());
        let new = |replaced: Option<CertificateIdentifier<'static>>| {
            let mut new = NewOrder::new(&names);
            if let Some(profile) = &self.config.profile {
                new = new.profile(profile);
            }
            match replaced {
                Some(replaced) => new.replaces(replaced),
                None => new,
            }
        };
        let replaced = replaced.map(CertificateIdentifier::into_owned);
        let order = match self.account.new_order(&new(replaced.clone())).await {
            // The authority knows nothing of replacing, or not this certificate: its place is taken all the same.
            Err(instant_acme::Error::Unsupported(_)) if replaced.is_some() => {
                self.account.new_order(&new(None)).await
            }
            // One that fails whenever it looks for that certificate would never give another.
            Err(instant_acme::Error::Api(problem))
                if replaced.is_some() && !matches!(AcmeFault::refused(&problem), AcmeFault::Limited(_)) =>
            {
                self.account.new_order(&new(None)).await
            }
            order => order,
        };
        Ok(self.of(order?))
    }

    /// Continues with an order that an earlier run made.
    ///
    /// # Errors
    /// If the authority can't be reached, or doesn't have it any more.
    pub async fn resume(&self, url: &str) -> Result<AcmeOrder, AcmeFault> {
        Ok(self.of(self.account.order(url.to_owned()).await?))
    }

    fn of(&self, order: Order) -> AcmeOrder {
        let challenge = match self.config.challenge {
            Challenge::Dns01 => ChallengeType::Dns01,
            Challenge::DnsPersist01 => ChallengeType::Unknown("dns-persist-01".to_owned()),
        };
        AcmeOrder { order, challenge }
    }

    /// Asks when a certificate should be renewed; `None` if the authority doesn't tell.
    ///
    /// # Errors
    /// If it can't be reached.
    pub async fn renewal(&self, chain: &str, now: Timestamp) -> Result<Option<RenewalWindow>, AcmeFault> {
        let Some(leaf) = leaf(chain) else { return Ok(None) };
        let Ok(id) = CertificateIdentifier::try_from(&leaf) else { return Ok(None) };
        let (told, pause) = match self.account.renewal_info(&id).await {
            Ok(told) => told,
            Err(instant_acme::Error::Unsupported(_)) => return Ok(None),
            Err(error) => return Err(error.into()),
        };
        let time = |at: i64| Timestamp::from_second(at).unwrap_or(Timestamp::MAX);
        let (start, end) = (told.suggested_window.start, told.suggested_window.end);
        let pause = SignedDuration::try_from(pause).unwrap_or(SignedDuration::MAX);
        Ok(Some(RenewalWindow {
            start: time(start.unix_timestamp()),
            end: time(end.unix_timestamp()),
            look_at: now.checked_add(pause).unwrap_or(Timestamp::MAX),
        }))
    }
}

impl AcmeOrder {
    pub fn url(&self) -> &str {
        self.order.url()
    }

    /// The text that the authority looks for; `None` if it has seen enough.
    ///
    /// # Errors
    /// If it can't be reached, refuses, or doesn't offer the challenge of the settings.
    pub async fn challenge(&mut self) -> Result<Option<String>, AcmeFault> {
        let kind = self.challenge.clone();
        let mut authorizations = self.order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let challenge = authorization.challenge(kind.clone()).ok_or(no_challenge(&kind))?;
            return Ok(Some(challenge.key_authorization().dns_value()));
        }
        Ok(None)
    }

    /// Has the authority look, and waits until the order can be finished.
    ///
    /// # Errors
    /// If it isn't convinced, can't be reached, or takes longer than we wait.
    pub async fn prove(&mut self) -> Result<(), AcmeFault> {
        let kind = self.challenge.clone();
        let mut authorizations = self.order.authorizations();
        while let Some(authorization) = authorizations.next().await {
            let mut authorization = authorization?;
            if authorization.status != AuthorizationStatus::Pending {
                continue;
            }
            let mut challenge = authorization.challenge(kind.clone()).ok_or(no_challenge(&kind))?;
            match challenge.set_ready().await {
                // A run that was killed asked already, and some authorities don't take that twice.
                Err(instant_acme::Error::Api(problem))
                    if challenge.status == ChallengeStatus::Processing
                        && fault::kind(&problem) == "malformed" => {}
                asked => asked?,
            }
        }
        self.settle().await
    }

    async fn settle(&mut self) -> Result<(), AcmeFault> {
        let asked = match self.order.state().status {
            OrderStatus::Pending => self.order.poll_ready(&RetryPolicy::new().timeout(PATIENCE)).await,
            // A certificate that is being made, or is there, isn't waited for here.
            status => Ok(status),
        };
        if self.order.state().status == OrderStatus::Invalid {
            return Err(self.failure().await);
        }
        match asked {
            Ok(_) => Ok(()),
            Err(instant_acme::Error::Api(problem)) => {
                Err(AcmeFault::refused(&self.challenge_error().await.unwrap_or(problem)))
            }
            Err(error) => Err(error.into()),
        }
    }

    /// Why an order failed for good. Mostly only the challenge says it.
    async fn failure(&mut self) -> AcmeFault {
        let why = self.challenge_error().await.or_else(|| self.order.state().error.clone());
        AcmeFault::Refused(why.map_or_else(|| "the order failed".to_owned(), |why| fault::said(&why)))
    }

    async fn challenge_error(&mut self) -> Option<Problem> {
        let mut authorizations = self.order.authorizations();
        while let Some(Ok(mut authorization)) = authorizations.next().await {
            let state = authorization.refresh().await.ok()?;
            let problem = state.challenges.iter().find_map(|challenge| challenge.error.clone());
            if problem.is_some() {
                return problem;
            }
        }
        None
    }

    /// Asks for the certificate of a request, unless that was done, and waits for it. Returns the chain in PEM.
    ///
    /// # Errors
    /// If the authority refuses, can't be reached, or takes longer than we wait.
    pub async fn certificate(&mut self, request: &[u8]) -> Result<String, AcmeFault> {
        if self.order.state().status == OrderStatus::Ready {
            self.order.finalize_csr(request).await?;
        }
        let got = self.order.poll_certificate(&RetryPolicy::new().timeout(PATIENCE)).await;
        if self.order.state().status == OrderStatus::Invalid {
            return Err(self.failure().await);
        }
        Ok(got?)
    }
}

fn no_challenge(kind: &ChallengeType) -> AcmeFault {
    AcmeFault::NoChallenge(if *kind == ChallengeType::Dns01 { "dns-01" } else { "dns-persist-01" })
}

fn leaf(chain: &str) -> Option<CertificateDer<'static>> {
    CertificateDer::from_pem_slice(chain.as_bytes()).ok()
}
