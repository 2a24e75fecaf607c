//! Netlink messages about routes and next hops, read as views of their bytes (linux/rtnetlink.h, linux/nexthop.h).
//!
//! Numbers are in the byte order of the host, as the kernel's. What is too short for what it says is left out: nothing here panics.

use shoal_interface::rtnetlink::{
    HEADER, RTM_DELNEXTHOP, RTM_DELROUTE, RTM_NEWNEXTHOP, RTM_NEWROUTE, RTMSG, RouteView, aligned, next_hop,
    u16_at, u32_at,
};
use shoal_interface::{HostNextHop, HostPaths, HostWay};
use shoal_wire::IpPrefix;

const NLM_F_REQUEST: u16 = 1;

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
    let Ok(view) = RouteView::read(body)? else { return Some(FpmMessage::Other) };
    let way = match (view.without_hops(), view.next_hop_id) {
        (Some(way), _) => Some(RouteExit::Direct(way)),
        (None, _) if !view.is_unicast() => None,
        (None, Some(id)) => Some(RouteExit::Id(id)),
        (None, None) => match paths(&view) {
            Ok(paths) => Some(RouteExit::Direct(HostWay::Via(paths))),
            Err(NoPaths::OtherKind) => None,
            Err(NoPaths::Malformed) => return None,
        },
    };
    let (to, len) = view.prefix;
    let prefix = IpPrefix::new(to, len).ok()?.normalized();
    Some(FpmMessage::Route(Route { table: view.table, prefix, protocol: view.protocol, way }))
}

/// Why a route has no next hops.
enum NoPaths {
    /// One of them is of a kind that there is not here.
    OtherKind,
    /// The message contradicts itself.
    Malformed,
}

/// The next hops of a route.
fn paths(view: &RouteView<'_>) -> Result<HostPaths, NoPaths> {
    let Some(hops) = view.hops() else {
        return view.single.path(1).map(|path| HostPaths::from([path])).ok_or(NoPaths::OtherKind);
    };
    let (mut all, mut unknown) = (HostPaths::new(), false);
    for hop in hops {
        let hop = hop.ok_or(NoPaths::Malformed)?;
        match hop.single.path(hop.weight) {
            _ if hop.is_dead => {}
            Some(path) => all.push(path),
            None => unknown = true,
        }
    }
    if unknown { Err(NoPaths::OtherKind) } else { Ok(all) }
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
