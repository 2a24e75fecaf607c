//! Translations: a virtual address and port, and the back ends behind it, as packets see them.

use std::fmt;
use std::net::IpAddr;

use shoal_fib::FlowFields;
use shoal_nat::maglev::{self, NONE};

/// An address of a family, as it is written.
pub fn address(is_ip6: bool, bits: u128) -> IpAddr {
    if is_ip6 { IpAddr::V6(bits.into()) } else { IpAddr::V4((bits as u32).into()) }
}

/// An address as a number: IPv4's has 32 bits.
pub fn bits(address: IpAddr) -> u128 {
    match address {
        IpAddr::V4(address) => address.to_bits().into(),
        IpAddr::V6(address) => address.to_bits(),
    }
}

/// How a new connection gets its back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub enum LbType {
    /// By its flow's hash, among all that can be reached.
    #[default]
    Default,
    /// By Maglev's table: few connections move when back ends come and go, and routers side by side agree.
    Maglev,
}

impl fmt::Display for LbType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(if *self == LbType::Maglev { "maglev" } else { "default" })
    }
}

/// What is special about a translation. Bits are VPP's.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Flags(pub u8);

impl Flags {
    /// Clients get another source port, whether theirs is free or not, where a back end says the source.
    pub const ALLOC_PORT: u8 = 1;
    /// Answers do not come by this router.
    pub const NO_RETURN_SESSION: u8 = 4;
    /// There is no route to the address: packets that features see are translated, no others.
    pub const NO_CLIENT: u8 = 8;
    /// All that mean something.
    pub const ALL: u8 = Self::ALLOC_PORT | Self::NO_RETURN_SESSION | Self::NO_CLIENT;

    /// Whether one is set.
    pub const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// A back end.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Backend {
    /// What becomes the source; `None`: it stays.
    pub source: Option<u128>,
    /// The source port; 0: it stays.
    pub source_port: u16,
    /// What becomes the destination.
    pub destination: u128,
    /// The destination port.
    pub port: u16,
    /// Packets stay as they are and go its way.
    pub no_nat: bool,
}

/// A translation.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Translation {
    /// Its number.
    pub id: u32,
    /// A number that no other translation ever had.
    pub serial: u32,
    /// Whether it is for IPv6.
    pub is_ip6: bool,
    /// What is special about it.
    pub flags: Flags,
    /// Which fields of a packet choose the back end.
    pub fields: FlowFields,
    /// Back ends whose addresses are known.
    pub backends: Vec<Backend>,
    /// Of Maglev: which of them each place has.
    table: Vec<u16>,
}

/// Places of Maglev's table looked at for a back end that can be reached, before all back ends are counted.
const TRIES: usize = 16;

impl Translation {
    /// A translation whose new connections are spread so. `places`: those of Maglev's table.
    pub fn new(
        (id, serial): (u32, u32),
        is_ip6: bool,
        (flags, fields): (Flags, FlowFields),
        (lb, places): (LbType, u32),
        backends: Vec<Backend>,
    ) -> Self {
        let server =
            |(backend, slot): (&Backend, u16)| (slot, address(is_ip6, backend.destination), backend.port);
        let table = match lb {
            LbType::Default => Vec::new(),
            LbType::Maglev => maglev::table(places, backends.iter().zip(0..NONE).map(server)),
        };
        Translation { id, serial, is_ip6, flags, fields, backends, table }
    }

    /// The back end of a new connection; `None`: none can be reached.
    pub fn pick(&self, hash: u32, is_ready: impl Fn(&Backend) -> bool) -> Option<&Backend> {
        let count = self.backends.len();
        if self.table.is_empty() {
            let first = self.backends.get((hash as usize).checked_rem(count)?)?;
            if is_ready(first) {
                return Some(first);
            }
        } else {
            let first = hash as usize % self.table.len();
            let places = self.table.iter().cycle().skip(first).take(TRIES);
            let mut some = places.filter_map(|slot| self.backends.get(usize::from(*slot)));
            if let Some(backend) = some.find(|backend| is_ready(backend)) {
                return Some(backend);
            }
        }
        // Connections of those that cannot be reached are spread over the others.
        let ready = self.backends.iter().filter(|backend| is_ready(backend)).count();
        let nth = (hash.rotate_left(16) as usize).checked_rem(ready)?;
        self.backends.iter().filter(|backend| is_ready(backend)).nth(nth)
    }

    /// Whether a back end says which source port its connections have: one worker has all of them.
    pub fn is_pinned(&self) -> bool {
        self.backends.iter().any(|backend| backend.source_port != 0)
    }
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    fn of(lb: LbType, count: u16) -> Translation {
        let backend = |n: u16| Backend {
            source: None,
            source_port: 0,
            destination: 0x0a00_0000 + u128::from(n),
            port: 80,
            no_nat: false,
        };
        let backends = (0..count).map(backend).collect();
        Translation::new((0, 1), false, (Flags::default(), FlowFields::DEFAULT), (lb, 1009), backends)
    }

    fn shares(of: &Translation, is_ready: impl Fn(&Backend) -> bool) -> Vec<u32> {
        let mut shares = vec![0; of.backends.len()];
        for hash in 0..10_000_u32 {
            let hash = hash.wrapping_mul(0x9e37_79b1);
            let picked = of.pick(hash, &is_ready).unwrap();
            shares[of.backends.iter().position(|b| b == picked).unwrap()] += 1;
        }
        shares
    }

    #[test]
    fn connections_are_spread_evenly_over_back_ends_that_can_be_reached() {
        for lb in [LbType::Default, LbType::Maglev] {
            let of = of(lb, 4);
            assert!(shares(&of, |_| true).iter().all(|share| (2200..2800).contains(share)), "{lb}");
            let left = shares(&of, |backend| backend.destination & 3 != 2);
            assert_eq!(left[2], 0);
            assert!(left.iter().filter(|share| **share > 2700).count() == 3, "{lb}: {left:?}");
            assert!(of.pick(7, |_| false).is_none());
        }
        assert!(of(LbType::Default, 0).pick(7, |_| true).is_none());
        assert!(of(LbType::Maglev, 0).pick(7, |_| true).is_none());
    }

    #[test]
    fn connections_of_others_stay_when_one_cannot_be_reached() {
        for lb in [LbType::Default, LbType::Maglev] {
            let of = of(lb, 5);
            for hash in 0..5000_u32 {
                let hash = hash.wrapping_mul(0x9e37_79b1);
                let before = of.pick(hash, |_| true).unwrap();
                if before.destination & 7 != 3 {
                    assert_eq!(of.pick(hash, |backend| backend.destination & 7 != 3).unwrap(), before);
                }
            }
        }
    }

    #[test]
    fn few_connections_move_when_maglev_loses_a_back_end() {
        let (before, mut after) = (of(LbType::Maglev, 10), of(LbType::Maglev, 10));
        after.backends.remove(4);
        let (flags, fields) = (Flags::default(), FlowFields::DEFAULT);
        let after = Translation::new((0, 1), false, (flags, fields), (LbType::Maglev, 1009), after.backends);
        let pick = |of: &Translation, hash| of.pick(hash, |_| true).unwrap().destination;
        let moved = (0..1009).filter(|hash| pick(&before, *hash) != pick(&after, *hash)).count();
        assert!(moved < 1009 / 5, "{moved} of 1009 places, a tenth of which had to");
    }
}
