//! `vrrp4-input`, `vrrp6-input`: what other routers of a virtual router say. `vrrp4-no-accept`, `vrrp6-no-accept`: packets to a
//! virtual address that is not accepted.
//! ip4-local | ip6-local -> **vrrp4-input** -> drop; the control plane answers
//! ip4-lookup | ip6-lookup -> **vrrp4-no-accept** -> drop | ip6-local

use std::net::IpAddr;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_wire::{Icmp6Type, Ip4Header, Ip6Header, IpProtocol};

use crate::packet::{Advertisement, Invalid};

/// What an advertisement has left: it has passed no router (RFC 9568, 5.1.1.3).
const TTL: u8 = 255;

/// An advertisement that came.
#[derive(Clone, Copy, Debug)]
pub struct ReceivedAdvertisement {
    /// The interface.
    pub interface: SwIfIndex,
    /// Its source.
    pub src: IpAddr,
    /// What it says.
    pub said: Advertisement,
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
    /// VRRP packets processed
    #[severity(info)]
    Processed,
    /// VRRP advertisement TTL is not 255
    #[counter("bad_ttl")]
    Ttl,
    /// VRRP version is not 3
    #[counter("not_version_3")]
    NotVersion3,
    /// VRRP packet has wrong size
    #[counter("incomplete_pkt")]
    Incomplete,
    /// VRRP packet is no advertisement
    #[counter("bad_type")]
    Type,
    /// VRRP advertisement names no address
    #[counter("wrong_addr_count")]
    Addresses,
    /// VRRP checksum failed
    #[counter("bad_checksum")]
    Checksum,
    /// VRRP version 2 advertisement has a password
    #[counter("auth_type")]
    Authentication,
    /// not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Version => Error::NotVersion3,
            Invalid::Type => Error::Type,
            Invalid::Length => Error::Incomplete,
            Invalid::Addresses => Error::Addresses,
            Invalid::Checksum => Error::Checksum,
            Invalid::Authentication => Error::Authentication,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line(
    "VRRP sw_if_index {interface}, {src} -> {dst}, first byte 0x{first:02x}, VR ID {vr_id}, priority {priority}"
)]
pub struct Trace {
    interface: u32,
    src: IpAddr,
    dst: IpAddr,
    first: u8,
    vr_id: u8,
    priority: u8,
}

/// The code of both input nodes.
pub struct Input<const IP6: bool> {
    pub(crate) tell: Sender<ReceivedAdvertisement>,
}

/// Ends, TTL and where the message begins and ends.
type Read = ((IpAddr, IpAddr), u8, (usize, usize));

impl<const IP6: bool> Input<IP6> {
    fn headers(pkt: &Packet<'_>) -> Option<Read> {
        if IP6 {
            let ip = pkt.header::<Ip6Header>().filter(|ip| ip.protocol() == IpProtocol::VRRP)?;
            let end = Ip6Header::LEN + usize::from(ip.payload_length());
            return Some(((ip.src().into(), ip.dst().into()), ip.hop_limit(), (Ip6Header::LEN, end)));
        }
        let ip = pkt.header::<Ip4Header>().filter(|ip| !ip.is_fragment())?;
        let end = usize::from(ip.total_length());
        Some(((ip.src().into(), ip.dst().into()), ip.ttl(), (ip.header_len(), end)))
    }
}

impl<const IP6: bool> PacketNode for Input<IP6> {
    const NAME: &'static str = if IP6 { "vrrp6-input" } else { "vrrp4-input" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let (ends, ttl, (from, to)) = Self::headers(pkt).ok_or(Error::Incomplete)?;
        let message = pkt.data().get(from..to).ok_or(Error::Incomplete)?;
        let at = |n: usize| message.get(n).copied().unwrap_or_default();
        let (src, dst) = ends;
        let interface = pkt.rx();
        cx.trace(pkt, || Trace {
            interface: interface.0,
            src,
            dst,
            first: at(0),
            vr_id: at(1),
            priority: at(2),
        });
        if ttl != TTL {
            return Err(Error::Ttl);
        }
        let said = Advertisement::read(ends, message)?;
        self.tell.try_send(ReceivedAdvertisement { interface, src, said }).map_err(|_| Error::Congested)?;
        cx.count(Error::Processed, 1);
        Ok(Next::Done)
    }
}

/// Where packets to a virtual address go.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAcceptNext {
    /// Neighbour discovery works in any case.
    #[node("ip6-local")]
    Local,
}

/// Why they are dropped.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum NoAcceptError {
    /// packets to a virtual address without accept_mode
    #[counter("not_accepted")]
    NotAccepted,
}

/// What `show trace` says of them.
#[derive(TraceLine)]
#[line("VRRP: virtual address, accept_mode is off")]
pub struct NoAcceptTrace {}

/// The code of both nodes for packets that are not accepted.
pub struct NoAccept<const IP6: bool>;

impl<const IP6: bool> PacketNode for NoAccept<IP6> {
    const NAME: &'static str = if IP6 { "vrrp6-no-accept" } else { "vrrp4-no-accept" };
    type Next = NoAcceptNext;
    type Error = NoAcceptError;
    type Trace = NoAcceptTrace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<NoAcceptNext, NoAcceptError> {
        cx.trace(pkt, || NoAcceptTrace {});
        // RFC 9568, 6.4.3: solicitations and advertisements of neighbours are not dropped.
        let is_discovery = IP6
            && pkt.header::<Ip6Header>().is_some_and(|ip| ip.protocol() == IpProtocol::ICMP6)
            && pkt.data().get(Ip6Header::LEN).is_some_and(|kind| {
                [Icmp6Type::NEIGHBOR_SOLICITATION, Icmp6Type::NEIGHBOR_ADVERTISEMENT]
                    .contains(&Icmp6Type(*kind))
            });
        if is_discovery { Ok(NoAcceptNext::Local) } else { Err(NoAcceptError::NotAccepted) }
    }
}
