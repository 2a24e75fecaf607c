//! Netlink messages about routes and next hops, read as views of their bytes (linux/rtnetlink.h, linux/nexthop.h).
//!
//! Numbers are in the byte order of the host, as the kernel's. What is too short for what it says is left out: nothing here panics.

use std::net::IpAddr;

use shoal_interface::rtnetlink::{
    Attributes, HEADER, RTM_DELNEXTHOP, RTM_NEWNEXTHOP, Single, address, aligned, next_hop, u16_at, u32_at,
};
use shoal_interface::{HostNextHop, HostPath, HostWay};
use shoal_wire::IpPrefix;

/// Bytes of `rtmsg`.
const RTMSG: usize = 12;
/// Bytes of `rtnexthop`.
const RTNEXTHOP: usize = 8;

const RTM_NEWROUTE: u16 = 24;
const RTM_DELROUTE: u16 = 25;

const NLM_F_REQUEST: u16 = 1;

const AF_INET: u8 = 2;
const AF_INET6: u8 = 10;

const RTA_DST: u16 = 1;
const RTA_MULTIPATH: u16 = 9;
const RTA_TABLE: u16 = 15;
const RTA_NH_ID: u16 = 30;

const RTN_UNICAST: u8 = 1;
const RTN_BLACKHOLE: u8 = 6;
const RTN_UNREACHABLE: u8 = 7;
const RTN_PROHIBIT: u8 = 8;

/// The next hop is gone (linux/rtnetlink.h).
const RTNH_F_DEAD: u8 = 1;

/// `RTM_F_OFFLOAD`: the route is in the forwarding plane.
const OFFLOADED: u32 = 0x4000;
/// `RTM_F_OFFLOAD_FAILED`: it is not and will not be.
const OFFLOAD_FAILED: u32 = 0x2000_0000;

/// A route as zebra tells it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Route {
    /// The kernel's table; 254 is the main one.
    pub table: u32,
    /// Where it leads.
    pub prefix: IpPrefix,
    /// Who made it (`RTPROT_`).
    pub protocol: u8,
    /// How packets leave; nothing of a kind of route that there is not here.
    pub way: Option<RouteExit>,
}

/// How packets of a route leave.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum RouteExit {
    /// As a next hop or group of that number says.
    Id(u32),
    /// So.
    Direct(HostWay),
}

/// What a message says.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum FpmMessage {
    /// A route is there, instead of another one to its prefix.
    Route(Route),
    /// A route is gone.
    NoRoute {
        /// The kernel's table.
        table: u32,
        /// Where it led.
        prefix: IpPrefix,
    },
    /// A next hop is there, or is another one now.
    NextHop(u32, HostNextHop),
    /// A next hop is gone.
    NoNextHop(u32),
    /// Something of no interest here.
    Other,
    /// A message that contradicts itself.
    Malformed,
}

/// The messages of a frame, one after the other; ends at the first that does not fit.
#[derive(Clone, Debug)]
pub struct Messages<'a>(&'a [u8]);

impl<'a> Messages<'a> {
    /// Those of a frame's payload.
    pub fn of(payload: &'a [u8]) -> Self {
        Messages(payload)
    }

    /// Whether bytes are left that are no message.
    pub fn is_spent(&self) -> bool {
        self.0.is_empty()
    }
}

impl<'a> Iterator for Messages<'a> {
    type Item = &'a [u8];

    fn next(&mut self) -> Option<&'a [u8]> {
        let len = u32_at(self.0, 0)? as usize;
        let message = self.0.get(..len).filter(|_| len >= HEADER)?;
        self.0 = self.0.get(aligned(len)..).unwrap_or_default();
        Some(message)
    }
}

/// Reads a message with its header.
pub fn read(message: &[u8]) -> FpmMessage {
    let (Some(kind), Some(body)) = (u16_at(message, 4), message.get(HEADER..)) else {
        return FpmMessage::Malformed;
    };
    let said = match kind {
        RTM_NEWROUTE => route(body),
        RTM_DELROUTE => route(body).map(|said| match said {
            FpmMessage::Route(Route { table, prefix, .. }) => FpmMessage::NoRoute { table, prefix },
            other => other,
        }),
        RTM_NEWNEXTHOP => next_hop(body).map(|(id, hop)| FpmMessage::NextHop(id, hop)),
        RTM_DELNEXTHOP => next_hop(body).map(|(id, _)| FpmMessage::NoNextHop(id)),
        _ => Some(FpmMessage::Other),
    };
    said.unwrap_or(FpmMessage::Malformed)
}

/// A route; nothing of interest if its family is not forwarded here.
fn route(body: &[u8]) -> Option<FpmMessage> {
    let &[family, len, _, _, table, protocol, _, kind, ..] = body else { return None };
    let any = match family {
        AF_INET => IpAddr::from([0; 4]),
        AF_INET6 => IpAddr::from([0; 16]),
        _ => return Some(FpmMessage::Other),
    };
    let (mut to, mut table, mut id, mut single, mut hops) =
        (any, u32::from(table), None, Single::default(), None);
    for (kind, value) in Attributes(body.get(RTMSG..)?) {
        match kind {
            RTA_DST => to = address(value).filter(|to| to.is_ipv4() == any.is_ipv4())?,
            RTA_TABLE => table = u32_at(value, 0)?,
            RTA_NH_ID => id = Some(u32_at(value, 0)?),
            RTA_MULTIPATH => hops = Some(multipath(value)?),
            _ => single.take(kind, value)?,
        }
    }
    let way = match (kind, id, hops) {
        (RTN_BLACKHOLE, ..) => Some(RouteExit::Direct(HostWay::Blackhole)),
        (RTN_UNREACHABLE, ..) => Some(RouteExit::Direct(HostWay::Unreachable)),
        (RTN_PROHIBIT, ..) => Some(RouteExit::Direct(HostWay::Prohibit)),
        (RTN_UNICAST, Some(id), _) => Some(RouteExit::Id(id)),
        (RTN_UNICAST, None, Some(hops)) if !hops.unknown => Some(RouteExit::Direct(HostWay::Via(hops.paths))),
        (RTN_UNICAST, None, None) => single.path(1).map(|path| RouteExit::Direct(HostWay::Via(vec![path]))),
        _ => None,
    };
    let prefix = IpPrefix::new(to, len).ok()?.normalized();
    Some(FpmMessage::Route(Route { table, prefix, protocol, way }))
}

/// The next hops of a route.
#[derive(Default)]
struct Hops {
    paths: Vec<HostPath>,
    /// One of them is of a kind that there is not here.
    unknown: bool,
}

fn multipath(mut bytes: &[u8]) -> Option<Hops> {
    let mut all = Hops::default();
    while !bytes.is_empty() {
        let len = usize::from(u16_at(bytes, 0)?);
        let hop = bytes.get(..len).filter(|_| len >= RTNEXTHOP)?;
        let &[_, _, flags, share, ..] = hop else { return None };
        let mut single = Single { interface: Some(u32_at(hop, 4)?), ..Single::default() };
        for (kind, value) in Attributes(hop.get(RTNEXTHOP..)?) {
            single.take(kind, value)?;
        }
        if flags & RTNH_F_DEAD == 0 {
            match single.path(share.saturating_add(1)) {
                Some(path) => all.paths.push(path),
                None => all.unknown = true,
            }
        }
        bytes = bytes.get(aligned(len)..).unwrap_or_default();
    }
    Some(all)
}

/// A message that tells zebra what became of the route of another message: the same bytes, with that flag.
pub fn answer(message: &[u8], installed: bool, out: &mut Vec<u8>) {
    let at = out.len();
    out.extend_from_slice(message);
    let Some(copy) = out.get_mut(at..).filter(|copy| copy.len() >= HEADER + RTMSG) else { return };
    let flag = if installed { OFFLOADED } else { OFFLOAD_FAILED };
    let flags = u32_at(copy, HEADER + 8).unwrap_or(0) | flag;
    let mut put = |at: usize, bytes: &[u8]| {
        copy.iter_mut().skip(at).zip(bytes).for_each(|(to, from)| *to = *from);
    };
    put(4, &RTM_NEWROUTE.to_ne_bytes());
    put(6, &NLM_F_REQUEST.to_ne_bytes());
    put(HEADER + 8, &flags.to_ne_bytes());
}
