//! What one trial is to be, and what it showed.

use std::time::Duration;

use shoal_lab_plan::{Outcome, Side, Stream, Verdict};

/// While the device is overloaded on purpose, loss says nothing of stalls: only one as long as this disturbs such a trial.
pub const OVERLOAD_STALL: Duration = Duration::from_millis(10);

/// Of tests that ask how much arrives at a load that may be too high: less loss than this share means nothing,
/// whichever side lost it.
pub const NO_MATTER: f64 = 1e-4;

/// What one trial is to be, beyond what [`TrialProcedure`](crate::TrialProcedure) says of all.
#[derive(Clone, Debug)]
pub struct TrialSpec {
    /// What is sent.
    pub streams: Vec<Stream>,
    /// Frames a second and direction, for the record.
    pub rate: f64,
    /// How long is sent.
    pub duration: Duration,
    /// The search's bracket before this trial.
    pub bracket: Option<(u64, u64)>,
    /// The share of frames that may be lost, 0 to 1; 0 is strict.
    pub most_loss: f64,
    /// Loss is intended: see [`OVERLOAD_STALL`].
    pub overload: bool,
    /// See [`Trial::own_loss`](shoal_lab_plan::Trial).
    pub own_loss: f64,
    /// Length of a sample, if there are to be some.
    pub sample_every: Option<Duration>,
    /// A later frame counts as lost.
    pub frame_timeout: Option<Duration>,
    /// How long is waited for frames; none: as the conduct says.
    pub timeout: Option<Duration>,
    /// Look at every frame.
    pub verify_all: bool,
    /// Asks whether frames come through right, at a rate that every device carries, and not how fast or when: it does not matter
    /// who had the processors.
    pub any_speed: bool,
    /// Tuples to learn.
    pub learn: Option<(Side, u32)>,
    /// The trial changes the device's state for later ones: it is really run even if an earlier record has it, and the runner
    /// does not try it again.
    pub stateful: bool,
}

impl TrialSpec {
    /// `streams` for `duration`, without loss.
    pub fn new(streams: Vec<Stream>, rate: f64, duration: Duration) -> TrialSpec {
        TrialSpec {
            streams,
            rate,
            duration,
            bracket: None,
            most_loss: 0.0,
            overload: false,
            own_loss: 0.0,
            sample_every: None,
            frame_timeout: None,
            timeout: None,
            verify_all: false,
            any_speed: false,
            learn: None,
            stateful: false,
        }
    }

    /// The same, with loss intended.
    pub fn overloaded(mut self) -> TrialSpec {
        self.overload = true;
        self
    }
}

/// Something that is to be done while a trial is under way.
pub struct MidTrialAction<'d> {
    /// When, since the trial's start.
    pub at: Duration,
    /// What. It is called from the loop that sends and receives: it must return at once (wake another thread).
    pub act: &'d mut dyn FnMut(),
}

/// What a trial showed.
#[derive(Clone, Debug, PartialEq)]
pub struct Shown {
    /// What it means.
    pub verdict: Verdict,
    /// No more was lost than may be.
    pub passed: bool,
    /// The numbers.
    pub outcome: Outcome,
}

impl Shown {
    /// Reads an outcome by what the shot allows; others may have taken `most_taken` of the time.
    pub(crate) fn of(shot: &TrialSpec, verdict: Verdict, outcome: Outcome, most_taken: f64) -> Shown {
        let within = |loss: f64| shot.most_loss > 0.0 && loss <= shot.most_loss;
        let passed = match verdict {
            Verdict::Pass => true,
            Verdict::Fail(loss) => within(loss),
            // A stall costs frames and gives none. A device without its processor shows nothing at all.
            Verdict::Disturbed(_) => outcome.taken() <= most_taken && within(outcome.loss()),
            Verdict::TesterLimit(_) | Verdict::Invalid(_) => false,
        };
        Shown { verdict, passed, outcome }
    }

    /// Whether the tester itself, not the device, could do no more.
    pub fn is_tester_limit(&self) -> bool {
        match self.verdict {
            Verdict::TesterLimit(_) => true,
            Verdict::Invalid(_) => self.outcome.ports.iter().any(|p| p.lost_receiving > 0),
            _ => false,
        }
    }

    /// Whether it says nothing of the device, being disturbed or invalid, and should be tried again.
    pub fn is_doubtful(&self) -> bool {
        let doubtful = matches!(self.verdict, Verdict::Disturbed(_) | Verdict::Invalid(_));
        doubtful && !self.passed && !self.is_tester_limit()
    }

    /// The share that was lost, 0 to 1, over all directions; frames that the device refused until their time was over are lost.
    pub fn loss(&self) -> f64 {
        match self.verdict {
            Verdict::Pass => 0.0,
            Verdict::Fail(loss) => loss,
            _ => self.outcome.loss(),
        }
    }

    /// The same of the frames that one side sent.
    pub fn loss_from(&self, side: Side) -> f64 {
        let counts = self.outcome.direction(side);
        if self.loss() > self.outcome.loss() && counts.requested > 0 {
            return self.outcome.missing_from(side) as f64 / counts.requested as f64;
        }
        counts.loss()
    }

    /// Frames a second and active direction that arrived, by the time that sending took.
    pub fn received_rate(&self) -> f64 {
        let counts = Side::BOTH.map(|side| self.outcome.direction(side));
        let active = counts.iter().filter(|c| c.requested > 0).count().max(1) as f64;
        let received: u64 = counts.iter().map(|c| c.received).sum();
        let seconds = self.outcome.took.max(self.outcome.planned).as_secs_f64();
        if seconds > 0.0 { received as f64 / active / seconds } else { 0.0 }
    }
}
