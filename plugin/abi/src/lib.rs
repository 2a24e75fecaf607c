//! The C ABI between the router and its plugins: types and numbers, no code.
//!
//! `plugin/include/shoal_plugin.h` is generated from this file. What stands here is a promise: within a major version
//! structures only grow at their end, names and numbers keep their meaning, and what is not used is zero.
//!
//! A plugin is a shared library that exports one function, [`SYMBOL`], of type [`Entry`].
#![no_std]

use core::ffi::{c_char, c_int, c_void};

/// The ABI's major version. A plugin of another one is refused.
pub const SHOAL_ABI_MAJOR: u16 = 1;
/// The ABI's minor version: it counts what was appended. A plugin of a later one is refused, of an earlier one not.
pub const SHOAL_ABI_MINOR: u16 = 0;

/// Most packets of a frame.
pub const SHOAL_FRAME_SIZE: u32 = 256;
/// Most threads of a router: `shoal_frame.thread` is smaller.
pub const SHOAL_MAX_THREADS: u32 = 64;
/// Most bytes of what a node says of a packet in a trace.
pub const SHOAL_TRACE_SIZE: u32 = 512;

/// `shoal_packet.next`: nothing was decided; the router drops and counts such a packet.
pub const SHOAL_NEXT_UNDECIDED: u16 = 0xffff;
/// `shoal_packet.next`: to the next feature of the arc the packet is on, or to the arc's end.
pub const SHOAL_NEXT_FEATURE: u16 = 0xfffe;
/// `shoal_packet.next`: dropped; `shoal_packet.error` says which counter tells why.
pub const SHOAL_NEXT_DROP: u16 = 0xfffd;

/// `shoal_packet.flags`: the packet is traced.
pub const SHOAL_PACKET_TRACED: u32 = 1;
/// `shoal_packet.flags`: the layer-4 checksum holds the pseudo-header's sum only and is completed on the way out.
pub const SHOAL_PACKET_CHECKSUM_LEFT: u32 = 2;
/// `shoal_packet.flags`: the packet is larger than the wire allows and is cut on the way out.
pub const SHOAL_PACKET_GSO: u32 = 4;

/// `shoal_counter.severity`: packets were lost.
pub const SHOAL_ERROR: u32 = 0;
/// `shoal_counter.severity`: something an operator may want to look at.
pub const SHOAL_WARN: u32 = 1;
/// `shoal_counter.severity`: ordinary life.
pub const SHOAL_INFO: u32 = 2;

/// `shoal_host.log`: a level.
pub const SHOAL_LOG_ERR: u32 = 3;
/// `shoal_host.log`: a level.
pub const SHOAL_LOG_WARN: u32 = 4;
/// `shoal_host.log`: a level.
pub const SHOAL_LOG_NOTICE: u32 = 5;
/// `shoal_host.log`: a level.
pub const SHOAL_LOG_DEBUG: u32 = 7;

/// One packet of a frame: what a node reads and what it decides. 64 bytes in all of major version 1.
///
/// The first segment's bytes are `base[start]` to `base[start + length - 1]`. To take a header off, raise `start` and
/// lower `length`; to put one in front, the other way round; to append or trim, change `length`. `start + length` may
/// not exceed `capacity`. The router checks both and drops a packet that lies.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Packet {
    /// The memory of the first segment, headroom included: `capacity` bytes.
    pub base: *mut u8,
    /// Eight words that go with the packet as far as the next node that uses them; they hold anything at first.
    pub scratch: *mut u64,
    /// Where the packet's bytes begin.
    pub start: u32,
    /// How many there are in the first segment.
    pub length: u32,
    /// Bytes of `base`. Of a packet with `rest`, the end of its first segment, which must stay where it is.
    pub capacity: u32,
    /// Bytes in later segments. For reading.
    pub rest: u32,
    /// Where the network header begins in `base`, on arcs behind `ethernet-input`. For reading.
    pub l3: u32,
    /// The interface it came in by. For reading.
    pub rx_sw_if_index: u32,
    /// The interface it goes out by, on output arcs. For reading.
    pub tx_sw_if_index: u32,
    /// `SHOAL_PACKET_*`. For reading.
    pub flags: u32,
    /// Where it goes: a position in the node's `next_nodes`, or `SHOAL_NEXT_*`. `SHOAL_NEXT_UNDECIDED` at first.
    pub next: u16,
    /// With `SHOAL_NEXT_DROP`: a position in the node's `counters`.
    pub error: u16,
    /// Zero.
    pub reserved: [u32; 3],
}

/// Packets for one node, on one thread.
#[repr(C)]
#[derive(Debug)]
pub struct Frame {
    /// Bytes of this structure.
    pub size: u32,
    /// The calling thread: 0 is the main thread. A thread's calls do not overlap; calls of different threads do.
    pub thread: u32,
    /// Packets, at most `SHOAL_FRAME_SIZE`.
    pub count: u32,
    /// Entries of `counts`: the node's counters.
    pub counters: u32,
    /// The packets.
    pub packets: *mut Packet,
    /// What to add to the node's counters, by their position; zero at first. Drops are counted by the router.
    pub counts: *mut u64,
    /// Nanoseconds on the router's clock, which starts anywhere.
    pub now: u64,
}

/// What the router offers a plugin. Valid until the process ends.
#[repr(C)]
#[derive(Debug)]
pub struct Host {
    /// Bytes of this structure.
    pub size: u32,
    /// The router's `SHOAL_ABI_MAJOR`.
    pub abi_major: u16,
    /// The router's `SHOAL_ABI_MINOR`.
    pub abi_minor: u16,
    /// The router's version.
    pub version: *const c_char,
    /// Writes a line into the router's log, with the plugin's name in front. `plugin` is the plugin's name. From any
    /// thread, but not for each packet.
    pub log:
        Option<unsafe extern "C" fn(plugin: *const c_char, level: u32, text: *const c_char, length: usize)>,
}

/// One counter of a node: `show errors` and `/err/NODE/NAME` of the stats segment.
#[repr(C)]
#[derive(Debug)]
pub struct Counter {
    /// Bytes of this structure.
    pub size: u32,
    /// `SHOAL_ERROR`, `SHOAL_WARN` or `SHOAL_INFO`.
    pub severity: u32,
    /// Its name: letters, digits, `-` and `_`.
    pub name: *const c_char,
    /// What an operator reads.
    pub description: *const c_char,
}

/// One node.
#[repr(C)]
#[derive(Debug)]
pub struct Node {
    /// Bytes of this structure.
    pub size: u32,
    /// Entries of `next_nodes`.
    pub next_count: u32,
    /// Entries of `counters`.
    pub counter_count: u32,
    /// Zero.
    pub reserved: u32,
    /// Its name in the graph: letters, digits, `-`, `_` and `.`.
    pub name: *const c_char,
    /// Names of the nodes its packets go to.
    pub next_nodes: *const *const c_char,
    /// What it counts.
    pub counters: *const *const Counter,
    /// Given to `process` and `trace`.
    pub context: *mut c_void,
    /// Decides about each packet of a frame. It may not wait, nor keep pointers of the frame.
    pub process: Option<unsafe extern "C" fn(context: *mut c_void, frame: *mut Frame)>,
    /// Says something about a traced packet, after `process`: writes at most `room` bytes and returns how many. May be
    /// null.
    pub trace: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            packet: *const Packet,
            text: *mut c_char,
            room: usize,
        ) -> usize,
    >,
}

/// A node that joins a feature arc; `set interface feature IF NODE arc ARC` enables it.
#[repr(C)]
#[derive(Debug)]
pub struct Feature {
    /// Bytes of this structure.
    pub size: u32,
    /// Entries of `before`.
    pub before_count: u32,
    /// Entries of `after`.
    pub after_count: u32,
    /// Zero.
    pub reserved: u32,
    /// The arc: `ip4-unicast`.
    pub arc: *const c_char,
    /// The node, one of this plugin's.
    pub node: *const c_char,
    /// Features it comes before, where they are part of the router.
    pub before: *const *const c_char,
    /// Features it comes after.
    pub after: *const *const c_char,
}

/// What a plugin is. It and all it points to must stay as they are until the process ends.
#[repr(C)]
#[derive(Debug)]
pub struct Plugin {
    /// Bytes of this structure.
    pub size: u32,
    /// `SHOAL_ABI_MAJOR` of the header it was built with.
    pub abi_major: u16,
    /// `SHOAL_ABI_MINOR` of the header it was built with.
    pub abi_minor: u16,
    /// Its name: letters, digits, `-` and `_`.
    pub name: *const c_char,
    /// Its version, in its own words.
    pub version: *const c_char,
    /// One line for `show plugins`.
    pub description: *const c_char,
    /// Called once on the main thread before the graph is built; 0 is success, anything else refuses
    /// the plugin. May be null.
    pub init: Option<unsafe extern "C" fn(host: *const Host) -> c_int>,
    /// Entries of `nodes`.
    pub node_count: u32,
    /// Entries of `features`.
    pub feature_count: u32,
    /// Its nodes.
    pub nodes: *const *const Node,
    /// Their features.
    pub features: *const *const Feature,
}

/// The name of the function that a plugin exports.
pub const SYMBOL: &str = "shoal_plugin_v1";

/// The type of the function that a plugin exports; null is no plugin.
pub type Entry = unsafe extern "C" fn() -> *const Plugin;

const _: () = assert!(size_of::<Packet>() == 64, "the stride of frames");
