//! ARP for IPv4 over Ethernet (RFC 826).

use std::fmt;
use std::net::Ipv4Addr;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::{EtherType, MacAddress};

/// What an ARP packet asks or says, in host order. `Display` is VPP's word.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct ArpOpcode(pub u16);

impl ArpOpcode {
    /// Who has the target address?
    pub const REQUEST: Self = Self(1);
    /// The sender has it.
    pub const REPLY: Self = Self(2);
}

impl fmt::Display for ArpOpcode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            1 => f.write_str("request"),
            2 => f.write_str("reply"),
            3 => f.write_str("reverse_request"),
            4 => f.write_str("reverse_reply"),
            other => write!(f, "unknown 0x{other:x}"),
        }
    }
}

/// The 28 bytes of an ARP packet for Ethernet and IPv4. Nothing in it may be trusted before
/// [`is_valid`](Self::is_valid) returned true.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct ArpHeader {
    l2_type: U16,
    l3_type: U16,
    l2_len: u8,
    l3_len: u8,
    opcode: U16,
    sender_mac: MacAddress,
    sender_ip4: [u8; 4],
    target_mac: MacAddress,
    target_ip4: [u8; 4],
}

impl ArpHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 28;
    /// Hardware type 1: Ethernet.
    pub const L2_TYPE_ETHERNET: u16 = 1;

    /// A valid Ethernet/IPv4 ARP packet.
    pub const fn new(
        opcode: ArpOpcode,
        sender_mac: MacAddress,
        sender_ip4: Ipv4Addr,
        target_mac: MacAddress,
        target_ip4: Ipv4Addr,
    ) -> Self {
        Self {
            l2_type: U16::new(Self::L2_TYPE_ETHERNET),
            l3_type: U16::new(EtherType::IP4.0),
            l2_len: 6,
            l3_len: 4,
            opcode: U16::new(opcode.0),
            sender_mac,
            sender_ip4: sender_ip4.octets(),
            target_mac,
            target_ip4: target_ip4.octets(),
        }
    }

    /// Types and address sizes are those of Ethernet and IPv4 (RFC 826, "Packet Reception").
    #[inline(always)]
    pub const fn is_valid(&self) -> bool {
        self.l2_type.get() == Self::L2_TYPE_ETHERNET
            && self.l3_type.get() == EtherType::IP4.0
            && self.l2_len == 6
            && self.l3_len == 4
    }

    /// Request, reply or something else.
    #[inline(always)]
    pub const fn opcode(&self) -> ArpOpcode {
        ArpOpcode(self.opcode.get())
    }

    /// Sender hardware address.
    #[inline(always)]
    pub const fn sender_mac(&self) -> MacAddress {
        self.sender_mac
    }

    /// Sender protocol address.
    #[inline(always)]
    pub const fn sender_ip4(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.sender_ip4)
    }

    /// Target hardware address; zero in most requests.
    #[inline(always)]
    pub const fn target_mac(&self) -> MacAddress {
        self.target_mac
    }

    /// Target protocol address.
    #[inline(always)]
    pub const fn target_ip4(&self) -> Ipv4Addr {
        Ipv4Addr::from_octets(self.target_ip4)
    }

    /// Sender and target address are the same: an announcement (RFC 5227 section 3).
    #[inline(always)]
    pub const fn is_gratuitous(&self) -> bool {
        u32::from_ne_bytes(self.sender_ip4) == u32::from_ne_bytes(self.target_ip4)
    }

    /// Turns a request into the reply that says `mac` has the address asked for.
    pub fn make_reply(&mut self, mac: MacAddress) {
        self.opcode = U16::new(ArpOpcode::REPLY.0);
        self.target_mac = self.sender_mac;
        self.sender_mac = mac;
        std::mem::swap(&mut self.sender_ip4, &mut self.target_ip4);
    }
}

impl fmt::Display for ArpHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}, type ", self.opcode())?;
        match self.l2_type.get() {
            Self::L2_TYPE_ETHERNET => f.write_str("ethernet")?,
            other => write!(f, "unknown 0x{other:x}")?,
        }
        let l3_type = EtherType(self.l3_type.get());
        write!(f, "/{l3_type}, address size {}/{}", self.l2_len, self.l3_len)?;
        // The fields below mean addresses only when the header says so.
        if self.is_valid() {
            write!(
                f,
                "\n{}/{} -> {}/{}",
                self.sender_mac,
                self.sender_ip4(),
                self.target_mac,
                self.target_ip4()
            )?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request() -> ArpHeader {
        let (mac, zero) = (MacAddress([2, 0xfe, 0, 0, 0, 1]), MacAddress::ZERO);
        ArpHeader::new(ArpOpcode::REQUEST, mac, Ipv4Addr::new(10, 0, 0, 1), zero, Ipv4Addr::new(10, 0, 0, 2))
    }

    #[test]
    fn prints_as_vpp_does() {
        let want = "request, type ethernet/IP4, address size 6/4\n\
                    02:fe:00:00:00:01/10.0.0.1 -> 00:00:00:00:00:00/10.0.0.2";
        assert_eq!(request().to_string(), want);
    }

    #[test]
    fn refuses_other_address_sizes_and_types() {
        assert!(request().is_valid());
        for byte in [1, 3, 4, 5] {
            let mut bytes = [0; 28];
            bytes.copy_from_slice(request().as_bytes());
            bytes[byte] ^= 0x40;
            let arp = ArpHeader::read_from_bytes(&bytes).unwrap();
            assert!(!arp.is_valid(), "byte {byte}");
            assert!(!arp.to_string().contains('\n'));
        }
    }

    #[test]
    fn a_reply_swaps_the_two_ends() {
        let mut arp = request();
        arp.make_reply(MacAddress([2, 0xfe, 0, 0, 0, 2]));
        let want = "reply, type ethernet/IP4, address size 6/4\n\
                    02:fe:00:00:00:02/10.0.0.2 -> 02:fe:00:00:00:01/10.0.0.1";
        assert_eq!(arp.to_string(), want);
        assert!(!arp.is_gratuitous());
    }
}
