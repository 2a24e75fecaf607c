//! Which counter has which name.

use prometheus_client::metrics::MetricType;

/// A table by object, and its family; `_packets` and `_bytes` follow the name of one that has both.
pub(super) struct ByInterface {
    pub counter: &'static str,
    pub name: &'static str,
    pub help: &'static str,
}

const fn by(counter: &'static str, name: &'static str, help: &'static str) -> ByInterface {
    ByInterface { counter, name, help }
}

/// Counters of interfaces.
pub(super) const INTERFACES: &[ByInterface] = &[
    by("/if/rx", "interface_receive", "Received on an interface"),
    by("/if/rx-unicast", "interface_receive_unicast", "Received for one station, where collected"),
    by("/if/rx-multicast", "interface_receive_multicast", "Received for groups, where collected"),
    by("/if/rx-broadcast", "interface_receive_broadcast", "Received for everybody, where collected"),
    by("/if/tx", "interface_transmit", "Sent on an interface"),
    by("/if/tx-unicast", "interface_transmit_unicast", "Sent to one station, where collected"),
    by("/if/tx-multicast", "interface_transmit_multicast", "Sent to groups, where collected"),
    by("/if/tx-broadcast", "interface_transmit_broadcast", "Sent to everybody, where collected"),
    by("/if/drops", "interface_drops", "Packets dropped, by the interface they came in by"),
    by("/if/punt", "interface_punts", "Packets handed to the host, by the interface they came in by"),
    by("/if/ip4", "interface_receive_ip4_packets", "IPv4 packets received"),
    by("/if/ip6", "interface_receive_ip6_packets", "IPv6 packets received"),
    by("/if/mpls", "interface_receive_mpls_packets", "MPLS packets received"),
    by("/if/rx-no-buf", "interface_receive_no_buffer", "Packets lost because no buffer was free"),
    by("/if/rx-miss", "interface_receive_missed", "Packets the device lost before the router saw them"),
    by("/if/rx-error", "interface_receive_errors", "Packets received damaged"),
    by("/if/tx-error", "interface_transmit_errors", "Packets that could not be sent"),
];

/// Counters of neighbours' protocols, by interface.
pub(super) const NEIGHBOURS: &[ByInterface] = &[
    by("/net/arp/rx/requests", "arp_receive_requests", "ARP requests received"),
    by("/net/arp/rx/replies", "arp_receive_replies", "ARP replies received"),
    by("/net/arp/rx/gratuitous", "arp_receive_gratuitous", "Gratuitous ARP received"),
    by("/net/arp/tx/requests", "arp_transmit_requests", "ARP requests sent"),
    by("/net/arp/tx/replies", "arp_transmit_replies", "ARP replies sent"),
    by("/net/arp/tx/gratuitous", "arp_transmit_gratuitous", "Gratuitous ARP sent"),
    by("/net/ip6-nd/rx/requests", "ip6_nd_receive_requests", "Neighbour solicitations received"),
    by("/net/ip6-nd/rx/replies", "ip6_nd_receive_replies", "Neighbour advertisements received"),
    by("/net/ip6-nd/rx/gratuitous", "ip6_nd_receive_gratuitous", "Unsolicited advertisements received"),
    by("/net/ip6-nd/tx/requests", "ip6_nd_transmit_requests", "Neighbour solicitations sent"),
    by("/net/ip6-nd/tx/replies", "ip6_nd_transmit_replies", "Neighbour advertisements sent"),
    by("/net/ip6-nd/tx/gratuitous", "ip6_nd_transmit_gratuitous", "Unsolicited advertisements sent"),
];

/// Counters of nodes, with `per-node-counters on`.
pub(super) const NODES: &[ByInterface] = &[
    by("/sys/node/clocks", "node_clocks", "Clocks a node took"),
    by("/sys/node/vectors", "node_vectors", "Packets a node saw"),
    by("/sys/node/calls", "node_calls", "Times a node ran"),
    by("/sys/node/suspends", "node_suspends", "Times a process gave way"),
];

type Number = (&'static str, MetricType, &'static str, &'static str);

/// Numbers of the system.
pub(super) const NUMBERS: &[Number] = &[
    ("/sys/heartbeat", MetricType::Counter, "heartbeat", "Rounds of the router's collector"),
    ("/sys/boottime", MetricType::Gauge, "boot_time_seconds", "When the router started, in Unix time"),
    (
        "/sys/last_update",
        MetricType::Gauge,
        "last_update_seconds",
        "The collector's last round, since the start",
    ),
    (
        "/sys/last_stats_clear",
        MetricType::Gauge,
        "last_clear_seconds",
        "When counters were cleared, since the start",
    ),
    ("/sys/vector_rate", MetricType::Gauge, "vector_rate", "Packets per call of a node, over workers"),
    ("/sys/input_rate", MetricType::Gauge, "input_packets_per_second", "Packets received per second"),
    ("/sys/num_worker_threads", MetricType::Gauge, "worker_threads", "Workers"),
];

/// Tables by thread.
pub(super) const THREADS: &[Number] = &[
    (
        "/sys/vector_rate_per_worker",
        MetricType::Gauge,
        "thread_vector_rate",
        "Packets per call of a node, by thread",
    ),
    (
        "/sys/loops_per_worker",
        MetricType::Gauge,
        "thread_loops_per_second",
        "Turns of a thread's loop per second",
    ),
    (
        "/sys/busy_microseconds_per_worker",
        MetricType::Counter,
        "thread_busy_microseconds",
        "Time that a thread had packets in hand",
    ),
];

/// Beginnings of what has families of its own.
pub(super) const PATHS: &[&str] = &["/err/", "/node/errors", "/mem/", "/buffer-pools/"];
