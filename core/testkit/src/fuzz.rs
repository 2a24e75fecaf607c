//! Rubbish for every node: random, truncated and lying packets with random metadata.

use std::rc::Rc;
use std::sync::mpsc;
use std::time::Duration;

use shoal_buffer::{Buffer, Cache, DATA_SIZE, FibIndex, Flags, Packet, SwIfIndex};
use shoal_graph::{Graph, NodeKind};
use shoal_wire::{IpProtocol, TcpFlags};

use crate::{PacketBuilder, Rng, Router, probe};

/// How long one node may take over its packets before it is called stuck.
const PATIENCE: Duration = Duration::from_mins(1);
/// Packets sent before the graph runs.
const BURST: usize = 64;

/// What was done.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Fuzzed {
    /// Nodes that were sent packets.
    pub nodes: usize,
    /// Packets sent.
    pub packets: usize,
}

/// Sends `n` packets to each node that packets pass, and requires that nothing panics, every buffer comes back
/// (but for what [`Router::may_hold`] allows), no packet is left in a frame, and all comes to rest.
///
/// The seed is printed; `SHOAL_SEED` in the environment replaces it.
pub fn fuzz_all_nodes(router: &mut Router, seed: u64, n: usize) -> Fuzzed {
    let seed = Rng::seed(seed);
    let graph = Rc::clone(router.graph());
    let passed = |k: NodeKind| matches!(k, NodeKind::Internal | NodeKind::Superpath);
    let nodes: Vec<_> = graph.nodes().into_iter().filter(|i| passed(i.kind)).collect();
    let mut done = Fuzzed { nodes: nodes.len(), packets: 0 };
    for (number, node) in nodes.iter().enumerate() {
        let watchdog = Watchdog::new(format!("node {} does not come to rest, seed {seed}", node.name));
        let mut rng = Rng::new(seed ^ (number as u64 + 1).wrapping_mul(0x9e37_79b9_7f4a_7c15));
        let mut left = n;
        while left > 0 {
            let burst = left.min(1 + rng.below(BURST));
            let mut probes = Vec::new();
            for _ in 0..burst {
                let buffer = packet(&mut rng, router);
                // A traced packet takes other code than its neighbours.
                if rng.one_in(16) {
                    probes.push(probe::add(&graph, node.index, buffer));
                } else {
                    graph.main().inject(node.index, buffer);
                }
            }
            router.run();
            for probe in probes {
                drop(graph.remove_queue(probe));
            }
            graph.trace_clear();
            left -= burst;
            done.packets += burst;
            check(router, &graph, &node.name, seed);
        }
        drop(watchdog);
    }
    done
}

fn check(router: &Router, graph: &Graph, node: &str, seed: u64) {
    let (used, held) = (router.buffers_in_use(), router.held());
    assert!(used <= held, "node {node}: {used} buffers did not come back, {held} may be held, seed {seed}");
    let forgotten = graph.error_count("error-drop", "forgotten").unwrap_or(0);
    assert_eq!(
        forgotten, 0,
        "node {node} or one behind it leaves packets in its frame or drops without a reason, seed {seed}"
    );
}

/// Ends the process when a packet goes round in circles inside one round, where no check of a test can reach.
struct Watchdog {
    _done: mpsc::Sender<()>,
}

impl Watchdog {
    fn new(what: String) -> Self {
        let (done, wait) = mpsc::channel();
        std::thread::spawn(move || {
            if wait.recv_timeout(PATIENCE) == Err(mpsc::RecvTimeoutError::Timeout) {
                eprintln!("{what}");
                std::process::abort();
            }
        });
        Watchdog { _done: done }
    }
}

/// A packet of any kind, in one buffer or several, with metadata of any kind.
fn packet(rng: &mut Rng, router: &Router) -> Buffer {
    let bytes = bytes(rng);
    let interfaces = router.interfaces().indices();
    let mut main = router.graph().main();
    let cache = main.cache();
    let mut buffer = if rng.one_in(4) {
        chained(rng, cache, &bytes)
    } else {
        cache.alloc_data(&bytes).expect("the pool holds a burst")
    };
    metadata(rng, &mut cache.packet(&mut buffer), &interfaces);
    buffer
}

/// The bytes over several buffers, cut anywhere; some may be empty.
fn chained(rng: &mut Rng, cache: &mut Cache, bytes: &[u8]) -> Buffer {
    let mut first = cache.alloc_one().expect("the pool holds a burst");
    let mut rest = bytes;
    let mut head = true;
    while !rest.is_empty() || head {
        let n = rng.below(rest.len().min(DATA_SIZE) + 1);
        let Some((now, later)) = rest.split_at_checked(n) else { break };
        rest = later;
        if head {
            let _ = cache.packet(&mut first).set_data(now);
            head = false;
            continue;
        }
        let mut segment = cache.alloc_one().expect("the pool holds a burst");
        let _ = cache.packet(&mut segment).set_data(now);
        cache.packet(&mut first).append_segment(segment).expect("nothing of it is shared");
    }
    first
}

fn interface(rng: &mut Rng, there: &[SwIfIndex]) -> SwIfIndex {
    match rng.below(8) {
        0 => SwIfIndex::NONE,
        1 => SwIfIndex(rng.next_u64() as u32),
        _ => *rng.pick(there),
    }
}

fn metadata(rng: &mut Rng, pkt: &mut Packet<'_>, interfaces: &[SwIfIndex]) {
    *pkt.scratch_line() = std::array::from_fn(|_| rng.next_u64());
    // The front anywhere: headers pulled or pushed before.
    let _ = match rng.below(3) {
        0 => pkt.pull(rng.below(64)),
        1 => pkt.push(rng.below(129)),
        _ => None,
    };
    let current = pkt.current();
    let meta = pkt.meta_mut();
    let offset = |rng: &mut Rng| match rng.below(3) {
        0 => rng.next_u64() as i16,
        1 => current,
        _ => current.saturating_add(rng.below(80) as i16 - 20),
    };
    meta.rx = interface(rng, interfaces);
    meta.tx = interface(rng, interfaces);
    let fib = if rng.one_in(4) { rng.next_u64() as u32 } else { rng.below(4) as u32 };
    meta.set_fib(rng.one_in(2).then_some(FibIndex(fib)));
    meta.adj = if rng.one_in(4) { rng.next_u64() as u32 } else { rng.below(16) as u32 };
    // The first few numbers are the runtime's own findings, which `check` looks at.
    meta.error = if rng.one_in(4) { (rng.next_u64() as u16).max(3) } else { 3 + rng.below(64) as u16 };
    (meta.l3, meta.l4) = (offset(rng), offset(rng));
    meta.checksum_offset = if rng.one_in(4) { rng.next_u64() as u16 } else { *rng.pick(&[6, 16]) };
    (meta.gso_size, meta.gso_header) = (*rng.pick(&[0, 1, 536, 1448, 65_535]), rng.below(100) as u16);
    (meta.arc, meta.feature) = (rng.below(8) as u8, rng.next_u64() as u8);
    meta.flow_hash = rng.next_u64() as u32;
    if rng.one_in(2) {
        // All facts but being traced, which only an input begins.
        meta.flags = Flags((rng.next_u64() as u32) & 0x3ff).without(Flags::TRACED);
    }
}

/// Bytes of a packet: nothing, noise, a good packet, a damaged one, one that lies about its lengths.
fn bytes(rng: &mut Rng) -> Vec<u8> {
    let size = |rng: &mut Rng| match rng.below(8) {
        0 => rng.below(9000),
        1 => rng.below(2049),
        _ => rng.below(160),
    };
    let n = size(rng);
    if rng.one_in(4) {
        return rng.bytes(n);
    }
    let mut bytes = described(rng, n).build();
    match rng.below(4) {
        0 => {
            let keep = rng.below(bytes.len() + 1);
            bytes.truncate(keep);
        }
        1 => {
            for _ in 0..=rng.below(4) {
                let at = rng.below(bytes.len().min(64));
                if let Some(byte) = bytes.get_mut(at) {
                    *byte = rng.next_u64() as u8;
                }
            }
        }
        _ => {}
    }
    bytes
}

fn described(rng: &mut Rng, payload: usize) -> PacketBuilder {
    let ip = |rng: &mut Rng| -> [u8; 4] {
        match rng.below(6) {
            0 => (rng.next_u64() as u32).to_be_bytes(),
            1 => *rng.pick(&[[0; 4], [255; 4], [127, 0, 0, 1], [224, 0, 0, 5], [169, 254, 1, 1]]),
            _ => [10, 0, rng.below(3) as u8, rng.below(4) as u8],
        }
    };
    let mac = |rng: &mut Rng| [0x02, 0xfe, 0, 0, 0, rng.below(4) as u8];
    let (src, dst) = (ip(rng), ip(rng));
    let mut packet = match rng.below(8) {
        0..=3 => PacketBuilder::ethernet(mac(rng), mac(rng)).ip4(src, dst),
        4 => PacketBuilder::ethernet(mac(rng), [255; 6]).ip4(src, dst),
        5 => PacketBuilder::ethernet(mac(rng), mac(rng)).vlan(rng.below(4096) as u16).ip4(src, dst),
        6 => return PacketBuilder::arp_request(mac(rng), src, dst),
        _ => PacketBuilder::raw().ip4(src, dst),
    };
    let port = |rng: &mut Rng| *rng.pick(&[0u16, 7, 53, 67, 179, 4500, 65_535]);
    packet = match rng.below(6) {
        0 => packet.tcp(port(rng), port(rng), TcpFlags(rng.next_u64() as u8)),
        1 => packet.icmp_echo_request(1, 2),
        2 => packet.icmp_echo_reply(1, 2),
        3 => packet.protocol(IpProtocol(rng.next_u64() as u8)),
        _ => packet.udp(port(rng), port(rng)),
    };
    packet = packet.payload_len(payload).ttl(*rng.pick(&[0, 1, 2, 64, 255]));
    match rng.below(10) {
        0 => packet.ip_total_len(rng.next_u64() as u16),
        1 => packet.ihl(rng.below(16) as u8),
        2 => packet.ip_version(rng.below(16) as u8),
        3 => packet.ip_checksum(rng.next_u64() as u16),
        4 => packet.udp_len(rng.next_u64() as u16),
        5 => packet.l4_checksum(rng.next_u64() as u16),
        6 => packet.dont_fragment(),
        7 => {
            let n = rng.below(41);
            let options = rng.bytes(n);
            packet.options(&options)
        }
        8 => packet.fragment(rng.next_u64() as u16, shoal_wire::packet::Fragment::More),
        _ => packet,
    }
}
