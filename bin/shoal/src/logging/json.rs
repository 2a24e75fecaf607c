//! Messages as JSON, for programs that collect logs: `logging { format json }`.

use serde_json::json;

use super::{Line, stamp};

/// An object with `time` (RFC 3339, UTC), `level`, `class` and `message`, and the end of the line. A message with line breaks
/// stays one line.
pub(super) fn line(line: &Line) -> String {
    let Line { time, level, class, text } = line;
    let object =
        json!({ "time": rfc3339(&stamp(*time)), "level": level.name(), "class": class, "message": text });
    format!("{object}\n")
}

/// `2026/01/31 23:59:59:123` as `2026-01-31T23:59:59.123Z`.
fn rfc3339(stamp: &str) -> String {
    let (date, time) = stamp.split_once(' ').unwrap_or((stamp, ""));
    let (time, milli) = time.rsplit_once(':').unwrap_or((time, "0"));
    format!("{}T{time}.{milli}Z", date.replace('/', "-"))
}

#[cfg(test)]
mod tests {
    use std::time::{Duration, SystemTime};

    use super::super::Level;
    use super::*;

    #[test]
    fn a_message_is_one_line_whatever_is_in_it() {
        let time = SystemTime::UNIX_EPOCH + Duration::from_millis(1_769_903_999_123);
        let text = "two\nlines, \"quotes\" and \u{1b}[31m".to_owned();
        let written = line(&Line { time, level: Level::Warn, class: "memif".into(), text: text.clone() });
        assert_eq!(written.matches('\n').count(), 1);
        let value: serde_json::Value = serde_json::from_str(&written).unwrap();
        assert_eq!(value["time"], "2026-01-31T23:59:59.123Z");
        assert_eq!(value["level"], "warn");
        assert_eq!(value["class"], "memif");
        assert_eq!(value["message"], text);
        assert!(!written.contains('\u{1b}'), "no escapes for terminals");
    }
}
