//! What is seen while measuring: a full screen on a terminal, plain lines where the output goes elsewhere, JSON for programs.

mod lines;
mod screen;

use std::io::IsTerminal as _;
use std::time::{Duration, Instant};

use shoal_lab_measure::{Estimate, spoken};
use shoal_lab_plan::{Outcome, Sample, Side, TrialLine, Verdict};

use crate::interrupt::Interrupt;
use lines::Lines;
use screen::Screen;

/// What is seen while measuring.
pub struct View {
    shown: Shown,
    interrupt: Interrupt,
    state: State,
}

enum Shown {
    Lines(Lines),
    Screen(Screen),
    Json,
}

/// What there is to show.
#[derive(Debug)]
struct State {
    /// `throughput`.
    test: String,
    /// `shoal, ip4 64 B bi`.
    case: String,
    /// Which case of how many.
    cases: (usize, usize),
    began: Instant,
    /// How long everything will take, if nothing has to be tried again.
    estimate: Duration,
    /// How long it takes at most.
    promise: Duration,
    /// The last trials, the newest first.
    trials: Vec<TrialRow>,
    /// Highest rate that passed in this case.
    best: Option<f64>,
    /// Frames a second received, each tenth of a second of this trial.
    received: Vec<u64>,
    last: Sample,
    notes: Vec<String>,
}

/// A trial as a line of a table.
#[derive(Clone, Debug)]
struct TrialRow {
    run: u32,
    step: u32,
    rate: f64,
    sent: u64,
    lost: u64,
    verdict: String,
    passed: bool,
    bracket: Option<(u64, u64)>,
    stalls: u64,
}

/// Trials that are kept to be shown.
const KEPT: usize = 64;

impl View {
    /// The best there is for this output.
    pub fn new(plain: bool, json: bool, interrupt: Interrupt, estimate: Estimate) -> Self {
        let shown = if json {
            Shown::Json
        } else if plain || !std::io::stdout().is_terminal() {
            Shown::Lines(Lines::default())
        } else {
            // A terminal that does not let itself be taken over is written to like a file.
            Screen::open().map_or_else(|_| Shown::Lines(Lines::default()), Shown::Screen)
        };
        View { shown, interrupt, state: State::new(estimate) }
    }

    /// What is promised, of so many results.
    pub fn promise(&mut self, results: usize) {
        let State { estimate, promise, .. } = self.state;
        if let Shown::Json = self.shown {
            let told = serde_json::json!({
                "results": results, "seconds": estimate.as_secs_f64(), "at_most_seconds": promise.as_secs_f64(),
            });
            print_json("estimate", &told);
        } else {
            self.note(&format!("{results} results, about {}, at most {}", spoken(estimate), spoken(promise)));
        }
    }

    /// A case begins.
    pub fn case(&mut self, test: &str, case: &str, number: usize, of: usize) {
        test.clone_into(&mut self.state.test);
        case.clone_into(&mut self.state.case);
        self.state.cases = (number, of);
        self.state.best = None;
        match &mut self.shown {
            Shown::Lines(lines) => lines.case(&self.state),
            Shown::Json => print_json(
                "case",
                &serde_json::json!({ "test": test, "case": case, "number": number, "of": of }),
            ),
            Shown::Screen(screen) => screen.draw(&self.state),
        }
    }

    /// A trial has ended.
    pub fn trial(&mut self, line: &TrialLine) {
        let row = TrialRow::of(line);
        if row.passed && self.state.best.is_none_or(|best| row.rate > best) {
            self.state.best = Some(row.rate);
        }
        self.state.trials.insert(0, row.clone());
        self.state.trials.truncate(KEPT);
        self.state.received.clear();
        self.state.last = Sample::default();
        match &mut self.shown {
            Shown::Lines(lines) => lines.trial(&row),
            Shown::Json => print_json(
                "trial",
                &serde_json::json!({
                    "test": line.test, "dut": line.dut, "case": line.case, "run": line.run, "step": line.step,
                    "rate": line.rate, "verdict": line.verdict, "bracket": line.bracket,
                    "sent": row.sent, "received": totals(&line.outcome).1, "lost": row.lost,
                    "taken": line.outcome.taken(), "processors": line.outcome.processors,
                }),
            ),
            Shown::Screen(screen) => screen.draw(&self.state),
        }
    }

    /// Ten times a second; nothing of frames while resting. `false` when someone wants it to end.
    pub fn progress(&mut self, so_far: Option<&Sample>) -> bool {
        if let Some(sample) = so_far {
            let step = sample.at.saturating_sub(self.state.last.at).as_secs_f64();
            let total = |sample: &Sample| sample.received.iter().sum::<u64>();
            if step > 0.0 {
                let frames = total(sample).saturating_sub(total(&self.state.last));
                self.state.received.push((frames as f64 / step) as u64);
                self.state.last = *sample;
            }
        }
        if let Shown::Screen(screen) = &mut self.shown {
            if screen.wants_to_end() {
                return false;
            }
            screen.draw(&self.state);
        }
        !self.interrupt.wanted()
    }

    /// Something to be known: a device that is skipped, a figure.
    pub fn note(&mut self, text: &str) {
        match &mut self.shown {
            Shown::Lines(_) => say!("{text}"),
            Shown::Json => print_json("note", &serde_json::json!({ "text": text })),
            Shown::Screen(screen) => {
                self.state.notes.push(text.to_owned());
                screen.draw(&self.state);
            }
        }
    }

    /// What happens now, where there are no trials to show.
    pub fn doing(&mut self, text: &str) {
        match &mut self.shown {
            Shown::Lines(_) => say!("  {text}"),
            Shown::Json => print_json("doing", &serde_json::json!({ "text": text })),
            Shown::Screen(screen) => {
                text.clone_into(&mut self.state.case);
                screen.draw(&self.state);
            }
        }
    }

    /// Whether someone wants it to end.
    pub fn interrupted(&self) -> bool {
        self.interrupt.wanted()
    }

    /// Gives the terminal back, and says there what was noted meanwhile.
    pub fn close(self) {
        let notes = if let Shown::Screen(screen) = self.shown {
            drop(screen);
            self.state.notes
        } else {
            Vec::new()
        };
        for note in notes {
            say!("{note}");
        }
    }
}

impl State {
    fn new(estimate: Estimate) -> Self {
        State {
            test: String::new(),
            case: String::new(),
            cases: (0, 0),
            began: Instant::now(),
            estimate: estimate.time,
            promise: estimate.promise(),
            trials: Vec::new(),
            best: None,
            received: Vec::new(),
            last: Sample::default(),
            notes: Vec::new(),
        }
    }

    /// `about 2 min 03 s left, at most 3 min 20 s`.
    fn left(&self) -> String {
        left(self.estimate, self.promise, self.began.elapsed())
    }
}

impl TrialRow {
    fn of(line: &TrialLine) -> Self {
        let (sent, _) = totals(&line.outcome);
        TrialRow {
            run: line.run,
            step: line.step,
            rate: line.rate,
            sent,
            lost: lost(line),
            verdict: words(line),
            passed: line.verdict.passed(),
            bracket: line.bracket,
            stalls: line.outcome.stall_count,
        }
    }
}

fn totals(outcome: &Outcome) -> (u64, u64) {
    let both = Side::BOTH.map(|side| outcome.direction(side));
    (both.iter().map(|c| c.sent).sum(), both.iter().map(|c| c.received).sum())
}

/// Frames that the verdict counts as lost: those that were sent and did not arrive, and those that the device refused until
/// their time was over.
fn lost(line: &TrialLine) -> u64 {
    let gone = Side::BOTH.iter().map(|side| line.outcome.direction(*side).lost()).sum();
    match line.verdict {
        Verdict::Fail(loss) if loss > line.outcome.loss() => line.outcome.missing().max(gone),
        _ => gone,
    }
}

fn left(estimate: Duration, promise: Duration, spent: Duration) -> String {
    let (about, most) = (estimate.saturating_sub(spent), promise.saturating_sub(spent));
    if about.is_zero() {
        format!("longer than estimated, at most {} left", time(most))
    } else {
        format!("about {} left, at most {}", time(about), time(most))
    }
}

fn words(line: &TrialLine) -> String {
    match &line.verdict {
        Verdict::Pass => "pass".into(),
        // Of these the column of what was sent does not know.
        Verdict::Fail(loss) if *loss > line.outcome.loss() => {
            format!("lost {:.2} %: the device took them too late or never", loss * 100.0)
        }
        Verdict::Fail(loss) if *loss < 0.0001 => format!("lost {:.4} %", loss * 100.0),
        Verdict::Fail(loss) => format!("lost {:.2} %", loss * 100.0),
        Verdict::TesterLimit(why) => format!("tester limit: {why}"),
        Verdict::Disturbed(why) => format!("disturbed: {why}"),
        Verdict::Invalid(why) => format!("invalid: {why}"),
    }
}

fn print_json(kind: &str, value: &serde_json::Value) {
    say!("{}", serde_json::json!({ kind: value }));
}

/// A number with a unit prefix, three digits: `4.71 M`.
pub fn short(value: f64) -> String {
    let (scaled, unit) = match value.abs() {
        v if v >= 999_500_000.0 => (value / 1e9, " G"),
        v if v >= 999_500.0 => (value / 1e6, " M"),
        v if v >= 999.5 => (value / 1e3, " k"),
        _ => (value, " "),
    };
    let digits = match scaled.abs() {
        v if v >= 99.95 => 0,
        v if v >= 9.995 => 1,
        _ => 2,
    };
    format!("{scaled:.digits$}{unit}")
}

/// A time in the largest fitting units: `1 h 05 min`, `2 min 03 s`, `4 s`.
pub fn time(duration: Duration) -> String {
    let seconds = duration.as_secs();
    match seconds {
        s if s >= 3600 => format!("{} h {:02} min", s / 3600, s % 3600 / 60),
        s if s >= 60 => format!("{} min {:02} s", s / 60, s % 60),
        s => format!("{s} s"),
    }
}

#[cfg(test)]
mod tests {
    use shoal_lab_plan::{Counts, StreamOutcome};

    use super::*;

    #[test]
    fn numbers_have_three_digits_and_a_unit() {
        for (value, text) in [
            (0.0, "0.00 "),
            (64.0, "64.0 "),
            (999.4, "999 "),
            (999.6, "1.00 k"),
            (4_712_345.0, "4.71 M"),
            (14.88e9, "14.9 G"),
        ] {
            assert_eq!(short(value), text);
        }
    }

    fn line(verdict: Verdict, counts: Counts, took: u64) -> TrialLine {
        let stream =
            StreamOutcome { from: Some(Side::Left), expected: true, counts, ..StreamOutcome::default() };
        let (planned, took) = (Duration::from_secs(1), Duration::from_secs(took));
        let outcome = Outcome { streams: vec![stream], planned, took, ..Outcome::default() };
        TrialLine {
            test: "throughput".into(),
            dut: "shoal".into(),
            case: "ip4 64 B fwd".into(),
            run: 1,
            step: 1,
            rate: 1e3,
            bracket: None,
            verdict,
            outcome,
            began: 0.0,
        }
    }

    #[test]
    fn the_lost_column_and_the_percentage_say_the_same() {
        // A device with back-pressure took 840 of 1,000 frames, in twice the time: none was lost on the way, and 58 % are missing.
        let counts = Counts { requested: 1000, sent: 840, received: 840, retries: 9, ..Counts::default() };
        let mut refused = line(Verdict::Pass, counts, 2);
        refused.verdict = Verdict::Fail(refused.outcome.missing_share());
        let row = TrialRow::of(&refused);
        assert_eq!(
            (row.lost, row.verdict.as_str()),
            (580, "lost 58.00 %: the device took them too late or never")
        );
        let counts = Counts { requested: 1000, sent: 1000, received: 420, ..Counts::default() };
        let row = TrialRow::of(&line(Verdict::Fail(0.58), counts, 1));
        assert_eq!((row.lost, row.verdict.as_str()), (580, "lost 58.00 %"));
        let counts = Counts { requested: 1000, sent: 1000, received: 1000, ..Counts::default() };
        assert_eq!(TrialRow::of(&line(Verdict::Pass, counts, 1)).lost, 0);
    }

    #[test]
    fn what_is_left_is_told_with_what_was_promised() {
        let seconds = Duration::from_secs;
        assert_eq!(left(seconds(60), seconds(120), seconds(50)), "about 10 s left, at most 1 min 10 s");
        assert_eq!(left(seconds(60), seconds(120), seconds(70)), "longer than estimated, at most 50 s left");
    }

    #[test]
    fn times_are_told_in_fitting_units() {
        for (seconds, text) in [(4, "4 s"), (123, "2 min 03 s"), (3900, "1 h 05 min")] {
            assert_eq!(time(Duration::from_secs(seconds)), text);
        }
    }
}
