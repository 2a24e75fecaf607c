// What of DPDK the plugin uses, as functions that Rust can call: most of DPDK's fast path is inline functions and macros.
// Functions return 0 or a negative number of errno(3) unless said otherwise.
#ifndef SHOAL_DPDK_SHIM_H
#define SHOAL_DPDK_SHIM_H

#include "shoal_plugin.h"

#define DPDK_NAME 64

// A port as DPDK describes it. Numbers only: Rust has the same structure.
struct dpdk_info {
  char device[DPDK_NAME]; // its bus's name of it: 0000:00:08.0, net_null0
  char driver[DPDK_NAME];
  uint8_t mac[6];
  uint8_t started;
  uint8_t multi_segs; // it sends packets of several parts
  uint16_t max_rx_queues, max_tx_queues, min_mtu, max_mtu, mtu;
  uint16_t rx_desc_min, rx_desc_max, tx_desc_min, tx_desc_max;
  int32_t numa;
  uint32_t speed_capa;
  uint64_t rx_capa, tx_capa, rx_offloads, tx_offloads, rss_capa, rss;
  int32_t interrupts;    // receive queues that have interrupts; -1: not known before the first start
  int32_t no_interrupts; // why some have none
};

// How a port is set up.
struct dpdk_config {
  uint16_t rx_queues, tx_queues;
  uint16_t rx_desc, tx_desc; // 0: the driver's choice, or 1024
  uint16_t mtu;              // 0: what it has
  uint8_t multi_segs, tx_checksum, rx_checksum, tso;
  uint8_t jumbo;             // parts of its packets are as large as they get, whatever the MTU
  uint32_t mbufs;            // of each pool, when it is made
  uint8_t interrupts;        // receive interrupts are wanted
};

struct dpdk_link {
  uint8_t up, gone;
  uint32_t mbps; // 0: unknown
  uint64_t missed;
};

typedef void (*dpdk_log)(uint32_t level, const char *text, size_t length);
typedef void (*dpdk_stat)(void *to, const char *name, uint64_t value);

// Starts the EAL on the calling thread, whose affinity stays as it is. Once.
int dpdk_start(int argc, char **argv, dpdk_log log);
// The processors that this process may use, as the EAL's list of them.
void dpdk_cpus(char *text, size_t room);
const char *dpdk_version(void);
const char *dpdk_error(int error);

// Probes a device and tells the port it became; -EEXIST if it is one already.
int dpdk_probe(const char *devargs, uint16_t *port);
// The next port at or behind `port`, or a negative number.
int dpdk_next(uint16_t port);
int dpdk_info(uint16_t port, struct dpdk_info *info);
int dpdk_configure(uint16_t port, const struct dpdk_config *config);
int dpdk_set_mtu(uint16_t port, uint16_t mtu);
int dpdk_up(uint16_t port);
int dpdk_down(uint16_t port);
int dpdk_set_mac(uint16_t port, const uint8_t mac[6]);
int dpdk_set_promiscuous(uint16_t port, int on);
int dpdk_link(uint16_t port, struct dpdk_link *link);
int dpdk_xstats(uint16_t port, dpdk_stat tell, void *to);
int dpdk_close(uint16_t port);
// What tells of packets of a queue that is armed: a descriptor that stays until the port is closed, or -1.
int dpdk_wait(uint16_t port, uint16_t queue);
// Pools of packets: tells of the pool at `position` and returns 0, or -ENOENT.
int dpdk_pool(uint32_t position, char *name, size_t room, uint32_t numbers[4]);

// The data path, from any thread.
uint32_t dpdk_poll(uint32_t port, uint32_t queue);
// Before a sleep: 0; 1 when there are packets already, which the next poll tells of.
int dpdk_arm(uint32_t port, uint32_t queue);
// After it.
void dpdk_disarm(uint32_t port, uint32_t queue);
void dpdk_receive(struct shoal_burst *burst);
void dpdk_send(struct shoal_burst *burst);

#endif
