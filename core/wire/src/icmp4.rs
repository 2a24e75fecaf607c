//! ICMP for IPv4 (RFC 792, RFC 1191, RFC 1812).

use std::fmt;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::checksum::{self, update_u16};

/// An ICMP type. `Display` is VPP's word.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Icmp4Type(pub u8);

macro_rules! types {
    ($($number:literal $name:ident $word:literal;)*) => {
        #[allow(missing_docs, reason = "the names are those of RFC 792 and RFC 1256")]
        impl Icmp4Type {
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
    0 ECHO_REPLY "echo_reply";
    3 DESTINATION_UNREACHABLE "destination_unreachable";
    4 SOURCE_QUENCH "source_quench";
    5 REDIRECT "redirect";
    8 ECHO_REQUEST "echo_request";
    9 ROUTER_ADVERTISEMENT "router_advertisement";
    10 ROUTER_SOLICITATION "router_solicitation";
    11 TIME_EXCEEDED "time_exceeded";
    12 PARAMETER_PROBLEM "parameter_problem";
    13 TIMESTAMP_REQUEST "timestamp_request";
    14 TIMESTAMP_REPLY "timestamp_reply";
    15 INFORMATION_REQUEST "information_request";
    16 INFORMATION_REPLY "information_reply";
    17 ADDRESS_MASK_REQUEST "address_mask_request";
    18 ADDRESS_MASK_REPLY "address_mask_reply";
}

impl Icmp4Type {
    /// An error message: it quotes the packet that caused it, and never causes another (RFC 1122 section 3.2.2).
    pub const fn is_error(self) -> bool {
        matches!(self.0, 3 | 4 | 5 | 11 | 12)
    }
}

impl fmt::Display for Icmp4Type {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.name() {
            Some(name) => f.write_str(name),
            None => write!(f, "unknown 0x{:x}", self.0),
        }
    }
}

/// Codes of the error messages this router sends (RFC 792, RFC 1812 section 5.2.7).
pub mod code {
    /// Destination unreachable: no route to the network.
    pub const NET_UNREACHABLE: u8 = 0;
    /// Destination unreachable: the host does not answer ARP.
    pub const HOST_UNREACHABLE: u8 = 1;
    /// Destination unreachable: no listener for this protocol.
    pub const PROTOCOL_UNREACHABLE: u8 = 2;
    /// Destination unreachable: no listener on this port.
    pub const PORT_UNREACHABLE: u8 = 3;
    /// Destination unreachable: too big for the next link and may not be fragmented (RFC 1191).
    pub const FRAGMENTATION_NEEDED: u8 = 4;
    /// Destination unreachable: forbidden by a filter (RFC 1812 section 5.2.7.1).
    pub const ADMINISTRATIVELY_PROHIBITED: u8 = 13;
    /// Time exceeded: the TTL reached zero in transit.
    pub const TTL_EXCEEDED_IN_TRANSIT: u8 = 0;
    /// Time exceeded: fragments did not all arrive in time.
    pub const FRAGMENT_REASSEMBLY_TIME_EXCEEDED: u8 = 1;
    /// Parameter problem: the pointer names the byte.
    pub const POINTER_INDICATES_ERROR: u8 = 0;
    /// Redirect for the host.
    pub const REDIRECT_HOST: u8 = 1;
}

/// VPP's word for a code of a type, if it has one here.
const fn code_name(kind: u8, code: u8) -> Option<&'static str> {
    Some(match (kind, code) {
        (3, 0) => "destination_unreachable_net",
        (3, 1) => "destination_unreachable_host",
        (3, 2) => "protocol_unreachable",
        (3, 3) => "port_unreachable",
        (3, 4) => "fragmentation_needed_and_dont_fragment_set",
        (3, 5) => "source_route_failed",
        (3, 6) => "destination_network_unknown",
        (3, 7) => "destination_host_unknown",
        (3, 8) => "source_host_isolated",
        (3, 9) => "network_administratively_prohibited",
        (3, 10) => "host_administratively_prohibited",
        (3, 11) => "network_unreachable_for_type_of_service",
        (3, 12) => "host_unreachable_for_type_of_service",
        (3, 13) => "communication_administratively_prohibited",
        (3, 14) => "host_precedence_violation",
        (3, 15) => "precedence_cutoff_in_effect",
        (5, 0) => "network_redirect",
        (5, 1) => "host_redirect",
        (5, 2) => "type_of_service_and_network_redirect",
        (5, 3) => "type_of_service_and_host_redirect",
        (11, 0) => "ttl_exceeded_in_transit",
        (11, 1) => "fragment_reassembly_time_exceeded",
        (12, 0) => "pointer_indicates_error",
        (12, 1) => "missing_required_option",
        (12, 2) => "bad_length",
        _ => return None,
    })
}

/// Type, code and checksum: the 4 bytes every ICMP message starts with.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp4Header {
    kind: u8,
    code: u8,
    checksum: U16,
}

impl Icmp4Header {
    /// Bytes on the wire.
    pub const LEN: usize = 4;

    /// A header whose checksum is still zero.
    #[inline(always)]
    pub const fn new(kind: Icmp4Type, code: u8) -> Self {
        Self { kind: kind.0, code, checksum: U16::ZERO }
    }

    /// The message type.
    #[inline(always)]
    pub const fn kind(&self) -> Icmp4Type {
        Icmp4Type(self.kind)
    }

    /// The code within the type; see [`code`].
    #[inline(always)]
    pub const fn code(&self) -> u8 {
        self.code
    }

    /// The checksum over the whole ICMP message.
    #[inline(always)]
    pub const fn checksum(&self) -> u16 {
        self.checksum.get()
    }

    /// Sets the checksum field.
    #[inline(always)]
    pub fn set_checksum(&mut self, checksum: u16) {
        self.checksum = U16::new(checksum);
    }

    /// Changes the type and updates the checksum incrementally: how a request becomes its reply.
    #[inline(always)]
    pub fn rewrite_kind(&mut self, kind: Icmp4Type) {
        let word = |kind| u16::from_be_bytes([kind, self.code]);
        let new = update_u16(self.checksum(), word(self.kind), word(kind.0));
        self.kind = kind.0;
        self.checksum = U16::new(new);
    }
}

impl fmt::Display for Icmp4Header {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "ICMP {}", self.kind())?;
        if let Some(name) = code_name(self.kind, self.code) {
            write!(f, " {name}")?;
        }
        write!(f, " checksum 0x{:x}", self.checksum())
    }
}

/// An echo request or reply: 8 bytes before the data.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp4Echo {
    /// Type, code and checksum.
    pub header: Icmp4Header,
    id: U16,
    sequence: U16,
}

impl Icmp4Echo {
    /// Bytes before the data.
    pub const LEN: usize = 8;

    /// An echo header whose checksum is still zero.
    pub const fn new(kind: Icmp4Type, id: u16, sequence: u16) -> Self {
        Self { header: Icmp4Header::new(kind, 0), id: U16::new(id), sequence: U16::new(sequence) }
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

impl fmt::Display for Icmp4Echo {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} id {}", self.header, self.id())
    }
}

/// An error message: 8 bytes before the quoted packet.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct Icmp4Error {
    /// Type, code and checksum.
    pub header: Icmp4Header,
    pointer: u8,
    length: u8,
    mtu: U16,
}

impl Icmp4Error {
    /// Bytes before the quoted packet.
    pub const LEN: usize = 8;

    /// An error header whose checksum is still zero.
    pub const fn new(kind: Icmp4Type, code: u8) -> Self {
        Self { header: Icmp4Header::new(kind, code), pointer: 0, length: 0, mtu: U16::ZERO }
    }

    /// "Fragmentation needed" with the next hop's MTU in bytes (RFC 1191 section 4).
    pub const fn fragmentation_needed(mtu: u16) -> Self {
        let mut error = Self::new(Icmp4Type::DESTINATION_UNREACHABLE, code::FRAGMENTATION_NEEDED);
        error.mtu = U16::new(mtu);
        error
    }

    /// "Parameter problem" at byte `pointer` of the quoted packet.
    pub const fn parameter_problem(pointer: u8) -> Self {
        let mut error = Self::new(Icmp4Type::PARAMETER_PROBLEM, code::POINTER_INDICATES_ERROR);
        error.pointer = pointer;
        error
    }

    /// The next hop's MTU in bytes; meaningful in "fragmentation needed" only.
    #[inline(always)]
    pub const fn mtu(&self) -> u16 {
        self.mtu.get()
    }

    /// Offset of the offending byte; meaningful in a parameter problem only.
    #[inline(always)]
    pub const fn pointer(&self) -> u8 {
        self.pointer
    }
}

impl fmt::Display for Icmp4Error {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.header.fmt(f)?;
        if self.header.kind() == Icmp4Type::DESTINATION_UNREACHABLE
            && self.header.code == code::FRAGMENTATION_NEEDED
        {
            write!(f, " mtu {}", self.mtu())?;
        }
        Ok(())
    }
}

/// Whether the checksum of a whole ICMP message (header and data) is right. Chains use
/// [`checksum::Sum`].
#[inline]
pub fn verify(message: &[u8]) -> bool {
    checksum::verify(message)
}

/// Computes and writes the checksum of a whole ICMP message. A message shorter than its header is
/// left as it is.
pub fn make(message: &mut [u8]) {
    if let Some(field) = message.get_mut(2..4) {
        field.fill(0);
        let checksum = checksum::checksum(message);
        if let Ok((header, _)) = Icmp4Header::mut_from_prefix(message) {
            header.set_checksum(checksum);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn makes_and_verifies_the_checksum() {
        let mut message = [8, 0, 0xff, 0xff, 0, 1, 0, 2, b'a', b'b', b'c'];
        make(&mut message);
        assert!(verify(&message));
        message[10] ^= 1;
        assert!(!verify(&message));
        make(&mut message[..3]);
    }

    #[test]
    fn a_request_becomes_a_reply_with_a_right_checksum() {
        let mut message = [8, 0, 0, 0, 0x12, 0x34, 0, 9, 1, 2, 3];
        make(&mut message);
        let (header, _) = Icmp4Header::mut_from_prefix(&mut message).unwrap();
        header.rewrite_kind(Icmp4Type::ECHO_REPLY);
        assert_eq!(message[0], 0);
        assert!(verify(&message));
    }

    #[test]
    fn prints_as_vpp_does() {
        let mut echo = Icmp4Echo::new(Icmp4Type::ECHO_REQUEST, 1, 7);
        echo.header.set_checksum(0x9d6f);
        assert_eq!(echo.to_string(), "ICMP echo_request checksum 0x9d6f id 1");
        let error = Icmp4Error::new(Icmp4Type::TIME_EXCEEDED, code::TTL_EXCEEDED_IN_TRANSIT);
        assert_eq!(error.to_string(), "ICMP time_exceeded ttl_exceeded_in_transit checksum 0x0");
        assert!(Icmp4Error::fragmentation_needed(1400).to_string().ends_with(" mtu 1400"));
        assert_eq!(Icmp4Header::new(Icmp4Type(99), 0).to_string(), "ICMP unknown 0x63 checksum 0x0");
    }
}
