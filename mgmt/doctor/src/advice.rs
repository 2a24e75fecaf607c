//! What can be done with a port, and the exact words.

use serde::Serialize;

use crate::Build;
use crate::drivers::{self, Dpdk};
use crate::machine::{Iommu, Machine};
use crate::ports::{Card, Kind, Link, Port};
use crate::reach::{Hold, Holds};

/// The largest frame's MTU that fits the single page most drivers give an XDP program.
const XDP_MTU: u32 = 3498;
const GENERIC: &str = "AF_XDP, generic";

/// Whether the router may have it.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Serialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum State {
    Free,
    /// The machine is reached by it.
    LeftAlone,
    /// Part of a bridge or a bond.
    Member,
    /// Nothing for the router.
    NotForUs,
}

/// One way to take a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Way {
    pub name: &'static str,
    /// This build, on this machine, as it is.
    pub now: bool,
    /// The router's command.
    pub command: Option<String>,
    pub note: Option<String>,
}

/// Facts and advice of a port.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Advice {
    pub state: State,
    /// Why it is left alone, or what to know before.
    pub why: Vec<String>,
    /// The best first.
    pub ways: Vec<Way>,
    /// The router's command that leaves the host what it needs.
    pub share: Option<String>,
    /// A command for the shell that comes first.
    pub before: Option<String>,
}

impl Advice {
    fn no(state: State, why: impl Into<String>) -> Self {
        Self { state, why: vec![why.into()], ways: Vec::new(), share: None, before: None }
    }

    /// The command of the best way that works now.
    pub fn command(&self) -> Option<&str> {
        self.ways.iter().filter(|way| way.now).find_map(|way| way.command.as_deref())
    }

    pub fn of(port: &Port, holds: &Holds, networks: &[String], build: Build, machine: &Machine) -> Self {
        if port.kind == Kind::Loopback {
            return Self::no(State::NotForUs, "the host's own; the router makes its own loopbacks");
        }
        if let Some(master) = &port.master {
            let mut advice =
                Self::no(State::Member, format!("a member of {master}: take {master}, or set it free"));
            if !holds.is_empty() {
                advice.state = State::LeftAlone;
                advice.why.insert(0, held(holds));
            } else if typed(port) {
                advice.before = Some(format!("ip link set dev {} nomaster", port.name));
            }
            return advice;
        }
        if !typed(port) {
            let mut advice = Self::no(State::NotForUs, "a name that cannot be typed: give it another");
            advice.before = Some(format!("ip link set dev $'{}' name NAME", port.name.replace('\'', "\\'")));
            return advice;
        }
        let ways = ways(port, build, machine);
        if !holds.is_empty() {
            let mut why = vec![held(holds)];
            let share = share(port, build, machine);
            if share.is_some() && !xdp_now(build, machine) && !port.raw_ip {
                why.push(
                    "shared: the kernel goes on with all packets; give the router addresses of its own"
                        .into(),
                );
            }
            // The command that would take it whole does not apply here.
            let ways = ways.into_iter().map(|way| Way { command: None, ..way }).collect();
            return Self { state: State::LeftAlone, why, ways, share, before: None };
        }
        let mut why = Vec::new();
        let mut before = None;
        if !networks.is_empty() {
            why.push(format!(
                "the kernel has {} here; take them off so that only the router answers",
                some(networks)
            ));
            before = Some(format!("ip address flush dev {}", port.name));
        }
        if port.kind == Kind::Bridge {
            why.push("a bridge: the router would be one more station on it".into());
        }
        if ways.iter().all(|way| !way.now) {
            why.push("nothing of this build takes it yet".into());
        }
        if port.link == Link::NoCarrier {
            why.push("no carrier: is the cable in?".into());
        }
        Self { state: State::Free, why, ways, share: None, before }
    }

    /// A card without an interface.
    pub fn of_card(card: &Card, build: Build) -> Self {
        let bound = card.driver.as_deref();
        if matches!(bound, Some("vfio-pci" | "uio_pci_generic" | "igb_uio")) {
            let mut advice =
                Self::no(State::Free, format!("bound to {}: for DPDK", bound.unwrap_or_default()));
            advice
                .ways
                .push(Way { note: Some(later(build).into()), ..dpdk_way(build, card.iommu_group.is_some()) });
            advice.before =
                Some(format!("echo {} > /sys/bus/pci/devices/{}/driver/unbind", card.bus, card.bus));
            return advice;
        }
        let why = match bound {
            Some(name) => format!("{name} made no interface of it: dmesg | grep {}", card.bus),
            None => "no driver: the kernel has none for it, or it was unbound".to_owned(),
        };
        let mut advice = Self::no(State::NotForUs, why);
        if bound.is_none() {
            advice.before = Some(format!("echo {} > /sys/bus/pci/drivers_probe", card.bus));
        }
        advice
    }
}

fn dpdk_way(build: Build, ready: bool) -> Way {
    Way { name: "DPDK", now: build.dpdk && ready, command: None, note: None }
}

fn later(build: Build) -> &'static str {
    if build.dpdk {
        "in the start-up file: dpdk { dev ... }"
    } else {
        "with dpdk_plugin.so, in the start-up file: dpdk { dev ... }"
    }
}

/// The command line's words are split at white space and know comments and braces.
fn typed(port: &Port) -> bool {
    let good = |c: char| c.is_ascii_alphanumeric() || "._-@+".contains(c);
    port.name.chars().all(good) && !port.name.starts_with('-')
}

fn held(holds: &Holds) -> String {
    let routes: Vec<&str> = [(Hold::DefaultRoute4, "IPv4"), (Hold::DefaultRoute6, "IPv6")]
        .into_iter()
        .filter_map(|(hold, name)| holds.contains_key(&hold).then_some(name))
        .collect();
    let mut parts = Vec::new();
    if !routes.is_empty() {
        parts.push(format!("the default route ({})", routes.join(", ")));
    }
    if holds.contains_key(&Hold::Ssh) {
        parts.push("your SSH session".to_owned());
    }
    let above: std::collections::BTreeSet<_> = holds.values().flatten().cloned().collect();
    let through = match above.into_iter().collect::<Vec<_>>().as_slice() {
        [] => String::new(),
        above => format!(" through {}", some(above)),
    };
    format!("carries {}{through}", parts.join(" and "))
}

/// The first three of a list.
fn some(list: &[String]) -> String {
    let shown: Vec<&str> = list.iter().take(3).map(String::as_str).collect();
    let more = list.len().saturating_sub(3);
    if more == 0 { shown.join(", ") } else { format!("{} and {more} more", shown.join(", ")) }
}

fn xdp_now(build: Build, machine: &Machine) -> bool {
    build.af_xdp && machine.kernel.xdp_sockets != Some(false) && !machine.process.user_namespace
}

/// The words that take a port and leave the host what is the host's.
fn share(port: &Port, build: Build, machine: &Machine) -> Option<String> {
    if xdp_now(build, machine) && !port.raw_ip {
        Some(format!("create interface af_xdp host-if {} pinhole host,dhcp", port.name))
    } else {
        build.af_packet.then(|| af_packet(port))
    }
}

fn af_packet(port: &Port) -> String {
    let mode = if port.raw_ip { " mode ip" } else { "" };
    format!("create host-interface name {}{mode}", port.name)
}

fn ways(port: &Port, build: Build, machine: &Machine) -> Vec<Way> {
    let xdp = (!port.raw_ip).then(|| xdp(port, build, machine));
    // Generic XDP comes after the kernel has done its work: there is nothing in it for us.
    let (first, after): (Vec<Way>, Vec<Way>) = xdp.into_iter().partition(|way| way.name != GENERIC);
    let mut ways = first;
    ways.push(Way {
        name: "AF_PACKET",
        now: build.af_packet,
        command: build.af_packet.then(|| af_packet(port)),
        note: match port.kind {
            Kind::Tap | Kind::Tun => {
                Some("some program holds its other end; the router's own: create tap".into())
            }
            _ => None,
        },
    });
    ways.extend(after);
    ways.extend(dpdk(port, build, machine));
    ways
}

fn xdp(port: &Port, build: Build, machine: &Machine) -> Way {
    let driver = port.driver.as_deref().and_then(drivers::known);
    let since = |first: Option<(u32, u32)>| first.is_some_and(|first| machine.kernel.version >= Some(first));
    let (zero_copy, native) =
        (driver.is_some_and(|d| since(d.zero_copy)), driver.is_some_and(|d| since(d.native)));
    let name = match (zero_copy, native) {
        (true, _) => "AF_XDP, zero-copy",
        (_, true) => "AF_XDP, native",
        _ => GENERIC,
    };
    let large = port.mtu.filter(|&mtu| mtu > XDP_MTU && native);
    let mut note =
        large.map(|mtu| format!("MTU {mtu} may be too large for the driver's XDP: {XDP_MTU} fits"));
    if machine.kernel.xdp_sockets == Some(false) {
        note = Some("this kernel has no AF_XDP sockets (CONFIG_XDP_SOCKETS)".into());
    } else if machine.process.user_namespace && build.af_xdp {
        note = Some("not in a user namespace: the kernel takes no XDP program from here".into());
    } else if !build.af_xdp {
        note = Some("later: not in this build".into());
    } else if !native {
        let newer =
            driver.and_then(|d| d.native).map(|(a, b)| format!("; the driver can from Linux {a}.{b}"));
        note = Some(format!(
            "through the kernel's packets: no faster than AF_PACKET{}",
            newer.unwrap_or_default()
        ));
    }
    let now = xdp_now(build, machine);
    let command = now.then(|| format!("create interface af_xdp host-if {}", port.name));
    Way { name, now, command, note }
}

fn dpdk(port: &Port, build: Build, machine: &Machine) -> Option<Way> {
    let driver = port.driver.as_deref().and_then(drivers::known)?;
    let shared = match driver.dpdk {
        Dpdk::No => return None,
        Dpdk::Shared => true,
        Dpdk::Vfio => false,
    };
    if port.kind != Kind::Physical || port.bus.is_none() {
        return None;
    }
    let blocked = if shared {
        "the kernel's driver stays"
    } else {
        match (machine.iommu, port.iommu_group.is_some()) {
            (Iommu::On, true) => "through vfio-pci: the kernel loses the port",
            (Iommu::On, false) => "vfio-pci: the port is in no IOMMU group",
            (Iommu::NotUsed, _) => "vfio-pci wants the IOMMU, which the kernel does not use",
            (Iommu::Off, _) if machine.cores.virtual_machine => {
                "vfio-pci wants an IOMMU, which this virtual machine has not"
            }
            (Iommu::Off, _) => "vfio-pci wants the IOMMU: off in the firmware, or missing",
            (Iommu::Unknown, _) => "vfio-pci wants an IOMMU; nothing tells of one",
        }
    };
    let ready = shared || (machine.iommu == Iommu::On && port.iommu_group.is_some());
    Some(Way { note: Some(format!("{}; {blocked}", later(build))), ..dpdk_way(build, ready) })
}
