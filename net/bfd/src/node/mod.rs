//! `bfd-udp4-input` and its like: what other stations send to BFD's ports.
//! ip4-local -> **bfd-udp4-input** -> drop. What says nothing new is noted here; the control plane sees the rest.

use std::net::IpAddr;
use std::sync::Arc;

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_wire::{Ip4Header, Ip6Header, UdpHeader};

use crate::packet::Invalid;
use crate::reception::Reception;
use crate::shared::SharedSession;

/// The port of sessions between neighbours (RFC 5881, 4).
pub const SINGLE_HOP: u16 = 3784;
/// The port of echo packets.
pub const ECHO: u16 = 3785;
/// The port of sessions over several hops (RFC 5883, 5).
pub const MULTI_HOP: u16 = 4784;

/// Bytes of the longest packet that is looked at.
const LONGEST: usize = 64;
/// What a packet of a neighbour has left (RFC 5881, 5).
const TTL: u8 = 255;

/// A packet that came.
#[derive(Clone, Debug)]
pub struct ReceivedPacket {
    /// The interface.
    pub interface: SwIfIndex,
    /// Its source.
    pub src: IpAddr,
    /// Its destination.
    pub dst: IpAddr,
    /// Its destination port.
    pub port: u16,
    /// Its TTL or hop limit.
    pub ttl: u8,
    /// The session that it is of, if the thread that received it knows it.
    pub session: Option<Arc<SharedSession>>,
    bytes: [u8; LONGEST],
    len: u8,
    /// Bytes of the IP packet.
    pub length: u32,
}

impl ReceivedPacket {
    /// What is behind the UDP header.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
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
    /// OK
    #[severity(info)]
    #[counter("none")]
    Ok,
    /// bad packet
    Bad,
    /// bfd packets received on disabled interfaces
    Disabled,
    /// version
    Version,
    /// too short
    Length,
    /// detect-multi
    DetectMulti,
    /// multi-point
    MultiPoint,
    /// my-disc
    MyDisc,
    /// your-disc
    YourDisc,
    /// session admin-down
    AdminDown,
    /// no-session
    NoSession,
    /// failed-verification
    FailedVerification,
    /// src-mismatch
    SrcMismatch,
    /// dst-mismatch
    DstMismatch,
    /// ttl
    Ttl,
    /// not looked at, too many at a time
    #[severity(warn)]
    Congested,
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Version => Error::Version,
            Invalid::Length => Error::Length,
            Invalid::DetectMulti => Error::DetectMulti,
            Invalid::MultiPoint => Error::MultiPoint,
            Invalid::MyDisc => Error::MyDisc,
            Invalid::YourDisc => Error::YourDisc,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("BFD v{version}, diag={diag}, state={state}, port {port}, {bytes} bytes")]
pub struct Trace {
    version: u8,
    diag: u8,
    state: u8,
    port: u16,
    bytes: usize,
}

/// The code of all nodes.
pub struct Input<const IP6: bool, const IS_ECHO: bool> {
    pub(crate) reception: Arc<Reception>,
}

impl<const IP6: bool, const IS_ECHO: bool> Input<IP6, IS_ECHO> {
    fn read(pkt: &Packet<'_>) -> Option<ReceivedPacket> {
        let (src, dst, ttl, header): (IpAddr, IpAddr, u8, usize) = if IP6 {
            let ip = pkt.header::<Ip6Header>()?;
            (ip.src().into(), ip.dst().into(), ip.hop_limit(), Ip6Header::LEN)
        } else {
            let ip = pkt.header::<Ip4Header>()?;
            (ip.src().into(), ip.dst().into(), ip.ttl(), ip.header_len())
        };
        let data = pkt.data();
        let udp = data.get(header..header + UdpHeader::LEN)?;
        let &[_, _, high, low, ..] = udp else { return None };
        let rest = data.get(header + UdpHeader::LEN..)?;
        let taken = rest.len().min(LONGEST);
        let mut bytes = [0; LONGEST];
        bytes.iter_mut().zip(rest).for_each(|(to, from)| *to = *from);
        let port = u16::from_be_bytes([high, low]);
        let (interface, length) = (pkt.rx(), pkt.len() as u32);
        let session = None;
        Some(ReceivedPacket { interface, src, dst, port, ttl, session, bytes, len: taken as u8, length })
    }
}

impl<const IP6: bool, const IS_ECHO: bool> PacketNode for Input<IP6, IS_ECHO> {
    const NAME: &'static str = match (IP6, IS_ECHO) {
        (false, false) => "bfd-udp4-input",
        (true, false) => "bfd-udp6-input",
        (false, true) => "bfd-udp-echo4-input",
        (true, true) => "bfd-udp-echo6-input",
    };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let heard = Self::read(pkt).ok_or(Error::Length)?;
        let bytes = heard.bytes();
        let (first, second) =
            (bytes.first().copied().unwrap_or_default(), bytes.get(1).copied().unwrap_or_default());
        cx.trace(pkt, || Trace {
            version: first >> 5,
            diag: first & 0x1f,
            state: second >> 6,
            port: heard.port,
            bytes: bytes.len(),
        });
        let (now, thread, guard) = (cx.now(), cx.thread(), cx.guard());
        if IS_ECHO {
            self.reception.echo(heard, now, thread, guard)?;
        } else if heard.port == SINGLE_HOP && heard.ttl != TTL {
            // RFC 5881, 5: a packet of a neighbour has passed no router.
            return Err(Error::Ttl);
        } else {
            self.reception.control(heard, now, thread, guard)?;
        }
        cx.count(Error::Ok, 1);
        Ok(Next::Done)
    }
}
