//! The times at which a cluster may be disrupted by something that nobody asks for at that moment.

use std::fmt;

use jiff::civil::{Date, Time, Weekday, date};
use jiff::tz::TimeZone;
use jiff::{Span, Timestamp};
use schemars::JsonSchema;
use serde::{Deserialize, Serialize};

use crate::problem::quote_untrusted;

/// A time of the week at which such disruptions may begin.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
pub struct MaintenanceWindow {
    /// The days on which it begins. By default every day.
    #[serde(default = "every_day")]
    #[schemars(length(min = 1, max = 7))]
    pub days: Vec<Day>,
    /// The time at which it begins: `02:00`.
    #[schemars(regex(pattern = r"^([01][0-9]|2[0-3]):[0-5][0-9]$"), extend("x-expected" = "a time of the day, such as 02:00"), example = &"02:00")]
    pub from: String,
    /// How many hours it lasts.
    #[schemars(range(min = 1, max = 24))]
    pub hours: u32,
    /// The time zone of `from`, by its name in the IANA database. By default `UTC`.
    #[serde(default = "utc")]
    #[schemars(length(max = 64), example = &"Europe/Berlin")]
    pub zone: String,
}

/// A day of the week.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize, Deserialize, JsonSchema)]
#[serde(rename_all = "lowercase")]
pub enum Day {
    /// Monday.
    Mon,
    /// Tuesday.
    Tue,
    /// Wednesday.
    Wed,
    /// Thursday.
    Thu,
    /// Friday.
    Fri,
    /// Saturday.
    Sat,
    /// Sunday.
    Sun,
}

fn every_day() -> Vec<Day> {
    Day::ALL.to_vec()
}

fn utc() -> String {
    "UTC".to_owned()
}

impl Day {
    pub const ALL: [Day; 7] = [Day::Mon, Day::Tue, Day::Wed, Day::Thu, Day::Fri, Day::Sat, Day::Sun];

    /// The day that is so many days later, or earlier.
    pub fn after(self, days: i64) -> Day {
        let place = (self as i64 + days).rem_euclid(7);
        Day::ALL.into_iter().find(|day| *day as i64 == place).unwrap_or(self)
    }

    fn of(date: Date) -> Day {
        match date.weekday() {
            Weekday::Monday => Day::Mon,
            Weekday::Tuesday => Day::Tue,
            Weekday::Wednesday => Day::Wed,
            Weekday::Thursday => Day::Thu,
            Weekday::Friday => Day::Fri,
            Weekday::Saturday => Day::Sat,
            Weekday::Sunday => Day::Sun,
        }
    }

    pub fn word(self) -> &'static str {
        match self {
            Day::Mon => "Mon",
            Day::Tue => "Tue",
            Day::Wed => "Wed",
            Day::Thu => "Thu",
            Day::Fri => "Fri",
            Day::Sat => "Sat",
            Day::Sun => "Sun",
        }
    }
}

impl MaintenanceWindow {
    /// Returns the next time at which one of the windows opens; `None` if one is open, or if there are none.
    pub fn next(windows: &[MaintenanceWindow], now: Timestamp) -> Option<Timestamp> {
        let times: Vec<(Timestamp, Timestamp)> =
            windows.iter().flat_map(|window| window.times(now)).collect();
        let is_open = times.iter().any(|(from, until)| *from <= now && now < *until);
        times.into_iter().map(|(from, _)| from).filter(|from| *from > now && !is_open).min()
    }

    /// When it opens and closes, from two days ago, since a window of 24 h may be open on a third date when clocks are set
    /// ahead, to the same day of the next week.
    fn times(&self, now: Timestamp) -> impl Iterator<Item = (Timestamp, Timestamp)> {
        let zone = self.time_zone().unwrap_or(TimeZone::UTC);
        let today = now.to_zoned(zone.clone()).date();
        let days = (-2..=7).filter_map(move |days| today.checked_add(Span::new().days(days)).ok());
        days.filter(|day| self.days.contains(&Day::of(*day))).filter_map(move |day| {
            // A time that the clocks skip is as much later.
            let from = day.to_datetime(self.time()?).to_zoned(zone.clone()).ok()?.timestamp();
            Some((from, from.checked_add(Span::new().hours(self.hours)).ok()?))
        })
    }

    /// Returns its days, each with the minute at which it opens, counted in UTC from the begin of that day in UTC, and
    /// how many minutes it lasts. With summer time, these are the minutes that it is open all year.
    pub fn in_utc(&self) -> impl Iterator<Item = (Day, i64, i64)> {
        let opens = self.time().map(|at| i64::from(at.hour()) * 60 + i64::from(at.minute()));
        let minutes = i64::from(self.hours) * 60;
        let zone = self.time_zone().unwrap_or(TimeZone::UTC);
        // Summer time and the like, as they are in a year that stands for all.
        let offset = |month: i8, day: i8| {
            let at =
                date(2026, month, day).to_zoned(zone.clone()).map(|at| i64::from(at.offset().seconds()) / 60);
            at.unwrap_or_default()
        };
        let offsets = (1..=12).flat_map(|month| [offset(month, 1), offset(month, 15)]);
        let (least, most) =
            offsets.fold((i64::MAX, i64::MIN), |(least, most), it| (least.min(it), most.max(it)));
        let minutes = if minutes > most - least { minutes - (most - least) } else { minutes };
        let days = self.days.iter().copied();
        days.filter_map(move |day| Some((day, opens? - least, minutes)))
    }

    fn time(&self) -> Option<Time> {
        let (hours, minutes) = self.from.split_once(':').filter(|_| self.from.len() == 5)?;
        Time::new(hours.parse().ok()?, minutes.parse().ok()?, 0, 0).ok()
    }

    /// The zone, by its exact name: `europe/berlin` is none.
    fn time_zone(&self) -> Option<TimeZone> {
        let zone = TimeZone::get(&self.zone).ok()?;
        (zone.iana_name() == Some(self.zone.as_str()) && !zone.is_unknown()).then_some(zone)
    }

    /// Returns what is wrong with it: the field, the reason, and what to do.
    pub fn fault(&self) -> Option<(&'static str, String, String)> {
        if self.days.is_empty() {
            let hint = "name a day, or leave `days` out for every day";
            return Some(("days", "it has no days".to_owned(), hint.to_owned()));
        }
        if self.time().is_none() {
            let why = format!("`{}` is no time of the day", quote_untrusted(&self.from));
            return Some(("from", why, "write it like `02:00`".to_owned()));
        }
        if !(1..=24).contains(&self.hours) {
            let why = format!("{} is not from 1 to 24", self.hours);
            return Some(("hours", why, "write how many hours it lasts".to_owned()));
        }
        if self.time_zone().is_none() {
            let why = format!("`{}` is no time zone", quote_untrusted(&self.zone));
            let in_another_case = TimeZone::get(&self.zone).ok();
            let meant = in_another_case.as_ref().and_then(TimeZone::iana_name);
            let hint = meant.map_or_else(
                || "write a name of the IANA database, such as `Europe/Berlin` or `UTC`".to_owned(),
                |meant| format!("write `{meant}`"),
            );
            return Some(("zone", why, hint));
        }
        None
    }
}

/// `Tue, Thu 02:00 for 4 h, Europe/Berlin`
impl fmt::Display for MaintenanceWindow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let days: Vec<&str> =
            Day::ALL.into_iter().filter(|day| self.days.contains(day)).map(Day::word).collect();
        let days = if days.len() == 7 { "daily".to_owned() } else { days.join(", ") };
        write!(f, "{days} {} for {} h, {}", self.from, self.hours, self.zone)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn window(text: &str) -> MaintenanceWindow {
        serde_json::from_value(serde_saphyr::from_str(text).unwrap()).unwrap()
    }

    fn next(windows: &[&str], now: &str) -> Option<String> {
        let windows: Vec<MaintenanceWindow> = windows.iter().map(|text| window(text)).collect();
        MaintenanceWindow::next(&windows, now.parse().unwrap()).map(|at| at.to_string())
    }

    #[test]
    fn a_window_opens_on_its_days_in_its_zone() {
        const BERLIN: &str = "{days: [tue, thu], from: '02:00', hours: 4, zone: Europe/Berlin}";
        const NIGHTLY: &str = "{from: '23:30', hours: 2}";
        for (windows, now, expected) in [
            (&[BERLIN][..], "2026-11-27T07:00:00Z", Some("2026-12-01T01:00:00Z")),
            (&[BERLIN], "2026-12-01T00:59:59Z", Some("2026-12-01T01:00:00Z")),
            (&[BERLIN], "2026-12-01T01:00:00Z", None),
            (&[BERLIN], "2026-12-01T04:59:59Z", None),
            (&[BERLIN], "2026-12-01T05:00:00Z", Some("2026-12-03T01:00:00Z")),
            // Across midnight, and in summer.
            (&[NIGHTLY], "2026-07-01T01:00:00Z", None),
            (&[NIGHTLY], "2026-07-01T01:30:00Z", Some("2026-07-01T23:30:00Z")),
            (&[BERLIN], "2026-06-30T00:30:00Z", None),
            // The clocks skip that hour, on a Sunday in March.
            (
                &["{days: [sun], from: '02:30', hours: 1, zone: Europe/Berlin}"],
                "2026-03-28T12:00:00Z",
                Some("2026-03-29T01:30:00Z"),
            ),
            // Of several, the first.
            (&[BERLIN, NIGHTLY], "2026-11-27T07:00:00Z", Some("2026-11-27T23:30:00Z")),
            (&[BERLIN, NIGHTLY], "2026-11-28T00:00:00Z", None),
            (&["{from: '00:00', hours: 24}"], "2026-11-28T00:00:00Z", None),
            (&[], "2026-11-28T00:00:00Z", None),
            // Sunday has 23 hours, so it is open on Monday, too.
            (&["{days: [sat], from: '23:30', hours: 24, zone: Europe/Berlin}"], "2026-03-29T22:10:00Z", None),
        ] {
            assert_eq!(next(windows, now).as_deref(), expected, "{windows:?} {now}");
        }
        assert_eq!(window(BERLIN).to_string(), "Tue, Thu 02:00 for 4 h, Europe/Berlin");
        assert_eq!(window(NIGHTLY).to_string(), "daily 23:30 for 2 h, UTC");
    }

    #[test]
    fn what_is_no_window_is_told() {
        for (text, field, why) in [
            ("{days: [], from: '02:00', hours: 4}", "days", "it has no days"),
            ("{from: '2:00', hours: 4}", "from", "`2:00` is no time of the day"),
            ("{from: '24:00', hours: 4}", "from", "`24:00` is no time of the day"),
            ("{from: '02:00', hours: 25}", "hours", "25 is not from 1 to 24"),
            ("{from: '02:00', hours: 4, zone: europe/berlin}", "zone", "`europe/berlin` is no time zone"),
            ("{from: '02:00', hours: 4, zone: Etc/Unknown}", "zone", "`Etc/Unknown` is no time zone"),
            ("{from: '02:00', hours: 4, zone: CEST}", "zone", "`CEST` is no time zone"),
        ] {
            let (at, told, _) = window(text).fault().unwrap();
            assert_eq!((at, told.as_str()), (field, why));
        }
        assert_eq!(window("{from: '02:00', hours: 4, zone: Europe/Berlin}").fault(), None);
    }
}
