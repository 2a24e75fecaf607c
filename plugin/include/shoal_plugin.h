// The C ABI between Shoal and its plugins. Apache-2.0.
// Generated from plugin/abi by `make gen`: do not edit. docs/guide/plugins.md tells how to use it.

#ifndef SHOAL_PLUGIN_H
#define SHOAL_PLUGIN_H

#include <stddef.h>
#include <stdint.h>

// The ABI's major version. A plugin of another one is refused.
#define SHOAL_ABI_MAJOR 1

// The ABI's minor version: it counts what was appended. A plugin of a later one is refused, of an earlier one not.
#define SHOAL_ABI_MINOR 0

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
