//! Packet headers, checksums and capture files: one file per protocol.
//!
//! Headers are [`zerocopy`] views: take one from bytes with `Ip4Header::ref_from_prefix(bytes)`,
//! which answers `Err` when the slice is short, and read or write fields through getters and
//! setters in host order. Setters do what they say and no more; those that keep a checksum right
//! are called `rewrite_` or say so. Every header's `Display` is the text of VPP's `show trace`.
//!
//! | question | file |
//! |---|---|
//! | layer 2 | [`mac`], [`ethernet`], [`vlan`], [`arp`] |
//! | layer 3 | [`ip4`], [`ip4_options`], [`icmp4`], [`igmp`], [`protocol`] |
//! | layer 3, version 6 | [`ip6`], [`ip6_address`], [`ip6_ext`], [`ip6_options`], [`ip6_fragment`], [`icmp6`], [`nd`], [`nd_options`], [`mld`] |
//! | layer 4 | [`udp`], [`tcp`] |
//! | sums and hashes | [`checksum`], [`hash`], [`flow_hash`] |
//! | what operators write | [`prefix`], [`mac`] |
//! | text | [`describe`] |
//! | building packets, right and wrong | [`packet`] |
//! | capture files | [`pcap`] |
#![forbid(unsafe_code)]

pub mod arp;
pub mod checksum;
pub mod describe;
pub mod ethernet;
pub mod flow_hash;
pub mod hash;
pub mod icmp4;
pub mod icmp6;
pub mod igmp;
pub mod ip4;
pub mod ip4_options;
pub mod ip6;
pub mod ip6_address;
pub mod ip6_ext;
pub mod ip6_fragment;
pub mod ip6_options;
pub mod mac;
pub mod mld;
pub mod nd;
pub mod nd_options;
pub mod packet;
pub mod pcap;
pub mod plain;
pub mod prefix;
pub mod protocol;
pub mod tcp;
pub mod transport;
pub mod udp;
pub mod vlan;

pub use arp::{ArpHeader, ArpOpcode};
pub use describe::{describe_arp, describe_ethernet, describe_frame, describe_ip4, describe_ip6};
pub use ethernet::{EtherType, EthernetHeader};
pub use flow_hash::{FlowFields, FlowHash};
pub use icmp4::{Icmp4Echo, Icmp4Error, Icmp4Header, Icmp4Type};
pub use icmp6::{Icmp6Echo, Icmp6Error, Icmp6Header, Icmp6Type};
pub use ip4::Ip4Header;
pub use ip4_options::{Ip4Option, Ip4Options};
pub use ip6::Ip6Header;
pub use ip6_fragment::Ip6FragmentHeader;
pub use mac::MacAddress;
pub use packet::Packet;
pub use prefix::{Ip4Prefix, Ip4Range, Ip6Prefix, IpPrefix};
pub use protocol::IpProtocol;
pub use tcp::{TcpFlags, TcpHeader};
pub use transport::Transport;
pub use udp::UdpHeader;
pub use vlan::VlanHeader;

/// The traits a user of these headers needs in scope.
pub use zerocopy::{self, FromBytes, IntoBytes};

/// The example of README.md, compiled and run.
#[cfg(doctest)]
#[doc = include_str!("../README.md")]
pub struct Readme;
