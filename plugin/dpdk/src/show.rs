//! What operators read.

// Writing to a String cannot fail.
use std::fmt::Write as _;

use crate::control::{Dpdk, TX_CHECKSUM, TX_TSO};
use crate::names;
use crate::sys::{self, Info};

/// `RTE_ETH_RX_OFFLOAD_*` and `RTE_ETH_TX_OFFLOAD_*` that matter here.
const RX: [(u64, &str); 6] = [
    (1 << 1, "ipv4-cksum"),
    (1 << 2, "udp-cksum"),
    (1 << 3, "tcp-cksum"),
    (1 << 4, "tcp-lro"),
    (1 << 13, "scatter"),
    (1 << 19, "rss-hash"),
];
const TX: [(u64, &str); 6] = [
    (1 << 1, "ipv4-cksum"),
    (1 << 2, "udp-cksum"),
    (1 << 3, "tcp-cksum"),
    (1 << 5, "tcp-tso"),
    (1 << 15, "multi-segs"),
    (1 << 16, "mbuf-fast-free"),
];

fn words(bits: u64, names: &[(u64, &'static str)]) -> String {
    let words: Vec<_> = names.iter().filter(|(bit, _)| bits & bit != 0).map(|(_, name)| *name).collect();
    if words.is_empty() { "none".to_owned() } else { words.join(" ") }
}

/// The line of `show hardware-interfaces` that says what it is.
pub(crate) fn kind(info: &Info) -> String {
    format!("DPDK {}", info.driver)
}

/// `show dpdk version`.
pub(crate) fn version(dpdk: &Dpdk) -> String {
    let mut text = format!("DPDK Version:             {}\n", sys::version());
    match dpdk.arguments() {
        Some(arguments) => {
            let _ = writeln!(
                text,
                "DPDK EAL init args:       {}",
                arguments.get(1..).unwrap_or_default().join(" ")
            );
        }
        None => text.push_str("DPDK EAL init args:       not started, as no device was asked for\n"),
    }
    text
}

/// `show dpdk buffer`.
pub(crate) fn buffer() -> String {
    let mut text = String::new();
    for pool in sys::pools() {
        if pool.size == 0 {
            let _ = writeln!(text, "name=\"{}\"  of {} bytes, not needed yet", pool.name, pool.room);
        } else {
            let sys::Pool { name, room, size, free, used } = pool;
            let _ = writeln!(
                text,
                "name=\"{name}\"  of {room} bytes, size = {size}, available = {free}, in use = {used}"
            );
        }
    }
    text
}

/// `show dpdk devices`.
pub(crate) fn devices(dpdk: &Dpdk) -> String {
    if dpdk.arguments().is_none() {
        return "DPDK is not started, as no device was asked for\n".to_owned();
    }
    let names = dpdk.names();
    let mut text = String::new();
    for port in sys::ports() {
        let Ok(info) = sys::info(port) else { continue };
        let name = names.get(&port).map_or("no interface", String::as_str);
        let _ = writeln!(text, "{port:3}  {:16} {:16} {name}", info.device, info.driver);
    }
    text
}

fn interrupts(info: &Info) -> String {
    match (info.interrupts, &info.no_interrupts) {
        (None, _) => "not known before it is up".to_owned(),
        (Some(0), None) => "not asked for".to_owned(),
        (Some(0), Some(why)) => format!("none, {why}"),
        (Some(_), None) => "of all queues".to_owned(),
        (Some(n), Some(why)) => format!("of {n} queues only, {why}"),
    }
}

/// The lines of a port.
pub(crate) fn port(port: u16) -> String {
    let Ok(info) = sys::info(port) else { return "the port has gone".to_owned() };
    let mut text = String::new();
    let state = if info.started { "started" } else { "stopped" };
    let numa = if info.numa < 0 { "unknown".to_owned() } else { info.numa.to_string() };
    let _ = writeln!(text, "device {} port {port} {state} numa {numa}", info.device);
    let of = |most: u16| if most == u16::MAX { "any".to_owned() } else { most.to_string() };
    let _ = writeln!(
        text,
        "max rx queues {} max tx queues {} rx desc {} to {} tx desc {} to {}",
        info.max_rx_queues,
        info.max_tx_queues,
        info.rx_desc.0,
        of(info.rx_desc.1),
        info.tx_desc.0,
        of(info.tx_desc.1)
    );
    let _ = writeln!(text, "mtu {} of {} to {}", info.mtu, info.min_mtu, of(info.max_mtu));
    let _ = writeln!(text, "rx offload avail: {}", words(info.rx_capa, &RX));
    let _ = writeln!(text, "rx offload active: {}", words(info.rx_offloads, &RX));
    let _ = writeln!(text, "tx offload avail: {}", words(info.tx_capa, &TX));
    let _ = writeln!(text, "tx offload active: {}", words(info.tx_offloads, &TX));
    let software = |bits: u64| if info.tx_offloads & bits == bits { "device" } else { "router" };
    let _ = writeln!(
        text,
        "checksums by the {}, large TCP packets cut by the {}",
        software(TX_CHECKSUM),
        software(TX_TSO)
    );
    let _ = writeln!(text, "rx interrupts: {}", interrupts(&info));
    let _ = writeln!(text, "rss avail 0x{:x} active 0x{:x}", info.rss_capa, info.rss);
    let _ = write!(text, "usual name {}", names::name(&info, false));
    text
}

/// The device's own counters that are not zero.
pub(crate) fn counters(port: u16) -> String {
    let mut text = "extended stats:".to_owned();
    for (name, value) in sys::xstats(port).into_iter().filter(|(_, value)| *value != 0) {
        let _ = write!(text, "\n  {name:40} {value:>20}");
    }
    text
}
