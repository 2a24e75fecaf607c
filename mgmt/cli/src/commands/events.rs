//! `show event-logger`, `event-logger clear`: the last things that happened.

use std::fmt;

use serde::Serialize;
use shoal_graph::event_log::EVENTS;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command =
    Command::new("show event-logger [all] [<count:u32>]", "Show the last events", show)
        .examples(&["show event-logger", "show event-logger 10", "show event-logger all"])
        .doc("250 events unless a number or `all` is given; times are seconds since the router started.");

pub(super) const CLEAR: Command =
    Command::new("event-logger clear", "Forget all events", clear).examples(&["event-logger clear"]);

const SHOWN: usize = 250;

#[derive(Serialize)]
struct Event {
    time: f64,
    thread: usize,
    text: String,
}

#[derive(Serialize)]
struct Log {
    /// Events kept.
    kept: usize,
    /// Events there is room for.
    room: usize,
    events: Vec<Event>,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let all = graph.events().last(EVENTS);
    let count = if args.has("all") { EVENTS } else { args.or("count", SHOWN)? };
    let skip = all.len().saturating_sub(count);
    let event =
        |e: shoal_graph::event_log::Event| Event { time: e.time.seconds(), thread: e.thread, text: e.text };
    let kept = all.len();
    let events = all.into_iter().skip(skip).map(event).collect();
    Ok(Output::view(Log { kept, room: EVENTS, events }))
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.graph()?.events().clear();
    Ok(Output::none())
}

impl fmt::Display for Log {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{} of {} events in buffer, logger running", self.kept, self.room)?;
        self.events.iter().try_for_each(|e| writeln!(f, "{:>18.9}: {}", e.time, e.text))
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn the_last_events_are_shown_oldest_first() {
        let router = Router::new();
        router.run("event-logger clear");
        router.pass(2);
        let graph = router.graph();
        (0..3).for_each(|i| graph.events().write(0, format!("event {i}")));
        assert_eq!(
            router.run("show event-logger 2"),
            "3 of 4096 events in buffer, logger running\n       2.000000000: event 1\n       2.000000000: event 2\n"
        );
        assert_eq!(router.run("show event-logger all").lines().count(), 4);
        router.run("event-logger clear");
        assert_eq!(router.run("show event-logger").lines().count(), 1);
    }
}
