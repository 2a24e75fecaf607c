//! Blocks written by hand, right and hostile.

use super::*;

const SIZE: usize = 4096;

struct Block(Vec<u8>);

impl Block {
    fn new(num_pkts: u32, first: u32) -> Self {
        let mut block = Self(vec![0; SIZE]);
        block.put(block::STATUS, STATUS_USER);
        block.put(block::NUM_PKTS, num_pkts);
        block.put(block::FIRST_PKT, first);
        block
    }

    fn put(&mut self, at: usize, value: u32) {
        self.0[at..at + 4].copy_from_slice(&value.to_ne_bytes());
    }

    fn frame(&mut self, at: usize, step: u32, snaplen: u32, len: u32) {
        self.put(at + frame::NEXT, step);
        self.put(at + frame::SNAPLEN, snaplen);
        self.put(at + frame::LEN, len);
        self.put(at + frame::STATUS, STATUS_USER);
        self.put(at + frame::MAC_NET, 80);
    }

    /// Lengths of the frames that come out, and whether the block ended well.
    fn walk(&self) -> (Vec<usize>, bool) {
        let map = mapped(&self.0);
        let mut cursor = Cursor::acquire(&map, 0, SIZE, RingVersion::V3).unwrap();
        let mut lens = Vec::new();
        while !cursor.is_empty() {
            match cursor.step(&map) {
                // SAFETY: the block is anonymous memory without a writer.
                Ok(located) => lens.push(unsafe { located.view(&map) }.unwrap().bytes.len()),
                Err(Malformed) => return (lens, false),
            }
        }
        (lens, true)
    }
}

#[test]
fn walks_the_frames_of_a_block() {
    let mut block = Block::new(2, 48);
    block.frame(48, 160, 60, 60);
    block.frame(208, 0, 100, 2000);
    assert_eq!(block.walk(), (vec![60, 100], true));
}

#[test]
fn a_block_that_the_kernel_owns_is_not_read() {
    let mut block = Block::new(1, 48);
    block.put(block::STATUS, STATUS_KERNEL);
    assert!(Cursor::acquire(&mapped(&block.0), 0, SIZE, RingVersion::V3).is_none());
}

#[test]
fn a_released_block_is_the_kernels() {
    let map = mapped(&Block::new(0, 48).0);
    let cursor = Cursor::acquire(&map, 0, SIZE, RingVersion::V3).unwrap();
    cursor.release(&map);
    assert!(Cursor::acquire(&map, 0, SIZE, RingVersion::V3).is_none());
}

#[test]
fn lengths_and_offsets_beyond_the_block_are_refused() {
    for (first, mac, snaplen) in [
        (48, 80, 4096),
        (48, 80, u32::MAX),
        (48, 0, 60),      // the vnet header would lie inside the frame header
        (48, 65_535, 60), // beyond the block
        (0, 80, 60),      // inside the block header
        (50, 80, 60),     // not aligned
        (4090, 80, 60),   // header straddles the end
        (u32::MAX, 80, 60),
    ] {
        let mut block = Block::new(1, first);
        if (first as usize) < SIZE - 48 {
            block.frame(first as usize, 0, snaplen, 60);
            block.put(first as usize + frame::MAC_NET, mac);
        }
        assert_eq!(block.walk(), (vec![], false), "{first} {mac} {snaplen}");
    }
}

#[test]
fn a_step_of_zero_ends_the_block_however_many_frames_it_claims() {
    let mut block = Block::new(u32::MAX, 48);
    block.frame(48, 0, 60, 60);
    assert_eq!(block.walk(), (vec![60], true));
}

#[test]
fn a_step_out_of_the_block_keeps_the_frames_before_it() {
    let mut block = Block::new(2, 48);
    block.frame(48, 1 << 20, 60, 60);
    assert_eq!(block.walk(), (vec![60], false));
}

#[test]
fn a_cut_frame_and_a_stripped_tag_are_reported() {
    let mut block = Block::new(1, 48);
    block.frame(48, 0, 60, 61);
    block.put(48 + frame::STATUS, STATUS_USER | STATUS_VLAN_VALID | STATUS_CSUM_NOT_READY | STATUS_LOSING);
    block.put(48 + frame::VLAN_TCI, 0x2007);
    let map = mapped(&block.0);
    let located = Cursor::acquire(&map, 0, SIZE, RingVersion::V3).unwrap().step(&map).unwrap();
    // SAFETY: the block is anonymous memory without a writer.
    let frame = unsafe { located.view(&map) }.unwrap();
    assert!(frame.is_truncated() && frame.is_losing() && frame.is_csum_not_ready() && !frame.is_csum_valid());
    assert_eq!(frame.vlan, Some(VlanTag { tpid: 0x8100, tci: 0x2007 }));
}

#[test]
fn what_the_socket_gave_counts_only_with_the_length_of_its_slot() {
    let waits = |status| Located { start: 0, len: 0, wire_len: 60, status, vlan: None };
    assert!(waits(STATUS_USER | STATUS_COPY).waits_in_socket());
    assert!(!waits(STATUS_USER).waits_in_socket());
    let received = [7; VNET_HDR_LEN + 61];
    let of = |len: usize| waits(STATUS_USER).of_socket(&received[..len]).map(|f| f.bytes.len());
    assert_eq!(of(VNET_HDR_LEN + 60), Some(60));
    for wrong in [0, 9, VNET_HDR_LEN, VNET_HDR_LEN + 59, VNET_HDR_LEN + 61] {
        assert_eq!(of(wrong), None, "{wrong}");
    }
}

#[test]
fn a_slot_is_read_within_its_bounds_only() {
    let slot = |mac: u32, snaplen: u32, status: u32| {
        let mut bytes = vec![0; SIZE];
        let words = [
            (slot::STATUS, status),
            (slot::LEN, snaplen),
            (slot::SNAPLEN, snaplen),
            (slot::MAC_NET, mac),
            (slot::VLAN, 5 | 0x88a8 << 16),
        ];
        for (at, value) in words {
            bytes[at..at + 4].copy_from_slice(&value.to_ne_bytes());
        }
        let map = mapped(&bytes);
        let mut cursor = Cursor::acquire(&map, 0, SIZE, RingVersion::V2)?;
        let located = cursor.step(&map);
        assert!(cursor.is_empty());
        Some(located.map(|l| (l.start, l.len, l.vlan)))
    };
    assert_eq!(slot(80, 60, STATUS_KERNEL), None);
    assert_eq!(slot(80, 60, STATUS_USER), Some(Ok((70, 70, None))));
    let tag = VlanTag { tpid: 0x88a8, tci: 5 };
    let tagged = STATUS_USER | STATUS_VLAN_VALID | STATUS_VLAN_TPID_VALID;
    if cfg!(target_endian = "little") {
        assert_eq!(slot(80, 60, tagged), Some(Ok((70, 70, Some(tag)))));
    }
    for (mac, snaplen) in [(41, 60), (80, 4017), (80, u32::MAX), (0, 0), (0xffff, 1)] {
        assert_eq!(slot(mac, snaplen, STATUS_USER), Some(Err(Malformed)), "{mac} {snaplen}");
    }
}

/// Ordinary memory in place of a ring.
fn mapped(contents: &[u8]) -> Mapping {
    let map = Mapping::anonymous(contents.len(), shoal_shm::Populate::Later).unwrap();
    map.copy_in(0, contents).unwrap();
    map
}
