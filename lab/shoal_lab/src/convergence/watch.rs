//! One run: events one after the other, each as soon as what the one before it changed is over.

use std::sync::mpsc;
use std::time::{Duration, Instant};

use shoal_lab_dut::{LINKS, RoutingBed, Spent};
use shoal_lab_engine::{Next, PacketPort, Probes, probe};
use shoal_lab_measure::convergence::{Phase, is_over};
use shoal_lab_plan::Observation;

use super::feed::{Job, Listening, Peer, Source, Table, ended, job};
use super::kernel::KernelWatch;
use super::{Trouble, Wanted};
use crate::exit::Exit;
use crate::view::View;

/// Seconds of frames before the first event: they tell that nothing gets through yet.
const BEFORE: f64 = 0.5;
/// Seconds without a change after which it is over; longer where a prefix has a frame less often.
const QUIET: f64 = 1.0;
/// A daemon rests if it was not busy for so many seconds: if it took no more than this share of a processor.
const RESTS: f64 = 2.0;
const BUSY: f64 = 0.05;
/// How often programs and sessions are looked after.
const LOOKED_AFTER: f64 = 0.25;

/// What was seen of a phase.
#[derive(Clone, Debug)]
pub struct Seen {
    /// Which.
    pub phase: Phase,
    /// When it began, in seconds of the observation.
    pub event: f64,
    /// When it was over.
    pub until: f64,
    /// When the kernel's table changed last, since the event.
    pub kernel: Option<f64>,
    /// When the last byte was taken, since the event: of FPM, when the last route was answered.
    pub taken: Option<f64>,
    /// Processor seconds.
    pub spent: Spent,
    /// It was not over in the time there was.
    pub cut_short: bool,
}

/// Where a run is.
enum State {
    /// Until then nothing happens.
    Before(f64),
    /// Something happened, and the frames tell what came of it.
    Under(Phase),
    /// Since then it is over; the next phase begins when the daemon has nothing to do any more.
    Resting(f64),
    /// The peer announces the table once more over its second link, before that of the first fails.
    Doubling { joins: Option<mpsc::Receiver<Result<Peer, String>>>, since: f64 },
    /// Nothing more is to be done.
    Done,
}

/// A run under way.
pub struct Watch<'a> {
    wanted: &'a Wanted,
    table: &'a Table,
    bed: &'a mut RoutingBed,
    view: &'a mut View,
    source: Source,
    second: Option<Peer>,
    kernel: KernelWatch,
    /// What the clock shows is what observation and kernel are told by.
    clock: Instant,
    jobs: Vec<Job>,
    left: Vec<Phase>,
    event: f64,
    taken: Option<f64>,
    spent: Spent,
    looked: f64,
    /// Processor seconds of the daemon at the last look, and when it was busy last.
    daemon: f64,
    busy: f64,
    state: State,
    seen: Vec<Seen>,
    /// Seconds in which each prefix gets a frame.
    turn: f64,
}

/// Does all phases.
///
/// # Errors
///
/// Something of the bed fails, or someone wants it to end.
pub fn watch(
    wanted: &Wanted,
    table: &Table,
    probes: &Probes,
    bed: &mut RoutingBed,
    view: &mut View,
) -> Result<(Observation, Vec<Seen>), Trouble> {
    let clock = Instant::now();
    let source = Source::open(bed, wanted.daemon, table).map_err(Trouble::device)?;
    let kernel = KernelWatch::start(&bed.routes(), clock).map_err(Trouble::tester)?;
    let (namespace, name, _) = bed.sends();
    let tester = |e: &dyn std::fmt::Display| Trouble::tester(e.to_string());
    let mut out = PacketPort::open(Some(&namespace), name).map_err(|e| tester(&e))?;
    let mut into = Vec::new();
    for link in &LINKS {
        into.push(PacketPort::open(Some(&bed.peer()), link.name).map_err(|e| tester(&e))?);
    }
    let left = wanted.phases.iter().rev().copied().collect();
    let mut watch = Watch {
        wanted,
        table,
        bed,
        view,
        source,
        second: None,
        kernel,
        clock,
        jobs: Vec::new(),
        left,
        event: 0.0,
        taken: None,
        spent: Spent::default(),
        looked: 0.0,
        daemon: 0.0,
        busy: 0.0,
        state: State::Before(clock.elapsed().as_secs_f64() + BEFORE),
        seen: Vec::new(),
        turn: probes.targets.len() as f64 / probes.rate,
    };
    let mut trouble = None;
    let observed = probe(probes, &mut out, &mut into, clock, &mut |seen, now| match watch.step(seen, now) {
        Ok(next) => next,
        Err(why) => {
            trouble = Some(why);
            Next::End
        }
    });
    let observed = observed.map_err(|e| tester(&e))?;
    match trouble {
        Some(why) => Err(why),
        None => Ok((observed, watch.seen)),
    }
}

impl Watch<'_> {
    fn quiet(&self) -> f64 {
        QUIET.max(2.0 * self.turn)
    }

    fn step(&mut self, seen: &Observation, now: f64) -> Result<Next, Trouble> {
        if now - self.looked >= LOOKED_AFTER {
            self.look_at_daemon(now);
            self.looked = now;
            if !self.view.progress(None) {
                return Err(Trouble { words: "interrupted".into(), exit: Exit::Interrupted });
            }
            self.bed.alive().map_err(|e| Trouble::device(e.to_string()))?;
            // After its link has failed the first session ends, as it should.
            if self.second.is_none() {
                self.source.alive().map_err(Trouble::device)?;
            }
        }
        self.jobs_done(now)?;
        match std::mem::replace(&mut self.state, State::Done) {
            State::Done => return Ok(Next::End),
            State::Before(until) if now < until => self.state = State::Before(until),
            State::Before(_) => self.next(now)?,
            State::Under(phase) => {
                let over = self.jobs.is_empty() && is_over(seen, phase, self.event, now, self.quiet());
                let late = self.is_late(self.event, now);
                if over || late {
                    self.note(phase, now, !over);
                    // What does not come in one phase does not in the next.
                    if late && !over {
                        return Ok(Next::End);
                    }
                    self.state = State::Resting(now);
                } else {
                    self.state = State::Under(phase);
                }
            }
            State::Resting(since)
                if self.left.is_empty() || self.is_resting(now) || self.is_late(since, now) =>
            {
                self.next(now)?;
            }
            State::Resting(since) => self.state = State::Resting(since),
            State::Doubling { joins, since } => self.double(joins, since, now)?,
        }
        Ok(Next::GoOn)
    }

    /// Whether something has taken as long as it may.
    fn is_late(&self, since: f64, now: f64) -> bool {
        now - since > self.wanted.limit.as_secs_f64()
    }

    fn look_at_daemon(&mut self, now: f64) {
        let spent = self.bed.spent().daemon.unwrap_or(0.0);
        if spent - self.daemon > BUSY * (now - self.looked) {
            self.busy = now;
        }
        self.daemon = spent;
    }

    /// Whether the daemon has nothing to do: it may think for long before it changes anything.
    fn is_resting(&self, now: f64) -> bool {
        now - self.busy > RESTS
    }

    /// Sends what is still to be sent; the moment at which the last of it was taken counts.
    fn jobs_done(&mut self, now: f64) -> Result<(), Trouble> {
        if self.jobs.iter().any(|job| !job.is_finished()) || self.jobs.is_empty() {
            return Ok(());
        }
        self.taken = Some(now - self.event);
        let done: Vec<Job> = self.jobs.drain(..).collect();
        done.into_iter().try_for_each(ended).map_err(Trouble::device)
    }

    fn note(&mut self, phase: Phase, now: f64, cut_short: bool) {
        let kernel = self.kernel.last().filter(|at| *at >= self.event).map(|at| at - self.event);
        let spent = self.bed.spent().since(self.spent);
        let taken = self.taken.take();
        self.seen.push(Seen { phase, event: self.event, until: now, kernel, taken, spent, cut_short });
    }

    /// The next phase begins, or nothing more does.
    fn next(&mut self, now: f64) -> Result<(), Trouble> {
        let Some(phase) = self.left.pop() else { return Ok(()) };
        self.state = match phase {
            Phase::Failure if self.second.is_none() => {
                self.left.push(phase);
                State::Doubling { joins: Some(self.joins()?), since: now }
            }
            Phase::Failure => {
                let failure = self.bed.link_failure();
                self.jobs
                    .push(job(move || failure.happen().map_err(|e| e.to_string())).map_err(Trouble::tester)?);
                State::Under(phase)
            }
            Phase::Announce => {
                self.jobs.push(self.source.announce().map_err(Trouble::tester)?);
                State::Under(phase)
            }
            Phase::Withdraw => {
                // The first link may have failed.
                let job = match &self.second {
                    Some(peer) => peer.withdraw(),
                    None => self.source.withdraw(),
                };
                self.jobs.push(job.map_err(Trouble::tester)?);
                State::Under(phase)
            }
        };
        if let State::Under(phase) = &self.state {
            self.view.doing(phase.name());
            self.event = self.clock.elapsed().as_secs_f64();
            self.spent = self.bed.spent();
        }
        Ok(())
    }

    /// The sessions over the second link, which come while frames flow.
    fn joins(&mut self) -> Result<mpsc::Receiver<Result<Peer, String>>, Trouble> {
        let [_, link] = &LINKS;
        let listening = Listening::start(&self.bed.peer(), self.bed.peer_system(), link, self.table);
        let listening = listening.map_err(Trouble::tester)?;
        let (give, take) = mpsc::channel();
        // Its end is the channel's.
        let accepts = job(move || {
            let _ = give.send(listening.accept());
            Ok(())
        });
        accepts.map(drop).map_err(Trouble::tester)?;
        self.view.doing("the same table over a second link");
        Ok(take)
    }

    /// Goes on when the table has come over the second link and the kernel's is quiet.
    fn double(
        &mut self,
        joins: Option<mpsc::Receiver<Result<Peer, String>>>,
        since: f64,
        now: f64,
    ) -> Result<(), Trouble> {
        let waits = |since| State::Doubling { joins: None, since };
        if let Some(joins) = joins {
            match joins.try_recv() {
                Ok(peer) => {
                    let peer = peer.map_err(Trouble::device)?;
                    self.event = now;
                    self.jobs.push(peer.announce().map_err(Trouble::tester)?);
                    self.second = Some(peer);
                    self.state = waits(now);
                }
                Err(mpsc::TryRecvError::Empty) => self.state = State::Doubling { joins: Some(joins), since },
                Err(mpsc::TryRecvError::Disconnected) => {
                    return Err(Trouble::tester("a thread of the lab failed".into()));
                }
            }
            return Ok(());
        }
        if let Some(peer) = &self.second {
            peer.alive().map_err(Trouble::device)?;
        }
        let changed = self.kernel.last().unwrap_or(0.0);
        let settled =
            changed > since && now - changed > RESTS && self.is_resting(now) || self.is_late(since, now);
        if !self.jobs.is_empty() || !settled {
            self.state = waits(since);
            return Ok(());
        }
        self.next(now)
    }
}

/// The daemon alone: from the announcement until it has nothing to do any more.
///
/// # Errors
///
/// As [`watch`].
pub fn alone(
    wanted: &Wanted,
    table: &Table,
    bed: &mut RoutingBed,
    view: &mut View,
) -> Result<Vec<Seen>, Trouble> {
    let source = Source::open(bed, wanted.daemon, table).map_err(Trouble::device)?;
    let mut seen = Vec::new();
    for phase in wanted.phases.iter().copied().filter(|phase| *phase != Phase::Failure) {
        view.doing(phase.name());
        let before = bed.spent();
        let began = Instant::now();
        let under_way = if phase == Phase::Announce { source.announce() } else { source.withdraw() };
        let mut under_way = Some(under_way.map_err(Trouble::tester)?);
        let (mut spent, mut last) = (before.daemon.unwrap_or(0.0), 0.0);
        let cut_short = loop {
            std::thread::sleep(Duration::from_millis(20));
            let now = began.elapsed();
            if !view.progress(None) {
                return Err(Trouble { words: "interrupted".into(), exit: Exit::Interrupted });
            }
            bed.alive().map_err(|e| Trouble::device(e.to_string()))?;
            source.alive().map_err(Trouble::device)?;
            // A tick now and then is a timer's.
            if let Some(now_spent) = bed.spent().daemon.filter(|now| now - spent > 0.015) {
                (spent, last) = (now_spent, now.as_secs_f64());
            }
            if let Some(done) = under_way.take_if(|job| job.is_finished()) {
                ended(done).map_err(Trouble::device)?;
            }
            let late = now > wanted.limit;
            if late || under_way.is_none() && now.as_secs_f64() - last > QUIET {
                break late;
            }
        };
        let total = bed.spent().since(before);
        seen.push(Seen {
            phase,
            event: 0.0,
            until: last,
            kernel: None,
            taken: None,
            spent: total,
            cut_short,
        });
        if cut_short {
            break;
        }
    }
    Ok(seen)
}
