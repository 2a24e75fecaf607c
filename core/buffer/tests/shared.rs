//! Packets that share their payload.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use proptest::prelude::*;
use shoal_buffer::{
    Buffer, Cache, DATA_SIZE, Flags, Full, Loans, Pages, Pool, PoolConfig, SHARED_HEAD, Shared, SwIfIndex,
    lost,
};

/// Lost tokens are the process's.
static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool(buffers: usize) -> Arc<Pool> {
    Pool::new(PoolConfig { name: "test".into(), buffers, most: buffers, pages: Pages::Small }).unwrap()
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 256) as u8).collect()
}

fn shared(cache: &mut Cache, len: usize) -> Buffer {
    let buffer = cache.alloc_data(&bytes(len)).unwrap();
    cache.share(buffer)
}

fn copy(cache: &mut Cache, of: &mut Buffer) -> Buffer {
    let pkt = cache.packet(of);
    cache.copy(&pkt).unwrap()
}

fn all(cache: &Cache, of: &mut Buffer) -> Vec<u8> {
    cache.packet(of).to_vec()
}

#[test]
fn copies_share_the_payload_and_have_a_front_of_their_own() {
    let _turn = turn();
    let pool = pool(64);
    let mut cache = pool.cache();
    for len in [1024, 1500, 2048, 9000, 65_000] {
        let mut first = shared(&mut cache, len);
        let whole = pool.stats().used;
        assert_eq!(whole, 1 + len.div_ceil(DATA_SIZE), "one more for the front");
        let mut copies: Vec<Buffer> = (0..8).map(|_| copy(&mut cache, &mut first)).collect();
        assert_eq!(pool.stats().used, whole + 8, "one for each copy");
        for (n, buffer) in copies.iter_mut().enumerate() {
            let mut pkt = cache.packet(buffer);
            assert!(pkt.is_shared() && pkt.segment_len() == SHARED_HEAD);
            pkt.push(14).unwrap();
            pkt.data_mut().fill(n as u8);
        }
        assert_eq!(all(&cache, &mut first), bytes(len), "the others' writes are not seen");
        for (n, mut buffer) in copies.into_iter().enumerate() {
            let got = all(&cache, &mut buffer);
            assert_eq!(got[..14 + SHARED_HEAD], vec![n as u8; 14 + SHARED_HEAD]);
            assert_eq!(got[14 + SHARED_HEAD..], bytes(len)[SHARED_HEAD..]);
            cache.free(buffer);
        }
        assert_eq!((pool.stats().used, all(&cache, &mut first)), (whole, bytes(len)));
        cache.free(first);
        assert_eq!(pool.stats().used, 0);
    }
}

#[test]
fn a_packet_that_becomes_shared_is_the_same_for_the_graph() {
    let _turn = turn();
    let pool = pool(8);
    let mut cache = pool.cache();
    let mut buffer = cache.alloc_data(&bytes(1500)).unwrap();
    let mut pkt = cache.packet(&mut buffer);
    *pkt.scratch_line() = [1, 2, 3, 4, 5, 6, 7, 8];
    pkt.pull(14).unwrap();
    let meta = pkt.meta_mut();
    meta.flags = Flags::TRACED.with(Flags::LINK_MULTICAST);
    (meta.rx, meta.tx, meta.adj, meta.trace, meta.error) = (SwIfIndex(3), SwIfIndex(4), 5, 6, 7);
    (meta.l3, meta.arc, meta.feature, meta.flow_hash) = (14, 8, 9, 10);
    let mut buffer = cache.share(buffer);
    let mut pkt = cache.packet(&mut buffer);
    assert_eq!((pkt.is_shared(), pkt.current(), pkt.len()), (true, 14, 1486));
    assert_eq!(*pkt.scratch_line(), [1, 2, 3, 4, 5, 6, 7, 8]);
    let meta = pkt.meta();
    assert_eq!(meta.flags, Flags::TRACED.with(Flags::LINK_MULTICAST));
    assert_eq!((meta.rx, meta.tx, meta.adj, meta.trace, meta.error), (SwIfIndex(3), SwIfIndex(4), 5, 6, 7));
    assert_eq!((meta.l3, meta.arc, meta.feature, meta.flow_hash), (14, 8, 9, 10));
    // The link's header, in front of what the packet is now.
    pkt.rewind_to(0).unwrap();
    assert_eq!(pkt.to_vec(), bytes(1500));
    cache.free(buffer);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn short_packets_and_those_without_a_buffer_for_the_front_are_copied_whole() {
    let _turn = turn();
    let pool = pool(2);
    let mut cache = pool.cache();
    let mut short = shared(&mut cache, 500);
    assert!(!cache.packet(&mut short).is_shared());
    let mut long = shared(&mut cache, 1500);
    assert!(!cache.packet(&mut long).is_shared(), "there was no buffer");
    cache.free(short);
    let mut second = copy(&mut cache, &mut long);
    cache.packet(&mut second).data_mut().fill(0);
    assert_eq!(all(&cache, &mut long), bytes(1500));
    cache.free(second);
    cache.free(long);
}

#[test]
fn headers_that_are_written_on_the_way_out_are_never_shared() {
    let _turn = turn();
    let pool = pool(16);
    let mut cache = pool.cache();
    for (l4, offset, first) in [(300, 16, 318), (20, 16, 256)] {
        let mut buffer = cache.alloc_data(&bytes(1500)).unwrap();
        let meta = cache.packet(&mut buffer);
        let mut pkt = meta;
        let meta = pkt.meta_mut();
        (meta.flags, meta.l4, meta.checksum_offset) = (Flags::L4_CHECKSUM_OFFLOAD, l4, offset);
        let mut buffer = cache.share(buffer);
        let pkt = cache.packet(&mut buffer);
        assert_eq!((pkt.is_shared(), pkt.segment_len()), (true, first));
        cache.free(buffer);
    }
}

#[test]
fn a_shared_segment_takes_no_other_and_gives_no_token_until_it_is_own() {
    let _turn = turn();
    let pool = pool(32);
    let mut cache = pool.cache();
    let mut first = shared(&mut cache, 5000);
    let mut second = copy(&mut cache, &mut first);
    let more = cache.alloc_data(b"more").unwrap();
    let mut pkt = cache.packet(&mut second);
    assert_eq!(pkt.take_rest().unwrap_err(), Shared);
    let more = pkt.append_segment(more).unwrap_err();
    let mut walk = pkt.segments_mut();
    assert_eq!((walk.next_segment().unwrap().len(), walk.next_segment()), (SHARED_HEAD, None));
    cache.make_own(&mut pkt).unwrap();
    assert!(!pkt.is_shared());
    pkt.append_segment(more).unwrap();
    let mut walk = pkt.segments_mut();
    while let Some(segment) = walk.next_segment() {
        segment.fill(1);
    }
    assert_eq!(pkt.to_vec(), vec![1; 5004]);
    assert_eq!(all(&cache, &mut first), bytes(5000));
    // The last one that has it needs no copy.
    let used = pool.stats().used;
    cache.make_own(&mut cache.packet(&mut first)).unwrap();
    assert_eq!(pool.stats().used, used);
    let rest = cache.packet(&mut first).take_rest().unwrap().unwrap();
    cache.free(rest);
    cache.free(first);
    cache.free(second);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn a_packet_that_cannot_be_made_own_is_as_before() {
    let _turn = turn();
    let pool = pool(7);
    let mut cache = pool.cache();
    let mut first = shared(&mut cache, 9000);
    let mut second = copy(&mut cache, &mut first);
    let mut pkt = cache.packet(&mut second);
    assert_eq!(cache.make_own(&mut pkt), Err(Full));
    assert_eq!((pkt.to_vec(), pkt.is_shared()), (bytes(9000), true));
    cache.free(first);
    assert_eq!(all(&cache, &mut second), bytes(9000));
    cache.free(second);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn what_is_cut_off_one_is_still_there_for_the_others() {
    let _turn = turn();
    let pool = pool(32);
    let mut cache = pool.cache();
    let mut first = shared(&mut cache, 5000);
    let mut second = copy(&mut cache, &mut first);
    cache.packet(&mut second).truncate(1000).unwrap();
    let mut third = copy(&mut cache, &mut second);
    for buffer in [&mut second, &mut third] {
        assert_eq!(all(&cache, buffer), bytes(1000));
    }
    assert_eq!(all(&cache, &mut first), bytes(5000));
    cache.free(first);
    cache.free(third);
    cache.make_own(&mut cache.packet(&mut second)).unwrap();
    let mut pkt = cache.packet(&mut second);
    assert_eq!(pkt.to_vec(), bytes(1000), "cut for good");
    let mut rest = pkt.take_rest().unwrap().unwrap();
    assert_eq!(all(&cache, &mut rest), bytes(1000)[SHARED_HEAD..]);
    cache.free(rest);
    cache.free(second);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn no_shared_segment_is_lent() {
    let _turn = turn();
    let pool = pool(32);
    let mut cache = pool.cache();
    let mut loans = Loans::new(&pool, pool.part().unwrap());
    let whole = cache.alloc_data(&bytes(1500)).unwrap();
    assert!(loans.covers(&whole));
    let mut buffer = cache.share(whole);
    assert_eq!(loans.covers_all(&cache.packet(&mut buffer)), None);
    let mut buffer = loans.lend(buffer).unwrap_err();
    cache.make_own(&mut cache.packet(&mut buffer)).unwrap();
    assert_eq!(loans.covers_all(&cache.packet(&mut buffer)), Some(2));
    cache.free(buffer);
    assert!(loans.is_empty());
}

#[test]
fn lost_tokens_give_up_their_shares_too() {
    let _turn = turn();
    let pool = pool(32);
    let mut cache = pool.cache();
    let before = lost::count();
    let mut first = shared(&mut cache, 5000);
    drop(copy(&mut cache, &mut first));
    assert_eq!((lost::count(), pool.reclaim_lost()), (before + 1, 1));
    assert_eq!(all(&cache, &mut first), bytes(5000));
    let second = copy(&mut cache, &mut first);
    drop(first);
    assert_eq!(pool.reclaim_lost(), 1);
    drop(second);
    assert_eq!((pool.reclaim_lost(), pool.stats().used), (4, 0));
}

/// Four threads get copies of the same packets, check, change and free them in any order: no byte of another is ever seen,
/// and every buffer comes back.
#[test]
fn threads_that_share_packets_neither_see_each_other_nor_lose_buffers() {
    const THREADS: usize = 4;
    const PACKETS: usize = 4000;
    let _turn = turn();
    let pool = pool(4096);
    let readers: Vec<_> = (0..THREADS)
        .map(|thread| {
            let (send, receive) = std::sync::mpsc::sync_channel::<Buffer>(64);
            let pool = Arc::clone(&pool);
            let reader = std::thread::spawn(move || {
                let mut cache = pool.cache();
                let mut held: Vec<Buffer> = Vec::new();
                for (n, mut buffer) in receive.into_iter().enumerate() {
                    let mut pkt = cache.packet(&mut buffer);
                    let mark = pkt.data()[0];
                    assert!(pkt.segments().flatten().all(|byte| *byte == mark));
                    pkt.data_mut().fill(!mark);
                    if n % 7 == thread && cache.make_own(&mut pkt).is_ok() {
                        let mut walk = pkt.segments_mut();
                        while let Some(segment) = walk.next_segment() {
                            segment.fill(!mark);
                        }
                    }
                    held.push(buffer);
                    if held.len() > n % 13 {
                        held.drain(..).for_each(|buffer| cache.free(buffer));
                    }
                }
                for buffer in held {
                    cache.free(buffer);
                }
            });
            (send, reader)
        })
        .collect();
    let mut cache = pool.cache();
    for n in 0..PACKETS {
        let mut first = loop {
            match cache.alloc_data(&vec![n as u8; [700, 1500, 5000][n % 3]]) {
                Ok(buffer) => break cache.share(buffer),
                Err(Full) => std::thread::yield_now(),
            }
        };
        for (send, _) in &readers {
            let pkt = cache.packet(&mut first);
            if let Ok(second) = cache.copy(&pkt) {
                send.send(second).unwrap();
            }
        }
        cache.free(first);
    }
    for (send, reader) in readers {
        drop(send);
        reader.join().unwrap();
    }
    assert_eq!(pool.stats().used, 0);
}

/// What is done to one of several packets that may share segments.
#[derive(Clone, Debug)]
enum Step {
    Copy,
    Share,
    Write(u8),
    Pull(usize),
    Push(usize),
    Truncate(usize),
    Append(usize),
    TakeRest,
    MakeOwn,
    Free,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        3 => Just(Step::Copy),
        3 => Just(Step::Share),
        2 => any::<u8>().prop_map(Step::Write),
        1 => (0..300usize).prop_map(Step::Pull),
        1 => (0..100usize).prop_map(Step::Push),
        1 => (0..6000usize).prop_map(Step::Truncate),
        1 => (0..2500usize).prop_map(Step::Append),
        1 => Just(Step::TakeRest),
        1 => Just(Step::MakeOwn),
        2 => Just(Step::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// Packets that share segments are strings of bytes that have nothing to do with each other.
    #[test]
    fn packets_that_share_follow_a_model_of_byte_strings(
        start in 0..6000usize,
        steps in prop::collection::vec((any::<prop::sample::Index>(), step()), 1..60),
    ) {
        let _turn = turn();
        let pool = pool(256);
        let mut cache = pool.cache();
        let mut packets = vec![(cache.alloc_data(&bytes(start)).unwrap(), bytes(start))];
        for (which, step) in steps {
            if packets.is_empty() {
                packets.push((cache.alloc_data(&bytes(start)).unwrap(), bytes(start)));
            }
            let at = which.index(packets.len());
            let (mut buffer, mut model) = packets.swap_remove(at);
            let mut pkt = cache.packet(&mut buffer);
            match step {
                Step::Copy => {
                    if let Ok(second) = cache.copy(&pkt) {
                        packets.push((second, model.clone()));
                    }
                }
                Step::Share => buffer = cache.share(buffer),
                Step::Write(byte) => {
                    let mut own = 0;
                    let mut walk = pkt.segments_mut();
                    while let Some(segment) = walk.next_segment() {
                        segment.fill(byte);
                        own += segment.len();
                    }
                    prop_assert!(own >= model.len().min(pkt.segment_len()));
                    model[..own].fill(byte);
                }
                Step::Pull(n) => {
                    if pkt.pull(n).is_some() {
                        model.drain(..n);
                    }
                }
                Step::Push(n) => {
                    if pkt.push(n).is_some() {
                        pkt.data_mut()[..n].fill(0xaa);
                        model.splice(..0, vec![0xaa; n]);
                    }
                }
                Step::Truncate(n) => {
                    prop_assert_eq!(pkt.truncate(n).is_some(), n <= model.len());
                    model.truncate(n);
                }
                Step::Append(n) => {
                    if let Ok(more) = cache.alloc_data(&bytes(n)) {
                        match pkt.append_segment(more) {
                            Ok(()) => model.extend(bytes(n)),
                            Err(more) => {
                                prop_assert!(pkt.is_shared());
                                cache.free(more);
                            }
                        }
                    }
                }
                Step::TakeRest => match pkt.take_rest() {
                    Ok(rest) => {
                        let rest_model = model.split_off(pkt.segment_len());
                        match rest {
                            Some(rest) => packets.push((rest, rest_model)),
                            None => prop_assert!(rest_model.is_empty()),
                        }
                    }
                    Err(Shared) => prop_assert!(pkt.is_shared()),
                },
                Step::MakeOwn => {
                    if cache.make_own(&mut pkt).is_ok() {
                        prop_assert!(!pkt.is_shared());
                    }
                }
                Step::Free => {
                    cache.free(buffer);
                    continue;
                }
            }
            packets.push((buffer, model));
            for (buffer, model) in &mut packets {
                let pkt = cache.packet(buffer);
                prop_assert_eq!(pkt.len(), model.len());
                prop_assert_eq!(&pkt.to_vec(), model);
            }
        }
        for (buffer, _) in packets {
            cache.free(buffer);
        }
        prop_assert_eq!(pool.stats().used, 0);
    }
}
