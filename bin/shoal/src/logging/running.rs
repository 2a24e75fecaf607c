//! What rebuilds the log's levels, where they differ from the start-up file's.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use shoal_module::{Control, Phase, Running, word};

use super::{Class, LogHandle};

pub(super) fn running(control: &Control, running: &mut Running) {
    let Ok(log) = control.get::<LogHandle>() else { return };
    let ((size, _, classes), (first_size, first)) = (log.0.wanted(), log.0.at_start());
    if size != first_size {
        running.line(Phase::System, format!("set logging size {size}"));
    }
    for (name, class) in classes {
        let before = first.get(&name).copied().unwrap_or_default();
        let words = words(class, before);
        if !words.is_empty() {
            running.line(Phase::System, format!("set logging class {}{words}", word(&name)));
        }
    }
}

fn words(now: Class, before: Class) -> String {
    let mut words = String::new();
    for (name, now, before) in
        [("level", now.level, before.level), ("syslog-level", now.syslog, before.syslog)]
    {
        if let Some(level) = now.filter(|_| now != before) {
            let _ = write!(words, " {name} {}", level.name());
        }
    }
    if let Some(limit) = now.limit.filter(|_| now.limit != before.limit) {
        let _ = write!(words, " rate-limit {limit}");
    }
    words
}

#[cfg(test)]
mod tests {
    use super::super::Level;
    use super::*;

    #[test]
    fn only_what_differs_from_the_start_is_said() {
        let before = Class { level: Some(Level::Debug), ..Class::default() };
        let now = Class { syslog: Some(Level::Error), limit: Some(7), ..before };
        assert_eq!(words(now, before), " syslog-level error rate-limit 7");
        assert_eq!(words(now, now), "");
    }
}
