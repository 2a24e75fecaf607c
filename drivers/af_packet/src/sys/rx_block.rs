//! One block of a TPACKET_V3 ring: where its frames lie. All numbers in it are checked.

use shoal_shm::Mapping;
use shoal_vnet::{VNET_HDR_LEN, VnetHdr};
use zerocopy::FromBytes as _;

/// `struct tpacket_block_desc`, byte offsets (Linux uapi/linux/if_packet.h).
pub(super) mod block {
    pub const STATUS: usize = 8;
    pub const NUM_PKTS: usize = 12;
    pub const FIRST_PKT: usize = 16;
    pub const HEADER: usize = 48;
}

/// `struct tpacket3_hdr`, byte offsets.
pub(super) mod frame {
    pub const NEXT: usize = 0;
    pub const SNAPLEN: usize = 12;
    pub const LEN: usize = 16;
    pub const STATUS: usize = 20;
    pub const MAC_NET: usize = 24;
    pub const VLAN_TCI: usize = 32;
    pub const VLAN_TPID: usize = 36;
    pub const HEADER: usize = 48;
}

/// `struct tpacket2_hdr`, byte offsets. In version 2 every frame has a slot of its own.
pub(super) mod slot {
    pub const STATUS: usize = 0;
    pub const LEN: usize = 4;
    pub const SNAPLEN: usize = 8;
    pub const MAC_NET: usize = 12;
    pub const VLAN: usize = 24;
    pub const HEADER: usize = 32;
}

pub(super) const STATUS_KERNEL: u32 = 0;
pub(super) const STATUS_USER: u32 = 1 << 0;
const STATUS_COPY: u32 = 1 << 1;
const STATUS_LOSING: u32 = 1 << 2;
const STATUS_CSUM_NOT_READY: u32 = 1 << 3;
const STATUS_VLAN_VALID: u32 = 1 << 4;
const STATUS_VLAN_TPID_VALID: u32 = 1 << 6;
const STATUS_CSUM_VALID: u32 = 1 << 7;

/// An 802.1Q tag that the kernel has taken out of the frame.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct VlanTag {
    /// Ethertype of the tag: `0x8100` or `0x88a8`.
    pub tpid: u16,
    /// Priority, drop eligible, VLAN id.
    pub tci: u16,
}

/// A received frame, in place in the ring; the borrow ends before its block returns to the kernel.
#[derive(Clone, Copy, Debug)]
pub struct RxFrame<'a> {
    /// The captured bytes, from the destination MAC, without a VLAN tag the kernel took out.
    pub bytes: &'a [u8],
    /// What the frame still owes; raw, [`VnetHdr::validate`] it.
    pub vnet: VnetHdr,
    /// Length on the wire; more than `bytes.len()` when the frame was cut.
    pub wire_len: u32,
    /// The tag the kernel took out.
    pub vlan: Option<VlanTag>,
    status: u32,
}

impl RxFrame<'_> {
    /// The frame did not fit and is to be dropped.
    pub fn is_truncated(&self) -> bool {
        self.wire_len as usize > self.bytes.len()
    }

    /// The kernel has dropped frames of this ring since the statistics were last read.
    pub fn is_losing(&self) -> bool {
        self.status & STATUS_LOSING != 0
    }

    /// The transport checksum is not computed yet; `vnet` says where it goes.
    pub fn is_csum_not_ready(&self) -> bool {
        self.status & STATUS_CSUM_NOT_READY != 0
    }

    /// The kernel or the device has verified the transport checksum.
    pub fn is_csum_valid(&self) -> bool {
        self.status & STATUS_CSUM_VALID != 0
    }
}

/// How the kernel lays frames out in a ring.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum RingVersion {
    /// TPACKET_V3: frames of any size packed into blocks, handed over by the block.
    V3,
    /// TPACKET_V2: a slot for each frame, handed over at once; frames longer than a slot come by the socket.
    #[default]
    V2,
}

impl std::fmt::Display for RingVersion {
    /// Its number.
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Self::V2 => "2",
            Self::V3 => "3",
        })
    }
}

impl RingVersion {
    /// Where the status of a block, or slot, lies.
    const fn status(self) -> usize {
        match self {
            Self::V3 => block::STATUS,
            Self::V2 => slot::STATUS,
        }
    }
}

/// A block (in version 2, a slot) that user space owns, and how far it has been read.
#[derive(Clone, Copy)]
pub(super) struct Cursor {
    base: usize,
    size: usize,
    next: usize,
    left: u32,
    version: RingVersion,
}

/// The block contradicts itself; the rest of it is given up.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Malformed;

impl Cursor {
    /// Takes the block at `base` if the kernel has handed it over.
    pub(super) fn acquire(map: &Mapping, base: usize, size: usize, version: RingVersion) -> Option<Self> {
        if map.load_acquire(base + version.status())? & STATUS_USER == 0 {
            return None;
        }
        if version == RingVersion::V2 {
            return Some(Self { base, size, next: 0, left: 1, version });
        }
        let left = map.read_u32(base + block::NUM_PKTS)?;
        let next = map.read_u32(base + block::FIRST_PKT)? as usize;
        Some(Self { base, size, next, left, version })
    }

    /// Gives the block back.
    pub(super) fn release(self, map: &Mapping) {
        map.store_release(self.base + self.version.status(), STATUS_KERNEL);
    }

    pub(super) fn is_empty(&self) -> bool {
        self.left == 0
    }

    /// Finds the next frame of a block that is not empty.
    pub(super) fn step(&mut self, map: &Mapping) -> Result<Located, Malformed> {
        if self.version == RingVersion::V2 {
            return self.only(map);
        }
        let at = self.next;
        if at < block::HEADER || !at.is_multiple_of(8) || at + frame::HEADER > self.size {
            return Err(Malformed);
        }
        let field = |offset| map.read_u32(self.base + at + offset).ok_or(Malformed);
        let step = field(frame::NEXT)? as usize;
        let snaplen = field(frame::SNAPLEN)? as usize;
        let wire_len = field(frame::LEN)?;
        let status = field(frame::STATUS)?;
        let mac = usize::from(first_u16(field(frame::MAC_NET)?));
        let end = at.checked_add(mac).and_then(|v| v.checked_add(snaplen)).ok_or(Malformed)?;
        if mac < frame::HEADER + VNET_HDR_LEN || end > self.size {
            return Err(Malformed);
        }
        let tci = field(frame::VLAN_TCI)? as u16;
        let vlan = VlanTag::of(status, tci, first_u16(field(frame::VLAN_TPID)?));
        self.left -= 1;
        // A step of zero or backwards would show the same bytes for ever; one beyond the block is caught
        // above, at the next frame.
        if step < frame::HEADER {
            self.left = 0;
        }
        self.next = at.saturating_add(step);
        let start = self.base + at + mac - VNET_HDR_LEN;
        Ok(Located { start, len: VNET_HDR_LEN + snaplen, wire_len, status, vlan })
    }
}

impl Cursor {
    /// The one frame of a slot.
    fn only(&mut self, map: &Mapping) -> Result<Located, Malformed> {
        self.left = 0;
        let field = |offset| map.read_u32(self.base + offset).ok_or(Malformed);
        let status = field(slot::STATUS)?;
        let wire_len = field(slot::LEN)?;
        let snaplen = field(slot::SNAPLEN)? as usize;
        let mac = usize::from(first_u16(field(slot::MAC_NET)?));
        let end = mac.checked_add(snaplen).ok_or(Malformed)?;
        if mac < slot::HEADER + VNET_HDR_LEN || end > self.size {
            return Err(Malformed);
        }
        let tag = field(slot::VLAN)?;
        let vlan = VlanTag::of(status, first_u16(tag), second_u16(tag));
        let (start, len) = (self.base + mac - VNET_HDR_LEN, VNET_HDR_LEN + snaplen);
        Ok(Located { start, len, wire_len, status, vlan })
    }
}

impl VlanTag {
    fn of(status: u32, tci: u16, tpid: u16) -> Option<Self> {
        // Kernels before 3.14 give no TPID; 0x8100 is what it then was.
        let tpid = if status & STATUS_VLAN_TPID_VALID == 0 { 0x8100 } else { tpid };
        (status & STATUS_VLAN_VALID != 0).then_some(Self { tpid, tci })
    }
}

/// Where a frame lies, checked to be inside its block: vnet header, then bytes.
pub(super) struct Located {
    start: usize,
    len: usize,
    wire_len: u32,
    status: u32,
    vlan: Option<VlanTag>,
}

impl Located {
    /// The slot holds only its beginning; all of it waits in the socket.
    pub(super) fn waits_in_socket(&self) -> bool {
        self.status & STATUS_COPY != 0
    }

    /// The frame itself, from what the socket gave for it: vnet header, then bytes. `None` when that is not it.
    pub(super) fn of_socket<'m>(&self, received: &'m [u8]) -> Option<RxFrame<'m>> {
        let (vnet, bytes) = VnetHdr::read_from_prefix(received).ok()?;
        let whole = bytes.len() == self.wire_len as usize;
        whole.then_some(RxFrame {
            bytes,
            vnet,
            wire_len: self.wire_len,
            vlan: self.vlan,
            status: self.status,
        })
    }

    /// The frame itself.
    ///
    /// # Safety
    /// Its block must be owned by user space, and not be released while the frame is alive.
    pub(super) unsafe fn view<'m>(&self, map: &'m Mapping) -> Option<RxFrame<'m>> {
        // SAFETY: the bytes are inside a block that, by the promise of our caller, user space owns.
        let bytes = unsafe { map.bytes(self.start, self.len) }?;
        let (vnet, bytes) = VnetHdr::read_from_prefix(bytes).ok()?;
        Some(RxFrame { bytes, vnet, wire_len: self.wire_len, vlan: self.vlan, status: self.status })
    }
}

/// The `u16` at the lower address of two neighbours that were read as one word.
fn first_u16(word: u32) -> u16 {
    let [a, b, ..] = word.to_ne_bytes();
    u16::from_ne_bytes([a, b])
}

/// The `u16` at the higher address.
fn second_u16(word: u32) -> u16 {
    let [.., a, b] = word.to_ne_bytes();
    u16::from_ne_bytes([a, b])
}

#[cfg(test)]
#[path = "rx_block_tests.rs"]
mod tests;
