//! The times at which Strimzi may restart a cluster for certificates of its own authorities: the maintenance windows of the
//! cluster's fleet, as cron expressions.

use std::collections::BTreeMap;

use serde_json::{Value, json};

use crate::spec::{Day, MaintenanceWindow};

const DAY: i64 = 24 * 60;

/// Part of one day: its order in the day, and the seconds, minutes and hours of the expression.
type PartOfDay = (i64, String);

/// Strimzi counts in UTC. A zone with summer time gets the hours that are in the window in summer and winter.
pub fn cron(windows: &[MaintenanceWindow]) -> Option<Value> {
    let mut days: BTreeMap<PartOfDay, Vec<Day>> = BTreeMap::new();
    for (day, from, minutes) in windows.iter().flat_map(MaintenanceWindow::in_utc) {
        let mut at = from;
        while at < from + minutes {
            // No part goes beyond its day, and only one of whole hours beyond its hour.
            let (hour, minute) = (at.rem_euclid(DAY) / 60, at.rem_euclid(60));
            let left = (from + minutes - at).min(DAY - at.rem_euclid(DAY));
            let (length, text) = match (minute, left / 60) {
                (0, 1) => (60, format!("* * {hour}")),
                (0, hours @ 2..) => (hours * 60, format!("* * {hour}-{}", hour + hours - 1)),
                _ => {
                    let length = left.min(60 - minute);
                    (length, format!("* {minute}-{} {hour}", minute + length - 1))
                }
            };
            let part = days.entry((at.rem_euclid(DAY), text)).or_default();
            let day = day.after(at.div_euclid(DAY));
            if !part.contains(&day) {
                part.push(day);
            }
            at += length;
        }
    }
    let all: Vec<String> =
        days.into_iter().map(|((_, part), days)| format!("{part} ? * {}", named(&days))).collect();
    (!all.is_empty()).then(|| json!(all))
}

fn named(days: &[Day]) -> String {
    if days.len() == Day::ALL.len() {
        return "*".to_owned();
    }
    let named = Day::ALL.into_iter().filter(|day| days.contains(day)).map(|day| day.word().to_uppercase());
    named.collect::<Vec<_>>().join(",")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn windows_are_told_in_utc() {
        for (windows, expected) in [
            ("[]", Value::Null),
            ("[{from: '02:00', hours: 4}]", json!(["* * 2-5 ? * *"])),
            ("[{from: '00:00', hours: 24}]", json!(["* * 0-23 ? * *"])),
            ("[{days: [sun, sat], from: '23:00', hours: 1}]", json!(["* * 23 ? * SAT,SUN"])),
            // Across midnight, and from within an hour.
            ("[{days: [sun], from: '23:00', hours: 3}]", json!(["* * 0-1 ? * MON", "* * 23 ? * SUN"])),
            ("[{days: [tue], from: '02:30', hours: 1}]", json!(["* 30-59 2 ? * TUE", "* 0-29 3 ? * TUE"])),
            (
                "[{days: [mon], from: '22:15', hours: 4}]",
                json!(["* * 0-1 ? * TUE", "* 0-14 2 ? * TUE", "* 15-59 22 ? * MON", "* * 23 ? * MON"]),
            ),
            // From 01:00 to 05:00 in winter, and from 00:00 to 04:00 in summer.
            ("[{days: [tue], from: '02:00', hours: 4, zone: Europe/Berlin}]", json!(["* * 1-3 ? * TUE"])),
            // From 23:30 to 01:30 in winter, and from 22:30 to 00:30 in summer.
            (
                "[{days: [mon], from: '00:30', hours: 2, zone: Europe/Berlin}]",
                json!(["* 0-29 0 ? * MON", "* 30-59 23 ? * SUN"]),
            ),
            // An hour has none that is in both: that of winter, also in Sydney.
            ("[{days: [tue], from: '02:00', hours: 1, zone: Europe/Berlin}]", json!(["* * 1 ? * TUE"])),
            ("[{days: [tue], from: '12:00', hours: 1, zone: Australia/Sydney}]", json!(["* * 2 ? * TUE"])),
            (
                "[{days: [tue], from: '02:00', hours: 4, zone: Asia/Kolkata}]",
                json!(["* 0-29 0 ? * TUE", "* 30-59 20 ? * MON", "* * 21-23 ? * MON"]),
            ),
            ("[{from: '22:00', hours: 6, zone: America/New_York}]", json!(["* * 3-7 ? * *"])),
            (
                "[{days: [tue], from: '02:00', hours: 4}, {days: [thu], from: '02:00', hours: 4}]",
                json!(["* * 2-5 ? * TUE,THU"]),
            ),
        ] {
            let windows: Vec<MaintenanceWindow> =
                serde_json::from_value(serde_saphyr::from_str(windows).unwrap()).unwrap();
            assert_eq!(cron(&windows).unwrap_or_default(), expected, "{windows:?}");
        }
    }
}
