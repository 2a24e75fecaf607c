//! What a node leaves in a packet's scratch for `ip4-icmp-error`.

use shoal_buffer::Packet;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

/// The message to send about a packet: type, code and the word behind the checksum.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
pub struct IcmpError {
    /// ICMP type.
    pub kind: u8,
    /// ICMP code.
    pub code: u8,
    /// Not used, zero.
    pub unused: u16,
    /// The word behind the checksum in host order: the next hop's MTU, a gateway, a pointer in its high byte.
    pub data: u32,
}

impl IcmpError {
    const fn new(kind: u8, code: u8, data: u32) -> Self {
        IcmpError { kind, code, unused: 0, data }
    }

    /// Time to live exceeded in transit.
    pub const TTL: IcmpError = IcmpError::new(11, 0, 0);
    /// Fragments did not all come in time.
    pub const REASSEMBLY: IcmpError = IcmpError::new(11, 1, 0);
    /// Network unreachable.
    pub const NET: IcmpError = IcmpError::new(3, 0, 0);
    /// Host unreachable.
    pub const HOST: IcmpError = IcmpError::new(3, 1, 0);
    /// Protocol unreachable.
    pub const PROTOCOL: IcmpError = IcmpError::new(3, 2, 0);
    /// Port unreachable.
    pub const PORT: IcmpError = IcmpError::new(3, 3, 0);
    /// Communication with the host administratively prohibited.
    pub const HOST_PROHIBITED: IcmpError = IcmpError::new(3, 10, 0);
    /// Communication administratively prohibited.
    pub const PROHIBITED: IcmpError = IcmpError::new(3, 13, 0);

    /// Fragmentation needed but not allowed; `mtu` is the next hop's.
    pub const fn too_big(mtu: u16) -> Self {
        IcmpError::new(3, 4, mtu as u32)
    }

    /// A better first hop for the host.
    pub const fn redirect_host(gateway: u32) -> Self {
        IcmpError::new(5, 1, gateway)
    }

    /// Something is wrong at byte `pointer` of the header.
    pub const fn parameter_problem(pointer: u8) -> Self {
        IcmpError::new(12, 0, (pointer as u32) << 24)
    }

    /// Leaves the request in a packet.
    #[inline]
    pub fn ask(self, pkt: &mut Packet<'_>) {
        *pkt.scratch::<IcmpError>() = self;
    }
}
