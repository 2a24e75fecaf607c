//! The doctor's report: everything read and judged, ready to be printed or to become JSON.

use serde::Serialize;

use crate::Surroundings;
use crate::advice::{Advice, State};
use crate::findings::{self, Finding, Verdict};
use crate::machine::Machine;
use crate::ports::{Card, Kind, Port, Ports};
use crate::reach::{Holds, Reach};
use crate::root::{Root, Unread};

/// A port and its facts.
#[derive(Debug, Serialize)]
pub(crate) struct PortReport {
    #[serde(flatten)]
    pub port: Port,
    /// Default routes and SSH sessions, each with the interface above that has it.
    pub carries: Holds,
    /// What the kernel has on it.
    pub networks: Vec<String>,
    #[serde(flatten)]
    pub advice: Advice,
}

/// A card without an interface.
#[derive(Debug, Serialize)]
pub(crate) struct CardReport {
    #[serde(flatten)]
    pub card: Card,
    #[serde(flatten)]
    pub advice: Advice,
}

#[derive(Debug, Serialize)]
pub(crate) struct Report {
    pub version: u32,
    pub ports: Vec<PortReport>,
    pub cards: Vec<CardReport>,
    /// Interfaces beyond what is listed.
    pub more_ports: usize,
    /// Remarks on the list as a whole.
    pub remarks: Vec<&'static str>,
    pub findings: Vec<Finding>,
    pub machine: Machine,
    pub unread: Vec<Unread>,
    /// What to type next.
    pub next: String,
}

impl Report {
    pub fn read(root: &Root, around: &Surroundings) -> Self {
        let ports = Ports::read(root);
        let reach = Reach::read(root, around.ssh_connection.as_deref());
        let machine = Machine::read(root);
        let findings = findings::all(root, &machine, &ports);
        let advise = |port: &Port| {
            let (carries, networks) = (reach.of(&port.raw), reach.networks(&port.raw));
            let advice = Advice::of(port, &carries, &networks, around.build, &machine);
            PortReport { port: port.clone(), carries, networks, advice }
        };
        let listed: Vec<PortReport> = ports.listed.iter().map(advise).collect();
        let mut remarks = Vec::new();
        if ports.other_namespace {
            remarks.push(
                "/sys shows another network namespace: drivers, speeds and what lies below a VLAN are not known",
            );
        }
        if listed.iter().all(|p| p.port.kind == Kind::Loopback) {
            remarks.push("no interface here yet: `create tap` makes one, or give this namespace one end of a veth pair");
        }
        if around.build.tap {
            remarks.push("a port of the router's own, into this host: create tap");
        }
        if around.build.memif {
            remarks.push("one into another process (VPP, DPDK, a container): create interface memif");
        }
        Self {
            version: 1,
            more_ports: ports.more,
            remarks,
            cards: ports
                .cards
                .iter()
                .map(|card| CardReport { card: card.clone(), advice: Advice::of_card(card, around.build) })
                .collect(),
            unread: root.unread(),
            next: next(&listed, &findings, &machine, around.build.tap),
            ports: listed,
            findings,
            machine,
        }
    }
}

/// The ports that the kernel goes on without: those `shoal tune` may touch.
pub(crate) fn free_ports(root: &Root, around: &Surroundings) -> Vec<String> {
    let ports = Ports::read(root);
    let reach = Reach::read(root, around.ssh_connection.as_deref());
    let free = |p: &&Port| {
        p.kind == Kind::Physical && p.driver.is_some() && p.master.is_none() && reach.of(&p.raw).is_empty()
    };
    ports.listed.iter().filter(free).map(|p| p.name.clone()).collect()
}

fn next(ports: &[PortReport], findings: &[Finding], machine: &Machine, tap: bool) -> String {
    let missing = findings.iter().find(|f| f.verdict == Verdict::Missing).and_then(|f| f.command.as_ref());
    if let Some(command) = missing {
        return command.clone();
    }
    // Bridges, tunnels and the like are seldom what a router is for.
    let likely = |kind| matches!(kind, Kind::Physical | Kind::Veth | Kind::Unknown);
    let mut free = ports.iter().filter(|p| p.advice.state == State::Free && likely(p.port.kind));
    let command = free.find_map(|p| p.advice.command()).or(tap.then_some("create tap"));
    match (machine.router, command) {
        (true, Some(command)) => format!("sudo shoalctl {command}"),
        (true, None) => "sudo shoalctl show version".into(),
        (false, Some(command)) => format!("sudo shoal unix {{ interactive }}, and there: {command}"),
        (false, None) => "sudo shoal unix { interactive }".into(),
    }
}
