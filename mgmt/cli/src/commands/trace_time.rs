//! `set trace timestamp-format`: how times of traces are written.

use std::cell::Cell;
use std::rc::Rc;
use std::time::SystemTime;

use shoal_graph::Clock;
use shoal_graph::clock::Time;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::clock::date;

pub(super) const SET: Command = Command::new(
    "set trace timestamp-format {relative | unix | datetime}",
    "Choose how times of traces are written",
    set,
)
.examples(&["set trace timestamp-format datetime", "set trace timestamp-format relative"])
.doc("`relative` counts from the start of the router, `unix` from 1970, `datetime` is ISO 8601 in UTC.");

/// How times of traces are written.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) enum TraceTime {
    /// `HH:MM:SS:uuuuuu` since the router started.
    #[default]
    Relative,
    /// `ssssssssss.uuuuuu` since 1970.
    Unix,
    /// `YYYY-MM-DDTHH:MM:SS.uuuuuu` in UTC.
    DateTime,
}

#[derive(Default)]
struct Chosen(Cell<TraceTime>);

impl Chosen {
    fn of(control: &Control) -> Rc<Chosen> {
        control.get::<Chosen>().unwrap_or_else(|_| control.put(Chosen::default()))
    }
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    Chosen::of(control).0.set(match () {
        () if args.has("unix") => TraceTime::Unix,
        () if args.has("datetime") => TraceTime::DateTime,
        () => TraceTime::Relative,
    });
    Ok(Output::none())
}

impl TraceTime {
    /// What was chosen.
    pub(crate) fn of(control: &Control) -> Self {
        Chosen::of(control).0.get()
    }

    /// A time as text.
    pub(crate) fn text(self, clock: &Clock, time: Time) -> String {
        let of_day = |seconds: u64| (seconds / 3600, seconds / 60 % 60, seconds % 60);
        let wall = || clock.wall(time).duration_since(SystemTime::UNIX_EPOCH).unwrap_or_default();
        match self {
            TraceTime::Relative => {
                let micros = time.0 / 1_000;
                let (hours, minutes, seconds) = of_day(micros / 1_000_000);
                format!("{hours:02}:{minutes:02}:{seconds:02}:{:06}", micros % 1_000_000)
            }
            TraceTime::Unix => {
                let wall = wall();
                format!("{}.{:06}", wall.as_secs(), wall.subsec_micros())
            }
            TraceTime::DateTime => {
                let wall = wall();
                let (year, month, day) = date(wall.as_secs() / 86_400);
                let (hours, minutes, seconds) = of_day(wall.as_secs() % 86_400);
                let (month, micros) = (month + 1, wall.subsec_micros());
                format!("{year:04}-{month:02}-{day:02}T{hours:02}:{minutes:02}:{seconds:02}.{micros:06}")
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;

    #[test]
    fn times_are_written_as_chosen() {
        let router = Router::new();
        router.pass(86_400 * 59 + 3725);
        router.run("trace add test-input 1");
        router.packets(1);
        let has =
            |text: &str| assert!(router.run("show trace").contains(text), "{}", router.run("show trace"));
        has("\n1417:02:05:000000: test-input\n");
        router.run("set trace timestamp-format unix");
        has("\n5101325.000000: test-input\n");
        router.run("set trace timestamp-format datetime");
        has("\n1970-03-01T01:02:05.000000: test-input\n");
        router.run("set trace timestamp-format relative");
        has("\n1417:02:05:000000: test-input\n");
    }
}
