//! What is kept of one direction of a session: how its packets are rewritten. A session is two of them, each found by the tuple
//! that its packets come with; together with keys, timers and index a session takes some 140 bytes.

use shoal_flow::Timeout;
use shoal_nat::{Delta, Rewrite, Tuple};

use crate::tcp::State;

/// What kind of session it is, and which direction this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks(pub u8);

impl Marks {
    /// This direction leads inside.
    pub const INWARD: u8 = 1;
    /// Made by a static mapping.
    pub const STATIC: u8 = 1 << 1;
    /// The outside host is hidden from the inside one, too.
    pub const TWICE: u8 = 1 << 2;
    /// Its back end was chosen among several.
    pub const BALANCED: u8 = 1 << 3;
    /// Nothing is translated: the session says that its packets pass.
    pub const BYPASS: u8 = 1 << 4;
    /// Packets are looked up in the table of the other direction's key.
    pub const OTHER_TABLE: u8 = 1 << 5;
    /// Both hosts are inside.
    pub const HAIRPIN: u8 = 1 << 6;
    /// Made by an output feature, whose packets have been looked up already.
    pub const OUTPUT: u8 = 1 << 7;

    /// Whether one of these is set.
    #[inline(always)]
    pub const fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }

    /// Whether it says only that packets pass to hosts.
    #[inline(always)]
    pub const fn passes_in(self) -> bool {
        self.has(Marks::BYPASS) && self.has(Marks::INWARD)
    }

    /// Whether its packets are translated when they go out.
    #[inline(always)]
    pub const fn waits_for_output(self) -> bool {
        self.has(Marks::OUTPUT) && !self.has(Marks::INWARD)
    }
}

/// One direction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SessionDirection {
    src: u32,
    dst: u32,
    sport: u16,
    dport: u16,
    transport: u16,
    addresses: u16,
    /// The number of the other direction's entry. Both come and go together.
    pub peer: u32,
    /// What it is.
    pub marks: Marks,
    /// Which timeout it has; of TCP, the flags that this direction has sent.
    pub state: State,
    bytes_high: u16,
    bytes_low: u32,
    /// Packets so far.
    pub packets: u32,
}

const _: () = assert!(size_of::<SessionDirection>() == 32);

impl SessionDirection {
    /// From a tuple to another.
    pub fn new(from: Tuple, to: Tuple, protocol: u8, marks: u8, state: State) -> Self {
        let rewrite = Rewrite::new(from, to, protocol);
        let Tuple { src, dst, sport, dport } = to;
        SessionDirection {
            src,
            dst,
            sport,
            dport,
            transport: rewrite.transport.to_bits(),
            addresses: rewrite.addresses.to_bits(),
            peer: u32::MAX,
            marks: Marks(marks),
            state,
            bytes_high: 0,
            bytes_low: 0,
            packets: 0,
        }
    }

    /// The tuple packets leave with.
    #[inline(always)]
    pub fn to(&self) -> Tuple {
        let SessionDirection { src, dst, sport, dport, .. } = *self;
        Tuple { src, dst, sport, dport }
    }

    /// What is done to packets.
    #[inline(always)]
    pub fn rewrite(&self) -> Rewrite {
        let (addresses, transport) = (Delta::from_bits(self.addresses), Delta::from_bits(self.transport));
        Rewrite { to: self.to(), addresses, transport }
    }

    /// Which timeout the session has.
    #[inline(always)]
    pub fn timeout(&self) -> Timeout {
        self.state.timeout()
    }

    /// A packet.
    #[inline(always)]
    pub fn count(&mut self, bytes: usize) {
        self.packets = self.packets.wrapping_add(1);
        let (low, carry) = self.bytes_low.overflowing_add(bytes as u32);
        self.bytes_low = low;
        self.bytes_high = self.bytes_high.wrapping_add(u16::from(carry));
    }

    /// Goes on counting from here.
    pub fn set_counts(&mut self, packets: u64, bytes: u64) {
        self.packets = packets as u32;
        (self.bytes_high, self.bytes_low) = ((bytes >> 32) as u16, bytes as u32);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        u64::from(self.bytes_high) << 32 | u64::from(self.bytes_low)
    }
}
