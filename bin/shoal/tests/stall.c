// A plugin for tests: its node keeps the thread it runs on, and a command of its the main thread, until told otherwise.
#include <fcntl.h>
#include <stdatomic.h>
#include <stdlib.h>
#include <unistd.h>
#include "shoal_plugin.h"

static atomic_int held = 1, caught;

static void stall(void *context, struct shoal_frame *frame) {
  atomic_fetch_add(&caught, 1);
  while (atomic_load(&held))
    ;
  for (uint32_t i = 0; i < frame->count; i++)
    shoal_drop(&frame->packets[i], 0);
}

static int answer(struct shoal_text *text, const char *words) {
  while (*words && text->length < text->room)
    text->bytes[text->length++] = *words++;
  return 0;
}

static int look(void *context, const char *words, size_t length, struct shoal_text *text) {
  return answer(text, atomic_load(&caught) ? "a thread is held\n" : "no thread is held\n");
}

static int release(void *context, const char *words, size_t length, struct shoal_text *text) {
  atomic_store(&held, 0);
  return answer(text, "released\n");
}

static int hang(void *context, const char *words, size_t length, struct shoal_text *text) {
  // Tells the test that it has begun.
  const char *mark = getenv("STALL_MARK");
  if (mark)
    close(open(mark, O_CREAT | O_WRONLY, 0600));
  for (volatile int forever = 1; forever;)
    ;
  return 0;
}

#define SIZED(type) .size = sizeof(struct type)
static const struct shoal_counter done = {SIZED(shoal_counter), SHOAL_INFO, "done", "held for a while"};
static const struct shoal_counter *const counters[] = {&done};
static const struct shoal_node node = {SIZED(shoal_node), .name = "stall", .counters = counters,
    .counter_count = 1, .process = stall};
static const struct shoal_node *const nodes[] = {&node};
static const struct shoal_command show = {SIZED(shoal_command), 0, "show stall", "Whether a thread is held", 0, look},
    go = {SIZED(shoal_command), 0, "stall release", "Lets the thread go", 0, release},
    stop = {SIZED(shoal_command), 0, "stall main", "Holds the main thread for ever", 0, hang};
static const struct shoal_command *const commands[] = {&show, &go, &stop};
static const struct shoal_plugin plugin = {SIZED(shoal_plugin), SHOAL_ABI_MAJOR, SHOAL_ABI_MINOR,
    .name = "stall", .version = "1.0.0", .description = "Holds threads", .nodes = nodes, .node_count = 1,
    .commands = commands, .command_count = 3};

const struct shoal_plugin *shoal_plugin_v1(void) { return &plugin; }
