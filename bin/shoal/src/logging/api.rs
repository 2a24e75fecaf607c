//! `log_dump`: the messages of the log.

use std::time::UNIX_EPOCH;

use shoal_message::{Message, Text, Timestamp, Value};
use shoal_module::api::{ApiMessage, ApiPart, Call, Dump, Folder};

use super::{Level, Line, LogHandle};

/// Messages that VPP has in `vpe.api`.
pub static API: ApiPart = ApiPart {
    file: "vpe",
    folder: Folder::Core,
    version: "1.7.0",
    messages: &[ApiMessage::dump::<LogDump>(), ApiMessage::sent::<LogDetails>()],
};

/// How grave a message is.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LogLevel {
    /// Nothing works.
    #[entry("VPE_API_LOG_LEVEL_EMERG")]
    Emerg = 0,
    /// Somebody must do something now.
    #[entry("VPE_API_LOG_LEVEL_ALERT")]
    Alert = 1,
    /// A part does not work.
    #[entry("VPE_API_LOG_LEVEL_CRIT")]
    Crit = 2,
    /// Something failed.
    #[entry("VPE_API_LOG_LEVEL_ERR")]
    Err = 3,
    /// Something is not as it should be.
    #[entry("VPE_API_LOG_LEVEL_WARNING")]
    Warning = 4,
    /// Worth knowing.
    #[entry("VPE_API_LOG_LEVEL_NOTICE")]
    Notice = 5,
    /// May be worth knowing.
    #[entry("VPE_API_LOG_LEVEL_INFO")]
    Info = 6,
    /// For those who look for something.
    #[entry("VPE_API_LOG_LEVEL_DEBUG")]
    Debug = 7,
    /// None.
    #[entry("VPE_API_LOG_LEVEL_DISABLED")]
    Disabled = 8,
}

impl From<Level> for LogLevel {
    fn from(level: Level) -> Self {
        match level {
            Level::Disabled => LogLevel::Disabled,
            Level::Error => LogLevel::Err,
            Level::Warn => LogLevel::Warning,
            Level::Notice => LogLevel::Notice,
            Level::Debug => LogLevel::Debug,
        }
    }
}

/// Asks for the messages of the log that are not older than a time.
#[derive(Message)]
#[message(request, details = LogDetails)]
pub struct LogDump {
    /// Seconds since 1970 began; 0 for all.
    start_timestamp: Timestamp,
}

/// A message of the log.
#[derive(Message)]
#[message(reply)]
pub struct LogDetails {
    /// Seconds since 1970 began.
    timestamp: Timestamp,
    level: LogLevel,
    /// The part of the router that says it.
    msg_class: Text<32>,
    message: Text<256>,
}

impl From<Line> for LogDetails {
    fn from(line: Line) -> Self {
        let since = line.time.duration_since(UNIX_EPOCH).unwrap_or_default();
        LogDetails {
            timestamp: Timestamp(since.as_secs_f64()),
            level: line.level.into(),
            msg_class: line.class.as_str().into(),
            message: line.text.as_str().into(),
        }
    }
}

impl Dump for LogDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = LogDetails> + 'static {
        let (log, mut next) = (call.get::<LogHandle>().ok(), 0);
        let all = std::iter::from_fn(move || {
            let (line, after) = log.as_ref()?.0.line_from(next)?;
            next = after;
            Some(LogDetails::from(line))
        });
        let from = self.start_timestamp.0;
        all.filter(move |details| details.timestamp.0 >= from)
    }
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;
    use std::sync::Arc;

    use shoal_config::Logging;
    use shoal_module::Control;

    use super::*;
    use crate::logging::Log;

    #[test]
    fn declared_messages_are_those_of_vpp() {
        shoal_testkit::api::same_as_vpp(&[&API]);
    }

    #[test]
    fn messages_are_told_from_a_time_on_while_others_come_and_go() {
        let logging = Logging {
            size: 3,
            level: "notice".into(),
            syslog_level: "warn".into(),
            unthrottle: std::time::Duration::from_secs(5),
            json: false,
            classes: std::collections::BTreeMap::new(),
        };
        let log = Arc::new(Log::new(&logging, false, false));
        let control = Rc::new(Control::new());
        control.put(LogHandle(Arc::clone(&log)));
        let call = Call::local(&control);
        let dump = |from| LogDump { start_timestamp: Timestamp(from) }.dump(&call);
        assert_eq!(dump(0.0).count(), 0);
        (1..=3).for_each(|n| log.write(Level::Warn, "test", format!("message {n}")));
        let mut all = dump(0.0);
        let first = all.next().unwrap();
        assert_eq!((first.message.as_str(), first.msg_class.as_str()), ("message 1", "test"));
        assert_eq!(first.level, LogLevel::Warning);
        // Two come, and two go.
        (4..=5).for_each(|n| log.write(Level::Error, "test", format!("message {n}")));
        let rest: Vec<_> = all.map(|d| d.message.as_str().to_owned()).collect();
        assert_eq!(rest, ["message 3", "message 4", "message 5"]);
        assert_eq!(dump(first.timestamp.0 + 1e6).count(), 0);
        assert_eq!(dump(f64::NAN).count(), 0);
        log.clear();
        assert_eq!(dump(0.0).count(), 0);
    }
}
