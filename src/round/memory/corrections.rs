//! Counts corrections of drift, so that Streamfleet and another writer don't overwrite each other for ever.

use std::collections::BTreeMap;

use jiff::{SignedDuration, Timestamp};

use crate::names::{FleetKey, ObjectKey};
use crate::plan::{Cause, Change, Flapping, Step, Verb, Waiting};

/// The most corrections of an object within [`WINDOW`]. A person who experiments on a running cluster edits
/// an object a few times. Only a program reverts it five times, and each time may restart brokers.
const CORRECTIONS: usize = 5;

/// The period in which corrections are counted, and for which the object is then left alone.
const WINDOW: SignedDuration = SignedDuration::from_mins(10);

#[derive(Default)]
pub(super) struct DriftCorrections {
    made: BTreeMap<(FleetKey, ObjectKey), Vec<Timestamp>>,
    flapping: BTreeMap<(FleetKey, ObjectKey), Flapping>,
}

impl DriftCorrections {
    pub(super) fn done(&mut self, fleet: &FleetKey, change: &Change, now: Timestamp) {
        for step in &change.steps {
            match &change.cause {
                Cause::Drift { by } => self.corrected(fleet, step, by.as_deref(), now),
                _ => self.forget(fleet, step),
            }
        }
    }

    fn corrected(&mut self, fleet: &FleetKey, step: &Step, by: Option<&str>, now: Timestamp) {
        let object = (fleet.clone(), step.object.clone());
        let made = self.made.entry(object.clone()).or_default();
        made.retain(|at| now.duration_since(*at) < WINDOW);
        made.push(now);
        if made.len() < CORRECTIONS {
            return;
        }
        self.made.remove(&object);
        let is_deleted = step.verb == Verb::Create;
        let field = (!is_deleted).then(|| step.changed_field().unwrap_or_else(|| "the form".to_owned()));
        let until = now.checked_add(WINDOW).unwrap_or(now);
        let by = by.map(str::to_owned);
        let flapping = Flapping { by: by.clone(), field: field.clone(), until };
        let told = Waiting::Flapping { object: step.object.clone(), by, field, until };
        tracing::warn!(%fleet, object = %step.object, by = flapping.by, field = flapping.field, %until, "{told}");
        self.flapping.insert(object, flapping);
    }

    /// The object has a new desired state.
    fn forget(&mut self, fleet: &FleetKey, step: &Step) {
        let object = (fleet.clone(), step.object.clone());
        self.made.remove(&object);
        self.flapping.remove(&object);
    }

    /// The objects that are left alone.
    pub(super) fn flapping(&mut self, now: Timestamp) -> BTreeMap<(FleetKey, ObjectKey), Flapping> {
        // The plan may have begun before the last correction ended, hence the factor 2. A longer time means
        // that the clock was set back.
        let may_be = |left: SignedDuration| left.is_positive() && left <= WINDOW * 2;
        self.flapping.retain(|_, flapping| may_be(flapping.until.duration_since(now)));
        self.flapping.clone()
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::names::Json;
    use crate::render::{Manifest, Stage};

    fn step() -> Step {
        let object: ObjectKey = "v1|ResourceQuota|ns|quota".to_owned().try_into().unwrap();
        let body = |pods: &str| Json::from(json!({"spec": {"hard": {"pods": pods}}}));
        let after = Manifest {
            key: object.clone(),
            owner: "Cluster/acme/orders".to_owned().try_into().unwrap(),
            stage: Stage::Configuration,
            body: body("14"),
        };
        let stage = Stage::Configuration;
        Step { verb: Verb::Update, object, stage, uid: None, before: Some(body("99")), after: Some(after) }
    }

    #[test]
    fn what_is_changed_back_again_and_again_is_left_for_a_while() {
        let fleet: FleetKey = "acme/eu".to_owned().try_into().unwrap();
        let at = |minutes| {
            "2026-11-21T12:00:00Z".parse::<Timestamp>().unwrap() + SignedDuration::from_mins(minutes)
        };
        let mut corrections = DriftCorrections::default();
        // Corrections before the window don't count.
        for minute in [0, 11, 12, 13, 14] {
            corrections.corrected(&fleet, &step(), Some("rival"), at(minute));
            assert!(corrections.flapping(at(minute)).is_empty());
        }
        corrections.corrected(&fleet, &step(), Some("rival"), at(15));
        let a_plan_begun_before = at(15) - SignedDuration::from_millis(1);
        assert_eq!(corrections.flapping(a_plan_begun_before).len(), 1);
        let flapping = corrections.flapping(at(15)).into_values().next().unwrap();
        let (by, field) = (Some("rival".to_owned()), Some("/spec/hard/pods".to_owned()));
        assert_eq!(flapping, Flapping { by, field, until: at(25) });
        // If the clock is set back, the wait isn't prolonged.
        assert!(corrections.flapping(at(-60)).is_empty());
        for minute in 15..20 {
            corrections.corrected(&fleet, &step(), Some("rival"), at(minute));
        }
        assert_eq!(corrections.flapping(at(20)).len(), 1);
        assert!(corrections.flapping(at(29)).is_empty());

        for minute in 30..35 {
            corrections.corrected(&fleet, &step(), None, at(minute));
        }
        assert_eq!(corrections.flapping(at(35)).len(), 1);
        corrections.forget(&fleet, &step());
        assert!(corrections.flapping(at(35)).is_empty());

        // An object that is deleted has its last applied manifest in the step.
        for minute in 40..45 {
            corrections.corrected(&fleet, &Step { verb: Verb::Create, ..step() }, None, at(minute));
        }
        let flapping = corrections.flapping(at(45)).into_values().next().unwrap();
        assert_eq!(flapping, Flapping { by: None, field: None, until: at(54) });
    }
}
