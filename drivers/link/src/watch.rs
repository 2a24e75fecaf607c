//! Every change of every interface, as the kernel announces it.

use std::collections::{BTreeMap, BTreeSet, VecDeque};
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_MULTIPART, NLM_F_REQUEST, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::link::LinkMessage;
use netlink_sys::Socket;

use crate::netlink::{Loss, SubscriptionRead, hear, subscribe};
use crate::{AdminState, Error, IfIndex, Link, netlink};

/// `RTMGRP_LINK` of linux/rtnetlink.h.
const GROUP_LINK: u32 = 1;

/// What has changed.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LinkChange {
    /// It has appeared (created, or moved into this namespace).
    Added,
    /// It is gone (deleted, or moved out of this namespace); the event's link is what it last was.
    Deleted,
    /// Its name was `from`.
    Renamed {
        /// The former name.
        from: String,
    },
    /// The administrator's wish.
    Admin(AdminState),
    /// Carrier or operational state: read `link.carrier` and `link.running`.
    Carrier,
    /// Its MTU.
    Mtu,
    /// Its Ethernet address.
    Mac,
}

/// One change of one interface.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LinkEvent {
    /// The interface as it is after the change.
    pub link: Link,
    /// What has changed.
    pub change: LinkChange,
}

/// A subscription to the interfaces of one network namespace.
///
/// It keeps a copy of the kernel's table and reports differences. When the kernel had to drop announcements because
/// they were not read in time, the table is read again and the differences come out as if nothing had been lost; a flap
/// in between is then not seen.
///
/// Await readability of [`LinkWatch::fd`], then call [`LinkWatch::next_event`] until it says `None`.
pub struct LinkWatch {
    socket: Socket,
    table: BTreeMap<IfIndex, Link>,
    /// While the table is read again: the interfaces seen so far.
    dump: Option<BTreeSet<IfIndex>>,
    lost: Loss,
    events: VecDeque<LinkEvent>,
}

impl LinkWatch {
    /// Subscribes in the network namespace of the calling thread and reads the table; the interfaces that
    /// exist already are in [`LinkWatch::links`] and make no events.
    pub fn open() -> Result<Self, Error> {
        let socket = subscribe(GROUP_LINK, "bind(RTMGRP_LINK)")?;
        let mut watch = Self {
            socket,
            table: BTreeMap::new(),
            dump: None,
            lost: Loss::default(),
            events: VecDeque::new(),
        };
        watch.start_dump()?;
        while watch.dump.is_some() {
            watch.read()?;
        }
        watch.events.clear();
        watch.socket.set_non_blocking(true).map_err(Error::os("fcntl(O_NONBLOCK)"))?;
        Ok(watch)
    }

    /// The interfaces as of the last event.
    pub fn links(&self) -> impl Iterator<Item = &Link> {
        self.table.values()
    }

    /// The interface with that index.
    pub fn link(&self, index: IfIndex) -> Option<&Link> {
        self.table.get(&index)
    }

    /// Readable when there is something to read.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// The next change, or `None` when there is none yet. Never blocks.
    pub fn next_event(&mut self) -> Result<Option<LinkEvent>, Error> {
        while self.events.is_empty() {
            match self.read() {
                Ok(()) => {}
                Err(e) if e.errno() == Some(libc::EAGAIN) => return Ok(None),
                Err(e) => return Err(e),
            }
        }
        Ok(self.events.pop_front())
    }

    fn start_dump(&mut self) -> Result<(), Error> {
        let request = RouteNetlinkMessage::GetLink(LinkMessage::default());
        self.dump = Some(BTreeSet::new());
        netlink::send(&self.socket, request, NLM_F_REQUEST | NLM_F_DUMP, "RTM_GETLINK(dump)")
    }

    /// Reads one datagram into events.
    fn read(&mut self) -> Result<(), Error> {
        let datagram = match hear(&self.socket)? {
            SubscriptionRead::Datagram(datagram) => datagram,
            SubscriptionRead::Nothing => return Ok(()),
            SubscriptionRead::Lost => {
                return if self.lost.asks(self.dump.is_some()) { self.start_dump() } else { Ok(()) };
            }
        };
        for message in netlink::messages(&datagram) {
            let message = message?;
            // Announcements from before the dump may still be in the queue; they prove nothing about now.
            let dumped = message.header.flags & NLM_F_MULTIPART != 0;
            match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewLink(m)) => self.changed(&m, dumped),
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelLink(m)) => self.deleted(&m),
                NetlinkPayload::Done(_) if self.lost.asks_again() => self.start_dump()?,
                NetlinkPayload::Done(_) => self.dump_done(),
                NetlinkPayload::Error(e) if e.code.is_some() => {
                    return Err(Error::Os { what: "RTM_GETLINK(dump)", source: e.to_io() });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn changed(&mut self, message: &LinkMessage, dumped: bool) {
        let Some(link) = Link::parse(message) else { return };
        if dumped && let Some(seen) = &mut self.dump {
            seen.insert(link.index);
        }
        let Some(old) = self.table.insert(link.index, link.clone()) else {
            self.events.push_back(LinkEvent { link, change: LinkChange::Added });
            return;
        };
        for change in differences(&old, &link) {
            self.events.push_back(LinkEvent { link: link.clone(), change });
        }
    }

    fn deleted(&mut self, message: &LinkMessage) {
        use netlink_packet_route::AddressFamily::Bridge;
        // A port that leaves its bridge is announced as a deletion in the bridge family.
        if message.header.interface_family == Bridge {
            return;
        }
        self.forget(IfIndex::new(message.header.index));
    }

    fn forget(&mut self, index: IfIndex) {
        if let Some(link) = self.table.remove(&index) {
            self.events.push_back(LinkEvent { link, change: LinkChange::Deleted });
        }
    }

    fn dump_done(&mut self) {
        let Some(seen) = self.dump.take() else { return };
        let stale: Vec<_> = self.table.keys().filter(|i| !seen.contains(i)).copied().collect();
        for index in stale {
            self.forget(index);
        }
    }
}

fn differences(old: &Link, new: &Link) -> impl Iterator<Item = LinkChange> {
    let renamed = (old.name != new.name).then(|| LinkChange::Renamed { from: old.name.clone() });
    let admin = (old.admin != new.admin).then_some(LinkChange::Admin(new.admin));
    let carrier = ((old.carrier, old.running) != (new.carrier, new.running)).then_some(LinkChange::Carrier);
    let mtu = (old.mtu != new.mtu).then_some(LinkChange::Mtu);
    let mac = (old.mac != new.mac).then_some(LinkChange::Mac);
    [renamed, admin, carrier, mtu, mac].into_iter().flatten()
}
