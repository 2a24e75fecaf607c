// A port, as both files of the shim see it.
#ifndef SHOAL_DPDK_PORT_H
#define SHOAL_DPDK_PORT_H

#include <stdatomic.h>
#include <rte_ethdev.h>
#include <rte_mbuf.h>

#include "shim.h"

#define QUEUES SHOAL_MAX_QUEUES
// Packets taken from a queue, or given to one, at a time.
#define BURST 64u
// Bytes of a slot at least: of a buffer of the router.
#define SLOT 2048

// One queue. Whoever holds `busy` calls the driver for it; `pending`, `left` and `armed` belong to the thread that polls.
struct queue {
  atomic_int busy;
  uint16_t pending;
  uint16_t left;  // slots of pending packets that no poll has told of yet
  uint8_t armed;
  uint8_t waits;  // its interrupts come by `epoll`: changed while nobody is at the queue
  uint8_t can;    // they did when the port was started last
  int epoll;      // what its thread waits on, as long as the port is ours; -1 without
  struct rte_mbuf *mbufs[BURST];
} __rte_cache_aligned;

struct port {
  // Set while the driver may be called for the queues.
  atomic_int running;
  atomic_int gone;
  int ours, started;
  uint16_t burst; // packets of a poll, so that those of the MTU fit a frame
  uint16_t mtu;
  struct dpdk_config config;
  struct rte_mempool *pool;
  uint64_t rx_offloads, tx_offloads, rss;
  int asked, refused; // the driver was asked for receive interrupts; has refused them, with this number of errno(3)
  int interrupts;     // receive queues that have them; -1: not known before the first start
  int no_interrupts;  // why some have none, likewise
  struct queue rx[QUEUES], tx[QUEUES];
};

extern struct port dpdk_ports[RTE_MAX_ETHPORTS];

#endif
