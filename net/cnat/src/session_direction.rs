//! What is kept of one direction of a session: how its packets are rewritten. A session is two of them, each found by the tuple that
//! its packets come with.

use shoal_nat::{Delta, Ip6Rewrite, Rewrite};

use crate::tcp::State;

/// Where a packet comes from and where it goes, of either family: an IPv4 address has 32 bits. An ICMP echo has its identifier in both
/// ports.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Tuple {
    /// Source address.
    pub src: u128,
    /// Destination address.
    pub dst: u128,
    /// Source port.
    pub sport: u16,
    /// Destination port.
    pub dport: u16,
}

impl Tuple {
    /// That of the answers.
    #[must_use]
    #[inline(always)]
    pub const fn reversed(self) -> Self {
        Tuple { src: self.dst, dst: self.src, sport: self.dport, dport: self.sport }
    }

    /// The same of an IPv4 packet.
    pub const fn ip4(self) -> shoal_nat::Tuple {
        shoal_nat::Tuple { src: self.src as u32, dst: self.dst as u32, sport: self.sport, dport: self.dport }
    }
}

/// What kind of session it is, and which direction this is.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Marks(pub u8);

impl Marks {
    /// This direction is that of the answers.
    pub const RETURN: u8 = 1;
    /// Made by a translation: the destination becomes a back end.
    pub const DESTINATION: u8 = 1 << 1;
    /// Made by the policy: the source becomes a shared address.
    pub const SOURCE: u8 = 1 << 2;
    /// Nothing is translated: the session says that answers pass, too.
    pub const BYPASS: u8 = 1 << 3;
    /// Packets stay as they are and go the way to the back end.
    pub const NO_NAT: u8 = 1 << 4;
    /// It has no direction of answers.
    pub const ALONE: u8 = 1 << 5;
    /// Packets are looked up in the table of the other direction's key.
    pub const OTHER_TABLE: u8 = 1 << 6;

    /// Whether one of these is set.
    #[inline(always)]
    pub const fn has(self, marks: u8) -> bool {
        self.0 & marks != 0
    }
}

/// No translation, no other direction.
pub const NONE: u32 = u32::MAX;

/// One direction.
#[derive(Clone, Copy, Debug)]
#[repr(C)]
pub struct SessionDirection {
    /// Addresses in halves, so that a flow's entry needs no more than eight bytes of alignment.
    src: [u64; 2],
    dst: [u64; 2],
    sport: u16,
    dport: u16,
    /// What the rewrite does to checksums.
    addresses: u16,
    transport: u16,
    /// The number of the other direction's entry. Both come and go together.
    pub peer: u32,
    /// The translation that made it.
    pub translation: u32,
    /// That translation's serial number: another may have its number by now.
    pub serial: u32,
    /// What it is.
    pub marks: Marks,
    /// Of TCP: the flags that this direction has sent.
    pub state: State,
}

const fn halves(of: u128) -> [u64; 2] {
    [(of >> 64) as u64, of as u64]
}

const fn whole([high, low]: [u64; 2]) -> u128 {
    (high as u128) << 64 | low as u128
}

impl SessionDirection {
    /// From a tuple to another.
    pub fn new(
        is_ip6: bool,
        (from, to): (Tuple, Tuple),
        protocol: u8,
        marks: u8,
        translation: (u32, u32),
    ) -> Self {
        let (addresses, transport) = if is_ip6 {
            let addresses = Delta::NONE.wide(from.src, to.src).wide(from.dst, to.dst);
            (addresses, addresses.word(from.sport, to.sport).word(from.dport, to.dport))
        } else {
            let rewrite = Rewrite::new(from.ip4(), to.ip4(), protocol);
            (rewrite.addresses, rewrite.transport)
        };
        SessionDirection {
            src: halves(to.src),
            dst: halves(to.dst),
            sport: to.sport,
            dport: to.dport,
            addresses: addresses.to_bits(),
            transport: transport.to_bits(),
            peer: NONE,
            translation: translation.0,
            serial: translation.1,
            marks: Marks(marks),
            state: State::default(),
        }
    }

    /// The tuple packets leave with.
    #[inline(always)]
    pub fn to(&self) -> Tuple {
        let SessionDirection { src, dst, sport, dport, .. } = *self;
        Tuple { src: whole(src), dst: whole(dst), sport, dport }
    }

    /// What is done to IPv4 packets.
    #[inline(always)]
    pub fn rewrite(&self) -> Rewrite {
        let (addresses, transport) = (Delta::from_bits(self.addresses), Delta::from_bits(self.transport));
        Rewrite { to: self.to().ip4(), addresses, transport }
    }

    /// What is done to IPv6 packets of TCP and UDP without extension headers.
    #[inline(always)]
    pub fn rewrite6(&self) -> Ip6Rewrite {
        let (addresses, transport) = (Delta::from_bits(self.addresses), Delta::from_bits(self.transport));
        let Tuple { src, dst, sport, dport } = self.to();
        Ip6Rewrite { src, dst, sport, dport, addresses, transport }
    }
}
