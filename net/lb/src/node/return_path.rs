//! `lb-nat4-in2out`, `lb-nat6-in2out`: answers of servers get the virtual address as their source.
//! features of `ip4-unicast` | of `ip6-unicast` -> **lb-nat4-in2out** -> the next feature

use std::net::{IpAddr, Ipv4Addr};
use std::sync::Arc;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, PacketNode};
use shoal_nat::Kind;
use shoal_nat::ip6::End;

use super::Shared;
use super::encap::{nat4, nat6};
use crate::config::{Front, back};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature.
    Feature(Edge),
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// good in2out packets processed
    #[severity(info)]
    #[counter("in2out_packets")]
    Processed,
    /// malformed packets
    #[counter("malformed")]
    Malformed,
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("LB NAT in2out: rx_sw_if_index {interface}, {verdict}")]
pub struct Trace {
    interface: u32,
    verdict: &'static str,
}

/// The code of both nodes.
pub struct ReturnPath<const IP6: bool> {
    pub(crate) shared: Arc<Shared>,
}

impl<const IP6: bool> ReturnPath<IP6> {
    /// The service whose server a packet comes from.
    fn front(&self, pkt: &Packet<'_>, cx: &Cx<'_, Self>) -> Option<Front> {
        let config = self.shared.config.load(cx.guard());
        if config.back.is_empty() {
            return None;
        }
        let flow = self.shared.flow(IP6, pkt).ok()?;
        // An error's flow is that of the packet it carries, whose answer would come from the server.
        if !matches!(flow.kind, Kind::Tcp | Kind::Udp | Kind::Error) || flow.is_later {
            return None;
        }
        let server = if IP6 { IpAddr::V6(flow.src.into()) } else { Ipv4Addr::from(flow.src as u32).into() };
        config.back.get(&back(server, flow.protocol, flow.sport)).copied()
    }
}

impl<const IP6: bool> PacketNode for ReturnPath<IP6> {
    const NAME: &'static str = if IP6 { "lb-nat6-in2out" } else { "lb-nat4-in2out" };
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        let front = self.front(pkt, cx);
        let interface = pkt.rx().0;
        let verdict = if front.is_some() { "translated" } else { "no service's server" };
        cx.trace(pkt, || Trace { interface, verdict });
        if let Some(Front { address, port, .. }) = front {
            match address {
                IpAddr::V4(address) => nat4(pkt, End::Source, (address, port)),
                IpAddr::V6(address) => nat6(pkt, End::Source, (address, port)),
            }
            .map_err(|_| Error::Malformed)?;
            cx.count(Error::Processed, 1);
        }
        Ok(Next::Feature(cx.next_feature(pkt)))
    }
}
