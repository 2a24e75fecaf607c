//! What a synthetic device is to do, and what it says that it did.

use std::net::Ipv4Addr;
use std::time::Duration;

/// What a device does to frames, the same in both directions. By default it is a wire: nothing, at once.
#[derive(Clone, Debug, PartialEq)]
pub struct Behaviour {
    /// Frames a second that it forwards in each direction; none: any number.
    pub capacity: Option<u64>,
    /// Frames that are in it at most in each direction, the one that is being forwarded included; more are dropped. Only where
    /// it has a capacity, or stands still.
    pub queue: usize,
    /// The share of frames that it loses, 0 to 1.
    pub loss: f64,
    /// Time that each frame takes beside waiting and being forwarded.
    pub delay: Duration,
    /// At most so much longer, uniformly, each frame for itself: so frames overtake each other.
    pub jitter: Duration,
    /// The share that it sends twice.
    pub duplicates: f64,
    /// The share that it holds back for [`hold`](Self::hold), so that others overtake them.
    pub reordered: f64,
    /// How long it holds them back.
    pub hold: Duration,
    /// Times in which it stands still and queues.
    pub stalls: Option<Stalls>,
    /// A time since the trial's start, and how long from then on it loses what comes: a reset.
    pub dead: Option<(Duration, Duration)>,
    /// A table of translations from left to right; frames whose tuple does not fit are lost.
    pub nat: Option<NatTable>,
    /// The addresses that it learns as a bridge; none: it looks at no address.
    pub bridge: Option<AddressTable>,
    /// The share in which it changes a byte.
    pub corrupt: f64,
    /// Which byte, counted from the last; 0 is the last.
    pub corrupt_at: usize,
    /// The share that it sends back to where it came from.
    pub looped: f64,
    /// For all shares and jitter.
    pub seed: u64,
}

impl Default for Behaviour {
    fn default() -> Self {
        Behaviour {
            capacity: None,
            queue: 1024,
            loss: 0.0,
            delay: Duration::ZERO,
            jitter: Duration::ZERO,
            duplicates: 0.0,
            reordered: 0.0,
            hold: Duration::ZERO,
            stalls: None,
            dead: None,
            nat: None,
            bridge: None,
            corrupt: 0.0,
            corrupt_at: 0,
            looped: 0.0,
            seed: 1,
        }
    }
}

/// Times in which a device stands still.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Stalls {
    /// When the first begins, since the trial's start.
    pub first: Duration,
    /// From one's beginning to the next's; none: there is one only.
    pub every: Option<Duration>,
    /// How long each lasts.
    pub length: Duration,
}

/// A NAT of UDP and TCP over IPv4.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatTable {
    /// Tuples that fit.
    pub size: usize,
    /// The address that hides the others; ports from 1024 up, further addresses when they are used up.
    pub pool: Ipv4Addr,
    /// What it does wrong, to see whether the tester finds it.
    pub fault: Option<NatFault>,
}

/// What a NAT may do wrong.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NatFault {
    /// Two flows get the same tuple.
    Shared,
    /// A flow gets another tuple with its second frame.
    Moving,
    /// Answers get the port of the flow, plus one.
    Unrestored,
}

/// What a bridge knows of where addresses are.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct AddressTable {
    /// Addresses that fit.
    pub size: usize,
    /// What becomes of one more.
    pub full: WhenFull,
    /// Addresses that it can learn in a second, one of them waiting; frames of others are forwarded and teach nothing. None:
    /// any number.
    pub learns: Option<u64>,
}

/// What a bridge does with a new address when its table is full.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum WhenFull {
    /// It does not learn it.
    Refuse,
    /// It forgets the address that it heard longest ago.
    ForgetOldest,
}

/// What a device did to frames that were sent at one side.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct BehaviourCounts {
    /// Frames that came in.
    pub taken: u64,
    /// Lost by chance.
    pub lost: u64,
    /// Lost because the queue was full.
    pub overrun: u64,
    /// Lost because it was dead.
    pub dead: u64,
    /// Lost because their tuple did not fit, or belongs to no session.
    pub untranslated: u64,
    /// Kept back by a bridge, because their destination is where they came from.
    pub filtered: u64,
    /// Changed.
    pub corrupted: u64,
    /// Sent back.
    pub looped: u64,
    /// Sent once more.
    pub duplicated: u64,
    /// Sent after a frame that came in later, each counted once.
    pub reordered: u64,
    /// Frames that went out at the other side, the second ones of duplicates not counted.
    pub delivered: u64,
}
