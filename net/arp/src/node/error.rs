//! What the nodes that look at ARP packets count: the same list for each, as in VPP.

use shoal_derive::ErrorCounters;

/// Why a packet is dropped, and what else is counted. Names and texts are VPP's where it has one.
#[allow(dead_code, reason = "clients look for three of VPP's names that nothing here counts")]
#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
pub enum Error {
    /// ARP replies sent
    #[severity(info)]
    RepliesSent,
    /// ARP Disabled
    Disabled,
    /// L2 type not ethernet
    #[counter("l2_type_not_ethernet")]
    L2Type,
    /// L3 type not IP4
    #[counter("l3_type_not_ip4")]
    L3Type,
    /// IP4 source address not local to subnet
    #[counter("l3_src_address_not_local")]
    SourceElsewhere,
    /// IP4 destination address not local to subnet
    #[counter("l3_dst_address_not_local")]
    TargetElsewhere,
    /// IP4 destination address is unset
    #[counter("l3_dst_address_unset")]
    TargetUnset,
    /// IP4 source address matches local interface
    #[counter("l3_src_address_is_local")]
    SourceIsLocal,
    /// ARP request IP4 source address learned
    #[counter("l3_src_address_learned")]
    #[severity(info)]
    Learned,
    /// ARP replies received
    #[severity(info)]
    RepliesReceived,
    /// ARP opcode not request
    #[counter("opcode_not_request")]
    Opcode,
    /// Proxy ARP replies sent
    #[counter("proxy_arp_replies_sent")]
    #[severity(info)]
    ProxyReplied,
    /// ARP hw addr does not match L2 frame src addr
    #[counter("l2_address_mismatch")]
    L2Mismatch,
    /// ARP probe or announcement dropped
    #[counter("gratuitous_arp")]
    Gratuitous,
    /// Interface is not mapped to an IP table
    #[counter("interface_no_table")]
    NoTable,
    /// Interface is not IP enabled
    #[counter("interface_not_ip_enabled")]
    NotEnabled,
    /// RX interface is unnumbered to different subnet
    UnnumberedMismatch,
    /// ARP packet is cut short
    TooShort,
    /// ARP address sizes are not 6 and 4
    AddressSizes,
    /// ARP sender hardware address is not one station's
    SenderIsGroup,
    /// ARP senders not learned, too many at a time
    #[severity(warn)]
    LearnCongested,
}
