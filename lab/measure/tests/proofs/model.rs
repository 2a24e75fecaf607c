//! A tester and the device behind it, in no time: a fluid queue with a capacity, and whatever else can be set.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;
use std::time::Duration;

use shoal_lab_plan::{
    CoreUse, Counts, Delays, Gap, Learnt, Link, OtherProcess, Outcome, Pace, Processors, Sample, Side,
    Stamps, Stream, StreamOutcome, Tester, TesterError, TesterFacts, Trial, Watch,
};

/// What the device remembers between trials.
#[derive(Default)]
pub struct Memory {
    /// Sessions of a NAT or addresses of a bridge.
    pub entries: u64,
    /// Most of them.
    pub size: u64,
    /// Highest rate at which they are made.
    pub rate: u64,
    /// How often it was emptied.
    pub cleared: u32,
}

/// The delay of a frame in nanoseconds by its number; none: it is lost.
pub type DelayOf = Box<dyn Fn(u64) -> Option<u64>>;

pub struct Model {
    /// Frames a second and direction it forwards.
    pub capacity: u64,
    /// Each trial's capacity is up to this share lower, at random.
    pub noise: f64,
    /// Frames it stores.
    pub buffer: u64,
    /// The share of frames lost at random.
    pub loss: f64,
    /// Goes on losing half of all frames for so long after an overload.
    pub recovers_in: Duration,
    /// Forwards nothing for so long when it is reset.
    pub dead_time: Duration,
    /// Of frames forwarded while it is reset, one in so many still gets through; 0: none.
    pub leak: u64,
    pub reset: Rc<Cell<bool>>,
    pub delay: DelayOf,
    /// Highest rate the tester can send at.
    pub tester_most: u64,
    /// Numbers of trials, from 1, in which the tester cannot keep any rate.
    pub late: BTreeSet<usize>,
    /// Numbers of trials, from 1, that a stall disturbs.
    pub disturbed: BTreeSet<usize>,
    /// Whether others take half a processor from the device in the trial of this number, from 1.
    pub taken: Box<dyn Fn(usize) -> bool>,
    /// The hypervisor takes this share in each trial.
    pub stolen: f64,
    /// What all trials took.
    pub spent: Rc<Cell<Duration>>,
    /// Numbers of trials with frames of an earlier one.
    pub stale: BTreeSet<usize>,
    /// Each stream has so many frames twice, corrupt, and translated to another's tuple.
    pub twice: u64,
    pub corrupt: u64,
    pub not_unique: u64,
    /// From this trial on nothing is answered.
    pub dies_at: usize,
    /// Only this side is not answered.
    pub deaf: Option<Side>,
    /// This trial is interrupted.
    pub interrupted_at: usize,
    pub memory: Rc<RefCell<Memory>>,
    pub is_virtual: bool,
    pub random: fastrand::Rng,
    /// All trials, as asked for.
    pub trials: Vec<Trial>,
}

impl Default for Model {
    fn default() -> Self {
        Model {
            capacity: u64::MAX,
            noise: 0.0,
            buffer: 0,
            loss: 0.0,
            recovers_in: Duration::ZERO,
            dead_time: Duration::ZERO,
            leak: 0,
            reset: Rc::default(),
            delay: Box::new(|_| Some(10_000)),
            tester_most: u64::MAX,
            late: BTreeSet::new(),
            disturbed: BTreeSet::new(),
            taken: Box::new(|_| false),
            stolen: 0.0,
            spent: Rc::default(),
            stale: BTreeSet::new(),
            twice: 0,
            corrupt: 0,
            not_unique: 0,
            dies_at: usize::MAX,
            deaf: None,
            interrupted_at: usize::MAX,
            memory: Rc::default(),
            is_virtual: false,
            random: fastrand::Rng::with_seed(42),
            trials: Vec::new(),
        }
    }
}

/// Sent and lost frames and when the last was lost.
#[derive(Clone, Copy, Default)]
struct Flow {
    sent: u64,
    lost: u64,
    last_lost: Option<Duration>,
}

impl Model {
    pub fn of(capacity: u64) -> Model {
        Model { capacity, ..Model::default() }
    }

    /// Pieces of constant rate: start, length, rate.
    fn pieces(stream: &Stream, trial: &Trial) -> Vec<(f64, f64, f64)> {
        let end = trial.duration.as_secs_f64();
        match &stream.pace {
            Pace::Steady { rate, after } => {
                vec![(after.as_secs_f64(), end - after.as_secs_f64(), rate.fps())]
            }
            Pace::Steps { steps } => steps
                .iter()
                .enumerate()
                .map(|(i, step)| {
                    let at = step.at.as_secs_f64();
                    let until = steps.get(i + 1).map_or(end, |next| next.at.as_secs_f64());
                    (at, until - at, step.rate.fps())
                })
                .collect(),
            Pace::Bursts { .. } => unreachable!("bursts are counted, not flowing"),
        }
    }

    fn flow(&self, stream: &Stream, trial: &Trial, capacity: f64) -> Flow {
        if let Pace::Bursts { frames, bursts, rate, gap, .. } = &stream.pace {
            return self.bursts(
                *frames,
                *bursts,
                rate.map_or(1e12, shoal_lab_plan::Rate::fps),
                *gap,
                capacity,
            );
        }
        let (mut sent, mut lost, mut queue, mut flow) = (0.0, 0.0, 0.0, Flow::default());
        for (at, length, rate) in Self::pieces(stream, trial) {
            sent += rate * length;
            let excess = (rate - capacity) * length;
            if excess > 0.0 {
                let over = (queue + excess - self.buffer as f64).max(0.0);
                queue = (queue + excess).min(self.buffer as f64);
                lost += over;
                if over > 0.0 {
                    flow.last_lost = Some(Duration::from_secs_f64(at + length));
                }
            } else {
                queue = (queue + excess).max(0.0);
                let long = self.recovers_in.as_secs_f64().min(length);
                if flow.last_lost.is_some_and(|t| (t.as_secs_f64() - at).abs() < 1e-9) && long > 0.0 {
                    lost += rate * long / 2.0;
                    flow.last_lost = Some(Duration::from_secs_f64(at + long));
                }
            }
        }
        // A rate is exact; floating point is not.
        flow.sent = (sent + 1e-6).floor() as u64;
        flow.lost = (lost - 1e-6).ceil().max(0.0) as u64;
        flow
    }

    fn bursts(&self, frames: u64, bursts: u64, rate: f64, gap: Duration, capacity: f64) -> Flow {
        let (mut queue, mut lost) = (0_u64, 0);
        let leaving = (frames as f64 * (capacity / rate).min(1.0)).floor() as u64;
        for _ in 0..bursts {
            let full = queue + frames.saturating_sub(leaving);
            lost += full.saturating_sub(self.buffer);
            queue = full.min(self.buffer);
            queue = queue.saturating_sub((capacity * gap.as_secs_f64() + 1e-6) as u64);
        }
        Flow { sent: frames * bursts, lost, last_lost: None }
    }

    /// Calls the watch as the engine does; answers when a reset began.
    fn watched(&self, trial: &Trial, watch: &mut dyn Watch) -> Result<Option<Duration>, TesterError> {
        let mut began = None;
        self.reset.set(false);
        for tenth in 0..=(trial.duration.as_millis() / 100) as u32 {
            let now = Duration::from_millis(100) * tenth;
            watch.at(now);
            if began.is_none() && self.reset.get() {
                began = Some(now);
            }
            if !watch.progress(&Sample { at: now, ..Sample::default() }) {
                return Err(TesterError::Interrupted);
            }
        }
        Ok(began)
    }

    fn outcome_of(
        &mut self,
        stream: &Stream,
        trial: &Trial,
        capacity: f64,
        reset: Option<Duration>,
    ) -> StreamOutcome {
        let mut flow = self.flow(stream, trial, capacity);
        if self.loss > 0.0 {
            let (p, random) = (self.loss, &mut self.random);
            flow.lost += (0..flow.sent).filter(|_| random.f64() < p).count() as u64;
        }
        let mut gap = None;
        if let Some(at) = reset {
            let rate = flow.sent as f64 / trial.duration.as_secs_f64();
            let dead = self.dead_time.min(trial.duration.saturating_sub(at));
            let mut lost = (rate * dead.as_secs_f64()).round() as u64;
            lost -= lost.checked_div(self.leak).unwrap_or(0);
            flow.lost += lost;
            flow.last_lost = Some(at + dead);
            gap = Some(Gap { from: at, to: at + dead, lost });
        }
        if self.trials.len() >= self.dies_at || self.deaf == Some(stream.from) {
            flow.lost = flow.sent;
        }
        self.remember(stream, trial, &mut flow);
        let received = flow.sent - flow.lost.min(flow.sent);
        let size = stream.frame.len() as u32 + 4;
        let counts = Counts {
            requested: flow.sent,
            sent: flow.sent,
            received,
            duplicates: self.twice,
            corrupt: self.corrupt,
            bytes: received * u64::from(size),
            ..Counts::default()
        };
        let delays = self.delays(stream, trial, received);
        let lost_tags = delays.as_ref().map_or(0, |d| d.tags.iter().filter(|t| t.is_none()).count() as u64);
        StreamOutcome {
            name: stream.name.clone(),
            from: Some(stream.from),
            size,
            expected: stream.expected,
            counts: Counts { received: received - lost_tags, ..counts },
            delays,
            gap,
            last_lost: flow.last_lost,
        }
    }

    /// Sessions and addresses: streams are known by their names.
    fn remember(&self, stream: &Stream, trial: &Trial, flow: &mut Flow) {
        let mut memory = self.memory.borrow_mut();
        let rate = flow.sent as f64 / trial.duration.as_secs_f64();
        match stream.name.as_str() {
            "fill" => {
                let fast = rate > memory.rate as f64 * 1.001;
                let made = flow.sent.min(memory.size - memory.entries.min(memory.size));
                let made = if fast { made / 2 } else { made };
                memory.entries += made;
                flow.lost = flow.sent - made;
            }
            "check" => flow.lost = flow.sent.saturating_sub(memory.entries),
            "learn" => {
                let fast = rate > memory.rate as f64 * 1.001;
                memory.entries = if fast { flow.sent / 2 } else { flow.sent.min(memory.size) };
            }
            "ask" => flow.lost = flow.sent.min(memory.entries),
            _ => {}
        }
    }

    fn delays(&self, stream: &Stream, trial: &Trial, received: u64) -> Option<Delays> {
        let rate = match &stream.pace {
            Pace::Steady { rate, .. } => rate.fps(),
            _ => return None,
        };
        let (tags, seen): (Vec<Option<u64>>, Vec<u64>) = match stream.stamps {
            Stamps::None => return None,
            Stamps::Even { after, count } => {
                let span = trial.duration.saturating_sub(after).as_secs_f64();
                let number = |i: u32| {
                    (after.as_secs_f64() * rate) as u64
                        + (f64::from(i) * rate * span / f64::from(count)) as u64
                };
                let tags: Vec<Option<u64>> = (0..count).map(|i| (self.delay)(number(i))).collect();
                let seen = tags.iter().flatten().copied().collect();
                (tags, seen)
            }
            Stamps::All => (Vec::new(), (0..received).filter_map(|k| (self.delay)(k)).collect()),
        };
        let mut histogram: BTreeMap<u64, u64> = BTreeMap::new();
        let mut variation: BTreeMap<i64, u64> = BTreeMap::new();
        if stream.stamps == Stamps::All {
            for value in &seen {
                *histogram.entry(*value).or_default() += 1;
            }
            for pair in seen.windows(2) {
                *variation.entry(pair[1] as i64 - pair[0] as i64).or_default() += 1;
            }
        }
        Some(Delays {
            count: seen.len() as u64,
            min: seen.iter().copied().min().unwrap_or(0),
            max: seen.iter().copied().max().unwrap_or(0),
            mean: seen.iter().sum::<u64>() as f64 / seen.len().max(1) as f64,
            tags,
            histogram: histogram.into_iter().collect(),
            variation: variation.into_iter().collect(),
            ..Delays::default()
        })
    }

    fn samples(trial: &Trial, capacity: f64) -> Vec<Sample> {
        let Some(every) = trial.sample_every else { return Vec::new() };
        let count = (trial.duration.as_secs_f64() / every.as_secs_f64()).round() as u32;
        let mut samples = Vec::new();
        for i in 0..count {
            let (from, to) = (every.as_secs_f64() * f64::from(i), every.as_secs_f64() * f64::from(i + 1));
            let mut sample = Sample { at: every * (i + 1), ..Sample::default() };
            for stream in &trial.streams {
                let sent: f64 = Self::pieces(stream, trial)
                    .iter()
                    .map(|(at, length, rate)| ((at + length).min(to) - at.max(from)).max(0.0) * rate)
                    .sum();
                let received = sent.min(capacity * (to - from));
                let side = stream.from.index();
                sample.sent[side] += sent.round() as u64;
                sample.received[side] += received.round() as u64;
                sample.lost[side] += (sent - received).round() as u64;
                sample.bytes[side] += received.round() as u64 * (stream.frame.len() as u64 + 4);
            }
            samples.push(sample);
        }
        samples
    }
}

impl Tester for Model {
    fn facts(&self) -> TesterFacts {
        TesterFacts {
            transport: "synthetic".into(),
            link: Link { is_virtual: self.is_virtual, ..Link::default() },
            smallest_ring: 1024,
            most_frame: 9216,
        }
    }

    fn run(&mut self, trial: &Trial, watch: &mut dyn Watch) -> Result<Outcome, TesterError> {
        self.trials.push(trial.clone());
        let number = self.trials.len();
        if number == self.interrupted_at {
            return Err(TesterError::Interrupted);
        }
        let reset = self.watched(trial, watch)?;
        let capacity = self.capacity as f64 * (1.0 - self.noise * self.random.f64());
        let mut streams: Vec<StreamOutcome> =
            trial.streams.iter().map(|s| self.outcome_of(s, trial, capacity, reset)).collect();
        let mut outcome = Outcome {
            trial: trial.id,
            took: trial.duration,
            planned: trial.duration,
            samples: Self::samples(trial, capacity),
            ..Outcome::default()
        };
        let seconds = trial.duration.as_secs_f64();
        let rate = streams.iter().map(|s| s.counts.sent as f64 / seconds).fold(0.0, f64::max);
        if rate > self.tester_most as f64 * 1.000_1 {
            // The engine has no more patience than that.
            let most = trial.duration + trial.duration / 10 + Duration::from_secs(1);
            outcome.took = trial.duration.mul_f64(rate / self.tester_most as f64).min(most);
        }
        if self.late.contains(&number) {
            outcome.took = trial.duration * 2;
        }
        if self.disturbed.contains(&number) {
            outcome.longest_stall = Duration::from_hours(1);
            for stream in &mut streams {
                stream.counts.received -= stream.counts.received.min(7);
            }
        }
        if self.stale.contains(&number) {
            outcome.ports[0].stale = 3;
        }
        outcome.learnt = trial.learn.map(|_| Learnt {
            tuples: self.memory.borrow().entries,
            not_unique: self.not_unique,
            ..Learnt::default()
        });
        outcome.streams = streams;
        outcome.stolen = self.stolen;
        if (self.taken)(number) {
            let core = CoreUse { core: 0, others: 0.5, waited: Some(0.5), thread: "shoal (5)".into() };
            let spin = OtherProcess { pid: 7, name: "spin".into(), share: 0.5 };
            let processors = Processors { cores: vec![core], others: vec![spin], ..Processors::default() };
            outcome.processors = Some(processors);
        }
        let took = trial.start_delay + outcome.took.max(trial.duration) + trial.timeout;
        self.spent.set(self.spent.get() + took);
        Ok(outcome)
    }
}
