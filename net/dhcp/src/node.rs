//! `dhcp-proxy-to-server`, `dhcp-proxy-to-client`, and their like for IPv6: messages go to the main thread.
//! ip4-local | ip6-local | ip4-dhcp-client-detect -> **dhcp-proxy-to-server** -> drop; the control plane goes on
//!
//! `ip4-dhcp-client-detect`: answers to a client whose address is not the router's yet.
//! features of `ip4-unicast` -> **ip4-dhcp-client-detect** -> dhcp-proxy-to-client | the next feature

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::process::Sender;
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_infra::Guard;
use shoal_interface::IfTable;
use shoal_wire::{EthernetHeader, Ip4Header, IpProtocol, MacAddress, UdpHeader};

/// The longest packet that is looked at.
const LONGEST: usize = 2048;
/// DHCP's port of clients.
pub const CLIENT_PORT: u16 = 68;

/// Where a packet came in.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum ArrivalPort {
    /// At servers' ports.
    Server,
    /// At clients' ports.
    Client,
}

/// A packet that came.
#[derive(Clone, Debug)]
pub struct ReceivedPacket {
    /// The interface.
    pub interface: SwIfIndex,
    /// The sender's link-layer address.
    pub mac: Option<MacAddress>,
    /// At which ports.
    pub to: ArrivalPort,
    /// The packet, from its IP header on.
    pub packet: Vec<u8>,
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
    /// messages taken
    #[severity(info)]
    #[counter("messages taken")]
    Taken,
    /// too long, or cut short
    #[counter("bad length")]
    Length,
    /// not looked at, too many at a time
    #[counter("congested")]
    Congested,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("{bytes} bytes from {mac}")]
pub struct Trace {
    bytes: usize,
    mac: MacAddress,
}

/// The code of all four nodes.
pub struct Input<const IP6: bool, const TO_SERVER: bool> {
    pub(crate) tell: Sender<ReceivedPacket>,
    pub(crate) interfaces: IfTable,
}

impl<const IP6: bool, const TO_SERVER: bool> Input<IP6, TO_SERVER> {
    /// The link-layer source address in front of a packet.
    fn source_of(&self, pkt: &mut Packet<'_>, guard: Guard<'_>) -> Option<MacAddress> {
        let header = EthernetHeader::LEN + self.interfaces.get(pkt.rx(), guard).tags().len();
        pkt.push(header)?;
        let mac = pkt.data().get(6..).and_then(|bytes| bytes.first_chunk::<6>()).copied();
        pkt.pull(header)?;
        mac.map(MacAddress)
    }
}

impl<const IP6: bool, const TO_SERVER: bool> PacketNode for Input<IP6, TO_SERVER> {
    const NAME: &'static str = match (IP6, TO_SERVER) {
        (false, true) => "dhcp-proxy-to-server",
        (false, false) => "dhcp-proxy-to-client",
        (true, true) => "dhcpv6-proxy-to-server",
        (true, false) => "dhcpv6-proxy-to-client",
    };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        if pkt.len() > LONGEST {
            return Err(Error::Length);
        }
        let (packet, mac) = (pkt.to_vec(), self.source_of(pkt, cx.guard()));
        cx.trace(pkt, || Trace { bytes: packet.len(), mac: mac.unwrap_or(MacAddress::ZERO) });
        let to = if TO_SERVER { ArrivalPort::Server } else { ArrivalPort::Client };
        let heard = ReceivedPacket { interface: pkt.rx(), mac, to, packet };
        self.tell.try_send(heard).map_err(|_| Error::Congested)?;
        cx.count(Error::Taken, 1);
        Ok(Next::Done)
    }
}

/// Where packets of the feature go next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectNext {
    /// The next feature.
    Feature(Edge),
    /// It is for a client.
    #[node("dhcp-proxy-to-client")]
    Client,
}

/// What the feature counts.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum DetectError {
    /// answers for clients
    #[severity(info)]
    #[counter("Extract")]
    Extract,
}

/// What `show trace` says of the feature.
#[derive(TraceLine)]
#[line("dhcp-client-detect: {verdict}")]
pub struct DetectTrace {
    verdict: &'static str,
}

/// The feature.
pub struct Detect;

impl PacketNode for Detect {
    const NAME: &'static str = "ip4-dhcp-client-detect";
    type Next = DetectNext;
    type Error = DetectError;
    type Trace = DetectTrace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<DetectNext, DetectError> {
        let is_answer = pkt.header::<Ip4Header>().is_some_and(|ip| {
            ip.protocol() == IpProtocol::UDP
                && !ip.is_fragment()
                && pkt
                    .header_at::<UdpHeader>(ip.header_len())
                    .is_some_and(|udp| udp.dst_port() == CLIENT_PORT)
        });
        cx.trace(pkt, || DetectTrace { verdict: if is_answer { "yes" } else { "no" } });
        if is_answer {
            cx.count(DetectError::Extract, 1);
            return Ok(DetectNext::Client);
        }
        Ok(DetectNext::Feature(cx.next_feature(pkt)))
    }
}
