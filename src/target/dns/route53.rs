//! A hosted zone of Amazon Route 53.
//!
//! Its changes come in batches, of which all or none are made. A record is deleted only if it is told as it is, and made
//! only if it isn't there: to delete and make a record in one batch is to compare it first.

mod answer;
mod fault;
mod requests;
mod survey;

use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;
use std::time::Duration;

use jiff::Timestamp;
use rustls::RootCertStore;
use secrecy::SecretString;
use tokio::time::{Instant, sleep};

use super::{CaaProperty, DnsFault, SeenHost, SeenRecord, TTL, owner_host};
use crate::component::dns_records::HostRecords;
use crate::names::Domain;
use crate::spec::CloudAccount;
use crate::spec::aws_keys::AwsKeys;
pub use answer::RecordSet;
pub use fault::Route53Fault;
use survey::Known;

/// How often a batch is made anew because others changed the name meanwhile.
const TRIES: usize = 3;

/// How long a change may take until all servers of Route 53 have it. Usually it is a minute.
const SPREADING: Duration = Duration::from_secs(180);

const BETWEEN_LOOKS: Duration = Duration::from_secs(2);

/// The keys of an account, and where they are valid.
#[derive(Clone)]
pub struct Route53Login {
    /// An https URL without a path.
    pub endpoint: String,
    /// The region in the signature: the service is one for all regions of a partition.
    pub region: &'static str,
    /// In the format of an AWS credentials file.
    pub keys: SecretString,
    pub clock: fn() -> Timestamp,
    /// The authorities that its server is trusted by, if not those of this host.
    roots: Option<RootCertStore>,
    known: Arc<Known>,
}

impl fmt::Debug for Route53Login {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Route53Login({})", self.endpoint)
    }
}

impl Route53Login {
    /// `endpoint` is another one than that of the account's partition.
    pub fn new(account: &CloudAccount, endpoint: Option<String>, keys: SecretString) -> Route53Login {
        let place = account.region.as_deref().unwrap_or_default();
        let (host, region) = match place {
            _ if place.starts_with("cn-") => ("route53.amazonaws.com.cn", "cn-northwest-1"),
            _ if place.starts_with("us-gov-") => ("route53.us-gov.amazonaws.com", "us-gov-west-1"),
            _ => ("route53.amazonaws.com", "us-east-1"),
        };
        Route53Login {
            endpoint: endpoint.unwrap_or_else(|| format!("https://{host}")),
            region,
            keys,
            clock: Timestamp::now,
            roots: None,
            known: Arc::default(),
        }
    }

    /// The name of the access key.
    pub(super) fn key(&self) -> Option<String> {
        AwsKeys::parse(&self.keys).ok().map(|keys| keys.id)
    }

    pub fn trusting(self, roots: RootCertStore) -> Route53Login {
        Route53Login { roots: Some(roots), ..self }
    }
}

pub struct Route53Zone<'z> {
    login: &'z Route53Login,
    keys: AwsKeys,
    zone: &'z Domain,
}

impl<'z> Route53Zone<'z> {
    pub fn new(login: &'z Route53Login, zone: &'z Domain) -> Result<Route53Zone<'z>, DnsFault> {
        let keys = AwsKeys::parse(&login.keys).map_err(Route53Fault::NoKeys)?;
        Ok(Route53Zone { login, keys, zone })
    }

    pub async fn observe(&self, host: &str) -> Result<SeenHost, DnsFault> {
        Ok(SeenHost::of(host, self.sets_within(host).await?))
    }

    pub async fn swap(&self, host: &str, before: &SeenHost, after: &SeenRecord) -> Result<(), DnsFault> {
        let is_new = before.record == SeenRecord::default();
        let beside = owner_host(host);
        let is_replaced = |set: &&RecordSet| match set.kind.as_str() {
            "A" | "AAAA" | "CNAME" => set.name == host,
            "TXT" => set.name == beside,
            _ => false,
        };
        let gone = before.sets.iter().filter(is_replaced);
        let mut made = sets_of(host, &after.records);
        made.extend(after.owner.iter().map(|owner| RecordSet::new(&beside, "TXT", TTL, &[quoted(owner)])));
        let unmet = if is_new { DnsFault::Taken } else { DnsFault::Changed };
        let changed = self.change(gone, &made, unmet).await;
        self.login.known.forget();
        changed?;
        // A batch compares only what it deletes and makes: somebody may have made a record of another kind meanwhile.
        let of_others =
            |set: &RecordSet| !made.iter().any(|own| (&own.name, &own.kind) == (&set.name, &set.kind));
        if is_new && self.observe(host).await?.sets.iter().any(of_others) {
            self.change(made.iter(), &[], DnsFault::Changed).await?;
            return Err(DnsFault::Taken);
        }
        Ok(())
    }

    pub async fn add_text(&self, name: &str, text: &str) -> Result<(), DnsFault> {
        // A text that is there already is made again: only then it can be waited for.
        let with = |values: &[String]| {
            let others = values.iter().filter(|value| **value != quoted(text)).cloned();
            Some(others.chain([quoted(text)]).collect())
        };
        match self.edit_texts(name, with).await {
            Ok(Some(change)) => self.spread(&change).await,
            Err(DnsFault::Changed) if !self.sets_at(name, "CNAME").await?.is_empty() => {
                Err(DnsFault::Hidden(name.to_owned()))
            }
            edited => edited.map(drop),
        }
    }

    pub async fn remove_text(&self, name: &str, text: &str) -> Result<(), DnsFault> {
        let without = |values: &[String]| {
            let others: Vec<String> =
                values.iter().filter(|value| **value != quoted(text)).cloned().collect();
            (others.len() < values.len()).then_some(others)
        };
        self.edit_texts(name, without).await.map(drop)
    }

    /// Makes the texts of a name be what `edit` makes of them, and returns the number of the change; `None` if it has
    /// nothing to change.
    async fn edit_texts(
        &self,
        name: &str,
        edit: impl Fn(&[String]) -> Option<Vec<String>>,
    ) -> Result<Option<String>, DnsFault> {
        for _ in 0..TRIES {
            let before = self.texts(name).await?;
            let values = before.as_ref().map(|set| set.values.as_slice()).unwrap_or_default();
            let Some(values) = edit(values) else { return Ok(None) };
            let ttl = before.as_ref().and_then(|set| set.ttl).unwrap_or(TTL);
            let after = (!values.is_empty()).then(|| RecordSet::new(name, "TXT", ttl, &values));
            match self.change(before.iter(), after.as_slice(), DnsFault::Changed).await {
                Err(DnsFault::Changed) => {}
                changed => return changed.map(Some),
            }
        }
        Err(DnsFault::Changed)
    }

    /// Returns the texts of a name, to which another one can be added.
    async fn texts(&self, name: &str) -> Result<Option<RecordSet>, DnsFault> {
        let mut found = self.sets_at(name, "TXT").await?;
        match found.iter().any(|set| set.is_routed || set.alias.is_some()) {
            true => Err(Route53Fault::Routed(name.to_owned()).into()),
            false => Ok(found.pop()),
        }
    }

    pub async fn authorities(&self, name: &str) -> Result<Vec<CaaProperty>, DnsFault> {
        // `0 issuewild "ca.example.com"`
        let property = |value: &String| {
            let (tag, value) = value.split_once(' ')?.1.split_once(' ')?;
            Some(CaaProperty { tag: tag.to_owned(), value: value.trim().trim_matches('"').to_owned() })
        };
        let found = self.sets_at(name, "CAA").await?;
        Ok(found.iter().flat_map(|set| &set.values).filter_map(property).collect())
    }

    /// Waits until all servers of Route 53 have a change.
    async fn spread(&self, change: &str) -> Result<(), DnsFault> {
        let end = Instant::now() + SPREADING;
        while !self.is_spread(change).await? {
            if Instant::now() > end {
                return Err(Route53Fault::Pending(SPREADING).into());
            }
            sleep(BETWEEN_LOOKS).await;
        }
        Ok(())
    }
}

impl SeenHost {
    /// Records that nobody can be asked about, such as those of a routing policy, have an owner, so that they aren't taken
    /// over.
    fn of(host: &str, sets: Vec<RecordSet>) -> SeenHost {
        let beside = owner_host(host);
        let sets: Vec<RecordSet> =
            sets.into_iter().filter(|set| set.name == host || set.name == beside).collect();
        let (mut record, mut other) = (SeenRecord::default(), None);
        for set in &sets {
            let alias = match set.kind.as_str() {
                "TXT" if set.name == beside => {
                    let whole = set.values.iter().map(|value| unquoted(value)).collect::<Vec<_>>().join(" ");
                    record.owner = Some(whole.chars().take(super::LONGEST_OWNER).collect());
                    continue;
                }
                _ if set.is_routed => {
                    other = Some("a routing policy of Route 53".to_owned());
                    continue;
                }
                "A" | "AAAA" if set.name == host => {
                    let addresses = set.values.iter().filter_map(|value| value.parse::<IpAddr>().ok());
                    record.records.addresses.extend(addresses);
                    set.alias.clone()
                }
                "CNAME" if set.name == host => set.values.first().map(|value| answer::plain(value)),
                kind => {
                    other = Some(format!("a record of kind {kind}"));
                    continue;
                }
            };
            match (&record.records.alias, alias) {
                (Some(one), Some(another)) if *one != another => other = Some("several aliases".to_owned()),
                (None, Some(alias)) => record.records.alias = Some(alias),
                _ => {}
            }
        }
        record.owner = record.owner.or(other);
        SeenHost { record, sets }
    }
}

fn sets_of(host: &str, records: &HostRecords) -> Vec<RecordSet> {
    let (four, six): (Vec<_>, Vec<_>) = records.addresses.iter().partition(|address| address.is_ipv4());
    let values = |addresses: Vec<&IpAddr>| addresses.iter().map(ToString::to_string).collect();
    let all: [(&str, Vec<String>); 3] =
        [("A", values(four)), ("AAAA", values(six)), ("CNAME", records.alias.iter().cloned().collect())];
    let all = all.into_iter().filter(|(_, values)| !values.is_empty());
    all.map(|(kind, values)| RecordSet::new(host, kind, TTL, &values)).collect()
}

fn quoted(text: &str) -> String {
    format!("\"{text}\"")
}

/// The strings of a text: `"one" "two"`.
fn unquoted(value: &str) -> String {
    let strings = value.split('"').map(str::trim).filter(|string| !string.is_empty());
    strings.collect::<Vec<_>>().join(" ")
}
