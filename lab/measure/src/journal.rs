//! Where a campaign tells what happens, and where it has its time from.

use std::io;
use std::sync::OnceLock;
use std::time::{Duration, Instant, SystemTime, UNIX_EPOCH};

use shoal_lab_plan::{Sample, TrialLine};

/// Is told what happens: the results folder and the screen.
pub trait Journal {
    /// A trial ended; also one that is tried again.
    ///
    /// # Errors
    ///
    /// If it cannot be kept (a full disk): the test then ends.
    fn trial(&mut self, line: &TrialLine) -> io::Result<()>;

    /// Ten times a second while something is under way. `false` ends the test as interrupted.
    fn progress(&mut self, now: &Progress<'_>) -> bool {
        let _ = now;
        true
    }

    /// A remark for people.
    fn remark(&mut self, text: &str) {
        let _ = text;
    }
}

/// What is under way.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Progress<'a> {
    /// The test.
    pub test: &'a str,
    /// Its run, from 1.
    pub run: u32,
    /// Runs in all.
    pub runs: u32,
    /// The step of the search, from 1.
    pub step: u32,
    /// Frames a second and direction.
    pub rate: f64,
    /// The bracket of the search.
    pub bracket: Option<(u64, u64)>,
    /// Frames of the trial so far; none while resting.
    pub so_far: Option<&'a Sample>,
}

/// Keeps nothing.
pub struct Unrecorded;

impl Journal for Unrecorded {
    fn trial(&mut self, _line: &TrialLine) -> io::Result<()> {
        Ok(())
    }
}

/// Time, so that tests of tests need none.
pub trait Time {
    /// Seconds since 1970.
    fn now(&self) -> f64;

    /// Time that has passed since some moment, whatever is done to the clock on the wall.
    fn passed(&self) -> Duration;

    /// Waits.
    fn rest(&mut self, length: Duration);
}

/// The time on the wall.
pub struct WallTime;

impl Time for WallTime {
    fn now(&self) -> f64 {
        SystemTime::now().duration_since(UNIX_EPOCH).map_or(0.0, |d| d.as_secs_f64())
    }

    fn passed(&self) -> Duration {
        static BEGIN: OnceLock<Instant> = OnceLock::new();
        BEGIN.get_or_init(Instant::now).elapsed()
    }

    fn rest(&mut self, length: Duration) {
        std::thread::sleep(length);
    }
}
