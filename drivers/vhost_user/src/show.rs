//! The answer of `show vhost-user`, in VPP's layout.

use std::fmt;

use serde::Serialize;
use shoal_graph::QueueInfo;
use shoal_interface::TxQueueInfo;

use crate::features::{FEATURES, Features, PROTOCOL};
use crate::{Desc, RegionDescription, RingInfo, VhostInfo};

#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Shown(Vec<Row>);

#[derive(Serialize)]
struct Row {
    interface: String,
    sw_if_index: u32,
    socket: String,
    role: &'static str,
    gso: bool,
    connected: bool,
    ready: bool,
    /// Why it is not.
    reason: Option<String>,
    connections: u64,
    refused: u64,
    header_bytes: u32,
    features_offered: String,
    features: String,
    feature_names: Vec<&'static str>,
    protocol_features: String,
    protocol_feature_names: Vec<&'static str>,
    rx_placement: Vec<Rx>,
    tx_placement: Vec<Tx>,
    regions: Vec<Region>,
    rings: Vec<Ring>,
    #[serde(skip)]
    sets: [Features; 3],
}

#[derive(Serialize)]
struct Rx {
    thread: usize,
    vring: u32,
    mode: String,
}

#[derive(Serialize)]
struct Tx {
    vring: u32,
    threads: Vec<usize>,
}

#[derive(Serialize)]
struct Region {
    fd: i32,
    guest: u64,
    size: u64,
    user: u64,
    offset: u64,
}

#[derive(Serialize)]
struct Ring {
    number: usize,
    direction: &'static str,
    size: u32,
    running: bool,
    last_avail: u16,
    avail_flags: u16,
    avail_index: u16,
    used_flags: u16,
    used_index: u16,
    kick_fd: i32,
    call_fd: i32,
    calls: u64,
    kicks: u64,
    bad_chains: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    descriptors: Vec<Descriptor>,
}

#[derive(Serialize)]
struct Descriptor {
    addr: u64,
    len: u32,
    flags: u16,
    next: u16,
}

fn names(of: &[(u32, &'static str)], set: Features) -> Vec<&'static str> {
    of.iter().filter(|(bit, _)| set.has(*bit)).map(|(_, name)| *name).collect()
}

impl Shown {
    pub(crate) fn new(all: Vec<VhostInfo>, rx: Vec<Vec<QueueInfo>>, tx: Vec<Vec<TxQueueInfo>>) -> Self {
        let rows = all.into_iter().zip(rx).zip(tx).map(|((info, rx), tx)| Row::new(info, rx, tx));
        Shown(rows.collect())
    }
}

impl Row {
    fn new(info: VhostInfo, rx: Vec<QueueInfo>, tx: Vec<TxQueueInfo>) -> Self {
        let pairs = info.rings.iter().filter(|r| r.running && r.number % 2 == 0).count();
        let set = |features: Features| format!("{:#x}", features.0);
        Row {
            interface: info.name,
            sw_if_index: info.index.0,
            socket: info.path,
            role: info.config.role.name(),
            gso: true,
            connected: info.connected,
            ready: info.ready,
            reason: (!info.ready).then_some(info.why),
            connections: info.connections,
            refused: info.refused,
            header_bytes: info.features.header_len(),
            features_offered: set(info.offered),
            features: set(info.features),
            feature_names: names(FEATURES, info.features),
            protocol_features: set(info.protocol),
            protocol_feature_names: names(PROTOCOL, info.protocol),
            rx_placement: rx
                .into_iter()
                .map(|q| Rx { thread: q.thread, vring: q.queue * 2 + 1, mode: q.mode.to_string() })
                .collect(),
            tx_placement: tx
                .into_iter()
                .take(pairs)
                .zip(0..)
                .map(|(q, number): (_, u32)| Tx { vring: number * 2, threads: q.threads })
                .collect(),
            regions: info.regions.into_iter().map(Region::from).collect(),
            rings: info.rings.into_iter().map(Ring::from).collect(),
            sets: [info.offered, info.features, info.protocol],
        }
    }
}

impl From<(RegionDescription, i32)> for Region {
    fn from((said, fd): (RegionDescription, i32)) -> Self {
        Region { fd, guest: said.guest, size: said.size, user: said.user, offset: said.offset }
    }
}

impl From<RingInfo> for Ring {
    fn from(ring: RingInfo) -> Self {
        let descriptor = |d: Desc| Descriptor { addr: d.addr, len: d.len, flags: d.flags, next: d.next };
        Ring {
            number: ring.number,
            direction: if ring.number.is_multiple_of(2) { "TX" } else { "RX" },
            size: ring.size,
            running: ring.running,
            last_avail: ring.next,
            avail_flags: ring.avail.0,
            avail_index: ring.avail.1,
            used_flags: ring.used.0,
            used_index: ring.used.1,
            kick_fd: ring.kick,
            call_fd: ring.call,
            calls: ring.calls,
            kicks: ring.kicks,
            bad_chains: ring.bad,
            descriptors: ring.descs.into_iter().map(descriptor).collect(),
        }
    }
}

impl fmt::Display for Shown {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Virtio vhost-user interfaces")?;
        self.0.iter().try_for_each(|row| row.fmt(f))
    }
}

fn set(f: &mut fmt::Formatter<'_>, name: &str, of: &[(u32, &str)], features: Features) -> fmt::Result {
    writeln!(f, " {name} ({:#x}):", features.0)?;
    of.iter()
        .filter(|(bit, _)| features.has(*bit))
        .try_for_each(|(bit, name)| writeln!(f, "   {name} ({bit})"))
}

impl fmt::Display for Row {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let [offered, features, protocol] = self.sets;
        writeln!(f, "Interface: {} (ifindex {})", self.interface, self.sw_if_index)?;
        writeln!(f, "  GSO enable")?;
        writeln!(f, "virtio_net_hdr_sz {}", self.header_bytes)?;
        writeln!(f, " features mask ({:#x}):", offered.0)?;
        set(f, "features", FEATURES, features)?;
        set(f, "protocol features", PROTOCOL, protocol)?;
        writeln!(f, "\n socket filename {} type {}", self.socket, self.role)?;
        match &self.reason {
            Some(why) => writeln!(f, " not ready: {why}")?,
            None => writeln!(f, " ready")?,
        }
        writeln!(f, " connections {}, refused {}", self.connections, self.refused)?;
        writeln!(f, "\n rx placement:")?;
        for rx in &self.rx_placement {
            writeln!(f, "   thread {} on vring {}, {}", rx.thread, rx.vring, rx.mode)?;
        }
        writeln!(f, " tx placement:")?;
        for tx in &self.tx_placement {
            let threads: Vec<_> = tx.threads.iter().map(ToString::to_string).collect();
            writeln!(f, "   threads {} on vring {}", threads.join(", "), tx.vring)?;
        }
        writeln!(f, "\n Memory regions (total {})", self.regions.len())?;
        if !self.regions.is_empty() {
            writeln!(
                f,
                " region fd    guest_phys_addr    memory_size        userspace_addr     mmap_offset"
            )?;
            writeln!(
                f,
                " ====== ===== ================== ================== ================== =================="
            )?;
        }
        for (number, r) in self.regions.iter().enumerate() {
            let Region { fd, guest, size, user, offset } = r;
            writeln!(f, " {number:6} {fd:5} {guest:#018x} {size:#018x} {user:#018x} {offset:#018x}")?;
        }
        self.rings.iter().try_for_each(|ring| ring.fmt(f))
    }
}

impl fmt::Display for Ring {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Ring { number, direction, size, last_avail, avail_flags, avail_index, .. } = self;
        let Ring { used_flags, used_index, kick_fd, call_fd, calls, kicks, bad_chains, .. } = self;
        let state = if self.running { "" } else { ", not running" };
        writeln!(f, "\n Virtqueue {number} ({direction}{state})")?;
        writeln!(f, "  qsz {size} last_avail_idx {last_avail} last_used_idx {used_index}")?;
        writeln!(
            f,
            "  avail.flags {avail_flags:x} avail.idx {avail_index} used.flags {used_flags:x} used.idx {used_index}"
        )?;
        writeln!(f, "  kickfd {kick_fd} callfd {call_fd}")?;
        writeln!(f, "  kicks {kicks} calls {calls} bad chains {bad_chains}")?;
        if !self.descriptors.is_empty() {
            writeln!(f, "  descriptor table:")?;
            writeln!(f, "   slot         addr         len  flags  next")?;
        }
        for (slot, d) in self.descriptors.iter().enumerate() {
            let Descriptor { addr, len, flags, next } = d;
            writeln!(f, "   {slot:<5} {addr:#018x} {len:6} {flags:#06x} {next:5}")?;
        }
        Ok(())
    }
}
