// A plugin for tests: right by itself, and wrong in whatever a macro says.
#include <stdio.h>
#include "shoal_plugin.h"

#ifndef MAJOR
#define MAJOR SHOAL_ABI_MAJOR
#endif
#ifndef MINOR
#define MINOR SHOAL_ABI_MINOR
#endif
#ifndef EXTRA
#define EXTRA 0
#endif
#ifndef NODE_EXTRA
#define NODE_EXTRA 0
#endif
#ifndef NAME
#define NAME "test"
#endif
#ifndef VERSION
#define VERSION "1"
#endif
#ifndef ACT
#define ACT "test-act"
#endif
#ifndef MEASURE
#define MEASURE "test-measure"
#endif
#ifndef NEXT
#define NEXT MEASURE
#endif
#ifndef COUNTER
#define COUNTER "disliked"
#endif
#ifndef SEVERITY
#define SEVERITY SHOAL_ERROR
#endif
#ifndef ARC
#define ARC "ip4-unicast"
#endif
#ifndef FEATURE_NODE
#define FEATURE_NODE ACT
#endif
#ifndef BEFORE
#define BEFORE "ip4-lookup"
#endif
#ifndef AFTER
#define AFTER "not-part-of-this-router"
#endif
#ifndef PROCESS
#define PROCESS act
#endif
#ifndef NODES
#define NODES 2
#endif
#ifndef NODE_LIST
#define NODE_LIST nodes
#endif
#ifndef FEATURES
#define FEATURES 1
#endif
#ifndef INIT
#define INIT 0
#endif
#ifndef RETURNED
#define RETURNED &plugin
#endif
#ifndef SYMBOL
#define SYMBOL shoal_plugin_v1
#endif

// The first byte says what is done to the packet.
static void act(void *context, struct shoal_frame *frame) {
  uint32_t count = frame->count;
  for (uint32_t i = 0; i < count; i++) {
    struct shoal_packet *packet = &frame->packets[i];
    packet->next = 0;
    switch (*shoal_data(packet)) {
    case 0: packet->next = SHOAL_NEXT_UNDECIDED; break;
    case 1: packet->next = 1; break;
    case 2: packet->next = 0x7fff; break;
    case 3: packet->next = SHOAL_NEXT_FEATURE; break;
    case 10: packet->length = 100000; break;
    case 11: packet->start = 0xffffffff; break;
    case 12: packet->start = 1, packet->length = 0xffffffff; break;
    case 13: packet->length = packet->capacity - packet->start + 1; break;
    case 14: packet->start += packet->length + 1; packet->length = 0xffff0000; break;
    case 15: packet->length -= 1; break;
    case 20: packet->next = SHOAL_NEXT_DROP, packet->error = 0; break;
    case 21: packet->next = SHOAL_NEXT_DROP, packet->error = 1; break;
    case 22: packet->next = SHOAL_NEXT_DROP, packet->error = 0xffff; break;
    case 30: shoal_advance(packet, 4); break;
    case 31: shoal_advance(packet, -8); break;
    case 32: shoal_append(packet, 100); break;
    case 33: shoal_trim(packet, 3); break;
    case 34: shoal_advance(packet, -(int32_t)packet->start); shoal_append(packet, packet->capacity - packet->length); break;
    case 35: shoal_trim(packet, 0); break;
    case 40: frame->count = 0; frame->packets = NULL; frame->counts = NULL; frame->counters = 0; break;
    case 41: packet->base = NULL; packet->scratch = NULL; packet->rest = 77; packet->capacity = 0; packet->rx_sw_if_index = 99; break;
    case 50: if (shoal_advance(packet, 100000) == 0 || shoal_advance(packet, -100000) == 0 || shoal_append(packet, 100000) == 0 || shoal_trim(packet, 100000) == 0) packet->next = SHOAL_NEXT_UNDECIDED; break;
    case 60: shoal_count(frame, 0, 1000); shoal_count(frame, 1, 5); break;
    }
  }
}

static size_t lie(void *context, const struct shoal_packet *packet, char *text, size_t room) {
  if (*shoal_data(packet) == 61) return (size_t)-1;
  text[0] = '\1', text[1] = (char)0xff, text[2] = 'x';
  return 3;
}

static void measure(void *context, struct shoal_frame *frame) {
  for (uint32_t i = 0; i < frame->count; i++) {
    shoal_drop(&frame->packets[i], 0);
    frame->packets[i].scratch[0] = frame->thread;
  }
}

static size_t say(void *context, const struct shoal_packet *packet, char *text, size_t room) {
  return (size_t)snprintf(text, room, "start %u length %u rest %u rx %u %s", packet->start, packet->length, packet->rest,
                          packet->rx_sw_if_index, (const char *)context);
}

static const struct shoal_counter counter = {sizeof counter, SEVERITY, COUNTER, "a test disliked it"};
static const struct shoal_counter *const counters[] = {&counter};
static const char *const next[] = {NEXT};
static const struct shoal_node first = {sizeof first + NODE_EXTRA, .name = ACT, .next_nodes = next, .next_count = 1,
    .counters = counters, .counter_count = 1, .process = PROCESS, .trace = lie};
static const struct shoal_node second = {sizeof second, .name = MEASURE, .counters = counters, .counter_count = 1,
    .context = "seen", .process = measure, .trace = say};
static const struct shoal_node *const nodes[] = {&first, &second};
static const char *const before[] = {BEFORE}, *const after[] = {AFTER};
static const struct shoal_feature feature = {sizeof feature, .arc = ARC, .node = FEATURE_NODE, .before = before,
    .before_count = 1, .after = after, .after_count = 1};
static const struct shoal_feature *const features[] = {&feature, &feature};

static int init(const struct shoal_host *host) {
  const char line[] = "a line of a test\n";
  if (host->size != sizeof *host || host->abi_major != SHOAL_ABI_MAJOR || host->version == NULL) return 99;
  host->log(NAME, SHOAL_LOG_NOTICE, line, sizeof line - 1);
  host->log(NAME, 1000, NULL, 0);
  return INIT;
}

#ifdef OLD
#undef MINOR
#define MINOR 0
#define PLUGIN_SIZE offsetof(struct shoal_plugin, driver_count)
#else
#define PLUGIN_SIZE sizeof plugin
#endif
static const struct shoal_plugin plugin = {PLUGIN_SIZE + EXTRA, MAJOR, MINOR, .name = NAME, .version = VERSION,
    .description = "A test", .init = init, .nodes = NODE_LIST, .node_count = NODES, .features = features,
    .feature_count = FEATURES,
#ifdef OLD
    // A plugin of 1.0 ends before this: whatever stands there is not the router's business.
    .driver_count = 77, .drivers = (const void *)1,
#endif
};

__attribute__((visibility("default"))) const struct shoal_plugin *SYMBOL(void) { return RETURNED; }
