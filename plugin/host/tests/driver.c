// A driver for tests: what one of a pair of devices sends the other receives, and it lies as a command says.
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/eventfd.h>
#include <sys/types.h>
#include "shoal_plugin.h"

// <unistd.h> has names of this file's functions.
ssize_t read(int fd, void *to, size_t length);
ssize_t write(int fd, const void *from, size_t length);

#ifndef SIZE_EXTRA
#define SIZE_EXTRA 0
#endif
#ifndef POLL
#define POLL poll
#endif
#ifndef WAIT
#define WAIT wait
#endif
#ifndef ARM
#define ARM arm
#endif
#ifndef DISARM
#define DISARM disarm
#endif
#ifndef PATH
#define PATH "show test calls"
#endif
#ifndef DRIVER
#define DRIVER "test"
#endif

enum { MOST = 8, WAITING = 64, LONGEST = 16384 };
static struct { int open, up, fd, armed; uint32_t mtu, waiting; uint64_t mac; struct { uint32_t length; uint16_t flags, start, offset; uint8_t bytes[LONGEST]; } packets[WAITING]; } devices[MOST];
static int mode, gone, calls[16];
static uint64_t missed;

static int say(struct shoal_text *text, const char *said, int code) {
  text->length = (uint32_t)snprintf(text->bytes, text->room, "%s", said);
  return code;
}

static int start(void *context, const char *settings, size_t length, uint32_t *count, struct shoal_text *why) {
  char text[64] = "";
  if (settings == NULL) return 0;
  memcpy(text, settings, length < 63 ? length : 63);
  if (strstr(text, "wrong")) return say(why, "`wrong' is no\nsetting, expected a number", 1);
  if (strstr(text, "silent")) return 7;
  // For programs without commands.
  const char *lie = strstr(text, "mode ");
  if (lie != NULL) mode = atoi(lie + 5), gone = mode == 40, missed = mode == 41 ? 5 : 0;
  *count = (uint32_t)atoi(text);
  return 0;
}

static int fill(uint32_t number, struct shoal_device *device, const char *words, struct shoal_text *why) {
  if (strstr(words, "no")) return say(why, "there is no such device", 1);
  device->number = number;
  device->mtu = strstr(words, "mtu") ? 0 : 1500;
  device->rx_queues = strstr(words, "rx0") ? 0 : strstr(words, "rx65") ? 65 : 1;
  device->tx_queues = strstr(words, "tx0") ? 0 : 1;
  if (!strstr(words, "mac")) device->mac[0] = 2, device->mac[5] = (uint8_t)(number + 1);
  if (strstr(words, "worker")) device->rx_workers[0] = 9;
  snprintf(device->name, sizeof device->name, strstr(words, "name") ? "a b" : "test%u", number);
  memset(device->kind, 'k', sizeof device->kind);
  if (strstr(words, "csum")) device->flags = SHOAL_DEVICE_CHECKSUM | SHOAL_DEVICE_TSO;
  devices[number].open = 1;
  devices[number].mtu = device->mtu;
  return 0;
}

static int open(void *context, uint32_t position, struct shoal_device *device, struct shoal_text *why) {
  return position < MOST ? fill(position, device, "", why) : say(why, "too many", 1);
}

static int attach(void *context, const char *words, size_t length, struct shoal_device *device, struct shoal_text *why) {
  char text[64] = "";
  memcpy(text, words, length < 63 ? length : 63);
  for (uint32_t i = 0; i < MOST; i++)
    if (!devices[i].open || (i == 0 && strstr(text, "again"))) return fill(i, device, text, why);
  return say(why, "there is no more room", 1);
}

static void close(void *context, uint32_t device) {
  // Descriptors stay open: there are as many as devices were closed in a test.
  calls[0]++;
  memset(&devices[device], 0, sizeof devices[device]);
}

static int set(void *context, uint32_t device, uint32_t what, uint64_t value, struct shoal_text *why) {
  if (what == SHOAL_SET_ADMIN) devices[device].up = (int)value;
  if (what == SHOAL_SET_MAC) devices[device].mac = value;
  if (what == SHOAL_SET_MTU && value > 2000) return say(why, "MTU from 64 to 2000", 1);
  if (what == SHOAL_SET_MTU) devices[device].mtu = (uint32_t)value;
  if (what == SHOAL_SET_PROMISCUOUS) return say(why, "", 5);
  return 0;
}

static int tell_link(void *context, uint32_t device, struct shoal_link *link) {
  link->up = (uint32_t)devices[device].up, link->speed = 2500, link->gone = (uint32_t)gone, link->missed = missed;
  return mode == 30;
}

static int describe(void *context, uint32_t device, uint32_t detail, struct shoal_text *text) {
  if (mode == 31) { text->length = 0xffffffff; return 0; }
  char line[64];
  snprintf(line, sizeof line, detail ? "detail of %u" : "mtu %u mac %012llx", detail ? device : devices[device].mtu,
           (unsigned long long)devices[device].mac);
  return say(text, line, 0);
}

static uint32_t poll(void *context, uint32_t device, uint32_t queue, uint32_t thread) {
  uint32_t slots = 0;
  for (uint32_t i = 0; i < devices[device].waiting; i++) slots += (devices[device].packets[i].length + 2047) / 2048;
  return mode == 20 && slots ? 0xffffffff : slots;
}

static void receive(void *context, struct shoal_burst *burst) {
  uint32_t used = 0, n = devices[burst->device].waiting;
  devices[burst->device].waiting = 0;
  for (uint32_t i = 0; i < n; i++) {
    uint32_t left = devices[burst->device].packets[i].length, at = 0, first = used;
    for (; left > 0 && used < burst->count; used++) {
      struct shoal_slot *slot = &burst->slots[used];
      uint32_t part = left < slot->capacity ? left : slot->capacity;
      memcpy(slot->bytes, devices[burst->device].packets[i].bytes + at, part);
      at += part, left -= part;
      slot->length = part;
      slot->flags = left > 0 ? SHOAL_SLOT_MORE : 0;
    }
    if (left > 0) { used = first; burst->lost++; continue; }
    struct shoal_slot *slot = &burst->slots[first];
    slot->flags |= devices[burst->device].packets[i].flags;
    slot->checksum_start = devices[burst->device].packets[i].start;
    slot->checksum_offset = devices[burst->device].packets[i].offset;
    switch (mode) {
    case 1: slot->length = slot->capacity + 1; break;
    case 2: slot->length = 0; break;
    case 3: slot->flags |= SHOAL_SLOT_MORE; break;
    case 4: slot->flags |= SHOAL_SLOT_CHECKSUM_LEFT, slot->checksum_start = 60000; break;
    case 5: slot->flags |= SHOAL_SLOT_CHECKSUM_LEFT, slot->checksum_start = 34, slot->checksum_offset = 6, slot->gso = 77; break;
    case 6: burst->lost += 3; break;
    case 7: slot->bytes = NULL, slot->capacity = 0, slot->token = 1; break;
    }
  }
  burst->used = mode == 8 ? 0xffffffff : used;
  if (mode == 9) burst->slots = NULL, burst->count = 0, burst->device = 99;
}

static int wait(void *context, uint32_t device, uint32_t queue) {
  if (mode == 50) return 999;
  if (mode == 51) return -77;
  if (devices[device].fd == 0) devices[device].fd = eventfd(mode == 52, EFD_CLOEXEC | EFD_NONBLOCK);
  return devices[device].fd;
}

static void tell(uint32_t device) {
  uint64_t one = 1;
  if (devices[device].armed) write(devices[device].fd, &one, sizeof one);
}

static int arm(void *context, uint32_t device, uint32_t queue, uint32_t thread) {
  calls[2]++;
  if (mode == 53) return -5;
  devices[device].armed = 1;
  if (mode == 54 || devices[device].waiting) return SHOAL_ARM_PACKETS;
  // A packet comes in the moment between this and the sleep: it is told of, or not, or seen by this function.
  if (mode >= 56 && mode <= 58) {
    memset(devices[device].packets[0].bytes, 0, 60);
    devices[device].packets[0].length = 60, devices[device].packets[0].flags = 0;
    devices[device].waiting = 1;
    if (mode == 56) tell(device);
  }
  return mode == 58 ? SHOAL_ARM_PACKETS : SHOAL_ARMED;
}

static void disarm(void *context, uint32_t device, uint32_t queue, uint32_t thread) {
  uint64_t n;
  calls[3]++;
  devices[device].armed = 0;
  if (mode != 52) read(devices[device].fd, &n, sizeof n);
}

static void send(void *context, struct shoal_burst *burst) {
  uint32_t to = burst->device ^ 1, at = 0, start = 1;
  if (mode == 12) return;
  for (uint32_t i = 0; i < burst->count; i++) {
    struct shoal_slot *slot = &burst->slots[i];
    if (devices[to].waiting == WAITING) return;
    uint32_t n = devices[to].waiting;
    if (start) {
      devices[to].packets[n].flags = slot->flags & SHOAL_SLOT_CHECKSUM_LEFT;
      devices[to].packets[n].start = slot->checksum_start;
      devices[to].packets[n].offset = slot->checksum_offset;
      calls[1] += slot->gso != 0;
      at = 0;
    }
    if (at + slot->length <= LONGEST) memcpy(devices[to].packets[n].bytes + at, slot->bytes, slot->length);
    at += slot->length;
    start = !(slot->flags & SHOAL_SLOT_MORE);
    if (start) {
      devices[to].packets[n].length = at;
      devices[to].waiting += devices[to].up != 0;
      burst->used++;
    }
  }
  tell(to);
  if (mode == 10) burst->used = 0xffffffff;
  if (mode == 11) burst->lost = 0xffffffff;
}

static int set_mode(void *context, const char *words, size_t length, struct shoal_text *answer) {
  char text[16] = "";
  memcpy(text, words, length < 15 ? length : 15);
  mode = atoi(text), gone = mode == 40;
  if (mode == 41) missed += 5;
  return mode == 99 ? say(answer, "there is no mode 99", 1) : 0;
}

static int show(void *context, const char *words, size_t length, struct shoal_text *answer) {
  char line[64];
  snprintf(line, sizeof line, "closed %d\nlarge %d\narmed %d disarmed %d", calls[0], calls[1], calls[2], calls[3]);
  return say(answer, line, 0);
}

#ifdef OLD
// A plugin of 1.1: its driver ends before `wait`, and whatever stands there is not the router's business.
#undef SHOAL_ABI_MINOR
#define SHOAL_ABI_MINOR 1
#define DRIVER_SIZE offsetof(struct shoal_driver, wait)
#undef WAIT
#define WAIT (void *)1
#else
#define DRIVER_SIZE sizeof driver
#endif
static const struct shoal_driver driver = {DRIVER_SIZE + SIZE_EXTRA, .name = DRIVER, .start = start, .open = open,
    .attach = attach, .close = close, .set = set, .link = tell_link, .describe = describe, .poll = POLL,
    .receive = receive, .send = send, .wait = WAIT, .arm = ARM, .disarm = DISARM};
#ifdef TWICE
static const struct shoal_driver *const drivers[] = {&driver, &driver};
#else
static const struct shoal_driver *const drivers[] = {&driver};
#endif
static const struct shoal_command mode_command = {sizeof mode_command, .words = 1, .path = "test mode",
    .help = "Lie in some way", .run = set_mode};
static const struct shoal_command show_command = {sizeof show_command, .path = PATH, .help = "Show calls", .run = show};
static const struct shoal_command *const commands[] = {&mode_command, &show_command};
static const struct shoal_plugin plugin = {sizeof plugin, SHOAL_ABI_MAJOR, SHOAL_ABI_MINOR, .name = "test", .version = "1",
    .description = "A test", .drivers = drivers, .driver_count = sizeof drivers / sizeof *drivers, .commands = commands,
    .command_count = 2};
const struct shoal_plugin *shoal_plugin_v1(void) { return &plugin; }
