//! The halves of a queue against a hostile kernel: memory of our own in place of the rings, any content in it.

use proptest::prelude::*;

use super::super::ring::Layout;
use super::*;

const RX: u32 = 4;
const TX: u32 = 4;

fn layout(size: u32, entry: usize) -> Layout {
    Layout { producer: 0, consumer: 64, flags: 128, entries: 192, size, entry }
}

/// A ring's memory twice: ours, and the kernel's view of it.
fn ring(size: u32, entry: usize) -> (Mapping, Mapping, Layout) {
    let at = layout(size, entry);
    let (ours, kernels) = shared(at.bytes().unwrap());
    (ours, kernels, at)
}

/// Both halves, and what the kernel sees.
struct Bench {
    rx: XskRx,
    tx: XskTx,
    rx_ring: Mapping,
    fill: Mapping,
    tx_ring: Mapping,
    completion: Mapping,
}

fn bench(multi_buffer: bool) -> Bench {
    let (rx_frames, tx_frames) = (2 * RX as usize, TX as usize);
    let (rx, rx_ring, rx_at) = ring(RX, 16);
    let (fill_ours, fill, fill_at) = ring(2 * RX, 8);
    let (tx, tx_ring, tx_at) = ring(TX, 16);
    let (completion_ours, completion, completion_at) = ring(TX, 8);
    let memory = Mapping::anonymous((rx_frames + tx_frames) * CHUNK, Populate::Now).unwrap();
    let shared = Arc::new(Shared { socket: XskSocket::none(), stuck: AtomicBool::new(false), memory });
    let rings = [(rx, rx_at), (tx, tx_at), (fill_ours, fill_at), (completion_ours, completion_at)];
    let config = XskConfig { rx_size: RX, tx_size: TX, multi_buffer, ..XskConfig::default() };
    let (rx, tx) = halves(shared, rings, &config, false);
    Bench { rx, tx, rx_ring, fill, tx_ring, completion }
}

impl Bench {
    /// Addresses that the kernel was given.
    fn filled(&self) -> Vec<u64> {
        let n = self.fill.load_acquire(0).unwrap();
        (0..n).map(|i| self.fill.read_u64(192 + (i % (2 * RX)) as usize * 8).unwrap()).collect()
    }

    fn receive(&self, at: u32, desc: Desc) {
        let offset = 192 + (at % RX) as usize * 16;
        self.rx_ring.write_u64(offset, desc.addr);
        self.rx_ring.write_u64(offset + 8, super::super::ring::words(desc.len, desc.options));
    }

    fn received(&self, n: u32) {
        self.rx_ring.store_release(0, n);
    }
}

fn desc(addr: u64, len: u32) -> Desc {
    Desc { addr, len, options: 0 }
}

#[test]
fn all_frames_are_given_and_each_comes_back_once() {
    let mut bench = bench(false);
    assert_eq!(bench.filled(), (0..2 * RX as u64).map(|n| n * CHUNK as u64).collect::<Vec<_>>());
    bench.fill.store_release(64, 2);
    bench.receive(0, desc(256, 60));
    bench.receive(1, desc(CHUNK as u64 + 256, 100));
    bench.received(2);
    assert_eq!(bench.rx.next().unwrap().unwrap().bytes.len(), 60);
    assert_eq!(bench.rx.next().unwrap().unwrap().bytes.len(), 100);
    assert!(bench.rx.next().is_none());
    bench.rx.flush();
    assert_eq!(bench.rx_ring.load_acquire(64), Some(2), "read");
    assert_eq!(bench.fill.load_acquire(0), Some(2 * RX + 2), "and given back");
    // The same frame again, although the kernel has it not been given a second time: it has, so it may.
    assert_eq!(bench.rx.rings.malformed(), 0);
}

#[test]
fn an_index_that_is_too_far_ahead_stops_the_ring_and_is_counted() {
    let mut bench = bench(false);
    bench.received(RX + 1);
    assert!(bench.rx.next().is_none() && bench.rx.next().is_none());
    bench.received(u32::MAX);
    assert!(bench.rx.next().is_none());
    assert_eq!(bench.rx.rings.malformed(), 3);
    bench.receive(0, desc(0, 1));
    bench.received(1);
    assert!(bench.rx.next().unwrap().is_ok(), "and it goes on when the index makes sense");
}

#[test]
fn descriptors_of_frames_that_are_not_the_kernels_are_refused() {
    let mut bench = bench(false);
    let end = (2 * RX as usize * CHUNK) as u64;
    for (at, wrong) in
        [desc(end, 60), desc(u64::MAX, 60), desc(4000, 97), desc(0, u32::MAX)].into_iter().enumerate()
    {
        bench.receive(at as u32, wrong);
    }
    bench.received(4);
    for _ in 0..4 {
        assert_eq!(bench.rx.next().unwrap().unwrap_err(), Malformed::Descriptor);
    }
    assert!(bench.rx.next().is_none());
    bench.rx.flush();
    // Twice the same: the second time it is in our hand.
    bench.receive(4, desc(CHUNK as u64, 1));
    bench.receive(5, desc(CHUNK as u64 + 7, 1));
    bench.received(6);
    bench.fill.store_release(64, 1);
    assert!(bench.rx.next().unwrap().is_ok());
    let again = bench.rx.next().unwrap().is_ok();
    assert!(again, "it went back before the next was taken");
    assert_eq!(bench.rx.rings.malformed(), 4);
}

#[test]
fn frames_in_pieces_are_put_together_and_half_ones_refused() {
    let mut bench = bench(true);
    let piece = |frame: u64, len, more: bool| Desc {
        addr: frame * CHUNK as u64,
        len,
        options: if more { libc::XDP_PKT_CONTD } else { 0 },
    };
    bench.receive(0, piece(0, 3000, true));
    bench.receive(1, piece(1, 4096, true));
    bench.receive(2, piece(2, 5, false));
    bench.receive(3, piece(3, 9, true));
    bench.received(4);
    let frame = bench.rx.next().unwrap().unwrap();
    assert_eq!((frame.bytes.len(), frame.pieces), (7101, 3));
    assert!(bench.rx.next().unwrap().is_err(), "its end is missing");
    assert!(bench.rx.next().is_none());
    bench.rx.flush();
    bench.receive(4, piece(4, 1, true));
    bench.receive(5, piece(99, 1, false));
    bench.received(6);
    assert!(bench.rx.next().unwrap().is_err(), "a piece without an owner");
    assert!(bench.rx.next().is_none());
}

#[test]
fn frames_that_are_sent_come_back_and_only_those() {
    let mut bench = bench(false);
    let start = 2 * RX as u64 * CHUNK as u64;
    for n in 0..TX {
        bench.tx.push(5, [&b"ab"[..], b"", b"cde"].into_iter()).unwrap();
        assert_eq!(bench.tx_ring.read_u64(192 + n as usize * 16), Some(start + u64::from(n) * CHUNK as u64));
        assert_eq!(bench.tx_ring.read_u64(192 + n as usize * 16 + 8), Some(5));
    }
    let push = |bench: &mut Bench| bench.tx.push(1, [&b"x"[..]].into_iter());
    assert_eq!(push(&mut bench), Err(TxRefused::Full));
    assert_eq!(bench.tx.push(CHUNK + 1, std::iter::empty()), Err(TxRefused::TooLong));
    // The kernel gives back: one of ours, one twice, one of the other half, one that never was.
    for (at, addr) in [start + 7, start, 0, u64::MAX].into_iter().enumerate() {
        bench.completion.write_u64(192 + at * 8, addr);
    }
    bench.completion.store_release(0, 4);
    bench.tx_ring.store_release(64, 4);
    assert_eq!(push(&mut bench), Ok(()));
    assert_eq!(push(&mut bench), Err(TxRefused::Full), "only one came back");
    assert_eq!(bench.tx.malformed(), 3);
    bench.completion.store_release(0, 4 + TX + 1);
    bench.tx_ring.store_release(64, 77);
    assert_eq!(push(&mut bench), Err(TxRefused::Full));
    assert!(bench.tx.malformed() >= 4);
}

#[test]
fn long_frames_are_sent_in_pieces() {
    let mut bench = bench(true);
    let bytes = vec![7; CHUNK + 10];
    bench.tx.push(bytes.len(), bytes.chunks(1000)).unwrap();
    let words = |at: usize| bench.tx_ring.read_u64(192 + at * 16 + 8).unwrap();
    assert_eq!(words(0), super::super::ring::words(CHUNK as u32, libc::XDP_PKT_CONTD));
    assert_eq!(words(1), super::super::ring::words(10, 0));
    assert_eq!(bench.tx.push(3 * CHUNK, std::iter::empty()), Err(TxRefused::Full), "all pieces or none");
    // Room for one is known, and for more once the kernel has taken what is there.
    bench.tx.push(1, [&b"x"[..]].into_iter()).unwrap();
    let start = 2 * RX as u64 * CHUNK as u64;
    for at in 0..3 {
        bench.completion.write_u64(192 + at * 8, start + (at * CHUNK) as u64);
    }
    bench.completion.store_release(0, 3);
    bench.tx_ring.store_release(64, 3);
    assert_eq!(bench.tx.push(bytes.len(), bytes.chunks(1000)), Ok(()));
}

#[derive(Clone, Debug)]
enum Step {
    Rx(Desc, u32),
    Complete(u64, u32),
    Indices(u32, u32),
    Next,
    Flush,
    Push(usize),
}

fn step() -> impl Strategy<Value = Step> {
    let addr = prop_oneof![0..(16 * CHUNK as u64), any::<u64>()];
    let index = prop_oneof![0..12u32, any::<u32>()];
    let len = prop_oneof![0..5000u32, any::<u32>()];
    let rx = (addr.clone(), len, 0..2u32, index.clone())
        .prop_map(|(addr, len, options, n)| Step::Rx(Desc { addr, len, options }, n));
    prop_oneof![
        4 => rx,
        2 => (addr, index.clone()).prop_map(|(addr, n)| Step::Complete(addr, n)),
        1 => (index.clone(), index).prop_map(|(a, b)| Step::Indices(a, b)),
        6 => Just(Step::Next),
        2 => Just(Step::Flush),
        4 => (0usize..12_000).prop_map(Step::Push),
    ]
}

proptest! {
    #![proptest_config(ProptestConfig { failure_persistence: None, ..ProptestConfig::default() })]

    /// Whatever the kernel writes into the rings: no access outside of them, every frame in one place, bounded work.
    #[test]
    fn any_content_of_the_rings_is_survived(
        steps in prop::collection::vec(step(), 1..120),
        multi_buffer in any::<bool>(),
    ) {
        let mut bench = bench(multi_buffer);
        let bytes = vec![1u8; 12_000];
        for (at, step) in steps.into_iter().enumerate() {
            match step {
                Step::Rx(desc, n) => {
                    bench.receive(at as u32, desc);
                    bench.received(n);
                }
                Step::Complete(addr, n) => {
                    bench.completion.write_u64(192 + at % TX as usize * 8, addr);
                    bench.completion.store_release(0, n);
                }
                Step::Indices(fill, tx) => {
                    bench.fill.store_release(64, fill);
                    bench.tx_ring.store_release(64, tx);
                }
                Step::Next => {
                    if let Some(Ok(frame)) = bench.rx.next() {
                        let sum: u64 = frame.bytes.iter().map(|b| u64::from(*b)).sum();
                        prop_assert!(sum <= 255 * LONGEST as u64);
                    }
                }
                Step::Flush => bench.rx.flush(),
                Step::Push(len) => drop(bench.tx.push(len, bytes[..len].chunks(700))),
            }
            let tx = &bench.tx.frames;
            let with_kernel = tx.kernels.iter().filter(|k| **k).count();
            prop_assert_eq!(tx.free.len() + with_kernel, TX as usize, "every frame is in one place");
            prop_assert!(tx.free.iter().all(|f| !tx.kernels[*f as usize]));
        }
    }
}

/// The same memory twice: the router's view of a ring, and the kernel's.
fn shared(len: usize) -> (Mapping, Mapping) {
    let (ours, file) = Mapping::sealed("ring", len).unwrap();
    (ours, Mapping::of_device(&file, 0, len, Populate::Later).unwrap())
}
