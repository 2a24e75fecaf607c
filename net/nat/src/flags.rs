//! `nat_types.api`: what all of VPP's NAT messages call sides, kinds, levels and timeouts.

use shoal_message::Value;

use crate::Timeouts;

/// What a mapping, an address, an interface or a session is.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("NAT_IS_NONE", 0)]
#[entry("NAT_IS_TWICE_NAT", 1)]
#[entry("NAT_IS_SELF_TWICE_NAT", 2)]
#[entry("NAT_IS_OUT2IN_ONLY", 4)]
#[entry("NAT_IS_ADDR_ONLY", 8)]
#[entry("NAT_IS_OUTSIDE", 16)]
#[entry("NAT_IS_INSIDE", 32)]
#[entry("NAT_IS_STATIC", 64)]
#[entry("NAT_IS_EXT_HOST_VALID", 128)]
pub struct NatConfigFlags(pub u8);

impl NatConfigFlags {
    /// Outside hosts' addresses are translated, too.
    pub const TWICE_NAT: u8 = 1;
    /// The same for packets of the host itself.
    pub const SELF_TWICE_NAT: u8 = 2;
    /// Sessions begin outside only.
    pub const OUT2IN_ONLY: u8 = 4;
    /// An address without a port.
    pub const ADDR_ONLY: u8 = 8;
    /// The world's side.
    pub const OUTSIDE: u8 = 16;
    /// The hosts' side.
    pub const INSIDE: u8 = 32;
    /// Of a static mapping.
    pub const STATIC: u8 = 64;
    /// The outside host is part of it.
    pub const EXT_HOST_VALID: u8 = 128;

    /// Whether a flag is set.
    pub const fn has(self, flag: u8) -> bool {
        self.0 & flag != 0
    }
}

/// How much is logged.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("NAT_LOG_NONE", 0)]
#[entry("NAT_LOG_ERROR", 1)]
#[entry("NAT_LOG_WARNING", 2)]
#[entry("NAT_LOG_NOTICE", 3)]
#[entry("NAT_LOG_INFO", 4)]
#[entry("NAT_LOG_DEBUG", 5)]
pub struct NatLogLevel(pub u8);

/// How long sessions live without a packet, in seconds.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub struct NatTimeouts {
    /// Of UDP.
    pub udp: u32,
    /// Of TCP connections that are open.
    pub tcp_established: u32,
    /// Of TCP connections that begin or end.
    pub tcp_transitory: u32,
    /// Of ICMP queries.
    pub icmp: u32,
}

impl From<Timeouts> for NatTimeouts {
    fn from(timeouts: Timeouts) -> Self {
        let Timeouts { udp, tcp_established, tcp_transitory, icmp } = timeouts;
        NatTimeouts { udp, tcp_established, tcp_transitory, icmp }
    }
}
