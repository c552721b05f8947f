//! What somebody read before approving. If the plan has changed by then, the page marks what differs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use crate::parallel::locked;
use crate::plan::{OutlineItem, OutlineSection};

/// The number of approvals whose changes are remembered, and the most text of one, in bytes. The oldest ones go first.
const KEPT: usize = 64;
const LARGEST: usize = 128 << 10;

#[derive(Default)]
pub struct ReadPlans(Mutex<VecDeque<ReadPlan>>);

/// The changes that a page showed for an approval.
#[derive(Clone)]
pub struct ReadPlan {
    /// The e-mail address of the reader.
    owner: String,
    approval: String,
    part: String,
    /// By the text that names the change.
    changes: BTreeMap<String, Vec<String>>,
}

/// How a change differs from what somebody read.
pub enum Mark {
    Same,
    New,
    Differs { added: Vec<String>, removed: Vec<String> },
}

impl ReadPlans {
    /// Remembers what a page shows of the changes that wait for an approval.
    pub fn remember(&self, owner: &str, section: &OutlineSection) {
        for approval in &section.approvals {
            let of_it = section.items.iter().filter(|item| item.approval.as_ref() == Some(&approval.id));
            let changes: BTreeMap<_, _> = of_it.map(|item| (name(item), lines(item))).collect();
            if changes.values().flatten().map(String::len).sum::<usize>() > LARGEST {
                continue;
            }
            let (owner, approval) = (owner.to_owned(), approval.id.clone());
            let mut known = locked(&self.0);
            known.retain(|known| (&known.owner, &known.approval) != (&owner, &approval));
            if known.len() >= KEPT {
                known.pop_front();
            }
            known.push_back(ReadPlan { owner, approval, part: section.name.clone(), changes });
        }
    }

    /// What this person read of an approval.
    pub fn find(&self, owner: &str, approval: &str) -> Option<ReadPlan> {
        let known = locked(&self.0);
        known.iter().find(|known| known.owner == owner && known.approval == approval).cloned()
    }
}

impl ReadPlan {
    pub fn mark(&self, section: &OutlineSection, item: &OutlineItem) -> Mark {
        if section.name != self.part || item.approval.is_none() {
            return Mark::Same;
        }
        let Some(before) = self.changes.get(&name(item)) else { return Mark::New };
        let now = lines(item);
        let beside = |lines: &[String], others: &[String]| -> Vec<String> {
            lines.iter().filter(|line| !others.contains(line)).cloned().collect()
        };
        let (added, removed) = (beside(&now, before), beside(before, &now));
        if added.is_empty() && removed.is_empty() { Mark::Same } else { Mark::Differs { added, removed } }
    }

    /// The changes that wait for no approval any more.
    pub fn gone(&self, sections: &[OutlineSection]) -> Vec<String> {
        let part = sections.iter().find(|section| section.name == self.part);
        let waits = |name: &&String| {
            part.is_some_and(|part| part.approvals.iter().any(|approval| approval.changes.contains(name)))
        };
        self.changes.keys().filter(|name| !waits(name)).cloned().collect()
    }
}

/// As approvals name it: `delete cluster sandbox`.
fn name(item: &OutlineItem) -> String {
    format!("{} {} {}", item.action.trim_start_matches("waiting to "), item.noun, item.name)
}

fn lines(item: &OutlineItem) -> Vec<String> {
    [&item.fields, &item.effects, &item.objects].into_iter().flatten().cloned().collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::plan::{OutlineApproval, Verb};

    fn item(cluster: &str, effect: &str) -> OutlineItem {
        OutlineItem {
            verb: Verb::Delete,
            action: "waiting to delete".to_owned(),
            resource: format!("Cluster/acme/{cluster}").try_into().unwrap(),
            noun: "cluster".to_owned(),
            name: cluster.to_owned(),
            place: String::new(),
            fields: Vec::new(),
            waiting: Vec::new(),
            ways_out: Vec::new(),
            effects: vec![effect.to_owned()],
            approval: Some("0123".to_owned()),
            objects: Vec::new(),
            omitted: 0,
        }
    }

    fn section(items: Vec<OutlineItem>) -> OutlineSection {
        let changes = items.iter().map(name).collect();
        let approval = OutlineApproval { id: "0123".to_owned(), changes, total: items.len(), deletes: true };
        OutlineSection {
            name: "acme/eu".to_owned(),
            items,
            approvals: vec![approval],
            ..OutlineSection::default()
        }
    }

    #[test]
    fn what_differs_from_what_was_read_is_marked() {
        let plans = ReadPlans::default();
        plans.remember("ada", &section(vec![item("a", "all data is deleted"), item("b", "same")]));
        assert!(plans.find("bob", "0123").is_none(), "somebody else read nothing");
        let read = plans.find("ada", "0123").unwrap();
        let now = section(vec![item("b", "same"), item("a", "the data stays"), item("c", "new")]);
        let marks: Vec<String> = now
            .items
            .iter()
            .map(|item| match read.mark(&now, item) {
                Mark::Same => "same".to_owned(),
                Mark::New => "new".to_owned(),
                Mark::Differs { added, removed } => format!("+{} -{}", added.join(","), removed.join(",")),
            })
            .collect();
        assert_eq!(marks, ["same", "+the data stays -all data is deleted", "new"]);
        assert!(read.gone(&[now]).is_empty());
        assert_eq!(read.gone(&[section(vec![item("b", "same")])]), ["delete cluster a"]);
        assert_eq!(read.gone(&[]), ["delete cluster a", "delete cluster b"]);
    }

    #[test]
    fn the_oldest_and_what_is_very_large_are_not_kept() {
        let plans = ReadPlans::default();
        for owner in 0..=KEPT {
            plans.remember(&owner.to_string(), &section(vec![item("a", "x")]));
        }
        assert!(plans.find("0", "0123").is_none() && plans.find("1", "0123").is_some());
        plans.remember("large", &section(vec![item("a", &"x".repeat(LARGEST + 1))]));
        assert!(plans.find("large", "0123").is_none());
    }
}
