//! The kernel's own addresses, as they are now and whenever they change.

use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::os::fd::{AsFd, BorrowedFd};

use netlink_packet_core::{NLM_F_DUMP, NLM_F_MULTIPART, NLM_F_REQUEST, NetlinkPayload};
use netlink_packet_route::RouteNetlinkMessage;
use netlink_packet_route::address::{AddressAttribute, AddressMessage};
use netlink_sys::Socket;

use crate::netlink::{Loss, SubscriptionRead, hear, subscribe};
use crate::{Error, IfIndex, netlink};

/// `RTMGRP_IPV4_IFADDR` and `RTMGRP_IPV6_IFADDR` of linux/rtnetlink.h.
const GROUPS: u32 = 0x10 | 0x100;

/// A subscription to the addresses of one network namespace.
///
/// It keeps a copy of the kernel's table. When announcements were lost because they were not read in time, the table is
/// read again.
/// Await readability of [`AddressWatch::fd`], then call [`AddressWatch::update`].
pub struct AddressWatch {
    socket: Socket,
    table: BTreeMap<IfIndex, BTreeSet<IpAddr>>,
    /// While the table is read again: the addresses that were announced meanwhile, or taken away; the kernel lists without a lock.
    dump: Option<BTreeSet<(IfIndex, IpAddr)>>,
    lost: Loss,
}

impl AddressWatch {
    /// Subscribes in the network namespace of the calling thread and reads the table.
    ///
    /// # Errors
    /// The kernel cannot be asked.
    pub fn open() -> Result<Self, Error> {
        let socket = subscribe(GROUPS, "bind(RTMGRP_IFADDR)")?;
        let mut watch = Self { socket, table: BTreeMap::new(), dump: None, lost: Loss::default() };
        watch.start_dump()?;
        while watch.dump.is_some() {
            watch.read()?;
        }
        watch.socket.set_non_blocking(true).map_err(Error::os("fcntl(O_NONBLOCK)"))?;
        Ok(watch)
    }

    /// The addresses of an interface.
    pub fn of(&self, index: IfIndex) -> Vec<IpAddr> {
        self.table.get(&index).into_iter().flatten().copied().collect()
    }

    /// Readable when there is something to read.
    pub fn fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }

    /// Reads what has been announced; whether there was anything. Never blocks.
    ///
    /// # Errors
    /// The kernel's announcements cannot be read.
    pub fn update(&mut self) -> Result<bool, Error> {
        let mut any = false;
        loop {
            match self.read() {
                Ok(()) => any = true,
                Err(e) if e.errno() == Some(libc::EAGAIN) => return Ok(any),
                Err(e) => return Err(e),
            }
        }
    }

    fn start_dump(&mut self) -> Result<(), Error> {
        let request = RouteNetlinkMessage::GetAddress(AddressMessage::default());
        self.table.clear();
        self.dump = Some(BTreeSet::new());
        netlink::send(&self.socket, request, NLM_F_REQUEST | NLM_F_DUMP, "RTM_GETADDR(dump)")
    }

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
            let listed = message.header.flags & NLM_F_MULTIPART != 0;
            match message.payload {
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::NewAddress(m)) => {
                    self.take(&m, listed, true);
                }
                NetlinkPayload::InnerMessage(RouteNetlinkMessage::DelAddress(m)) => {
                    self.take(&m, listed, false);
                }
                NetlinkPayload::Done(_) if self.lost.asks_again() => self.start_dump()?,
                NetlinkPayload::Done(_) => self.dump = None,
                NetlinkPayload::Error(e) if e.code.is_some() => {
                    return Err(Error::Os { what: "RTM_GETADDR(dump)", source: e.to_io() });
                }
                _ => {}
            }
        }
        Ok(())
    }

    fn take(&mut self, message: &AddressMessage, listed: bool, present: bool) {
        let Some((index, address)) = parse(message) else { return };
        if let Some(announced) = &mut self.dump {
            if !listed {
                announced.insert((index, address));
            } else if announced.contains(&(index, address)) {
                return;
            }
        }
        let all = self.table.entry(index).or_default();
        if present {
            all.insert(address)
        } else {
            all.remove(&address)
        };
        if all.is_empty() {
            self.table.remove(&index);
        }
    }
}

/// Where IFA_LOCAL is, it is the interface's own address, and IFA_ADDRESS that of the other end.
fn parse(message: &AddressMessage) -> Option<(IfIndex, IpAddr)> {
    let (mut local, mut address) = (None, None);
    for attribute in &message.attributes {
        match attribute {
            AddressAttribute::Local(a) => local = Some(*a),
            AddressAttribute::Address(a) => address = Some(*a),
            _ => {}
        }
    }
    Some((IfIndex::new(message.header.index), local.or(address)?))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_was_announced_since_a_listing_began_counts() {
        let socket = Socket::new(netlink_sys::protocols::NETLINK_ROUTE).unwrap();
        let (table, lost) = (BTreeMap::new(), Loss::default());
        let mut watch = AddressWatch { socket, table, dump: Some(BTreeSet::new()), lost };
        let message = |last: u8| {
            let mut message = AddressMessage::default();
            message.header.index = 7;
            message.attributes.push(AddressAttribute::Local([192, 0, 2, last].into()));
            message
        };
        let (listed, announced) = (true, false);
        watch.take(&message(1), announced, true);
        watch.take(&message(1), announced, false);
        watch.take(&message(2), announced, true);
        // The kernel lists without a lock, and has read this before.
        watch.take(&message(1), listed, true);
        watch.take(&message(3), listed, true);
        let all = |watch: &AddressWatch| watch.of(IfIndex::new(7));
        assert_eq!(all(&watch), [2, 3].map(|last| IpAddr::from([192, 0, 2, last])));
        watch.dump = None;
        watch.take(&message(3), announced, false);
        watch.take(&message(2), announced, false);
        assert!(all(&watch).is_empty() && watch.table.is_empty());
    }

    #[test]
    fn a_table_is_asked_for_once_more_after_a_loss() {
        let mut lost = Loss::default();
        assert!(!lost.asks_again());
        // Nothing was being listed: it is asked for now, and again when the answer has ended.
        assert!(lost.asks(false));
        assert!(lost.asks_again() && !lost.asks_again());
        // While an answer comes, its end is soon enough.
        assert!(!lost.asks(true));
        assert!(lost.asks_again() && !lost.asks_again());
    }
}
