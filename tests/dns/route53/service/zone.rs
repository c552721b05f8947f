//! A hosted zone.

use std::collections::{BTreeMap, BTreeSet};
use std::net::{Ipv4Addr, Ipv6Addr};

use roxmltree::{Document, Node};

use super::document;

/// The most records of a page.
const PAGE: usize = 300;

/// The name as it is sorted, the kind, and what tells routed records of the same name apart.
type Key = (String, String, String);

pub struct Zone {
    pub name: String,
    pub is_private: bool,
    sets: BTreeMap<Key, Set>,
}

#[derive(Clone, PartialEq, Eq)]
struct Set {
    name: String,
    /// None of a record of AWS's own kind.
    ttl: Option<String>,
    values: BTreeSet<String>,
    alias: Option<String>,
}

#[derive(Debug)]
pub struct Refused {
    pub status: u16,
    code: String,
    message: String,
}

impl Refused {
    pub fn new(status: u16, code: &str, message: &str) -> Refused {
        Refused { status, code: code.to_owned(), message: message.to_owned() }
    }

    fn batch(message: &str) -> Refused {
        Refused::new(400, "InvalidChangeBatch", message)
    }

    pub fn document(&self) -> String {
        let Refused { code, message, .. } = self;
        match code.as_str() {
            "InvalidChangeBatch" => document(
                code,
                &format!("<Messages><Message>{message}</Message></Messages><RequestId>1</RequestId>"),
            ),
            _ => document(
                "ErrorResponse",
                &format!("<Error><Type>Sender</Type><Code>{code}</Code><Message>{message}</Message></Error>"),
            ),
        }
    }
}

/// Labels from the last to the first, each followed by a dot, which counts: `-` is before it.
pub fn sort_key(name: &str) -> String {
    let plain = name.trim_end_matches('.').to_lowercase();
    plain.split('.').rev().map(|label| format!("{label}.")).collect()
}

impl Zone {
    pub fn new(name: &str, is_private: bool) -> Zone {
        let mut zone = Zone { name: name.to_owned(), is_private, sets: BTreeMap::new() };
        zone.put(name, "NS", &["ns-1.awsdns-01.org."]);
        zone.put(
            name,
            "SOA",
            &["ns-1.awsdns-01.org. awsdns-hostmaster.amazon.com. 1 7200 900 1209600 86400"],
        );
        zone
    }

    pub fn key(&self) -> String {
        sort_key(&self.name)
    }

    pub fn put(&mut self, name: &str, kind: &str, values: &[&str]) {
        let values = values.iter().map(|value| (*value).to_owned()).collect();
        let set = Set { name: format!("{name}."), ttl: Some("300".to_owned()), values, alias: None };
        self.sets.insert((sort_key(name), kind.to_owned(), String::new()), set);
    }

    /// One of several records of a name.
    pub fn route(&mut self, name: &str, kind: &str, identifier: &str, value: &str) {
        let values = [value.to_owned()].into();
        let set = Set { name: format!("{name}."), ttl: Some("60".to_owned()), values, alias: None };
        self.sets.insert((sort_key(name), kind.to_owned(), identifier.to_owned()), set);
    }

    /// A record that leads to a load balancer of AWS.
    pub fn lead(&mut self, name: &str, target: &str) {
        let alias = Some(target.to_owned());
        let set = Set { name: format!("{name}."), ttl: None, values: BTreeSet::new(), alias };
        self.sets.insert((sort_key(name), "A".to_owned(), String::new()), set);
    }

    pub fn take(&mut self, name: &str, kind: &str) {
        let name = sort_key(name);
        self.sets.retain(|(other, its_kind, _), _| *other != name || its_kind != kind);
    }

    pub fn values(&self, name: &str, kind: &str) -> Vec<String> {
        let name = sort_key(name);
        let found = self.sets.iter().filter(|((other, its_kind, _), _)| *other == name && its_kind == kind);
        found.flat_map(|(_, set)| set.values.clone()).collect()
    }

    pub fn list(&self, query: &BTreeMap<String, String>) -> String {
        let from = (
            query.get("name").map(|name| sort_key(name)).unwrap_or_default(),
            query.get("type").cloned().unwrap_or_default(),
            query.get("identifier").cloned().unwrap_or_default(),
        );
        let most = query.get("maxitems").map_or(PAGE, |most| most.parse::<usize>().unwrap().min(PAGE));
        let mut rest = self.sets.range(from..);
        let page: String = rest
            .by_ref()
            .take(most)
            .map(|((_, kind, identifier), set)| set.element(kind, identifier))
            .collect();
        let next = rest.next().map(|((_, kind, identifier), set)| {
            let identifier = match identifier.is_empty() {
                true => String::new(),
                false => format!("<NextRecordIdentifier>{identifier}</NextRecordIdentifier>"),
            };
            format!(
                "<IsTruncated>true</IsTruncated><NextRecordName>{}</NextRecordName><NextRecordType>{kind}</NextRecordType>{identifier}",
                set.name
            )
        });
        let next = next.unwrap_or_else(|| "<IsTruncated>false</IsTruncated>".to_owned());
        document(
            "ListResourceRecordSetsResponse",
            &format!("<ResourceRecordSets>\n  {page}</ResourceRecordSets>{next}<MaxItems>{most}</MaxItems>"),
        )
    }

    /// Does all changes of a batch, or none.
    pub fn change(&mut self, body: &str) -> Result<(), Refused> {
        let invalid = || Refused::new(400, "InvalidInput", "Invalid XML");
        let batch = Document::parse(body).map_err(|_| invalid())?;
        if batch.root_element().tag_name().namespace()
            != Some("https://route53.amazonaws.com/doc/2013-04-01/")
        {
            return Err(invalid());
        }
        let changes: Vec<Node<'_, '_>> =
            batch.descendants().filter(|node| node.has_tag_name_of("Change")).collect();
        let records = batch.descendants().filter(|node| node.has_tag_name_of("ResourceRecord")).count();
        if changes.is_empty() || records > 1000 {
            return Err(invalid());
        }
        let (mut sets, mut deleted) = (self.sets.clone(), BTreeSet::new());
        for change in changes {
            let text = |name: &str| {
                let found = change.descendants().find(|node| node.has_tag_name_of(name));
                found.and_then(|node| node.text()).ok_or_else(invalid)
            };
            let (action, name, kind) = (text("Action")?, text("Name")?.to_lowercase(), text("Type")?);
            let values = change.descendants().filter(|node| node.has_tag_name_of("Value"));
            let values = values.map(|value| value.text().unwrap_or_default().to_owned()).collect();
            let alias = text("DNSName").ok().map(|name| name.trim_end_matches('.').to_owned());
            let ttl = if alias.is_some() { None } else { Some(text("TTL")?.to_owned()) };
            let set = Set { name, ttl, values, alias };
            let identifier = text("SetIdentifier").unwrap_or_default().to_owned();
            let key = (sort_key(&set.name), kind.to_owned(), identifier);
            let told = format!("resource record set [name='{}', type='{kind}']", set.name);
            match (action, sets.get(&key)) {
                ("CREATE", Some(_)) => {
                    return Err(Refused::batch(&format!("Tried to create {told} but it already exists")));
                }
                ("CREATE", None) => {
                    self.check(&set, kind, &sets)?;
                    sets.insert(key, set);
                }
                ("DELETE", None) => {
                    return Err(Refused::batch(&format!("Tried to delete {told} but it was not found")));
                }
                ("DELETE", Some(present)) if *present != set => {
                    return Err(Refused::batch(&format!(
                        "Tried to delete {told} but the values provided do not match the current values"
                    )));
                }
                ("DELETE", Some(_)) if !deleted.insert(key.clone()) => {
                    return Err(Refused::batch(&format!("Tried to delete {told} twice")));
                }
                ("DELETE", Some(_)) => drop(sets.remove(&key)),
                _ => return Err(invalid()),
            }
        }
        self.sets = sets;
        Ok(())
    }

    fn check(&self, set: &Set, kind: &str, sets: &BTreeMap<Key, Set>) -> Result<(), Refused> {
        let (name, zone) = (&set.name, &self.name);
        let key = sort_key(name);
        if !key.starts_with(&self.key()) {
            return Err(Refused::batch(&format!(
                "RRSet with DNS name {name} is not permitted in zone {zone}."
            )));
        }
        let others = || sets.keys().filter(|(other, _, _)| *other == key).map(|(_, kind, _)| kind.as_str());
        // A simple record can't be beside routed ones.
        if others().any(|other| other == kind) {
            return Err(Refused::batch(&format!(
                "RRSet with DNS name {name}, type {kind} cannot be created as other RRSets exist with the same name and type."
            )));
        }
        if kind != "CNAME" && others().any(|other| other == "CNAME") {
            return Err(Refused::batch(&format!(
                "RRSet of type {kind} with DNS name {name} is not permitted because a conflicting RRSet of type CNAME with the \
                 same DNS name already exists in zone {zone}."
            )));
        }
        if others().any(|other| (other == "CNAME") != (kind == "CNAME")) {
            return Err(Refused::batch(&format!(
                "RRSet of type {kind} with DNS name {name} is not permitted as it conflicts with other records with the \
                 same DNS name in zone {zone}."
            )));
        }
        let is_valid = |value: &String| match kind {
            "A" => value.parse::<Ipv4Addr>().is_ok(),
            "AAAA" => value.parse::<Ipv6Addr>().is_ok(),
            "TXT" => value.len() <= 257 && value.len() > 1 && value.starts_with('"') && value.ends_with('"'),
            "CNAME" => set.values.len() == 1,
            _ => false,
        };
        match set.values.iter().find(|value| !is_valid(value)) {
            Some(value) => Err(Refused::batch(&format!("Invalid Resource Record: {value}"))),
            None if set.values.is_empty() => Err(Refused::new(400, "InvalidInput", "Invalid XML")),
            None => Ok(()),
        }
    }
}

impl Set {
    fn element(&self, kind: &str, identifier: &str) -> String {
        let record = |value: &String| format!("<ResourceRecord><Value>{value}</Value></ResourceRecord>");
        let values: String = self.values.iter().map(record).collect();
        // Route 53 writes wildcards so.
        let name = self.name.replace('*', "\\052");
        let content = match &self.alias {
            Some(alias) => format!(
                "<AliasTarget><HostedZoneId>Z35SXDOTRQ7X7K</HostedZoneId><DNSName>{alias}.</DNSName>\
                 <EvaluateTargetHealth>false</EvaluateTargetHealth></AliasTarget>"
            ),
            None => format!(
                "<TTL>{}</TTL><ResourceRecords>{values}</ResourceRecords>",
                self.ttl.as_deref().unwrap_or_default()
            ),
        };
        let routing = match identifier.is_empty() {
            true => String::new(),
            false => format!("<SetIdentifier>{identifier}</SetIdentifier><Weight>1</Weight>"),
        };
        format!(
            "<ResourceRecordSet><Name>{name}</Name><Type>{kind}</Type>{routing}{content}</ResourceRecordSet>\n  "
        )
    }
}

trait Named {
    fn has_tag_name_of(&self, name: &str) -> bool;
}

impl Named for Node<'_, '_> {
    fn has_tag_name_of(&self, name: &str) -> bool {
        self.tag_name().name() == name
    }
}
