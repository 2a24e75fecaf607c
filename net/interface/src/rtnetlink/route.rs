//! Netlink messages about routes (`rtmsg`), read as views of their bytes.

use std::net::IpAddr;

use super::{Attributes, Single, address, aligned, u16_at, u32_at};
use crate::{HostPaths, HostRoute, HostWay};

/// A route is there, or is another one now.
pub const RTM_NEWROUTE: u16 = 24;
/// A route is gone.
pub const RTM_DELROUTE: u16 = 25;

/// Bytes of `rtmsg`.
pub const RTMSG: usize = 12;
/// Bytes of `rtnexthop`.
const RTNEXTHOP: usize = 8;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

const RTA_DST: u16 = 1;
const RTA_PRIORITY: u16 = 6;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_NH_ID: u16 = 30;

const RTN_UNICAST: u8 = 1;
const RTN_BLACKHOLE: u8 = 6;
const RTN_UNREACHABLE: u8 = 7;
const RTN_PROHIBIT: u8 = 8;

/// The next hop is gone.
const RTNH_F_DEAD: u8 = 1;
/// `RTM_F_CLONED`: a path to one host that the kernel keeps in mind.
const CLONED: u32 = 0x200;
/// `RTPROT_KERNEL`: follows from addresses.
const KERNEL: u8 = 2;

/// What a message says of a route.
pub struct RouteView<'a> {
    /// The kernel's table; 254 is the main one.
    pub table: u32,
    /// Where it leads: network and length, which may be more than an address has.
    pub prefix: (IpAddr, u8),
    /// The lowest one of a prefix is used.
    pub metric: u32,
    /// Who made it (`RTPROT_`).
    pub protocol: u8,
    /// The number of its next hop or group.
    pub next_hop_id: Option<u32>,
    /// Of a route of one next hop, that one.
    pub single: Single,
    /// It is for some senders or services only, or no route but a path to one host.
    pub is_special: bool,
    kind: u8,
    hops: Option<&'a [u8]>,
}

/// A family that is not forwarded here.
#[derive(Debug, PartialEq, Eq)]
pub struct OtherFamily;

/// One of the next hops of a route.
pub struct Hop {
    /// Its attributes.
    pub single: Single,
    /// Its share.
    pub weight: u8,
    /// It is gone.
    pub is_dead: bool,
}

impl<'a> RouteView<'a> {
    /// Reads a message without its header; nothing if it contradicts itself.
    pub fn read(body: &'a [u8]) -> Option<Result<Self, OtherFamily>> {
        let &[family, len, source_len, tos, table, protocol, _, kind, ..] = body else { return None };
        let any = match family {
            AF_INET => IpAddr::from([0; 4]),
            AF_INET6 => IpAddr::from([0; 16]),
            _ => return Some(Err(OtherFamily)),
        };
        let attributes = body.get(RTMSG..)?;
        let mut this = RouteView {
            table: u32::from(table),
            prefix: (any, len),
            metric: 0,
            protocol,
            next_hop_id: None,
            single: Single::default(),
            is_special: u32_at(body, 8)? & CLONED != 0 || source_len > 0 || tos > 0,
            kind,
            hops: None,
        };
        for (kind, value) in Attributes(attributes) {
            match kind {
                RTA_DST => this.prefix.0 = address(value).filter(|to| to.is_ipv4() == any.is_ipv4())?,
                RTA_PRIORITY => this.metric = u32_at(value, 0)?,
                RTA_TABLE => this.table = u32_at(value, 0)?,
                RTA_NH_ID => this.next_hop_id = Some(u32_at(value, 0)?),
                RTA_MULTIPATH => this.hops = Some(value),
                _ => this.single.take(kind, value)?,
            }
        }
        let most = if any.is_ipv4() { 32 } else { 128 };
        (len <= most).then_some(Ok(this))
    }

    /// What happens to packets of a route without next hops.
    pub fn without_hops(&self) -> Option<HostWay> {
        match self.kind {
            RTN_BLACKHOLE => Some(HostWay::Blackhole),
            RTN_UNREACHABLE => Some(HostWay::Unreachable),
            RTN_PROHIBIT => Some(HostWay::Prohibit),
            _ => None,
        }
    }

    /// Whether packets of the route leave by next hops.
    pub fn is_unicast(&self) -> bool {
        self.kind == RTN_UNICAST
    }

    /// The next hops of a route that has several, `None` for one that contradicts itself and is the last; nothing if the route has
    /// a single one.
    pub fn hops(&self) -> Option<impl Iterator<Item = Option<Hop>> + use<'a>> {
        let mut rest = self.hops?;
        Some(std::iter::from_fn(move || {
            if rest.is_empty() {
                return None;
            }
            let read = hop(rest);
            rest = read.as_ref().map_or(&[], |(_, rest)| rest);
            Some(read.map(|(hop, _)| hop))
        }))
    }
}

/// The first of several next hops, and what is behind it.
fn hop(bytes: &[u8]) -> Option<(Hop, &[u8])> {
    let len = usize::from(u16_at(bytes, 0)?);
    let hop = bytes.get(..len).filter(|_| len >= RTNEXTHOP)?;
    let &[_, _, flags, share, ..] = hop else { return None };
    let mut single = Single { interface: Some(u32_at(hop, 4)?), ..Single::default() };
    for (kind, value) in Attributes(hop.get(RTNEXTHOP..)?) {
        single.take(kind, value)?;
    }
    let read = Hop { single, weight: share.saturating_add(1), is_dead: flags & RTNH_F_DEAD != 0 };
    Some((read, bytes.get(aligned(len)..).unwrap_or_default()))
}

/// A route of the kernel that a message without its header tells; nothing if it is none that is to be followed: one of another family,
/// one that follows from addresses, one for some packets only, one that contradicts itself. Next hops that are gone, or that put labels
/// or segments before packets, are left out.
pub fn host_route(body: &[u8]) -> Option<HostRoute> {
    let view = RouteView::read(body)?.ok()?;
    if view.is_special || view.protocol == KERNEL {
        return None;
    }
    let way = match view.without_hops() {
        Some(way) => way,
        None if !view.is_unicast() => return None,
        None => HostWay::Via(paths(&view)?),
    };
    let RouteView { table, prefix, metric, protocol, next_hop_id, .. } = view;
    Some(HostRoute { table, prefix, metric, protocol, next_hop_id, way })
}

fn paths(view: &RouteView<'_>) -> Option<HostPaths> {
    let mut all = HostPaths::new();
    for hop in view.hops().into_iter().flatten() {
        let hop = hop?;
        all.extend(hop.single.path(hop.weight).filter(|_| !hop.is_dead));
    }
    if let Some(path) = view.single.path(1) {
        all.push(path);
    }
    Some(all)
}

#[cfg(test)]
mod tests {
    #![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "tests")]
    use super::super::tests::attribute;
    use super::*;

    fn message(header: [u8; RTMSG], attributes: &[Vec<u8>]) -> Vec<u8> {
        [&header[..], &attributes.concat()].concat()
    }

    /// IPv4, main table, BGP, unicast.
    const HEADER4: [u8; RTMSG] = [AF_INET, 24, 0, 0, 254, 186, 0, RTN_UNICAST, 0, 0, 0, 0];

    fn with(at: usize, value: u8) -> [u8; RTMSG] {
        let mut header = HEADER4;
        header[at] = value;
        header
    }

    fn to() -> Vec<u8> {
        attribute(RTA_DST, &[198, 51, 100, 0])
    }

    fn number(kind: u16, n: u32) -> Vec<u8> {
        attribute(kind, &n.to_ne_bytes())
    }

    fn one_hop(flags: u8, share: u8, interface: u32, more: &[Vec<u8>]) -> Vec<u8> {
        let more = more.concat();
        let len = (RTNEXTHOP + more.len()) as u16;
        [&len.to_ne_bytes()[..], &[flags, share], &interface.to_ne_bytes(), &more].concat()
    }

    #[test]
    fn a_route_is_read_with_its_table_metric_number_and_next_hop() {
        let gateway = attribute(5, &[192, 0, 2, 1]);
        let all = [to(), number(RTA_PRIORITY, 20), number(RTA_TABLE, 1000), number(4, 7), gateway.clone()];
        let bytes = message(HEADER4, &[&all[..], &[number(RTA_NH_ID, 9)]].concat());
        let path = crate::HostPath { host_index: 7, next_hop: Some([192, 0, 2, 1].into()), weight: 1 };
        let route = HostRoute {
            table: 1000,
            prefix: ([198, 51, 100, 0].into(), 24),
            metric: 20,
            protocol: 186,
            next_hop_id: Some(9),
            way: HostWay::via([path]),
        };
        assert_eq!(host_route(&bytes), Some(route));
        // The default route names no destination; one of IPv6 has longer addresses.
        let mut header = with(0, AF_INET6);
        header[1] = 0;
        let way = host_route(&message(header, &[number(4, 7)])).map(|route| (route.prefix, route.table));
        assert_eq!(way, Some((([0; 16].into(), 0), 254)));
        // Labels are not put on here.
        let wrapped = message(HEADER4, &[to(), number(4, 7), attribute(21, &[1, 0])]);
        assert_eq!(host_route(&wrapped).map(|route| route.way), Some(HostWay::via([])));
    }

    #[test]
    fn of_several_next_hops_those_that_are_gone_or_wrapped_are_left_out() {
        let gateway = attribute(5, &[192, 0, 2, 1]);
        let hops = [
            one_hop(0, 0, 7, std::slice::from_ref(&gateway)),
            one_hop(RTNH_F_DEAD, 0, 8, std::slice::from_ref(&gateway)),
            one_hop(0, 0, 9, &[attribute(21, &[1, 0])]),
            one_hop(0, 255, 10, &[]),
        ];
        let bytes = message(HEADER4, &[to(), attribute(RTA_MULTIPATH, &hops.concat())]);
        let Some(HostWay::Via(paths)) = host_route(&bytes).map(|route| route.way) else { panic!("a route") };
        let all: Vec<_> = paths.iter().map(|path| (path.host_index, path.weight)).collect();
        assert_eq!(all, [(7, 1), (10, 255)]);
        // One hop that says that it is longer than what is there.
        let mut cut = hops.concat();
        cut.truncate(cut.len() - 1);
        assert_eq!(host_route(&message(HEADER4, &[to(), attribute(RTA_MULTIPATH, &cut)])), None);
    }

    #[test]
    fn what_is_no_route_to_follow_is_passed_over() {
        let all = [to(), number(4, 7)];
        assert!(host_route(&message(HEADER4, &all)).is_some());
        for (what, at, value) in [
            ("another family", 0, 28),
            ("longer than an address", 1, 33),
            ("for some senders", 2, 24),
            ("for some services", 3, 8),
            ("of the kernel's own", 5, KERNEL),
            ("local", 7, 2),
            ("cached", 9, 2),
        ] {
            assert_eq!(host_route(&message(with(at, value), &all)), None, "{what}");
        }
        for (kind, way) in [
            (RTN_BLACKHOLE, HostWay::Blackhole),
            (RTN_UNREACHABLE, HostWay::Unreachable),
            (RTN_PROHIBIT, HostWay::Prohibit),
        ] {
            assert_eq!(host_route(&message(with(7, kind), &all)).map(|route| route.way), Some(way));
        }
        // An address of the other family, and half of one.
        for to in [&[0; 16][..], &[198, 51]] {
            assert_eq!(host_route(&message(HEADER4, &[attribute(RTA_DST, to), number(4, 7)])), None);
        }
        let whole = message(HEADER4, &all);
        for len in 0..whole.len() {
            let _ = host_route(&whole[..len]);
        }
    }
}
