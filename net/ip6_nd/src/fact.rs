//! What nodes tell the control plane, through a bounded channel.

use std::net::Ipv6Addr;

use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;
use shoal_wire::mld::MldVersion;
use shoal_wire::nd::{NaFlags, RaFlags};
use shoal_wire::nd_options::PrefixInformation;

/// The content of a message, after all checks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Fact {
    /// A station that asks gave its link-layer address (RFC 4861 7.2.3, 6.2.6).
    Solicited { interface: SwIfIndex, from: Ipv6Addr, mac: MacAddress },
    /// A station gave the link-layer address of an address (7.2.5).
    Advertised { interface: SwIfIndex, target: Ipv6Addr, mac: Option<MacAddress>, flags: NaFlags },
    /// Packets are sent to a neighbour that is stale (7.3.3).
    Used { interface: SwIfIndex, next_hop: Ipv6Addr },
    /// Somebody has, or wants, an address of this router (RFC 4862 5.4.3, 5.4.4).
    Claimed { interface: SwIfIndex, address: Ipv6Addr, mac: MacAddress },
    /// A host asks for routers (RFC 4861 6.2.6).
    RouterSolicited { interface: SwIfIndex, from: Ipv6Addr, mac: MacAddress },
    /// Another router advertised itself (6.2.7, 6.3.4).
    RouterAdvertised {
        interface: SwIfIndex,
        from: Ipv6Addr,
        mac: Option<MacAddress>,
        said: AdvertisedLink,
        prefixes: Prefixes,
    },
    /// A router asks who listens (RFC 3810 6.2).
    Queried { interface: SwIfIndex, version: MldVersion, group: Option<Ipv6Addr>, max_response_ms: u32 },
}

/// Prefixes of an advertisement that are looked at; a router with more is one that somebody made up.
pub(crate) const MOST_PREFIXES: usize = 4;

/// The first prefixes of an advertisement.
pub(crate) type Prefixes = [Option<PrefixInformation>; MOST_PREFIXES];

/// The link parameters in another router's advertisement.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct AdvertisedLink {
    pub(crate) flags: RaFlags,
    pub(crate) lifetime_secs: u16,
    pub(crate) hop_limit: u8,
    pub(crate) mtu: Option<u32>,
    /// How long hosts should take a neighbour to be reachable; 0 for no advice.
    pub(crate) reachable_ms: u32,
    /// How long hosts should wait between solicitations; 0 for no advice.
    pub(crate) retransmit_ms: u32,
}
