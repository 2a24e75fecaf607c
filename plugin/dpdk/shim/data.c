// The data path: packets are copied between mbufs and the router's slots.
#include <errno.h>
#include <pthread.h>
#include <string.h>
#include <rte_epoll.h>
#include <rte_ether.h>
#include <rte_ip.h>
#include <rte_lcore.h>
#include <rte_memcpy.h>
#include <rte_net.h>
#include <rte_prefetch.h>

#include "port.h"

static pthread_key_t leave_key;
static pthread_once_t leave_once = PTHREAD_ONCE_INIT;
static __thread int entered;

static void leave(void *unused) {
  (void)unused;
  rte_thread_unregister();
}

static void make_key(void) { pthread_key_create(&leave_key, leave); }

// A thread of the router gets a number of DPDK's at its first packet, and with it a cache of each pool; it gives the number
// back at its end. Without one (there are 128) it works all the same, slower.
static __rte_noinline void enter_slowly(void) {
  entered = 1;
  if (rte_lcore_id() != LCORE_ID_ANY)
    return;
  pthread_once(&leave_once, make_key);
  if (rte_thread_register() == 0)
    pthread_setspecific(leave_key, &entered);
}

static inline void enter(void) {
  if (unlikely(!entered))
    enter_slowly();
}

static inline int take(struct queue *q) {
  int no = 0;
  return atomic_compare_exchange_strong_explicit(&q->busy, &no, 1, memory_order_acquire, memory_order_relaxed);
}

static inline void give(struct queue *q) { atomic_store_explicit(&q->busy, 0, memory_order_release); }

static inline int running(struct port *p) { return atomic_load_explicit(&p->running, memory_order_acquire); }

static inline uint32_t slots_of(const struct rte_mbuf *m) { return (m->pkt_len + SLOT - 1) / SLOT; }

// Takes packets from a queue whose `busy` the caller holds, and keeps them; the slots they need.
static inline uint32_t fetch(struct port *p, struct queue *q, uint32_t port, uint32_t queue) {
  uint16_t n = 0;
  if (likely(running(p) && queue < p->config.rx_queues))
    n = rte_eth_rx_burst((uint16_t)port, (uint16_t)queue, q->mbufs, p->burst);
  uint32_t slots = 0;
  uint16_t kept = 0;
  for (uint16_t i = 0; i < n; i++) {
    struct rte_mbuf *m = q->mbufs[i];
    if (unlikely(m->ol_flags & RTE_MBUF_F_RX_VLAN_STRIPPED) && rte_vlan_insert(&m) != 0) {
      rte_pktmbuf_free(m);
      continue;
    }
    uint32_t need = slots_of(m);
    // Longer than was asked for, or empty: neither is a frame.
    if (unlikely(need == 0 || slots + need > SHOAL_FRAME_SIZE)) {
      rte_pktmbuf_free(m);
      continue;
    }
    rte_prefetch0(rte_pktmbuf_mtod(m, void *));
    slots += need;
    q->mbufs[kept++] = m;
  }
  q->pending = kept;
  return slots;
}

uint32_t dpdk_poll(uint32_t port, uint32_t queue) {
  if (unlikely(port >= RTE_MAX_ETHPORTS || queue >= QUEUES))
    return 0;
  struct port *p = &dpdk_ports[port];
  struct queue *q = &p->rx[queue];
  if (unlikely(q->pending != 0)) {
    // Found by `dpdk_arm`.
    uint32_t left = q->left;
    q->left = 0;
    return left;
  }
  // Whoever changes the port has it: the next poll is soon.
  if (unlikely(!running(p) || !take(q)))
    return 0;
  enter();
  uint32_t slots = fetch(p, q, port, queue);
  give(q);
  return slots;
}

int dpdk_arm(uint32_t port, uint32_t queue) {
  if (port >= RTE_MAX_ETHPORTS || queue >= QUEUES)
    return -EINVAL;
  struct port *p = &dpdk_ports[port];
  struct queue *q = &p->rx[queue];
  if (q->pending != 0)
    return q->left != 0;
  if (!running(p) || !take(q))
    return -EBUSY;
  enter();
  int error = -ENOTSUP;
  if (running(p) && q->waits) {
    error = rte_eth_dev_rx_intr_enable((uint16_t)port, (uint16_t)queue);
    // Descriptors of some virtual devices tell of packets all the time.
    if (error == 0 || error == -ENOTSUP) {
      q->armed = 1;
      // What came between the last look and this moment makes no interrupt with all devices.
      q->left = (uint16_t)fetch(p, q, port, queue);
      error = q->left != 0;
    }
  }
  give(q);
  return error;
}

void dpdk_disarm(uint32_t port, uint32_t queue) {
  if (port >= RTE_MAX_ETHPORTS || queue >= QUEUES)
    return;
  struct port *p = &dpdk_ports[port];
  struct queue *q = &p->rx[queue];
  if (!q->armed)
    return;
  q->armed = 0;
  // Whoever changes the port sees to it.
  if (!running(p) || !take(q))
    return;
  if (running(p) && q->waits) {
    rte_eth_dev_rx_intr_disable((uint16_t)port, (uint16_t)queue);
    // Takes the event and reads what the device's driver counts interrupts in, as its kind demands.
    struct rte_epoll_event event;
    rte_epoll_wait(q->epoll, &event, 1, 0);
  }
  give(q);
}

// The state of a packet's checksum, into its first slot.
static inline void tell_checksum(struct rte_mbuf *m, struct shoal_slot *slot) {
  uint64_t l4 = m->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK;
  if (l4 == RTE_MBUF_F_RX_L4_CKSUM_GOOD) {
    slot->flags |= SHOAL_SLOT_CHECKSUM_GOOD;
  } else if (l4 == RTE_MBUF_F_RX_L4_CKSUM_NONE) {
    // From a machine's own guest: the bytes are good, the checksum has the pseudo-header only.
    struct rte_net_hdr_lens lens;
    uint32_t type = rte_net_get_ptype(m, &lens, RTE_PTYPE_ALL_MASK) & RTE_PTYPE_L4_MASK;
    if (type == RTE_PTYPE_L4_TCP || type == RTE_PTYPE_L4_UDP) {
      slot->flags |= SHOAL_SLOT_CHECKSUM_LEFT;
      slot->checksum_start = lens.l2_len + lens.l3_len;
      slot->checksum_offset = type == RTE_PTYPE_L4_TCP ? 16 : 6;
    }
  }
}

// Copies a packet into slots; returns how many, 0 when there are too few.
static inline uint32_t copy_in(struct rte_mbuf *m, struct shoal_slot *slots, uint32_t room) {
  uint32_t len = m->pkt_len;
  if (likely(m->nb_segs == 1 && room > 0 && len <= slots->capacity)) {
    rte_memcpy(slots->bytes, rte_pktmbuf_mtod(m, void *), len);
    slots->length = len;
    slots->flags = 0;
    return 1;
  }
  uint32_t used = 0, off = 0;
  while (off < len) {
    if (used == room)
      return 0;
    struct shoal_slot *slot = &slots[used++];
    uint32_t n = RTE_MIN(len - off, slot->capacity);
    // Copies only if the bytes are in several parts.
    const void *from = rte_pktmbuf_read(m, off, n, slot->bytes);
    if (n == 0 || from == NULL)
      return 0;
    if (from != slot->bytes)
      rte_memcpy(slot->bytes, from, n);
    slot->length = n;
    off += n;
    slot->flags = off < len ? SHOAL_SLOT_MORE : 0;
  }
  return used;
}

void dpdk_receive(struct shoal_burst *burst) {
  if (unlikely(burst->device >= RTE_MAX_ETHPORTS || burst->queue >= QUEUES))
    return;
  struct queue *q = &dpdk_ports[burst->device].rx[burst->queue];
  uint32_t used = 0;
  for (uint16_t i = 0; i < q->pending; i++) {
    struct shoal_slot *first = &burst->slots[used];
    uint32_t n = copy_in(q->mbufs[i], first, burst->count - used);
    if (unlikely(n == 0)) {
      burst->lost++;
      continue;
    }
    if (q->mbufs[i]->ol_flags & RTE_MBUF_F_RX_L4_CKSUM_MASK)
      tell_checksum(q->mbufs[i], first);
    used += n;
  }
  rte_pktmbuf_free_bulk(q->mbufs, q->pending);
  q->pending = 0;
  burst->used = used;
}

// What the device is to do with a packet; 0, or -1 when that cannot be.
static int ask_offloads(const struct port *p, struct rte_mbuf *m, const struct shoal_slot *slot) {
  const uint8_t *data = rte_pktmbuf_mtod(m, const uint8_t *);
  uint16_t l2 = RTE_ETHER_HDR_LEN;
  if (m->data_len < l2 + 2 * RTE_VLAN_HLEN)
    return -1;
  uint16_t type = (uint16_t)(data[12] << 8 | data[13]);
  for (int tags = 0; tags < 2 && (type == RTE_ETHER_TYPE_VLAN || type == RTE_ETHER_TYPE_QINQ); tags++) {
    type = (uint16_t)(data[l2 + 2] << 8 | data[l2 + 3]);
    l2 += RTE_VLAN_HLEN;
  }
  uint64_t flags;
  if (type == RTE_ETHER_TYPE_IPV4)
    flags = RTE_MBUF_F_TX_IPV4;
  else if (type == RTE_ETHER_TYPE_IPV6)
    flags = RTE_MBUF_F_TX_IPV6;
  else
    return -1;
  uint32_t least = l2 + (type == RTE_ETHER_TYPE_IPV4 ? sizeof(struct rte_ipv4_hdr) : sizeof(struct rte_ipv6_hdr));
  if (slot->checksum_start < least || slot->checksum_start - l2 > 511 ||
      (uint32_t)slot->checksum_start + slot->checksum_offset + 2 > m->data_len)
    return -1;
  m->l2_len = l2;
  m->l3_len = slot->checksum_start - l2;
  if (slot->gso != SHOAL_GSO_NONE) {
    int l4 = slot->header_length - slot->checksum_start;
    if (!(p->tx_offloads & RTE_ETH_TX_OFFLOAD_TCP_TSO) || l4 < 20 || l4 > 60 || slot->header_length > m->data_len ||
        slot->gso_size == 0)
      return -1;
    m->l4_len = (uint8_t)l4;
    m->tso_segsz = slot->gso_size;
    flags |= RTE_MBUF_F_TX_TCP_SEG | RTE_MBUF_F_TX_TCP_CKSUM;
    if (type == RTE_ETHER_TYPE_IPV4)
      flags |= RTE_MBUF_F_TX_IP_CKSUM;
  } else if (slot->checksum_offset == 16) {
    m->l4_len = 20;
    flags |= RTE_MBUF_F_TX_TCP_CKSUM;
  } else if (slot->checksum_offset == 6) {
    m->l4_len = 8;
    flags |= RTE_MBUF_F_TX_UDP_CKSUM;
  } else {
    return -1;
  }
  m->ol_flags |= flags;
  return 0;
}

// Copies a packet out of slots into `m`, which is empty, and as many more mbufs as it needs; 0, or -1.
static int copy_out(struct port *p, struct rte_mbuf *m, const struct shoal_slot *slots, uint32_t n) {
  struct rte_mbuf *last = m;
  for (uint32_t i = 0; i < n; i++) {
    const uint8_t *from = slots[i].bytes;
    uint32_t left = slots[i].length;
    while (left > 0) {
      uint32_t room = rte_pktmbuf_tailroom(last);
      if (room == 0) {
        struct rte_mbuf *more = p->config.multi_segs ? rte_pktmbuf_alloc(p->pool) : NULL;
        if (more == NULL)
          return -1;
        last->next = more;
        last = more;
        m->nb_segs++;
        continue;
      }
      uint32_t part = RTE_MIN(left, room);
      rte_memcpy(rte_pktmbuf_mtod_offset(last, void *, last->data_len), from, part);
      last->data_len += (uint16_t)part;
      m->pkt_len += part;
      from += part;
      left -= part;
    }
  }
  return 0;
}

// Has the driver look at packets with offloads; those it does not want are freed, counted, and left out.
static uint16_t prepare(const struct shoal_burst *burst, struct rte_mbuf **mbufs, uint16_t n, uint32_t *refused) {
  uint16_t done = 0;
  while (done < n) {
    done += rte_eth_tx_prepare((uint16_t)burst->device, (uint16_t)burst->queue, mbufs + done, n - done);
    if (done < n) {
      rte_pktmbuf_free(mbufs[done]);
      memmove(&mbufs[done], &mbufs[done + 1], (size_t)(n - done - 1) * sizeof *mbufs);
      n--;
      (*refused)++;
    }
  }
  return n;
}

// Sends packets, from the one at `*at` on, as many as one burst takes; 0 when the device does not take all.
static int send_some(struct port *p, struct shoal_burst *burst, uint32_t *at) {
  struct rte_mbuf *mbufs[BURST];
  uint32_t first[BURST], parts[BURST], packets = 0;
  for (uint32_t i = *at; i < burst->count && packets < BURST; packets++) {
    first[packets] = i;
    while (i < burst->count && burst->slots[i].flags & SHOAL_SLOT_MORE)
      i++;
    i++;
    parts[packets] = RTE_MIN(i, burst->count) - first[packets];
  }
  if (packets == 0 || rte_pktmbuf_alloc_bulk(p->pool, mbufs, packets) != 0)
    return 0;
  uint32_t refused = 0;
  uint16_t ready = 0;
  int offloads = 0;
  for (uint32_t i = 0; i < packets; i++) {
    const struct shoal_slot *slot = &burst->slots[first[i]];
    struct rte_mbuf *m = mbufs[i];
    if (likely(parts[i] == 1 && slot->length <= rte_pktmbuf_tailroom(m))) {
      rte_memcpy(rte_pktmbuf_mtod(m, void *), slot->bytes, slot->length);
      m->data_len = (uint16_t)slot->length;
      m->pkt_len = slot->length;
    } else if (copy_out(p, m, slot, parts[i]) != 0) {
      rte_pktmbuf_free(m);
      refused++;
      continue;
    }
    if (unlikely(slot->flags & SHOAL_SLOT_CHECKSUM_LEFT)) {
      if (ask_offloads(p, m, slot) != 0) {
        rte_pktmbuf_free(m);
        refused++;
        continue;
      }
      offloads = 1;
    }
    mbufs[ready++] = m;
  }
  if (unlikely(offloads))
    ready = prepare(burst, mbufs, ready, &refused);
  uint16_t sent = 0;
  // A driver may take part of them only to find room for the rest at the next call.
  for (int tries = 0; tries < 4 && sent < ready; tries++)
    sent += rte_eth_tx_burst((uint16_t)burst->device, (uint16_t)burst->queue, mbufs + sent, ready - sent);
  if (sent < ready)
    rte_pktmbuf_free_bulk(mbufs + sent, ready - sent);
  burst->used += sent + refused;
  burst->lost += refused;
  *at = first[packets - 1] + parts[packets - 1];
  return sent == ready;
}

void dpdk_send(struct shoal_burst *burst) {
  if (unlikely(burst->device >= RTE_MAX_ETHPORTS || burst->queue >= QUEUES))
    return;
  struct port *p = &dpdk_ports[burst->device];
  struct queue *q = &p->tx[burst->queue];
  // Two threads may share a queue; whoever changes the port is not waited for.
  while (!take(q)) {
    if (!running(p))
      return;
    rte_pause();
  }
  enter();
  if (likely(running(p) && burst->queue < p->config.tx_queues)) {
    uint32_t at = 0;
    while (at < burst->count && send_some(p, burst, &at))
      ;
  }
  give(q);
}
