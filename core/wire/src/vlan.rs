//! The VLAN tag (IEEE 802.1Q and 802.1ad): what follows the EtherType that announces it.

use std::fmt;

use zerocopy::byteorder::network_endian::U16;
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout, Unaligned};

use crate::EtherType;

/// The four bytes after an EtherType of [`EtherType::VLAN`] or [`EtherType::QINQ`]: the tag control
/// information and the next EtherType. `Display` is the id, then priority and cfi when set.
#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable, Unaligned)]
#[repr(C)]
pub struct VlanHeader {
    tci: U16,
    ether_type: U16,
}

impl VlanHeader {
    /// Bytes on the wire.
    pub const LEN: usize = 4;
    /// The largest VLAN id; 4095 is reserved.
    pub const MAX_ID: u16 = 4094;

    /// A tag with priority 0; only the low 12 bits of `id` are used.
    #[inline(always)]
    pub const fn new(id: u16, ether_type: EtherType) -> Self {
        Self { tci: U16::new(id & 0xfff), ether_type: U16::new(ether_type.0) }
    }

    /// VLAN id, 0 to 4095; 0 means "priority only".
    #[inline(always)]
    pub const fn id(&self) -> u16 {
        self.tci.get() & 0xfff
    }

    /// Priority code point, 0 to 7.
    #[inline(always)]
    pub const fn priority(&self) -> u8 {
        (self.tci.get() >> 13) as u8
    }

    /// The drop-eligible bit, `cfi` in VPP's words.
    #[inline(always)]
    pub const fn cfi(&self) -> bool {
        self.tci.get() & 0x1000 != 0
    }

    /// The EtherType of what the tag carries.
    #[inline(always)]
    pub const fn ether_type(&self) -> EtherType {
        EtherType(self.ether_type.get())
    }

    /// Sets the id (low 12 bits) and keeps priority and cfi.
    #[inline(always)]
    pub fn set_id(&mut self, id: u16) {
        self.tci = U16::new(self.tci.get() & 0xf000 | id & 0xfff);
    }

    /// Sets the priority (low 3 bits) and keeps the rest.
    #[inline(always)]
    pub fn set_priority(&mut self, priority: u8) {
        self.tci = U16::new(self.tci.get() & 0x1fff | u16::from(priority & 7) << 13);
    }

    /// Sets the EtherType of what the tag carries.
    #[inline(always)]
    pub fn set_ether_type(&mut self, ether_type: EtherType) {
        self.ether_type = U16::new(ether_type.0);
    }
}

impl fmt::Display for VlanHeader {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}", self.id())?;
        if self.priority() != 0 {
            write!(f, " priority {}", self.priority())?;
        }
        if self.cfi() {
            f.write_str(" cfi")?;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn setters_touch_only_their_bits() {
        let mut tag = VlanHeader::new(0xffff, EtherType::IP4);
        assert_eq!((tag.id(), tag.priority(), tag.cfi()), (0xfff, 0, false));
        tag.set_priority(5);
        tag.set_id(10);
        assert_eq!((tag.id(), tag.priority()), (10, 5));
        assert_eq!(tag.to_string(), "10 priority 5");
        assert_eq!(tag.as_bytes(), [0xa0, 10, 8, 0]);
    }
}
