//! `show lldp`.

use std::fmt;

use serde::Serialize;
use shoal_graph::clock::Time;
use shoal_interface::Interfaces;

use crate::{Lldp, Look};

#[derive(Serialize)]
struct Row {
    interface: String,
    description: String,
    peer_chassis: String,
    #[serde(skip)]
    chassis_kind: &'static str,
    remote_port: String,
    #[serde(skip)]
    port_kind: &'static str,
    seconds_since_heard: Option<f64>,
    seconds_since_sent: Option<f64>,
    active: bool,
}

/// What `show lldp` prints.
#[derive(Serialize)]
pub(crate) struct View {
    tx_hold: u32,
    tx_interval: u32,
    system_name: String,
    interfaces: Vec<Row>,
    #[serde(skip)]
    detail: bool,
}

fn chassis_kind(subtype: u8) -> &'static str {
    match subtype {
        1 => "Chassis component",
        2 => "Interface alias",
        3 => "Port component",
        4 => "MAC address",
        5 => "Network address",
        6 => "Interface name",
        7 => "Locally assigned",
        _ => "Reserved",
    }
}

fn port_kind(subtype: u8) -> &'static str {
    match subtype {
        1 => "Interface alias",
        2 => "Port component",
        3 => "MAC address",
        4 => "Network address",
        5 => "Interface name",
        6 => "Agent circuit ID",
        7 => "Locally assigned",
        _ => "Reserved",
    }
}

impl View {
    pub fn new(lldp: &Lldp, interfaces: &Interfaces, now: Time, detail: bool) -> View {
        let since = |at: Option<Time>| at.map(|at| now.since(at).as_secs_f64());
        let row = |look: Look| {
            let heard = look.heard;
            Row {
                interface: interfaces.name(look.index).unwrap_or_default(),
                description: look.on.description,
                peer_chassis: heard.map(|(n, _)| n.chassis.chassis()).unwrap_or_default(),
                chassis_kind: heard.map_or("", |(n, _)| chassis_kind(n.chassis.subtype)),
                remote_port: heard.map(|(n, _)| n.port.port()).unwrap_or_default(),
                port_kind: heard.map_or("", |(n, _)| port_kind(n.port.subtype)),
                seconds_since_heard: since(heard.map(|(_, at)| at)),
                seconds_since_sent: since(look.last_sent),
                active: heard.is_some(),
            }
        };
        let settings = lldp.settings();
        View {
            tx_hold: settings.tx_hold,
            tx_interval: settings.tx_interval,
            system_name: settings.system_name,
            interfaces: lldp.list().into_iter().map(row).collect(),
            detail,
        }
    }
}

/// How long ago.
struct Ago(Option<f64>);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            Some(seconds) => write!(f, "{seconds:.1}s ago"),
            None => f.write_str("never"),
        }
    }
}

fn state(active: bool) -> &'static str {
    if active { "active" } else { "inactive" }
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if self.detail {
            return self.detail(f);
        }
        writeln!(
            f,
            "{:<25} {:<25} {:<25} {:>15} {:>14}  {:<10}",
            "Local interface", "Peer chassis ID", "Remote port ID", "Last heard", "Last sent", "Status"
        )?;
        for row in &self.interfaces {
            let (heard, sent) =
                (Ago(row.seconds_since_heard).to_string(), Ago(row.seconds_since_sent).to_string());
            writeln!(
                f,
                "{:<25} {:<25} {:<25} {heard:>15} {sent:>14}  {:<10}",
                row.interface,
                row.peer_chassis,
                row.remote_port,
                state(row.active)
            )?;
        }
        Ok(())
    }
}

impl View {
    fn detail(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "LLDP configuration:")?;
        if !self.system_name.is_empty() {
            writeln!(f, "Configured system name: {}", self.system_name)?;
        }
        writeln!(f, "Configured tx-hold: {}\nConfigured tx-interval: {}", self.tx_hold, self.tx_interval)?;
        writeln!(f, "\nLLDP-enabled interface table:")?;
        for row in &self.interfaces {
            writeln!(f, "\nLocal Interface name: {}", row.interface)?;
            if !row.description.is_empty() {
                writeln!(f, "Local Port Description: {}", row.description)?;
            }
            writeln!(f, "Interface/peer state: {}", state(row.active))?;
            if row.active {
                writeln!(f, "Peer chassis ID: {}({})", row.peer_chassis, row.chassis_kind)?;
                writeln!(f, "Remote port ID: {}({})", row.remote_port, row.port_kind)?;
            }
            writeln!(f, "Last packet sent: {}", Ago(row.seconds_since_sent))?;
            writeln!(f, "Last packet received: {}", Ago(row.seconds_since_heard))?;
        }
        Ok(())
    }
}
