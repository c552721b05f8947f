use serde_json::Value;

use crate::plan::{FORMAT, Plan};

#[derive(Debug, thiserror::Error)]
pub enum InvalidPlan {
    #[error("the plan has format {found}, and this version reads format {FORMAT}; make the plan again")]
    Format { found: u64 },
    #[error("this is not a plan of streamfleet; make one with `streamfleet plan --out FILE`")]
    NotAPlan(#[source] serde_json::Error),
}

impl Plan {
    pub fn to_json(&self) -> String {
        // A plan's keys are strings and all its values can be serialized, so there is no error to return.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Parses what [`Plan::to_json`] wrote.
    pub fn from_json(text: &str) -> Result<Plan, InvalidPlan> {
        let value: Value = serde_json::from_str(text).map_err(InvalidPlan::NotAPlan)?;
        match value.get("format").and_then(Value::as_u64) {
            Some(found) if found != u64::from(FORMAT) => Err(InvalidPlan::Format { found }),
            _ => serde_json::from_value(value).map_err(InvalidPlan::NotAPlan),
        }
    }
}

pub fn schema() -> Value {
    crate::spec::schema::of::<Plan>()
}
