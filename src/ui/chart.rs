//! Small pictures of numbers over time, drawn by the server.

use std::collections::BTreeMap;

use jiff::Timestamp;

use crate::views::cost::{CostReport, SizePeriod};

/// The width and the height of a picture, in its own units.
const WIDTH: f64 = 100.0;
const HEIGHT: f64 = 24.0;

/// The sizes and costs of clusters in a time.
pub struct Usage {
    pub cost: String,
    pub lines: Vec<Sparkline>,
}

pub struct Sparkline {
    pub title: &'static str,
    /// The last value with its unit.
    pub last: String,
    /// The points of the line in SVG: `0,24 50,24 50,0 100,0`.
    pub points: String,
}

impl Usage {
    pub fn of(report: &CostReport) -> Usage {
        let line = |title, unit, scale: f64, value: fn(&SizePeriod) -> u64| {
            let values = totals(report, value);
            let last = values.last().map_or(0.0, |(_, last)| *last) / scale;
            Sparkline {
                title,
                last: format!("{} {unit}", (last * 10.0).round() / 10.0),
                points: points(&values),
            }
        };
        let lines = vec![
            line("Processors", "cores", 1000.0, |size| size.cpu_millis),
            line("Memory", "GiB", 1024.0, |size| size.memory_mib),
            line("Disks", "GiB", 1.0, |size| size.disk_gib),
        ];
        let cost = report.cost.total.rounded(report.currency.decimals());
        Usage { cost: format!("{} {cost}", report.currency), lines }
    }
}

/// The sum over all clusters since each time when it changes: the part of the report's time that has passed, and the sum.
fn totals(report: &CostReport, value: fn(&SizePeriod) -> u64) -> Vec<(f64, f64)> {
    let second = |text: &str| text.parse().map_or(0.0, |at: Timestamp| at.as_millisecond() as f64);
    let (from, to) = (second(&report.from), second(&report.to));
    let mut changes: BTreeMap<i64, i64> = BTreeMap::from([(0, 0)]);
    for period in report.clusters.iter().flat_map(|cluster| &cluster.periods) {
        // In thousandths, since a picture has no more.
        let part = |text: &str| ((second(text) - from) / (to - from).max(1.0) * 1000.0) as i64;
        let size = i64::try_from(value(period)).unwrap_or(i64::MAX);
        *changes.entry(part(&period.from)).or_default() += size;
        // An entry that lasts until now hasn't ended.
        if period.to != report.to {
            *changes.entry(part(&period.to)).or_default() -= size;
        }
    }
    let sum = |sum: &mut i64, (at, change): (i64, i64)| {
        *sum = sum.saturating_add(change);
        Some((at as f64 / 1000.0, *sum as f64))
    };
    changes.into_iter().scan(0, sum).collect()
}

fn points(values: &[(f64, f64)]) -> String {
    let most = values.iter().map(|(_, value)| *value).fold(1.0, f64::max);
    let height = |value: f64| ((1.0 - value / most) * HEIGHT).round();
    let mut text = String::new();
    for (index, (at, value)) in values.iter().enumerate() {
        let end = values.get(index + 1).map_or(1.0, |(next, _)| *next);
        let y = height(*value);
        text += &format!("{:.1},{y} {:.1},{y} ", at * WIDTH, end * WIDTH);
    }
    text.trim_end().to_owned()
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_line_has_a_step_at_each_change_of_the_sum() {
        let period = |from: &str, to: &str, cpu: u64| json!({"from": from, "to": to, "cpu_millis": cpu, "memory_mib": 2048, "disk_gib": 0, "load_balancers": 0});
        let (begin, noon, end) = ("2026-11-01T00:00:00Z", "2026-11-01T12:00:00Z", "2026-11-02T00:00:00Z");
        let cost =
            json!({"total": "12.345678", "cpu": "0", "memory": "0", "disk": "0", "load_balancers": "0"});
        let cluster = |id: u8, periods| json!({"cluster": "a/b", "id": format!("00000000-0000-0000-0000-00000000000{id}"), "cost": cost, "periods": periods});
        let report = json!({
            "currency": "EUR", "from": begin, "to": end, "cost": cost,
            "clusters": [
                cluster(1, vec![period(begin, noon, 1000), period(noon, end, 3000)]),
                cluster(2, vec![period(noon, end, 1000)]),
            ],
        });
        let usage = Usage::of(&serde_json::from_value(report).unwrap());
        assert_eq!(usage.cost, "EUR 12.35");
        let told: Vec<_> =
            usage.lines.iter().map(|it| (it.title, it.last.as_str(), it.points.as_str())).collect();
        assert_eq!(told[0], ("Processors", "4 cores", "0.0,18 50.0,18 50.0,0 100.0,0"));
        assert_eq!(told[1], ("Memory", "4 GiB", "0.0,12 50.0,12 50.0,0 100.0,0"));
        assert_eq!(told[2], ("Disks", "0 GiB", "0.0,24 50.0,24 50.0,24 100.0,24"));
    }
}
