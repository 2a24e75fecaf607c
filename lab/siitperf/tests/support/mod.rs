//! A tester that sends nothing and answers as it is told.
#![allow(dead_code, clippy::unwrap_used, reason = "each test file uses a part of this")]

use std::time::Duration;

use shoal_lab_plan::{
    CoreUse, Counts, Delays, Learnt, Link, Outcome, Pace, Processors, Stamps, StreamOutcome, Tester,
    TesterError, TesterFacts, Trial, Watch,
};
use shoal_lab_siitperf::{Finished, Options, Program, run};

/// A configuration of a stateless translator between IPv6 and IPv4, with comments where people put them.
pub const CONF: &str = "
# The left speaks IPv6, the right IPv4.
IP-L-Vers 6 # what the left sends
IP-R-Vers 4

IPv6-L-Real 2001:2:0:0::2
IPv6-L-Virt ::              # not used
IPv6-R-Real 2001:2:0:8000::2
IPv6-R-Virt 2001:2:0:1000::2
IPv4-L-Real 0.0.0.0
\tIPv4-L-Virt 198.18.0.2
IPv4-R-Real 198.19.0.2
IPv4-R-Virt 0.0.0.0
MAC-L-Tester 02:00:00:00:00:01
MAC-R-Tester 02:00:00:00:00:02#close
MAC-L-DUT 02:00:00:00:00:0a
MAC-R-DUT 02:0B:0C:0D:0E:0F
Forward 1
Reverse 1
Promisc 0
Num-L-Nets 1
Num-R-Nets 1
CPU-L-Send 2
CPU-R-Recv 4
CPU-R-Send 6
CPU-L-Recv 8
MEM-Channels 2
";

/// A source NAT from left to right, 40 x 10 tuples in random order.
pub const STATEFUL: &str = "
IP-L-Vers 4
IP-R-Vers 4
IPv4-L-Real 198.18.0.2
IPv4-R-Real 198.19.0.2
Fwd-var-sport 3
Fwd-var-dport 3
Fwd-sport-min 1
Fwd-sport-max 40
Fwd-dport-min 1
Fwd-dport-max 10
Stateful 1
Enumerate-ports 3
Responder-tuples 3
";

/// What the stand-in does, and what it was asked for.
pub struct StandIn {
    pub trials: Vec<Trial>,
    /// Of each stream, lost.
    pub lose: u64,
    /// Sending takes this much longer, in microseconds.
    pub overrun: u64,
    pub learn: u64,
    /// Delays that are reported, of streams that are stamped.
    pub delays: Delays,
    pub fail: bool,
    /// Others take this share of the tester's processor.
    pub taken: f64,
}

impl StandIn {
    pub fn new() -> Self {
        StandIn {
            trials: Vec::new(),
            lose: 0,
            overrun: 0,
            learn: u64::MAX,
            delays: Delays::default(),
            fail: false,
            taken: 0.0,
        }
    }
}

impl Tester for StandIn {
    fn facts(&self) -> TesterFacts {
        let link = Link::default();
        TesterFacts { transport: "stand-in".to_owned(), link, smallest_ring: 256, most_frame: 9216 }
    }

    fn run(&mut self, trial: &Trial, _: &mut dyn Watch) -> Result<Outcome, TesterError> {
        self.trials.push(trial.clone());
        if self.fail {
            return Err(TesterError::Interrupted);
        }
        let streams = trial.streams.iter().map(|stream| {
            let requested = match &stream.pace {
                Pace::Steady { rate, .. } => rate.frames_in(trial.duration.as_nanos() as u64),
                Pace::Bursts { frames, .. } => *frames,
                Pace::Steps { .. } => 0,
            };
            let received = requested - self.lose;
            StreamOutcome {
                name: stream.name.clone(),
                from: Some(stream.from),
                size: stream.frame.len() as u32 + 4,
                expected: true,
                counts: Counts { requested, sent: requested, received, ..Counts::default() },
                delays: (stream.stamps != Stamps::None).then(|| self.delays.clone()),
                ..StreamOutcome::default()
            }
        });
        Ok(Outcome {
            trial: trial.id,
            streams: streams.collect(),
            planned: trial.duration,
            took: trial.duration + Duration::from_micros(self.overrun),
            learnt: trial
                .learn
                .map(|(_, most)| Learnt { tuples: self.learn.min(most.into()), ..Learnt::default() }),
            processors: Some(Processors {
                cores: vec![CoreUse { others: self.taken, ..CoreUse::default() }],
                ..Processors::default()
            }),
            ..Outcome::default()
        })
    }
}

pub fn finish(program: Program, args: &str, conf: &str, tester: &mut StandIn) -> Finished {
    let args: Vec<String> = args.split_whitespace().map(ToOwned::to_owned).collect();
    run(program, &args, conf, &Options::default(), tester, &mut shoal_lab_plan::Unwatched)
}

/// What `grep PATTERN | awk '{print $COLUMN}'` gives.
pub fn awk(text: &str, pattern: &str, column: usize) -> Vec<String> {
    let lines = text.lines().filter(|line| line.contains(pattern));
    lines.map(|line| line.split_whitespace().nth(column - 1).unwrap().to_owned()).collect()
}
