//! Interfaces and their links, as all messages have them.

use shoal_derive::Value;

/// What state an interface is in: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("IF_STATUS_API_FLAG_ADMIN_UP", 1)]
#[entry("IF_STATUS_API_FLAG_LINK_UP", 2)]
pub struct IfStatusFlags(pub u32);

/// Which packets an MTU is for.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum MtuProto {
    /// All that have an L3 header.
    #[entry("MTU_PROTO_API_L3")]
    L3 = 0,
    /// IPv4.
    #[entry("MTU_PROTO_API_IP4")]
    Ip4 = 1,
    /// IPv6.
    #[entry("MTU_PROTO_API_IP6")]
    Ip6 = 2,
    /// MPLS.
    #[entry("MTU_PROTO_API_MPLS")]
    Mpls = 3,
}

/// Whether a link carries both directions at a time.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum LinkDuplex {
    /// Not told.
    #[entry("LINK_DUPLEX_API_UNKNOWN")]
    Unknown = 0,
    /// One at a time.
    #[entry("LINK_DUPLEX_API_HALF")]
    Half = 1,
    /// Both.
    #[entry("LINK_DUPLEX_API_FULL")]
    Full = 2,
}

/// How the packets of a sub-interface are tagged: any of its bits.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("SUB_IF_API_FLAG_NO_TAGS", 1)]
#[entry("SUB_IF_API_FLAG_ONE_TAG", 2)]
#[entry("SUB_IF_API_FLAG_TWO_TAGS", 4)]
#[entry("SUB_IF_API_FLAG_DOT1AD", 8)]
#[entry("SUB_IF_API_FLAG_EXACT_MATCH", 16)]
#[entry("SUB_IF_API_FLAG_DEFAULT", 32)]
#[entry("SUB_IF_API_FLAG_OUTER_VLAN_ID_ANY", 64)]
#[entry("SUB_IF_API_FLAG_INNER_VLAN_ID_ANY", 128)]
#[entry("SUB_IF_API_FLAG_MASK_VNET", 254)]
#[entry("SUB_IF_API_FLAG_DOT1AH", 256)]
pub struct SubIfFlags(pub u32);

impl SubIfFlags {
    /// None.
    pub const NO_TAGS: u32 = 1;
    /// One.
    pub const ONE_TAG: u32 = 1 << 1;
    /// Two.
    pub const TWO_TAGS: u32 = 1 << 2;
    /// The outer one is of 802.1ad.
    pub const DOT1AD: u32 = 1 << 3;
    /// No further ones.
    pub const EXACT_MATCH: u32 = 1 << 4;
    /// Whatever no other takes.
    pub const DEFAULT: u32 = 1 << 5;
    /// The outer one is of any VLAN.
    pub const OUTER_VLAN_ID_ANY: u32 = 1 << 6;
    /// The inner one is of any VLAN.
    pub const INNER_VLAN_ID_ANY: u32 = 1 << 7;
}

/// How packets are taken from a queue.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum RxMode {
    /// Not told.
    #[entry("RX_MODE_API_UNKNOWN")]
    Unknown = 0,
    /// By looking again and again.
    #[entry("RX_MODE_API_POLLING")]
    Polling = 1,
    /// When the device says that there are some.
    #[entry("RX_MODE_API_INTERRUPT")]
    Interrupt = 2,
    /// As fast as they come: by looking when there are many.
    #[entry("RX_MODE_API_ADAPTIVE")]
    Adaptive = 3,
    /// As the device prefers.
    #[entry("RX_MODE_API_DEFAULT")]
    Default = 4,
}

/// What an interface is made of.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
pub enum IfType {
    /// A port of its own.
    #[entry("IF_API_TYPE_HARDWARE")]
    Hardware = 0,
    /// A part of another interface's packets.
    #[entry("IF_API_TYPE_SUB")]
    Sub = 1,
    /// One end of a link between two.
    #[entry("IF_API_TYPE_P2P")]
    P2p = 2,
    /// One end of a pipe.
    #[entry("IF_API_TYPE_PIPE")]
    Pipe = 3,
}

/// Which way packets go.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq)]
#[value(width = u8)]
pub enum Direction {
    /// Into the router.
    #[entry("RX")]
    Rx = 0,
    /// Out of the router.
    #[entry("TX")]
    Tx = 1,
}

/// The number of an interface; all bits set where none is meant.
#[derive(Value, Clone, Copy, Debug, PartialEq, Eq, Default)]
#[value(alias)]
pub struct InterfaceIndex(pub u32);

/// The address of a device on an Ethernet.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(alias)]
pub struct MacAddress(pub [u8; 6]);

impl InterfaceIndex {
    /// No interface, or all of them.
    pub const NONE: InterfaceIndex = InterfaceIndex(u32::MAX);
}

impl IfStatusFlags {
    /// Somebody wants the interface to work.
    pub const ADMIN_UP: u32 = 1;
    /// There is a link.
    pub const LINK_UP: u32 = 2;
}
