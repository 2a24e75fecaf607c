//! What came of a trial.

use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::{Processors, Side};

/// What came of a trial: numbers only. What they mean, [`Verdict::of`](crate::Verdict::of) says.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Outcome {
    /// The trial's id.
    pub trial: u16,
    /// One for each stream of the trial, in its order.
    pub streams: Vec<StreamOutcome>,
    /// What arrived or was lost by the tester at each port, belonging to no stream: left, right.
    pub ports: [Tally; 2],
    /// How long sending took, from the first frame that was due to the last that was sent.
    pub took: Duration,
    /// How long it should have taken.
    pub planned: Duration,
    /// How late frames were sent.
    pub lateness: Lateness,
    /// Passes of the engine's loop that took more than 50 us: the longest hundred.
    pub stalls: Vec<Stall>,
    /// How many there were.
    pub stall_count: u64,
    /// Longest time in which nothing was received although the tester did not look.
    pub longest_stall: Duration,
    /// Time the hypervisor took from this machine's processors during the trial, as a share of one processor.
    pub stolen: f64,
    /// Who had the processors meanwhile; none where no account was taken, as in simulated time.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub processors: Option<Processors>,
    /// Frames a time, if they were asked for.
    pub samples: Vec<Sample>,
    /// Tuples learnt and what was wrong with them, if some were to be learnt.
    pub learnt: Option<Learnt>,
}

/// What a stateful test learnt.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Learnt {
    /// Tuples in the table.
    pub tuples: u64,
    /// Two flows were translated to the same tuple.
    pub not_unique: u64,
    /// A flow's translation changed.
    pub not_stable: u64,
    /// Answers that did not come back to the flow's own tuple.
    pub not_restored: u64,
    /// Flows of which no frame arrived.
    pub never_answered: u64,
    /// Up to ten of them, for people.
    pub examples: Vec<String>,
}

/// What came of one stream.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct StreamOutcome {
    /// The stream's name.
    pub name: String,
    /// Where it was sent; `None` only in a default value.
    pub from: Option<Side>,
    /// Bytes of a frame, with FCS.
    pub size: u32,
    /// Whether its loss is a loss.
    pub expected: bool,
    /// The frames.
    pub counts: Counts,
    /// Delays, if frames were stamped.
    pub delays: Option<Delays>,
    /// The longest time without a frame.
    pub gap: Option<Gap>,
    /// When the last frame that never arrived was sent, since the start.
    pub last_lost: Option<Duration>,
}

/// Frames of a stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Counts {
    /// What should be sent.
    pub requested: u64,
    /// What the port took.
    pub sent: u64,
    /// Tries that the port refused; each was made again.
    pub retries: u64,
    /// Taken by the port and then told to be lost, by the kernel or the device.
    pub lost_sending: u64,
    /// Different sequence numbers that arrived; frames, if they have none.
    pub received: u64,
    /// Bytes of them, with FCS, as they arrived.
    pub bytes: u64,
    /// Came more than once.
    pub duplicates: u64,
    /// Came after a later one (RFC 4737's definition).
    pub reordered: u64,
    /// Looked at whole and found wrong: lengths, checksums, payload.
    pub corrupt: u64,
    /// Came at the wrong port, or with addresses that the device should not have made.
    pub stray: u64,
    /// Came later than the frame timeout: not among the received.
    pub late: u64,
}

impl Counts {
    /// Frames that were sent and did not arrive. Duplicates repair nothing.
    pub fn lost(&self) -> u64 {
        self.sent.saturating_sub(self.received)
    }

    /// The share of them, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn loss(&self) -> f64 {
        if self.sent == 0 { 0.0 } else { self.lost() as f64 / self.sent as f64 }
    }
}

/// What a port saw that belongs to no stream.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Tally {
    /// Frames of another trial.
    pub stale: u64,
    /// Frames without a tag: ARP, neighbour discovery, LLDP.
    pub other: u64,
    /// Lost in the tester's own ring: the trial is then invalid.
    pub lost_receiving: u64,
}

/// Delays of a stream's frames, in nanoseconds. Lost frames are not among them: the test adds its penalty.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Delays {
    /// How many.
    pub count: u64,
    /// The smallest.
    pub min: u64,
    /// The largest.
    pub max: u64,
    /// The true mean.
    pub mean: f64,
    /// Delays less than 0, counted and taken as 0.
    pub negative: u64,
    /// For [`Stamps::Even`](crate::Stamps::Even): each tag's delay in order of tags; lost ones are `None`.
    pub tags: Vec<Option<u64>>,
    /// For [`Stamps::All`](crate::Stamps::All): value and how often, rising, 3 significant digits.
    pub histogram: Vec<(u64, u64)>,
    /// Differences of the delays of neighbours that both arrived (IPDV, RFC 3393), as in `histogram`, negatives too.
    pub variation: Vec<(i64, u64)>,
    /// RFC 3550 A.8's jitter at the end, its previous transit beginning at 0 as T-Rex does.
    pub jitter: f64,
    /// T-Rex's average: half the last, half the window's mean, for each half second.
    pub trex_average: f64,
    /// How long the tester could have left a frame lying, and how long its port took to take frames, at any moment of which they
    /// may have gone out: the sum of both 99th percentiles.
    pub uncertainty: u64,
}

/// The longest time in which nothing of a stream arrived.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Gap {
    /// When the last frame before it arrived, since the start.
    pub from: Duration,
    /// When the first after it arrived.
    pub to: Duration,
    /// Frames sent in between that never arrived.
    pub lost: u64,
}

/// How late frames were sent.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Lateness {
    /// The most.
    pub max: Duration,
    /// 999 of 1,000 were earlier.
    pub p999: Duration,
    /// The most frames sent at once.
    pub most_burst: u32,
}

/// A pass of the engine's loop that took long.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Stall {
    /// When, since the start.
    pub at: Duration,
    /// How long.
    pub length: Duration,
}

/// Frames of a piece of time, over all streams of each side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Sample {
    /// The end of the piece, since the start.
    pub at: Duration,
    /// Sent at left, right.
    pub sent: [u64; 2],
    /// Of those sent at left, right: arrived in this piece at the other side.
    pub received: [u64; 2],
    /// Bytes of the received, with FCS.
    pub bytes: [u64; 2],
    /// Of those sent at left, right in this piece: never arrived. 0 while the trial runs, and for frames without numbers.
    #[serde(default)]
    pub lost: [u64; 2],
}

impl Outcome {
    /// Sums over the streams that one side sent and that are expected to arrive.
    pub fn direction(&self, from: Side) -> Counts {
        let mut sum = Counts::default();
        for stream in self.streams.iter().filter(|s| s.from == Some(from) && s.expected) {
            let c = &stream.counts;
            sum.requested += c.requested;
            sum.sent += c.sent;
            sum.retries += c.retries;
            sum.lost_sending += c.lost_sending;
            sum.received += c.received;
            sum.bytes += c.bytes;
            sum.duplicates += c.duplicates;
            sum.reordered += c.reordered;
            sum.corrupt += c.corrupt;
            sum.stray += c.stray;
            sum.late += c.late;
        }
        sum
    }

    /// What others took of the processors, as a share of the time; 0 where no account was taken.
    pub fn taken(&self) -> f64 {
        self.processors.as_ref().map_or(0.0, Processors::taken)
    }

    /// Of the frames that one side should send: how many did not arrive in the planned time. A wire with back-pressure (memif, a
    /// full ring) loses nothing but refuses, so frames that it never took count, and of those that arrived the share that came
    /// after the time.
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "a share of a count"
    )]
    pub fn missing_from(&self, side: Side) -> u64 {
        let counts = self.direction(side);
        let (planned, took) = (self.planned.as_secs_f64(), self.took.as_secs_f64());
        let in_time = if took > planned { planned / took } else { 1.0 };
        counts.requested.saturating_sub((counts.received as f64 * in_time).round() as u64)
    }

    /// The same of both sides.
    pub fn missing(&self) -> u64 {
        Side::BOTH.map(|side| self.missing_from(side)).iter().sum()
    }

    /// The same as a share of what should be sent, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn missing_share(&self) -> f64 {
        let requested: u64 = Side::BOTH.map(|side| self.direction(side).requested).iter().sum();
        if requested == 0 { 0.0 } else { self.missing() as f64 / requested as f64 }
    }

    /// The share lost over all directions, 0 to 1.
    #[expect(clippy::cast_precision_loss, reason = "a ratio")]
    pub fn loss(&self) -> f64 {
        let both = Side::BOTH.map(|side| self.direction(side));
        let sent: u64 = both.iter().map(|c| c.sent).sum();
        let lost: u64 = both.iter().map(Counts::lost).sum();
        if sent == 0 { 0.0 } else { lost as f64 / sent as f64 }
    }
}
