//! Times as names of files and for people, in UTC.

use std::time::{Duration, SystemTime};

/// A time of the calendar, in UTC.
struct CalendarTime {
    year: u64,
    month: u64,
    day: u64,
    secs: u64,
}

fn civil(since: Duration) -> CalendarTime {
    let (days, secs) = (since.as_secs() / 86_400, since.as_secs() % 86_400);
    // Years that begin in March end with the leap day (Howard Hinnant's civil_from_days).
    let z = days + 719_468;
    let (era, day_of_era) = (z / 146_097, z % 146_097);
    let year = (day_of_era - day_of_era / 1460 + day_of_era / 36_524 - day_of_era / 146_096) / 365;
    let day_of_year = day_of_era - (365 * year + year / 4 - year / 100);
    let month = (5 * day_of_year + 2) / 153;
    let day = day_of_year - (153 * month + 2) / 5 + 1;
    let month = if month < 10 { month + 3 } else { month - 9 };
    CalendarTime { year: year + era * 400 + u64::from(month <= 2), month, day, secs }
}

/// `2026-11-22T14:00:00Z`.
pub(crate) fn stamp(time: SystemTime) -> String {
    let CalendarTime { year, month, day, secs } =
        civil(time.duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default());
    let (hour, minute, second) = (secs / 3600, secs / 60 % 60, secs % 60);
    format!("{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}Z")
}

/// The same as part of a file's name: `20261122T140000Z`.
pub(crate) fn in_name(stamp: &str) -> String {
    stamp.chars().filter(|c| !matches!(c, '-' | ':')).collect()
}

/// The stamp that [`in_name`] was made of.
pub(crate) fn of_name(name: &str) -> Option<String> {
    let all_digits = |text: &str| text.bytes().all(|b| b.is_ascii_digit());
    let (date, time) = name.strip_suffix('Z')?.split_once('T')?;
    if date.len() != 8 || time.len() != 6 || !all_digits(date) || !all_digits(time) {
        return None;
    }
    let part = |text: &str, from: usize, to: usize| text.get(from..to).unwrap_or_default().to_owned();
    let date = [part(date, 0, 4), part(date, 4, 6), part(date, 6, 8)].join("-");
    let time = [part(time, 0, 2), part(time, 2, 4), part(time, 4, 6)].join(":");
    Some(format!("{date}T{time}Z"))
}

#[cfg(test)]
#[allow(clippy::unwrap_used)]
mod tests {
    use super::*;

    #[test]
    fn a_stamp_survives_being_a_name() {
        let at = |secs| stamp(SystemTime::UNIX_EPOCH + Duration::from_secs(secs));
        for (secs, want) in [
            (0, "1970-01-01T00:00:00Z"),
            (951_782_399, "2000-02-28T23:59:59Z"),
            (951_782_400, "2000-02-29T00:00:00Z"),
            (1_798_761_599, "2026-12-31T23:59:59Z"),
        ] {
            assert_eq!(at(secs), want);
            assert_eq!(of_name(&in_name(want)).unwrap(), want);
        }
        for wrong in ["", "Z", "20261122T14000Z", "2026112éT140000Z", "20261122T140000"] {
            assert_eq!(of_name(wrong), None, "{wrong}");
        }
    }
}
