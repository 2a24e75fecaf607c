//! The halves of a queue on the router's buffers against a hostile kernel: memory of our own in place of the rings, any
//! content in it.

use proptest::prelude::*;
use shoal_buffer::{Pages, PoolConfig};

use super::super::ring::{Layout, words};
use super::*;
use shoal_shm::{Mapping, Populate};

const RX: u32 = 4;
const TX: u32 = 4;
const BUFFERS: usize = 160;

/// A ring's memory twice: ours, and the kernel's view of it.
fn ring(size: u32, entry: usize) -> (Mapping, Mapping, Layout) {
    let at = Layout { producer: 0, consumer: 64, flags: 128, entries: 192, size, entry };
    let (ours, kernels) = shared(at.bytes().unwrap());
    (ours, kernels, at)
}

/// Both halves, and what the kernel sees.
struct Bench {
    rx: LentRx,
    tx: LentTx,
    cache: Cache,
    rx_ring: Mapping,
    fill: Mapping,
    tx_ring: Mapping,
    completion: Mapping,
    pool: Arc<Pool>,
}

/// All buffers of the pool are known to the kernel.
fn bench(multi_buffer: bool) -> Bench {
    bench_with(multi_buffer, BUFFERS)
}

/// The first `known` buffers of the pool are known to the kernel. Each buffer's data begin with its number.
fn bench_with(multi_buffer: bool, known: usize) -> Bench {
    let pool =
        Pool::new(PoolConfig { name: "test".into(), buffers: BUFFERS, most: BUFFERS, pages: Pages::Small });
    let pool = pool.unwrap();
    let mut cache = pool.cache();
    let mut all: Vec<Buffer> = std::iter::from_fn(|| cache.alloc_one()).collect();
    all.sort_unstable_by_key(Buffer::number);
    let end = all.get(known).map_or(usize::MAX, |buffer| buffer.number() as usize * 64);
    // One that lies across two large pages is taken last: how many there are depends on what ran before.
    let whole = Loans::new(&pool, pool.part().unwrap());
    all.sort_by_key(|buffer| !whole.covers(buffer));
    // Freed from the last to the first, so that the first are taken first.
    for mut buffer in all.into_iter().rev() {
        let number = buffer.number();
        cache.packet(&mut buffer).set_data(&number.to_be_bytes()).unwrap();
        cache.free(buffer);
    }
    let (rx, rx_ring, rx_at) = ring(RX, 16);
    let (fill_ours, fill, fill_at) = ring(2 * RX, 8);
    let (tx, tx_ring, tx_at) = ring(TX, 16);
    let (completion_ours, completion, completion_at) = ring(TX, 8);
    let ended = Ended::new(XskSocket::none(), (IfIndex::new(1), 0), false, &pool);
    let shared = Arc::new(Shared { socket: XskSocket::none(), stuck: AtomicBool::new(false), memory: ended });
    let rings = [(rx, rx_at), (tx, tx_at), (fill_ours, fill_at), (completion_ours, completion_at)];
    let config = XskConfig { rx_size: RX, tx_size: TX, multi_buffer, ..XskConfig::default() };
    let part = pool.part().unwrap().up_to(end);
    let loans = [0, 1].map(|_| Loans::new(&pool, part));
    let (mut rx, mut tx) = halves(shared, rings, &config, loans);
    assert_eq!(rx.fill_up(&mut cache, RX as usize), RX as usize);
    assert!(tx.fill_up(&mut cache));
    Bench { rx, tx, cache, rx_ring, fill, tx_ring, completion, pool }
}

impl Bench {
    /// The address that the kernel was given as the `n`th.
    fn filled(&self, n: u32) -> u64 {
        assert!(n < self.fill.load_acquire(0).unwrap());
        self.fill.read_u64(192 + (n % (2 * RX)) as usize * 8).unwrap()
    }

    fn receive(&self, at: u32, desc: Desc) {
        let offset = 192 + (at % RX) as usize * 16;
        self.rx_ring.write_u64(offset, desc.addr);
        self.rx_ring.write_u64(offset + 8, words(desc.len, desc.options));
    }

    fn received(&self, n: u32) {
        self.rx_ring.store_release(0, n);
    }

    fn next(&mut self) -> Option<Result<(Buffer, u32), NotReceived>> {
        self.rx.next(&mut self.cache)
    }

    fn sent(&self, n: u32) -> (u64, u64) {
        let offset = 192 + (n % TX) as usize * 16;
        (self.tx_ring.read_u64(offset).unwrap(), self.tx_ring.read_u64(offset + 8).unwrap())
    }

    /// Buffers that are neither free, nor lent, nor kept to copy into.
    fn elsewhere(&self) -> usize {
        let stock = self.tx.sent.stock.len();
        self.pool.stats().used - self.rx.loans.len() - self.tx.sent.loans.len() - stock
    }

    fn packet(&mut self, bytes: &[u8]) -> Buffer {
        self.cache.alloc_data(bytes).unwrap()
    }
}

/// A frame of `len` bytes where the kernel puts one.
fn desc(address: u64, len: u32) -> Desc {
    Desc { addr: address | (DATA_OFFSET as u64) << SHIFT, len, options: 0 }
}

#[test]
fn a_received_frame_lies_in_the_buffer_that_was_lent_and_another_takes_its_place() {
    let mut bench = bench(false);
    let first = bench.filled(0);
    bench.receive(0, desc(first, 60));
    bench.receive(1, Desc { addr: bench.filled(1) | 300 << SHIFT, len: 10, options: 0 });
    bench.receive(2, Desc { addr: bench.filled(2) | 200 << SHIFT, len: 100, options: 0 });
    bench.received(3);
    for (len, front) in [(60, 0), (10, 300 - 256), (100, 200 - 256)] {
        let (mut buffer, pieces) = bench.next().unwrap().unwrap();
        let pkt = bench.cache.packet(&mut buffer);
        assert_eq!((pkt.len(), pieces, pkt.current()), (len, 1, front));
        bench.cache.free(buffer);
    }
    assert!(bench.next().is_none());
    bench.rx.rings.flush();
    assert_eq!(bench.rx_ring.load_acquire(64), Some(3), "read");
    assert_eq!(bench.fill.load_acquire(0), Some(RX + 3), "as many were given as came");
    assert_ne!(bench.filled(RX), first, "not the one that is the router's now");
    assert_eq!((bench.rx.loans.len(), bench.rx.rings.malformed(), bench.elsewhere()), (RX as usize, 0, 0));
}

#[test]
fn what_the_kernel_does_not_have_is_refused_and_nothing_gets_two_tokens() {
    let mut bench = bench(false);
    let mine = bench.packet(b"the router's");
    let held = u64::from(mine.number()) * 64;
    let first = bench.filled(0);
    let wrong = [
        desc(held, 60),
        desc(u64::MAX >> 16, 60),
        desc(first + 64, 60),
        Desc { addr: u64::MAX, len: 60, options: 0 },
    ];
    wrong.into_iter().enumerate().for_each(|(at, desc)| bench.receive(at as u32, desc));
    bench.received(4);
    for _ in 0..4 {
        assert_eq!(bench.next().unwrap().unwrap_err(), NotReceived::Malformed);
    }
    assert!(bench.next().is_none());
    // Where no data can be: the kernel gets the buffer again. The same twice: the second time it is ours.
    bench.receive(4, Desc { addr: first | 127 << SHIFT, len: 60, options: 0 });
    bench.receive(5, desc(first, DATA_SIZE as u32 + 1));
    bench.receive(6, desc(first, 60));
    bench.receive(7, desc(first, 60));
    bench.received(8);
    assert!(bench.next().unwrap().is_err() && bench.next().unwrap().is_err());
    let (buffer, _) = bench.next().unwrap().unwrap();
    assert!(bench.next().unwrap().is_err(), "it has come back already");
    assert_eq!((bench.rx.rings.malformed(), bench.rx.loans.len()), (7, RX as usize));
    bench.cache.free(buffer);
    bench.cache.free(mine);
    assert_eq!(bench.elsewhere(), 0);
}

#[test]
fn without_a_free_buffer_the_frame_is_dropped_and_the_kernel_keeps_its_own() {
    let mut bench = bench(false);
    let mut all = Vec::new();
    all.extend(std::iter::from_fn(|| bench.cache.alloc_one()));
    bench.receive(0, desc(bench.filled(0), 60));
    bench.received(1);
    assert_eq!(bench.next().unwrap().unwrap_err(), NotReceived::NoBuffer);
    bench.rx.rings.flush();
    assert_eq!((bench.filled(RX), bench.rx.loans.len()), (bench.filled(0), RX as usize));
    assert_eq!(bench.rx.rings.malformed(), 0);
    for buffer in all {
        bench.cache.free(buffer);
    }
}

#[test]
fn frames_in_pieces_become_chains_and_half_ones_are_refused() {
    let mut bench = bench(true);
    let more = |desc: Desc| Desc { options: libc::XDP_PKT_CONTD, ..desc };
    bench.receive(0, more(desc(bench.filled(0), 2048)));
    bench.receive(1, more(desc(bench.filled(1), 2048)));
    bench.receive(2, desc(bench.filled(2), 5));
    bench.receive(3, more(desc(bench.filled(3), 9)));
    bench.received(4);
    let (mut buffer, pieces) = bench.next().unwrap().unwrap();
    let pkt = bench.cache.packet(&mut buffer);
    assert_eq!((pkt.len(), pieces, pkt.segments().count()), (4101, 3, 3));
    bench.cache.free(buffer);
    assert_eq!(bench.next().unwrap().unwrap_err(), NotReceived::Malformed, "its end is missing");
    assert!(bench.next().is_none());
    bench.rx.rings.flush();
    bench.fill.store_release(64, 4);
    bench.receive(4, more(desc(bench.filled(4), 1)));
    bench.receive(5, desc(3, 1));
    bench.received(6);
    assert!(bench.next().unwrap().is_err(), "a piece without an owner");
    assert!(bench.next().is_none());
    assert_eq!((bench.rx.loans.len(), bench.elsewhere()), (RX as usize, 0));
}

#[test]
fn a_packet_is_sent_from_its_buffer_which_comes_back_once() {
    let mut bench = bench(false);
    let mut lent = Vec::new();
    for n in 0..TX {
        let mut buffer = bench.packet(b"abcde");
        bench.cache.packet(&mut buffer).pull(2).unwrap();
        let start = u64::from(buffer.number()) * 64;
        bench.tx.push(buffer, &mut bench.cache).unwrap();
        assert_eq!(bench.sent(n), (start | (DATA_OFFSET as u64 + 2) << SHIFT, 3));
        lent.push(start);
    }
    let push = |bench: &mut Bench| {
        let buffer = bench.packet(b"x");
        bench.tx.push(buffer, &mut bench.cache).map_err(|(why, buffer)| {
            bench.cache.free(buffer);
            why
        })
    };
    assert_eq!(push(&mut bench), Err(TxRefused::Full));
    // The kernel gives back: one of ours, one twice, one of the other half, one that never was.
    let other = bench.filled(0);
    for (at, addr) in [lent[0] | 258 << SHIFT, lent[0], other, u64::MAX].into_iter().enumerate() {
        bench.completion.write_u64(192 + at * 8, addr);
    }
    bench.completion.store_release(0, 4);
    bench.tx_ring.store_release(64, 4);
    assert_eq!(push(&mut bench), Ok(()));
    assert_eq!(push(&mut bench), Err(TxRefused::Full), "only one came back");
    assert_eq!((bench.tx.malformed(), bench.elsewhere()), (3, 0));
}

#[test]
fn what_cannot_be_sent_comes_back() {
    let mut bench = bench(false);
    for (len, why) in [(0, "no bytes"), (2 * DATA_SIZE, "several buffers, without multi-buffer")] {
        let buffer = bench.packet(&vec![1; len]);
        let (refused, buffer) = bench.tx.push(buffer, &mut bench.cache).unwrap_err();
        assert_eq!(refused, TxRefused::TooLong, "{why}");
        bench.cache.free(buffer);
    }
    assert_eq!((bench.tx.sent.loans.len(), bench.elsewhere()), (0, 0));
}

#[test]
fn chains_are_sent_piece_by_piece_and_copied_where_they_must_be() {
    let mut bench = bench(true);
    let bytes: Vec<u8> = (0..5000).map(|n| n as u8).collect();
    let buffer = bench.packet(&bytes);
    bench.tx.push(buffer, &mut bench.cache).unwrap();
    let lens = [0, 1, 2].map(|n| bench.sent(n).1);
    assert_eq!(lens[0], words(2048, libc::XDP_PKT_CONTD));
    assert_eq!(lens[2], words(5000 - 4096, 0));
    assert_eq!(bench.tx.sent.loans.len(), 3);
    let buffer = bench.packet(&bytes);
    let (why, buffer) = bench.tx.push(buffer, &mut bench.cache).unwrap_err();
    assert_eq!((why, bench.tx.sent.loans.len()), (TxRefused::Full, 3), "all pieces or none");
    bench.cache.free(buffer);
    // A piece without bytes is nothing that the kernel takes: the packet is copied.
    let mut buffer = bench.packet(b"head");
    let (empty, tail) = (bench.cache.alloc_one().unwrap(), bench.packet(b"tail"));
    let mut pkt = bench.cache.packet(&mut buffer);
    pkt.append_segment(empty).unwrap();
    pkt.append_segment(tail).unwrap();
    bench.tx.push(buffer, &mut bench.cache).unwrap();
    assert_eq!(bench.sent(3).1, words(8, 0));
    assert_eq!((bench.tx.sent.loans.len(), bench.elsewhere()), (4, 0));
}

#[test]
fn buffers_that_the_kernel_does_not_know_are_copied_both_ways() {
    let mut bench = bench_with(true, 100);
    let all = std::iter::from_fn(|| bench.cache.alloc_one()).collect::<Vec<_>>();
    let (held, unknown): (Vec<_>, Vec<_>) = all.into_iter().partition(|b| bench.tx.sent.loans.covers(b));
    assert!(unknown.len() >= BUFFERS - 100);
    for buffer in unknown {
        bench.cache.free(buffer);
    }
    let mut outside = bench.cache.alloc_one().unwrap();
    let bytes: Vec<u8> = (0..3000).map(|n| n as u8).collect();
    let number = u64::from(outside.number());
    bench.cache.packet(&mut outside).set_data(&bytes[..2048]).unwrap();
    let mut tail = bench.packet(&bytes[2048..]);
    assert!(!bench.tx.sent.loans.covers(&tail));
    bench.cache.packet(&mut tail).put(1).unwrap();
    bench.cache.packet(&mut outside).append_segment(tail).unwrap();
    bench.tx.push(outside, &mut bench.cache).unwrap();
    assert_ne!(bench.sent(0).0 & libc::XSK_UNALIGNED_BUF_ADDR_MASK, number * 64);
    assert_eq!([bench.sent(0).1, bench.sent(1).1], [words(2048, libc::XDP_PKT_CONTD), words(953, 0)]);
    assert_eq!((bench.tx.sent.loans.len(), bench.tx.sent.stock.len()), (2, STOCK - 2));
    // They come back: what was copied is what was sent, and the stock is whole again.
    let sent = bench.sent(0).0 & libc::XSK_UNALIGNED_BUF_ADDR_MASK;
    let mut copy = bench.tx.sent.loans.take_back(sent).unwrap();
    let copied = bench.cache.packet(&mut copy).put(2048).unwrap().to_vec();
    assert_eq!(copied, bytes[..2048]);
    bench.tx.keep(copy, &mut bench.cache);
    bench.completion.write_u64(192, bench.sent(1).0);
    bench.completion.store_release(0, 1);
    bench.tx.sent.reclaim(&mut bench.cache);
    assert_eq!((bench.tx.sent.loans.len(), bench.tx.sent.stock.len()), (0, STOCK));
    // A received frame is copied, and the kernel gets what it had.
    let first = bench.filled(0);
    bench.receive(0, desc(first, 4));
    bench.received(1);
    let (mut buffer, _) = bench.next().unwrap().unwrap();
    assert!(!bench.rx.loans.covers(&buffer));
    assert_eq!(bench.cache.packet(&mut buffer).data(), ((first / 64) as u32).to_be_bytes());
    bench.rx.rings.flush();
    assert_eq!((bench.filled(RX), bench.rx.loans.len()), (first, RX as usize));
    bench.cache.free(buffer);
    for buffer in held {
        bench.cache.free(buffer);
    }
    assert_eq!((bench.elsewhere(), bench.rx.rings.malformed(), bench.tx.malformed()), (0, 0, 0));
}

#[derive(Clone, Debug)]
enum Step {
    Rx(Address, u32, bool, u32),
    Complete(Address, u32),
    Indices(u32, u32),
    Next,
    Flush,
    Push(usize),
    Kick,
    Hold,
    Free,
}

/// What a kernel may write: a buffer of this pool with an offset, or anything.
#[derive(Clone, Debug)]
enum Address {
    Buffer(usize, u64),
    Any(u64),
}

fn step() -> impl Strategy<Value = Step> {
    let offset = prop_oneof![4 => Just(DATA_OFFSET as u64), 1 => 0..2500u64, 1 => any::<u64>()];
    let address = prop_oneof![
        6 => (0..BUFFERS, offset).prop_map(|(n, offset)| Address::Buffer(n, offset)),
        1 => any::<u64>().prop_map(Address::Any),
    ];
    let index = prop_oneof![4 => 0..12u32, 1 => any::<u32>()];
    let len = prop_oneof![4 => 0..2400u32, 1 => any::<u32>()];
    prop_oneof![
        4 => (address.clone(), len, any::<bool>(), index.clone())
            .prop_map(|(address, len, more, n)| Step::Rx(address, len, more, n)),
        2 => (address, index.clone()).prop_map(|(address, n)| Step::Complete(address, n)),
        1 => (index.clone(), index).prop_map(|(a, b)| Step::Indices(a, b)),
        6 => Just(Step::Next),
        2 => Just(Step::Flush),
        4 => (0usize..9000).prop_map(Step::Push),
        1 => Just(Step::Kick),
        1 => Just(Step::Hold),
        1 => Just(Step::Free),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, cases: 128, ..ProptestConfig::default() })]

    /// Whatever the kernel writes into the rings: no buffer has two tokens, none is lost, no byte outside is touched.
    #[test]
    fn any_content_of_the_rings_is_survived(
        steps in prop::collection::vec(step(), 1..120),
        multi_buffer in any::<bool>(),
        known in 75..BUFFERS,
    ) {
        let mut bench = bench_with(multi_buffer, known);
        let first = bench.filled(0);
        let address = |address: &Address| match address {
            Address::Buffer(n, offset) => {
                let at = (*n as u64) * shoal_buffer::STRIDE as u64 + first;
                at | offset << SHIFT
            }
            Address::Any(any) => *any,
        };
        let bytes = vec![1u8; 9000];
        let mut held: Vec<Buffer> = Vec::new();
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Rx(to, len, more, n) => {
                    let options = if more { libc::XDP_PKT_CONTD } else { 0 };
                    bench.receive(at as u32, Desc { addr: address(&to), len, options });
                    bench.received(n);
                }
                Step::Complete(to, n) => {
                    bench.completion.write_u64(192 + at % TX as usize * 8, address(&to));
                    bench.completion.store_release(0, n);
                }
                Step::Indices(fill, tx) => {
                    bench.fill.store_release(64, fill);
                    bench.tx_ring.store_release(64, tx);
                }
                Step::Next => {
                    if let Some(Ok((buffer, _))) = bench.next() {
                        held.push(buffer);
                    }
                }
                Step::Flush => bench.rx.rings.flush(),
                Step::Push(len) => {
                    let packet = held.pop().or_else(|| bench.cache.alloc_data(&bytes[..len]).ok());
                    if let Some(buffer) = packet
                        && let Err((_, buffer)) = bench.tx.push(buffer, &mut bench.cache)
                    {
                        held.push(buffer);
                    }
                }
                Step::Kick => {
                    bench.tx.send(&mut bench.cache);
                }
                Step::Hold => held.extend(bench.cache.alloc_one()),
                Step::Free => {
                    for buffer in held.drain(..) {
                        bench.cache.free(buffer);
                    }
                }
            }
            // Every buffer is in one place: in hand with what is chained to it, kept to copy into, lent, or free.
            let mut numbers = Vec::new();
            for buffer in held.iter_mut().chain(&mut bench.tx.sent.stock) {
                let pkt = bench.cache.packet(buffer);
                let sum: u64 = pkt.segments().flatten().map(|b| u64::from(*b)).sum();
                prop_assert!(sum <= 255 * pkt.len() as u64);
                numbers.push(buffer.number());
            }
            numbers.sort_unstable();
            let all = numbers.len();
            numbers.dedup();
            prop_assert_eq!(numbers.len(), all, "two tokens of one buffer");
            let in_hand: usize =
                held.iter_mut().map(|b| bench.cache.packet(b).segments().count()).sum();
            prop_assert_eq!(bench.elsewhere(), in_hand);
        }
        // All that is free now can be taken, once.
        let mut numbers: Vec<u32> = held.iter().map(Buffer::number).collect();
        numbers.extend(bench.tx.sent.stock.iter().map(Buffer::number));
        while let Some(buffer) = bench.cache.alloc_one() {
            numbers.push(buffer.number());
            held.push(buffer);
        }
        numbers.sort_unstable();
        let all = numbers.len();
        numbers.dedup();
        prop_assert_eq!(numbers.len(), all);
        for buffer in held {
            bench.cache.free(buffer);
        }
        prop_assert_eq!(bench.elsewhere(), 0, "none is lost");
    }
}

/// The same memory twice: the router's view of a ring, and the kernel's.
fn shared(len: usize) -> (Mapping, Mapping) {
    let (ours, file) = Mapping::sealed("ring", len).unwrap();
    (ours, Mapping::of_device(&file, 0, len, Populate::Later).unwrap())
}
