//! The link-layer header of frames that the router makes itself: that of Ethernet, with an interface's tags.

use std::ops::Deref;

use shoal_buffer::Packet;
use shoal_wire::{EtherType, EthernetHeader, IntoBytes, MacAddress};

use crate::IfData;

/// Bytes of the addresses a frame begins with.
const ADDRESSES: usize = 12;

/// A header, tags included: its bytes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LinkHeader {
    bytes: [u8; Self::LONGEST],
    len: u8,
}

impl LinkHeader {
    /// The longest one: two tags.
    pub const LONGEST: usize = EthernetHeader::LEN + 8;

    /// The header of a frame that an interface sends to a station or a group.
    #[inline]
    pub fn new(data: &IfData, dst: MacAddress, kind: EtherType) -> LinkHeader {
        Self::from(data, data.mac(), dst, kind)
    }

    /// The same with another sender's address.
    #[inline]
    pub fn from(data: &IfData, src: MacAddress, dst: MacAddress, kind: EtherType) -> LinkHeader {
        let header = EthernetHeader::new(src, dst, kind);
        let (tags, plain) = (data.tags(), header.as_bytes());
        let mut bytes = [0; Self::LONGEST];
        let (addresses, kind) = plain.split_at(ADDRESSES);
        let whole = addresses.iter().chain(tags).chain(kind);
        bytes.iter_mut().zip(whole).for_each(|(to, from)| *to = *from);
        LinkHeader { bytes, len: (plain.len() + tags.len()) as u8 }
    }
}

impl IfData {
    /// Puts the tags of frames sent by an interface into one without; `None` when it has no room in front, or is shorter
    /// than its addresses.
    #[inline]
    pub fn tag(&self, pkt: &mut Packet<'_>) -> Option<()> {
        let tags = self.tags();
        if tags.is_empty() {
            return Some(());
        }
        pkt.push(tags.len())?;
        let frame = pkt.data_mut();
        if frame.len() < ADDRESSES + tags.len() {
            return None;
        }
        frame.copy_within(tags.len()..tags.len() + ADDRESSES, 0);
        frame.get_mut(ADDRESSES..ADDRESSES + tags.len())?.copy_from_slice(tags);
        Some(())
    }
}

impl Deref for LinkHeader {
    type Target = [u8];

    #[inline(always)]
    fn deref(&self) -> &[u8] {
        self.bytes.get(..usize::from(self.len)).unwrap_or_default()
    }
}
