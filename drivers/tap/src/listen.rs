//! What the kernel says of a namespace, in the words of [`shoal_interface::HostEvent`].

use std::collections::{BTreeMap, BTreeSet};
use std::fs::File;
use std::net::IpAddr;
use std::rc::Rc;
use std::time::Duration;

use futures_lite::future;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_packet_route::link::{
    InfoData, InfoVlan, InfoVrf, LinkAttribute, LinkFlags, LinkInfo, LinkMessage, VlanProtocol,
};
use netlink_packet_route::neighbour::{
    NeighbourAddress, NeighbourAttribute, NeighbourMessage, NeighbourState,
};
use netlink_packet_route::route::{RouteAddress, RouteAttribute, RouteMessage};
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use shoal_graph::clock::Time;
use shoal_graph::process::{Processes, Receiver, Sender, channel};
use shoal_interface::{
    EventOrigin, HostEvent, HostEventHandler, HostLink, HostLinkKind, HostListener, HostMulticastRoute,
    ListingCause, TagKind, Vid,
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

/// How soon the kernel is tried again that could not be heard, and how late at most.
const FIRST_REST: Duration = Duration::from_secs(1);
const LONGEST_REST: Duration = Duration::from_secs(64);

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
        links: BTreeMap::new(),
        since_listing: SinceListing::default(),
        due: None,
    };
    processes.spawn("linux-cp-netlink-process", follower.follow_on(netns, asked));
    Ok(Box::new(Listener(ask)))
}

/// Why the hearing goes on.
enum Wake {
    Readable,
    Audit,
    LinkUp,
    Dropped,
}

/// Announcements that are handled at once: as many as take about half of a slice of the main thread's time.
const AT_ONCE: usize = 128;

/// Whether links are up and plugged in, and what they are part of.
type Links = BTreeMap<u32, (bool, Option<u32>)>;

/// Which of several events to tell. Of the states of a link that wait together only the last one counts: the ones before are not
/// true any more, and what is done about them would be announced in turn. Of a link that has gone since none counts. But that a link
/// became part of another one, or left it, comes before what follows from that.
fn worth_telling(waiting: &[(EventOrigin, HostEvent)], links: &Links) -> Vec<bool> {
    let (mut seen, mut tell) = (BTreeSet::new(), vec![true; waiting.len()]);
    for ((_, event), tell) in waiting.iter().zip(&mut tell).rev() {
        match event {
            HostEvent::Link(link) => *tell = seen.insert(link.host_index),
            HostEvent::Gone { host_index } => drop(seen.insert(*host_index)),
            // What a listing names is there at its end.
            HostEvent::End => seen.clear(),
            _ => {}
        }
    }
    let mut masters: BTreeMap<u32, Option<u32>> = BTreeMap::new();
    for ((_, event), tell) in waiting.iter().zip(&mut tell) {
        let HostEvent::Link(link) = event else { continue };
        let known = || links.get(&link.host_index).map(|(_, master)| *master);
        let before = masters.insert(link.host_index, link.master).or_else(known);
        *tell |= before.is_some_and(|before| before != link.master);
    }
    tell
}

/// Links whose state, or end, was announced since a listing began: what it says of them may be older, wherever it stands.
#[derive(Default)]
struct SinceListing(Option<BTreeSet<u32>>);

impl SinceListing {
    /// Whether an event is older than what was announced before it.
    fn is_outdated(&mut self, told: EventOrigin, event: &HostEvent) -> bool {
        match (event, &mut self.0) {
            (HostEvent::Begin(_), announced) => *announced = Some(BTreeSet::new()),
            (HostEvent::End, announced) => *announced = None,
            (HostEvent::Link(link), Some(announced)) if told == EventOrigin::Listed => {
                return announced.contains(&link.host_index);
            }
            (
                HostEvent::Link(HostLink { host_index, .. }) | HostEvent::Gone { host_index },
                Some(announced),
            ) => {
                announced.insert(*host_index);
            }
            _ => {}
        }
        false
    }
}

/// Follows the kernel in one namespace.
struct Follower {
    all: Announcements,
    hear: HostEventHandler,
    processes: Rc<Processes>,
    /// Since when the kernel has been listing all there is: links that are up did not come up then.
    listing: Option<Time>,
    /// Between two listings for links: as long as one takes, so that a link that flaps does not take all of the time.
    rests: Duration,
    links: Links,
    since_listing: SinceListing,
    /// When all is to be listed again, because a link came up or became part of another one.
    due: Option<Time>,
}

impl Follower {
    /// Follows until the listener is dropped: when the kernel cannot be heard any more, from the beginning again.
    async fn follow_on(mut self, netns: Option<File>, asked: Receiver<()>) {
        while let Err(mut error) = self.follow(&asked).await {
            let mut rest = FIRST_REST;
            loop {
                tracing::error!(%error, seconds = rest.as_secs(), "what the kernel does in a namespace is not heard, until it is tried again");
                self.processes.sleep(rest).await;
                if asked.is_closed() {
                    return;
                }
                match run_in(netns.as_ref(), || Ok(Announcements::open()?)) {
                    Ok(all) => {
                        (self.all, self.listing, self.since_listing) = (all, None, SinceListing::default());
                        break;
                    }
                    Err(again) => error = again,
                }
                rest = LONGEST_REST.min(rest * 2);
            }
        }
    }

    async fn follow(&mut self, asked: &Receiver<()>) -> Result<(), Error> {
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
            let readable = async {
                self.all.wait().await;
                Wake::Readable
            };
            let audit = async { asked.recv().await.map_or(Wake::Dropped, |()| Wake::Audit) };
            // A listing that is under way may have passed what a link that came up since changes.
            let due = self.due.filter(|_| self.listing.is_none());
            let link = async {
                match due {
                    Some(due) => self.processes.sleep(due.since(self.now())).await,
                    None => future::pending().await,
                }
                Wake::LinkUp
            };
            let wake = future::or(readable, future::or(audit, link)).await;
            match wake {
                Wake::Dropped => return Ok(()),
                // A listing that is under way tells as much.
                Wake::Audit if self.listing.is_none() => self.all.list(ListingCause::Audit),
                Wake::LinkUp => {
                    // The kernel takes next hops into use again without announcing it.
                    self.due = None;
                    self.all.list(ListingCause::LinkUp);
                }
                Wake::Audit | Wake::Readable => {}
            }
        }
    }

    fn now(&self) -> Time {
        self.processes.clock().now()
    }

    /// Tells some of what waits, as far as it is worth it; whether there may be more.
    fn some(&mut self) -> Result<bool, Error> {
        let mut waiting: Vec<(EventOrigin, HostEvent)> = Vec::with_capacity(AT_ONCE);
        let (mut more, mut is_caught_up, mut most) = (true, false, AT_ONCE);
        while most > 0 {
            most -= 1;
            match self.all.next_one()? {
                Some(Announcement::Begin(cause)) => {
                    waiting.push((EventOrigin::Listed, HostEvent::Begin(cause)));
                }
                Some(Announcement::End) => waiting.push((EventOrigin::Listed, HostEvent::End)),
                Some(Announcement::Message(told, message)) => {
                    let Some(event) = event(&message) else { continue };
                    if matches!(event, HostEvent::Link(_)) && !is_caught_up {
                        // What is done about a state that has passed would be announced in turn.
                        self.all.catch_up()?;
                        (is_caught_up, most) = (true, AT_ONCE);
                    }
                    waiting.push((told, event));
                }
                Some(Announcement::Route(told, route, present)) => {
                    waiting.push((told, HostEvent::Route { route, present }));
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
        waiting.retain(|(told, event)| !self.since_listing.is_outdated(*told, event));
        let mut tell = worth_telling(&waiting, &self.links).into_iter();
        waiting.retain(|(told, event)| {
            let is_told = tell.next().unwrap_or(true);
            self.follow_links(*told, event, is_told);
            is_told
        });
        if !waiting.is_empty() {
            (self.hear)(waiting);
        }
        Ok(more)
    }

    /// Notes what an event says of links and listings, whether it is told or not.
    fn follow_links(&mut self, told: EventOrigin, event: &HostEvent, is_told: bool) {
        match event {
            _ if !is_told => self.pass_over(event),
            HostEvent::Begin(_) => self.listing = Some(self.now()),
            HostEvent::End => {
                let took = self.listing.take().map(|began| self.now().since(began));
                self.rests = took.unwrap_or_default().max(QUIET);
            }
            HostEvent::Link(link) => self.note(told, link),
            HostEvent::Gone { host_index } => drop(self.links.remove(host_index)),
            _ => {}
        }
    }

    /// What the kernel announces when a link comes up or becomes part of another one is not all that changes then.
    fn note(&mut self, told: EventOrigin, link: &HostLink) {
        let usable = link.up && link.carrier;
        let before = self.links.insert(link.host_index, (usable, link.master));
        let came_up = usable && before.is_none_or(|(was, _)| !was);
        let moved = before.is_some_and(|(_, master)| master != link.master);
        if (came_up || moved) && told == EventOrigin::Announced && self.due.is_none() {
            self.due = Some(self.now().after(self.rests));
        }
    }

    /// A link that was down for a moment has come up.
    fn pass_over(&mut self, event: &HostEvent) {
        if let HostEvent::Link(HostLink { host_index, up, carrier, .. }) = event
            && !(*up && *carrier)
            && let Some((usable, _)) = self.links.get_mut(host_index)
        {
            *usable = false;
        }
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
        _ => None,
    }
}

fn link(message: &LinkMessage) -> Option<HostEvent> {
    // A port of a bridge is announced once more in the bridge's family.
    if message.header.interface_family == AddressFamily::Bridge {
        return None;
    }
    let has = |flag| message.header.flags.contains(flag);
    let mut link = HostLink {
        host_index: message.header.index,
        name: String::new(),
        up: has(LinkFlags::Up),
        carrier: has(LinkFlags::Running) || has(LinkFlags::LowerUp),
        mtu: 0,
        mac: None,
        master: None,
        kind: HostLinkKind::Other,
    };
    let (mut lower, mut elsewhere, mut info) = (None, false, None);
    for attribute in &message.attributes {
        match attribute {
            LinkAttribute::IfName(name) => link.name.clone_from(name),
            LinkAttribute::Mtu(mtu) => link.mtu = *mtu,
            LinkAttribute::Address(bytes) => {
                link.mac = <[u8; 6]>::try_from(bytes.as_slice()).ok().map(MacAddress);
            }
            LinkAttribute::Controller(master) => link.master = Some(*master).filter(|master| *master != 0),
            LinkAttribute::Link(of) => lower = Some(*of),
            // The number is one of another namespace then.
            LinkAttribute::LinkNetNsId(_) => elsewhere = true,
            LinkAttribute::LinkInfo(all) => {
                info = all.iter().find_map(|one| match one {
                    LinkInfo::Data(data) => Some(data),
                    _ => None,
                });
            }
            _ => {}
        }
    }
    link.kind = info.and_then(|data| kind(data, lower.filter(|_| !elsewhere))).unwrap_or(HostLinkKind::Other);
    Some(HostEvent::Link(link))
}

/// What a link of a kind is that matters; the link below it is given.
fn kind(data: &InfoData, of: Option<u32>) -> Option<HostLinkKind> {
    match data {
        InfoData::Vrf(all) => all.iter().find_map(|one| match one {
            InfoVrf::TableId(table) => Some(HostLinkKind::Vrf { table: *table }),
            _ => None,
        }),
        InfoData::Vlan(all) => {
            let (mut tag, mut id) = (TagKind::Dot1q, None);
            for one in all {
                match one {
                    InfoVlan::Id(number) => id = Vid::new(*number),
                    InfoVlan::Protocol(VlanProtocol::Ieee8021Ad) => tag = TagKind::Dot1ad,
                    _ => {}
                }
            }
            Some(HostLinkKind::Vlan { of, tag, id: id? })
        }
        _ => None,
    }
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

#[cfg(test)]
mod tests {
    use netlink_packet_route::link::InfoKind;

    use super::*;

    fn plain(host_index: u32, up: bool, master: Option<u32>) -> HostEvent {
        let (mac, kind) = (None, HostLinkKind::Other);
        HostEvent::Link(HostLink {
            host_index,
            name: "e0".into(),
            up,
            carrier: true,
            mtu: 0,
            mac,
            master,
            kind,
        })
    }

    fn told(events: &[HostEvent], links: &Links) -> Vec<bool> {
        let waiting: Vec<_> = events.iter().map(|e| (EventOrigin::Announced, e.clone())).collect();
        worth_telling(&waiting, links)
    }

    #[test]
    fn of_the_states_of_a_link_the_last_is_told_and_of_one_that_has_gone_none() {
        let links = Links::from([(7, (true, None))]);
        let gone = || HostEvent::Gone { host_index: 7 };
        let (up, down) = (|| plain(7, true, None), || plain(7, false, None));
        assert_eq!(told(&[down(), plain(8, true, None), up()], &links), [false, true, true]);
        assert_eq!(told(&[up(), down(), gone()], &links), [false, false, true]);
        assert_eq!(told(&[up(), gone(), up(), down()], &links), [false, true, false, true]);
        // A listing whose end says that what it has not named is gone.
        let listing = [HostEvent::Begin(ListingCause::Audit), up(), HostEvent::End, down(), up()];
        assert_eq!(told(&listing, &links), [true, true, true, false, true]);
    }

    #[test]
    fn what_a_listing_says_of_a_link_does_not_count_once_it_was_announced() {
        let (mut since, link) = (SinceListing::default(), |n| plain(n, true, None));
        let mut is_outdated = |told, event| since.is_outdated(told, &event);
        let (announced, listed) = (EventOrigin::Announced, EventOrigin::Listed);
        assert!(!is_outdated(announced, link(7)) && !is_outdated(listed, link(7)));
        for cause in [ListingCause::Start, ListingCause::Audit] {
            assert!(!is_outdated(listed, HostEvent::Begin(cause)));
            assert!(!is_outdated(listed, link(7)) && !is_outdated(announced, link(7)));
            assert!(!is_outdated(announced, link(7)) && is_outdated(listed, link(7)));
            assert!(
                !is_outdated(listed, link(8)) && !is_outdated(announced, HostEvent::Gone { host_index: 8 })
            );
            assert!(is_outdated(listed, link(8)) && !is_outdated(listed, HostEvent::End));
            assert!(!is_outdated(listed, link(7)));
        }
    }

    #[test]
    fn a_link_that_changes_masters_is_told_of_before_what_follows_from_it() {
        let links = Links::from([(7, (true, None))]);
        let address = ("2001:db8::1".parse().unwrap(), 64);
        let dropped = HostEvent::Address { host_index: 7, address, present: false };
        let all = [plain(7, true, Some(9)), plain(7, false, Some(9)), dropped, plain(7, true, Some(9))];
        assert_eq!(told(&all, &links), [true, false, true, true]);
        // One that is new is told once.
        assert_eq!(told(&all, &Links::new()), [false, false, true, true]);
        let there_and_back = [plain(7, true, Some(9)), plain(7, true, None), plain(7, true, None)];
        assert_eq!(told(&there_and_back, &links), [true, true, true]);
    }

    fn message(attributes: Vec<LinkAttribute>) -> HostLink {
        let mut message = LinkMessage::default();
        message.header.index = 7;
        message.attributes = attributes;
        let Some(HostEvent::Link(link)) = link(&message) else { panic!("a link") };
        link
    }

    #[test]
    fn vrfs_vlans_and_masters_are_read() {
        let vrf = LinkAttribute::LinkInfo(vec![
            LinkInfo::Kind(InfoKind::Vrf),
            LinkInfo::Data(InfoData::Vrf(vec![InfoVrf::TableId(10)])),
        ]);
        assert_eq!(message(vec![vrf]).kind, HostLinkKind::Vrf { table: 10 });
        let vlan = |protocol| {
            LinkAttribute::LinkInfo(vec![
                LinkInfo::Kind(InfoKind::Vlan),
                LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(100), InfoVlan::Protocol(protocol)])),
            ])
        };
        let is = |of, tag| HostLinkKind::Vlan { of, tag, id: Vid::new(100).unwrap() };
        let [q, ad] = [VlanProtocol::Ieee8021Q, VlanProtocol::Ieee8021Ad];
        let link = message(vec![LinkAttribute::Link(3), LinkAttribute::Mtu(1400), vlan(q)]);
        assert_eq!((link.kind, link.mtu), (is(Some(3), TagKind::Dot1q), 1400));
        assert_eq!(message(vec![vlan(ad), LinkAttribute::Link(3)]).kind, is(Some(3), TagKind::Dot1ad));
        // The number of what it is on is one of another namespace.
        let far = message(vec![LinkAttribute::Link(3), LinkAttribute::LinkNetNsId(0), vlan(q)]);
        assert_eq!(far.kind, is(None, TagKind::Dot1q));
        // What contradicts itself, or says too little.
        let too_large = LinkInfo::Data(InfoData::Vlan(vec![InfoVlan::Id(4096)]));
        for info in [too_large, LinkInfo::Data(InfoData::Vrf(Vec::new())), LinkInfo::Kind(InfoKind::Vlan)] {
            assert_eq!(message(vec![LinkAttribute::LinkInfo(vec![info])]).kind, HostLinkKind::Other);
        }
        let link =
            message(vec![LinkAttribute::Controller(9), LinkAttribute::Address(vec![2, 0, 0, 0, 0, 1])]);
        assert_eq!((link.master, link.mac), (Some(9), Some(MacAddress([2, 0, 0, 0, 0, 1]))));
        assert_eq!(message(vec![LinkAttribute::Controller(0)]).master, None);
    }
}
