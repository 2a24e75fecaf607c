//! Commands: `punt socket`, and what is known of sockets and reasons.

use std::fmt;
use std::path::Path;

use serde::Serialize;
use shoal_adj::Family;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::failed;
use crate::node::DISPATCH;
use crate::{Punt, PuntClass, PuntError, PuntReason, ReasonInfo, Registration};

pub(super) const REGISTER: Command = Command::new(
    "punt socket register {[ipv4 | ipv6] & [udp | tcp] & [all | <port:u16>] & [ip-proto <protocol:u8>] & [exception \
     <reason:word>] & socket <path:word>}",
    "Hand packets to a program's socket",
    register,
)
.examples(&[
    "punt socket register ipv4 udp 1234 socket /run/program.sock",
    "punt socket register ipv6 ip-proto 89 socket /run/program.sock",
])
.doc(
    "Packets for this router, by port of UDP or by protocol, or those that a feature punts for a reason. On the socket each \
     has a descriptor of 8 bytes in front (the number of the interface it came in by, and 0, in the machine's order) and \
     then its Ethernet header. The program sends packets to the router's socket (`punt { socket PATH }` in the start-up \
     file) with the same descriptor: 0 sends a frame out by the interface, 1 and 2 route a packet of IPv4 and IPv6 by the \
     interface's table. A program whose socket has been gone for a minute is forgotten.",
);

pub(super) const DEREGISTER: Command = Command::new(
    "punt socket deregister {[ipv4 | ipv6] & [udp | tcp] & [all | <port:u16>] & [ip-proto <protocol:u8>] & [exception \
     <reason:word>]}",
    "Hand packets to a program's socket no longer",
    deregister,
)
.examples(&["punt socket deregister ipv4 udp 1234"]);

pub(super) const SHOW: Command = Command::new(
    "show punt socket registrations [l4 | exception | ip-proto | ip]",
    "Show which packets go to which sockets",
    show,
)
.examples(&["show punt socket registrations", "show punt socket registrations ip-proto"])
.doc("Those by port, unless another kind is named.");

pub(super) const REASONS: Command =
    Command::new("show punt reasons", "Show why features punt packets", reasons)
        .examples(&["show punt reasons"]);

pub(super) const CLIENTS: Command =
    Command::new("show punt client", "Show who punts packets and who takes them", clients)
        .examples(&["show punt client"]);

pub(super) const DB: Command =
    Command::new("show punt db", "Show who takes packets that features punt", db).examples(&["show punt db"]);

pub(super) const STATS: Command =
    Command::new("show punt stats", "Show how many packets features have punted", stats)
        .examples(&["show punt stats"]);

fn what(control: &Control, args: &Args) -> Result<PuntClass, CliError> {
    let family = if args.has("ipv6") { Family::Ip6 } else { Family::Ip4 };
    if let Some(protocol) = args.opt::<u8>("protocol")? {
        return Ok(PuntClass::Protocol(family, protocol));
    }
    if let Some(name) = args.opt::<String>("reason")? {
        let punt = control.get::<Punt>()?;
        let reasons = punt.reasons();
        let id = reasons.find(&name).or_else(|| name.parse().ok().map(PuntReason));
        let known = reasons.list().len();
        let id = id.ok_or_else(|| {
            CliError::argument("reason", format!("no punt reason `{name}': there are {known}"))
        })?;
        return Ok(PuntClass::Exception(id.0));
    }
    if args.has("tcp") {
        return Err(failed(PuntError::NotUdp(6)));
    }
    let port = args.opt::<u16>("port")?.ok_or_else(|| CliError::failed(PuntError::NoPort.to_string()))?;
    Ok(PuntClass::Udp(family, port))
}

fn register(control: &Control, args: &Args) -> Result<Output, CliError> {
    let punt = control.get::<Punt>()?;
    let path = args.get::<String>("path")?;
    if punt.sockets().path().is_none() {
        return Err(failed(PuntError::NotConfigured));
    }
    punt.register(what(control, args)?, Path::new(&path)).map_err(failed)?;
    Ok(Output::none())
}

fn deregister(control: &Control, args: &Args) -> Result<Output, CliError> {
    let punt = control.get::<Punt>()?;
    if punt.sockets().path().is_none() {
        return Err(failed(PuntError::NotConfigured));
    }
    punt.deregister(what(control, args)?).map_err(failed)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    packets: String,
    socket: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Table(Vec<Row>);

fn family(family: Family) -> &'static str {
    if family == Family::Ip4 { "IP4" } else { "IP6" }
}

fn words(punt: &Punt, what: PuntClass) -> String {
    match what {
        PuntClass::Udp(of, port) => format!("{} UDP port {port}", family(of)),
        PuntClass::Protocol(of, n) => format!("{} {}", family(of), protocol(n)),
        PuntClass::Exception(id) => match punt.reasons().name(PuntReason(id)) {
            Some(name) => format!("[{id}] {name}"),
            None => format!("[{id}]"),
        },
    }
}

/// A protocol as VPP prints it.
fn protocol(n: u8) -> String {
    let names = [
        (0, "IP6_HOP_BY_HOP_OPTIONS"),
        (2, "IGMP"),
        (6, "TCP"),
        (47, "GRE"),
        (50, "IPSEC_ESP"),
        (51, "IPSEC_AH"),
        (88, "EIGRP"),
        (89, "OSPF"),
        (103, "PIM"),
        (112, "VRRP"),
        (132, "SCTP"),
    ];
    names
        .iter()
        .find(|(number, _)| *number == n)
        .map_or_else(|| format!("unknown {n}"), |(_, name)| (*name).to_owned())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let punt = control.get::<Punt>()?;
    let wanted = |what: PuntClass| match what {
        PuntClass::Exception(_) => args.has("exception"),
        PuntClass::Protocol(..) => args.has("ip-proto") || args.has("ip"),
        PuntClass::Udp(..) => !args.has("exception") && !args.has("ip-proto") && !args.has("ip"),
    };
    let all = punt.sockets().list().into_iter().filter(|registration| wanted(registration.what));
    let row = |Registration { what, path }| Row {
        packets: words(&punt, what),
        socket: path.to_string_lossy().into_owned(),
    };
    Ok(Output::view(Table(all.map(row).collect())))
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|Row { packets, socket }| writeln!(f, " punt {packets} to socket {socket}"))
    }
}

#[derive(Serialize)]
struct Reason {
    id: u32,
    name: &'static str,
    from: &'static str,
    /// Who takes its packets.
    taken_by: Option<&'static str>,
    #[serde(skip)]
    edge: Option<u16>,
    packets: u64,
    bytes: u64,
}

fn all(control: &Control) -> Result<Vec<Reason>, CliError> {
    let punt = control.get::<Punt>()?;
    let reasons = punt.reasons();
    let one = |ReasonInfo { reason, name, from, taker }| {
        let (packets, bytes) = reasons.count(reason);
        let edge = taker.map(|(_, edge)| edge.0);
        Reason { id: reason.0, name, from, taken_by: taker.map(|(by, _)| by), edge, packets, bytes }
    };
    Ok(reasons.list().into_iter().map(one).collect())
}

#[derive(Serialize)]
#[serde(transparent)]
struct Reasons(Vec<Reason>);

fn reasons(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Reasons(all(control)?)))
}

impl fmt::Display for Reasons {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0
            .iter()
            .try_for_each(|Reason { id, name, from, .. }| writeln!(f, "   [{id}] {name} from:[{from} ]"))
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Clients(Vec<&'static str>);

fn clients(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Clients(control.get::<Punt>()?.reasons().clients())))
}

impl fmt::Display for Clients {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|client| writeln!(f, "{client}"))
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Db(Vec<Reason>);

fn db(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Db(all(control)?)))
}

impl fmt::Display for Db {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Reason { id, name, taken_by, .. } in &self.0 {
            taken_by.map_or(Ok(()), |by| writeln!(f, " [{id}] {name} from:[{by} ]"))?;
        }
        writeln!(f, "\nDerived data-plane data-base:")?;
        writeln!(f, "  (for each punt-reason the edge[s] from {DISPATCH})")?;
        for Reason { id, name, edge, .. } in &self.0 {
            writeln!(f, " [{id}] {name}")?;
            writeln!(f, "   [{}]", edge.map(|edge| format!("{edge} ")).unwrap_or_default())?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
#[serde(transparent)]
struct Stats(Vec<Reason>);

fn stats(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(Stats(all(control)?)))
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Reason { id, name, packets, bytes, .. }| {
            writeln!(f, " [{id}] {name}: packets:{packets} bytes:{bytes}")
        })
    }
}
