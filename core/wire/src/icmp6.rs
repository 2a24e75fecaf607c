//! ICMP for IPv6 (RFC 4443). Neighbor discovery is in [`nd`](crate::nd), listener discovery in
//! [`mld`](crate::mld).
//!
//! The checksum covers the IPv6 pseudo header, so code that makes or verifies one has the addresses at hand. A message
//! in a chain of segments is summed piece by piece:
//!
//! ```
//! use std::net::Ipv6Addr;
//! use shoal_wire::icmp6;
//! let (src, dst) = (Ipv6Addr::LOCALHOST, Ipv6Addr::LOCALHOST);
//! let mut message = [128, 0, 0, 0, 0, 1, 0, 1, 42];
//! icmp6::make(src, dst, &mut message);
//! let mut sum = icmp6::sum(src, dst, message.len() as u32);
//! message.chunks(5).for_each(|segment| sum.add(segment));
//! assert_eq!(sum.folded(), 0xffff);
//! ```

use std::fmt;
use std::net::Ipv6Addr;

use zerocopy::byteorder::network_endian::{U16, U32};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::IpProtocol;
use crate::checksum::{Sum, update_u16};

/// An ICMPv6 type. `Display` is VPP's word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Icmp6Type(pub u8);

macro_rules! types {
    ($($number:literal $name:ident $word:literal;)*) => {
        #[allow(missing_docs, reason = "the names are those of IANA's ICMPv6 parameters")]
        impl Icmp6Type {
            $(pub const $name: Self = Self($number);)*

            /// VPP's word for the type, if it has one here.
            pub const fn name(self) -> Option<&'static str> {
                match self.0 {
                    $($number => Some($word),)*
                    _ => None,
                }
            }
        }
    };
}

types! {
    1 DESTINATION_UNREACHABLE "destination_unreachable";
    2 PACKET_TOO_BIG "packet_too_big";
    3 TIME_EXCEEDED "time_exceeded";
    4 PARAMETER_PROBLEM "parameter_problem";
    128 ECHO_REQUEST "echo_request";
    129 ECHO_REPLY "echo_reply";
    130 MULTICAST_LISTENER_QUERY "multicast_listener_request";
    131 MULTICAST_LISTENER_REPORT "multicast_listener_report";
    132 MULTICAST_LISTENER_DONE "multicast_listener_done";
    133 ROUTER_SOLICITATION "router_solicitation";
    134 ROUTER_ADVERTISEMENT "router_advertisement";
    135 NEIGHBOR_SOLICITATION "neighbor_solicitation";
    136 NEIGHBOR_ADVERTISEMENT "neighbor_advertisement";
    137 REDIRECT "redirect";
    138 ROUTER_RENUMBERING "router_renumbering";
    139 NODE_INFORMATION_REQUEST "node_information_request";
    140 NODE_INFORMATION_RESPONSE "node_information_response";
    141 INVERSE_NEIGHBOR_SOLICITATION "inverse_neighbor_solicitation";
    142 INVERSE_NEIGHBOR_ADVERTISEMENT "inverse_neighbor_advertisement";
    143 MULTICAST_LISTENER_REPORT_V2 "multicast_listener_report_v2";
}

impl Icmp6Type {
    /// An error message: its high bit is clear (RFC 4443 section 2.1). It quotes the packet that
    /// caused it, and never causes another (section 2.4 (e.1)).
    #[inline(always)]
    pub const fn is_error(self) -> bool {
        self.0 < 128
    }

    /// A message of neighbor discovery, 133 to 137 (RFC 4861 section 4).
    #[inline(always)]
    pub const fn is_neighbor_discovery(self) -> bool {
        matches!(self.0, 133..=137)
    }

    /// A message of multicast listener discovery (RFC 2710, RFC 3810).
    #[inline(always)]
    pub const fn is_listener_discovery(self) -> bool {
        matches!(self.0, 130..=132 | 143)
    }
}

impl fmt::Display for Icmp6Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown 0x{:x}", self.0),
        }
    }
}

/// Codes of the error messages (RFC 4443 section 3).
pub mod code {
    /// Destination unreachable: no route.
    pub const NO_ROUTE_TO_DESTINATION: u8 = 0;
    /// Destination unreachable: forbidden by a filter.
    pub const ADMINISTRATIVELY_PROHIBITED: u8 = 1;
    /// Destination unreachable: the source address is not valid where the packet would go.
    pub const BEYOND_SCOPE_OF_SOURCE_ADDRESS: u8 = 2;
    /// Destination unreachable: the neighbor does not answer, or any other reason.
    pub const ADDRESS_UNREACHABLE: u8 = 3;
    /// Destination unreachable: no listener on this port.
    pub const PORT_UNREACHABLE: u8 = 4;
    /// Destination unreachable: the source address is refused by an ingress or egress policy.
    pub const SOURCE_ADDRESS_FAILED_POLICY: u8 = 5;
    /// Destination unreachable: the route says to reject.
    pub const REJECT_ROUTE_TO_DESTINATION: u8 = 6;
    /// Time exceeded: the hop limit reached zero in transit.
    pub const HOP_LIMIT_EXCEEDED_IN_TRANSIT: u8 = 0;
    /// Time exceeded: fragments did not all arrive in time.
    pub const FRAGMENT_REASSEMBLY_TIME_EXCEEDED: u8 = 1;
    /// Parameter problem: a field of a header is wrong.
    pub const ERRONEOUS_HEADER_FIELD: u8 = 0;
    /// Parameter problem: an unknown next header.
    pub const UNRECOGNIZED_NEXT_HEADER: u8 = 1;
    /// Parameter problem: an option is unknown and says that it must not be.
    pub const UNRECOGNIZED_OPTION: u8 = 2;
    /// Parameter problem: the first fragment lacks a part of the header chain (RFC 7112 section 5).
    pub const INCOMPLETE_HEADER_CHAIN: u8 = 3;
}

/// VPP's word for a code of a type, if it has one here.
const fn code_name(kind: u8, code: u8) -> Option<&'static str> {
    Some(match (kind, code) {
        (1, 0) => "no_route_to_destination",
        (1, 1) => "destination_administratively_prohibited",
        (1, 2) => "beyond_scope_of_source_address",
        (1, 3) => "address_unreachable",
        (1, 4) => "port_unreachable",
        (1, 5) => "source_address_failed_policy",
        (1, 6) => "reject_route_to_destination",
        (3, 0) => "ttl_exceeded_in_transit",
        (3, 1) => "fragment_reassembly_time_exceeded",
        (4, 0) => "erroneous_header_field",
        (4, 1) => "unrecognized_next_header",
        (4, 2) => "unrecognized_option",
        (4, 3) => "incomplete_header_chain",
        _ => return None,
    })
}

/// Type, code and checksum: the 4 bytes every ICMPv6 message starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp6Header {
    kind: u8,
    code: u8,
    checksum: U16,
}

impl Icmp6Header {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// A header whose checksum is still zero.
    #[inline(always)]
    pub const fn new(kind: Icmp6Type, code: u8) -> Self {
        Self { kind: kind.0, code, checksum: U16::ZERO }
    }

    /// The message type.
    #[inline(always)]
    pub const fn kind(&self) -> Icmp6Type {
        Icmp6Type(self.kind)
    }

    /// The code within the type; see [`code`].
    #[inline(always)]
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// The checksum over the pseudo header and the whole ICMPv6 message.
    #[inline(always)]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }

    /// Changes the type and updates the checksum incrementally: how a request becomes its reply when
    /// source and destination swap places, which the pseudo header does not notice.
    #[inline(always)]
    pub fn rewrite_kind(&mut self, kind: Icmp6Type) {
        let word = |kind| u16::from_be_bytes([kind, self.code]);
        let new = update_u16(self.checksum(), word(self.kind), word(kind.0));
        self.kind = kind.0;
        self.checksum = U16::new(new);
    }
}

impl fmt::Display for Icmp6Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ICMP {}", self.kind())?;
        if let Some(name) = code_name(self.kind, self.code) {
            write!(f, " {name}")?;
        }
        write!(f, " checksum 0x{:x}", self.checksum())
    }
}

/// An echo request or reply: 8 bytes before the data (RFC 4443 section 4).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp6Echo {
    /// Type, code and checksum.
    pub header: Icmp6Header,
    id: U16,
    sequence: U16,
}

impl Icmp6Echo {
    /// Bytes before the data.
    pub const LEN: usize = 8;

    /// An echo header whose checksum is still zero.
    pub const fn new(kind: Icmp6Type, id: u16, sequence: u16) -> Self {
        Self { header: Icmp6Header::new(kind, 0), id: U16::new(id), sequence: U16::new(sequence) }
    }

    /// Identifier: which ping.
    #[inline(always)]
    pub const fn id(&self) -> u16 {
        self.id.get()
    }

    /// Sequence number within the ping.
    #[inline(always)]
    pub const fn sequence(&self) -> u16 {
        self.sequence.get()
    }

    /// Sets the identifier.
    #[inline(always)]
    pub fn set_id(&mut self, id: u16) {
        self.id = U16::new(id);
    }
}

impl fmt::Display for Icmp6Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} id {}", self.header, self.id())
    }
}

/// An error message: 8 bytes before the quoted packet (RFC 4443 section 3).
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp6Error {
    /// Type, code and checksum.
    pub header: Icmp6Header,
    value: U32,
}

impl Icmp6Error {
    /// Bytes before the quoted packet.
    pub const LEN: usize = 8;
    /// Most bytes of the offending packet that an error quotes: the whole answer with its IPv6 header
    /// fits the smallest MTU (RFC 4443 section 2.4 (c)).
    pub const MAX_QUOTE: usize = crate::Ip6Header::MIN_MTU - crate::Ip6Header::LEN - Self::LEN;

    /// An error header whose checksum is still zero.
    pub const fn new(kind: Icmp6Type, code: u8) -> Self {
        Self { header: Icmp6Header::new(kind, code), value: U32::ZERO }
    }

    /// "Destination unreachable" with one of the [codes](code) 0 to 6.
    pub const fn unreachable(code: u8) -> Self {
        Self::new(Icmp6Type::DESTINATION_UNREACHABLE, code)
    }

    /// "Packet too big" with the next link's MTU in bytes (RFC 4443 section 3.2).
    pub const fn packet_too_big(mtu: u32) -> Self {
        Self { header: Icmp6Header::new(Icmp6Type::PACKET_TOO_BIG, 0), value: U32::new(mtu) }
    }

    /// "Time exceeded": [`code::HOP_LIMIT_EXCEEDED_IN_TRANSIT`] or
    /// [`code::FRAGMENT_REASSEMBLY_TIME_EXCEEDED`].
    pub const fn time_exceeded(code: u8) -> Self {
        Self::new(Icmp6Type::TIME_EXCEEDED, code)
    }

    /// "Parameter problem" at byte `pointer` of the quoted packet, which may be past what is quoted
    /// (RFC 4443 section 3.4).
    pub const fn parameter_problem(code: u8, pointer: u32) -> Self {
        Self { header: Icmp6Header::new(Icmp6Type::PARAMETER_PROBLEM, code), value: U32::new(pointer) }
    }

    /// The next link's MTU in bytes; meaningful in "packet too big" only.
    #[inline(always)]
    pub const fn mtu(&self) -> u32 {
        self.value.get()
    }

    /// Offset of the offending byte; meaningful in a parameter problem only.
    #[inline(always)]
    pub const fn pointer(&self) -> u32 {
        self.value.get()
    }
}

impl fmt::Display for Icmp6Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header.fmt(f)?;
        match self.header.kind() {
            Icmp6Type::PACKET_TOO_BIG => write!(f, " mtu {}", self.mtu()),
            Icmp6Type::PARAMETER_PROBLEM => write!(f, " pointer {}", self.pointer()),
            _ => Ok(()),
        }
    }
}

/// Code and pointer of an ICMPv6 parameter problem (RFC 4443 section 3.4).
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ParameterProblem {
    /// See [`code`].
    pub code: u8,
    /// Offset of the offending byte in the packet.
    pub pointer: u32,
}

impl ParameterProblem {
    /// The header of the message, without checksum. [`may_answer`] says whether it may
    /// be sent.
    pub const fn message(&self) -> Icmp6Error {
        Icmp6Error::parameter_problem(self.code, self.pointer)
    }
}

/// A packet about to be answered with an error, as far as its addresses say (RFC 4443 section 2.4
/// (e.3) to (e.6)): not from an address that names no single node, and to a group only "packet too
/// big" or the code 2 of a parameter problem. That the packet carries no error itself is (e.1) and
/// (e.2), which need its upper layer: see [`quotes_an_error`].
pub const fn may_answer(src: Ipv6Addr, dst: Ipv6Addr, kind: Icmp6Type, code: u8) -> bool {
    if src.is_unspecified() || src.is_multicast() {
        return false;
    }
    let to_groups = match kind {
        Icmp6Type::PACKET_TOO_BIG => true,
        Icmp6Type::PARAMETER_PROBLEM => code == code::UNRECOGNIZED_OPTION,
        _ => false,
    };
    to_groups || !dst.is_multicast()
}

/// The message must never be answered with an error: it is an error or a redirect (RFC 4443 section
/// 2.4 (e.1) and (e.2)), or too short to tell.
pub fn quotes_an_error(message: &[u8]) -> bool {
    message.first().is_none_or(|&kind| Icmp6Type(kind).is_error() || Icmp6Type(kind) == Icmp6Type::REDIRECT)
}

/// Starts the checksum of a message of `length` bytes with its pseudo header (RFC 4443 section 2.3,
/// RFC 8200 section 8.1). `dst` is the final destination where a routing header names another.
#[inline(always)]
pub fn sum(src: Ipv6Addr, dst: Ipv6Addr, length: u32) -> Sum {
    Sum::pseudo_ip6(src, dst, IpProtocol::ICMP6, length)
}

/// Whether the checksum of a whole ICMPv6 message (header and data) is right.
#[inline]
pub fn verify(src: Ipv6Addr, dst: Ipv6Addr, message: &[u8]) -> bool {
    let mut sum = sum(src, dst, message.len() as u32);
    sum.add(message);
    message.len() >= Icmp6Header::LEN && sum.folded() == 0xffff
}

/// Computes and writes the checksum of a whole ICMPv6 message. A message shorter than its header is
/// left as it is.
pub fn make(src: Ipv6Addr, dst: Ipv6Addr, message: &mut [u8]) {
    if let Some(field) = message.get_mut(2..4) {
        field.fill(0);
        let mut sum = sum(src, dst, message.len() as u32);
        sum.add(message);
        if let Ok((header, _)) = Icmp6Header::mut_from_prefix(message) {
            header.set_checksum(sum.finish());
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    const A: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
    const B: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

    #[test]
    fn makes_and_verifies_the_checksum_with_its_pseudo_header() {
        let mut message = [128, 0, 0xff, 0xff, 0, 1, 0, 2, b'a', b'b', b'c'];
        make(A, B, &mut message);
        assert!(verify(A, B, &message) && verify(B, A, &message));
        assert!(!verify(A, A, &message) && !verify(A, B, &message[..10]));
        // RFC 4443 2.3: the next header of the pseudo header is 58, all of the length counts.
        let mut bytes = [A.octets(), B.octets()].concat();
        bytes.extend([0, 0, 0, 11, 0, 0, 0, 58]);
        bytes.extend(message);
        assert!(crate::checksum::verify(&bytes));
        make(A, B, &mut message[..3]);
        assert!(!verify(A, B, &[]) && !verify(A, B, &[0xff; 3]));
    }

    #[test]
    fn a_request_becomes_a_reply_with_a_right_checksum() {
        let mut message = [128, 0, 0, 0, 0x12, 0x34, 0, 9, 1, 2, 3];
        make(A, B, &mut message);
        let (header, _) = Icmp6Header::mut_from_prefix(&mut message).unwrap();
        header.rewrite_kind(Icmp6Type::ECHO_REPLY);
        assert_eq!(message[0], 129);
        assert!(verify(B, A, &message));
    }

    #[test]
    fn prints_as_vpp_does() {
        let mut echo = Icmp6Echo::new(Icmp6Type::ECHO_REQUEST, 1, 7);
        echo.header.set_checksum(0x9d6f);
        assert_eq!(echo.to_string(), "ICMP echo_request checksum 0x9d6f id 1");
        let error = Icmp6Error::time_exceeded(code::HOP_LIMIT_EXCEEDED_IN_TRANSIT);
        assert_eq!(error.to_string(), "ICMP time_exceeded ttl_exceeded_in_transit checksum 0x0");
        assert!(Icmp6Error::packet_too_big(1400).to_string().ends_with(" mtu 1400"));
        let error = Icmp6Error::parameter_problem(code::UNRECOGNIZED_NEXT_HEADER, 6);
        assert_eq!(
            error.to_string(),
            "ICMP parameter_problem unrecognized_next_header checksum 0x0 pointer 6"
        );
        assert_eq!(Icmp6Header::new(Icmp6Type(99), 0).to_string(), "ICMP unknown 0x63 checksum 0x0");
        for code in 0..=6 {
            assert!(Icmp6Error::unreachable(code).to_string().starts_with("ICMP destination_unreachable "));
            assert!(code_name(1, code).is_some());
        }
        assert_eq!(Icmp6Error::packet_too_big(1280).as_bytes(), [2, 0, 0, 0, 0, 0, 5, 0]);
    }

    #[test]
    fn errors_answer_no_groups_but_for_the_two_exceptions() {
        // RFC 4443 2.4 (e.3) to (e.6).
        let group: Ipv6Addr = "ff0e::1".parse().unwrap();
        let (too_big, problem) = (Icmp6Type::PACKET_TOO_BIG, Icmp6Type::PARAMETER_PROBLEM);
        assert!(may_answer(A, B, Icmp6Type::TIME_EXCEEDED, 0));
        assert!(!may_answer(A, group, Icmp6Type::TIME_EXCEEDED, 0) && !may_answer(A, group, problem, 1));
        assert!(may_answer(A, group, too_big, 0) && may_answer(A, group, problem, 2));
        assert!(!may_answer(group, B, too_big, 0) && !may_answer(Ipv6Addr::UNSPECIFIED, B, too_big, 0));
        assert!([&[1][..], &[127], &[137], &[]].iter().all(|m| quotes_an_error(m)));
        assert!(!quotes_an_error(&[128]) && !quotes_an_error(&[135]));
    }
}
