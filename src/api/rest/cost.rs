//! The cost of clusters.

use axum::http::StatusCode;
use jiff::Timestamp;
use jiff::tz::TimeZone;

use super::{A_TIME, Answered, Call, written};
use crate::http::problem::ProblemDocument;
use crate::names::ResourceKey;
use crate::state::ClusterSizes;
use crate::views::cost::{self, Span};

/// The cost of a cluster, or of all clusters that are or were on a fleet.
pub(super) fn read(call: &Call) -> Answered {
    let (key, _) = call.found_key()?;
    let prices = call.made.round.checked.catalog.config.prices.table().ok_or_else(|| {
        ProblemDocument::not_found(format!("{key} has no cost: the settings have no `[prices]`"))
            .hint("ask who runs this installation to set prices")
    })?;
    let span = span(call, Timestamp::now())?;
    let report = cost::report(&prices, &sizes(call, &key), span);
    Ok(call.with_current_plan(written(StatusCode::OK, &report)))
}

fn sizes(call: &Call, key: &ResourceKey) -> Vec<ClusterSizes> {
    let state = &call.service.state;
    match key.as_fleet() {
        Some(fleet) => state.sizes_on_fleet(&fleet),
        None => state.identity(key).and_then(|(id, _)| state.sizes_of_cluster(id)).into_iter().collect(),
    }
}

/// The time that the caller names; by default from the beginning of the month (UTC) until now.
fn span(call: &Call, now: Timestamp) -> Result<Span, ProblemDocument> {
    let to = call.query.parsed("to", A_TIME)?.unwrap_or(now).min(now);
    let from = call.query.parsed("from", A_TIME)?.unwrap_or_else(|| begin_of_month(to));
    if from > to {
        let why = "the query parameter `from` is after `to`, or in the future";
        return Err(ProblemDocument::malformed(why).hint("leave out both for this month until now"));
    }
    Ok(Span { from, to })
}

fn begin_of_month(at: Timestamp) -> Timestamp {
    let first = at.to_zoned(TimeZone::UTC).first_of_month().and_then(|day| day.start_of_day());
    first.map_or(at, |day| day.timestamp())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_month_begins_at_midnight_in_utc() {
        for (at, expected) in [
            ("2026-11-23T12:00:00.5Z", "2026-11-01T00:00:00Z"),
            ("2026-12-01T00:00:00Z", "2026-12-01T00:00:00Z"),
        ] {
            assert_eq!(begin_of_month(at.parse().unwrap()).to_string(), expected);
        }
    }
}
