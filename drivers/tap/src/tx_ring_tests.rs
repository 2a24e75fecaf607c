use proptest::prelude::*;
use zerocopy::FromBytes as _;

use super::*;
use crate::kernel_tests::{Kernel, ends, pattern};
use crate::ring::{LONGEST, slot_bytes};
use crate::vring::QUIET;

fn started(size: u16) -> (TxRing, Kernel) {
    let (ring, kernel) = ends(size);
    (TxRing::new(ring), kernel)
}

/// Slots that are somewhere: with this end, or in chains with the kernel.
fn slots(tx: &TxRing) -> usize {
    tx.free.len() + tx.heads.iter().map(|n| usize::from(*n)).sum::<usize>()
}

#[test]
fn frames_of_all_lengths_reach_the_kernel_behind_their_header() {
    let vnet = VnetHdr::read_from_bytes(&[1, 4, 66, 0, 0xa8, 5, 34, 0, 16, 0]).unwrap();
    for size in [1, 2, 32, 256] {
        let (mut tx, mut kernel) = started(size);
        let edge = (slot_bytes(size) - HEADER).min(LONGEST - 1);
        for (n, len) in [14, 60, 1514, 2048, edge, edge + 1, 9014, LONGEST].into_iter().enumerate() {
            let frame = pattern(len, n);
            assert_eq!(tx.begin(), 0);
            // Segments as a packet has them, one of them empty.
            let (a, b) = frame.split_at(len / 3);
            tx.send(vnet, [a, &[], b]).unwrap();
            assert!(kernel.take().is_none(), "not shown yet");
            tx.finish();
            let chain = kernel.take().unwrap();
            let got = kernel.bytes(&chain);
            assert_eq!(got[..HEADER], [&[1, 4, 66, 0, 0xa8, 5, 34, 0, 16, 0][..], &[0, 0]].concat());
            assert!(got[HEADER..] == frame, "{len} bytes, ring of {size}");
            kernel.give(chain[0].0.into(), 0);
            kernel.show();
        }
        tx.begin();
        assert_eq!(tx.free.len(), usize::from(size), "all of them came back");
    }
}

#[test]
fn a_kernel_that_gives_nothing_back_is_a_full_queue() {
    let (mut tx, mut kernel) = started(8);
    let frame = [0; 60];
    for _ in 0..8 {
        tx.send(VnetHdr::default(), [&frame[..]]).unwrap();
    }
    tx.finish();
    for _ in 0..1000 {
        assert_eq!(tx.begin(), 0);
        assert_eq!(tx.send(VnetHdr::default(), [&frame[..]]), Err(SendError::QueueFull));
        assert!(!tx.finish());
    }
    let chain = kernel.take().unwrap();
    kernel.give(chain[0].0.into(), 0);
    kernel.show();
    tx.begin();
    // One slot is free: too few for this one, which leaves nothing there.
    assert_eq!(tx.send(VnetHdr::default(), [&[0; 9000][..]]), Err(SendError::QueueFull));
    tx.send(VnetHdr::default(), [&frame[..]]).unwrap();
}

#[test]
fn frames_that_cannot_be_are_refused() {
    let (mut tx, _kernel) = started(32);
    let beyond = vec![0; 32 * slot_bytes(32)];
    assert_eq!(tx.send(VnetHdr::default(), [&beyond[..]]), Err(SendError::TooManySegments));
    assert_eq!(tx.send(VnetHdr::default(), [&[0; 13][..]]), Err(SendError::Invalid));
    assert_eq!(tx.send(VnetHdr::default(), []), Err(SendError::Invalid));
    assert_eq!(tx.free.len(), 32);
}

#[test]
fn the_kernel_is_woken_only_if_it_wants_that() {
    let (mut tx, kernel) = started(8);
    assert_eq!(kernel.ring.avail_flags(), QUIET, "no thread waits for what was sent");
    for wants in [true, false, true] {
        kernel.ring.set_used_flags(if wants { 0 } else { QUIET });
        tx.send(VnetHdr::default(), [&[0; 60][..]]).unwrap();
        assert_eq!(tx.finish(), wants);
        assert!(!tx.finish());
    }
}

#[test]
fn entries_that_make_no_sense_are_counted_and_free_nothing() {
    let (mut tx, mut kernel) = started(32);
    let send = |tx: &mut TxRing, len| {
        tx.send(VnetHdr::default(), [&[0; 6000][..len]]).unwrap();
        tx.finish();
    };
    send(&mut tx, 6000);
    let chain = kernel.take().unwrap();
    assert_eq!(chain.len(), 3);
    let head = u32::from(chain[0].0);
    // The middle of a chain, no descriptor, one that was never given.
    for wrong in [u32::from(chain[1].0), 32, u32::MAX, head + 65_536, 31] {
        kernel.give(wrong, 0);
        kernel.show();
        assert_eq!((tx.begin(), slots(&tx)), (1, 32), "{wrong}");
        send(&mut tx, 60);
    }
    send(&mut tx, 60);
    kernel.give(head, 0);
    kernel.give(head, 0);
    kernel.show();
    assert_eq!((tx.begin(), slots(&tx), tx.is_broken()), (1, 32, false), "twice");
}

#[test]
fn an_index_that_cannot_be_ends_the_ring() {
    for index in [2, 8, 60_000] {
        let (mut tx, kernel) = started(8);
        tx.send(VnetHdr::default(), [&[0; 60][..]]).unwrap();
        tx.finish();
        kernel.ring.set_used_index(index);
        assert_eq!((tx.begin(), tx.is_broken()), (1, true), "{index}");
        assert_eq!(tx.begin(), 0, "it is reported once");
    }
}

proptest! {
    /// Whatever the kernel writes: no panic, each slot in one place, and honest frames arrive as they were.
    #[test]
    fn any_used_ring_is_survived(
        log2 in 0_u8..6,
        steps in proptest::collection::vec((0_u32..70, 14_usize..9000, 0_u8..10), 1..300)
    ) {
        let size = 1_u16 << log2;
        let (mut tx, mut kernel) = started(size);
        let mut with_kernel: Vec<Vec<(u16, u32)>> = Vec::new();
        let mut sent = std::collections::VecDeque::new();
        for (id, len, what) in steps {
            match what {
                0..4 => {
                    let frame = pattern(len, id as usize);
                    if tx.send(VnetHdr::default(), frame.chunks(2048)).is_ok() {
                        sent.push_back(frame);
                    }
                    tx.finish();
                }
                4..7 => while let Some(chain) = kernel.take() {
                    let frame = sent.pop_front().unwrap();
                    prop_assert!(kernel.bytes(&chain)[HEADER..] == frame);
                    with_kernel.push(chain);
                },
                // Out of order.
                7 if !with_kernel.is_empty() => {
                    let chain = with_kernel.swap_remove(id as usize % with_kernel.len());
                    kernel.give(chain[0].0.into(), len as u32);
                    kernel.show();
                }
                8 => {
                    // Not one of those that it has: then it would be right. Looked at before anything else is sent, which
                    // might make it right.
                    if !with_kernel.iter().any(|chain| u32::from(chain[0].0) == id) && sent.is_empty() {
                        kernel.give(id, 0);
                        kernel.show();
                        tx.begin();
                    }
                }
                _ => {
                    tx.begin();
                }
            }
            prop_assert_eq!(slots(&tx), usize::from(size));
            let mut free = tx.free.clone();
            free.sort_unstable();
            free.dedup();
            prop_assert_eq!(free.len(), tx.free.len(), "a slot is free once");
            if tx.is_broken() {
                break;
            }
        }
    }
}
