//! The template of the addresses of consoles.

use std::fmt;

use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use super::base_url;
use crate::names::{Identifier, ResourceKey};

/// The longest template, in bytes.
const LONGEST: usize = 2000;

/// How many characters of an invalid template an error quotes.
const LONGEST_SHOWN: usize = 200;

const PLACEHOLDERS: [&str; 3] = ["organization", "fleet", "cluster"];

/// The address of a cluster's console, with placeholders for its names.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(try_from = "String", into = "String")]
#[schemars(with = "String", extend("examples" = ["https://console.example.com/{organization}/{cluster}"]))]
pub struct ConsoleUrlTemplate(String);

impl ConsoleUrlTemplate {
    /// Returns the address for a cluster. Identifiers need no escapes, wherever they are in a URL.
    pub fn url(&self, cluster: &ResourceKey, fleet: &Identifier) -> String {
        let names = [cluster.organization.as_str(), fleet.as_str(), cluster.name.as_str()];
        filled(&self.0, names)
    }
}

fn filled(template: &str, names: [&str; 3]) -> String {
    let named = PLACEHOLDERS.into_iter().zip(names);
    named.fold(template.to_owned(), |url, (placeholder, name)| {
        url.replace(&format!("{{{placeholder}}}"), name)
    })
}

/// Returns what is wrong with a template, as the end of a sentence that starts with it.
fn fault(template: &str) -> Option<String> {
    const KNOWN: &str = "use `{organization}`, `{fleet}` and `{cluster}`";
    if template.len() > LONGEST {
        return Some(format!("is longer than {LONGEST} bytes"));
    }
    let example = filled(template, ["a"; 3]);
    if let Some((_, rest)) = example.split_once('{') {
        return Some(match rest.split_once('}') {
            Some((name, _)) => format!("has the unknown placeholder `{{{}}}`; {KNOWN}", shown(name)),
            None => format!("has a `{{` without its `}}`; {KNOWN}"),
        });
    }
    let rest = ["https://", "http://"].into_iter().find_map(|scheme| example.strip_prefix(scheme));
    let host = rest.map(|rest| &rest[..rest.find(['/', '?', '#']).unwrap_or(rest.len())]);
    if !host.is_some_and(base_url::is_authority) {
        return Some(
            "is not an address such as `https://console.example.com/{organization}/{cluster}`".to_owned(),
        );
    }
    let is_plain = |byte: u8| byte.is_ascii_graphic() && !b"\"<>\\^`|}".contains(&byte);
    (!example.bytes().all(is_plain))
        .then(|| "contains a character that no URL has; write it with percent signs, as `%20`".to_owned())
}

fn shown(text: &str) -> String {
    text.chars().filter(|letter| !letter.is_control()).take(LONGEST_SHOWN).collect()
}

impl TryFrom<String> for ConsoleUrlTemplate {
    type Error = String;

    fn try_from(text: String) -> Result<Self, String> {
        match fault(&text) {
            Some(why) => Err(format!("`console_url_template` is `{}`, which {why}", shown(&text))),
            None => Ok(ConsoleUrlTemplate(text)),
        }
    }
}

impl From<ConsoleUrlTemplate> for String {
    fn from(template: ConsoleUrlTemplate) -> Self {
        template.0
    }
}

impl fmt::Display for ConsoleUrlTemplate {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;
    use crate::names::Kind;

    #[test]
    fn the_names_of_a_cluster_take_the_places_of_the_placeholders() {
        let cluster = ResourceKey::new(Kind::Cluster, &"acme".parse().unwrap(), "orders");
        for (template, expected) in [
            (
                "https://c.example.com/{organization}/{fleet}/{cluster}",
                "https://c.example.com/acme/eu/orders",
            ),
            ("http://{cluster}.{organization}.example.com:8080", "http://orders.acme.example.com:8080"),
            (
                "https://c.example.com/?of={cluster}&again={cluster}",
                "https://c.example.com/?of=orders&again=orders",
            ),
            ("https://c.example.com/ui/%7B", "https://c.example.com/ui/%7B"),
        ] {
            let template = ConsoleUrlTemplate::try_from(template.to_owned()).unwrap();
            assert_eq!(template.url(&cluster, &"eu".parse().unwrap()), expected);
        }
    }

    #[test]
    fn a_template_that_makes_no_address_is_refused_with_its_line() {
        for (template, expected) in [
            ("console.example.com/{cluster}", "which is not an address such as"),
            ("ftp://console.example.com/{cluster}", "which is not an address such as"),
            ("https:///{cluster}", "which is not an address such as"),
            ("https://ada@console.example.com", "which is not an address such as"),
            (
                "https://c.example.com/{broker}",
                "which has the unknown placeholder `{broker}`; use `{organization}`, `{fleet}` and `{cluster}`",
            ),
            ("https://c.example.com/{cluster", "which has a `{` without its `}`"),
            ("https://c.example.com/a b", "which contains a character that no URL has"),
            ("https://c.example.com/cluster}", "which contains a character that no URL has"),
        ] {
            let text = format!("\nconsole_url_template = \"{template}\"\n");
            let error = Config::parse(&text).unwrap_err().to_string();
            let sentence = format!("`console_url_template` is `{template}`, {expected}");
            assert!(error.contains("line 2") && error.contains(&sentence), "{error}");
        }
    }
}
