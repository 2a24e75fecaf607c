//! What is known of a station: one word, in VPP's order.

use std::fmt;

use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;

/// Which station of which domain: the MAC address, and the domain's index below it. 0 is none.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug, Default)]
pub struct Key(pub(crate) u64);

impl Key {
    /// A station of a domain.
    #[inline(always)]
    pub fn new(mac: MacAddress, domain: u16) -> Self {
        Key(mac.to_u64() << 16 | u64::from(domain))
    }

    /// A station of domain 0, by [`MacAddress::to_u64`].
    #[inline(always)]
    pub(crate) fn of_number(mac: u64) -> Key {
        Key(mac << 16)
    }

    /// The same station, of a domain; this key is of domain 0.
    #[inline(always)]
    pub fn within(self, domain: u16) -> Key {
        Key(self.0 | u64::from(domain))
    }

    /// The station's address.
    pub fn mac(self) -> MacAddress {
        MacAddress::from_u64(self.0 >> 16)
    }

    /// The domain's index.
    pub fn domain(self) -> u16 {
        self.0 as u16
    }
}

/// What is known of a station.
///
/// From the lowest bit on: the interface (32), flags (8), the minute it was last heard in (8), and the number that tells
/// whether it was learned before a flush (16). Never 0.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Entry(pub(crate) u64);

impl Entry {
    /// The network does not change it.
    pub const STATIC: u8 = 1;
    /// It does not age: an operator entered it.
    pub const AGE_NOT: u8 = 1 << 1;
    /// It is the address of the interface where the domain's packets are routed.
    pub const BVI: u8 = 1 << 2;
    /// Frames from and to it are dropped.
    pub const FILTER: u8 = 1 << 3;
    /// It was learned, and clients are to get an event.
    pub const LEARN_EVENT: u8 = 1 << 4;
    /// It moved, and clients are to get an event.
    pub const LEARN_MOVE: u8 = 1 << 5;

    /// A station behind an interface.
    #[inline(always)]
    pub fn new(interface: SwIfIndex, flags: u8, minute: u8, sequence: u16) -> Self {
        Entry(
            u64::from(interface.0)
                | u64::from(flags) << 32
                | u64::from(minute) << 40
                | u64::from(sequence) << 48,
        )
    }

    /// Where the station is; none of a filter.
    #[inline(always)]
    pub fn interface(self) -> SwIfIndex {
        SwIfIndex(self.0 as u32)
    }

    /// Its flags.
    #[inline(always)]
    pub fn flags(self) -> u8 {
        (self.0 >> 32) as u8
    }

    /// Whether it has any of these flags.
    #[inline(always)]
    pub fn has(self, flags: u8) -> bool {
        self.flags() & flags != 0
    }

    /// When it was last heard, in minutes.
    #[inline(always)]
    pub fn minute(self) -> u8 {
        (self.0 >> 40) as u8
    }

    /// The domain's and the interface's number at that time.
    #[inline(always)]
    pub fn sequence(self) -> u16 {
        (self.0 >> 48) as u16
    }

    /// The same with other flags.
    #[must_use]
    pub fn with_flags(self, flags: u8) -> Self {
        Entry::new(self.interface(), flags, self.minute(), self.sequence())
    }

    /// Whether the network entered it.
    #[inline(always)]
    pub fn is_learned(self) -> bool {
        !self.has(Entry::AGE_NOT)
    }
}

/// What is known of stations that were learned at one interface since the last flush, whenever that was and whether or not
/// clients are to hear of it.
#[derive(Clone, Copy)]
pub(crate) struct SettledEntry(u64);

impl SettledEntry {
    /// What minutes and clients' flags make no difference to.
    const SAME: u64 = u32::MAX as u64 | (Entry::AGE_NOT as u64) << 32 | (u16::MAX as u64) << 48;

    #[inline(always)]
    pub(crate) fn new(interface: SwIfIndex, sequence: u16) -> Self {
        SettledEntry(Entry::new(interface, 0, 0, sequence).0)
    }

    /// Whether an entry is one of these.
    #[inline(always)]
    pub(crate) fn is(self, entry: Entry) -> bool {
        (self.0 ^ entry.0) & Self::SAME == 0
    }
}

/// The names of the flags that are set, as VPP's traces have them.
pub(crate) struct FlagNames(pub(crate) u8);

impl fmt::Display for FlagNames {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const NAMES: [(u8, &str); 6] = [
            (Entry::STATIC, "static"),
            (Entry::AGE_NOT, "age-not"),
            (Entry::BVI, "bvi"),
            (Entry::FILTER, "filter"),
            (Entry::LEARN_EVENT, "learn-event"),
            (Entry::LEARN_MOVE, "learn-move"),
        ];
        if self.0 == 0 {
            return f.write_str("none");
        }
        NAMES.iter().filter(|(bit, _)| self.0 & bit != 0).try_for_each(|(_, name)| write!(f, "{name} "))
    }
}
