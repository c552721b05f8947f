//! Rules about topics and users that involve one document.

use super::Rules;
use crate::problem::quote_untrusted;
use crate::spec::{AccessOperation, AccessResource, AccessRule, RESERVED_ENDS, RESERVED_TOPICS, Topic, User};

impl Rules<'_> {
    pub(super) fn topic(&mut self, topic: &Topic) {
        let name = quote_untrusted(&topic.name);
        if RESERVED_TOPICS.iter().any(|reserved| topic.name.starts_with(reserved)) {
            self.refuse(
                "/name",
                "reserved-topic",
                format!("topic `{name}` belongs to Kafka or to a part of the cluster"),
                "choose a name that begins with neither `__` nor `strimzi.cruisecontrol.`",
            );
        }
        if topic.config.get("remote.log.copy.disable").is_some()
            && topic.config.get("remote.storage.enable").is_none()
        {
            self.refuse(
                "/config/remote.log.copy.disable",
                "no-effect",
                "`remote.log.copy.disable` needs `remote.storage.enable`",
                "remove it, or add `remote.storage.enable: true`",
            );
        }
    }

    pub(super) fn user(&mut self, user: &User) {
        let (cluster, name) = (&user.cluster, &user.identifier);
        let ends = name.as_str().strip_prefix(cluster.as_str());
        if ends.is_some_and(|end| RESERVED_ENDS.contains(&end)) {
            self.refuse(
                "/identifier",
                "reserved-user",
                format!("user `{name}` belongs to cluster `{cluster}` itself, as a user or a Secret of it"),
                "choose another identifier",
            );
        }
        for (index, id) in user.transactional_ids.iter().enumerate() {
            self.star_at_end(&format!("/transactional_ids/{index}"), id);
        }
        for (index, consumption) in user.consume.iter().enumerate() {
            if let Some(group) = &consumption.group {
                self.star_at_end(&format!("/consume/{index}/group"), group);
            }
        }
        for (index, rule) in user.rules.iter().enumerate() {
            self.access_rule(&format!("/rules/{index}"), rule);
        }
    }

    fn access_rule(&mut self, at: &str, rule: &AccessRule) {
        match (&rule.name, rule.resource) {
            (Some(_), AccessResource::Cluster) => self.refuse(
                &format!("{at}/name"),
                "no-effect",
                "a rule about the cluster has no `name`",
                "remove `name`",
            ),
            (None, AccessResource::Topic | AccessResource::Group | AccessResource::TransactionalId) => self
                .refuse(
                    &format!("{at}/resource"),
                    "missing-key",
                    "the rule has no `name`",
                    "add `name`: a name, or the beginning of names with a `*` at its end",
                ),
            (Some(name), _) => self.star_at_end(&format!("{at}/name"), name),
            (None, AccessResource::Cluster) => {}
        }
        let known = rule.resource.operations();
        let is_known =
            |operation: &AccessOperation| *operation == AccessOperation::All || known.contains(operation);
        for (index, operation) in rule.operations.iter().enumerate().filter(|(_, it)| !is_known(it)) {
            let words: Vec<String> = known.iter().map(|operation| format!("`{operation:?}`")).collect();
            self.refuse(
                &format!("{at}/operations/{index}"),
                "unknown-operation",
                format!("Kafka has no operation `{operation:?}` on this resource"),
                format!("use `All`, or some of {}", words.join(", ")),
            );
        }
    }

    fn star_at_end(&mut self, at: &str, name: &str) {
        if name.strip_suffix('*').unwrap_or(name).contains('*') {
            self.refuse(
                at,
                "star-inside",
                format!("`{}` has a `*` that is not at its end", quote_untrusted(name)),
                "Kafka knows whole names and beginnings of names: write a `*` only at the end",
            );
        }
    }
}
