//! The nodes.

pub mod arp_term;
pub mod blocked;
pub mod chain;
pub mod flood;
pub mod forward;
pub mod learn;
pub mod storm;
pub mod to_bvi;
pub mod unknown;

use shoal_buffer::Packet;
use shoal_interface::SwIfIndex;
use shoal_wire::{EthernetHeader, MacAddress};

/// What most nodes say in a trace.
pub struct Trace {
    name: &'static str,
    rx: SwIfIndex,
    dst: MacAddress,
    src: MacAddress,
    domain: u16,
}

impl Trace {
    pub(crate) fn new(name: &'static str, pkt: &Packet<'_>, domain: u16) -> Self {
        let header = pkt.header::<EthernetHeader>();
        let [dst, src] = header.map_or([MacAddress::ZERO; 2], |header| [header.dst(), header.src()]);
        Trace { name, rx: pkt.rx(), dst, src, domain }
    }
}

impl std::fmt::Display for Trace {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let Trace { name, rx, dst, src, domain } = self;
        write!(f, "{name} sw_if_index {rx} dst {dst} src {src} bd_index {domain}")
    }
}
