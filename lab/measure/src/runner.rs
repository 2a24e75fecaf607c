//! Runs trials: numbers them, watches them, tries disturbed ones again, keeps every one, and ends in time.

use std::time::Duration;

use shoal_lab_plan::{
    MOST_STOLEN, Outcome, Pace, Sample, Side, SummaryRow, Tester, TesterFacts, Trial, TrialLine, Verdict,
    Verify, Watch,
};

use crate::case::{judge, judge_rate};
use crate::{
    Case, Journal, Marks, MeasureError, MidTrialAction, OVERLOAD_STALL, Offer, Progress, Shown, Time,
    Traffic, TrialProcedure, TrialSpec, WhenDisturbed,
};

/// The share of its self-test's rate that a tester surely keeps.
const SURE: f64 = 0.9;

/// A rest is cut into pieces of this length, so that an interruption is noticed.
const REST_PIECE: Duration = Duration::from_millis(100);

/// When a test has to be over.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Promise {
    /// By [`Time::passed`]: no trial begins that could end later.
    pub until: Duration,
    /// What was promised, to be told if it does not suffice.
    pub promised: Duration,
}

/// Runs trials over one tester for one [`Case`].
pub struct Runner<'a> {
    tester: &'a mut dyn Tester,
    journal: &'a mut dyn Journal,
    time: &'a mut dyn Time,
    /// What is the same for all trials.
    pub case: Case,
    /// How trials are run.
    pub conduct: TrialProcedure,
    /// Frames a second and direction that the tester reaches without a device, with the same traffic (lab.md 3.4).
    pub self_test: Option<u64>,
    /// When it has to be over; none: no matter.
    pub promise: Option<Promise>,
    recorded: Vec<TrialLine>,
    trials: u16,
    test: String,
    run: u32,
    runs: u32,
    step: u32,
    cap: Option<u64>,
    marks: Marks,
    /// Trials in a row that others disturbed and that their test has to try again itself.
    disturbed: u32,
}

impl<'a> Runner<'a> {
    /// # Errors
    ///
    /// Settings that no trial can be made of.
    pub fn new(
        tester: &'a mut dyn Tester,
        journal: &'a mut dyn Journal,
        time: &'a mut dyn Time,
        case: Case,
        conduct: TrialProcedure,
    ) -> Result<Self, MeasureError> {
        conduct.checked()?;
        Ok(Runner {
            tester,
            journal,
            time,
            case,
            conduct,
            self_test: None,
            promise: None,
            recorded: Vec::new(),
            trials: 0,
            test: String::new(),
            run: 1,
            runs: 1,
            step: 0,
            cap: None,
            marks: Marks::default(),
            disturbed: 0,
        })
    }

    /// Trials of an earlier, interrupted campaign. Searches are deterministic: where the same test, device, case, run, step
    /// and rate comes again, its trial is taken from here and neither run nor recorded again. Those that others disturbed are
    /// run again.
    pub fn resume(&mut self, mut recorded: Vec<TrialLine>) {
        if self.conduct.when_disturbed != WhenDisturbed::Mark {
            recorded.retain(|line| line.outcome.taken() <= self.conduct.most_taken);
        }
        self.recorded = recorded;
    }

    /// What is known of the tester.
    pub fn facts(&self) -> TesterFacts {
        self.tester.facts()
    }

    /// The highest rate worth trying: what the tester reaches, or its link carries, or it was found to be unable to exceed.
    pub fn most_rate(&self, size: u32) -> u64 {
        let link = self.facts().link.most_frames(size);
        let ceiling = self.self_test.map_or(link, |s| s.min(link));
        self.cap.map_or(ceiling, |cap| cap.min(ceiling)).max(1)
    }

    /// The rate that the tester was found unable to keep, if there is one: no search tries more.
    pub fn cap(&self) -> Option<u64> {
        self.cap
    }

    /// Notes that the tester cannot keep `rate`.
    pub fn limit(&mut self, rate: u64) {
        if self.cap.is_none_or(|cap| rate < cap) {
            self.cap = Some(rate);
            self.journal.remark(&format!("the tester cannot keep {rate} fps: no more is tried from here on"));
        }
    }

    /// Says which test and run the next trials are of. Steps begin at 1 again.
    pub fn begin(&mut self, test: &str, run: u32, runs: u32) {
        if self.test != test {
            self.test = test.into();
            self.cap = None;
        }
        (self.run, self.runs, self.step) = (run, runs, 0);
        if run == 1 {
            self.marks = Marks::default();
        }
    }

    /// Another case from here on: what was found out about the tester under the last one is forgotten.
    pub fn change(&mut self, case: Case, self_test: Option<u64>) {
        (self.case, self.self_test) = (case, self_test);
        (self.cap, self.marks) = (None, Marks::default());
        self.test.clear();
    }

    /// A row of this case with the marks that follow from how it was measured.
    pub fn row(&self, metric: &str, unit: &str, values: Vec<f64>) -> SummaryRow {
        let mut row = self.case.row(&self.test, metric, unit, values);
        judge(&mut row, &self.case, &self.facts(), self.marks);
        row
    }

    /// The same for a rate in frames a second and direction: it is compared with the self-test.
    pub fn rate_row(&self, metric: &str, values: Vec<f64>) -> SummaryRow {
        let most = values.iter().copied().fold(0.0, f64::max);
        let mut row = self.row(metric, "fps/dir", values);
        judge_rate(&mut row, most, self.self_test);
        row
    }

    /// What went wrong since the test began.
    pub fn marks(&self) -> Marks {
        self.marks
    }

    /// Tells people something.
    pub fn remark(&mut self, text: &str) {
        self.journal.remark(text);
    }

    /// Waits, unless interrupted.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Interrupted`].
    pub fn wait(&mut self, length: Duration) -> Result<(), MeasureError> {
        let mut left = length;
        while !left.is_zero() {
            let piece = left.min(REST_PIECE);
            self.time.rest(piece);
            left -= piece;
            let now = Progress {
                test: &self.test,
                run: self.run,
                runs: self.runs,
                step: self.step,
                rate: 0.0,
                bracket: None,
                so_far: None,
            };
            if !self.journal.progress(&now) {
                return Err(MeasureError::Interrupted);
            }
        }
        Ok(())
    }

    /// Runs a trial, again if it was disturbed or invalid, up to [`TrialProcedure::retries`] times and while the promised time lasts;
    /// all are recorded.
    ///
    /// # Errors
    ///
    /// If it cannot be run, or recorded, or was interrupted; if it cannot end in time; and if others had the processors each
    /// time, unless [`TrialProcedure::when_disturbed`] says otherwise.
    pub fn trial(&mut self, shot: &TrialSpec) -> Result<Shown, MeasureError> {
        self.trial_with(shot, None)
    }

    /// The same with something to be done meanwhile, once for each try.
    ///
    /// # Errors
    ///
    /// As [`trial`](Self::trial).
    pub fn trial_with(
        &mut self,
        shot: &TrialSpec,
        mut deed: Option<MidTrialAction<'_>>,
    ) -> Result<Shown, MeasureError> {
        self.step += 1;
        let mut shown = self.attempt(shot, &mut deed)?;
        let mut tries = 1;
        // What changed the device's state cannot simply be done again: its test has to undo it first.
        let retries = if shot.stateful { 0 } else { self.conduct.retries };
        for _ in 0..retries {
            // What the tester did in its self-test it can do: that it could not this time was something else's doing.
            let reached = self.self_test.is_some_and(|most| shot.rate <= SURE * most as f64);
            if !(shown.is_doubtful() || shown.is_tester_limit() && reached) || !self.is_in_time(shot) {
                break;
            }
            shown = self.attempt(shot, &mut deed)?;
            tries += 1;
        }
        if let Some(refusal) = self.refusal(shot, &shown, tries) {
            return Err(refusal);
        }
        if self.is_taken(shot, &shown) && self.conduct.when_disturbed == WhenDisturbed::Repeat {
            // It was tried again. Now it counts as it is.
            let (trial, ring) =
                (Trial { most_taken: 1.0, ..self.made(shot) }, self.tester.facts().smallest_ring);
            let verdict = Verdict::of(&trial, &shown.outcome, ring);
            shown = Shown::of(shot, verdict, shown.outcome, 1.0);
        }
        self.judge(shot, &shown);
        Ok(shown)
    }

    /// Whether others had more of the processors than they may.
    fn is_taken(&self, shot: &TrialSpec, shown: &Shown) -> bool {
        !shot.any_speed && shown.outcome.taken() > self.conduct.most_taken
    }

    /// Why there is no result, if others had the processors in all tries.
    fn refusal(&mut self, shot: &TrialSpec, shown: &Shown, tries: u32) -> Option<MeasureError> {
        if self.conduct.when_disturbed != WhenDisturbed::Refuse
            || !matches!(shown.verdict, Verdict::Disturbed(_))
        {
            self.disturbed = 0;
            return None;
        }
        let tries = if shot.stateful {
            self.disturbed += 1;
            // Its test undoes it and tries again.
            if self.disturbed <= self.conduct.retries {
                return None;
            }
            self.disturbed
        } else {
            tries
        };
        let share = shown.outcome.stolen;
        match &shown.outcome.processors {
            Some(processors) if self.is_taken(shot, shown) => {
                Some(MeasureError::Refused { tries, processors: Box::new(processors.clone()) })
            }
            _ if share > MOST_STOLEN => Some(MeasureError::Stolen { tries, share }),
            _ => None,
        }
    }

    /// Whether another trial would end within the promised time.
    fn is_in_time(&self, shot: &TrialSpec) -> bool {
        let timeout = shot.timeout.unwrap_or(self.conduct.timeout);
        let most = self.conduct.most_trial_time(shot.duration, timeout);
        self.promise.is_none_or(|promise| self.time.passed() + most <= promise.until)
    }

    /// Keeps in mind what a result has to be marked with.
    fn judge(&mut self, shot: &TrialSpec, shown: &Shown) {
        for counts in Side::BOTH.map(|side| shown.outcome.direction(side)) {
            self.marks.duplicates += counts.duplicates;
            self.marks.reordered += counts.reordered;
        }
        let flows = shot.streams.iter().any(|s| !matches!(s.pace, Pace::Bursts { .. }));
        if flows && !shot.stateful {
            let shortest = self.marks.shortest.map_or(shot.duration, |s| s.min(shot.duration));
            self.marks.shortest = Some(shortest);
        }
        if self.is_taken(shot, shown) {
            self.marks.disturbed = true;
            self.marks.taken = self.marks.taken.max(shown.outcome.taken());
        }
        if shown.passed {
            return;
        }
        match shown.verdict {
            Verdict::Disturbed(_) => self.marks.disturbed = true,
            Verdict::Invalid(_) => self.marks.invalid = true,
            // A search finds its way around such a rate, and overloads may be less than was wished; others did not offer
            // what they say.
            Verdict::TesterLimit(_) if shot.bracket.is_none() && !shot.overload => self.marks.tester = true,
            _ => {}
        }
    }

    fn attempt(
        &mut self,
        shot: &TrialSpec,
        deed: &mut Option<MidTrialAction<'_>>,
    ) -> Result<Shown, MeasureError> {
        if let Some(line) = self.recalled(shot) {
            return Ok(Shown::of(shot, line.verdict, line.outcome, self.most_taken(shot)));
        }
        if let Some(Promise { promised, .. }) = self.promise.filter(|_| !self.is_in_time(shot)) {
            return Err(MeasureError::OverTime { promised });
        }
        if self.trials > 0 {
            self.wait(self.conduct.rest)?;
        }
        self.trials = self.trials.checked_add(1).unwrap_or(1);
        let trial = self.made(shot);
        let began = self.time.now();
        let ring = self.tester.facts().smallest_ring;
        let mut watching = Watching {
            journal: self.journal,
            now: Progress {
                test: &self.test,
                run: self.run,
                runs: self.runs,
                step: self.step,
                rate: shot.rate,
                bracket: shot.bracket,
                so_far: None,
            },
            deed: deed.as_mut(),
        };
        let outcome = self.tester.run(&trial, &mut watching)?;
        let shown = Shown::of(shot, Verdict::of(&trial, &outcome, ring), outcome, trial.most_taken);
        let line = self.line(shot, &shown, began);
        self.journal.trial(&line)?;
        Ok(shown)
    }

    /// What others may take of a trial before its verdict says so.
    fn most_taken(&self, shot: &TrialSpec) -> f64 {
        let judged = !shot.any_speed && self.conduct.when_disturbed != WhenDisturbed::Mark;
        if judged { self.conduct.most_taken } else { 1.0 }
    }

    fn made(&self, shot: &TrialSpec) -> Trial {
        let c = &self.conduct;
        let overload = shot.overload.then_some(OVERLOAD_STALL);
        Trial {
            id: self.trials,
            streams: shot.streams.clone(),
            duration: shot.duration,
            timeout: shot.timeout.unwrap_or(c.timeout),
            start_delay: c.start_delay,
            burst: c.burst,
            verify: if shot.verify_all { Verify::All } else { c.verify },
            frame_timeout: shot.frame_timeout,
            tolerance: c.tolerance,
            most_stall: c.most_stall.or(overload),
            own_loss: shot.own_loss,
            most_taken: self.most_taken(shot),
            sample_every: shot.sample_every,
            learn: shot.learn,
            seed: c.seed.wrapping_add(u64::from(self.run) - 1),
        }
    }

    fn line(&self, shot: &TrialSpec, shown: &Shown, began: f64) -> TrialLine {
        let rate = shot.rate as u64;
        let bracket = shot.bracket.map(|(low, high)| match (&shown.verdict, shown.passed) {
            (_, true) => (rate, high),
            (Verdict::Disturbed(_), false) => (low, high),
            (_, false) => (low, rate),
        });
        TrialLine {
            test: self.test.clone(),
            dut: self.case.dut.clone(),
            case: self.case.spoken(),
            run: self.run,
            step: self.step,
            rate: shot.rate,
            bracket,
            verdict: shown.verdict.clone(),
            outcome: shown.outcome.clone(),
            began,
        }
    }

    fn recalled(&mut self, shot: &TrialSpec) -> Option<TrialLine> {
        if shot.stateful || self.recorded.is_empty() {
            return None;
        }
        let case = self.case.spoken();
        let at = self.recorded.iter().position(|line| {
            line.test == self.test
                && line.dut == self.case.dut
                && line.case == case
                && (line.run, line.step) == (self.run, self.step)
                && (line.rate - shot.rate).abs() < 1e-6 * shot.rate.max(1.0)
        })?;
        Some(self.recorded.remove(at))
    }

    /// After a trial in which nothing arrived in some direction, or that was invalid in spite of its retries: asks slowly
    /// whether the device answers at all, and rightly.
    ///
    /// # Errors
    ///
    /// [`MeasureError::Silent`] or [`MeasureError::Untrusted`] if it does not: no search of hours will find anything then.
    pub fn expect_answer(&mut self, traffic: &dyn Traffic, shown: &Shown) -> Result<(), MeasureError> {
        let wrong = shown.is_doubtful() && matches!(shown.verdict, Verdict::Invalid(_));
        if !wrong && silent_side(&shown.outcome).is_none() {
            return Ok(());
        }
        let rate = shown.outcome.direction(Side::Left).requested.clamp(1, 100);
        let streams = traffic.streams(&Offer::steady(rate))?;
        let duration = Duration::from_secs(1);
        let shortest = self.marks.shortest;
        let asked = self.trial(&TrialSpec::new(streams, rate as f64, duration).overloaded())?;
        // This one gives no result, and so does not make one short.
        self.marks.shortest = shortest;
        if let Some((where_to, sent)) = silent_side(&asked.outcome) {
            return Err(MeasureError::Silent { sent, rate, where_to });
        }
        match asked.verdict {
            Verdict::Invalid(why) => Err(MeasureError::Untrusted(format!("even at {rate} fps {why}"))),
            _ => Ok(()),
        }
    }
}

/// A direction in which frames were sent and none arrived.
fn silent_side(outcome: &Outcome) -> Option<(&'static str, u64)> {
    let [left, right] = Side::BOTH.map(|side| outcome.direction(side));
    let (forward, reverse) = (left.sent > 0 && left.received == 0, right.sent > 0 && right.received == 0);
    let nothing = left.received + right.received == 0 && left.sent + right.sent > 0;
    match (nothing, forward, reverse) {
        (true, ..) => Some(("anywhere", left.sent + right.sent)),
        (_, true, _) => Some(("on the right", left.sent)),
        (_, _, true) => Some(("on the left", right.sent)),
        _ => None,
    }
}

/// Passes progress on, and does the deed once when its time has come.
struct Watching<'w, 'd> {
    journal: &'w mut dyn Journal,
    now: Progress<'w>,
    deed: Option<&'w mut MidTrialAction<'d>>,
}

impl Watch for Watching<'_, '_> {
    fn progress(&mut self, so_far: &Sample) -> bool {
        self.journal.progress(&Progress { so_far: Some(so_far), ..self.now })
    }

    fn at(&mut self, since_start: Duration) {
        if let Some(deed) = self.deed.take_if(|d| since_start >= d.at) {
            (deed.act)();
        }
    }
}
