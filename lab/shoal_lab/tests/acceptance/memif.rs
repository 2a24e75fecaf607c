//! A real wire: a memif whose two ends are in this process, and the machine's own clock. Counts are asserted, never speed.
//!
//! `cargo test --release -p shoal-lab --test acceptance -- --ignored --nocapture memif` prints how exactly was sent.

use std::time::Duration;

use shoal_lab_engine::{
    Clock as _, Drops, Engine, Flushed, MachineClock, MemifPort, PortError, Received, Transport,
};
use shoal_lab_measure::{Offer, Traffic as _};
use shoal_lab_plan::{Side, Stamps, Tally, Trial, Unwatched};

use crate::stage::*;

/// A port that notes when frames are taken.
struct Gauge {
    port: MemifPort,
    clock: MachineClock,
    last: u64,
    /// Gaps by powers of two of nanoseconds.
    gaps: [u64; 40],
}

impl Transport for Gauge {
    fn kind(&self) -> &'static str {
        self.port.kind()
    }

    fn name(&self) -> String {
        self.port.name()
    }

    fn ring(&self) -> u32 {
        self.port.ring()
    }

    fn most_frame(&self) -> usize {
        self.port.most_frame()
    }

    fn receive(&mut self, most: usize, take: &mut impl FnMut(Received<'_>)) -> Result<usize, PortError> {
        self.port.receive(most, take)
    }

    fn send(
        &mut self,
        length: usize,
        most: usize,
        write: &mut impl FnMut(&mut [u8]),
    ) -> Result<usize, PortError> {
        self.port.send(length, most, write)
    }

    fn flush(&mut self) -> Result<Flushed, PortError> {
        let flushed = self.port.flush()?;
        if flushed.accepted > 0 {
            let now = self.clock.now();
            let gap = now.saturating_sub(std::mem::replace(&mut self.last, now));
            self.gaps[(64 - gap.leading_zeros()).min(39) as usize] += 1;
        }
        Ok(flushed)
    }

    fn drops(&mut self) -> Result<Drops, PortError> {
        self.port.drops()
    }

    fn tend(&mut self) {
        self.port.tend();
    }

    fn is_attached(&self) -> bool {
        self.port.is_attached()
    }

    fn begin(&mut self, moment: u64) {
        (self.last, self.gaps) = (moment, [0; 40]);
    }
}

fn wire() -> Engine<Gauge, MachineClock> {
    let clock = MachineClock::calibrated();
    let [left, right] =
        MemifPort::pair().unwrap().map(|port| Gauge { port, clock: clock.clone(), last: 0, gaps: [0; 40] });
    Engine::new(left, right, clock)
}

#[test]
#[ignore = "slow: make lab-proof"]
fn each_frame_is_accounted_for_over_a_real_memif() {
    let mut engine = wire();
    for (id, rate) in [(1, 997), (2, 20_011)] {
        let streams = both().streams(&Offer::steady(rate).stamped(Stamps::All)).unwrap();
        let mut trial = Trial::new(id, streams, seconds(3));
        trial.timeout = ms(500);
        let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
        for side in Side::BOTH {
            let counts = outcome.direction(side);
            assert_eq!((counts.requested, counts.sent, counts.received), (3 * rate, 3 * rate, 3 * rate));
            assert_eq!((counts.duplicates, counts.reordered, counts.corrupt, counts.stray), (0, 0, 0, 0));
            assert_eq!(counts.bytes, 64 * 3 * rate);
        }
        let delays: Vec<_> = outcome.streams.iter().filter_map(|s| s.delays.as_ref()).collect();
        assert!(delays.len() == 2 && delays.iter().all(|d| d.count == 3 * rate && d.negative == 0));
        assert_eq!(outcome.ports, [Tally::default(); 2]);
    }
}

#[test]
#[ignore = "slow: make lab-proof"]
fn exactly_the_due_frames_are_asked_for_at_each_rate_for_ten_seconds() {
    let mut engine = wire();
    for (id, rate) in [(1, 1_000), (2, 100_000), (3, 1_000_000)] {
        let mut trial = Trial::new(id, forward().streams(&Offer::steady(rate)).unwrap(), seconds(10));
        (trial.burst, trial.timeout) = (1, ms(500));
        let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
        let counts = outcome.direction(Side::Left);
        assert_eq!((counts.requested, outcome.planned), (10 * rate, Duration::from_secs(10)));
        assert!(counts.sent <= counts.requested && counts.received <= counts.sent, "{counts:?}");
        // The last frame is due one frame's time before the end.
        let took = outcome.took.as_secs_f64() + 1.0 / rate as f64;
        let late = outcome.lateness;
        println!(
            "{rate} fps for 10 s: {:+.3} ppm, {} of {} sent, {} received",
            (took / 10.0 - 1.0) * 1e6,
            counts.sent,
            counts.requested,
            counts.received
        );
        println!("  late {:?} at most, {:?} p99.9, {} at once", late.max, late.p999, late.most_burst);
        println!("  {} stalls, longest {:?}", outcome.stall_count, outcome.longest_stall);
        for (power, count) in engine.ports()[0].gaps.iter().enumerate().filter(|(_, n)| **n > 0) {
            println!("  gap below {:>10} ns: {count}", 1_u64 << power);
        }
    }
}
