//! Netlink messages of the kernel about routes and next hops, read as views of
//! their bytes (linux/netlink.h, linux/rtnetlink.h, linux/nexthop.h).
//!
//! Numbers are in the byte order of the host, as the kernel's. What is too short for what it says is left out: nothing here
//! panics.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use crate::{HostNextHop, HostPath};

mod route;

pub use route::{OtherFamily, RTM_DELROUTE, RTM_NEWROUTE, RTMSG, RouteView, host_route};

/// Bytes of `nlmsghdr`.
pub const HEADER: usize = 16;
/// Bytes of `nhmsg`.
const NHMSG: usize = 8;

/// A next hop or group is there, or is another one now.
pub const RTM_NEWNEXTHOP: u16 = 104;
/// A next hop or group is gone.
pub const RTM_DELNEXTHOP: u16 = 105;
/// Asks for next hops.
pub const RTM_GETNEXTHOP: u16 = 106;

const RTA_OIF: u16 = 4;
const RTA_GATEWAY: u16 = 5;
const RTA_VIA: u16 = 18;
const RTA_ENCAP_TYPE: u16 = 21;

const NHA_ID: u16 = 1;
const NHA_GROUP: u16 = 2;
const NHA_GROUP_TYPE: u16 = 3;
const NHA_BLACKHOLE: u16 = 4;
const NHA_OIF: u16 = 5;
const NHA_GATEWAY: u16 = 6;
const NHA_ENCAP_TYPE: u16 = 7;
const NHA_RES_GROUP: u16 = 12;
/// In it.
const NHA_RES_GROUP_BUCKETS: u16 = 1;
/// `NEXTHOP_GRP_TYPE_RES`.
const RESILIENT: u16 = 1;

/// Bits of an attribute's type that say how its value is written.
const TYPE: u16 = 0x3fff;

/// A number of 16 bits.
pub fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

/// A number of 32 bits.
pub fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

/// Rounded up to where the next one begins.
pub fn aligned(len: usize) -> usize {
    len.next_multiple_of(4)
}

/// Attributes: their types and values.
pub struct Attributes<'a>(pub &'a [u8]);

impl<'a> Iterator for Attributes<'a> {
    type Item = (u16, &'a [u8]);

    fn next(&mut self) -> Option<(u16, &'a [u8])> {
        let (len, kind) = (usize::from(u16_at(self.0, 0)?), u16_at(self.0, 2)?);
        let value = self.0.get(4..len)?;
        self.0 = self.0.get(aligned(len)..).unwrap_or_default();
        Some((kind & TYPE, value))
    }
}

/// An address of either family.
pub fn address(bytes: &[u8]) -> Option<IpAddr> {
    match bytes.len() {
        4 => Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(bytes).ok()?))),
        16 => Some(IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(bytes).ok()?))),
        _ => None,
    }
}

/// The address of a neighbour in another family than the route's: `rtvia`.
fn via(bytes: &[u8]) -> Option<IpAddr> {
    address(bytes.get(2..)?)
}

/// The attributes that name one next hop.
#[derive(Default)]
pub struct Single {
    /// The kernel's number of the interface.
    pub interface: Option<u32>,
    /// The neighbour.
    pub next_hop: Option<IpAddr>,
    /// Labels or segments are to be put before the packet.
    pub wrapped: bool,
}

impl Single {
    /// Takes an attribute of a route (`RTA_`); nothing if its value is too short.
    pub fn take(&mut self, kind: u16, value: &[u8]) -> Option<()> {
        match kind {
            RTA_OIF => self.interface = Some(u32_at(value, 0)?),
            RTA_GATEWAY => self.next_hop = Some(address(value)?),
            RTA_VIA => self.next_hop = Some(via(value)?),
            RTA_ENCAP_TYPE => self.wrapped = true,
            _ => {}
        }
        Some(())
    }

    /// The next hop; nothing if it is of a kind that there is not here.
    pub fn path(&self, weight: u8) -> Option<HostPath> {
        let host_index = self.interface.filter(|_| !self.wrapped)?;
        Some(HostPath { host_index, next_hop: self.next_hop, weight })
    }
}

/// The next hop that a message without its header names, and its number; nothing if the message contradicts itself.
pub fn next_hop(body: &[u8]) -> Option<(u32, HostNextHop)> {
    let (mut id, mut single, mut hop) = (None, Single::default(), None);
    let (mut is_resilient, mut buckets) = (false, 0);
    for (kind, value) in Attributes(body.get(NHMSG..)?) {
        match kind {
            NHA_ID => id = Some(u32_at(value, 0)?),
            NHA_GROUP => hop = Some(HostNextHop::Group(value.chunks_exact(8).filter_map(member).collect())),
            NHA_GROUP_TYPE => is_resilient = u16_at(value, 0)? == RESILIENT,
            NHA_RES_GROUP => buckets = buckets_of(value).unwrap_or(0),
            NHA_BLACKHOLE => hop = Some(HostNextHop::Blackhole),
            NHA_OIF => single.interface = Some(u32_at(value, 0)?),
            NHA_GATEWAY => single.next_hop = Some(address(value)?),
            NHA_ENCAP_TYPE => single.wrapped = true,
            _ => {}
        }
    }
    if let Some(HostNextHop::Group(members)) = hop.take_if(|_| is_resilient) {
        hop = Some(HostNextHop::Resilient(members, buckets));
    }
    let one = || single.path(1).map_or(HostNextHop::Unknown, HostNextHop::One);
    Some((id?, hop.unwrap_or_else(one)))
}

/// How many buckets a resilient group has. Its timers are not looked at: what they wait for is traffic that the kernel does not see.
fn buckets_of(value: &[u8]) -> Option<u16> {
    let (_, buckets) = Attributes(value).find(|(kind, _)| *kind == NHA_RES_GROUP_BUCKETS)?;
    u16_at(buckets, 0)
}

/// A member of a group and its share: `nexthop_grp`, whose weight is one less, in 8 bits or 16.
fn member(bytes: &[u8]) -> Option<(u32, u32)> {
    let &[_, _, _, _, low, high, ..] = bytes else { return None };
    Some((u32_at(bytes, 0)?, u32::from(u16::from_le_bytes([low, high])) + 1))
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::*;

    pub(super) fn attribute(kind: u16, value: &[u8]) -> Vec<u8> {
        let mut bytes = [(value.len() as u16 + 4).to_ne_bytes(), kind.to_ne_bytes()].concat();
        bytes.extend(value);
        bytes.resize(aligned(bytes.len()), 0);
        bytes
    }

    /// A group of 7 and of 8, which has three shares.
    fn group(more: &[Vec<u8>]) -> Vec<u8> {
        let member = |id: u32, weight: u8| [&id.to_ne_bytes()[..], &[weight, 0, 0, 0]].concat();
        let members = [member(7, 0), member(8, 2)].concat();
        let all = [attribute(NHA_ID, &3_u32.to_ne_bytes()), attribute(NHA_GROUP, &members)];
        [&[0; NHMSG][..], &all.concat(), &more.concat()].concat()
    }

    #[test]
    fn a_group_is_resilient_if_it_says_so_with_the_buckets_that_it_says() {
        let members = vec![(7, 1), (8, 3)];
        let buckets = attribute(NHA_RES_GROUP_BUCKETS, &512_u16.to_ne_bytes());
        let timer = attribute(2, &1000_u32.to_ne_bytes());
        // The kernel marks it as nested.
        let resilience = attribute(NHA_RES_GROUP | 0x8000, &[timer.clone(), buckets].concat());
        let kind = |kind: u16| attribute(NHA_GROUP_TYPE, &kind.to_ne_bytes());
        let read = |more: &[Vec<u8>]| next_hop(&group(more)).map(|(_, hop)| hop);
        let resilient = |buckets| Some(HostNextHop::Resilient(members.clone(), buckets));
        assert_eq!(read(&[]), Some(HostNextHop::Group(members.clone())));
        assert_eq!(read(&[kind(0), resilience.clone()]), Some(HostNextHop::Group(members.clone())));
        assert_eq!(read(&[kind(RESILIENT), resilience.clone()]), resilient(512));
        assert_eq!(read(&[resilience.clone(), kind(RESILIENT)]), resilient(512));
        // Without a number, or with half of one.
        assert_eq!(read(&[kind(RESILIENT)]), resilient(0));
        assert_eq!(read(&[kind(RESILIENT), attribute(NHA_RES_GROUP, &timer)]), resilient(0));
        let half = attribute(NHA_RES_GROUP_BUCKETS, &[1]);
        assert_eq!(read(&[kind(RESILIENT), attribute(NHA_RES_GROUP, &half)]), resilient(0));
        assert_eq!(read(&[attribute(NHA_GROUP_TYPE, &[1])]), None);
        let whole = group(&[kind(RESILIENT), resilience]);
        for len in 0..whole.len() {
            let _ = next_hop(&whole[..len]);
        }
    }
}
