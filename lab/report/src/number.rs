//! Numbers as people read them: few digits, unit prefixes, and a dash for what is not there.

/// What stands where no number is.
pub const NONE: &str = "\u{2013}";

/// Four digits and a prefix: `442.8 k`, `14.88 M`, `0.512`. Not finite: a dash.
pub fn si(value: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let size = value.abs();
    let (by, prefix) = match size {
        s if s >= 999.95e9 => (1e12, "\u{202f}T"),
        s if s >= 999.95e6 => (1e9, "\u{202f}G"),
        s if s >= 999.95e3 => (1e6, "\u{202f}M"),
        s if s >= 999.95 => (1e3, "\u{202f}k"),
        _ => (1.0, ""),
    };
    format!("{}{prefix}", digits(value / by))
}

/// Four significant digits without a prefix: `0.0123`, `12.5`, `1234`. Not finite: a dash.
pub fn digits(value: f64) -> String {
    if !value.is_finite() {
        return NONE.into();
    }
    let size = value.abs();
    let decimals = match size {
        s if s >= 1000.0 => 0,
        s if s >= 100.0 => 1,
        s if s >= 10.0 => 2,
        s if s >= 1.0 || s == 0.0 => 3,
        s => (3 - s.log10().floor() as i32).clamp(3, 9) as usize,
    };
    let text = format!("{value:.decimals$}");
    if text.contains('.') { text.trim_end_matches('0').trim_end_matches('.').to_owned() } else { text }
}

/// As [`si`], or a dash.
pub fn si_or_none(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), si)
}

/// As [`digits`], or a dash.
pub fn digits_or_none(value: Option<f64>) -> String {
    value.map_or_else(|| NONE.into(), digits)
}

/// With the unit's habits: rates get prefixes, times and shares do not.
pub fn in_unit(value: f64, unit: &str) -> String {
    match unit {
        u if u.starts_with("fps") || u.starts_with("pps") || u.contains("/Wh") || u.contains("bit/s") => {
            si(value)
        }
        "" | "1/s" | "entries" | "frames" | "count" => si(value),
        _ => digits(value),
    }
}

/// Whole seconds since 1970 as `2026-11-23 01:45 UTC` (Howard Hinnant's civil-from-days).
pub fn date_and_time(seconds: f64) -> String {
    let whole = seconds.max(0.0) as u64;
    let (hour, minute) = (whole % 86_400 / 3600, whole % 3600 / 60);
    format!("{} {hour:02}:{minute:02} UTC", date(seconds))
}

/// Whole seconds since 1970 as `2026-11-23`.
pub fn date(seconds: f64) -> String {
    let days = (seconds.max(0.0) as i64) / 86_400 + 719_468;
    let era = days / 146_097;
    let of_era = days % 146_097;
    let year_of_era = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year_of_era + year_of_era / 4 - year_of_era / 100);
    let march = (5 * of_year + 2) / 153;
    let day = of_year - (153 * march + 2) / 5 + 1;
    let month = if march < 10 { march + 3 } else { march - 9 };
    let year = year_of_era + era * 400 + i64::from(month <= 2);
    format!("{year:04}-{month:02}-{day:02}")
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn rates_have_four_digits_and_a_prefix() {
        for (value, text) in [
            (442_782.0, "442.8\u{202f}k"),
            (14_880_952.0, "14.88\u{202f}M"),
            (999_999.0, "1\u{202f}M"),
            (1e10, "10\u{202f}G"),
            (64.0, "64"),
            (0.0, "0"),
            (-2500.0, "-2.5\u{202f}k"),
        ] {
            assert_eq!(si(value), text);
        }
        assert_eq!(si(f64::NAN), NONE);
    }

    #[test]
    fn small_numbers_keep_their_digits() {
        for (value, text) in [(0.012_345, "0.01235"), (12.5, "12.5"), (1234.56, "1235"), (0.1, "0.1")] {
            assert_eq!(digits(value), text);
        }
    }

    #[test]
    fn dates_are_those_of_the_calendar() {
        assert_eq!(date(0.0), "1970-01-01");
        assert_eq!(date(951_782_400.0), "2000-02-29");
        assert_eq!(date_and_time(1_795_398_300.0), "2026-11-23 01:45 UTC");
    }
}
