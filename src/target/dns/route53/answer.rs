//! The documents of Route 53, as far as they are of interest.

use std::fmt::Write as _;

use roxmltree::{Document, Node};

use super::Route53Fault;

/// The records of a name and a kind.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct RecordSet {
    /// In lower case and without the dot at its end.
    pub name: String,
    pub kind: String,
    pub values: Vec<String>,
    /// In seconds; none of a record that leads to a service of AWS.
    pub ttl: Option<u32>,
    /// The name of such a service.
    pub alias: Option<String>,
    /// Whether it is one of several of its name and kind, by weight, place or health.
    pub is_routed: bool,
    /// The whole element.
    pub xml: String,
}

impl RecordSet {
    pub fn new(name: &str, kind: &str, ttl: u32, values: &[String]) -> RecordSet {
        let mut xml = format!(
            "<ResourceRecordSet><Name>{name}.</Name><Type>{kind}</Type><TTL>{ttl}</TTL><ResourceRecords>"
        );
        for value in values {
            let _ = write!(xml, "<ResourceRecord><Value>{}</Value></ResourceRecord>", escaped(value));
        }
        xml.push_str("</ResourceRecords></ResourceRecordSet>");
        let (name, kind, values) = (name.to_owned(), kind.to_owned(), values.to_vec());
        RecordSet { name, kind, values, ttl: Some(ttl), alias: None, is_routed: false, xml }
    }

    fn read(node: Node<'_, '_>) -> Option<RecordSet> {
        let records = child(node, "ResourceRecords");
        let values = records.into_iter().flat_map(|records| records.children());
        let alias = child(node, "AliasTarget").and_then(|target| text(target, "DNSName"));
        Some(RecordSet {
            name: plain(text(node, "Name")?),
            kind: text(node, "Type")?.to_owned(),
            values: values.filter_map(|record| text(record, "Value").map(str::to_owned)).collect(),
            ttl: text(node, "TTL").and_then(|ttl| ttl.parse().ok()),
            alias: alias.map(plain),
            is_routed: child(node, "SetIdentifier").is_some(),
            xml: node.document().input_text().get(node.range())?.to_owned(),
        })
    }
}

/// A page of a list of records, and where the next one begins: name, kind, and what tells records of the same name apart.
pub struct Page {
    pub sets: Vec<RecordSet>,
    pub next: Option<(String, String, Option<String>)>,
}

pub fn page(document: &str) -> Result<Page, Route53Fault> {
    let document = read(document)?;
    let root = document.root_element();
    let sets = child(root, "ResourceRecordSets").ok_or(Route53Fault::Unreadable)?;
    let sets = sets.children().filter(Node::is_element).map(RecordSet::read);
    let next = text(root, "NextRecordName").zip(text(root, "NextRecordType"));
    Ok(Page {
        sets: sets.collect::<Option<_>>().ok_or(Route53Fault::Unreadable)?,
        next: next.map(|(name, kind)| {
            (name.to_owned(), kind.to_owned(), text(root, "NextRecordIdentifier").map(str::to_owned))
        }),
    })
}

/// Returns the public zone of a name among a list of zones. A private one of that name is another zone.
pub fn zone_of(document: &str, name: &str) -> Result<String, Route53Fault> {
    let document = read(document)?;
    let zones = child(document.root_element(), "HostedZones").ok_or(Route53Fault::Unreadable)?;
    let of_name = zones.children().filter(|zone| text(*zone, "Name").map(plain).as_deref() == Some(name));
    let is_private = |zone: &Node<'_, '_>| {
        child(*zone, "Config").and_then(|config| text(config, "PrivateZone")) == Some("true")
    };
    let (private, public): (Vec<_>, Vec<_>) = of_name.partition(is_private);
    match (public.as_slice(), private.as_slice()) {
        ([zone], _) => id(text(*zone, "Id")),
        ([], []) => Err(Route53Fault::NoZone(name.to_owned())),
        ([], _) => Err(Route53Fault::Private(name.to_owned())),
        _ => Err(Route53Fault::Ambiguous(name.to_owned())),
    }
}

/// The number of a change, and whether all servers have it.
pub fn change(document: &str) -> Result<(String, bool), Route53Fault> {
    let document = read(document)?;
    let info = child(document.root_element(), "ChangeInfo").ok_or(Route53Fault::Unreadable)?;
    Ok((id(text(info, "Id"))?, text(info, "Status") == Some("INSYNC")))
}

/// The code of an error and its text. A batch that can't be made has a document of its own.
pub fn error(document: &str) -> Option<(String, String)> {
    let document = Document::parse(document).ok()?;
    let root = document.root_element();
    let (of, code) = match child(root, "Error") {
        Some(error) => (error, text(error, "Code")?),
        None => (child(root, "Messages")?, root.tag_name().name()),
    };
    let messages = of.children().filter(|node| node.tag_name().name() == "Message");
    let messages: Vec<&str> = messages.filter_map(|message| message.text()).collect();
    Some((code.to_owned(), messages.join("; ")))
}

fn read(document: &str) -> Result<Document<'_>, Route53Fault> {
    Document::parse(document).map_err(|_| Route53Fault::Unreadable)
}

/// The part after the last slash, as in `/hostedzone/Z0123`.
fn id(text: Option<&str>) -> Result<String, Route53Fault> {
    let id = text.and_then(|text| text.rsplit('/').next()).unwrap_or_default();
    let is_fit = (1..=64).contains(&id.len()) && id.bytes().all(|byte| byte.is_ascii_alphanumeric());
    is_fit.then(|| id.to_owned()).ok_or(Route53Fault::Unreadable)
}

pub fn plain(name: &str) -> String {
    name.trim_end_matches('.').to_lowercase()
}

fn child<'n, 'd>(node: Node<'n, 'd>, name: &str) -> Option<Node<'n, 'd>> {
    node.children().find(|child| child.tag_name().name() == name)
}

fn text<'n>(node: Node<'n, '_>, name: &str) -> Option<&'n str> {
    child(node, name)?.text()
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;").replace('<', "&lt;").replace('>', "&gt;")
}
