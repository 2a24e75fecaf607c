//! What a node leaves in a packet's scratch for `ip6-icmp-error`.

use shoal_buffer::Packet;
use shoal_wire::Icmp6Type;
use shoal_wire::icmp6::{ParameterProblem, code};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The message to send about a packet: type, code and the word behind the checksum. RFC 4443, 3.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct IcmpError {
    /// ICMPv6 type.
    pub kind: u8,
    /// ICMPv6 code.
    pub code: u8,
    /// Not zero: the packet came as far as one of the router's own addresses.
    pub for_us: u16,
    /// The word behind the checksum in host order: an MTU or a pointer.
    pub data: u32,
}

impl IcmpError {
    const fn new(kind: Icmp6Type, code: u8, data: u32) -> Self {
        IcmpError { kind: kind.0, code, for_us: 0, data }
    }

    const fn unreachable(code: u8) -> Self {
        Self::new(Icmp6Type::DESTINATION_UNREACHABLE, code, 0)
    }

    /// Hop limit exceeded in transit.
    pub const HOP_LIMIT: IcmpError =
        IcmpError::new(Icmp6Type::TIME_EXCEEDED, code::HOP_LIMIT_EXCEEDED_IN_TRANSIT, 0);
    /// Fragments did not all come in time.
    pub const REASSEMBLY: IcmpError =
        IcmpError::new(Icmp6Type::TIME_EXCEEDED, code::FRAGMENT_REASSEMBLY_TIME_EXCEEDED, 0);
    /// No route to destination.
    pub const NO_ROUTE: IcmpError = IcmpError::unreachable(code::NO_ROUTE_TO_DESTINATION);
    /// Communication with destination administratively prohibited.
    pub const PROHIBITED: IcmpError = IcmpError::unreachable(code::ADMINISTRATIVELY_PROHIBITED);
    /// Beyond scope of source address.
    pub const SCOPE: IcmpError = IcmpError::unreachable(code::BEYOND_SCOPE_OF_SOURCE_ADDRESS);
    /// Address unreachable.
    pub const ADDRESS: IcmpError = IcmpError::unreachable(code::ADDRESS_UNREACHABLE);
    /// Port unreachable.
    pub const PORT: IcmpError = IcmpError::unreachable(code::PORT_UNREACHABLE);
    /// Source address failed ingress policy.
    pub const SOURCE_POLICY: IcmpError = IcmpError::unreachable(code::SOURCE_ADDRESS_FAILED_POLICY);

    /// Packet too big; `mtu` is the next link's.
    pub const fn too_big(mtu: u16) -> Self {
        IcmpError::new(Icmp6Type::PACKET_TOO_BIG, 0, mtu as u32)
    }

    /// Something is wrong with the headers.
    pub const fn parameter_problem(problem: ParameterProblem) -> Self {
        IcmpError::new(Icmp6Type::PARAMETER_PROBLEM, problem.code, problem.pointer)
    }

    /// The same about a packet that was delivered here.
    #[must_use]
    pub const fn for_us(mut self) -> Self {
        self.for_us = 1;
        self
    }

    /// Leaves the request in a packet.
    #[inline]
    pub fn ask(self, pkt: &mut Packet<'_>) {
        *pkt.scratch::<IcmpError>() = self;
    }
}
