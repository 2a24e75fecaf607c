//! IP protocol numbers: the `protocol` field of IPv4 and the `next header` of IPv6.

use std::fmt;

/// An IANA protocol number. Its `Display` is VPP's name, as in `show trace`.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug)]
pub struct IpProtocol(pub u8);

macro_rules! protocols {
    ($($number:literal $name:ident $doc:literal;)*) => {
        #[doc = "The numbers this router names (IANA Assigned Internet Protocol Numbers)."]
        impl IpProtocol {
            $(#[doc = $doc] pub const $name: Self = Self($number);)*

            /// VPP's name of the protocol, if it has one here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some(stringify!($name)),)*
                    _ => None,
                }
            }
        }
    };
}

protocols! {
    0 IP6_HOP_BY_HOP_OPTIONS "IPv6 hop-by-hop options (RFC 8200).";
    1 ICMP "ICMP for IPv4 (RFC 792).";
    2 IGMP "IGMP (RFC 3376).";
    4 IP_IN_IP "IPv4 in IP (RFC 2003).";
    6 TCP "TCP (RFC 9293).";
    17 UDP "UDP (RFC 768).";
    41 IPV6 "IPv6 in IP (RFC 2473).";
    43 IPV6_ROUTE "IPv6 routing header (RFC 8200).";
    44 IPV6_FRAGMENTATION "IPv6 fragment header (RFC 8200).";
    46 RSVP "RSVP (RFC 2205).";
    47 GRE "GRE (RFC 2784).";
    50 IPSEC_ESP "ESP (RFC 4303).";
    51 IPSEC_AH "AH (RFC 4302).";
    58 ICMP6 "ICMPv6 (RFC 4443).";
    59 IP6_NONXT "No next header (RFC 8200).";
    60 IP6_DESTINATION_OPTIONS "IPv6 destination options (RFC 8200).";
    89 OSPF "OSPF (RFC 2328).";
    103 PIM "PIM (RFC 7761).";
    112 VRRP "VRRP (RFC 5798).";
    115 L2TP "L2TPv3 (RFC 3931).";
    132 SCTP "SCTP (RFC 9260).";
    136 UDP_LITE "UDP-Lite (RFC 3828).";
}

impl fmt::Display for IpProtocol {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown {}", self.0),
        }
    }
}
