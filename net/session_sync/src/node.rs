//! `session-sync4-input` and `session-sync6-input`: what the other router says.
//! ip4-local, ip6-local -> **session-sync4-input**, **session-sync6-input** -> drop; the main thread reads and answers

use std::fmt;
use std::net::IpAddr;
use std::sync::atomic::{AtomicU64, Ordering};

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, PacketNode};
use shoal_infra::Published;
use shoal_wire::{Ip4Header, Ip6Header, UdpHeader};

use crate::wire::{Header, Invalid, Kind, LONGEST};

/// A datagram that came from the other router's address.
#[derive(Clone)]
pub struct ReceivedDatagram {
    bytes: [u8; LONGEST],
    length: u16,
}

impl ReceivedDatagram {
    fn new(data: &[u8]) -> Self {
        let mut bytes = [0; LONGEST];
        bytes.iter_mut().zip(data).for_each(|(to, from)| *to = *from);
        ReceivedDatagram { bytes, length: data.len().min(LONGEST) as u16 }
    }

    /// Its data.
    pub fn bytes(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.length)).unwrap_or_default()
    }
}

impl fmt::Debug for ReceivedDatagram {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} bytes", self.length)
    }
}

/// What nodes know of the other router.
pub struct Reception {
    /// Its address and this router's; `None`: there is none.
    pub ends: Published<Option<(IpAddr, IpAddr)>>,
    /// The numbers by which this router may be called.
    own: [AtomicU64; 2],
    /// Datagrams that have one of those numbers.
    pub(crate) known: Sender<ReceivedDatagram>,
    /// Hellos of a router that does not know them: of those few are looked at.
    pub(crate) strange: Sender<ReceivedDatagram>,
}

impl Reception {
    pub(crate) fn new(known: Sender<ReceivedDatagram>, strange: Sender<ReceivedDatagram>) -> Self {
        let own = [AtomicU64::new(0), AtomicU64::new(0)];
        Reception { ends: Published::new(None), own, known, strange }
    }

    /// This router is called so from now on.
    pub(crate) fn set_own(&self, own: [u64; 2]) {
        self.own.iter().zip(own).for_each(|(to, number)| to.store(number, Ordering::Relaxed));
    }

    fn is_own(&self, number: u64) -> bool {
        number != 0 && self.own.iter().any(|own| own.load(Ordering::Relaxed) == number)
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
    /// datagrams of the other router
    #[severity(info)]
    #[counter("datagrams of the other router")]
    Received,
    /// from another address than the other router's
    #[counter("from another address than the other router's")]
    UnknownPeer,
    /// malformed
    #[counter("malformed")]
    Malformed,
    /// of another version
    #[counter("of another version")]
    Version,
    /// of an association that is over
    #[counter("of an association that is over")]
    OldAssociation,
    /// not looked at, too many at a time
    #[counter("not looked at, too many at a time")]
    Congested,
}

impl From<Invalid> for Error {
    fn from(invalid: Invalid) -> Self {
        match invalid {
            Invalid::Malformed => Error::Malformed,
            Invalid::Version => Error::Version,
        }
    }
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("session-sync: {kind} {sequence} from {from}, {bytes} bytes")]
pub struct Trace {
    kind: &'static str,
    sequence: u64,
    from: IpAddr,
    bytes: usize,
}

/// The code of both nodes.
pub struct Input<const IP6: bool> {
    pub(crate) reception: std::sync::Arc<Reception>,
}

impl<const IP6: bool> Input<IP6> {
    fn read<'a>(pkt: &'a Packet<'_>) -> Option<((IpAddr, IpAddr), &'a [u8])> {
        let (ends, header): ((IpAddr, IpAddr), usize) = if IP6 {
            let ip = pkt.header::<Ip6Header>()?;
            ((ip.src().into(), ip.dst().into()), Ip6Header::LEN)
        } else {
            let ip = pkt.header::<Ip4Header>()?;
            ((ip.src().into(), ip.dst().into()), ip.header_len())
        };
        let data = pkt.data();
        let &[_, _, _, _, high, low, ..] = data.get(header..header + UdpHeader::LEN)? else { return None };
        let length = usize::from(u16::from_be_bytes([high, low]));
        Some((ends, data.get(header + UdpHeader::LEN..header + length)?))
    }
}

impl<const IP6: bool> PacketNode for Input<IP6> {
    const NAME: &'static str = if IP6 { "session-sync6-input" } else { "session-sync4-input" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let reception = &*self.reception;
        let (ends, data) = Self::read(pkt).ok_or(Error::Malformed)?;
        let header = Header::read(data)?;
        cx.trace(pkt, || Trace {
            kind: match header.kind {
                Kind::Hello => "hello",
                Kind::Data => "data",
                Kind::Ack => "ack",
            },
            sequence: header.sequence,
            from: ends.0,
            bytes: data.len(),
        });
        if *reception.ends.load(cx.guard()) != Some(ends) {
            return Err(Error::UnknownPeer);
        }
        let channel = if reception.is_own(header.receiver) {
            &reception.known
        } else if header.kind == Kind::Hello {
            &reception.strange
        } else {
            return Err(Error::OldAssociation);
        };
        channel.try_send(ReceivedDatagram::new(data)).map_err(|_| Error::Congested)?;
        cx.count(Error::Received, 1);
        Ok(Next::Done)
    }
}
