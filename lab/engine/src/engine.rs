//! The tester: makes a trial ready, runs it, and says what came of it.

use std::collections::BTreeSet;
use std::time::Duration;

use shoal_lab_frame::Program;
use shoal_lab_plan::{FCS, Learnt, Link, Outcome, Side, Tester, TesterError, TesterFacts, Trial, Watch};

use crate::account::Account;
use crate::clock::{Clock, ClockCheck, SimulatedClock};
use crate::error::EngineError;
use crate::flow::FlowTable;
use crate::loop_times::LoopTimes;
use crate::meter::{Meter, TooManyTags};
use crate::port::{Drops, PortError, Transport};
use crate::reception::{Learning, Reception, is_stateful};
use crate::run::{Run, pieces};
use crate::sending::{Sender, Sending};
use crate::sequence::Sequences;
use crate::sides::{at, at_mut};
use crate::steal;
use crate::synthetic::{Behaviour, BehaviourCounts, SyntheticPort};
use crate::timeline::{Timeline, nanoseconds};

/// Streams of one side.
const MOST_STREAMS: usize = 64;
/// Smallest frame: an Ethernet header.
const LEAST_FRAME: usize = 14;
/// Memory for one trial unless told otherwise: enough for an hour at a million frames a second, counted without delays.
pub const MEMORY: u64 = 1 << 30;

/// Sends and receives at two ports by one clock.
pub struct Engine<T, C> {
    ports: [T; 2],
    clock: C,
    link: Link,
    memory: u64,
    flows: Option<FlowTable>,
    last_check: ClockCheck,
}

/// Everything about a trial's streams that is made before it starts.
struct Prepared {
    timelines: Vec<Timeline>,
    sendings: [Sending; 2],
    accounts: Vec<Account>,
    again: Vec<Program>,
}

impl<T: Transport, C: Clock> Engine<T, C> {
    /// A tester over `left` and `right`.
    pub fn new(left: T, right: T, clock: C) -> Self {
        Engine {
            ports: [left, right],
            clock,
            link: Link::default(),
            memory: MEMORY,
            flows: None,
            last_check: ClockCheck::default(),
        }
    }

    /// Says what the wire carries.
    #[must_use]
    pub fn with_link(mut self, link: Link) -> Self {
        self.link = link;
        self
    }

    /// Allows `bytes` of memory for the accounts of one trial.
    #[must_use]
    pub fn with_memory(mut self, bytes: u64) -> Self {
        self.memory = bytes;
        self
    }

    /// How the clock was found to run in the last trial.
    pub fn clock_check(&self) -> ClockCheck {
        self.last_check
    }

    /// The ports, left first.
    pub fn ports(&mut self) -> &mut [T; 2] {
        &mut self.ports
    }

    /// Runs a trial; the same as [`Tester::run`] with more exact errors.
    ///
    /// # Errors
    ///
    /// As there.
    pub fn trial(&mut self, trial: &Trial, watch: &mut dyn Watch) -> Result<Outcome, EngineError> {
        let prepared = self.prepare(trial)?;
        let Prepared { timelines, sendings, accounts, again } = prepared;
        let learning = self.learning(trial, again)?;
        let (begins, ends) = extents(&timelines, trial.duration);
        let samples = match trial.sample_every {
            None => 0,
            Some(every) => {
                let whole = nanoseconds(trial.duration) + nanoseconds(trial.timeout) + 2_000_000_000;
                (whole * 11 / 10 / nanoseconds(every).max(1)).min(10_000_000) as usize + 2
            }
        };
        let mut run = Run {
            trial,
            clock: self.clock.clone(),
            ports: &mut self.ports,
            sendings,
            reception: Reception::new(trial, accounts, learning),
            looks: LoopTimes::new(),
            samples: Vec::with_capacity(samples),
            marks: Vec::with_capacity(samples * trial.streams.len()),
            end: ends.unwrap_or(begins).max(nanoseconds(trial.duration)),
        };
        let drops = drops_of(run.ports)?;
        let (reading, stolen, begun) = (self.clock.read(), steal::stolen_ticks(), self.clock.now());
        let ended = run.run(watch);
        let after = ended.and_then(|()| drops_of(run.ports));
        let spent = self.clock.now().saturating_sub(begun);
        let Run { sendings, mut reception, looks, samples, marks, .. } = run;
        let learnt = settle(reception.learning.take(), &reception.accounts, trial, &mut self.flows);
        let after = after?;
        self.last_check = self.clock.check(&reading)?;
        if let Some(port) = self.ports.iter().find(|port| !port.is_attached()) {
            return Err(EngineError::port(port, PortError::Gone));
        }
        let stolen = match (stolen, steal::stolen_ticks()) {
            (Some(before), Some(after)) if self.clock.is_real() => {
                steal::share(after.saturating_sub(before), spent)
            }
            _ => 0.0,
        };
        let took = sendings.iter().filter_map(|s| s.last).max().unwrap_or(begins).saturating_sub(begins);
        let planned = ends.map_or(took, |ends| ends.saturating_sub(begins));
        let uncertainty = looks.uncertainty();
        let (stalls, stall_count, longest_stall) = looks.stalls();
        let mut outcome = Outcome {
            trial: trial.id,
            streams: timelines
                .iter()
                .zip(&reception.accounts)
                .map(|(timeline, account)| account.outcome(timeline, uncertainty))
                .collect(),
            ports: reception.tallies,
            took: Duration::from_nanos(took),
            planned: Duration::from_nanos(planned),
            lateness: looks.lateness(),
            stalls,
            stall_count,
            longest_stall,
            stolen,
            processors: None,
            samples: pieces(&samples, &marks, &reception.accounts),
            learnt,
        };
        blame(&mut outcome, Side::BOTH.map(|side| at(&after, side).since(*at(&drops, side))));
        Ok(outcome)
    }

    /// Checks the trial, and makes its frames and accounts.
    fn prepare(&self, trial: &Trial) -> Result<Prepared, EngineError> {
        for side in Side::BOTH {
            let asked = trial.streams.iter().filter(|stream| stream.from == side).count();
            if asked > MOST_STREAMS {
                return Err(EngineError::Streams { asked, most: MOST_STREAMS });
            }
        }
        let timelines: Vec<_> =
            trial.streams.iter().map(|stream| Timeline::new(&stream.pace, trial.duration)).collect();
        self.check_memory(trial, &timelines)?;
        let (mut accounts, mut again) = (Vec::new(), Vec::new());
        let mut senders = [Vec::new(), Vec::new()];
        let (patience, duration) = (patience(trial), nanoseconds(trial.duration));
        for (index, (stream, timeline)) in trial.streams.iter().zip(&timelines).enumerate() {
            let (least, most) = (LEAST_FRAME, self.ports.iter().map(T::most_frame).min().unwrap_or(0));
            let length = stream.frame.len();
            if !(least..=most).contains(&length) {
                let name = at(&self.ports, stream.from).name();
                let fcs = FCS as usize;
                let (size, least, most) = (length + fcs, least + fcs, most + fcs);
                return Err(EngineError::Size { stream: stream.name.clone(), size, port: name, least, most });
            }
            let program = Program::new(stream, index as u8, trial.id, trial.seed)
                .map_err(|source| EngineError::Frame { stream: stream.name.clone(), source })?;
            let is_timed = trial.frame_timeout.is_some();
            let meter = Meter::new(stream, timeline, patience, is_timed, duration).map_err(|few| {
                let TooManyTags { asked, most } = few;
                EngineError::Tags { stream: stream.name.clone(), asked, most }
            })?;
            accounts.push(Account::new(stream, timeline, meter, trial.frame_timeout));
            again.push(program.clone());
            let answers = stream.answers.map(|answers| answers.order);
            let sender = Sender { stream: index, timeline: timeline.clone(), program, answers };
            at_mut(&mut senders, stream.from).push(sender);
        }
        let [left, right] = senders;
        let sendings =
            [Sending::new(Side::Left, left, trial.burst), Sending::new(Side::Right, right, trial.burst)];
        Ok(Prepared { timelines, sendings, accounts, again })
    }

    /// Refuses what would need more memory than is allowed.
    fn check_memory(&self, trial: &Trial, timelines: &[Timeline]) -> Result<(), EngineError> {
        let is_timed = trial.frame_timeout.is_some();
        let streams = trial.streams.iter().zip(timelines);
        let bytes = streams.map(|(stream, timeline)| {
            Sequences::bytes(timeline.total()).saturating_add(Meter::bytes(
                stream,
                timeline,
                patience(trial),
                is_timed,
            ))
        });
        let needed = bytes.fold(0, u64::saturating_add);
        let needed = needed.saturating_add(trial.learn.map_or(0, |(_, most)| FlowTable::bytes(most)));
        let frames = timelines.iter().map(Timeline::total).fold(0, u64::saturating_add);
        if needed > self.memory {
            let most = (u128::from(frames) * u128::from(self.memory) / u128::from(needed)) as u64;
            let mib = |bytes: u64| bytes.div_ceil(1 << 20);
            return Err(EngineError::Memory { frames, needed: mib(needed), allowed: mib(self.memory), most });
        }
        Ok(())
    }

    /// The flows of a stateful trial: new ones if it learns, those of the trial before if it answers.
    fn learning(&mut self, trial: &Trial, again: Vec<Program>) -> Result<Option<Learning>, EngineError> {
        if !is_stateful(trial) {
            return Ok(None);
        }
        let mut table = match trial.learn {
            Some((_, most)) => FlowTable::new(most, trial.seed),
            None => self.flows.take().unwrap_or_default(),
        };
        for stream in &trial.streams {
            let Some(answers) = stream.answers else { continue };
            if table.len() == 0 {
                let stream = stream.name.clone();
                self.flows = Some(table);
                return Err(EngineError::NothingLearnt { stream });
            }
            table.prepare(answers.order);
        }
        Ok(Some(Learning::new(table, trial, again)))
    }
}

impl Engine<SyntheticPort<SimulatedClock>, SimulatedClock> {
    /// A tester around a device that exists in this process only, in simulated time: a trial takes as long as its frames
    /// take to be handled, and gives the same outcome each time.
    pub fn simulated(behaviour: Behaviour) -> Self {
        let clock = SimulatedClock::new();
        let [left, right] = SyntheticPort::pair(behaviour, clock.clone());
        Engine::new(left, right, clock)
    }

    /// What the device says that it did to frames sent at left and right: the truth that the tester has to find.
    pub fn told(&self) -> [BehaviourCounts; 2] {
        let [left, _] = &self.ports;
        left.told()
    }
}

impl<T: Transport, C: Clock> Tester for Engine<T, C> {
    fn facts(&self) -> TesterFacts {
        let [left, right] = &self.ports;
        TesterFacts {
            transport: left.kind().to_owned(),
            link: self.link,
            smallest_ring: left.ring().min(right.ring()),
            most_frame: left.most_frame().min(right.most_frame()) as u32 + FCS,
        }
    }

    fn run(&mut self, trial: &Trial, watch: &mut dyn Watch) -> Result<Outcome, TesterError> {
        Ok(self.trial(trial, watch)?)
    }
}

/// How long a frame may take and still be known.
fn patience(trial: &Trial) -> u64 {
    nanoseconds(trial.timeout.max(trial.frame_timeout.unwrap_or_default()))
}

/// When the first frame is due and when the last one's time ends, over all streams; none of the second if a stream goes as
/// fast as its port.
fn extents(timelines: &[Timeline], duration: Duration) -> (u64, Option<u64>) {
    let extents: Vec<_> = timelines.iter().filter_map(|timeline| timeline.extent(duration)).collect();
    let begins = extents.iter().map(|(begins, _)| *begins).min().unwrap_or(0);
    let ends = extents.iter().try_fold(begins, |most, (_, ends)| ends.map(|ends| most.max(ends)));
    (begins, ends)
}

fn drops_of<T: Transport>(ports: &mut [T; 2]) -> Result<[Drops; 2], EngineError> {
    let [left, right] = ports;
    let of = |port: &mut T| port.drops().map_err(|e| EngineError::port(port, e));
    Ok([of(left)?, of(right)?])
}

/// What the ports lost themselves is entered where it belongs.
fn blame(outcome: &mut Outcome, drops: [Drops; 2]) {
    for (side, drops) in Side::BOTH.into_iter().zip(drops) {
        // A full ring is no loss by itself. Where frames are missing, they may have met it: then it is not the device's.
        let arriving = outcome.direction(side.other());
        let met = drops.full.min(arriving.lost());
        at_mut(&mut outcome.ports, side).lost_receiving = drops.receiving + met;
        // The kernel does not say of which stream a frame was: by far most often there is one.
        let stream = outcome.streams.iter_mut().find(|stream| stream.from == Some(side));
        if let Some(stream) = stream {
            stream.counts.lost_sending += drops.sending;
        }
    }
}

/// What was learnt, and the table for later trials.
fn settle(
    learning: Option<Learning>,
    accounts: &[Account],
    trial: &Trial,
    flows: &mut Option<FlowTable>,
) -> Option<Learnt> {
    let mut learning = learning?;
    if let Some((side, _)) = trial.learn {
        let mut silent = BTreeSet::new();
        for (stream, account) in accounts.iter().enumerate() {
            if account.arrives == side && trial.streams.get(stream).is_some_and(|s| s.answers.is_none()) {
                silent.extend(learning.never_answered(stream, account));
            }
        }
        learning.learnt.never_answered = silent.len() as u64;
    }
    let mut learnt = std::mem::take(&mut learning.learnt);
    learnt.tuples = learning.table.len() as u64;
    *flows = Some(learning.table);
    Some(learnt)
}
