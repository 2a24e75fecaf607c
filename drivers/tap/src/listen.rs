//! What the kernel says of a namespace, in the words of [`shoal_interface::HostEvent`].

use std::any::Any;
use std::net::IpAddr;

use async_io::Async;
use futures_lite::future;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHopFlags, RouteProtocol, RouteType,
    RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use shoal_graph::process::{Processes, channel};
use shoal_interface::{HostEvent, HostPath, HostRoute, HostWay};
use shoal_link::{Announcement, Announcements};
use shoal_module::cli::Pace;
use shoal_wire::MacAddress;

use crate::netns::{self, run_in};
use crate::{Error, NetnsRef};

/// Hears until what is returned is dropped.
pub(crate) fn listen(
    processes: &Processes,
    netns: Option<&str>,
    hear: Box<dyn Fn(HostEvent)>,
) -> Result<Box<dyn Any>, Error> {
    let netns = netns.map(|name| netns::open(&NetnsRef::Name(name.to_owned()))).transpose()?;
    let mut all = run_in(netns.as_ref(), || Ok(Announcements::open()?))?;
    let fd = all.fd().try_clone_to_owned().map_err(Error::os("dup(AF_NETLINK)"))?;
    let readable = Async::new_nonblocking(fd).map_err(Error::os("epoll(AF_NETLINK)"))?;
    let (open, closed) = channel::<()>(1);
    processes.spawn("linux-cp-netlink-process", async move {
        // Whether what there is is being told: links that are up did not come up then.
        let (pace, mut listing) = (Pace::default(), false);
        loop {
            let more = match some(&mut all, &mut listing, &*hear) {
                Ok(more) => more,
                Err(error) => {
                    tracing::error!(%error, "what the kernel does in a namespace is not followed any more");
                    return;
                }
            };
            // Nothing is ever sent: the channel ends when the other end is dropped.
            if closed.is_closed() {
                return;
            }
            if more {
                // A full table is no reason for packets to wait.
                pace.give_way().await;
                continue;
            }
            let stop = async {
                let _ = closed.recv().await;
                Ok(())
            };
            if let Err(error) = future::or(readable.readable(), stop).await {
                tracing::error!(%error, "what the kernel does in a namespace is not followed any more");
                return;
            }
        }
    });
    Ok(Box::new(open))
}

/// Announcements that are told of at once.
const AT_ONCE: usize = 64;

/// Tells some of what waits; whether there may be more. Of the states of a link that are told at once only the last one
/// is: the ones before are not true any more, and what is done about them would be announced in turn.
fn some(all: &mut Announcements, listing: &mut bool, hear: &dyn Fn(HostEvent)) -> Result<bool, Error> {
    let mut waiting: Vec<HostEvent> = Vec::new();
    let (mut came_up, mut more) = (false, true);
    for _ in 0..AT_ONCE {
        match all.next_one() {
            Ok(Some(Announcement::Begin)) => waiting.push(HostEvent::Begin),
            Ok(Some(Announcement::End)) => waiting.push(HostEvent::End),
            Ok(Some(Announcement::Message(message))) => waiting.extend(event(&message)),
            Ok(Some(Announcement::NextHop(id, hop))) => waiting.push(HostEvent::NextHop { id, hop }),
            Ok(None) => {
                more = false;
                break;
            }
            Err(e) => return Err(e.into()),
        }
    }
    let mut seen = std::collections::BTreeSet::new();
    let mut last = vec![true; waiting.len()];
    for (event, last) in waiting.iter().zip(&mut last).rev() {
        if let HostEvent::Link { host_index, .. } = event {
            *last = seen.insert(*host_index);
        }
    }
    for (event, _) in waiting.into_iter().zip(last).filter(|(_, last)| *last) {
        match event {
            HostEvent::Begin => *listing = true,
            HostEvent::End => *listing = false,
            HostEvent::Link { up: true, .. } if !*listing => came_up = true,
            _ => {}
        }
        hear(event);
    }
    if came_up && !*listing {
        // The kernel takes next hops into use again without a word.
        all.resync()?;
    }
    Ok(more)
}

/// What a message says, if it is of interest.
fn event(message: &RouteNetlinkMessage) -> Option<HostEvent> {
    match message {
        RouteNetlinkMessage::NewLink(m) => link(m),
        RouteNetlinkMessage::DelLink(m) if m.header.interface_family != AddressFamily::Bridge => {
            Some(HostEvent::Gone { host_index: m.header.index })
        }
        RouteNetlinkMessage::NewAddress(m) => address(m, true),
        RouteNetlinkMessage::DelAddress(m) => address(m, false),
        RouteNetlinkMessage::NewNeighbour(m) => neighbor(m, true),
        RouteNetlinkMessage::DelNeighbour(m) => neighbor(m, false),
        RouteNetlinkMessage::NewRoute(m) => route(m).map(|route| HostEvent::Route { route, present: true }),
        RouteNetlinkMessage::DelRoute(m) => route(m).map(|route| HostEvent::Route { route, present: false }),
        _ => None,
    }
}

fn link(message: &LinkMessage) -> Option<HostEvent> {
    // A port of a bridge is announced once more in the bridge's family.
    if message.header.interface_family == AddressFamily::Bridge {
        return None;
    }
    let has = |flag| message.header.flags.contains(flag);
    let (up, carrier) = (has(LinkFlags::Up), has(LinkFlags::Running) || has(LinkFlags::LowerUp));
    Some(HostEvent::Link { host_index: message.header.index, up, carrier })
}

fn address(message: &AddressMessage, present: bool) -> Option<HostEvent> {
    let (mut local, mut other) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(a) => local = Some(*a),
            AddressAttribute::Address(a) => other = Some(*a),
            _ => {}
        }
    }
    let address = (local.or(other)?, message.header.prefix_len);
    Some(HostEvent::Address { host_index: message.header.index, address, present })
}

fn neighbor(message: &NeighbourMessage, present: bool) -> Option<HostEvent> {
    let (mut address, mut mac) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            NeighbourAttribute::Destination(NeighbourAddress::Inet(a)) => address = Some(IpAddr::V4(*a)),
            NeighbourAttribute::Destination(NeighbourAddress::Inet6(a)) => address = Some(IpAddr::V6(*a)),
            NeighbourAttribute::LinkLayerAddress(bytes) => {
                mac = <[u8; 6]>::try_from(bytes.as_slice()).ok().map(MacAddress);
            }
            _ => {}
        }
    }
    use NeighbourState::{Delay, Noarp, Permanent, Probe, Reachable, Stale};
    let state = message.header.state;
    let valid = present && [Reachable, Stale, Delay, Probe, Noarp, Permanent].contains(&state);
    Some(HostEvent::Neighbor {
        host_index: message.header.ifindex,
        address: address?,
        mac: mac.filter(|_| valid),
        by_operator: [Noarp, Permanent].contains(&state),
    })
}

fn ip(address: &RouteAddress) -> Option<IpAddr> {
    match address {
        RouteAddress::Inet(a) => Some(IpAddr::V4(*a)),
        RouteAddress::Inet6(a) => Some(IpAddr::V6(*a)),
        _ => None,
    }
}

/// The next hop that attributes name.
fn next_hop(attributes: &[RouteAttribute]) -> Option<IpAddr> {
    attributes.iter().find_map(|a| match a {
        RouteAttribute::Gateway(address) => ip(address),
        RouteAttribute::Via(RouteVia::Inet(a)) => Some(IpAddr::V4(*a)),
        RouteAttribute::Via(RouteVia::Inet6(a)) => Some(IpAddr::V6(*a)),
        _ => None,
    })
}

/// Whether packets of a next hop get labels or segments, which there are none of here.
fn wrapped(attributes: &[RouteAttribute]) -> bool {
    attributes.iter().any(|a| matches!(a, RouteAttribute::EncapType(_)))
}

fn route(message: &RouteMessage) -> Option<HostRoute> {
    let header = &message.header;
    let any = match header.address_family {
        AddressFamily::Inet => IpAddr::from([0; 4]),
        AddressFamily::Inet6 => IpAddr::from([0; 16]),
        _ => return None,
    };
    // A cached path to one host is no route, and neither are those for some senders or services only.
    if header.flags.contains(RouteFlags::Cloned) || header.source_prefix_length > 0 || header.tos > 0 {
        return None;
    }
    // The kernel's own follow from the addresses, which the router has, too.
    if header.protocol == RouteProtocol::Kernel {
        return None;
    }
    let mut table = u32::from(header.table);
    let (mut to, mut metric, mut oif, mut next_hop_id, mut paths) = (any, 0, None, None, Vec::new());
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Destination(address) => to = ip(address)?,
            RouteAttribute::Table(n) => table = *n,
            RouteAttribute::Priority(n) => metric = *n,
            RouteAttribute::Oif(n) => oif = Some(*n),
            RouteAttribute::MultiPath(hops) => {
                let live = hops
                    .iter()
                    .filter(|hop| !hop.flags.contains(RouteNextHopFlags::Dead) && !wrapped(&hop.attributes));
                paths.extend(live.map(|hop| HostPath {
                    host_index: hop.interface_index,
                    next_hop: next_hop(&hop.attributes),
                    weight: hop.hops.saturating_add(1),
                }));
            }
            RouteAttribute::NhId(n) => next_hop_id = Some(*n),
            _ => {}
        }
    }
    if let Some(host_index) = oif.filter(|_| !wrapped(&message.attributes)) {
        paths.push(HostPath { host_index, next_hop: next_hop(&message.attributes), weight: 1 });
    }
    let way = match header.kind {
        RouteType::Unicast => HostWay::Via(paths),
        RouteType::BlackHole => HostWay::Blackhole,
        RouteType::Unreachable => HostWay::Unreachable,
        RouteType::Prohibit => HostWay::Prohibit,
        _ => return None,
    };
    let protocol = u8::from(header.protocol);
    let prefix = (to, header.destination_prefix_length);
    Some(HostRoute { table, prefix, metric, protocol, next_hop_id, way })
}
