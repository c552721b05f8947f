//! What somebody read before approving. If the plan has changed by then, the page marks what differs.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Mutex;

use super::bounded::{Bounds, Kept};
use crate::parallel::locked;
use crate::plan::{OutlineItem, OutlineSection};

/// The most text of one approval, in bytes.
const LARGEST: usize = 128 << 10;

/// The approvals whose changes are remembered.
const BYTES: usize = 16 << 20;
const OF_ONE: usize = 16;
const BOUNDS: Bounds = Bounds { of_one: OF_ONE, count: 1024, bytes: BYTES };

#[derive(Default)]
pub struct ReadPlans(Mutex<VecDeque<ReadPlan>>);

/// The changes that pages showed for an approval.
#[derive(Clone)]
pub struct ReadPlan {
    /// The e-mail address of the reader.
    owner: String,
    approval: String,
    part: String,
    /// By the text that names the change.
    changes: BTreeMap<String, ReadChange>,
}

#[derive(Clone)]
struct ReadChange {
    lines: Vec<String>,
    objects: Vec<String>,
    /// Whether there were more lines about objects.
    is_cut: bool,
}

/// How a change differs from what somebody read.
pub enum Mark {
    Same,
    New,
    Differs { added: Vec<String>, removed: Vec<String> },
}

impl ReadPlans {
    /// Remembers what a page shows of the changes that wait for an approval, beside what other pages showed of them.
    pub fn remember(&self, owner: &str, section: &OutlineSection) {
        for approval in &section.approvals {
            let of_it = section.items.iter().filter(|item| item.approval.as_ref() == Some(&approval.id));
            let shown: Vec<_> = of_it.map(|item| (name(item), ReadChange::of(item))).collect();
            if shown.is_empty() {
                continue;
            }
            let mut known = locked(&self.0);
            let place = known.iter().position(|known| known.owner == owner && known.approval == approval.id);
            let before = place.and_then(|place| known.remove(place));
            let mut read = before.clone().unwrap_or_else(|| ReadPlan {
                owner: owner.to_owned(),
                approval: approval.id.clone(),
                part: section.name.clone(),
                changes: BTreeMap::new(),
            });
            read.changes.extend(shown);
            let read = if read.size() <= LARGEST { Some(read) } else { before };
            read.into_iter().for_each(|read| BOUNDS.add(&mut known, read));
        }
    }

    /// What this person read of an approval.
    pub fn find(&self, owner: &str, approval: &str) -> Option<ReadPlan> {
        let known = locked(&self.0);
        known.iter().find(|known| known.owner == owner && known.approval == approval).cloned()
    }
}

impl Kept for ReadPlan {
    fn is_of_owner(&self, other: &Self) -> bool {
        self.owner == other.owner
    }

    fn size(&self) -> usize {
        let text = |lines: &[String]| lines.iter().map(String::len).sum::<usize>();
        self.changes.iter().map(|(name, it)| name.len() + text(&it.lines) + text(&it.objects)).sum()
    }
}

impl ReadPlan {
    pub fn mark(&self, section: &OutlineSection, item: &OutlineItem) -> Mark {
        if section.name != self.part || item.approval.is_none() {
            return Mark::Same;
        }
        let Some(before) = self.changes.get(&name(item)) else { return Mark::New };
        let now = ReadChange::of(item);
        // A page may show fewer of these lines than another one does.
        let most = if before.is_cut || now.is_cut {
            before.objects.len().min(now.objects.len())
        } else {
            usize::MAX
        };
        let beside = |one: &ReadChange, other: &ReadChange| -> Vec<String> {
            let lines = one.lines.iter().filter(|line| !other.lines.contains(line));
            let objects = one.objects.iter().take(most).filter(|line| !other.objects.contains(line));
            lines.chain(objects).cloned().collect()
        };
        let (added, removed) = (beside(&now, before), beside(before, &now));
        if added.is_empty() && removed.is_empty() { Mark::Same } else { Mark::Differs { added, removed } }
    }

    /// The changes that wait for no approval any more, as far as a page tells: `is_whole` if no other page has more.
    pub fn gone(&self, sections: &[OutlineSection], is_whole: bool) -> Vec<String> {
        let part = sections.iter().find(|section| section.name == self.part);
        let approvals = part.map(|part| part.approvals.as_slice()).unwrap_or_default();
        let names_all = approvals.iter().all(|approval| approval.changes.len() == approval.total);
        if !names_all || part.is_none() && !is_whole {
            return Vec::new();
        }
        let waits = |name: &&String| approvals.iter().any(|approval| approval.changes.contains(name));
        self.changes.keys().filter(|name| !waits(name)).cloned().collect()
    }
}

impl ReadChange {
    fn of(item: &OutlineItem) -> ReadChange {
        let lines = [&item.fields, &item.effects].into_iter().flatten().cloned().collect();
        ReadChange { lines, objects: item.objects.clone(), is_cut: item.omitted > 0 }
    }
}

/// As approvals name it: `delete cluster sandbox`.
fn name(item: &OutlineItem) -> String {
    format!("{} {} {}", item.action.trim_start_matches("waiting to "), item.noun, item.name)
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
        assert!(read.gone(&[now], true).is_empty());
        assert_eq!(read.gone(&[section(vec![item("b", "same")])], true), ["delete cluster a"]);
        assert_eq!(read.gone(&[], true), ["delete cluster a", "delete cluster b"]);
        // Another page has them, or the page doesn't name them all.
        assert!(read.gone(&[], false).is_empty());
        let mut cut = section(vec![item("b", "same")]);
        cut.approvals[0].total = 60;
        assert!(read.gone(&[cut], true).is_empty());
    }

    #[test]
    fn what_several_pages_show_of_an_approval_is_remembered_together() {
        let plans = ReadPlans::default();
        let page = |items: Vec<OutlineItem>| {
            let all = section(vec![item("a", "x"), item("b", "x")]);
            OutlineSection { items, ..all }
        };
        plans.remember("ada", &page(vec![item("a", "x")]));
        plans.remember("ada", &page(vec![item("b", "x")]));
        plans.remember("ada", &page(Vec::new()));
        let read = plans.find("ada", "0123").unwrap();
        let now = section(vec![item("a", "x"), item("b", "x")]);
        assert!(now.items.iter().all(|item| matches!(read.mark(&now, item), Mark::Same)));
        // Of a long difference, pages show the beginning.
        let long = |lines: usize| OutlineItem {
            objects: (0..lines).map(|line| line.to_string()).collect(),
            omitted: 100 - lines,
            ..item("a", "x")
        };
        plans.remember("ada", &page(vec![long(100)]));
        let read = plans.find("ada", "0123").unwrap();
        assert!(matches!(read.mark(&now, &long(60)), Mark::Same));
    }

    #[test]
    fn nobody_makes_room_with_what_others_read() {
        let plans = ReadPlans::default();
        let of = |id: usize, text: &str| {
            let mut section = section(vec![item("a", text)]);
            section.items[0].approval = Some(id.to_string());
            section.approvals[0].id = id.to_string();
            section
        };
        plans.remember("ada", &of(0, "x"));
        for id in 0..=OF_ONE {
            plans.remember("eve", &of(id, "x"));
        }
        assert!(plans.find("eve", "0").is_none() && plans.find("eve", "1").is_some());
        // Many persons with much text: whoever has the most loses it.
        let large = "x".repeat(LARGEST - 100);
        for person in 0..20 {
            for id in 0..OF_ONE {
                plans.remember(&format!("eve{person}"), &of(id, &large));
            }
        }
        assert!(plans.find("ada", "0").is_some() && plans.find("eve", "1").is_some());
        assert!(locked(&plans.0).iter().map(ReadPlan::size).sum::<usize>() <= BYTES);
        plans.remember("large", &section(vec![item("a", &"x".repeat(LARGEST + 1))]));
        assert!(plans.find("large", "0123").is_none());
    }
}
