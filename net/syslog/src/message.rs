//! What a message says, and its bytes (RFC 5424, 6).

use std::fmt::{self, Display, Write};
use std::net::Ipv4Addr;
use std::time::{Duration, SystemTime};

/// Longest APP-NAME, MSGID, SD-ID and PARAM-NAME.
const APP_NAME: usize = 48;
const MSG_ID: usize = 32;
pub(crate) const SD_NAME: usize = 32;

macro_rules! words {
    ($(#[$doc:meta])* $name:ident { $($(#[$entry_doc:meta])* $entry:ident = $number:literal $word:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
        pub enum $name { $($(#[$entry_doc])* $entry = $number,)* }

        impl $name {
            /// All of them.
            pub const ALL: &[$name] = &[$($name::$entry),*];

            /// The word that commands have for it.
            pub const fn word(self) -> &'static str {
                match self { $($name::$entry => $word,)* }
            }

            /// The one with a number.
            pub fn of(number: u32) -> Option<Self> {
                Self::ALL.iter().copied().find(|one| *one as u32 == number)
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.pad(self.word())
            }
        }
    };
}

words! {
    /// What part of a system a message is from.
    Facility {
        /// The kernel.
        Kernel = 0 "kernel",
        /// A user's program.
        User = 1 "user-level",
        /// Mail.
        Mail = 2 "mail-system",
        /// Daemons.
        Daemons = 3 "system-daemons",
        /// Security.
        Security = 4 "security-authorization",
        /// Syslog itself.
        Syslogd = 5 "syslogd",
        /// Printers.
        Printer = 6 "line-printer",
        /// News.
        News = 7 "network-news",
        /// UUCP.
        Uucp = 8 "uucp",
        /// The clock.
        Clock = 9 "clock-daemon",
        /// FTP.
        Ftp = 11 "ftp-daemon",
        /// NTP.
        Ntp = 12 "ntp-subsystem",
        /// Audits.
        Audit = 13 "log-audit",
        /// Alerts.
        Alert = 14 "log-alert",
        /// For local use.
        Local0 = 16 "local0",
        /// For local use.
        Local1 = 17 "local1",
        /// For local use.
        Local2 = 18 "local2",
        /// For local use.
        Local3 = 19 "local3",
        /// For local use.
        Local4 = 20 "local4",
        /// For local use.
        Local5 = 21 "local5",
        /// For local use.
        Local6 = 22 "local6",
        /// For local use.
        Local7 = 23 "local7",
    }
}

words! {
    /// How bad it is: the lower, the worse.
    Severity {
        /// The system is unusable.
        Emergency = 0 "emergency",
        /// Something must be done at once.
        Alert = 1 "alert",
        /// Critical.
        Critical = 2 "critical",
        /// An error.
        Error = 3 "error",
        /// A warning.
        Warning = 4 "warning",
        /// Normal, but of note.
        Notice = 5 "notice",
        /// To know.
        Informational = 6 "informational",
        /// For developers.
        Debug = 7 "debug",
    }
}

/// Whether a word can stand in a message's header, or be a name in its structured data: printable ASCII, not too long.
pub fn is_name(word: &str, most: usize) -> bool {
    let printable = word.bytes().all(|byte| byte.is_ascii_graphic() && !matches!(byte, b'=' | b']' | b'"'));
    printable && !word.is_empty() && word.len() <= most
}

/// A word for the header or a name, whatever it was made of.
fn put_name(to: &mut String, word: &str, most: usize) {
    if word.is_empty() {
        to.push('-');
    }
    let plain = |c: char| if c.is_ascii_graphic() && !matches!(c, '=' | ']' | '"') { c } else { '_' };
    to.extend(word.chars().take(most).map(plain));
}

/// Writes a parameter's value: `"`, `\` and `]` have a backslash before them (RFC 5424, 6.3.3).
struct Escaped<'a>(&'a mut String);

impl Write for Escaped<'_> {
    fn write_str(&mut self, text: &str) -> fmt::Result {
        for c in text.chars() {
            if matches!(c, '"' | '\\' | ']') {
                self.0.push('\\');
            }
            self.0.push(c);
        }
        Ok(())
    }
}

/// A message.
#[derive(Clone, Debug)]
pub struct Message {
    facility: Facility,
    severity: Severity,
    app_name: String,
    msg_id: String,
    /// Structured data without the last element's end.
    data: String,
    text: String,
}

impl Message {
    /// Without structured data and text. A character that a name cannot have becomes `_`, and what is too long is cut.
    pub fn new(facility: Facility, severity: Severity, app_name: &str, msg_id: &str) -> Self {
        let (mut app, mut id) = (String::new(), String::new());
        put_name(&mut app, app_name, APP_NAME);
        put_name(&mut id, msg_id, MSG_ID);
        Message { facility, severity, app_name: app, msg_id: id, data: String::new(), text: String::new() }
    }

    /// How bad it is.
    pub fn severity(&self) -> Severity {
        self.severity
    }

    /// Begins an element of structured data.
    #[must_use]
    pub fn element(mut self, id: &str) -> Self {
        self.end_element();
        self.data.push('[');
        put_name(&mut self.data, id, SD_NAME);
        self
    }

    /// Adds a parameter to the element that was begun last.
    #[must_use]
    pub fn param(mut self, name: &str, value: impl Display) -> Self {
        self.data.push(' ');
        put_name(&mut self.data, name, SD_NAME);
        self.data.push_str("=\"");
        // A string takes all.
        let _ = write!(Escaped(&mut self.data), "{value}");
        self.data.push('"');
        self
    }

    /// The text behind the structured data.
    #[must_use]
    pub fn text(mut self, text: impl Into<String>) -> Self {
        self.text = text.into();
        self
    }

    fn end_element(&mut self) {
        if !self.data.is_empty() {
            self.data.push(']');
        }
    }

    /// The message from a host at a time, in at most so many bytes. Text is cut at its end (RFC 5424, 6.1); `None` if not even
    /// the rest fits, because half an element of structured data could not be read.
    pub fn bytes(mut self, host: Ipv4Addr, process: u32, at: SystemTime, most: usize) -> Option<String> {
        self.end_element();
        let Message { facility, severity, app_name, msg_id, mut data, text } = self;
        let priority = facility as u32 * 8 + severity as u32;
        if data.is_empty() {
            data.push('-');
        }
        let mut line = format!("<{priority}>1 {} {host} {app_name} {process} {msg_id} {data}", Timestamp(at));
        if line.len() > most {
            return None;
        }
        let room = most - line.len();
        if !text.is_empty() && room > 1 {
            line.push(' ');
            line.push_str(text.get(..text.floor_char_boundary(room - 1)).unwrap_or_default());
        }
        Some(line)
    }
}

/// A moment as RFC 3339 has it, in UTC, with microseconds.
struct Timestamp(SystemTime);

impl Display for Timestamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let since = self.0.duration_since(SystemTime::UNIX_EPOCH).unwrap_or(Duration::ZERO);
        let (seconds, micros) = (since.as_secs(), since.subsec_micros());
        let (year, month, day) = date(seconds / 86_400);
        let (hour, minute, second) = (seconds / 3600 % 24, seconds / 60 % 60, seconds % 60);
        write!(f, "{year:04}-{month:02}-{day:02}T{hour:02}:{minute:02}:{second:02}.{micros:06}Z")
    }
}

/// Year, month and day of a day since 1970-01-01, counted in eras of 400 years that begin in March.
const fn date(days: u64) -> (u64, u64, u64) {
    let days = days + 719_468;
    let (era, of_era) = (days / 146_097, days % 146_097);
    let year = (of_era - of_era / 1460 + of_era / 36_524 - of_era / 146_096) / 365;
    let of_year = of_era - (365 * year + year / 4 - year / 100);
    let march = (5 * of_year + 2) / 153;
    let (day, month) = (of_year - (153 * march + 2) / 5 + 1, if march < 10 { march + 3 } else { march - 9 });
    (year + era * 400 + if month <= 2 { 1 } else { 0 }, month, day)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used)]
    use super::*;

    const HOST: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);

    fn at(seconds: u64, micros: u64) -> SystemTime {
        SystemTime::UNIX_EPOCH + Duration::from_secs(seconds) + Duration::from_micros(micros)
    }

    #[test]
    fn a_message_has_these_bytes() {
        let message = Message::new(Facility::Local4, Severity::Notice, "app", "ID47")
            .element("exampleSDID@32473")
            .param("iut", 3)
            .param("quoted", r#"a"b]c\d"#)
            .element("second")
            .text("häuser");
        let line = message.bytes(HOST, 77, at(1_767_323_045, 6), 480).unwrap();
        let want = "<165>1 2026-01-02T03:04:05.000006Z 192.0.2.1 app 77 ID47 \
                    [exampleSDID@32473 iut=\"3\" quoted=\"a\\\"b\\]c\\\\d\"][second] häuser";
        assert_eq!(line, want);
        let plain =
            Message::new(Facility::Kernel, Severity::Emergency, "a b", "").bytes(HOST, 1, at(0, 0), 480);
        assert_eq!(plain.unwrap(), "<0>1 1970-01-01T00:00:00.000000Z 192.0.2.1 a_b 1 - -");
    }

    #[test]
    fn text_is_cut_between_characters_and_half_an_element_is_never_sent() {
        let make = || {
            Message::new(Facility::Local0, Severity::Debug, "a", "b").element("e").param("p", "v").text("xäy")
        };
        let whole = make().bytes(HOST, 1, at(0, 0), 480).unwrap();
        let rest = whole.len() - "xäy".len();
        for most in 0..=whole.len() {
            match make().bytes(HOST, 1, at(0, 0), most) {
                None => assert!(most < rest - 1),
                Some(line) => {
                    assert!(line.len() <= most && most >= rest - 1 && whole.starts_with(line.trim_end()));
                }
            }
        }
        assert!(make().bytes(HOST, 1, at(0, 0), rest + 2).unwrap().ends_with(" x"));
    }

    #[test]
    fn days_are_those_of_the_calendar() {
        for (days, want) in [
            (0, (1970, 1, 1)),
            (59, (1970, 3, 1)),
            (11_016, (2000, 2, 29)),
            (11_017, (2000, 3, 1)),
            (19_782, (2024, 2, 29)),
            (20_819, (2027, 1, 1)),
            (47_540, (2100, 2, 28)),
            (47_541, (2100, 3, 1)),
        ] {
            assert_eq!(date(days), want, "{days}");
        }
    }

    #[test]
    fn names_have_no_blanks_quotes_brackets_or_equal_signs() {
        assert!(is_name("exampleSDID@32473", 32));
        for bad in ["", "a b", "a=b", "a]", "\"", "ä", &"x".repeat(33)] {
            assert!(!is_name(bad, 32), "{bad}");
        }
    }
}
