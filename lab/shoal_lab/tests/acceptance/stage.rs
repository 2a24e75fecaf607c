//! What the proofs share: the engine around a device, traffic of real frames, a journal that keeps all, time that passes at
//! once.

use std::io;
use std::time::Duration;

use shoal_lab_engine::{Behaviour, Control, Engine, SimulatedClock, SyntheticPort};
use shoal_lab_frame as frame;
use shoal_lab_measure::{
    Case, Journal, LearningTraffic, MeasureError, Offer, Precision, Preset, Runner, StatefulTraffic, Time,
    Traffic, TrialProcedure,
};
use shoal_lab_plan::{Addresses, Family, Link, Order, Pace, Rate, Side, Stamps, Stream, TrialLine};

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

pub fn seconds(seconds: u64) -> Duration {
    Duration::from_secs(seconds)
}

/// A wire with a speed of its own, so that results are not marked as a virtual link's.
const LINK: Link = Link { bits_per_second: 10_000_000_000, is_virtual: false };

pub type Simulated = Engine<SyntheticPort<SimulatedClock>, SimulatedClock>;

/// The engine around a device that behaves so.
pub fn engine(behaviour: Behaviour) -> Simulated {
    Engine::simulated(behaviour).with_link(LINK)
}

/// The same, and what changes the device while tests run.
pub fn controlled(behaviour: Behaviour) -> (Simulated, Control) {
    let mut engine = engine(behaviour);
    let control = engine.ports()[0].control();
    (engine, control)
}

/// Frames of `lab/frame` at the times that a test wants.
pub struct Real {
    streams: Vec<Stream>,
    size: u32,
    sides: Vec<Side>,
}

impl Real {
    pub fn of(streams: Vec<Stream>, size: u32, direction: frame::Direction) -> Real {
        Real { streams, size, sides: direction.sides().to_vec() }
    }
}

impl Traffic for Real {
    fn streams(&self, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        let mut streams = self.streams.clone();
        for stream in &mut streams {
            // A stream with stamps of its own has its own rate, too: the thesis's latency stream.
            if stream.stamps != Stamps::None {
                continue;
            }
            if let Pace::Steady { rate, .. } = stream.pace {
                stream.pace = offer.share(rate.frames, rate.seconds);
                stream.stamps = offer.stamps;
            }
        }
        Ok(streams)
    }

    fn size(&self) -> u32 {
        self.size
    }

    fn sides(&self) -> Vec<Side> {
        self.sides.clone()
    }
}

/// RFC 2544's frames, with RFC 4814's random ports.
pub fn rfc2544(family: Family, size: u32, direction: frame::Direction) -> frame::Traffic {
    let addresses = Addresses::default();
    let macs = frame::Macs::new(&addresses, Some([2, 0, 0, 0, 0, 1]), Some([2, 0, 0, 0, 0, 2]));
    let mut traffic = frame::Traffic::new(family, size, addresses, macs);
    (traffic.direction, traffic.ports) = (direction, [frame::Ports::random(); 2]);
    traffic
}

pub fn traffic(family: Family, size: u32, direction: frame::Direction) -> Real {
    let streams = rfc2544(family, size, direction).streams(Rate::per_second(1)).unwrap();
    Real::of(streams, size, direction)
}

/// 64 bytes of IPv4 in both directions.
pub fn both() -> Real {
    traffic(Family::Ip4, 64, frame::Direction::Both)
}

/// 64 bytes of IPv4 from left to right.
pub fn forward() -> Real {
    traffic(Family::Ip4, 64, frame::Direction::Forward)
}

/// RFC 9693's frames: tuples of 1,000 source ports and 100 destination ports.
pub struct Connections(frame::StatefulTraffic);

pub fn connections() -> Connections {
    let mut traffic = rfc2544(Family::Ip4, 64, frame::Direction::Both);
    traffic.ports[0] = frame::Ports {
        source: frame::Field::varying(Order::Rising, (1_024, 2_023)),
        destination: frame::Field::varying(Order::Rising, (1, 100)),
    };
    Connections(frame::StatefulTraffic { traffic, initiator: Side::Left })
}

fn told(error: frame::FrameError) -> MeasureError {
    MeasureError::Traffic(error.to_string())
}

impl StatefulTraffic for Connections {
    fn fill(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        let stream = self.0.preliminary(tuples, Rate::per_second(rate), Order::Permutation);
        Ok(vec![stream.map_err(told)?])
    }

    fn check(&self, tuples: u64, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        Ok(vec![self.0.validation(tuples, Rate::per_second(rate)).map_err(told)?])
    }

    fn over(&self, tuples: u64, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        let one = Rate::per_second(1);
        let mut streams = vec![
            self.0.again(tuples, one, Order::Rising).map_err(told)?,
            self.0.answers(one, Order::Random).map_err(told)?,
        ];
        for stream in &mut streams {
            (stream.pace, stream.stamps) = (offer.pace.clone(), offer.stamps);
        }
        Ok(streams)
    }

    fn size(&self) -> u32 {
        64
    }
}

/// RFC 2889's frames: addresses on the left.
pub struct OnTheLeft(frame::LearningTraffic);

pub fn on_the_left() -> OnTheLeft {
    // A bridge has no MACs of its own.
    let macs = frame::Macs::new(&Addresses::default(), None, None);
    let traffic = frame::Traffic { macs, ..rfc2544(Family::Ip4, 64, frame::Direction::Forward) };
    OnTheLeft(frame::LearningTraffic { traffic, at: Side::Left })
}

impl LearningTraffic for OnTheLeft {
    fn learn(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        Ok(vec![self.0.learn(addresses, Rate::per_second(rate)).map_err(told)?])
    }

    fn ask(&self, addresses: u32, rate: u64) -> Result<Vec<Stream>, MeasureError> {
        self.0.ask(addresses, Rate::per_second(rate)).map_err(told)
    }
}

/// 64 bytes of IPv4 from left to right, all broadcasts.
pub fn broadcast() -> Real {
    let traffic = rfc2544(Family::Ip4, 64, frame::Direction::Forward).all_broadcast();
    Real::of(traffic.streams(Rate::per_second(1)).unwrap(), 64, frame::Direction::Forward)
}

/// Keeps all trials, and does something after each.
#[derive(Default)]
pub struct Kept<'k> {
    pub lines: Vec<TrialLine>,
    pub after: Option<Box<dyn FnMut(usize) + 'k>>,
}

impl Journal for Kept<'_> {
    fn trial(&mut self, line: &TrialLine) -> io::Result<()> {
        self.lines.push(line.clone());
        if let Some(after) = &mut self.after {
            after(self.lines.len());
        }
        Ok(())
    }
}

/// Passes when it is waited for.
struct NoTime(Duration);

impl Time for NoTime {
    fn now(&self) -> f64 {
        self.0.as_secs_f64()
    }

    fn passed(&self) -> Duration {
        self.0
    }

    fn rest(&mut self, length: Duration) {
        self.0 += length;
    }
}

/// As the RFCs ask, but one run of trials of two seconds.
pub fn strict() -> TrialProcedure {
    TrialProcedure {
        runs: 1,
        duration: seconds(2),
        precision: Precision::Absolute(1),
        rest: Duration::ZERO,
        settle: Duration::ZERO,
        start_delay: ms(10),
        ..Preset::Strict.conduct()
    }
}

/// Runs `test` over an engine and gives what it gave, and the trials.
pub fn over<T>(
    engine: &mut Simulated,
    conduct: TrialProcedure,
    test: impl FnOnce(&mut Runner<'_>) -> T,
) -> (T, Vec<TrialLine>) {
    watched(engine, conduct, Kept::default(), test)
}

/// The same, with a journal that does something after each trial.
pub fn watched<T>(
    engine: &mut Simulated,
    conduct: TrialProcedure,
    mut kept: Kept<'_>,
    test: impl FnOnce(&mut Runner<'_>) -> T,
) -> (T, Vec<TrialLine>) {
    let mut time = NoTime(Duration::ZERO);
    let case = Case { dut: "synthetic".into(), workers: 1, transport: "synthetic".into(), ..Case::default() };
    let value = {
        let mut runner = Runner::new(engine, &mut kept, &mut time, case, conduct).unwrap();
        test(&mut runner)
    };
    (value, kept.lines)
}

/// Runs `test` at a device that behaves so.
pub fn run<T>(behaviour: Behaviour, conduct: TrialProcedure, test: impl FnOnce(&mut Runner<'_>) -> T) -> T {
    over(&mut engine(behaviour), conduct, test).0
}

/// Whether two numbers differ by no more than `within`, told if not.
#[track_caller]
pub fn near(found: f64, wanted: f64, within: f64) {
    assert!((found - wanted).abs() <= within, "{found} found, {wanted} within {within} wanted");
}
