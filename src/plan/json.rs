//! The plan as JSON, for files and programs.

use serde_json::Value;

use crate::plan::{FORMAT, Plan};

/// Why a text is no plan that this version can use.
#[derive(Debug, thiserror::Error)]
pub enum InvalidPlan {
    /// Another version's form.
    #[error("the plan has format {found}, and this version reads format {FORMAT}; make the plan again")]
    Format {
        /// The format that it says it has.
        found: u64,
    },
    /// Not a plan at all.
    #[error("this is not a plan of streamfleet; make one with `streamfleet plan --out FILE`")]
    NotAPlan(#[source] serde_json::Error),
}

impl Plan {
    /// The plan as JSON, indented, with a line break at the end.
    pub fn to_json(&self) -> String {
        // A plan's keys are strings and none of its values can fail to be written, so there is no error to pass on.
        let mut text = serde_json::to_string_pretty(self).unwrap_or_default();
        text.push('\n');
        text
    }

    /// Reads back what [`Plan::to_json`] wrote.
    ///
    /// # Errors
    /// When the text is no plan, or another version's.
    pub fn from_json(text: &str) -> Result<Plan, InvalidPlan> {
        let value: Value = serde_json::from_str(text).map_err(InvalidPlan::NotAPlan)?;
        match value.get("format").and_then(Value::as_u64) {
            Some(found) if found != u64::from(FORMAT) => Err(InvalidPlan::Format { found }),
            _ => serde_json::from_value(value).map_err(InvalidPlan::NotAPlan),
        }
    }
}

/// The JSON Schema of a plan.
pub fn schema() -> Value {
    crate::spec::schema::of::<Plan>()
}
