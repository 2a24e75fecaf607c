//! What the kernel says of a namespace, in the words of [`shoal_interface::HostEvent`].

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::OwnedFd;
use std::rc::Rc;
use std::time::Duration;

use async_io::Async;
use futures_lite::future;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{LinkAttribute, LinkFlags, LinkMessage};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{
    RouteAddress, RouteAttribute, RouteFlags, RouteMessage, RouteNextHopFlags, RouteProtocol, RouteType,
    RouteVia,
};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use shoal_graph::clock::Time;
use shoal_graph::process::{Processes, Receiver, Sender, channel};
use shoal_interface::{
    EventOrigin, HostEvent, HostEventHandler, HostListener, HostMulticastRoute, HostPath, HostRoute, HostWay,
    ListingCause,
};
use shoal_link::{Announcement, Announcements, MULTICAST_ROUTES};
use shoal_module::cli::Pace;
use shoal_wire::MacAddress;

use crate::netns::{self, run_in};
use crate::{Error, NetnsRef};

/// Asks for a listing, and ends the hearing when it is dropped.
struct Listener(Sender<()>);

impl HostListener for Listener {
    fn audit(&self) {
        // One that is asked for already does.
        let _ = self.0.try_send(());
    }
}

/// How long after an interface came up all is listed again. In between others may come up, too.
const QUIET: Duration = Duration::from_millis(50);

/// Hears until what is returned is dropped.
pub(crate) fn listen(
    processes: &Rc<Processes>,
    netns: Option<&str>,
    hear: HostEventHandler,
) -> Result<Box<dyn HostListener>, Error> {
    let netns = netns.map(|name| netns::open(&NetnsRef::Name(name.to_owned()))).transpose()?;
    let all = run_in(netns.as_ref(), || Ok(Announcements::open()?))?;
    let (ask, asked) = channel::<()>(1);
    let follower = Follower {
        all,
        hear,
        processes: Rc::clone(processes),
        listing: None,
        rests: QUIET,
        usable: BTreeMap::new(),
        due: None,
    };
    let fd = follower.all.fd().try_clone_to_owned().map_err(Error::os("dup(AF_NETLINK)"))?;
    let readable = Async::new_nonblocking(fd).map_err(Error::os("epoll(AF_NETLINK)"))?;
    processes.spawn("linux-cp-netlink-process", async move {
        if let Err(error) = follower.follow(&readable, &asked).await {
            tracing::error!(%error, "what the kernel does in a namespace is not followed any more");
        }
    });
    Ok(Box::new(Listener(ask)))
}

/// Why the hearing goes on.
enum Wake {
    Readable,
    Audit,
    LinkUp,
    Dropped,
}

/// Announcements that are handled at once.
const AT_ONCE: usize = 64;

/// Follows the kernel in one namespace.
struct Follower {
    all: Announcements,
    hear: HostEventHandler,
    processes: Rc<Processes>,
    /// Since when the kernel has been listing all there is: links that are up did not come up then.
    listing: Option<Time>,
    /// Between two listings for links: as long as one takes, so that a link that flaps does not take all of the time.
    rests: Duration,
    /// Whether links are up and plugged in.
    usable: BTreeMap<u32, bool>,
    /// When all is to be listed again, because a link came up.
    due: Option<Time>,
}

impl Follower {
    async fn follow(mut self, readable: &Async<OwnedFd>, asked: &Receiver<()>) -> Result<(), Error> {
        let pace = Pace::default();
        loop {
            let more = self.some()?;
            if asked.is_closed() {
                return Ok(());
            }
            if more {
                // A full table is no reason for packets to wait.
                pace.give_way().await;
                continue;
            }
            let readable = async { readable.readable().await.map(|()| Wake::Readable) };
            let audit = async { Ok(asked.recv().await.map_or(Wake::Dropped, |()| Wake::Audit)) };
            // A listing that is under way may have passed what a link that came up since changes.
            let due = self.due.filter(|_| self.listing.is_none());
            let link = async {
                match due {
                    Some(due) => self.processes.sleep(due.since(self.now())).await,
                    None => future::pending().await,
                }
                Ok(Wake::LinkUp)
            };
            let wake = future::or(readable, future::or(audit, link)).await;
            match wake.map_err(Error::os("epoll(AF_NETLINK)"))? {
                Wake::Dropped => return Ok(()),
                // A listing that is under way tells as much.
                Wake::Audit if self.listing.is_none() => self.all.list(ListingCause::Audit)?,
                Wake::LinkUp => {
                    // The kernel takes next hops into use again without announcing it.
                    self.due = None;
                    self.all.list(ListingCause::LinkUp)?;
                }
                Wake::Audit | Wake::Readable => {}
            }
        }
    }

    fn now(&self) -> Time {
        self.processes.clock().now()
    }

    /// Tells some of what waits; whether there may be more. Of the states of a link that are told at once only the last
    /// one is: the ones before are not true any more, and what is done about them would be announced in turn.
    fn some(&mut self) -> Result<bool, Error> {
        let mut waiting: Vec<(EventOrigin, HostEvent)> = Vec::new();
        let mut more = true;
        for _ in 0..AT_ONCE {
            match self.all.next_one()? {
                Some(Announcement::Begin(cause)) => {
                    waiting.push((EventOrigin::Listed, HostEvent::Begin(cause)));
                }
                Some(Announcement::End) => waiting.push((EventOrigin::Listed, HostEvent::End)),
                Some(Announcement::Message(told, message)) => {
                    waiting.extend(event(&message).map(|event| (told, event)));
                }
                Some(Announcement::NextHop(told, id, hop)) => {
                    waiting.push((told, HostEvent::NextHop { id, hop }));
                }
                None => {
                    more = false;
                    break;
                }
            }
        }
        let mut seen = BTreeSet::new();
        let mut last = vec![true; waiting.len()];
        for ((_, event), last) in waiting.iter().zip(&mut last).rev() {
            if let HostEvent::Link { host_index, .. } = event {
                *last = seen.insert(*host_index);
            }
        }
        for ((told, event), _) in waiting.into_iter().zip(last).filter(|(_, last)| *last) {
            match event {
                HostEvent::Begin(_) => self.listing = Some(self.now()),
                HostEvent::End => {
                    let took = self.listing.take().map(|began| self.now().since(began));
                    self.rests = took.unwrap_or_default().max(QUIET);
                }
                HostEvent::Link { host_index, up, carrier, .. } => {
                    let usable = up && carrier;
                    let came_up = self.usable.insert(host_index, usable) != Some(true) && usable;
                    if came_up && told == EventOrigin::Announced && self.due.is_none() {
                        self.due = Some(self.now().after(self.rests));
                    }
                }
                HostEvent::Gone { host_index } => drop(self.usable.remove(&host_index)),
                _ => {}
            }
            (self.hear)(told, event);
        }
        Ok(more)
    }
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
        RouteNetlinkMessage::NewRoute(m) if is_multicast(m) => {
            multicast_route(m).map(|route| HostEvent::MulticastRoute { route, present: true })
        }
        RouteNetlinkMessage::DelRoute(m) if is_multicast(m) => {
            multicast_route(m).map(|route| HostEvent::MulticastRoute { route, present: false })
        }
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
    let name = message.attributes.iter().find_map(|a| match a {
        LinkAttribute::IfName(name) => Some(name.clone()),
        _ => None,
    });
    Some(HostEvent::Link { host_index: message.header.index, name: name.unwrap_or_default(), up, carrier })
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

fn is_multicast(message: &RouteMessage) -> bool {
    let family = u8::from(message.header.address_family);
    MULTICAST_ROUTES.iter().any(|(multicast, _)| *multicast == family)
}

/// A multicast route, whose addresses are bytes of a family of its own.
fn multicast_route(message: &RouteMessage) -> Option<HostMulticastRoute> {
    let is_ip4 =
        MULTICAST_ROUTES.first().is_some_and(|(ip4, _)| *ip4 == u8::from(message.header.address_family));
    let any = if is_ip4 { IpAddr::from([0; 4]) } else { IpAddr::from([0; 16]) };
    let read = |address: &RouteAddress| match address {
        RouteAddress::Other(bytes) if is_ip4 => <[u8; 4]>::try_from(bytes.as_slice()).ok().map(IpAddr::from),
        RouteAddress::Other(bytes) => <[u8; 16]>::try_from(bytes.as_slice()).ok().map(IpAddr::from),
        other => ip(other),
    };
    let table = u32::from(message.header.table);
    let mut route = HostMulticastRoute { table, source: any, group: any, input: None, outputs: Vec::new() };
    for attribute in &message.attributes {
        match attribute {
            RouteAttribute::Table(table) => route.table = *table,
            RouteAttribute::Source(address) => route.source = read(address)?,
            RouteAttribute::Destination(address) => route.group = read(address)?,
            RouteAttribute::Iif(interface) => route.input = Some(*interface),
            RouteAttribute::MultiPath(hops) => {
                route.outputs.extend(hops.iter().map(|hop| hop.interface_index));
            }
            _ => {}
        }
    }
    Some(route)
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
