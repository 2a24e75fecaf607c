//! `show clock`, `set clock adjust`, `wait`.

use std::fmt;
use std::rc::Rc;
use std::time::{Duration, SystemTime};

use futures_lite::future;
use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Later, Output, Sink};

pub(super) const SHOW: Command = Command::new("show clock [verbose]", "Show the time", show)
    .examples(&["show clock", "show clock verbose"])
    .doc(
        "Seconds since the router started, then the wall clock. All threads read the same clock and nothing ever \
         stops them, so what VPP prints of offsets and barriers is zero.",
    );

pub(super) const ADJUST: Command =
    Command::new("set clock adjust <seconds:f64>", "Move the router's clock forward", adjust)
        .examples(&["set clock adjust 0.5"])
        .doc("For tests: whatever was to happen in that time happens at once.");

pub(super) const WAIT: Command =
    Command::later("wait <seconds:f64>", "Wait, in files of commands", wait).examples(&["wait 0.5"]);

/// Longest time that may be waited or skipped: what a day and a half of tests do not need.
const MOST: f64 = 1e8;

fn seconds(args: &Args) -> Result<Duration, CliError> {
    let seconds: f64 = args.get("seconds")?;
    if !(0.0..=MOST).contains(&seconds) {
        let nearest = if seconds < 0.0 { 0.0 } else { MOST };
        let message = format!("bad <seconds> `{seconds}', expected 0 to {MOST}: time does not go back");
        return Err(CliError::argument("seconds", message).nearest(Some(nearest.to_string())));
    }
    Ok(Duration::from_secs_f64(seconds))
}

fn adjust(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.graph()?.clock().advance(seconds(args)?);
    Ok(Output::none())
}

fn wait(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let time = seconds(&args)?;
        let sleep = control.processes()?.sleep(time);
        future::or(sleep, sink.gone()).await;
        Ok(Output::text(format!("waited {:.3} sec.\n", time.as_secs_f64())))
    })
}

#[derive(Serialize)]
struct Now {
    seconds: f64,
    date: String,
    #[serde(skip)]
    threads: Vec<usize>,
    #[serde(skip)]
    verbose: bool,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let now = graph.clock().now();
    let threads = graph.threads().iter().map(|t| t.index).collect();
    let date = utc(graph.clock().wall(now));
    Ok(Output::view(Now { seconds: now.seconds(), date, threads, verbose: args.has("verbose") }))
}

impl fmt::Display for Now {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Time now {:.6}, {}", self.seconds, self.date)?;
        if !self.verbose {
            return Ok(());
        }
        writeln!(f, "Time last barrier release {:.9}", 0.0)?;
        self.threads.iter().try_for_each(|thread| {
            writeln!(f, "{thread}: Time now {:.9}", self.seconds)?;
            writeln!(f, "Thread {thread} offset {:.9} error {:.9}", 0.0, 0.0)
        })
    }
}

/// `Thu, 1 Jan 1970 00:00:00 GMT`. Times before 1970 are shown as its first second.
pub(super) fn utc(time: SystemTime) -> String {
    const DAYS: [&str; 7] = ["Thu", "Fri", "Sat", "Sun", "Mon", "Tue", "Wed"];
    const MONTHS: [&str; 12] =
        ["Jan", "Feb", "Mar", "Apr", "May", "Jun", "Jul", "Aug", "Sep", "Oct", "Nov", "Dec"];
    let seconds = time.duration_since(SystemTime::UNIX_EPOCH).map_or(0, |d| d.as_secs());
    let (days, second) = (seconds / 86_400, seconds % 86_400);
    let (year, month, day) = date(days);
    let name = |list: &'static [&'static str], at: u64| list.get(at as usize).copied().unwrap_or("");
    format!(
        "{}, {day} {} {year} {:02}:{:02}:{:02} GMT",
        name(&DAYS, days % 7),
        name(&MONTHS, month),
        second / 3600,
        second / 60 % 60,
        second % 60
    )
}

/// Year, month from 0 and day from 1 of a day since 1970.
pub(super) fn date(mut days: u64) -> (u64, u64, u64) {
    let leap = |year: u64| year.is_multiple_of(4) && (!year.is_multiple_of(100) || year.is_multiple_of(400));
    let mut year = 1970;
    // A few hundred turns at most: the clock ends in 2554.
    while days >= 365 + u64::from(leap(year)) {
        days -= 365 + u64::from(leap(year));
        year += 1;
    }
    let february = 28 + u64::from(leap(year));
    let mut month = 0;
    for length in [31, february, 31, 30, 31, 30, 31, 31, 30, 31, 30, 31] {
        if days < length {
            break;
        }
        days -= length;
        month += 1;
    }
    (year, month, days + 1)
}

#[cfg(test)]
mod tests {
    use std::cell::Cell;

    use super::super::testing::Router;
    use super::*;

    #[test]
    fn dates_are_right_around_leap_days() {
        let at = |s| utc(SystemTime::UNIX_EPOCH + Duration::from_secs(s));
        assert_eq!(at(0), "Thu, 1 Jan 1970 00:00:00 GMT");
        assert_eq!(at(951_782_400), "Tue, 29 Feb 2000 00:00:00 GMT");
        assert_eq!(at(1_767_225_599), "Wed, 31 Dec 2025 23:59:59 GMT");
        assert_eq!(at(4_107_542_400), "Mon, 1 Mar 2100 00:00:00 GMT");
    }

    #[test]
    fn the_clock_shows_what_it_was_adjusted_to() {
        let router = Router::new();
        router.run("set clock adjust 12.345678");
        assert_eq!(router.run("show clock"), "Time now 12.345678, Thu, 1 Jan 1970 00:00:12 GMT\n");
        assert!(
            router.run("show clock verbose").ends_with("Thread 0 offset 0.000000000 error 0.000000000\n")
        );
        assert!(router.refused("set clock adjust -1").contains("time does not go back"));
        assert!(router.refused("set clock adjust 1e300").contains("expected 0 to"));
    }

    #[test]
    fn waiting_takes_the_clocks_time() {
        let router = Rc::new(Router::new());
        let done = Rc::new(Cell::new(false));
        let (r, d) = (Rc::clone(&router), Rc::clone(&done));
        router.control.processes().unwrap().spawn_unlisted(async move {
            assert!(r.cli.execute(&r.control, "wait 2.5").await.is_ok());
            d.set(true);
        });
        router.pass(0);
        router.pass(2);
        assert!(!done.get());
        router.pass(1);
        assert!(done.get());
    }
}
