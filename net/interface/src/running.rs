//! What rebuilds interfaces and their settings.

use shoal_buffer::{MAX_INTERFACES, SwIfIndex};
use shoal_graph::{PacketNode, RxMode};
use shoal_module::{Control, Phase, Running, word};

use crate::control::Kept;
use crate::loopback::{BVI, CLASS, bvi_mac, default_mac};
use crate::node::stats_collect::StatsCollectRx;
use crate::{DEVICE_INPUT_ARC, IfFlags, Info, Interfaces, TxQueueInfo};

impl Interfaces {
    /// Writes the command that makes an interface, and names it as it is called now if that makes another name of it.
    pub fn write_create(&self, running: &mut Running, index: SwIfIndex, line: String, made_as: &str) {
        running.line_at(Phase::Interfaces, index.0, line);
        self.write_name(running, index, made_as);
    }

    /// Names an interface as it is called now, if something else than a command makes it by another name.
    pub fn write_name(&self, running: &mut Running, index: SwIfIndex, made_as: &str) {
        let Ok(name) = self.name(index) else { return };
        if name == made_as {
            return;
        }
        // Sub-interfaces are called after their ports until they get names of their own.
        let place = if self.sub(index).is_some() { 2 } else { 0 };
        // Where names change places, one stands aside until the other has it.
        let mut aside = format!("{made_as}-aside");
        while self.by_name(&aside).is_some() {
            aside.push('-');
        }
        let from = if self.by_name(made_as).is_some() {
            let line = format!("set interface name {} {}", word(made_as), word(&aside));
            running.line_at(Phase::Names, place, line);
            aside.as_str()
        } else {
            made_as
        };
        let line = format!("set interface name {} {}", word(from), word(&name));
        running.line_at(Phase::Names, place + 1, line);
    }
}

pub(crate) fn running(control: &Control, running: &mut Running) {
    let Some(interfaces) = running.part::<Interfaces>(control) else { return };
    if !interfaces.superpath_enabled() {
        running.line(Phase::System, "set superpath off");
    }
    running.each(interfaces.indices(), move |running, index| {
        if interfaces.follows(index) {
            return;
        }
        let (Ok(info), Some(kept)) = (interfaces.info(index), interfaces.kept(index)) else { return };
        if [CLASS, BVI].contains(&info.class) && info.sub.is_none() {
            create(&interfaces, &info, &kept, running);
        } else if index == SwIfIndex(0) {
            interfaces.write_name(running, index, &kept.made_as);
        }
        one(&interfaces, &info, &kept, running);
    });
}

fn create(interfaces: &Interfaces, info: &Info, kept: &Kept, running: &mut Running) {
    let (prefix, usual, command): (_, fn(u32) -> _, _) = match info.class {
        BVI => ("bvi", bvi_mac, "bvi create"),
        _ => ("loop", default_mac, "create loopback interface"),
    };
    let Some(instance) = kept.made_as.strip_prefix(prefix).and_then(|n| n.parse::<u32>().ok()) else {
        return;
    };
    let mac = if info.mac == usual(instance) { String::new() } else { format!(" mac {}", info.mac) };
    let line = format!("{command}{mac} instance {instance}");
    interfaces.write_create(running, info.index, line, &kept.made_as);
}

/// Whether packets are counted by kind of destination, not because a client has named the feature.
fn collects(interfaces: &Interfaces, index: SwIfIndex, kept: &Kept) -> bool {
    let named = (DEVICE_INPUT_ARC.to_owned(), StatsCollectRx::NAME.to_owned());
    let is_on = |(name, on): &(String, bool)| name == StatsCollectRx::NAME && *on;
    let arcs = interfaces.graph().features(Some(index));
    !kept.features.contains_key(&named)
        && arcs.iter().any(|(arc, features)| *arc == DEVICE_INPUT_ARC && features.iter().any(is_on))
}

fn one(interfaces: &Interfaces, info: &Info, kept: &Kept, running: &mut Running) {
    let name = word(&info.name);
    let mut set = |line: String| running.line_at(Phase::Settings, info.index.0, line);
    if !info.tag.is_empty() {
        set(format!("set interface tag {name} {}", word(&info.tag)));
    }
    if let Some(mtu) = kept.mtu {
        set(format!("set interface mtu {mtu} {name}"));
    }
    for (layer, mtu) in [("ip4", info.mtu.ip4), ("ip6", info.mtu.ip6), ("mpls", info.mtu.mpls)] {
        if mtu != 0 {
            set(format!("set interface mtu {layer} {mtu} {name}"));
        }
    }
    if info.index == SwIfIndex(0) && !info.mac.is_zero() {
        set(format!("set interface mac address {name} {}", info.mac));
    }
    if info.flags.has(IfFlags::PROMISCUOUS) {
        set(format!("set interface promiscuous on {name}"));
    }
    for queue in interfaces.queues(info.index).unwrap_or_default() {
        let number = queue.queue;
        if queue.mode != RxMode::default() {
            set(format!("set interface rx-mode {name} queue {number} {}", queue.mode));
        }
        // One whose worker has gone is where no operator has put it.
        if kept.placed.get(&number) == Some(&queue.thread) {
            let thread = match queue.thread.checked_sub(1) {
                Some(worker) => format!("worker {worker}"),
                None => "main".into(),
            };
            set(format!("set interface rx-placement {name} queue {number} {thread}"));
        }
    }
    for line in tx_placement(interfaces, info.index, &name) {
        set(line);
    }
    if collects(interfaces, info.index, kept) {
        set(format!("set interface collect-detailed-stats {name} enable"));
    }
    for ((arc, feature), on) in &kept.features {
        let off = if *on { "" } else { " disable" };
        running.line_at(
            Phase::Policies,
            info.index.0,
            format!("set interface feature {name} {feature} arc {arc}{off}"),
        );
    }
    if info.flags.has(IfFlags::ADMIN_UP) {
        // Sub-interfaces behind all others: they go up after their ports.
        let place = if info.sub.is_some() { MAX_INTERFACES as u32 } else { 0 } + info.index.0;
        running.line_at(Phase::State, place, format!("set interface state {name} up"));
    }
}

/// Which threads send by which queue, if it is not the threads in turn. All queues are named, so that each thread ends
/// where it was.
fn tx_placement(interfaces: &Interfaces, index: SwIfIndex, name: &str) -> Vec<String> {
    let queues = interfaces.tx_queues(index).unwrap_or_default();
    let in_turn = |thread: &usize, number: u32| thread % queues.len() == number as usize;
    if queues.iter().all(|q| q.threads.iter().all(|t| in_turn(t, q.number))) {
        return Vec::new();
    }
    let line = |q: &TxQueueInfo| {
        let threads: Vec<String> = q.threads.iter().map(usize::to_string).collect();
        format!("set interface tx-queue {name} queue {} threads {}", q.number, threads.join(","))
    };
    queues.iter().filter(|q| !q.threads.is_empty()).map(line).collect()
}
