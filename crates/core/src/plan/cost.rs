//! Costs, by sizes over time and the prices of the settings. All numbers are integers: what is used is added up in
//! exact units, and each amount is rounded once, half up, to a millionth of the currency's unit.

use jiff::Timestamp;
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::component::Size;
use crate::config::{Amount, Currency, PriceTable};

/// Seconds in an hour.
const HOUR: u128 = 3_600;

/// Seconds in a month, as clouds count it: 730 hours.
const MONTH: u64 = 730 * 3_600;

/// A cluster's cost a month, before and after a change.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct CostChange {
    /// The currency, by its code in ISO 4217.
    pub currency: Currency,
    /// The present cost of a month.
    pub before: Amount,
    /// The new cost of a month.
    pub after: Amount,
}

/// The resources used over some time, multiplied by seconds.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub struct Usage {
    millicore_seconds: u128,
    mib_seconds: u128,
    disk_gib_seconds: u128,
    load_balancer_seconds: u128,
}

/// A cost, by resource. The total is the sum of the others.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
pub struct Cost {
    /// All together.
    pub total: Amount,
    /// The processors that pods request.
    pub cpu: Amount,
    /// The memory that pods request.
    pub memory: Amount,
    /// The disks.
    pub disk: Amount,
    /// The load balancers.
    pub load_balancers: Amount,
}

/// A time without a change of size.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Period {
    pub from: Timestamp,
    pub to: Timestamp,
    pub size: Size,
}

/// A recorded change of the size of one object of a cluster.
#[derive(Debug, Clone, Copy)]
pub struct SizeEvent<'a> {
    pub at: Timestamp,
    /// The object, by any unique name.
    pub object: &'a str,
    pub size: Size,
}

impl Usage {
    /// Adds what a cluster of this size uses in so many seconds.
    pub fn add(&mut self, size: Size, seconds: u64) {
        let used = |amount: u64| u128::from(amount) * u128::from(seconds);
        self.millicore_seconds += used(size.cpu_millis);
        self.mib_seconds += used(size.memory_mib);
        self.disk_gib_seconds += used(size.disk_gib);
        self.load_balancer_seconds += used(size.load_balancers());
    }

    pub fn cost(self, prices: &PriceTable) -> Cost {
        let amount = |price: Amount, used: u128, unit: u128| {
            let millionths = price.millionths().saturating_mul(used).saturating_add(unit / 2) / unit;
            Amount::of_millionths(millionths)
        };
        let cpu = amount(prices.cpu_hour, self.millicore_seconds, 1_000 * HOUR);
        let memory = amount(prices.memory_gib_hour, self.mib_seconds, 1_024 * HOUR);
        let disk = amount(prices.disk_gib_month, self.disk_gib_seconds, u128::from(MONTH));
        let load_balancers = amount(prices.loadbalancer_hour, self.load_balancer_seconds, HOUR);
        Cost {
            total: [cpu, memory, disk, load_balancers].into_iter().sum(),
            cpu,
            memory,
            disk,
            load_balancers,
        }
    }
}

impl Cost {
    pub fn plus(self, other: Cost) -> Cost {
        Cost {
            total: self.total.plus(other.total),
            cpu: self.cpu.plus(other.cpu),
            memory: self.memory.plus(other.memory),
            disk: self.disk.plus(other.disk),
            load_balancers: self.load_balancers.plus(other.load_balancers),
        }
    }
}

/// Returns what a cluster of this size costs in a month.
pub fn a_month(prices: &PriceTable, size: Size) -> Amount {
    let mut usage = Usage::default();
    usage.add(size, MONTH);
    usage.cost(prices).total
}

/// Returns the periods of a cluster between two times, by its recorded changes, which may be in any order. Periods in
/// which it has no size are left out.
pub fn periods(events: &[SizeEvent<'_>], from: Timestamp, to: Timestamp) -> Vec<Period> {
    let mut events: Vec<&SizeEvent<'_>> = events.iter().filter(|event| event.at < to).collect();
    // A clock that was set back must not make a later change count as an earlier one of the same second.
    events.sort_by_key(|event| event.at);
    let mut sizes: Vec<(&str, Size)> = Vec::new();
    let (mut periods, mut since): (Vec<Period>, Timestamp) = (Vec::new(), from);
    let mut end = |sizes: &[(&str, Size)], since: Timestamp, to: Timestamp| {
        let size: Size = sizes.iter().map(|(_, size)| *size).sum();
        if size == Size::default() || since >= to {
            return;
        }
        match periods.last_mut() {
            Some(last) if last.size == size && last.to == since => last.to = to,
            _ => periods.push(Period { from: since, to, size }),
        }
    };
    for event in events {
        if event.at > since {
            end(&sizes, since, event.at);
            since = event.at;
        }
        sizes.retain(|(object, _)| *object != event.object);
        sizes.push((event.object, event.size));
    }
    end(&sizes, since, to);
    periods
}

/// Adds up what was used in some periods.
pub fn usage(periods: &[Period]) -> Usage {
    let mut usage = Usage::default();
    for Period { from, to, size } in periods {
        usage.add(*size, u64::try_from(to.as_second() - from.as_second()).unwrap_or_default());
    }
    usage
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Config;

    fn prices(text: &str) -> PriceTable {
        Config::parse(&format!("[prices]\ncurrency = \"EUR\"\n{text}")).unwrap().prices.table().unwrap()
    }

    fn at(time: &str) -> Timestamp {
        format!("2026-11-{time}:00Z").parse().unwrap()
    }

    fn brokers(count: u64) -> Size {
        Size {
            brokers: count,
            cpu_millis: count * 2_000,
            memory_mib: count * 8_192,
            disk_gib: count * 100,
            ..Size::default()
        }
    }

    #[test]
    fn the_cost_of_a_cluster_resized_at_noon_is_exact_to_the_minute() {
        let prices = prices("cpu_hour = 0.03\nmemory_gib_hour = 0.004\ndisk_gib_month = 0.073\n");
        let events = [
            SizeEvent { at: at("01T00:00"), object: "pool", size: brokers(3) },
            SizeEvent { at: at("23T12:00"), object: "pool", size: brokers(6) },
        ];
        let cost = |from, to| usage(&periods(&events, at(from), at(to))).cost(&prices);
        // 3 brokers: 6 CPUs are 0.18 an hour, 24 GiB of memory 0.096, 300 GiB of disk 0.03: together 0.306.
        assert_eq!(cost("23T11:00", "23T12:00").total.to_string(), "0.306000");
        assert_eq!(cost("23T12:00", "23T13:00").total.to_string(), "0.612000");
        assert_eq!(cost("23T00:00", "24T00:00").total.to_string(), "11.016000");
        // A minute costs a sixtieth: 0.0051 before and 0.0102 after.
        assert_eq!(cost("23T11:59", "23T12:00").total.to_string(), "0.005100");
        assert_eq!(cost("23T11:59", "23T12:01").total.to_string(), "0.015300");
        let day = cost("23T00:00", "24T00:00");
        assert_eq!(day.total, [day.cpu, day.memory, day.disk, day.load_balancers].into_iter().sum());
    }

    #[test]
    fn a_month_has_730_hours_and_a_load_balancer_more_than_brokers() {
        let of = |text: &str, size| a_month(&prices(text), size).to_string();
        assert_eq!(of("cpu_hour = 1", brokers(1)), "1460.000000");
        assert_eq!(of("disk_gib_month = 0.1", brokers(1)), "10.000000");
        let balanced = Size { balanced_listeners: 1, ..brokers(3) };
        assert_eq!(of("loadbalancer_hour = 0.025", balanced), "73.000000");
        // Amounts below a millionth are rounded once.
        assert_eq!(of("memory_gib_hour = 0.000001", Size { memory_mib: 1, ..Size::default() }), "0.000001");
    }

    #[test]
    fn periods_end_with_each_change_and_leave_out_what_is_not_there() {
        let half = Size { controllers: 1, cpu_millis: 500, ..Size::default() };
        let events = [
            SizeEvent { at: at("03T00:00"), object: "pool", size: Size::default() },
            SizeEvent { at: at("01T00:00"), object: "pool", size: brokers(3) },
            SizeEvent { at: at("02T00:00"), object: "controllers", size: half },
            SizeEvent { at: at("02T12:00"), object: "pool", size: brokers(3) },
            SizeEvent { at: at("03T00:00"), object: "controllers", size: Size::default() },
        ];
        let told = |from, to| -> Vec<(String, String, u64)> {
            let short = |at: Timestamp| at.to_string()[8..16].to_owned();
            let periods = periods(&events, at(from), at(to)).into_iter();
            periods.map(|it| (short(it.from), short(it.to), it.size.cpu_millis)).collect()
        };
        let row = |from: &str, to: &str, cpu| (from.to_owned(), to.to_owned(), cpu);
        assert_eq!(
            told("01T06:00", "09T00:00"),
            [row("01T06:00", "02T00:00", 6_000), row("02T00:00", "03T00:00", 6_500)]
        );
        assert_eq!(told("04T00:00", "05T00:00"), []);
        assert_eq!(told("01T00:00", "01T00:00"), []);
    }
}
