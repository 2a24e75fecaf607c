// The C ABI between Shoal and its plugins. Apache-2.0.
// Generated from plugin/abi by `make gen`: do not edit. docs/guide/plugins.md tells how to use it.

#ifndef SHOAL_PLUGIN_H
#define SHOAL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

// The ABI's major version. A plugin of another one is refused.
#define SHOAL_ABI_MAJOR 1

// The ABI's minor version: it counts what was appended. A plugin of a later one is refused, of an earlier one not.
#define SHOAL_ABI_MINOR 2

// Most packets of a frame.
#define SHOAL_FRAME_SIZE 256

// Most threads of a router: `shoal_frame.thread` is smaller.
#define SHOAL_MAX_THREADS 64

// Most bytes of what a node says of a packet in a trace.
#define SHOAL_TRACE_SIZE 512

// `shoal_packet.next`: nothing was decided; the router drops and counts such a packet.
#define SHOAL_NEXT_UNDECIDED 65535

// `shoal_packet.next`: to the next feature of the arc the packet is on, or to the arc's end.
#define SHOAL_NEXT_FEATURE 65534

// `shoal_packet.next`: dropped; `shoal_packet.error` says which counter tells why.
#define SHOAL_NEXT_DROP 65533

// `shoal_packet.flags`: the packet is traced.
#define SHOAL_PACKET_TRACED 1

// `shoal_packet.flags`: the layer-4 checksum holds the pseudo-header's sum only and is completed on the way out.
#define SHOAL_PACKET_CHECKSUM_LEFT 2

// `shoal_packet.flags`: the packet is larger than the wire allows and is cut on the way out.
#define SHOAL_PACKET_GSO 4

// `shoal_counter.severity`: packets were lost.
#define SHOAL_ERROR 0

// `shoal_counter.severity`: something an operator may want to look at.
#define SHOAL_WARN 1

// `shoal_counter.severity`: ordinary life.
#define SHOAL_INFO 2

// Most receive queues, and most transmit queues, of a device. Since 1.1.
#define SHOAL_MAX_QUEUES 64

// Bytes of a name in a `shoal_device`, the zero at its end included. Since 1.1.
#define SHOAL_NAME_SIZE 64

// `shoal_device.rx_workers`: any thread. Since 1.1.
#define SHOAL_ANY_WORKER 65535

// `shoal_device.flags`: it completes layer-4 checksums on the way out. Since 1.1.
#define SHOAL_DEVICE_CHECKSUM 1

// `shoal_device.flags`: it cuts large TCP packets on the way out. Since 1.1.
#define SHOAL_DEVICE_TSO 2

// `shoal_slot.flags`: the packet goes on in the next slot. Since 1.1.
#define SHOAL_SLOT_MORE 1

// `shoal_slot.flags` of a packet's first slot: its layer-4 checksum was verified. Since 1.1.
#define SHOAL_SLOT_CHECKSUM_GOOD 2

// `shoal_slot.flags` of a packet's first slot: its layer-4 checksum holds the pseudo-header's sum only; it runs from
// `checksum_start` and lies `checksum_offset` bytes behind that. Since 1.1.
#define SHOAL_SLOT_CHECKSUM_LEFT 4

// `shoal_slot.gso`: an ordinary packet. Since 1.1.
#define SHOAL_GSO_NONE 0

// `shoal_slot.gso`: TCP over IPv4, to be cut into pieces of `gso_size` bytes of payload. Since 1.1.
#define SHOAL_GSO_TCP4 1

// `shoal_slot.gso`: TCP over IPv6, likewise. Since 1.1.
#define SHOAL_GSO_TCP6 4

// `shoal_driver.set`: the device sends and receives (1) or does not (0). Since 1.1.
#define SHOAL_SET_ADMIN 1

// `shoal_driver.set`: frames for all stations (1) or for its own (0). Since 1.1.
#define SHOAL_SET_PROMISCUOUS 2

// `shoal_driver.set`: the largest packet without its Ethernet header. Since 1.1.
#define SHOAL_SET_MTU 3

// `shoal_driver.set`: the MAC address, its first byte being the highest of six. Since 1.1.
#define SHOAL_SET_MAC 4

// `shoal_driver.arm`: the descriptor becomes readable when packets come. Since 1.2.
#define SHOAL_ARMED 0

// `shoal_driver.arm`: there are packets already. Since 1.2.
#define SHOAL_ARM_PACKETS 1

// `shoal_host.log`: a level.
#define SHOAL_LOG_ERR 3

// `shoal_host.log`: a level.
#define SHOAL_LOG_WARN 4

// `shoal_host.log`: a level.
#define SHOAL_LOG_NOTICE 5

// `shoal_host.log`: a level.
#define SHOAL_LOG_DEBUG 7

// One packet of a frame: what a node reads and what it decides. 64 bytes in all of major version 1.
//
// The first segment's bytes are `base[start]` to `base[start + length - 1]`. To take a header off, raise `start` and
// lower `length`; to put one in front, the other way round; to append or trim, change `length`. `start + length` may
// not exceed `capacity`. The router checks both and drops a packet that lies.
struct shoal_packet {
  // The memory of the first segment, headroom included: `capacity` bytes.
  uint8_t *base;
  // Eight words that go with the packet as far as the next node that uses them; they hold anything at first.
  uint64_t *scratch;
  // Where the packet's bytes begin.
  uint32_t start;
  // How many there are in the first segment.
  uint32_t length;
  // Bytes of `base`. Of a packet with `rest`, the end of its first segment, which must stay where it is.
  uint32_t capacity;
  // Bytes in later segments. For reading.
  uint32_t rest;
  // Where the network header begins in `base`, on arcs behind `ethernet-input`. For reading.
  uint32_t l3;
  // The interface it came in by. For reading.
  uint32_t rx_sw_if_index;
  // The interface it goes out by, on output arcs. For reading.
  uint32_t tx_sw_if_index;
  // `SHOAL_PACKET_*`. For reading.
  uint32_t flags;
  // Where it goes: a position in the node's `next_nodes`, or `SHOAL_NEXT_*`. `SHOAL_NEXT_UNDECIDED` at first.
  uint16_t next;
  // With `SHOAL_NEXT_DROP`: a position in the node's `counters`.
  uint16_t error;
  // Zero.
  uint32_t reserved[3];
};

// Packets for one node, on one thread.
struct shoal_frame {
  // Bytes of this structure.
  uint32_t size;
  // The calling thread: 0 is the main thread. A thread's calls do not overlap; calls of different threads do.
  uint32_t thread;
  // Packets, at most `SHOAL_FRAME_SIZE`.
  uint32_t count;
  // Entries of `counts`: the node's counters.
  uint32_t counters;
  // The packets.
  struct shoal_packet *packets;
  // What to add to the node's counters, by their position; zero at first. Drops are counted by the router.
  uint64_t *counts;
  // Nanoseconds on the router's clock, which starts anywhere.
  uint64_t now;
};

// What the router offers a plugin. Valid until the process ends.
struct shoal_host {
  // Bytes of this structure.
  uint32_t size;
  // The router's `SHOAL_ABI_MAJOR`.
  uint16_t abi_major;
  // The router's `SHOAL_ABI_MINOR`.
  uint16_t abi_minor;
  // The router's version.
  const char *version;
  // Writes a line into the router's log, with the plugin's name in front. `plugin` is the plugin's name. From any
  // thread, but not for each packet.
  void (*log)(const char *plugin, uint32_t level, const char *text, size_t length);
};

// One counter of a node: `show errors` and `/err/NODE/NAME` of the stats segment.
struct shoal_counter {
  // Bytes of this structure.
  uint32_t size;
  // `SHOAL_ERROR`, `SHOAL_WARN` or `SHOAL_INFO`.
  uint32_t severity;
  // Its name: letters, digits, `-` and `_`.
  const char *name;
  // What an operator reads.
  const char *description;
};

// One node.
struct shoal_node {
  // Bytes of this structure.
  uint32_t size;
  // Entries of `next_nodes`.
  uint32_t next_count;
  // Entries of `counters`.
  uint32_t counter_count;
  // Zero.
  uint32_t reserved;
  // Its name in the graph: letters, digits, `-`, `_` and `.`.
  const char *name;
  // Names of the nodes its packets go to.
  const char *const *next_nodes;
  // What it counts.
  const struct shoal_counter *const *counters;
  // Given to `process` and `trace`.
  void *context;
  // Decides about each packet of a frame. It may not wait, nor keep pointers of the frame.
  void (*process)(void *context, struct shoal_frame *frame);
  // Says something about a traced packet, after `process`: writes at most `room` bytes and returns how many. May be
  // null.
  size_t (*trace)(void *context, const struct shoal_packet *packet, char *text, size_t room);
};

// A node that joins a feature arc; `set interface feature IF NODE arc ARC` enables it.
struct shoal_feature {
  // Bytes of this structure.
  uint32_t size;
  // Entries of `before`.
  uint32_t before_count;
  // Entries of `after`.
  uint32_t after_count;
  // Zero.
  uint32_t reserved;
  // The arc: `ip4-unicast`.
  const char *arc;
  // The node, one of this plugin's.
  const char *node;
  // Features it comes before, where they are part of the router.
  const char *const *before;
  // Features it comes after.
  const char *const *after;
};

// Room for what a function answers: a message of failure, or what a command prints. Since 1.1.
struct shoal_text {
  // Bytes of this structure.
  uint32_t size;
  // Bytes at `bytes`.
  uint32_t room;
  // How many of them were written; 0 at first.
  uint32_t length;
  // Zero.
  uint32_t reserved;
  // UTF-8, without a zero at its end.
  char *bytes;
};

// A place for bytes of a packet: the whole packet, or a part of it. 48 bytes in all of major version 1. Since 1.1.
struct shoal_slot {
  // The bytes. On receive `capacity` bytes of a buffer, to be written; on send `length` bytes, to be read.
  uint8_t *bytes;
  // Zero. A later version may name the buffer here, for devices that keep it.
  uint64_t token;
  // Bytes there are.
  uint32_t capacity;
  // Bytes that are the packet's: set by the plugin on receive, by the router on send.
  uint32_t length;
  // `SHOAL_SLOT_*`.
  uint16_t flags;
  // Of a packet's first slot: `SHOAL_GSO_*`.
  uint16_t gso;
  // Of a packet's first slot: bytes of payload in each piece.
  uint16_t gso_size;
  // Of a packet's first slot: bytes of all headers of a packet that is to be cut.
  uint16_t header_length;
  // Of a packet's first slot: where its checksum begins, from the packet's front.
  uint16_t checksum_start;
  // Of a packet's first slot: where it lies, from `checksum_start`.
  uint16_t checksum_offset;
  // Zero.
  uint32_t reserved[3];
};

// Packets between the router and a queue of a device, on one thread. Since 1.1.
struct shoal_burst {
  // Bytes of this structure.
  uint32_t size;
  // The calling thread.
  uint32_t thread;
  // The device's number.
  uint32_t device;
  // The queue, from 0.
  uint32_t queue;
  // Slots, at most `SHOAL_FRAME_SIZE`.
  uint32_t count;
  // Receive: slots that were filled, from the first on. Send: packets that the device has taken, from the first on.
  uint32_t used;
  // Receive: packets that were lost for lack of slots. Send: of the packets taken, those the device refused for what
  // they are.
  uint32_t lost;
  // Zero.
  uint32_t reserved;
  // The slots.
  struct shoal_slot *slots;
};

// A device as it is when it becomes an interface. Since 1.1.
struct shoal_device {
  // Bytes of this structure.
  uint32_t size;
  // The plugin's number of it, which names it in all calls until `close`.
  uint32_t number;
  // `SHOAL_DEVICE_*`.
  uint32_t flags;
  // The largest packet without its Ethernet header.
  uint32_t mtu;
  // Receive queues, at most `SHOAL_MAX_QUEUES`.
  uint32_t rx_queues;
  // Transmit queues, at most `SHOAL_MAX_QUEUES`.
  uint32_t tx_queues;
  // The MAC address.
  uint8_t mac[6];
  // The worker that polls each receive queue, or `SHOAL_ANY_WORKER`.
  uint16_t rx_workers[64];
  // The interface's name: letters, digits, `-`, `_`, `.` and `/`. Ends with a zero.
  char name[64];
  // What it is: a line of `show hardware-interfaces`. Ends with a zero.
  char kind[64];
};

// What a device says of its link. Since 1.1.
struct shoal_link {
  // Bytes of this structure.
  uint32_t size;
  // The other end is there: 1; else 0.
  uint32_t up;
  // Mbit/s; 0 when unknown.
  uint32_t speed;
  // The device has gone and does not come back: 1; else 0.
  uint32_t gone;
  // Packets that the device itself lost for lack of descriptors, since it was opened.
  uint64_t missed;
};

// A kind of devices that a plugin brings. Since 1.1.
//
// Functions of the main thread: `start`, `open`, `attach`, `close`, `set`, `link`, `describe`. They return 0, or
// something else and say why in `why`. Functions of all threads: `poll`, `receive`, `send`, `arm`, `disarm`; calls for one
// queue do not overlap, but those of other queues and of the main thread do. None but `start`, `open` and `attach` may wait
// long.
//
// A thread that has nothing to do sleeps until a descriptor is readable. Where a driver has none, it looks once in a
// millisecond.
struct shoal_driver {
  // Bytes of this structure.
  uint32_t size;
  // Zero.
  uint32_t reserved;
  // Its name, which is the first word of its commands, the stanza of the start-up file with its settings, and in the
  // name of its input node: letters, digits, `-` and `_`.
  const char *name;
  // Given to all functions.
  void *context;
  // Called once, when the graph is built. `settings` is the inside of the stanza, null when there is none; `count`
  // is set to the number of devices to be opened.
  int (*start)(void *context,
               const char *settings,
               size_t length,
               uint32_t *count,
               struct shoal_text *why);
  // Opens a device of the start-up file, by its position among them.
  int (*open)(void *context, uint32_t position, struct shoal_device *device, struct shoal_text *why);
  // Opens a device that an operator names: `NAME attach WORDS`.
  int (*attach)(void *context,
                const char *words,
                size_t length,
                struct shoal_device *device,
                struct shoal_text *why);
  // Closes a device: its queues are not called any more.
  void (*close)(void *context, uint32_t device);
  // Changes a device while its queues are called: `SHOAL_SET_*`.
  int (*set)(void *context, uint32_t device, uint32_t what, uint64_t value, struct shoal_text *why);
  // Tells of a device's link, some times a second.
  int (*link)(void *context, uint32_t device, struct shoal_link *link);
  // Lines for `show hardware-interfaces`; with `detail` 1, those that only `detail` shows.
  int (*describe)(void *context, uint32_t device, uint32_t detail, struct shoal_text *text);
  // Takes packets from a queue of the device and keeps them; returns how many slots `receive` needs for them, at
  // most `SHOAL_FRAME_SIZE`; 0 when there are none.
  uint32_t (*poll)(void *context, uint32_t device, uint32_t queue, uint32_t thread);
  // Copies what `poll` has taken into slots: as many as `poll` returned or, when buffers are short, fewer, or none;
  // what does not fit is given up.
  void (*receive)(void *context, struct shoal_burst *burst);
  // Copies packets out of slots and sends them.
  void (*send)(void *context, struct shoal_burst *burst);
  // A descriptor for poll(2) that tells of packets of a receive queue, the same until `close`; negative when the queue
  // has none. Asked on the main thread when the device was opened, and again while there is none. The router waits on
  // a copy and never reads it. Null, as are the next two, when no device has one. A driver of 1.1 ends before this.
  int (*wait)(void *context, uint32_t device, uint32_t queue);
  // Before the queue's thread sleeps: from here on packets make the descriptor readable. `SHOAL_ARMED`; or
  // `SHOAL_ARM_PACKETS`, when some had come before, which `poll` tells of; anything else when that cannot be now.
  // Since 1.2.
  int (*arm)(void *context, uint32_t device, uint32_t queue, uint32_t thread);
  // After the sleep that `arm` came before, and before `poll`: packets wake no thread from here on, and the
  // descriptor is not readable any more. Not called when `arm` could not. Since 1.2.
  void (*disarm)(void *context, uint32_t device, uint32_t queue, uint32_t thread);
};

// A command of the CLI. Since 1.1.
struct shoal_command {
  // Bytes of this structure.
  uint32_t size;
  // Whether words may follow: 1; else 0.
  uint32_t words;
  // Its words: `show example state`.
  const char *path;
  // One line of help.
  const char *help;
  // Given to `run`.
  void *context;
  // Does it, on the main thread: 0, and what is to be printed; or something else, and why not.
  int (*run)(void *context, const char *words, size_t length, struct shoal_text *answer);
};

// What a plugin is. It and all it points to must stay as they are until the process ends.
struct shoal_plugin {
  // Bytes of this structure.
  uint32_t size;
  // `SHOAL_ABI_MAJOR` of the header it was built with.
  uint16_t abi_major;
  // `SHOAL_ABI_MINOR` of the header it was built with.
  uint16_t abi_minor;
  // Its name: letters, digits, `-` and `_`.
  const char *name;
  // Its version, in its own words.
  const char *version;
  // One line for `show plugins`.
  const char *description;
  // Called once on the main thread before the graph is built; 0 is success, anything else refuses
  // the plugin. May be null.
  int (*init)(const struct shoal_host *host);
  // Entries of `nodes`.
  uint32_t node_count;
  // Entries of `features`.
  uint32_t feature_count;
  // Its nodes.
  const struct shoal_node *const *nodes;
  // Their features.
  const struct shoal_feature *const *features;
  // Entries of `drivers`. A plugin of 1.0 ends before this.
  uint32_t driver_count;
  // Entries of `commands`. Since 1.1.
  uint32_t command_count;
  // Its drivers. Since 1.1.
  const struct shoal_driver *const *drivers;
  // Its commands. Since 1.1.
  const struct shoal_command *const *commands;
};

/* The one function that a plugin exports. */
#if defined(__cplusplus)
extern "C"
#endif
    __attribute__((visibility("default"))) const struct shoal_plugin *
    shoal_plugin_v1(void);

/* Helpers: what the comments above say, checked. All return 0 when done, -1 when nothing was changed. */

/* The first byte of a packet. */
static inline uint8_t *shoal_data(const struct shoal_packet *packet) {
  return packet->base + packet->start;
}

/* Takes `bytes` off the front; with a negative number puts them in front, unset. */
static inline int shoal_advance(struct shoal_packet *packet, int32_t bytes) {
  int64_t start = (int64_t)packet->start + bytes, length = (int64_t)packet->length - bytes;
  if (start < 0 || length < 0)
    return -1;
  packet->start = (uint32_t)start;
  packet->length = (uint32_t)length;
  return 0;
}

/* Appends `bytes` unset bytes to a packet of one segment. */
static inline int shoal_append(struct shoal_packet *packet, uint32_t bytes) {
  if (packet->rest != 0 || (uint64_t)packet->start + packet->length + bytes > packet->capacity)
    return -1;
  packet->length += bytes;
  return 0;
}

/* Cuts a packet of one segment to `length` bytes. */
static inline int shoal_trim(struct shoal_packet *packet, uint32_t length) {
  if (packet->rest != 0 || length > packet->length)
    return -1;
  packet->length = length;
  return 0;
}

/* Drops a packet for the reason that a counter of the node tells. */
static inline void shoal_drop(struct shoal_packet *packet, uint16_t counter) {
  packet->next = SHOAL_NEXT_DROP;
  packet->error = counter;
}

/* Adds to a counter of the node without dropping a packet. */
static inline void shoal_count(struct shoal_frame *frame, uint32_t counter, uint64_t n) {
  if (counter < frame->counters)
    frame->counts[counter] += n;
}

#endif /* SHOAL_PLUGIN_H */
