//! The addresses of public names.

use std::io;
use std::net::{IpAddr, ToSocketAddrs as _};
use std::pin::Pin;
use std::time::Duration;

use tokio::time::timeout;

use super::Share;

use crate::component::probe::{LookupFault, ProbeFailure, ServerText};
use crate::config::{AddressRange, judge_address};

/// The most addresses of a name that are tried.
const MAX_ADDRESSES: usize = 4;

pub type Found<'f> = Pin<Box<dyn Future<Output = Result<Vec<IpAddr>, LookupFault>> + Send + 'f>>;

/// Looks up names.
pub trait Resolver: Send + Sync {
    /// `turn` is held for as long as the lookup goes on, even if nobody waits for it any more.
    fn addresses<'f>(&'f self, host: &'f str, turn: Share) -> Found<'f>;
}

/// The resolver of the operating system.
pub struct SystemResolver;

impl Resolver for SystemResolver {
    fn addresses<'f>(&'f self, host: &'f str, turn: Share) -> Found<'f> {
        Box::pin(async {
            let asked = host.to_owned();
            let lookup = tokio::task::spawn_blocking(move || {
                let found =
                    (asked.as_str(), 0).to_socket_addrs().map(|found| found.map(|it| it.ip()).collect());
                drop(turn);
                found
            });
            lookup.await.unwrap_or_else(|error| Err(io::Error::other(error))).map_err(fault)
        })
    }
}

/// The standard library tells getaddrinfo's errors as text only.
fn fault(error: io::Error) -> LookupFault {
    let text = error.to_string();
    let is_missing = ["Name or service not known", "No address associated", "Name does not resolve"]
        .iter()
        .any(|it| text.contains(it));
    match is_missing {
        true => LookupFault::Missing,
        false => LookupFault::Failed(ServerText::new(
            text.trim_start_matches("failed to lookup address information: "),
        )),
    }
}

/// Looks up a name, and returns the addresses that may be connected to.
///
/// # Errors
/// If it has no address, or none that may be connected to.
pub async fn resolve(
    resolver: &dyn Resolver,
    (host, turn): (&str, Share),
    (allowed, within): (&[AddressRange], Duration),
) -> Result<Vec<IpAddr>, ProbeFailure> {
    let found = match host.parse() {
        Ok(address) => Ok(vec![address]),
        Err(_) => {
            timeout(within, resolver.addresses(host, turn)).await.map_err(|_| ProbeFailure::Silent(within))?
        }
    };
    let found = found.map_err(ProbeFailure::Lookup)?;
    let mut denied = None;
    let mut may = Vec::new();
    for address in found {
        match judge_address(address, allowed) {
            Ok(()) if !may.contains(&address) => may.push(address),
            Ok(()) => {}
            Err(is_denied) => denied = denied.or(Some(is_denied)),
        }
    }
    may.truncate(MAX_ADDRESSES);
    match denied {
        _ if !may.is_empty() => Ok(may),
        Some(denied) => Err(ProbeFailure::Denied(denied)),
        None => Err(ProbeFailure::Lookup(LookupFault::Missing)),
    }
}

#[cfg(test)]
mod tests {
    use super::super::shares::Shares;
    use super::*;

    async fn turn() -> Share {
        Shares::new(1, 1).take(&"acme".parse().unwrap(), 1).await
    }

    struct Fixed(&'static [&'static str]);

    impl Resolver for Fixed {
        fn addresses<'f>(&'f self, _: &'f str, _: Share) -> Found<'f> {
            Box::pin(async { Ok(self.0.iter().map(|it| it.parse().unwrap()).collect()) })
        }
    }

    async fn found(addresses: &'static [&'static str]) -> Result<Vec<String>, String> {
        let limits = (&[][..], Duration::from_secs(1));
        match resolve(&Fixed(addresses), ("k.example.com", turn().await), limits).await {
            Ok(found) => Ok(found.iter().map(IpAddr::to_string).collect()),
            Err(failure) => Err(format!("{failure:?}")),
        }
    }

    #[tokio::test]
    async fn each_address_is_judged() {
        let allowed = Ok(vec!["203.0.113.7".to_owned()]);
        assert_eq!(found(&["127.0.0.1", "203.0.113.7", "203.0.113.7", "169.254.169.254"]).await, allowed);
        let denied = found(&["169.254.169.254", "::1"]).await.unwrap_err();
        assert!(denied.starts_with("Denied(") && denied.contains("169.254.169.254"), "{denied}");
        assert_eq!(found(&[]).await.unwrap_err(), "Lookup(Missing)");
        let many = &["192.0.2.1", "192.0.2.2", "192.0.2.3", "192.0.2.4", "192.0.2.5"];
        assert_eq!(found(many).await.unwrap().len(), MAX_ADDRESSES);
        let literal = resolve(&Fixed(&[]), ("127.0.0.1", turn().await), (&[], Duration::from_secs(1))).await;
        assert!(matches!(literal, Err(ProbeFailure::Denied(_))), "{literal:?}");
    }

    #[test]
    fn a_missing_name_and_a_resolver_without_an_answer_differ() {
        let told =
            |text: &str| fault(io::Error::other(format!("failed to lookup address information: {text}")));
        assert_eq!(told("Name or service not known"), LookupFault::Missing);
        let failed = LookupFault::Failed(ServerText::new("Temporary failure in name resolution"));
        assert_eq!(told("Temporary failure in name resolution"), failed);
    }
}
