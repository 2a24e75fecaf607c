use std::collections::VecDeque;

use proptest::prelude::*;
use shoal_link::Refused;

use super::*;
use crate::kernel_tests::{Kernel, ends, pattern, pool};
use crate::ring::slot_bytes;
use crate::vring::QUIET;

const PLAIN: [u8; 10] = [0; 10];

fn started(size: u16) -> (RxRing, Kernel) {
    let (ring, kernel) = ends(size);
    let mut rx = RxRing::new(ring, EventFd::create().unwrap());
    rx.start(None);
    (rx, kernel)
}

/// The frame in hand.
fn bytes(rx: &RxRing, len: usize) -> Vec<u8> {
    let mut bytes = vec![0; len];
    rx.read(0, &mut bytes);
    bytes
}

fn is_readable(event: &EventFd) -> bool {
    use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
    use std::os::fd::AsFd as _;
    let mut fds = [PollFd::new(event.as_fd(), PollFlags::POLLIN)];
    poll(&mut fds, PollTimeout::ZERO).unwrap() > 0
}

#[test]
fn frames_of_all_lengths_come_out_as_they_went_in() {
    let pool = pool(256);
    let mut cache = pool.cache();
    for size in [1, 2, 32, 256] {
        let (mut rx, mut kernel) = started(size);
        let edge = (slot_bytes(size) - HEADER).min(LONGEST - 1);
        for (n, len) in [1, 60, 2048, 2049, edge, edge + 1, 9014, LONGEST].into_iter().enumerate() {
            let frame = pattern(len, n);
            kernel.put(PLAIN, &frame).unwrap();
            let (vnet, got) = rx.next_frame().unwrap().unwrap();
            assert_eq!((got, bytes(&rx, got)), (len, frame.clone()), "ring of {size}");
            let mut buffer = rx.packet(&mut cache, SwIfIndex(7), (vnet, got)).unwrap();
            let pkt = cache.packet(&mut buffer);
            assert_eq!((pkt.meta().rx, pkt.to_vec()), (SwIfIndex(7), frame));
            cache.free(buffer);
            assert!(rx.next_frame().is_none());
            rx.finish();
        }
    }
    drop(cache);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn what_a_frame_owes_is_checked_and_kept() {
    let pool = pool(64);
    let mut cache = pool.cache();
    let (mut rx, mut kernel) = started(64);
    // A checksum left open at 34 + 16; the same beyond the frame.
    for (start, sound) in [(34, true), (200, false)] {
        let vnet = [1, 0, 0, 0, 0, 0, start, 0, 16, 0];
        kernel.put(vnet, &[0; 100]).unwrap();
        let frame = rx.next_frame().unwrap().unwrap();
        let made = rx.packet(&mut cache, SwIfIndex(1), frame);
        assert_eq!(made.as_ref().err(), (!sound).then_some(&Refused::BadOffload));
        if let Ok(mut buffer) = made {
            let pkt = cache.packet(&mut buffer);
            assert_eq!((pkt.meta().l4, pkt.meta().checksum_offset), (34, 16));
            cache.free(buffer);
        }
    }
    drop(cache);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn a_pool_without_buffers_loses_the_frame_and_nothing_else() {
    let pool = pool(8);
    let mut cache = pool.cache();
    let (mut rx, mut kernel) = started(64);
    for _ in 0..100 {
        kernel.put(PLAIN, &pattern(60_000, 1)).unwrap();
        let frame = rx.next_frame().unwrap().unwrap();
        assert_eq!(rx.packet(&mut cache, SwIfIndex(1), frame).unwrap_err(), Refused::NoBuffer);
        rx.finish();
    }
    drop(cache);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn the_kernel_is_woken_only_if_it_wants_that_and_this_end_likewise() {
    let (mut rx, mut kernel) = started(4);
    assert!(is_readable(rx.ring.kick()), "slots were given to a kernel that sleeps");
    rx.ring.kick().drain();
    assert_eq!(kernel.ring.avail_flags(), QUIET, "a ring that is polled is quiet");
    for wants in [false, true] {
        kernel.ring.set_used_flags(if wants { 0 } else { QUIET });
        kernel.put(PLAIN, &[1; 60]).unwrap();
        rx.next_frame().unwrap().unwrap();
        assert_eq!((rx.finish(), is_readable(rx.ring.kick())), (wants, wants));
        assert!(!rx.finish(), "nothing new was given");
    }
    assert!(!rx.arm() && kernel.ring.avail_flags() == 0);
    kernel.put(PLAIN, &[1; 60]).unwrap();
    assert!(rx.arm(), "a frame came meanwhile");
    nix::unistd::write(&rx.call, &1_u64.to_ne_bytes()).unwrap();
    assert!(rx.disarm() && !rx.disarm());
    assert!(kernel.ring.avail_flags() == QUIET && !is_readable(&rx.call));
}

#[test]
fn slots_come_back_in_any_order() {
    let (mut rx, mut kernel) = started(8);
    for round in 0..1000_u16 {
        let mut slots: VecDeque<_> = std::iter::from_fn(|| kernel.take()).map(|chain| chain[0].0).collect();
        assert_eq!(slots.len(), 8);
        slots.rotate_left(usize::from(round % 8));
        slots.swap(0, usize::from(round % 5));
        for slot in &slots {
            let frame = [&PLAIN[..], &[1, 0], &slot.to_le_bytes()].concat();
            kernel.ring.copy_in(*slot, 0, &frame).unwrap();
            kernel.give((*slot).into(), 14);
        }
        kernel.show();
        for slot in slots {
            assert_eq!(rx.next_frame().unwrap().unwrap().1, 2);
            assert_eq!(bytes(&rx, 2), slot.to_le_bytes());
        }
        assert!(rx.next_frame().is_none());
        rx.finish();
    }
}

#[test]
fn entries_that_make_no_sense_are_counted_one_by_one() {
    // Of a ring of 8: the number of a slot, its length, the header's number of slots.
    let wrong: [(u32, u32, u16); 8] = [
        (8, 72, 1),
        (u32::MAX, 72, 1),
        (65_536, 72, 1),
        (0, u32::MAX, 1),
        (0, 11, 1),
        (0, 12, 1),
        (0, 72, 0),
        (0, 72, 2),
    ];
    for (id, len, slots) in wrong {
        let (mut rx, mut kernel) = started(8);
        let first = kernel.take().unwrap()[0].0;
        kernel.ring.copy_in(first, 0, &[&PLAIN[..], &slots.to_le_bytes()].concat()).unwrap();
        kernel.give(id, len);
        kernel.show();
        assert_eq!(rx.next_frame(), Some(Err(Malformed)), "{id} {len} {slots}");
        assert_eq!(rx.next_frame(), None);
        rx.finish();
        // The ring works on.
        kernel.put(PLAIN, &[7; 60]).unwrap();
        assert_eq!(rx.next_frame().unwrap().unwrap().1, 60);
    }
}

#[test]
fn a_slot_that_comes_back_twice_is_given_once() {
    let (mut rx, mut kernel) = started(4);
    let slot = kernel.take().unwrap()[0].0;
    kernel.take();
    kernel.ring.copy_in(slot, 0, &[&PLAIN[..], &[1, 0, 5]].concat()).unwrap();
    kernel.give(slot.into(), 13);
    kernel.give(slot.into(), 13);
    kernel.show();
    assert_eq!(rx.next_frame().unwrap().unwrap().1, 1);
    rx.parts.clear();
    assert_eq!(rx.next_frame(), Some(Err(Malformed)), "it is not the kernel's any more");
    assert!(rx.parts.is_empty());
}

#[test]
fn the_slots_behind_one_that_makes_no_sense_are_no_frame() {
    let (mut rx, mut kernel) = started(8);
    let slots: Vec<_> = (0..3).map(|_| kernel.take().unwrap()[0].0).collect();
    kernel.ring.copy_in(slots[0], 0, &[&PLAIN[..], &[3, 0]].concat()).unwrap();
    // What is in the last one looks like a frame of its own.
    kernel.ring.copy_in(slots[2], 0, &[&PLAIN[..], &[1, 0]].concat()).unwrap();
    kernel.give(slots[0].into(), 2112);
    kernel.give(99, 2112);
    kernel.give(slots[2].into(), 100);
    kernel.show();
    assert_eq!(rx.next_frame(), Some(Err(Malformed)));
    assert_eq!(rx.next_frame(), None);
}

#[test]
fn an_index_that_cannot_be_ends_the_ring() {
    for ahead in [1, 9, 60_000] {
        let (mut rx, mut kernel) = started(8);
        kernel.put(PLAIN, &[1; 60]).unwrap();
        rx.next_frame().unwrap().unwrap();
        rx.finish();
        kernel.ring.set_used_index(kernel.used.wrapping_add(8).wrapping_add(ahead));
        assert_eq!(rx.next_frame(), Some(Err(Malformed)), "{ahead}");
        assert!(rx.is_broken() && !rx.arm());
        assert_eq!(rx.next_frame(), None, "it is reported once");
    }
}

proptest! {
    /// Whatever the kernel writes: no panic, no slot twice in its hands, no buffer kept.
    #[test]
    fn any_used_ring_is_survived(
        log2 in 0_u8..6,
        steps in proptest::collection::vec(
            (0_u32..70, prop_oneof![0_u32..3000, any::<u32>()], 0_u16..5, any::<[u8; 10]>(), 0_u8..12), 1..200)
    ) {
        let pool = pool(64);
        let mut cache = pool.cache();
        let (mut rx, mut kernel) = started(1 << log2);
        for (id, len, slots, vnet, what) in steps {
            match what {
                // Honest frames in between.
                0..5 => drop(kernel.put(vnet, &pattern(len as usize % 9000, 3))),
                5..9 => {
                    let id = kernel.take().map_or(id, |chain| if what < 8 { chain[0].0.into() } else { id });
                    let _ = kernel.ring.copy_in(id as u16, 0, &[&vnet[..], &slots.to_le_bytes()].concat());
                    kernel.give(id, len);
                }
                9 => kernel.show(),
                10 => drop(kernel.take()),
                _ => {
                    let mut frames = 0;
                    while let Some(frame) = rx.next_frame() {
                        if let Ok((vnet, len)) = frame {
                            prop_assert!((1..=LONGEST).contains(&len));
                            if let Ok(mut buffer) = rx.packet(&mut cache, SwIfIndex(1), (vnet, len)) {
                                prop_assert_eq!(cache.packet(&mut buffer).len(), len);
                                cache.free(buffer);
                            }
                        }
                        frames += 1;
                        prop_assert!(frames <= 70_000, "it comes to an end");
                    }
                    rx.finish();
                    let out = rx.out.iter().filter(|out| **out).count();
                    prop_assert!(rx.parts.is_empty() && out <= 1 << log2);
                }
            }
        }
        drop(cache);
        prop_assert_eq!(pool.stats().used, 0);
    }
}
