//! Pools, caches, tokens, frames, packets and chains, as their users see them.
//!
//! `lost::count` is the process's, so tests that lose tokens on purpose take turns with those that count.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use std::sync::{Mutex, MutexGuard, PoisonError};

use proptest::prelude::*;
use shoal_buffer::{
    Buffer, Cache, DATA_SIZE, FRAME_SIZE, FibIndex, Flags, Frame, HEADROOM, Pages, Pool, PoolConfig,
    SwIfIndex, lost,
};

static TURN: Mutex<()> = Mutex::new(());

fn turn() -> MutexGuard<'static, ()> {
    TURN.lock().unwrap_or_else(PoisonError::into_inner)
}

fn pool(buffers: usize, most: usize) -> std::sync::Arc<Pool> {
    Pool::new(PoolConfig { name: "test".into(), buffers, most, pages: Pages::Small }).unwrap()
}

fn take(cache: &mut Cache, n: usize) -> Vec<Buffer> {
    (0..n).map_while(|_| cache.alloc_one()).collect()
}

fn give(cache: &mut Cache, buffers: Vec<Buffer>) {
    for buffer in buffers {
        cache.free(buffer);
    }
}

fn bytes(n: usize) -> Vec<u8> {
    (0..n).map(|i| (i * 7 + i / 256) as u8).collect()
}

#[test]
fn a_token_that_is_dropped_is_counted_and_its_whole_chain_comes_back() {
    let _turn = turn();
    let pool = pool(64, 64);
    let mut cache = pool.cache();
    let before = lost::count();
    drop(cache.alloc_data(&bytes(3 * DATA_SIZE)).unwrap());
    assert_eq!(lost::count(), before + 1);
    assert_eq!(pool.stats().used, 3);
    assert_eq!(pool.reclaim_lost(), 3);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn tokens_left_in_a_frame_a_split_or_a_drain_are_counted() {
    let _turn = turn();
    let pool = pool(64, 64);
    let mut cache = pool.cache();
    let mut filled = |n| {
        let mut frame = Frame::new();
        assert_eq!(cache.alloc(&mut frame, n), n);
        frame
    };
    let before = lost::count();
    drop(filled(3));
    assert_eq!(lost::count(), before + 3);
    let (mut frame, mut to) = (filled(5), Frame::new());
    let mut split = frame.split();
    assert_eq!((split.move_to(&mut to, 2), split.left()), (2, 3));
    drop(split);
    assert_eq!(lost::count(), before + 6);
    let mut frame = filled(4);
    let mut drain = frame.drain();
    let first = drain.next().unwrap();
    drop(drain);
    assert_eq!(lost::count(), before + 9);
    cache.free(first);
    cache.free_frame(&mut to);
    assert_eq!(pool.reclaim_lost(), 9);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn an_exhausted_pool_says_so_and_recovers() {
    let pool = pool(10, 10);
    let mut cache = pool.cache();
    let all = take(&mut cache, 11);
    assert_eq!(all.len(), 10);
    assert!(cache.alloc_one().is_none());
    let mut frame = Frame::new();
    assert_eq!(cache.alloc(&mut frame, 5), 0);
    assert!(cache.alloc_data(b"x").is_err());
    let mut left = all;
    cache.free(left.pop().unwrap());
    cache.free(left.pop().unwrap());
    assert_eq!(cache.alloc(&mut frame, 5), 2, "what there is");
    cache.free_frame(&mut frame);
    // A chain that does not fit gives back what it took.
    assert!(cache.alloc_data(&bytes(2 * DATA_SIZE + 1)).is_err());
    assert_eq!(pool.stats().used, 8);
    give(&mut cache, left);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn a_pool_grows_up_to_its_limit() {
    let pool = pool(100, 250);
    let mut cache = pool.cache();
    let mut all = take(&mut cache, 1000);
    assert_eq!(all.len(), 100);
    assert!(pool.wants_to_grow());
    assert_eq!((pool.grow(100).unwrap(), pool.grow(100).unwrap(), pool.grow(100).unwrap()), (100, 50, 0));
    all.extend(take(&mut cache, 1000));
    assert_eq!((all.len(), pool.stats().total), (250, 250));
    assert!(!pool.wants_to_grow(), "it cannot");
    let mut numbers: Vec<u32> = all.iter().map(Buffer::number).collect();
    numbers.sort_unstable();
    numbers.dedup();
    assert_eq!(numbers.len(), 250, "each index is in one place");
    give(&mut cache, all);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn a_cache_keeps_some_buffers_and_gives_the_rest_to_others() {
    let pool = pool(4096, 4096);
    let (mut a, mut b) = (pool.cache(), pool.cache());
    let all = take(&mut a, 4096);
    assert_eq!(all.len(), 4096);
    give(&mut b, all);
    let stats = pool.stats();
    assert_eq!(stats.used, 0);
    assert!(stats.cached <= 1024 && stats.available >= 3072, "{stats:?}");
    let others = take(&mut a, 3000);
    assert_eq!(others.len(), 3000, "what one thread freed another may use");
    give(&mut a, others);
}

#[test]
fn a_cache_that_goes_leaves_its_buffers_to_the_pool() {
    let pool = pool(300, 300);
    let mut cache = pool.cache();
    let one = take(&mut cache, 1);
    give(&mut cache, one);
    assert!(pool.stats().cached > 0);
    drop(cache);
    assert_eq!((pool.stats().cached, pool.stats().available, pool.stats().used), (0, 300, 0));
}

#[test]
fn buffers_may_be_freed_by_another_thread_than_took_them() {
    let pool = pool(2000, 2000);
    let (send, receive) = std::sync::mpsc::sync_channel::<Buffer>(64);
    let other = {
        let pool = std::sync::Arc::clone(&pool);
        std::thread::spawn(move || {
            let mut cache = pool.cache();
            for buffer in receive {
                cache.free(buffer);
            }
        })
    };
    let mut cache = pool.cache();
    let mut sent = 0;
    while sent < 20_000 {
        match cache.alloc_one() {
            Some(buffer) => {
                send.send(buffer).unwrap();
                sent += 1;
            }
            None => std::thread::yield_now(),
        }
    }
    drop(send);
    other.join().unwrap();
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn headroom_is_128_bytes_and_not_one_more() {
    let pool = pool(4, 4);
    let mut cache = pool.cache();
    let mut buffer = cache.alloc_data(b"data").unwrap();
    let mut pkt = cache.packet(&mut buffer);
    assert_eq!(pkt.headroom(), HEADROOM);
    assert!(pkt.push(HEADROOM + 1).is_none());
    pkt.push(HEADROOM).unwrap();
    assert_eq!((pkt.headroom(), pkt.len()), (0, HEADROOM + 4));
    assert!(pkt.push(1).is_none());
    pkt.data_mut().fill(9);
    let front = pkt.current();
    pkt.pull(HEADROOM + 4).unwrap();
    assert!(pkt.is_empty() && pkt.pull(1).is_none());
    pkt.rewind_to(front).unwrap();
    assert_eq!(pkt.to_vec(), vec![9; HEADROOM + 4]);
    assert!(pkt.rewind_to(front - 1).is_none() && pkt.rewind_to(i16::MIN).is_none());
    assert!(pkt.rewind_to(i16::MAX).is_none());
    cache.free(buffer);
}

#[test]
fn tailroom_ends_where_the_data_area_does() {
    let pool = pool(4, 4);
    let mut cache = pool.cache();
    let mut buffer = cache.alloc_one().unwrap();
    let mut pkt = cache.packet(&mut buffer);
    assert_eq!(pkt.tailroom(), DATA_SIZE);
    assert!(pkt.put(DATA_SIZE + 1).is_none());
    pkt.put(DATA_SIZE).unwrap().fill(1);
    assert!(pkt.put(1).is_none() && pkt.set_data(&[0; DATA_SIZE + 1]).is_none());
    assert_eq!(pkt.len(), DATA_SIZE);
    cache.free(buffer);
}

#[test]
fn a_table_is_chosen_kept_by_copies_and_forgotten_when_received_again() {
    let pool = pool(2, 2);
    let mut cache = pool.cache();
    let mut buffer = cache.alloc_data(b"x").unwrap();
    let mut pkt = cache.packet(&mut buffer);
    assert_eq!(pkt.meta().fib(), None);
    let last = FibIndex(FibIndex::MOST as u32 - 1);
    for fib in [FibIndex::DEFAULT, FibIndex(7), last] {
        pkt.meta_mut().set_fib(Some(fib));
        assert_eq!(pkt.meta().fib(), Some(fib));
    }
    let mut other = cache.copy(&pkt).unwrap();
    assert_eq!(cache.packet(&mut other).meta().fib(), Some(last));
    for none in [FibIndex(FibIndex::MOST as u32), FibIndex(u32::MAX)] {
        pkt.meta_mut().set_fib(Some(none));
        assert_eq!(pkt.meta().fib(), None, "there is no such table");
    }
    let mut copy = cache.packet(&mut other);
    copy.meta_mut().tx = SwIfIndex(5);
    copy.meta_mut().received_by(SwIfIndex(3));
    let meta = copy.meta();
    assert_eq!((meta.rx, meta.tx, meta.fib()), (SwIfIndex(3), SwIfIndex::NONE, None));
    cache.free(buffer);
    cache.free(other);
}

#[test]
fn fresh_buffers_remember_nothing_of_the_packet_before() {
    let pool = pool(1, 1);
    let mut cache = pool.cache();
    let mut buffer = cache.alloc_data(b"secret").unwrap();
    let mut pkt = cache.packet(&mut buffer);
    let meta = pkt.meta_mut();
    (meta.flags, meta.error, meta.adj, meta.gso_size) = (shoal_buffer::Flags(!0), 7, 8, 9);
    cache.free(buffer);
    let mut buffer = cache.alloc_one().unwrap();
    let pkt = cache.packet(&mut buffer);
    let meta = pkt.meta();
    assert!(pkt.is_empty() && !pkt.is_chained());
    assert_eq!((meta.flags.0, meta.error, meta.adj, meta.gso_size), (0, 0, 0, 0));
    cache.free(buffer);
}

#[test]
fn a_frame_takes_256_and_hands_the_next_one_back() {
    let pool = pool(300, 300);
    let mut cache = pool.cache();
    let mut frame = Frame::new();
    assert_eq!(cache.alloc(&mut frame, 1000), FRAME_SIZE);
    let one = cache.alloc_one().unwrap();
    let number = one.number();
    let back = frame.push(one).unwrap_err();
    assert_eq!(back.number(), number);
    cache.free(back);
    cache.free_frame(&mut frame);
    assert!(frame.is_empty() && frame.pop().is_none());
    assert_eq!(pool.stats().used, 0);
}

/// Numbers of a frame's packets.
fn numbers(frame: &mut Frame, cache: &Cache) -> Vec<u32> {
    (0..frame.len()).map(|i| frame.packet(cache.memory(), i).unwrap().number()).collect()
}

#[test]
fn split_and_append_keep_the_order() {
    let pool = pool(600, 600);
    let mut cache = pool.cache();
    let mut frame = Frame::new();
    cache.alloc(&mut frame, 200);
    let all = numbers(&mut frame, &cache);
    let (mut a, mut b) = (Frame::new(), Frame::new());
    let mut split = frame.split();
    assert_eq!(split.move_to(&mut a, 50), 50);
    assert_eq!(split.move_to(&mut b, 100), 100);
    assert_eq!(split.move_to(&mut a, 999), 50, "no more than are left");
    drop(split);
    assert!(frame.is_empty());
    let wanted: Vec<u32> = all[..50].iter().chain(&all[150..]).copied().collect();
    assert_eq!(numbers(&mut a, &cache), wanted);
    assert_eq!(numbers(&mut b, &cache), all[50..150]);
    cache.alloc(&mut a, 100);
    assert_eq!(a.append(&mut b), 56, "as far as there is room");
    assert_eq!(numbers(&mut b, &cache), all[106..150], "the rest keep their order");
    cache.free_frame(&mut a);
    cache.free_frame(&mut b);
    assert_eq!(pool.stats().used, 0);
}

/// What can be done to a packet, on the model and on the real one.
#[derive(Clone, Debug)]
enum Step {
    Pull(usize),
    Push(usize),
    Truncate(usize),
    Put(usize),
    Append(usize),
    TakeRest,
}

fn step() -> impl Strategy<Value = Step> {
    prop_oneof![
        (0..300usize).prop_map(Step::Pull),
        (0..200usize).prop_map(Step::Push),
        (0..5000usize).prop_map(Step::Truncate),
        (0..400usize).prop_map(Step::Put),
        (0..2500usize).prop_map(Step::Append),
        Just(Step::TakeRest),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 200, failure_persistence: None, ..ProptestConfig::default() })]

    /// A packet behaves like a list of byte strings.
    #[test]
    fn packets_follow_a_model_of_byte_strings(start in 0..5000usize, steps in prop::collection::vec(step(), 1..40)) {
        let pool = pool(512, 512);
        let mut cache = pool.cache();
        let mut buffer = cache.alloc_data(&bytes(start)).unwrap();
        let mut model: Vec<Vec<u8>> = bytes(start).chunks(DATA_SIZE).map(<[u8]>::to_vec).collect();
        if model.is_empty() {
            model.push(Vec::new());
        }
        for step in steps {
            let mut pkt = cache.packet(&mut buffer);
            match step {
                Step::Pull(n) => {
                    let fits = n <= model[0].len();
                    prop_assert_eq!(pkt.pull(n).is_some(), fits);
                    if fits {
                        model[0].drain(..n);
                    }
                }
                Step::Push(n) => {
                    let fits = n <= pkt.headroom();
                    prop_assert_eq!(pkt.push(n).is_some(), fits);
                    if fits {
                        pkt.data_mut()[..n].fill(0xaa);
                        model[0].splice(..0, vec![0xaa; n]);
                    }
                }
                Step::Truncate(n) => {
                    let total: usize = model.iter().map(Vec::len).sum();
                    prop_assert_eq!(pkt.truncate(n).is_some(), n <= total);
                    let mut left = if n <= total { n } else { total };
                    for part in &mut model {
                        part.truncate(left.min(part.len()));
                        left -= part.len();
                    }
                }
                Step::Put(n) => {
                    let fits = n <= pkt.tailroom() && !pkt.is_chained();
                    match pkt.put(n) {
                        Some(more) => more.fill(0xbb),
                        None => prop_assert!(!fits),
                    }
                    if fits {
                        let grown = model[0].len() + n;
                        model[0].resize(grown, 0xbb);
                    }
                }
                Step::Append(n) => {
                    let Ok(more) = cache.alloc_data(&bytes(n)) else { continue };
                    cache.packet(&mut buffer).append_segment(more).unwrap();
                    let parts = bytes(n);
                    model.extend(if n == 0 { vec![Vec::new()] } else { parts.chunks(DATA_SIZE).map(<[u8]>::to_vec).collect() });
                }
                Step::TakeRest => {
                    let rest = pkt.take_rest().unwrap();
                    prop_assert_eq!(rest.is_some(), model.len() > 1);
                    if let Some(mut rest) = rest {
                        let whole: Vec<u8> = model[1..].concat();
                        let pkt = cache.packet(&mut rest);
                        prop_assert_eq!(pkt.len(), whole.len());
                        prop_assert_eq!(pkt.to_vec(), whole);
                        cache.free(rest);
                    }
                    model.truncate(1);
                }
            }
            let pkt = cache.packet(&mut buffer);
            let segments: Vec<Vec<u8>> = pkt.segments().map(<[u8]>::to_vec).collect();
            prop_assert_eq!(&segments, &model);
            let whole = model.concat();
            prop_assert_eq!(pkt.len(), whole.len());
            prop_assert_eq!(pkt.is_chained(), model.len() > 1);
            let mut some = [0; 100];
            let at = whole.len() / 3;
            let n = pkt.copy_at(at, &mut some);
            prop_assert_eq!(&some[..n], &whole[at..whole.len().min(at + 100)]);
        }
        cache.free(buffer);
        prop_assert_eq!(pool.stats().used, 0);
    }
}

#[test]
fn a_copy_has_the_same_bytes_and_facts_and_a_life_of_its_own() {
    let _turn = turn();
    let pool = pool(16, 16);
    let mut cache = pool.cache();
    let mut first = cache.alloc_data(&bytes(5000)).unwrap();
    let mut pkt = cache.packet(&mut first);
    pkt.push(14).unwrap();
    pkt.data_mut()[..14].copy_from_slice(&[7; 14]);
    let meta = pkt.meta_mut();
    meta.flags = Flags::GSO.with(Flags::TRACED);
    (meta.rx, meta.tx, meta.adj, meta.l4, meta.gso_size) = (SwIfIndex(3), SwIfIndex(4), 5, 34, 1448);
    let before = pkt.to_vec();
    let mut second = cache.copy(&pkt).unwrap();
    let mut copy = cache.packet(&mut second);
    assert_eq!(copy.to_vec(), before);
    assert_eq!((copy.current(), copy.headroom(), copy.segments().count()), (-14, 114, 3));
    let meta = copy.meta();
    assert_eq!((meta.rx, meta.tx, meta.adj), (SwIfIndex(3), SwIfIndex(4), 5));
    assert_eq!((meta.l4, meta.gso_size, meta.flags), (34, 1448, Flags::GSO));
    copy.data_mut().fill(0);
    assert_eq!(cache.packet(&mut first).to_vec(), before);
    // There is no room for a third and a fourth of them beside what the pool's other users have.
    let mut more = Vec::new();
    let exhausted = loop {
        let pkt = cache.packet(&mut first);
        match cache.copy(&pkt) {
            Ok(buffer) => more.push(buffer),
            Err(full) => break full,
        }
    };
    assert_eq!((exhausted, more.len()), (shoal_buffer::Full, 3));
    give(&mut cache, more);
    give(&mut cache, vec![first, second]);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn the_area_of_a_packet_is_its_headroom_its_bytes_and_what_is_left() {
    let _turn = turn();
    let pool = pool(64, 64);
    let mut cache = pool.cache();
    let mut buffer = cache.alloc_data(&bytes(100)).unwrap();
    let mut packet = cache.packet(&mut buffer);
    let front = packet.headroom();
    assert_eq!(packet.area_mut().len(), HEADROOM + DATA_SIZE);
    assert_eq!(packet.area_mut()[front..front + 100], bytes(100));
    packet.area_mut().fill(7);
    packet.push(front).unwrap();
    packet.put(packet.tailroom()).unwrap();
    assert_eq!((packet.headroom(), packet.data()), (0, &[7; HEADROOM + DATA_SIZE][..]));
    cache.free(buffer);
    assert_eq!(pool.stats().used, 0);
}

#[test]
fn a_walk_over_a_frame_stops_at_the_packet_that_is_refused_and_goes_on_from_there() {
    let _turn = turn();
    let pool = pool(512, 512);
    let mut cache = pool.cache();
    let mut frame = Frame::new();
    assert_eq!(cache.alloc(&mut frame, FRAME_SIZE), FRAME_SIZE);
    let memory = cache.memory();
    frame.each(memory, |i, pkt| pkt.meta_mut().adj = i as u32);
    let mut seen = Vec::new();
    let stopped = frame.each_while(memory, 3, |i, pkt| {
        assert_eq!(pkt.meta().adj, i as u32);
        seen.push(i);
        i < 200
    });
    assert_eq!((stopped, &seen[..]), (200, &(3..=200).collect::<Vec<_>>()[..]));
    assert_eq!(frame.each_while(memory, stopped, |_, _| true), FRAME_SIZE);
    assert_eq!(frame.each_while(memory, FRAME_SIZE, |_, _| panic!("there is none")), FRAME_SIZE);
    cache.free_frame(&mut frame);
    assert_eq!(frame.each_while(memory, 0, |_, _| panic!("there is none")), 0);
    assert_eq!(pool.stats().used, 0);
}
