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

// One queue. Whoever holds `busy` calls the driver for it; `pending` belongs to the thread that polls.
struct queue {
  atomic_int busy;
  uint16_t pending;
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
  struct queue rx[QUEUES], tx[QUEUES];
};

extern struct port dpdk_ports[RTE_MAX_ETHPORTS];

#endif
