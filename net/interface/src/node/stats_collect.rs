//! `stats-collect-rx` and `stats-collect-tx`: count packets for one station, for groups, and for everybody, apart.
//! device-input -> **stats-collect-rx** -> the next feature or device-input-arc-end
//! <name>-output -> **stats-collect-tx** -> the next feature or interface-output-arc-end

use shoal_buffer::{Packet, SwIfIndex};
use shoal_derive::{NextNodes, TraceLine};
use shoal_graph::{Cx, Edge, NoError, PacketNode};
use shoal_wire::{EthernetHeader, FromBytes, MacAddress};

use crate::counters::ByCast;
use crate::{IfFlags, IfTable};

/// Where a packet goes next.
#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Next {
    /// The next feature, or the end of the arc.
    To(Edge),
}

/// What `show trace` says.
#[derive(TraceLine)]
#[line("sw_if_index {interface}, {bytes} bytes, {cast}")]
pub struct Trace {
    interface: u32,
    bytes: usize,
    cast: Cast,
}

/// The kind of a frame's destination.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Cast {
    Unicast = 0,
    Multicast = 1,
    Broadcast = 2,
}

impl std::fmt::Display for Cast {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Cast::Unicast => "unicast",
            Cast::Multicast => "multicast",
            Cast::Broadcast => "broadcast",
        })
    }
}

/// Counts received frames.
pub struct StatsCollectRx {
    /// All interfaces.
    pub interfaces: IfTable,
    /// The counters.
    pub counters: ByCast,
}

/// Counts frames on their way out.
pub struct StatsCollectTx {
    /// All interfaces.
    pub interfaces: IfTable,
    /// The counters.
    pub counters: ByCast,
}

/// The kind of a frame's destination. Without an Ethernet header there is no other end but one, and what is too short
/// for one is dropped by others.
fn cast(ethernet: bool, data: &[u8]) -> Cast {
    match EthernetHeader::ref_from_prefix(data) {
        Ok((header, _)) if ethernet && header.dst() == MacAddress::BROADCAST => Cast::Broadcast,
        Ok((header, _)) if ethernet && header.dst().is_multicast() => Cast::Multicast,
        _ => Cast::Unicast,
    }
}

fn count(counters: &ByCast, cast: Cast, thread: usize, interface: SwIfIndex, bytes: usize) {
    if let Some(counter) = counters.get(cast as usize) {
        counter.add(thread, interface.0 as usize, 1, bytes as u64);
    }
}

macro_rules! collect {
    ($node:ident, $name:literal, $side:ident) => {
        impl PacketNode for $node {
            const NAME: &'static str = $name;
            type Next = Next;
            type Error = NoError;
            type Trace = Trace;

            fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, NoError> {
                let (interface, bytes) = (pkt.$side(), pkt.len());
                let ethernet = self.interfaces.get(interface, cx.guard()).flags().has(IfFlags::ETHERNET);
                let cast = cast(ethernet, pkt.data());
                count(&self.counters, cast, cx.thread(), interface, bytes);
                cx.trace(pkt, || Trace { interface: interface.0, bytes, cast });
                Ok(Next::To(cx.next_feature(pkt)))
            }
        }
    };
}

collect!(StatsCollectRx, "stats-collect-rx", rx);
collect!(StatsCollectTx, "stats-collect-tx", tx);

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_first_bit_of_an_ethernet_address_decides() {
        let frame = |first: u8| [[first; 6].as_slice(), &[2; 6], &[8, 0]].concat();
        assert_eq!(cast(true, &frame(0xff)), Cast::Broadcast);
        assert_eq!(cast(true, &frame(0x33)), Cast::Multicast);
        assert_eq!(cast(true, &frame(0x02)), Cast::Unicast);
        assert_eq!(cast(false, &frame(0xff)), Cast::Unicast);
        assert_eq!(cast(true, &[0xff; 13]), Cast::Unicast);
    }
}
