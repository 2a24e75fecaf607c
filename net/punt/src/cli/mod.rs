//! Commands: `set punt`, `show punt`, `ip punt redirect`, `ip punt policer`, and the same of IPv6.

mod socket;
mod udp_ports;

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use shoal_adj::Family;
use shoal_fib::{Fib, Path, TableArg, Via};
use shoal_icmp::limiter::Rate;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{L4, Punt, PuntError, Registered, RegistrationState, Rx};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set punt [ip4 | ip6 | ipv4 | ipv6] {udp | tcp | ip-proto <protocol:u8>} [del] [all | [port] <port:u16>]",
        "Hand packets for this router to the host, by port or protocol",
        set,
    )
    .examples(&["set punt ip4 udp port 53", "set punt ip6 tcp all", "set punt ip6 ip-proto 89", "set punt udp 53 del"])
    .doc(
        "Without a family it is IPv4. Packets to ports and protocols without a listener here are refused otherwise, \
         unless the interface has an image in Linux (`lcp create`). TCP is punted as a whole.",
    ),
    udp_ports::SHOW,
    Command::new("show punt", "Show what is punted, and what becomes of it", show).examples(&["show punt"]),
    Command::new(
        "ip punt redirect {add | del} rx {all | <rx:interface>} [via [<next-hop:ip-address>] [<tx:interface>]]",
        "Send punted IPv4 packets elsewhere than to the host",
        redirect4,
    )
    .examples(&["ip punt redirect add rx all via 192.0.2.1 local0", "ip punt redirect add rx local0 via 192.0.2.1"])
    .doc(REDIRECT),
    Command::new(
        "ip6 punt redirect {add | del} rx {all | <rx:interface>} [via [<next-hop:ip-address>] [<tx:interface>]]",
        "Send punted IPv6 packets elsewhere than to the host",
        redirect6,
    )
    .examples(&["ip6 punt redirect add rx all via 2001:db8::1 local0"])
    .doc(REDIRECT),
    Command::new(
        "ip punt policer {add rate <rate:u32> [burst <burst:u32>] | del}",
        "Limit how many IPv4 packets a second are punted",
        policer4,
    )
    .examples(&["ip punt policer add rate 10000 burst 1000", "ip punt policer del"])
    .doc(POLICER),
    Command::new(
        "ip6 punt policer {add rate <rate:u32> [burst <burst:u32>] | del}",
        "Limit how many IPv6 packets a second are punted",
        policer6,
    )
    .examples(&["ip6 punt policer add rate 10000", "ip6 punt policer del"])
    .doc(POLICER),
    Command::new("show ip punt redirect", "Show where punted IPv4 packets are sent", show4)
        .examples(&["show ip punt redirect"]),
    Command::new("show ip6 punt redirect", "Show where punted IPv6 packets are sent", show6)
        .examples(&["show ip6 punt redirect"]),
    socket::REGISTER,
    socket::DEREGISTER,
    socket::SHOW,
    socket::REASONS,
    socket::CLIENTS,
    socket::DB,
    socket::STATS,
];

const REDIRECT: &str = "`rx` is the interface the packets came in by; `all`: those without a redirect of their own. A next hop \
                        without an interface is looked up.";
const POLICER: &str = "Packets above the rate are dropped and counted. `burst`: so many at once after a quiet time; a \
                       tenth of the rate unless it is named.";

fn failed(error: PuntError) -> CliError {
    let (name, nearest) = match &error {
        PuntError::Taken { .. } | PuntError::NotPunted { .. } => ("port", None),
        PuntError::TcpPort(_) => ("port", Some("all".to_owned())),
        PuntError::Protocol(_) => ("protocol", None),
        PuntError::NotRedirected { .. } => ("rx", None),
        PuntError::NoRate => ("rate", Some("1".to_owned())),
        PuntError::Fib(_) => ("next-hop", None),
        PuntError::Path { .. } => ("path", None),
        PuntError::NoReason { .. } | PuntError::ReasonTaken { .. } => ("reason", None),
        _ => return CliError::failed(error.to_string()),
    };
    CliError::argument(name, error.to_string()).nearest(nearest)
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let family = if args.has("ip6") || args.has("ipv6") { Family::Ip6 } else { Family::Ip4 };
    let port = args.opt::<u16>("port")?;
    let l4 = match (args.opt::<u8>("protocol")?, args.has("udp"), port) {
        (Some(protocol), ..) => match port {
            Some(port) => {
                return Err(CliError::argument("port", format!("a protocol has no port ({port}) here")));
            }
            None => L4::Protocol(protocol),
        },
        (None, true, Some(port)) => L4::Udp(port),
        (None, false, Some(port)) => L4::Tcp(port),
        (None, ..) if !args.has("all") => {
            return Err(CliError::argument("port", "a port is missing, or `all'").nearest(Some("all".into())));
        }
        (None, true, None) => L4::AllUdp,
        (None, false, None) => L4::AllTcp,
    };
    let standing = if args.has("del") { RegistrationState::NotPunted } else { RegistrationState::Punted };
    control.get::<Punt>()?.set(Registered { family, l4 }, standing).map_err(failed)?;
    Ok(Output::none())
}

fn redirect4(control: &Control, args: &Args) -> Result<Output, CliError> {
    redirect(control, args, Family::Ip4)
}

fn redirect6(control: &Control, args: &Args) -> Result<Output, CliError> {
    redirect(control, args, Family::Ip6)
}

fn redirect(control: &Control, args: &Args, family: Family) -> Result<Output, CliError> {
    let punt = control.get::<Punt>()?;
    let rx = args.opt::<InterfaceArg>("rx")?.map_or(Rx::All, |i| Rx::Interface(i.0));
    if args.has("del") {
        punt.end_redirect(family, rx).map_err(failed)?;
        return Ok(Output::none());
    }
    let next_hop = args.opt::<IpAddr>("next-hop")?;
    let tx = args.opt::<InterfaceArg>("tx")?.map(|i| i.0);
    if let Some(next_hop) = next_hop.filter(|n| Family::of(*n) != family) {
        return Err(CliError::argument("next-hop", format!("{next_hop} is no address of {family}")));
    }
    let via = match (next_hop, tx) {
        (Some(next_hop), Some(interface)) => Via::NextHop { interface, next_hop },
        (Some(next_hop), None) => {
            let fib = TableArg(0).of(&*control.get::<Fib>()?, family, "next-hop")?;
            Via::Recursive { next_hop, fib }
        }
        (None, Some(interface)) => {
            let source = if family == Family::Ip4 { IpAddr::from([0; 4]) } else { [0u16; 8].into() };
            Via::Attached { interface, source }
        }
        (None, None) => return Err(CliError::argument("via", "`via' needs an address or an interface")),
    };
    punt.redirect(family, rx, &[Path::from(via)]).map_err(failed)?;
    Ok(Output::none())
}

fn policer4(control: &Control, args: &Args) -> Result<Output, CliError> {
    policer(control, args, Family::Ip4)
}

fn policer6(control: &Control, args: &Args) -> Result<Output, CliError> {
    policer(control, args, Family::Ip6)
}

fn policer(control: &Control, args: &Args, family: Family) -> Result<Output, CliError> {
    let rate = if args.has("del") {
        None
    } else {
        let per_second = args.get::<u32>("rate")?;
        Some(Rate { per_second, burst: args.or("burst", (per_second / 10).max(1))? })
    };
    control.get::<Punt>()?.set_rate(family, rate).map_err(failed)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    rx: String,
    via: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Redirects(Vec<Row>);

fn rows(control: &Control, family: Family) -> Result<Redirects, CliError> {
    let (punt, interfaces) = (control.get::<Punt>()?, control.get::<Interfaces>()?);
    let name = |i| interfaces.name(i).unwrap_or_else(|_| "deleted".into());
    let way = |path: &Path| match path.via {
        Via::NextHop { interface, next_hop } => format!("{next_hop} {}", name(interface)),
        Via::Recursive { next_hop, .. } => next_hop.to_string(),
        other => other.interface().map_or_else(|| "dropped".into(), name),
    };
    let row = |r: crate::Redirect| Row {
        rx: punt.name(r.rx),
        via: r.paths.iter().map(way).collect::<Vec<_>>().join(", "),
    };
    Ok(Redirects(punt.redirects(family).into_iter().map(row).collect()))
}

fn show4(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(rows(control, Family::Ip4)?))
}

fn show6(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(rows(control, Family::Ip6)?))
}

impl fmt::Display for Redirects {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Row { rx, via }| writeln!(f, " rx {rx} via {via}"))
    }
}

#[derive(Serialize)]
struct SideView {
    family: &'static str,
    punted: Vec<String>,
    redirects: Redirects,
    policer: Option<Rate>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct PuntView(Vec<SideView>);

pub(crate) fn words(l4: L4) -> String {
    match l4 {
        L4::Udp(port) => format!("udp port {port}"),
        L4::AllUdp => "udp all".into(),
        L4::Tcp(port) => format!("tcp port {port}"),
        L4::AllTcp => "tcp all".into(),
        L4::Protocol(n) => format!("ip-proto {n}"),
    }
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let punt = control.get::<Punt>()?;
    let side = |family: Family| {
        let mine = punt.registered().into_iter().filter(|r| r.family == family);
        Ok(SideView {
            family: family.name(),
            punted: mine.map(|r| words(r.l4)).collect(),
            redirects: rows(control, family)?,
            policer: punt.rate(family),
        })
    };
    let all: Result<Vec<SideView>, CliError> = Family::ALL.into_iter().map(side).collect();
    Ok(Output::view(PuntView(all?)))
}

impl fmt::Display for PuntView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for SideView { family, punted, redirects, policer } in &self.0 {
            writeln!(f, "{family}")?;
            let punted =
                if punted.is_empty() { "nothing but what routes punt".into() } else { punted.join(", ") };
            writeln!(f, "  punted: {punted}")?;
            match policer {
                Some(Rate { per_second, burst }) => {
                    writeln!(f, "  policer: {per_second} packets a second, burst {burst}")?;
                }
                None => writeln!(f, "  policer: none")?,
            }
            for Row { rx, via } in &redirects.0 {
                writeln!(f, "  redirect: rx {rx} via {via}")?;
            }
        }
        Ok(())
    }
}
