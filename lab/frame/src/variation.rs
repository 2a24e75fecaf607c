//! What varies from frame to frame: ports, networks, hosts, MACs, as RFC 2544 and RFC 4814 want it.

use shoal_lab_plan::{Change, Order, Side, Variable, Write};

use crate::error::FrameError;
use crate::layout::Layout;
use crate::random::{join, number};

/// RFC 4814 section 4.5: recommended source ports.
pub const SOURCE_PORTS: (u16, u16) = (1024, 65_535);
/// RFC 4814 section 4.5: recommended destination ports.
pub const DESTINATION_PORTS: (u16, u16) = (1, 49_151);

/// How a 16-bit field goes through a range: siitperf's 0 to 3.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Field {
    /// `None`: it does not vary. Random is uniform.
    pub order: Option<Order>,
    /// The smallest value, included.
    pub min: u16,
    /// The largest, included.
    pub max: u16,
}

impl Field {
    /// Does not vary; the range is kept for later.
    pub const fn fixed((min, max): (u16, u16)) -> Self {
        Field { order: None, min, max }
    }

    /// Varies over a range.
    pub const fn varying(order: Order, (min, max): (u16, u16)) -> Self {
        Field { order: Some(order), min, max }
    }

    /// siitperf's numbers: 0 fixed, 1 rising, 2 falling, 3 random.
    ///
    /// # Errors
    ///
    /// Another number.
    pub fn order_of(what: &str, number: u8) -> Result<Option<Order>, FrameError> {
        FrameError::within(what, u64::from(number), 0, 3)?;
        Ok(match number {
            0 => None,
            1 => Some(Order::Rising),
            2 => Some(Order::Falling),
            _ => Some(Order::Random),
        })
    }

    /// How many values it takes.
    pub fn count(self) -> u64 {
        if self.order.is_none() { 1 } else { u64::from(self.max.saturating_sub(self.min)) + 1 }
    }

    /// The change that writes it at `offset`, if it varies. Falling begins at the largest.
    pub(crate) fn change(self, offset: usize, seed: u64) -> Option<Change> {
        let (min, max) = (u64::from(self.min), u64::from(self.max));
        let order = self.order?;
        let first = if order == Order::Falling { max } else { min };
        let variable = Variable { order, min, max, first, step: 1, list: Vec::new(), seed };
        Some(Change { variable, writes: vec![Write::whole(offset as u16, 2)] })
    }

    /// # Errors
    ///
    /// An empty range.
    pub(crate) fn check(self, what: &str) -> Result<(), FrameError> {
        let (max, min) = (u64::from(self.max), u64::from(self.min));
        FrameError::within(&format!("the largest {what}"), max, min, u64::from(u16::MAX))
    }
}

/// Ports of what one side sends (RFC 4814).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Ports {
    /// Source ports.
    pub source: Field,
    /// Destination ports.
    pub destination: Field,
}

impl Default for Ports {
    fn default() -> Self {
        Ports { source: Field::fixed(SOURCE_PORTS), destination: Field::fixed(DESTINATION_PORTS) }
    }
}

impl Ports {
    /// Both random over RFC 4814's ranges.
    pub const fn random() -> Self {
        Ports {
            source: Field::varying(Order::Random, SOURCE_PORTS),
            destination: Field::varying(Order::Random, DESTINATION_PORTS),
        }
    }
}

/// Many hosts at one side: 16 bits of their address vary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Hosts {
    /// The values of the two bytes.
    pub field: Field,
    /// Which two bytes of an IPv4 address, from 1 to 2.
    pub offset4: u8,
    /// Which two bytes of an IPv6 address, from 6 to 14.
    pub offset6: u8,
}

impl Hosts {
    /// # Errors
    ///
    /// An offset outside of an address's host part, an empty range.
    pub(crate) fn check(self, side: Side) -> Result<(), FrameError> {
        let side = if side == Side::Left { "left" } else { "right" };
        let what = |rest: &str| format!("{rest} of the {side} hosts");
        FrameError::within(&what("the IPv4 offset"), u64::from(self.offset4), 1, 2)?;
        FrameError::within(&what("the IPv6 offset"), u64::from(self.offset6), 6, 14)?;
        self.field.check(&what("value"))
    }
}

/// Which address of a packet.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum End {
    Source,
    Destination,
}

/// Where in the frame byte `offset4` or `offset6` of an address is.
pub(crate) fn address_byte(layout: &Layout, end: End, offset4: u8, offset6: u8) -> usize {
    let addresses = layout.addresses();
    let start = match end {
        End::Source => addresses.start,
        End::Destination => addresses.start + addresses.len() / 2,
    };
    start + usize::from(if layout.is_ip4 { offset4 } else { offset6 })
}

/// The change that takes the destination network at random (RFC 2544 section 12): the third octet, or byte 7 of IPv6.
pub(crate) fn networks(layout: &Layout, count: u16, seed: u64) -> Option<Change> {
    let max = u64::from(count).checked_sub(1).filter(|max| *max > 0)?;
    let offset = address_byte(layout, End::Destination, 2, 7);
    let variable = Variable { order: Order::Random, min: 0, max, first: 0, step: 1, list: Vec::new(), seed };
    Some(Change { variable, writes: vec![Write::whole(offset as u16, 1)] })
}

/// The change that takes a MAC at `offset` from `count` random ones of a side, with group and local bits clear
/// (RFC 4814 section 4.2). Both directions take the same, so that a bridge learns them.
pub(crate) fn macs(offset: u16, of: Side, count: u32) -> Change {
    let seed = join(0x004d_4143, of.index() as u64);
    let list = (0..u64::from(count)).map(|i| number(seed, i) & 0xfcff_ffff_ffff).collect();
    let variable = Variable { order: Order::Random, min: 0, max: 0, first: 0, step: 1, list, seed };
    Change { variable, writes: mac_writes(offset) }
}

/// The change that takes the MAC at `offset` from `list`, one after the other.
pub(crate) fn listed_macs(offset: u16, list: Vec<u64>) -> Change {
    let variable = Variable { order: Order::Rising, min: 0, max: 0, first: 0, step: 1, list, seed: 0 };
    Change { variable, writes: mac_writes(offset) }
}

/// A MAC's two writes: a number's low six bytes.
fn mac_writes(offset: u16) -> Vec<Write> {
    vec![Write { shift: -32, ..Write::whole(offset, 2) }, Write::whole(offset + 2, 4)]
}
