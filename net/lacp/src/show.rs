//! `show lacp`.

use std::fmt;

use serde::Serialize;
use shoal_graph::clock::Time;
use shoal_interface::{Interfaces, SwIfIndex};

use crate::control::{Counts, Lacp};
use crate::machine::{Mux, Periodic, Rx};
use crate::pdu::{End, State};

impl Rx {
    fn word(self) -> &'static str {
        match self {
            Rx::PortDisabled => "PORT_DISABLED",
            Rx::Expired => "EXPIRED",
            Rx::Defaulted => "DEFAULTED",
            Rx::Current => "CURRENT",
        }
    }
}

impl Mux {
    fn word(self) -> &'static str {
        match self {
            Mux::Detached => "DETACHED",
            Mux::Waiting => "WAITING",
            Mux::Attached => "ATTACHED",
            Mux::CollectingDistributing => "COLLECTING_DISTRIBUTING",
        }
    }
}

impl Periodic {
    fn word(self) -> &'static str {
        match self {
            Periodic::No => "NO_PERIODIC",
            Periodic::Fast => "FAST_PERIODIC",
            Periodic::Slow => "SLOW_PERIODIC",
        }
    }
}

#[derive(Serialize)]
struct EndRow {
    system_priority: u16,
    system: String,
    key: u16,
    port_priority: u16,
    port: u16,
    state: u8,
}

impl EndRow {
    fn new(end: &End) -> EndRow {
        let system = end.system.map(|byte| format!("{byte:02x}")).join("-");
        let End { system_priority, key, port_priority, port, state: State(state), .. } = *end;
        EndRow { system_priority, system, key, port_priority, port, state }
    }

    /// The bits, the highest first.
    fn bits(&self) -> String {
        let bits = (0..8).rev().map(|bit| if self.state >> bit & 1 == 1 { "  1 " } else { "  0 " });
        bits.collect()
    }
}

impl fmt::Display for EndRow {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let EndRow { system_priority, system, key, port_priority, port, .. } = self;
        write!(f, "({system_priority:04x},{system},{key:04x},{port_priority:04x},{port:04x})")
    }
}

#[derive(Serialize)]
pub(crate) struct Row {
    interface: String,
    sw_if_index: u32,
    bond: String,
    actor: EndRow,
    partner: EndRow,
    rx: &'static str,
    mux: &'static str,
    periodic: &'static str,
    good: u64,
    bad: u64,
    sent: u64,
    markers: u64,
    seconds_since_heard: Option<f64>,
    seconds_since_sent: Option<f64>,
    loopback_port: bool,
    port_enabled: bool,
}

pub(crate) fn rows(lacp: &Lacp, interfaces: &Interfaces, only: Option<SwIfIndex>, now: Time) -> Vec<Row> {
    let name = |index| interfaces.name(index).unwrap_or_else(|_| "deleted".into());
    let since = |at: Option<Time>| at.map(|at| now.since(at).as_secs_f64());
    let wanted = lacp.list().into_iter().filter(|look| only.is_none_or(|only| only == look.index));
    let row = |look: crate::Look| {
        let Counts { good, bad, sent, markers, last_heard, last_sent } = look.counts;
        Row {
            interface: name(look.index),
            sw_if_index: look.index.0,
            bond: name(look.bond),
            actor: EndRow::new(&look.port.actor),
            partner: EndRow::new(&look.port.partner),
            rx: look.port.rx.word(),
            mux: look.port.mux.word(),
            periodic: look.port.periodic.word(),
            good,
            bad,
            sent,
            markers,
            seconds_since_heard: since(last_heard),
            seconds_since_sent: since(last_sent),
            loopback_port: look.is_loop,
            port_enabled: look.port.enabled,
        }
    };
    wanted.map(row).collect()
}

/// The states.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Brief(pub Vec<Row>);

impl fmt::Display for Brief {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const BITS: &str = "exp/def/dis/col/syn/agg/tim/act";
        writeln!(f, "{:55} {:32} {:32}", "", "actor state", "partner state")?;
        writeln!(
            f,
            "{:<25} {:<12} {:<16} {BITS}  {BITS}",
            "interface name", "sw_if_index", "bond interface"
        )?;
        for row in &self.0 {
            let (actor, partner) = (row.actor.bits(), row.partner.bits());
            write!(f, "{:<25} {:<12} {:<16} ", row.interface, row.sw_if_index, row.bond)?;
            writeln!(f, "{actor} {}", partner.trim_end())?;
            writeln!(f, "  LAG ID: [{}, {}]", row.actor, row.partner)?;
            let periodic = if row.periodic == Periodic::No.word() { row.periodic } else { "PERIODIC_TX" };
            writeln!(
                f,
                "  RX-state: {}, TX-state: TRANSMIT, MUX-state: {}, PTX-state: {periodic}",
                row.rx, row.mux
            )?;
        }
        Ok(())
    }
}

/// The counts.
#[derive(Serialize)]
#[serde(transparent)]
pub(crate) struct Details(pub Vec<Row>);

/// Seconds as VPP writes them: without a leading zero.
struct Ago(Option<f64>);

impl fmt::Display for Ago {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0 {
            None => f.write_str("never"),
            Some(seconds) => {
                let text = format!("{seconds:.2}");
                write!(f, "{:>10} seconds ago", text.trim_start_matches('0'))
            }
        }
    }
}

impl fmt::Display for Details {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "Number of interfaces: {}", self.0.len())?;
        for row in &self.0 {
            writeln!(f, "  {}", row.interface)?;
            writeln!(f, "    Good LACP PDUs received: {}", row.good)?;
            writeln!(f, "    Bad LACP PDUs received: {}", row.bad)?;
            writeln!(f, "    LACP PDUs sent: {}", row.sent)?;
            writeln!(f, "    last LACP PDU received: {}", Ago(row.seconds_since_heard))?;
            writeln!(f, "    last LACP PDU sent: {}", Ago(row.seconds_since_sent))?;
            writeln!(f, "    Good Marker PDUs received: {}", row.markers)?;
            writeln!(f, "    loopback port: {}", u8::from(row.loopback_port))?;
            writeln!(f, "    port_enabled: {}", u8::from(row.port_enabled))?;
            writeln!(f, "    period: {}", row.periodic)?;
        }
        Ok(())
    }
}
