//! Rules that involve only one document. Settings without an effect are refused: nothing is accepted and then
//! ignored.

mod cluster;
mod fleet;
mod topic;

use std::collections::BTreeMap;

use crate::names::Identifier;
use crate::problem::quote_untrusted;
use crate::spec::check::SpecFinding;
use crate::spec::yaml::Span;
use crate::spec::{BaseDomain, CloudAccount, CloudProvider, DnsProvider, Organization, Spec};

pub fn check(spec: &Spec, places: &[(Box<str>, Span)], findings: &mut Vec<SpecFinding>) {
    let mut rules = Rules { places, findings };
    match spec {
        Spec::Organization(organization) => rules.organization(organization),
        Spec::BaseDomain(domain) => rules.base_domain(domain),
        Spec::CloudAccount(account) => rules.cloud_account(account),
        Spec::Fleet(fleet) => rules.fleet(fleet),
        Spec::Cluster(cluster) => rules.cluster(cluster),
        Spec::Topic(topic) => rules.topic(topic),
        Spec::User(user) => rules.user(user),
        Spec::IdentityProvider(_) => {}
    }
}

struct Rules<'a> {
    places: &'a [(Box<str>, Span)],
    findings: &'a mut Vec<SpecFinding>,
}

impl Rules<'_> {
    fn place(&self, pointer: &str) -> Span {
        let mut around =
            std::iter::successors(Some(pointer), |inner| inner.rfind('/').map(|end| &inner[..end]));
        let find = |pointer: &str| self.places.iter().find(|(at, _)| **at == *pointer).map(|(_, span)| *span);
        around.find_map(find).unwrap_or(Span { start: 0, end: 0 })
    }

    /// Whether a field has a value, even an empty list.
    fn is_given(&self, pointer: &str) -> bool {
        self.places.iter().any(|(at, _)| **at == *pointer)
    }

    fn refuse(
        &mut self,
        pointer: &str,
        code: &'static str,
        message: impl Into<String>,
        hint: impl Into<String>,
    ) {
        let finding = SpecFinding::new(self.place(pointer), code, message).hint(hint);
        self.findings.push(finding);
    }

    fn organization(&mut self, organization: &Organization) {
        if organization.identifier.as_str() == Identifier::ROOT && !organization.members.is_empty() {
            self.refuse(
                "/members",
                "root-members",
                "the organization `root` can't have members",
                "remove `members`; only the super users of the installation belong to `root`",
            );
        }
        let is_root = organization.identifier.as_str() == Identifier::ROOT;
        if !is_root && organization.members.is_empty() && self.is_given("/members") {
            self.refuse(
                "/members",
                "no-members",
                "`members` is an empty list, which would lock everybody out",
                "add a member, or remove `members` if only super users manage the organization",
            );
        }
        let mut seen: BTreeMap<String, usize> = BTreeMap::new();
        for (index, member) in organization.members.iter().enumerate() {
            let email = member.email.to_lowercase();
            if let Some(first) = seen.get(&email) {
                let related = (self.place(&format!("/members/{first}/email")), "first one here".to_owned());
                let message = format!("`{}` is a member twice", quote_untrusted(&member.email));
                let place = self.place(&format!("/members/{index}/email"));
                let mut finding = SpecFinding::new(place, "duplicate-member", message)
                    .label("repeated here")
                    .hint("keep the entry with the intended role");
                finding.related.push(related);
                self.findings.push(finding);
            } else {
                seen.insert(email, index);
            }
        }
    }

    fn base_domain(&mut self, domain: &BaseDomain) {
        match (domain.dns_provider, &domain.cloud_account) {
            (DnsProvider::ExternalDns | DnsProvider::Rfc2136 | DnsProvider::Route53, None) => self.refuse(
                "/dns_provider",
                "missing-key",
                "managed DNS needs `cloud_account`",
                "add `cloud_account`: the identifier of the cloud account for the domain's DNS zone",
            ),
            (DnsProvider::None, Some(_)) => self.refuse(
                "/cloud_account",
                "no-effect",
                "`cloud_account` needs `dns_provider`",
                "remove `cloud_account`, or add a `dns_provider`: `external-dns`, `rfc2136` or `route53`",
            ),
            _ => {}
        }
        let (certificate, key) = (domain.tls_cert.is_some(), domain.tls_key.is_some());
        if certificate != key {
            let (given, missing) =
                if certificate { ("tls_cert", "tls_key") } else { ("tls_key", "tls_cert") };
            self.refuse(
                if certificate { "/tls_key" } else { "/tls_cert" },
                "missing-key",
                format!("`{given}` needs `{missing}`"),
                format!(
                    "add `{missing}`, or remove `{given}` too: an authority in the settings, `[acme]`, then issues the \
                     certificate"
                ),
            );
        }
        let zone = domain.zone();
        let is_within = domain.derived_domain().is_none_or(|derived| derived.is_within(&zone));
        if domain.dns_provider.is_kept() && !is_within {
            self.refuse(
                "/dns_base_domain",
                "other-zone",
                format!("the zone `{zone}` doesn't contain the domain"),
                "name the zone that the DNS server or Route 53 has: the domain itself, or its end",
            );
        }
    }

    fn cloud_account(&mut self, account: &CloudAccount) {
        match (account.provider, &account.endpoint) {
            (CloudProvider::S3, None) => self.refuse(
                "/provider",
                "missing-key",
                "`provider: s3` needs `endpoint`",
                "add `endpoint`: the https URL of the service",
            ),
            (CloudProvider::Aws, Some(_)) => self.refuse(
                "/endpoint",
                "no-effect",
                "`provider: aws` can't have an `endpoint`",
                "remove `endpoint`, or use `provider: s3` for another service",
            ),
            (CloudProvider::S3, Some(endpoint)) if !endpoint.starts_with("https://") => self.refuse(
                "/endpoint",
                "other-endpoint",
                "`provider: s3` needs the https URL of the service in `endpoint`",
                "write `https://` with the host, or use `provider: rfc2136` for a DNS server",
            ),
            (CloudProvider::Rfc2136, _) if account.dns_server().is_none() => self.refuse(
                if account.endpoint.is_some() { "/endpoint" } else { "/provider" },
                "other-endpoint",
                "`provider: rfc2136` needs the DNS server of the zone in `endpoint`",
                "write `endpoint: dns://HOST` or `endpoint: dns://HOST:PORT`",
            ),
            _ => {}
        }
        if account.provider == CloudProvider::Rfc2136 && account.region.is_some() {
            self.refuse(
                "/region",
                "no-effect",
                "`region` is without effect with `provider: rfc2136`",
                "remove `region`",
            );
        }
    }
}
