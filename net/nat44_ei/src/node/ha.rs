//! `nat44-ei-ha`: what another router tells of its sessions.
//! ip4-local -> **nat44-ei-ha** -> drop; the control plane takes sessions in and answers

use std::net::Ipv4Addr;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_wire::{Ip4Header, UdpHeader};

use crate::ha_wire::Header;

/// Bytes of a datagram's data that are looked at: path MTUs are not longer.
const LONGEST: usize = 9216;

/// A datagram that came.
#[derive(Clone, Debug)]
pub struct HaDatagram {
    /// From where.
    pub from: (Ipv4Addr, u16),
    /// To where.
    pub to: (Ipv4Addr, u16),
    /// Its data.
    pub bytes: Vec<u8>,
}

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// It has been understood.
    #[node("drop")]
    Done,
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// pkts-processed
    #[severity(info)]
    #[counter("pkts-processed")]
    Processed,
    /// bad-version
    #[counter("bad-version")]
    BadVersion,
    /// not looked at, too many at a time
    #[counter("congested")]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("nat44-ei-ha: {count} events from {from}")]
pub struct Trace {
    count: u16,
    from: Ipv4Addr,
}

/// The node.
pub struct HaInput {
    pub(crate) tell: Sender<HaDatagram>,
}

impl HaInput {
    fn read(pkt: &Packet<'_>) -> Option<HaDatagram> {
        let ip = pkt.header::<Ip4Header>()?;
        let header = ip.header_len();
        let data = pkt.data();
        let &[f0, f1, t0, t1, l0, l1, ..] = data.get(header..header + UdpHeader::LEN)? else { return None };
        let length = usize::from(u16::from_be_bytes([l0, l1])).min(LONGEST);
        let bytes = data.get(header + UdpHeader::LEN..header + length)?.to_vec();
        let (from, to) = (u16::from_be_bytes([f0, f1]), u16::from_be_bytes([t0, t1]));
        Some(HaDatagram { from: (ip.src(), from), to: (ip.dst(), to), bytes })
    }
}

impl PacketNode for HaInput {
    const NAME: &'static str = "nat44-ei-ha";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let heard = Self::read(pkt).ok_or(Error::BadVersion)?;
        let header = Header::read(&heard.bytes).ok_or(Error::BadVersion)?;
        let from = heard.from.0;
        cx.trace(pkt, || Trace { count: header.count, from });
        self.tell.try_send(heard).map_err(|_| Error::Congested)?;
        cx.count(Error::Processed, 1);
        Ok(Next::Done)
    }
}
