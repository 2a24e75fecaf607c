// An example of a plugin: packets that come in get a DSCP, of both families. plugin/examples/rust does the same in Rust.
#include <stdio.h>
#include "shoal_plugin.h"

enum { DSCP = 10 /* AF11 */, MARKED = 0, SHORT = 1 };

static void mark(void *context, struct shoal_frame *frame) {
  for (uint32_t i = 0; i < frame->count; i++) {
    struct shoal_packet *packet = &frame->packets[i];
    uint8_t *ip = shoal_data(packet), version = packet->length > 0 ? ip[0] >> 4 : 0;
    if (version == 4 && packet->length >= 20) {
      packet->scratch[0] = ip[1] >> 2;
      // RFC 1624: the sum follows the one byte that changed.
      uint32_t sum = (ip[10] << 8 | ip[11]) + (ip[1] & 0xfc) + (0xffff - (DSCP << 2));
      sum = (sum & 0xffff) + (sum >> 16);
      sum = (sum & 0xffff) + (sum >> 16);
      ip[10] = sum >> 8, ip[11] = sum & 0xff;
      ip[1] = (ip[1] & 3) | DSCP << 2;
    } else if (version == 6 && packet->length >= 40) {
      packet->scratch[0] = (ip[0] << 2 | ip[1] >> 6) & 63;
      ip[0] = 0x60 | DSCP >> 2, ip[1] = (ip[1] & 0x3f) | (DSCP << 6 & 0xff);
    } else {
      shoal_drop(packet, SHORT);
      continue;
    }
    shoal_count(frame, MARKED, 1);
    packet->next = SHOAL_NEXT_FEATURE;
  }
}

static size_t say(void *context, const struct shoal_packet *packet, char *text, size_t room) {
  int n = snprintf(text, room, "dscp %u -> %u", (unsigned)packet->scratch[0], DSCP);
  return n < 0 ? 0 : (size_t)n;
}

#define SIZED(type) .size = sizeof(struct type)
static const struct shoal_counter marked = {SIZED(shoal_counter), SHOAL_INFO, "marked", "marked"};
static const struct shoal_counter too_short = {SIZED(shoal_counter), SHOAL_ERROR, "short", "shorter than its header"};
static const struct shoal_counter *const counters[] = {&marked, &too_short};
static const struct shoal_node node = {SIZED(shoal_node), .name = "example-mark-c", .counters = counters,
    .counter_count = 2, .process = mark, .trace = say};
static const struct shoal_node *const nodes[] = {&node};
static const char *const before4[] = {"ip4-lookup"}, *const before6[] = {"ip6-lookup"};
static const struct shoal_feature ip4 = {SIZED(shoal_feature), .arc = "ip4-unicast", .node = "example-mark-c",
    .before = before4, .before_count = 1};
static const struct shoal_feature ip6 = {SIZED(shoal_feature), .arc = "ip6-unicast", .node = "example-mark-c",
    .before = before6, .before_count = 1};
static const struct shoal_feature *const features[] = {&ip4, &ip6};
static const struct shoal_plugin plugin = {SIZED(shoal_plugin), SHOAL_ABI_MAJOR, SHOAL_ABI_MINOR,
    .name = "example_c", .version = "1.0.0", .description = "Example in C: marks packets",
    .nodes = nodes, .node_count = 1, .features = features, .feature_count = 2};

const struct shoal_plugin *shoal_plugin_v1(void) { return &plugin; }
