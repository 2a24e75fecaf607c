//! The router's side of a call, played by hand.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::ffi::CStr;
use std::ptr;

use shoal_plugin_sdk::{Call, Counter, Feature, Level, Next, Node, Packet, Plugin, abi, export, log};

/// The first byte says what is done.
struct Act;

impl Node for Act {
    const NAME: &'static str = "act";
    const NEXT: &'static [&'static str] = &["first", "second"];
    const COUNTERS: &'static [Counter] = &[Counter::warn("seen", "seen"), Counter::error("bad", "bad")];
    const FEATURES: &'static [Feature] = &[Feature::on("arc").before(&["a"]).after(&["b", "c"])];

    fn packet(&self, packet: &mut Packet<'_>, call: &mut Call<'_>) -> Next {
        call.count(0, 1);
        call.count(2, 1);
        assert_eq!((call.thread(), call.now()), (3, 77));
        let first = packet.data()[0];
        match first {
            0 => return Next::Node(1),
            1 => packet.pull(2).unwrap(),
            2 => packet.push(8).unwrap(),
            3 => packet.put(4).unwrap().fill(9),
            4 => packet.truncate(1).unwrap(),
            5 => {
                assert!(
                    packet.pull(11).is_none() && packet.push(17).is_none() && packet.truncate(11).is_none()
                );
                assert!(packet.put(packet.tailroom() + 1).is_none() && packet.pull(usize::MAX).is_none());
                assert_eq!((packet.headroom(), packet.tailroom(), packet.total_len()), (16, 38, 10));
            }
            6 => return Next::Drop(1),
            7 => panic!("a test"),
            8 => {
                assert!(packet.is_chained() && packet.put(1).is_none() && packet.truncate(1).is_none());
                assert_eq!((packet.total_len(), packet.network()), (15, Some(4)));
                packet.pull(5).unwrap();
                assert_eq!(packet.network(), None);
            }
            _ => {}
        }
        packet.scratch()[7] = u64::from(first);
        Next::Feature
    }

    fn trace(&self, packet: &Packet<'_>) -> Option<String> {
        Some(format!("saw {}", packet.scratch_ref()[7]))
    }
}

export!(Plugin::new("test", "1", "A test").node(Act).on_start(|| {
    log(Level::Notice, "a line");
    Err("a reason".to_owned())
}));

struct Run {
    memory: Vec<[u8; 64]>,
    scratch: Vec<[u64; 8]>,
    packets: Vec<abi::Packet>,
    counts: [u64; 2],
}

fn plugin() -> &'static abi::Plugin {
    // SAFETY: the descriptor stays.
    unsafe { &*shoal_plugin_v1() }
}

fn node() -> &'static abi::Node {
    // SAFETY: as above.
    unsafe { &**plugin().nodes }
}

/// Packets of ten bytes behind 16 of headroom.
fn run(first: &[u8], rest: u32) -> Run {
    let mut memory = vec![[0u8; 64]; first.len()];
    let mut scratch = vec![[0u64; 8]; first.len()];
    let mut packets = Vec::new();
    for ((first, memory), scratch) in first.iter().zip(&mut memory).zip(&mut scratch) {
        memory[16] = *first;
        packets.push(abi::Packet {
            base: memory.as_mut_ptr(),
            scratch: scratch.as_mut_ptr(),
            start: 16,
            length: 10,
            capacity: if rest > 0 { 26 } else { 64 },
            rest,
            l3: 20,
            rx_sw_if_index: 1,
            tx_sw_if_index: 2,
            flags: abi::SHOAL_PACKET_TRACED,
            next: abi::SHOAL_NEXT_UNDECIDED,
            error: 0,
            reserved: [0; 3],
        });
    }
    let mut counts = [0; 2];
    let mut frame = abi::Frame {
        size: size_of::<abi::Frame>() as u32,
        thread: 3,
        count: packets.len() as u32,
        counters: 2,
        packets: packets.as_mut_ptr(),
        counts: counts.as_mut_ptr(),
        now: 77,
    };
    // SAFETY: what the frame points to outlives the call.
    unsafe { node().process.unwrap()(node().context, &raw mut frame) };
    Run { memory, scratch, packets, counts }
}

#[test]
fn bytes_go_where_the_node_puts_them() {
    let done = run(&[0, 1, 2, 3, 4, 5, 6, 9], 0);
    let seen: Vec<_> = done.packets.iter().map(|p| (p.start, p.length)).collect();
    assert_eq!(seen, [(16, 10), (18, 8), (8, 18), (16, 14), (16, 1), (16, 10), (16, 10), (16, 10)]);
    let next: Vec<_> = done.packets.iter().map(|p| p.next).collect();
    let f = abi::SHOAL_NEXT_FEATURE;
    assert_eq!(next, [1, f, f, f, f, f, abi::SHOAL_NEXT_DROP, f]);
    assert_eq!((done.packets[6].error, done.counts), (1, [8, 0]));
    assert_eq!(done.memory[3][26..31], [9, 9, 9, 9, 0]);
    let chained = run(&[8], 5);
    assert_eq!((chained.packets[0].start, chained.packets[0].next), (21, f));
}

#[test]
fn a_panic_leaves_the_rest_of_the_frame_undecided() {
    let done = run(&[9, 7, 9], 0);
    let next: Vec<_> = done.packets.iter().map(|p| p.next).collect();
    let undecided = abi::SHOAL_NEXT_UNDECIDED;
    assert_eq!(next, [abi::SHOAL_NEXT_FEATURE, undecided, undecided]);
    assert_eq!(run(&[], 0).counts, [0, 0]);
}

#[test]
fn a_trace_is_cut_to_the_room_there_is() {
    let done = run(&[9], 0);
    let mut text = [0u8; 32];
    let trace = node().trace.unwrap();
    // SAFETY: the packet is as the node left it, and so is its memory.
    let n = unsafe { trace(node().context, &raw const done.packets[0], text.as_mut_ptr().cast(), 32) };
    assert_eq!(&text[..n], b"saw 9");
    // SAFETY: as above.
    let n = unsafe { trace(node().context, &raw const done.packets[0], text.as_mut_ptr().cast(), 3) };
    assert_eq!((n, done.scratch.len()), (3, 1));
}

#[test]
fn the_descriptor_says_what_the_node_says() {
    // SAFETY: the descriptor's texts end and stay.
    let text = |p| unsafe { CStr::from_ptr(p) }.to_str().unwrap();
    let plugin = plugin();
    assert_eq!((plugin.size as usize, plugin.abi_major), (size_of::<abi::Plugin>(), abi::SHOAL_ABI_MAJOR));
    assert_eq!((text(plugin.name), text(plugin.version)), ("test", "1"));
    assert_eq!((text(node().name), node().next_count, node().counter_count), ("act", 2, 2));
    // SAFETY: as above.
    let feature = unsafe { &**plugin.features };
    assert_eq!((text(feature.arc), feature.before_count, feature.after_count), ("arc", 1, 2));
    // SAFETY: as above.
    assert_eq!(text(unsafe { *feature.after.add(1) }), "c");
    assert!(ptr::eq(plugin, shoal_plugin_v1()));
}

#[test]
fn a_start_that_fails_is_told() {
    unsafe extern "C" fn ignore(
        plugin: *const std::ffi::c_char,
        _: u32,
        _: *const std::ffi::c_char,
        length: usize,
    ) {
        // SAFETY: the plugin's name.
        assert_eq!(unsafe { CStr::from_ptr(plugin) }, c"test");
        assert!(length == "a line".len() || length == "a reason".len());
    }
    let host: &'static abi::Host = Box::leak(Box::new(abi::Host {
        size: size_of::<abi::Host>() as u32,
        abi_major: abi::SHOAL_ABI_MAJOR,
        abi_minor: abi::SHOAL_ABI_MINOR,
        version: c"0".as_ptr(),
        log: Some(ignore),
    }));
    // SAFETY: the table stays.
    assert_eq!(unsafe { plugin().init.unwrap()(host) }, 1);
    // SAFETY: null is allowed.
    assert_eq!(unsafe { plugin().init.unwrap()(ptr::null()) }, 1);
}
