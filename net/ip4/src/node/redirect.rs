//! `ip4-redirect`: packets that leave by the interface they came in by. RFC 1812, 5.2.7.2.
//! ip4-rewrite -> **ip4-redirect** -> ip4-rewrite, and ip4-icmp-error for a copy
//!
//! A frame node, because one packet becomes two.

use shoal_adj::{AdjIndex, AdjTable};
use shoal_buffer::{Buffer, Flags, Frame, Packet};
use shoal_derive::{ErrorCounters, NextNodes};
use shoal_graph::{FrameCx, FrameNode, NextNodes as _};
use shoal_interface::{IfFlags, IfTable};
use shoal_wire::Ip4Header;

use crate::{IcmpError, Ip4IfTable};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The packet goes its way.
    #[node("ip4-rewrite")]
    Rewrite,
    /// Its sender gets a redirect to the better one.
    #[node("ip4-icmp-error")]
    IcmpError,
}

/// What is counted here.
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// redirects asked for
    #[severity(info)]
    Redirect,
}

/// Bytes of a packet an ICMP error may quote.
const QUOTE: usize = 576;

/// Needs the way out and the router's own networks.
pub struct Ip4Redirect {
    /// All adjacencies.
    pub adjacencies: AdjTable,
    /// The addresses of interfaces.
    pub addresses: Ip4IfTable,
    /// All interfaces.
    pub interfaces: IfTable,
}

impl Ip4Redirect {
    /// The message to send, when sender and next hop are on the network the router has its address in.
    fn message(&self, pkt: &Packet<'_>, cx: &FrameCx<'_>) -> Option<IcmpError> {
        let ip = pkt.header::<Ip4Header>()?;
        let adj = self.adjacencies.get(AdjIndex(pkt.meta().adj), cx.guard());
        let source_routed = ip.header_len() > Ip4Header::LEN;
        let near = |address| self.addresses.is_on_link(pkt.rx(), address, cx.guard());
        let gateway = match adj.next_hop_ip4() {
            // An IPv6 neighbour has no address that could go into the redirect.
            0 if adj.next_hop().is_some() => return None,
            0 => ip.dst_u32(),
            next_hop => next_hop,
        };
        // A host needs no way to itself, and a link that a program feeds has no listener.
        let fed = self.interfaces.get(pkt.rx(), cx.guard()).flags().has(IfFlags::FED);
        let to_itself = gateway == ip.src_u32();
        let fits = !fed && !to_itself && !source_routed && near(ip.src_u32()) && near(gateway);
        fits.then(|| IcmpError::redirect_host(gateway))
    }

    fn copy(pkt: &Packet<'_>, message: IcmpError, cx: &mut FrameCx<'_>) -> Option<Buffer> {
        let mut bytes = [0; QUOTE];
        let n = pkt.copy_to(&mut bytes);
        let mut buffer = cx.cache().alloc_data(bytes.get(..n)?).ok()?;
        let mut copy = cx.cache().packet(&mut buffer);
        copy.meta_mut().inherit(pkt.meta());
        message.ask(&mut copy);
        Some(buffer)
    }
}

impl FrameNode for Ip4Redirect {
    const NAME: &'static str = "ip4-redirect";
    type Next = Next;
    type Error = Error;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        let memory = cx.memory();
        for i in 0..frame.len() {
            let Some(mut pkt) = frame.packet(memory, i) else { continue };
            let meta = pkt.meta_mut();
            meta.flags = meta.flags.with(Flags::REDIRECT_DONE);
            if let Some(message) = self.message(&pkt, cx)
                && let Some(copy) = Self::copy(&pkt, message, cx)
            {
                cx.count(Error::Redirect, 1);
                cx.send(Next::IcmpError.edge(), copy);
            }
        }
        cx.send_frame(Next::Rewrite.edge(), frame);
    }
}
