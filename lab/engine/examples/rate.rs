//! How exactly does the engine send, and what does it reach, over a memif or at a device?
//!
//!   rate [SECONDS]                     a memif within this process
//!   rate [SECONDS] SOCKET LEFT RIGHT   a device that is master of memif 0 and 1, with these MACs
//!
//! For 1 k, 100 k and 1 M frames a second: how long sending took against how long it should have, lateness, and a histogram
//! of the gaps between frames as they were handed over; then the self-test. A device is expected to route 10.0.0.0/24 and
//! 10.0.1.0/24. Run it with `--release`.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::print_stdout, clippy::panic)]

use std::path::Path;
use std::time::Duration;

use shoal_lab_engine::{
    Clock, Drops, Engine, Flushed, MachineClock, MemifPort, PortError, Received, SelfTest, Transport,
    self_test,
};
use shoal_lab_plan::{
    Checksums, Pace, Rate, Side, Stamps, Stream, Tag, Tester as _, Trial, Unwatched, Verdict,
};

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
            let gap = now - std::mem::replace(&mut self.last, now);
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

/// 64 bytes with FCS: UDP from one side's network to the other's.
fn stream(from: Side, device: [u8; 6]) -> Stream {
    let (near, far) = if from == Side::Left { (0, 1) } else { (1, 0) };
    let mut frame: Vec<u8> = device.into();
    frame.extend([2, 0, 0, 0, 0, 2 - near, 8, 0, 0x45, 0, 0, 46, 0, 0, 0, 0, 64, 17, 0, 0]);
    frame.extend([10, 0, near, 2, 10, 0, far, 2, 0xc0, 0x20, 0, 7, 0, 26, 0, 0]);
    frame.resize(60, 0);
    let sum: u32 = frame[14..34].chunks(2).map(|b| u32::from(b[0]) << 8 | u32::from(b[1])).sum();
    let sum = !((sum & 0xffff) + (sum >> 16)) as u16;
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    // The checksum of UDP is 0, which is none.
    Stream {
        name: format!("{from:?}"),
        from,
        frame,
        changes: Vec::new(),
        checksums: Checksums { ip4: true, l4: false },
        tag: Tag::Signed { offset: 42 },
        pace: Pace::Steady { rate: Rate::per_second(1), after: Duration::ZERO },
        stamps: Stamps::All,
        expected: true,
        answers: None,
    }
}

fn mac(text: &str) -> [u8; 6] {
    let bytes: Vec<u8> = text.split(':').map(|b| u8::from_str_radix(b, 16).unwrap()).collect();
    bytes.try_into().unwrap()
}

fn main() {
    let args: Vec<String> = std::env::args().skip(1).collect();
    let seconds = args.first().map_or(10, |s| s.parse().unwrap());
    let (ports, macs) = match &args[args.len().min(1)..] {
        [] => (MemifPort::pair().unwrap(), [[2, 0, 0, 0, 0, 1]; 2]),
        [socket, left, right] => {
            let attach = |id| MemifPort::attach(Path::new(socket), id).unwrap();
            ([attach(0), attach(1)], [mac(left), mac(right)])
        }
        _ => panic!("rate [SECONDS [SOCKET LEFT-MAC RIGHT-MAC]]"),
    };
    let clock = MachineClock::calibrated();
    let [left, right] = ports.map(|port| Gauge { port, clock: clock.clone(), last: 0, gaps: [0; 40] });
    println!("clock {}, wire {}", clock.source(), left.name());
    let mut engine = Engine::new(left, right, clock);
    let streams = || -> Vec<Stream> { Side::BOTH.map(|side| stream(side, macs[side.index()])).into() };
    for (id, fps) in [1_000, 100_000, 1_000_000].into_iter().enumerate() {
        let mut streams = streams();
        for stream in &mut streams {
            stream.pace = Pace::Steady { rate: Rate::per_second(fps), after: Duration::ZERO };
        }
        let mut trial = Trial::new(id as u16 + 1, streams, Duration::from_secs(seconds));
        (trial.burst, trial.timeout) = (4, Duration::from_millis(500));
        let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
        // The last frame is due one frame's time before the end.
        let took = outcome.took.as_secs_f64() + 1.0 / fps as f64;
        let ppm = (took / seconds as f64 - 1.0) * 1e6;
        println!(
            "{fps} fps a side for {seconds} s: {ppm:+.3} ppm, {:?}",
            Verdict::of(&trial, &outcome, 2048)
        );
        for stream in &outcome.streams {
            let (c, d) = (&stream.counts, stream.delays.as_ref().unwrap());
            let (min, mean, max) = (d.min, d.mean, d.max);
            println!(
                "  {}: {} sent, {} received, {} retries; delay {min} / {mean:.0} / {max} ns",
                stream.name, c.sent, c.received, c.retries
            );
        }
        let late = outcome.lateness;
        println!("  late {:?} at most, {:?} p99.9, {} at once", late.max, late.p999, late.most_burst);
        println!(
            "  {} stalls, longest {:?}, {:.2} % stolen; clock {:+.3} ppm",
            outcome.stall_count,
            outcome.longest_stall,
            outcome.stolen * 100.0,
            engine.clock_check().ppm
        );
        for (power, count) in engine.ports()[0].gaps.iter().enumerate().filter(|(_, n)| **n > 0) {
            println!("  gap below {:>10} ns: {count}", 1u64 << power);
        }
    }
    let mut test = SelfTest::quick(streams());
    test.first_id = 100;
    let ceiling = self_test(&mut engine, &test, &mut Unwatched).unwrap();
    println!("{}: ceiling {} fps a side ({} trials)", engine.facts().transport, ceiling.rate, ceiling.trials);
    for floor in &ceiling.floor {
        let (min, mean, max, looks) = (floor.min, floor.mean, floor.max, floor.uncertainty);
        println!("  floor at a tenth of it: {min} / {mean:.0} / {max} ns, looked every {looks} ns");
    }
}
