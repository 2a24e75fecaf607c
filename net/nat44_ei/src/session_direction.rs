//! What is kept of one direction of a session: how its packets are rewritten. A session is two of them, each found by the inside
//! or the outside address and port alone.

use shoal_nat::tuple::ICMP;
use shoal_nat::{Delta, Kind, Rewrite, Tuple};

/// What kind of session it is, and which direction this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks(pub u8);

impl Marks {
    /// This direction leads inside.
    pub const INWARD: u8 = 1;
    /// Made by a static mapping.
    pub const STATIC: u8 = 1 << 1;
    /// Packets are looked up in the table of the other direction's key.
    pub const OTHER_TABLE: u8 = 1 << 2;
    /// A packet went this way.
    pub const USED: u8 = 1 << 3;

    /// Whether one of these is set.
    #[inline(always)]
    pub const fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }
}

/// One direction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SessionDirection {
    address: u32,
    port: u16,
    transport: u16,
    addresses: u16,
    /// What it is.
    pub marks: Marks,
    spare: u8,
    /// The number of the other direction's entry. Both come and go together.
    pub peer: u32,
    /// The tick at which the session became its host's last used one.
    pub moved: u32,
    /// Packets so far.
    pub packets: u32,
    bytes_low: u32,
    bytes_high: u32,
}

const _: () = assert!(size_of::<SessionDirection>() == 32);

impl SessionDirection {
    /// From an address and port to another.
    pub fn new(from: (u32, u16), to: (u32, u16), protocol: u8, marks: u8) -> Self {
        let addresses = Delta::NONE.long(from.0, to.0);
        // RFC 792: ICMP's checksum has no pseudo header.
        let ports = if protocol == ICMP { Delta::NONE } else { addresses };
        SessionDirection {
            address: to.0,
            port: to.1,
            transport: ports.word(from.1, to.1).to_bits(),
            addresses: addresses.to_bits(),
            marks: Marks(marks),
            spare: 0,
            peer: u32::MAX,
            moved: 0,
            packets: 0,
            bytes_low: 0,
            bytes_high: 0,
        }
    }

    /// The address and port packets leave with.
    #[inline(always)]
    pub fn to(&self) -> (u32, u16) {
        (self.address, self.port)
    }

    /// What is done to a packet.
    #[inline(always)]
    pub fn rewrite(&self, tuple: Tuple, kind: Kind) -> Rewrite {
        let to = replace(tuple, self.to(), self.marks.has(Marks::INWARD), kind == Kind::Query);
        Rewrite {
            to,
            addresses: Delta::from_bits(self.addresses),
            transport: Delta::from_bits(self.transport),
        }
    }

    /// A packet.
    #[inline(always)]
    pub fn count(&mut self, bytes: usize) {
        self.packets = self.packets.wrapping_add(1);
        let (low, carry) = self.bytes_low.overflowing_add(bytes as u32);
        self.bytes_low = low;
        self.bytes_high = self.bytes_high.wrapping_add(u32::from(carry));
    }

    /// Goes on counting from here.
    pub fn set_counts(&mut self, packets: u32, bytes: u64) {
        self.packets = packets;
        (self.bytes_high, self.bytes_low) = ((bytes >> 32) as u32, bytes as u32);
    }

    /// Bytes so far.
    pub fn bytes(&self) -> u64 {
        u64::from(self.bytes_high) << 32 | u64::from(self.bytes_low)
    }
}

/// A tuple with another destination (`inward`) or source. An ICMP query has its identifier in both ports.
#[inline(always)]
pub fn replace(tuple: Tuple, (address, port): (u32, u16), inward: bool, is_query: bool) -> Tuple {
    let mut to = tuple;
    if inward {
        (to.dst, to.dport) = (address, port);
    } else {
        (to.src, to.sport) = (address, port);
    }
    if is_query {
        (to.sport, to.dport) = (port, port);
    }
    to
}
