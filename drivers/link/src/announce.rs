//! All that the kernel says of links, addresses, neighbours, next hops and routes of one network namespace: what there is, and then
//! every change.

use std::collections::VecDeque;

use netlink_packet_core::{NLM_F_DUMP, NLM_F_MULTIPART, NLM_F_REQUEST, NetlinkPayload};
use netlink_packet_route::address::AddressMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_packet_route::neighbour::NeighbourMessage;
use netlink_packet_route::nsid::NsidMessage;
use netlink_packet_route::route::RouteMessage;
use netlink_packet_route::{AddressFamily, RouteNetlinkMessage};
use rustix::net::sockopt::{set_socket_recv_buffer_size, set_socket_recv_buffer_size_force};
use shoal_interface::rtnetlink::{self, RTM_DELNEXTHOP, RTM_DELROUTE, RTM_NEWNEXTHOP, RTM_NEWROUTE};
use shoal_interface::{EventOrigin, HostNextHop, HostRoute, ListingCause};

use crate::netlink::subscribe;
use crate::reader::{Batch, Read, Reader};
use crate::{Error, netlink};

/// `RTMGRP_LINK`, `_NEIGH`, `_IPV4_IFADDR`, `_IPV4_MROUTE`, `_IPV4_ROUTE`, `_IPV6_IFADDR`, `_IPV6_MROUTE`, `_IPV6_ROUTE` of
/// linux/rtnetlink.h, and `RTNLGRP_NEXTHOP`, which has the last bit.
const GROUPS: u32 = 0x1 | 0x4 | 0x10 | 0x20 | 0x40 | 0x100 | 0x200 | 0x400 | 1 << 31;
/// Multicast routes, `RTNL_FAMILY_IPMR` and `RTNL_FAMILY_IP6MR` of linux/rtnetlink.h, and where the kernel shows that it has some.
pub const MULTICAST_ROUTES: [(u8, &str); 2] =
    [(128, "/proc/thread-self/net/ip_mr_vif"), (129, "/proc/thread-self/net/ip6_mr_vif")];
/// Room for announcements that wait: the kernel drops what does not fit. A routing daemon that gets a full table announces a
/// million routes within seconds.
const ROOM: usize = 128 << 20;

/// Bytes of announcements that wait outside the kernel, beside those that are handled: half a million routes. In the kernel each takes about
/// six times as much of the room.
const AHEAD: usize = 64 << 20;

/// What the kernel is asked.
enum Question {
    /// For all there is of a kind.
    List(Vec<u8>),
    /// For something small that is not followed. Its answer comes behind the announcements that waited when others were lost: those
    /// are older than the listing that begins then. The kernel throws announcements away until all of them have been read, without
    /// another error, so that nothing may be listed before.
    Wait(ListingCause),
}

/// What comes out of a subscription.
#[derive(Debug)]
pub enum Announcement {
    /// What there is follows, as if it were new.
    Begin(ListingCause),
    /// A thing is there, has changed, or is gone.
    Message(EventOrigin, Box<RouteNetlinkMessage>),
    /// A unicast route is there, or has gone.
    Route(EventOrigin, HostRoute, bool),
    /// A number that routes may name means a next hop now, or nothing any more.
    NextHop(EventOrigin, u32, Option<HostNextHop>),
    /// That was everything: what has not been named since [`Announcement::Begin`] is not there.
    End,
}

/// A subscription to the tables of one network namespace. It begins with what there is. When announcements were lost
/// because they were not read in time, what there is comes again, between [`Announcement::Begin`] and
/// [`Announcement::End`]; what waited before the loss comes before.
///
/// A thread of its own reads the kernel's socket. Await [`Announcements::wait`], then call [`Announcements::next_one`] until it says `None`.
pub struct Announcements {
    /// Questions that are still to be asked; the kernel answers one at a time.
    questions: VecDeque<Question>,
    asking: bool,
    /// The listing that begins when the kernel has answered the question before it.
    begins: Option<ListingCause>,
    ready: VecDeque<Announcement>,
    /// Families of multicast routes that the kernel has.
    multicast: Vec<AddressFamily>,
    reader: Reader,
    /// What has been read and is not announced yet.
    batch: Batch,
}

impl Announcements {
    /// Subscribes in the network namespace of the calling thread.
    ///
    /// # Errors
    /// The kernel cannot be asked, or there can be no thread.
    pub fn open() -> Result<Self, Error> {
        Self::open_with(ROOM, AHEAD)
    }

    /// The same with so much room for announcements that wait, in bytes: in the kernel, and outside it beside those that are read at once.
    ///
    /// # Errors
    /// Those of [`Announcements::open`].
    pub fn open_with(room: usize, ahead: usize) -> Result<Self, Error> {
        let socket = subscribe(GROUPS, "bind(AF_NETLINK)")?;
        // Beyond `net.core.rmem_max`, which a user namespace has no power over: what it grants is enough for less there.
        if set_socket_recv_buffer_size_force(&socket, room).is_err() {
            let _ = set_socket_recv_buffer_size(&socket, room);
            tracing::debug!("what the kernel announces has room up to net.core.rmem_max only");
        }
        let (questions, ready, batch) = (VecDeque::new(), VecDeque::new(), Batch::default());
        // Asked for a family that it does not have, the kernel lists all others.
        let there = MULTICAST_ROUTES.iter().filter(|(_, file)| std::path::Path::new(file).exists());
        let multicast = there.map(|(family, _)| AddressFamily::from(*family)).collect();
        let reader = Reader::start(socket, ahead.max(1))?;
        let mut this = Self { questions, asking: false, begins: None, ready, multicast, reader, batch };
        this.list(ListingCause::Start);
        Ok(this)
    }

    /// Waits until there is something to read.
    pub async fn wait(&self) {
        self.reader.wait().await;
    }

    /// Reads what the kernel has now, a bounded part of it, so that what comes next tells of all that has happened.
    ///
    /// # Errors
    /// The kernel's announcements cannot be read.
    pub fn catch_up(&mut self) -> Result<(), Error> {
        self.reader.catch_up()
    }

    /// What there is, again.
    pub fn list(&mut self, cause: ListingCause) {
        let is_loss = cause == ListingCause::Lost;
        let waits = self.begins.is_some() || matches!(self.questions.front(), Some(Question::Wait(_)));
        if waits && !is_loss {
            // One that has not begun yet tells as much.
            return;
        }
        let route = |family| {
            let mut message = RouteMessage::default();
            message.header.address_family = family;
            RouteNetlinkMessage::GetRoute(message)
        };
        // Links and next hops before what names them.
        let list = [
            dump(RouteNetlinkMessage::GetLink(LinkMessage::default())),
            dump(RouteNetlinkMessage::GetAddress(AddressMessage::default())),
            dump(RouteNetlinkMessage::GetNeighbour(NeighbourMessage::default())),
            next_hops(),
            dump(route(AddressFamily::Inet)),
            dump(route(AddressFamily::Inet6)),
        ];
        let multicast = self.multicast.iter().map(|family| dump(route(*family)));
        let list = list.into_iter().chain(multicast).map(Question::List);
        if is_loss {
            self.questions = std::iter::once(Question::Wait(cause)).chain(list).collect();
        } else {
            self.questions = list.collect();
            self.ready.push_back(Announcement::Begin(cause));
        }
        // An answer that is still coming ends first.
        if !self.asking {
            self.ask();
        }
    }

    fn ask(&mut self) {
        if let Some(cause) = self.begins.take() {
            self.ready.push_back(Announcement::Begin(cause));
        }
        let Some(question) = self.questions.pop_front() else {
            self.asking = false;
            self.ready.push_back(Announcement::End);
            return;
        };
        self.asking = true;
        self.reader.ask(match question {
            Question::List(bytes) => bytes,
            Question::Wait(cause) => {
                self.begins = Some(cause);
                dump(RouteNetlinkMessage::GetNsId(NsidMessage::default()))
            }
        });
    }

    /// The next announcement, or `None` when there is none yet. Never blocks.
    ///
    /// # Errors
    /// The kernel's announcements cannot be read, or it cannot be asked.
    pub fn next_one(&mut self) -> Result<Option<Announcement>, Error> {
        while self.ready.is_empty() {
            let mut batch = std::mem::take(&mut self.batch);
            match batch.next_piece() {
                Some(Read::Lost) => self.list(ListingCause::Lost),
                Some(Read::Datagram(datagram)) => {
                    netlink::pieces(datagram).for_each(|message| self.take(message));
                }
                None => match self.reader.take()? {
                    Some(more) => batch = more,
                    None => return Ok(None),
                },
            }
            self.batch = batch;
        }
        Ok(self.ready.pop_front())
    }

    fn take(&mut self, message: &[u8]) {
        let told = told(message);
        match quickly(message) {
            Some(Quick::Route(route, present)) => {
                self.ready.push_back(Announcement::Route(told, route, present));
            }
            Some(Quick::NextHop(id, hop)) => self.ready.push_back(Announcement::NextHop(told, id, hop)),
            Some(Quick::Nothing) => {}
            None => self.take_other(told, message),
        }
    }

    /// Kinds of messages that are rare.
    fn take_other(&mut self, told: EventOrigin, message: &[u8]) {
        // A kind of message that this program cannot read says nothing about the others.
        let Ok(message) = netlink::read(message) else { return };
        match message.payload {
            NetlinkPayload::InnerMessage(inner) => {
                self.ready.push_back(Announcement::Message(told, Box::new(inner)));
            }
            NetlinkPayload::Done(_) => self.ask(),
            NetlinkPayload::Error(e) if e.code.is_some() => {
                // A table that the kernel does not have.
                tracing::debug!("rtnetlink dump: {}", e.to_io());
                self.ask();
            }
            _ => {}
        }
    }
}

/// Asks for all there is of a kind.
fn dump(request: RouteNetlinkMessage) -> Vec<u8> {
    netlink::bytes(request, NLM_F_REQUEST | NLM_F_DUMP)
}

/// Asks for all next hops: `nlmsghdr` with neither number nor port, and an empty `nhmsg`.
fn next_hops() -> Vec<u8> {
    const LEN: u32 = 24;
    let mut bytes = LEN.to_ne_bytes().to_vec();
    bytes.extend(rtnetlink::RTM_GETNEXTHOP.to_ne_bytes());
    bytes.extend((NLM_F_REQUEST | NLM_F_DUMP).to_ne_bytes());
    bytes.resize(LEN as usize, 0);
    bytes
}

/// Whether a message belongs to a listing: those have several parts (`NLM_F_MULTI`), announcements have one.
fn told(message: &[u8]) -> EventOrigin {
    const FLAGS: usize = 6;
    match rtnetlink::u16_at(message, FLAGS) {
        Some(flags) if flags & NLM_F_MULTIPART != 0 => EventOrigin::Listed,
        _ => EventOrigin::Announced,
    }
}

/// What is read without a copy, because there may be millions of it.
enum Quick {
    Route(HostRoute, bool),
    NextHop(u32, Option<HostNextHop>),
    /// It is not followed.
    Nothing,
}

/// What a message about a unicast route or a next hop says; nothing if it is about something else.
fn quickly(message: &[u8]) -> Option<Quick> {
    let (kind, body) = (rtnetlink::u16_at(message, 4)?, message.get(rtnetlink::HEADER..)?);
    match kind {
        RTM_NEWROUTE | RTM_DELROUTE => {
            let family = body.first()?;
            if MULTICAST_ROUTES.iter().any(|(multicast, _)| multicast == family) {
                return None;
            }
            let route = rtnetlink::host_route(body);
            Some(route.map_or(Quick::Nothing, |route| Quick::Route(route, kind == RTM_NEWROUTE)))
        }
        RTM_NEWNEXTHOP | RTM_DELNEXTHOP => Some(match rtnetlink::next_hop(body) {
            Some((id, hop)) => Quick::NextHop(id, (kind == RTM_NEWNEXTHOP).then_some(hop)),
            None => Quick::Nothing,
        }),
        _ => None,
    }
}
