//! `interface-rx-dpo-ip6`: packets that a route has received again, as if by another interface.
//! ip6-lookup -> **interface-rx-dpo-ip6** -> ip6-input
//!
//! The node is IPv4's under other names.

use shoal_ip4::node::interface_rx::{InterfaceRx, Names};

/// IPv6's.
#[derive(Clone, Copy, Debug)]
pub struct Ip6Names;

impl Names for Ip6Names {
    const NODE: &'static str = "interface-rx-dpo-ip6";
    const INPUT: &'static [&'static str] = &["ip6-input"];
}

/// Has packets received by the interface their adjacency names.
pub type Ip6InterfaceRx = InterfaceRx<Ip6Names>;
