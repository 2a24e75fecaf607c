//! Places that features claim in packets: each its own, and an error that names both where there is none.

#![allow(clippy::unwrap_used)] // helpers of tests

use shoal_buffer::slot::{SLOTS, SlotError, Slots};
use shoal_buffer::{Pages, Pool, PoolConfig};
use zerocopy::{FromBytes, Immutable, IntoBytes, KnownLayout};

#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Ports {
    src: u16,
    dst: u16,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, FromBytes, IntoBytes, KnownLayout, Immutable)]
#[repr(C)]
struct Session(u64);

#[test]
fn each_has_its_own_place_beside_the_scratch() {
    let mut slots = Slots::default();
    let ports = slots.claim::<Ports>("nat").unwrap();
    let session = slots.claim::<Session>("acl").unwrap();
    let config = PoolConfig { buffers: 1, most: 1, pages: Pages::Small, ..PoolConfig::default() };
    let pool = Pool::new(config).unwrap();
    let mut cache = pool.cache();
    let mut buffer = cache.alloc_data(b"bytes").unwrap();
    let mut pkt = cache.packet(&mut buffer);
    *ports.get_mut(&mut pkt) = Ports { src: 1, dst: 2 };
    *session.get_mut(&mut pkt) = Session(u64::MAX);
    *pkt.scratch::<[u64; 4]>() = [7; 4];
    let read = slots.of::<Ports>().unwrap();
    assert_eq!(*read.get(&pkt), Ports { src: 1, dst: 2 });
    assert_eq!(*session.get(&pkt), Session(u64::MAX));
    assert_eq!(*pkt.scratch::<[u64; 4]>(), [7; 4]);
    assert_eq!(pkt.data(), b"bytes");
    cache.free(buffer);
}

#[test]
fn conflicts_and_full_lines_name_both() {
    let mut slots = Slots::default();
    assert_eq!(slots.of::<Ports>().unwrap_err().to_string(), "no feature keeps slots::Ports in packets");
    slots.claim::<Ports>("nat").unwrap();
    let taken = slots.claim::<Ports>("acl").unwrap_err();
    assert!(matches!(taken, SlotError::Taken { by: "acl", before: "nat", .. }));
    assert_eq!(taken.to_string(), "acl claims a place in packets for slots::Ports, which nat has claimed");
    slots.claim::<Session>("lb").unwrap();
    let full = slots.claim::<[u8; SLOTS]>("greedy").unwrap_err();
    assert_eq!(
        full.to_string(),
        "greedy claims 32 bytes in packets for [u8; 32]: 16 are left beside those of nat, lb"
    );
    // What is left can be had to the last byte.
    slots.claim::<[u8; 16]>("last").unwrap();
    assert!(slots.claim::<u8>("late").is_err());
}
