//! Fields of IP headers: protocols and classes of service.

use crate::Value;

/// A class of service (RFC 2474): the upper six bits of IPv4's type of service and IPv6's traffic class.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("IP_API_DSCP_CS0", 0)]
#[entry("IP_API_DSCP_CS1", 8)]
#[entry("IP_API_DSCP_AF11", 10)]
#[entry("IP_API_DSCP_AF12", 12)]
#[entry("IP_API_DSCP_AF13", 14)]
#[entry("IP_API_DSCP_CS2", 16)]
#[entry("IP_API_DSCP_AF21", 18)]
#[entry("IP_API_DSCP_AF22", 20)]
#[entry("IP_API_DSCP_AF23", 22)]
#[entry("IP_API_DSCP_CS3", 24)]
#[entry("IP_API_DSCP_AF31", 26)]
#[entry("IP_API_DSCP_AF32", 28)]
#[entry("IP_API_DSCP_AF33", 30)]
#[entry("IP_API_DSCP_CS4", 32)]
#[entry("IP_API_DSCP_AF41", 34)]
#[entry("IP_API_DSCP_AF42", 36)]
#[entry("IP_API_DSCP_AF43", 38)]
#[entry("IP_API_DSCP_CS5", 40)]
#[entry("IP_API_DSCP_EF", 46)]
#[entry("IP_API_DSCP_CS6", 48)]
#[entry("IP_API_DSCP_CS7", 50)]
pub struct IpDscp(pub u8);

/// A protocol above IP: any number.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq, Eq)]
#[value(open)]
#[entry("IP_API_PROTO_HOPOPT", 0)]
#[entry("IP_API_PROTO_ICMP", 1)]
#[entry("IP_API_PROTO_IGMP", 2)]
#[entry("IP_API_PROTO_TCP", 6)]
#[entry("IP_API_PROTO_UDP", 17)]
#[entry("IP_API_PROTO_GRE", 47)]
#[entry("IP_API_PROTO_ESP", 50)]
#[entry("IP_API_PROTO_AH", 51)]
#[entry("IP_API_PROTO_ICMP6", 58)]
#[entry("IP_API_PROTO_EIGRP", 88)]
#[entry("IP_API_PROTO_OSPF", 89)]
#[entry("IP_API_PROTO_SCTP", 132)]
#[entry("IP_API_PROTO_RESERVED", 255)]
pub struct IpProto(pub u8);
