// The main thread's part: the EAL, ports and what is changed of them.
#define _GNU_SOURCE
#include <errno.h>
#include <pthread.h>
#include <sched.h>
#include <stdio.h>
#include <string.h>
#include <sys/epoll.h>
#include <unistd.h>
#include <rte_bus.h>
#include <rte_dev.h>
#include <rte_eal.h>
#include <rte_errno.h>
#include <rte_ether.h>
#include <rte_log.h>
#include <rte_mempool.h>
#include <rte_version.h>

#include "port.h"

struct port dpdk_ports[RTE_MAX_ETHPORTS];

// Pools by the size of their packets' parts: ordinary ones, and such as hold 9,216 bytes, for devices that know no parts.
static struct {
  const char *name;
  uint16_t room;
  uint32_t divisor;
  struct rte_mempool *pool;
} pools[] = {
    {"shoal_mbufs", RTE_PKTMBUF_HEADROOM + SLOT, 1, NULL},
    {"shoal_mbufs_jumbo", RTE_PKTMBUF_HEADROOM + 9728, 4, NULL},
};
enum { ORDINARY, JUMBO };

static dpdk_log tell_log;
// What this thread does now may fail, and is told of in other words if it does.
static __thread int quietly;

static ssize_t log_line(void *unused, const char *text, size_t length) {
  (void)unused;
  if (quietly)
    return (ssize_t)length;
  tell_log((uint32_t)rte_log_cur_msg_loglevel(), text, length);
  return (ssize_t)length;
}

int dpdk_start(int argc, char **argv, dpdk_log log) {
  tell_log = log;
  cookie_io_functions_t io = {.write = log_line};
  FILE *stream = fopencookie(NULL, "w", io);
  if (stream != NULL) {
    setvbuf(stream, NULL, _IOLBF, 0);
    rte_openlog_stream(stream);
  }
  // The EAL pins its main thread and gives it another name.
  cpu_set_t cpus;
  char name[16];
  int known = pthread_getaffinity_np(pthread_self(), sizeof cpus, &cpus);
  int named = pthread_getname_np(pthread_self(), name, sizeof name);
  int used = rte_eal_init(argc, argv);
  int error = rte_errno;
  if (known == 0)
    pthread_setaffinity_np(pthread_self(), sizeof cpus, &cpus);
  if (named == 0)
    pthread_setname_np(pthread_self(), name);
  return used < 0 ? -(error == 0 ? EINVAL : error) : 0;
}

void dpdk_cpus(char *text, size_t room) {
  cpu_set_t cpus;
  size_t at = 0;
  text[0] = 0;
  if (sched_getaffinity(0, sizeof cpus, &cpus) != 0)
    return;
  for (int cpu = 0; cpu < CPU_SETSIZE && at + 8 < room; cpu++)
    if (CPU_ISSET(cpu, &cpus))
      at += (size_t)snprintf(text + at, room - at, "%s%d", at == 0 ? "" : ",", cpu);
}

const char *dpdk_version(void) { return rte_version(); }
const char *dpdk_error(int error) { return rte_strerror(error < 0 ? -error : error); }

static struct port *port_of(uint16_t port) {
  return port < RTE_MAX_ETHPORTS && rte_eth_dev_is_valid_port(port) ? &dpdk_ports[port] : NULL;
}

int dpdk_probe(const char *devargs, uint16_t *port) {
  struct rte_dev_iterator it;
  uint16_t id, found = RTE_MAX_ETHPORTS;
  int error = rte_dev_probe(devargs);
  if (error != 0)
    return error > 0 ? -ENODEV : error;
  RTE_ETH_FOREACH_MATCHING_DEV(id, devargs, &it) {
    found = id;
    rte_eth_iterator_cleanup(&it);
    break;
  }
  if (found == RTE_MAX_ETHPORTS)
    return -ENODEV;
  *port = found;
  return dpdk_ports[found].ours ? -EEXIST : 0;
}

int dpdk_next(uint16_t port) {
  uint16_t next = rte_eth_find_next(port);
  return next < RTE_MAX_ETHPORTS ? next : -ENODEV;
}

// Whether a device's driver does not look at the MTU, and says that it knows nothing but Ethernet's own: so do those of virtual
// devices, but net_tap, which sends no longer frames.
static int knows_no_mtu(const struct rte_eth_dev_info *info) {
  return info->device != NULL && strcmp(rte_bus_name(rte_dev_bus(info->device)), "vdev") == 0 &&
         strcmp(info->driver_name, "net_tap") != 0;
}

// The largest MTU that `rte_eth_dev_configure` takes, which judges by the longest frame.
static uint16_t largest_mtu(const struct rte_eth_dev_info *info) {
  uint32_t most = info->max_mtu;
  if (info->max_mtu == UINT16_MAX && info->max_rx_pktlen > RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN)
    most = RTE_MIN(most, info->max_rx_pktlen - RTE_ETHER_HDR_LEN - RTE_ETHER_CRC_LEN);
  return (uint16_t)most;
}

int dpdk_info(uint16_t port, struct dpdk_info *to) {
  struct port *p = port_of(port);
  struct rte_eth_dev_info info;
  struct rte_ether_addr mac;
  memset(to, 0, sizeof *to);
  if (p == NULL)
    return -ENODEV;
  int error = rte_eth_dev_info_get(port, &info);
  if (error != 0)
    return error;
  char name[RTE_ETH_NAME_MAX_LEN];
  if (info.device != NULL)
    snprintf(to->device, sizeof to->device, "%s", rte_dev_name(info.device));
  else if (rte_eth_dev_get_name_by_port(port, name) == 0)
    snprintf(to->device, sizeof to->device, "%s", name);
  snprintf(to->driver, sizeof to->driver, "%s", info.driver_name);
  if (rte_eth_macaddr_get(port, &mac) == 0)
    memcpy(to->mac, mac.addr_bytes, 6);
  to->mtu = p->mtu;
  if (to->mtu == 0)
    rte_eth_dev_get_mtu(port, &to->mtu);
  to->started = (uint8_t)p->started;
  to->multi_segs = p->config.multi_segs;
  to->max_rx_queues = info.max_rx_queues;
  to->max_tx_queues = info.max_tx_queues;
  to->min_mtu = info.min_mtu;
  to->max_mtu = knows_no_mtu(&info) ? UINT16_MAX : largest_mtu(&info);
  to->rx_desc_min = info.rx_desc_lim.nb_min;
  to->rx_desc_max = info.rx_desc_lim.nb_max;
  to->tx_desc_min = info.tx_desc_lim.nb_min;
  to->tx_desc_max = info.tx_desc_lim.nb_max;
  to->numa = rte_eth_dev_socket_id(port);
  to->speed_capa = info.speed_capa;
  to->rx_capa = info.rx_offload_capa;
  to->tx_capa = info.tx_offload_capa;
  to->rx_offloads = p->rx_offloads;
  to->tx_offloads = p->tx_offloads;
  to->rss_capa = info.flow_type_rss_offloads;
  to->rss = p->rss;
  to->interrupts = p->interrupts;
  to->no_interrupts = p->no_interrupts;
  return 0;
}

static int removed(uint16_t port, enum rte_eth_event_type event, void *unused, void *ret) {
  (void)event, (void)unused, (void)ret;
  atomic_store(&dpdk_ports[port].gone, 1);
  return 0;
}

static int need_pool(int which, uint32_t mbufs) {
  if (pools[which].pool != NULL)
    return 0;
  pools[which].pool = rte_pktmbuf_pool_create(pools[which].name, mbufs / pools[which].divisor, 256, 0, pools[which].room,
                                              SOCKET_ID_ANY);
  return pools[which].pool == NULL ? -rte_errno : 0;
}

// Nobody is at the queues when this returns, and nobody comes: the driver is the main thread's.
static void quiet(struct port *p) {
  atomic_store(&p->running, 0);
  for (int i = 0; i < QUEUES; i++) {
    while (atomic_load_explicit(&p->rx[i].busy, memory_order_acquire))
      rte_pause();
    while (atomic_load_explicit(&p->tx[i].busy, memory_order_acquire))
      rte_pause();
  }
}

static uint16_t fit(uint16_t asked, uint16_t usual, const struct rte_eth_desc_lim *limit) {
  uint16_t n = asked != 0 ? asked : usual != 0 ? usual : 1024;
  if (limit->nb_max != 0)
    n = RTE_MIN(n, limit->nb_max);
  return RTE_MAX(n, limit->nb_min);
}

// Configures a stopped port, with receive interrupts if they are wanted and its driver has not refused them.
static int configure(uint16_t port, struct rte_eth_conf *conf) {
  struct port *p = &dpdk_ports[port];
  const struct dpdk_config *c = &p->config;
  int refused = 0;
  p->asked = c->interrupts && p->refused == 0;
  if (p->asked) {
    conf->intr_conf.rxq = 1;
    quietly = 1;
    refused = rte_eth_dev_configure(port, c->rx_queues, c->tx_queues, conf);
    quietly = 0;
    if (refused == 0)
      return 0;
    conf->intr_conf.rxq = 0;
    p->asked = 0;
  }
  int error = rte_eth_dev_configure(port, c->rx_queues, c->tx_queues, conf);
  if (error == 0 && refused != 0)
    p->refused = p->no_interrupts = -refused;
  return error;
}

// Sets a stopped port up from its configuration.
static int set_up(uint16_t port) {
  struct port *p = &dpdk_ports[port];
  const struct dpdk_config *c = &p->config;
  struct rte_eth_dev_info info;
  int error = rte_eth_dev_info_get(port, &info);
  if (error != 0)
    return error;
  struct rte_eth_conf conf = {0};
  uint64_t rx = 0, tx = 0;
  if (c->rx_checksum)
    rx |= RTE_ETH_RX_OFFLOAD_IPV4_CKSUM | RTE_ETH_RX_OFFLOAD_UDP_CKSUM | RTE_ETH_RX_OFFLOAD_TCP_CKSUM;
  if (c->tx_checksum)
    tx |= RTE_ETH_TX_OFFLOAD_UDP_CKSUM | RTE_ETH_TX_OFFLOAD_TCP_CKSUM;
  if (c->tso)
    tx |= RTE_ETH_TX_OFFLOAD_TCP_TSO | RTE_ETH_TX_OFFLOAD_IPV4_CKSUM;
  if (c->multi_segs)
    tx |= RTE_ETH_TX_OFFLOAD_MULTI_SEGS;
  // A frame of the MTU, with two VLAN tags, in one part or in several.
  uint32_t frame = (uint32_t)c->mtu + RTE_ETHER_HDR_LEN + RTE_ETHER_CRC_LEN + 2 * RTE_VLAN_HLEN;
  int which = c->jumbo ? JUMBO : ORDINARY;
  if (frame > SLOT && !c->jumbo) {
    if (c->multi_segs && info.rx_offload_capa & RTE_ETH_RX_OFFLOAD_SCATTER)
      rx |= RTE_ETH_RX_OFFLOAD_SCATTER;
    else
      which = JUMBO;
  }
  rx &= info.rx_offload_capa;
  tx &= info.tx_offload_capa;
  if ((error = need_pool(which, c->mbufs)) != 0)
    return error;
  conf.rxmode.mtu = knows_no_mtu(&info) ? RTE_MIN(c->mtu, largest_mtu(&info)) : c->mtu;
  conf.rxmode.offloads = rx;
  conf.txmode.offloads = tx;
  uint64_t rss = (RTE_ETH_RSS_IP | RTE_ETH_RSS_TCP | RTE_ETH_RSS_UDP) & info.flow_type_rss_offloads;
  if (c->rx_queues > 1 && rss != 0) {
    conf.rxmode.mq_mode = RTE_ETH_MQ_RX_RSS;
    conf.rx_adv_conf.rss_conf.rss_hf = rss;
  } else {
    rss = 0;
  }
  if ((error = configure(port, &conf)) != 0)
    return error;
  uint16_t rx_desc = fit(c->rx_desc, info.default_rxportconf.ring_size, &info.rx_desc_lim);
  uint16_t tx_desc = fit(c->tx_desc, info.default_txportconf.ring_size, &info.tx_desc_lim);
  if ((error = rte_eth_dev_adjust_nb_rx_tx_desc(port, &rx_desc, &tx_desc)) != 0)
    return error;
  for (uint16_t i = 0; i < c->rx_queues; i++) {
    struct rte_eth_rxconf queue = info.default_rxconf;
    queue.offloads = rx;
    if ((error = rte_eth_rx_queue_setup(port, i, rx_desc, SOCKET_ID_ANY, &queue, pools[which].pool)) != 0)
      return error;
  }
  for (uint16_t i = 0; i < c->tx_queues; i++) {
    struct rte_eth_txconf queue = info.default_txconf;
    queue.offloads = tx;
    if ((error = rte_eth_tx_queue_setup(port, i, tx_desc, SOCKET_ID_ANY, &queue)) != 0)
      return error;
  }
  p->pool = pools[which].pool;
  p->rx_offloads = rx;
  p->tx_offloads = tx;
  p->rss = rss;
  p->mtu = c->mtu;
  p->burst = (uint16_t)RTE_MAX(1u, RTE_MIN(BURST, SHOAL_FRAME_SIZE / ((frame + SLOT - 1) / SLOT)));
  return 0;
}

int dpdk_configure(uint16_t port, const struct dpdk_config *config) {
  struct port *p = port_of(port);
  if (p == NULL)
    return -ENODEV;
  uint16_t mtu = config->mtu;
  if (mtu == 0 && rte_eth_dev_get_mtu(port, &mtu) != 0)
    mtu = RTE_ETHER_MTU;
  p->config = *config;
  p->config.mtu = mtu;
  atomic_store(&p->gone, 0);
  p->refused = p->no_interrupts = 0;
  int error = set_up(port);
  if (error != 0)
    return error;
  for (int i = 0; i < QUEUES; i++) {
    p->rx[i].epoll = p->asked && i < config->rx_queues ? epoll_create1(EPOLL_CLOEXEC) : -1;
    p->rx[i].can = 0;
  }
  p->interrupts = p->asked ? -1 : 0;
  rte_eth_dev_callback_register(port, RTE_ETH_EVENT_INTR_RMV, removed, NULL);
  p->ours = 1;
  return 0;
}

// A driver makes the descriptors of its interrupts when the port starts, and closes them when it stops. Queues with one
// descriptor in common have none but the first: an event that one thread has read wakes no other.
static void add_interrupts(uint16_t port) {
  struct port *p = &dpdk_ports[port];
  p->interrupts = 0;
  quietly = 1;
  for (uint16_t i = 0; i < p->config.rx_queues; i++) {
    struct queue *q = &p->rx[i];
    q->can = q->waits = 0;
    if (!p->asked || q->epoll < 0)
      continue;
    int error = rte_eth_dev_rx_intr_ctl_q(port, i, q->epoll, RTE_INTR_EVENT_ADD, NULL);
    if (error == -EPERM)
      error = -ENOTSUP; // there is no descriptor
    if (error == 0) {
      // Some drivers begin with them enabled; some have a descriptor and say only now that it tells of nothing.
      error = rte_eth_dev_rx_intr_enable(port, i);
      rte_eth_dev_rx_intr_disable(port, i);
      if (error != 0 && error != -ENOTSUP)
        rte_eth_dev_rx_intr_ctl_q(port, i, q->epoll, RTE_INTR_EVENT_DEL, NULL);
      else
        error = 0;
    }
    q->can = q->waits = error == 0;
    p->interrupts += q->can;
    if (error != 0)
      p->no_interrupts = -error;
  }
  quietly = 0;
}

static void remove_interrupts(uint16_t port) {
  struct port *p = &dpdk_ports[port];
  for (uint16_t i = 0; i < p->config.rx_queues; i++) {
    struct queue *q = &p->rx[i];
    if (q->waits)
      rte_eth_dev_rx_intr_ctl_q(port, i, q->epoll, RTE_INTR_EVENT_DEL, NULL);
    q->waits = 0;
  }
}

static int start(uint16_t port) {
  struct port *p = &dpdk_ports[port];
  quietly = p->asked;
  int error = rte_eth_dev_start(port);
  quietly = 0;
  if (error != 0 && p->asked) {
    // Once more without interrupts, for which there may be too few vectors.
    int first = error;
    p->refused = -first;
    error = set_up(port);
    if (error == 0)
      error = rte_eth_dev_start(port);
    if (error == 0)
      p->no_interrupts = -first;
    else
      p->refused = 0;
  }
  if (error != 0)
    return error;
  p->started = 1;
  add_interrupts(port);
  // Groups are sorted out by the router; a device that knows no such filter gets all frames.
  if (rte_eth_allmulticast_enable(port) != 0)
    rte_eth_promiscuous_enable(port);
  atomic_store(&p->running, 1);
  return 0;
}

int dpdk_up(uint16_t port) {
  struct port *p = port_of(port);
  return p == NULL ? -ENODEV : p->started ? 0 : start(port);
}

int dpdk_down(uint16_t port) {
  struct port *p = port_of(port);
  if (p == NULL)
    return -ENODEV;
  quiet(p);
  if (!p->started)
    return 0;
  p->started = 0;
  remove_interrupts(port);
  return rte_eth_dev_stop(port);
}

int dpdk_set_mtu(uint16_t port, uint16_t mtu) {
  struct port *p = port_of(port);
  if (p == NULL)
    return -ENODEV;
  if (mtu == p->mtu)
    return 0;
  int was = p->started, error = dpdk_down(port);
  if (error != 0)
    return error;
  uint16_t old = p->config.mtu;
  p->config.mtu = mtu;
  error = set_up(port);
  if (error != 0) {
    // As before, so that a port that works goes on working.
    p->config.mtu = old;
    set_up(port);
  }
  int again = was ? start(port) : 0;
  return error != 0 ? error : again;
}

int dpdk_set_mac(uint16_t port, const uint8_t mac[6]) {
  struct rte_ether_addr address;
  memcpy(address.addr_bytes, mac, 6);
  return port_of(port) == NULL ? -ENODEV : rte_eth_dev_default_mac_addr_set(port, &address);
}

int dpdk_set_promiscuous(uint16_t port, int on) {
  if (port_of(port) == NULL)
    return -ENODEV;
  return on ? rte_eth_promiscuous_enable(port) : rte_eth_promiscuous_disable(port);
}

int dpdk_link(uint16_t port, struct dpdk_link *to) {
  struct port *p = port_of(port);
  struct rte_eth_link link = {0};
  struct rte_eth_stats stats;
  memset(to, 0, sizeof *to);
  if (p == NULL)
    return -ENODEV;
  to->gone = atomic_load(&p->gone) != 0;
  if (p->started && !to->gone && rte_eth_link_get_nowait(port, &link) == 0) {
    to->up = link.link_status == RTE_ETH_LINK_UP;
    to->mbps = link.link_speed == RTE_ETH_SPEED_NUM_UNKNOWN ? 0 : link.link_speed;
  }
  if (rte_eth_stats_get(port, &stats) == 0)
    to->missed = stats.imissed + stats.rx_nombuf;
  return 0;
}

int dpdk_xstats(uint16_t port, dpdk_stat tell, void *to) {
  enum { MOST = 1024 };
  static struct rte_eth_xstat values[MOST];
  static struct rte_eth_xstat_name names[MOST];
  if (port_of(port) == NULL)
    return -ENODEV;
  int n = rte_eth_xstats_get(port, values, MOST), named = rte_eth_xstats_get_names(port, names, MOST);
  if (n < 0 || n > MOST || named != n)
    return n < 0 ? n : -ENOSPC;
  for (int i = 0; i < n; i++)
    if (values[i].id < (uint64_t)n)
      tell(to, names[values[i].id].name, values[i].value);
  return 0;
}

int dpdk_close(uint16_t port) {
  struct port *p = port_of(port);
  struct rte_eth_dev_info info;
  if (p == NULL)
    return -ENODEV;
  dpdk_down(port);
  // What was polled and not fetched.
  for (int i = 0; i < QUEUES; i++) {
    rte_pktmbuf_free_bulk(p->rx[i].mbufs, p->rx[i].pending);
    p->rx[i].pending = p->rx[i].left = p->rx[i].armed = 0;
    if (p->ours && p->rx[i].epoll >= 0)
      close(p->rx[i].epoll);
    p->rx[i].epoll = -1;
  }
  int known = rte_eth_dev_info_get(port, &info);
  struct rte_device *device = known == 0 ? info.device : NULL;
  rte_eth_dev_callback_unregister(port, RTE_ETH_EVENT_INTR_RMV, removed, NULL);
  int error = rte_eth_dev_close(port);
  p->ours = 0;
  p->mtu = 0;
  if (device != NULL) {
    int gone = rte_dev_remove(device);
    return error != 0 ? error : gone;
  }
  return error;
}

int dpdk_wait(uint16_t port, uint16_t queue) {
  struct port *p = port_of(port);
  if (p == NULL || !p->ours || queue >= p->config.rx_queues)
    return -1;
  return p->interrupts < 0 || p->rx[queue].can ? p->rx[queue].epoll : -1;
}

int dpdk_pool(uint32_t position, char *name, size_t room, uint32_t numbers[4]) {
  if (position >= RTE_DIM(pools))
    return -ENOENT;
  struct rte_mempool *pool = pools[position].pool;
  snprintf(name, room, "%s", pools[position].name);
  memset(numbers, 0, 4 * sizeof *numbers);
  numbers[0] = pools[position].room - RTE_PKTMBUF_HEADROOM;
  if (pool != NULL) {
    numbers[1] = pool->size;
    numbers[2] = rte_mempool_avail_count(pool);
    numbers[3] = rte_mempool_in_use_count(pool);
  }
  return 0;
}
