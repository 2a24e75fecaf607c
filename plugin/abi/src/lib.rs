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
pub const SHOAL_ABI_MINOR: u16 = 2;

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

/// Most receive queues, and most transmit queues, of a device. Since 1.1.
pub const SHOAL_MAX_QUEUES: u32 = 64;
/// Bytes of a name in a `shoal_device`, the zero at its end included. Since 1.1.
pub const SHOAL_NAME_SIZE: u32 = 64;
/// `shoal_device.rx_workers`: any thread. Since 1.1.
pub const SHOAL_ANY_WORKER: u16 = 0xffff;

/// `shoal_device.flags`: it completes layer-4 checksums on the way out. Since 1.1.
pub const SHOAL_DEVICE_CHECKSUM: u32 = 1;
/// `shoal_device.flags`: it cuts large TCP packets on the way out. Since 1.1.
pub const SHOAL_DEVICE_TSO: u32 = 2;

/// `shoal_slot.flags`: the packet goes on in the next slot. Since 1.1.
pub const SHOAL_SLOT_MORE: u16 = 1;
/// `shoal_slot.flags` of a packet's first slot: its layer-4 checksum was verified. Since 1.1.
pub const SHOAL_SLOT_CHECKSUM_GOOD: u16 = 2;
/// `shoal_slot.flags` of a packet's first slot: its layer-4 checksum holds the pseudo-header's sum only; it runs from
/// `checksum_start` and lies `checksum_offset` bytes behind that. Since 1.1.
pub const SHOAL_SLOT_CHECKSUM_LEFT: u16 = 4;

/// `shoal_slot.gso`: an ordinary packet. Since 1.1.
pub const SHOAL_GSO_NONE: u16 = 0;
/// `shoal_slot.gso`: TCP over IPv4, to be cut into pieces of `gso_size` bytes of payload. Since 1.1.
pub const SHOAL_GSO_TCP4: u16 = 1;
/// `shoal_slot.gso`: TCP over IPv6, likewise. Since 1.1.
pub const SHOAL_GSO_TCP6: u16 = 4;

/// `shoal_driver.set`: the device sends and receives (1) or does not (0). Since 1.1.
pub const SHOAL_SET_ADMIN: u32 = 1;
/// `shoal_driver.set`: frames for all stations (1) or for its own (0). Since 1.1.
pub const SHOAL_SET_PROMISCUOUS: u32 = 2;
/// `shoal_driver.set`: the largest packet without its Ethernet header. Since 1.1.
pub const SHOAL_SET_MTU: u32 = 3;
/// `shoal_driver.set`: the MAC address, its first byte being the highest of six. Since 1.1.
pub const SHOAL_SET_MAC: u32 = 4;

/// `shoal_driver.arm`: the descriptor becomes readable when packets come. Since 1.2.
pub const SHOAL_ARMED: c_int = 0;
/// `shoal_driver.arm`: there are packets already. Since 1.2.
pub const SHOAL_ARM_PACKETS: c_int = 1;

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

/// Room for what a function answers: a message of failure, or what a command prints. Since 1.1.
#[repr(C)]
#[derive(Debug)]
pub struct Text {
    /// Bytes of this structure.
    pub size: u32,
    /// Bytes at `bytes`.
    pub room: u32,
    /// How many of them were written; 0 at first.
    pub length: u32,
    /// Zero.
    pub reserved: u32,
    /// UTF-8, without a zero at its end.
    pub bytes: *mut c_char,
}

/// A place for bytes of a packet: the whole packet, or a part of it. 48 bytes in all of major version 1. Since 1.1.
#[repr(C)]
#[derive(Debug, Clone, Copy)]
pub struct Slot {
    /// The bytes. On receive `capacity` bytes of a buffer, to be written; on send `length` bytes, to be read.
    pub bytes: *mut u8,
    /// Zero. A later version may name the buffer here, for devices that keep it.
    pub token: u64,
    /// Bytes there are.
    pub capacity: u32,
    /// Bytes that are the packet's: set by the plugin on receive, by the router on send.
    pub length: u32,
    /// `SHOAL_SLOT_*`.
    pub flags: u16,
    /// Of a packet's first slot: `SHOAL_GSO_*`.
    pub gso: u16,
    /// Of a packet's first slot: bytes of payload in each piece.
    pub gso_size: u16,
    /// Of a packet's first slot: bytes of all headers of a packet that is to be cut.
    pub header_length: u16,
    /// Of a packet's first slot: where its checksum begins, from the packet's front.
    pub checksum_start: u16,
    /// Of a packet's first slot: where it lies, from `checksum_start`.
    pub checksum_offset: u16,
    /// Zero.
    pub reserved: [u32; 3],
}

/// Packets between the router and a queue of a device, on one thread. Since 1.1.
#[repr(C)]
#[derive(Debug)]
pub struct Burst {
    /// Bytes of this structure.
    pub size: u32,
    /// The calling thread.
    pub thread: u32,
    /// The device's number.
    pub device: u32,
    /// The queue, from 0.
    pub queue: u32,
    /// Slots, at most `SHOAL_FRAME_SIZE`.
    pub count: u32,
    /// Receive: slots that were filled, from the first on. Send: packets that the device has taken, from the first on.
    pub used: u32,
    /// Receive: packets that were lost for lack of slots. Send: of the packets taken, those the device refused for what
    /// they are.
    pub lost: u32,
    /// Zero.
    pub reserved: u32,
    /// The slots.
    pub slots: *mut Slot,
}

/// A device as it is when it becomes an interface. Since 1.1.
#[repr(C)]
#[derive(Debug)]
pub struct Device {
    /// Bytes of this structure.
    pub size: u32,
    /// The plugin's number of it, which names it in all calls until `close`.
    pub number: u32,
    /// `SHOAL_DEVICE_*`.
    pub flags: u32,
    /// The largest packet without its Ethernet header.
    pub mtu: u32,
    /// Receive queues, at most `SHOAL_MAX_QUEUES`.
    pub rx_queues: u32,
    /// Transmit queues, at most `SHOAL_MAX_QUEUES`.
    pub tx_queues: u32,
    /// The MAC address.
    pub mac: [u8; 6],
    /// The worker that polls each receive queue, or `SHOAL_ANY_WORKER`.
    pub rx_workers: [u16; 64],
    /// The interface's name: letters, digits, `-`, `_`, `.` and `/`. Ends with a zero.
    pub name: [c_char; 64],
    /// What it is: a line of `show hardware-interfaces`. Ends with a zero.
    pub kind: [c_char; 64],
}

/// What a device says of its link. Since 1.1.
#[repr(C)]
#[derive(Debug)]
pub struct Link {
    /// Bytes of this structure.
    pub size: u32,
    /// The other end is there: 1; else 0.
    pub up: u32,
    /// Mbit/s; 0 when unknown.
    pub speed: u32,
    /// The device has gone and does not come back: 1; else 0.
    pub gone: u32,
    /// Packets that the device itself lost for lack of descriptors, since it was opened.
    pub missed: u64,
}

/// A kind of devices that a plugin brings. Since 1.1.
///
/// Functions of the main thread: `start`, `open`, `attach`, `close`, `set`, `link`, `describe`. They return 0, or
/// something else and say why in `why`. Functions of all threads: `poll`, `receive`, `send`, `arm`, `disarm`; calls for one
/// queue do not overlap, but those of other queues and of the main thread do. None but `start`, `open` and `attach` may wait
/// long.
///
/// A thread that has nothing to do sleeps until a descriptor is readable. Where a driver has none, it looks once in a
/// millisecond.
#[repr(C)]
#[derive(Debug)]
pub struct Driver {
    /// Bytes of this structure.
    pub size: u32,
    /// Zero.
    pub reserved: u32,
    /// Its name, which is the first word of its commands, the stanza of the start-up file with its settings, and in the
    /// name of its input node: letters, digits, `-` and `_`.
    pub name: *const c_char,
    /// Given to all functions.
    pub context: *mut c_void,
    /// Called once, when the graph is built. `settings` is the inside of the stanza, null when there is none; `count`
    /// is set to the number of devices to be opened.
    pub start: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            settings: *const c_char,
            length: usize,
            count: *mut u32,
            why: *mut Text,
        ) -> c_int,
    >,
    /// Opens a device of the start-up file, by its position among them.
    pub open: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            position: u32,
            device: *mut Device,
            why: *mut Text,
        ) -> c_int,
    >,
    /// Opens a device that an operator names: `NAME attach WORDS`.
    pub attach: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            words: *const c_char,
            length: usize,
            device: *mut Device,
            why: *mut Text,
        ) -> c_int,
    >,
    /// Closes a device: its queues are not called any more.
    pub close: Option<unsafe extern "C" fn(context: *mut c_void, device: u32)>,
    /// Changes a device while its queues are called: `SHOAL_SET_*`.
    pub set: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            device: u32,
            what: u32,
            value: u64,
            why: *mut Text,
        ) -> c_int,
    >,
    /// Tells of a device's link, some times a second.
    pub link: Option<unsafe extern "C" fn(context: *mut c_void, device: u32, link: *mut Link) -> c_int>,
    /// Lines for `show hardware-interfaces`; with `detail` 1, those that only `detail` shows.
    pub describe: Option<
        unsafe extern "C" fn(context: *mut c_void, device: u32, detail: u32, text: *mut Text) -> c_int,
    >,
    /// Takes packets from a queue of the device and keeps them; returns how many slots `receive` needs for them, at
    /// most `SHOAL_FRAME_SIZE`; 0 when there are none.
    pub poll: Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: u32, thread: u32) -> u32>,
    /// Copies what `poll` has taken into slots: as many as `poll` returned or, when buffers are short, fewer, or none;
    /// what does not fit is given up.
    pub receive: Option<unsafe extern "C" fn(context: *mut c_void, burst: *mut Burst)>,
    /// Copies packets out of slots and sends them.
    pub send: Option<unsafe extern "C" fn(context: *mut c_void, burst: *mut Burst)>,
    /// A descriptor for poll(2) that tells of packets of a receive queue, the same until `close`; negative when the queue
    /// has none. Asked on the main thread when the device was opened, and again while there is none. The router waits on
    /// a copy and never reads it. Null, as are the next two, when no device has one. A driver of 1.1 ends before this.
    pub wait: Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: u32) -> c_int>,
    /// Before the queue's thread sleeps: from here on packets make the descriptor readable. `SHOAL_ARMED`; or
    /// `SHOAL_ARM_PACKETS`, when some had come before, which `poll` tells of; anything else when that cannot be now.
    /// Since 1.2.
    pub arm:
        Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: u32, thread: u32) -> c_int>,
    /// After the sleep that `arm` came before, and before `poll`: packets wake no thread from here on, and the
    /// descriptor is not readable any more. Not called when `arm` could not. Since 1.2.
    pub disarm: Option<unsafe extern "C" fn(context: *mut c_void, device: u32, queue: u32, thread: u32)>,
}

/// A command of the CLI. Since 1.1.
#[repr(C)]
#[derive(Debug)]
pub struct Command {
    /// Bytes of this structure.
    pub size: u32,
    /// Whether words may follow: 1; else 0.
    pub words: u32,
    /// Its words: `show example state`.
    pub path: *const c_char,
    /// One line of help.
    pub help: *const c_char,
    /// Given to `run`.
    pub context: *mut c_void,
    /// Does it, on the main thread: 0, and what is to be printed; or something else, and why not.
    pub run: Option<
        unsafe extern "C" fn(
            context: *mut c_void,
            words: *const c_char,
            length: usize,
            answer: *mut Text,
        ) -> c_int,
    >,
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
    /// Entries of `drivers`. A plugin of 1.0 ends before this.
    pub driver_count: u32,
    /// Entries of `commands`. Since 1.1.
    pub command_count: u32,
    /// Its drivers. Since 1.1.
    pub drivers: *const *const Driver,
    /// Its commands. Since 1.1.
    pub commands: *const *const Command,
}

/// The name of the function that a plugin exports.
pub const SYMBOL: &str = "shoal_plugin_v1";

/// The type of the function that a plugin exports; null is no plugin.
pub type Entry = unsafe extern "C" fn() -> *const Plugin;

const _: () = assert!(size_of::<Packet>() == 64, "the stride of frames");
const _: () = assert!(size_of::<Slot>() == 48, "the stride of bursts");
