//! An ARP request becomes its reply where it lies.

use shoal_buffer::{Flags, Packet};
use shoal_interface::IfTable;
use shoal_wire::{ArpHeader, EtherType, EthernetHeader, MacAddress};

use super::error::Error;
use crate::counters::{ArpCounters, Kind};
use shoal_infra::Guard;

/// Bytes of ARP in the shortest Ethernet frame. What a request carries behind them is none of the reply's.
const LONGEST: usize = 60 - EthernetHeader::LEN;

/// Writes replies.
#[derive(Clone)]
pub(crate) struct Answer {
    pub(crate) interfaces: IfTable,
    pub(crate) counters: ArpCounters,
}

impl Answer {
    /// Turns a request into the reply of the interface that received it, and returns the MAC address of the receiver. The reply
    /// carries `as_mac`, or the interface's own address if there is none.
    pub(super) fn write(
        &self,
        pkt: &mut Packet<'_>,
        as_mac: Option<MacAddress>,
        thread: usize,
        guard: Guard<'_>,
    ) -> Result<MacAddress, Error> {
        let rx = pkt.rx();
        let data = self.interfaces.get(rx, guard);
        let ours = as_mac.unwrap_or(data.mac());
        let arp = pkt.header_mut::<ArpHeader>().ok_or(Error::TooShort)?;
        let to = arp.sender_mac();
        arp.make_reply(ours);
        pkt.truncate(pkt.len().min(LONGEST)).ok_or(Error::TooShort)?;
        pkt.push(EthernetHeader::LEN).ok_or(Error::TooShort)?;
        *pkt.header_mut::<EthernetHeader>().ok_or(Error::TooShort)? =
            EthernetHeader::new(ours, to, EtherType::ARP);
        data.tag(pkt).ok_or(Error::TooShort)?;
        let meta = pkt.meta_mut();
        meta.tx = rx;
        meta.flags = meta.flags.without(Flags::LINK_MULTICAST).with(Flags::LOCALLY_ORIGINATED);
        self.counters.count_tx(Kind::Reply, thread, rx);
        Ok(to)
    }
}
