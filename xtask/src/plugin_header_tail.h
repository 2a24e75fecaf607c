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
