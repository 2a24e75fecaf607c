//! Commands: `nat64 ...`, `set interface nat64`, `set nat64 timeouts`, `show nat64 ...`.

use std::fmt;
use std::net::{Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, Output, check};
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_wire::Ip6Prefix;

use crate::config::{Inside, Outside, Timeouts};
use crate::sessions::{Bound, Record};
use crate::{Enable, Nat64, Side};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "nat64 plugin {enable | disable} [bib-buckets <bib-buckets:u32>] [bib-memory <bib-memory:u32>] \
         [st-buckets <st-buckets:u32>] [st-memory <st-memory:u32>]",
        "Switch NAT64 on or off",
        plugin,
    )
    .examples(&["nat64 plugin enable", "nat64 plugin enable bib-buckets 4096 st-buckets 65536"])
    .doc(
        "Each worker keeps ten bindings (BIB) and sessions for each bucket: 10,240 and 20,480 unless the words say otherwise. Memory \
         is taken for VPP's sake. `disable` forgets addresses, prefixes, bindings and sessions.",
    ),
    Command::new(
        "nat64 add pool address <first:ip4-address> [- <last:ip4-address>] [tenant-vrf <vrf:u32>] [del]",
        "Have IPv6 hosts share an IPv4 address, or a range of them",
        pool,
    )
    .examples(&["nat64 add pool address 192.0.2.1", "nat64 add pool address 192.0.2.10 - 192.0.2.20 tenant-vrf 10"])
    .doc("With `tenant-vrf` for hosts of that VRF alone, which use no others then."),
    Command::new(
        "nat64 add interface address <interface> [del]",
        "Have IPv6 hosts share the first IPv4 address of an interface, whichever it is",
        of_interface,
    )
    .examples(&["nat64 add interface address local0"]),
    Command::new(
        "nat64 add prefix <prefix:ip6-prefix> [tenant-vrf <vrf:u32>] [del]",
        "Set the IPv6 prefix that stands for the IPv4 Internet",
        prefix,
    )
    .examples(&["nat64 add prefix 64:ff9b::/96", "nat64 add prefix 2001:db8:64::/48 tenant-vrf 10"])
    .doc(
        "32, 40, 48, 56, 64 or 96 bits (RFC 6052). A VRF without one has that of VRF 0, else 64:ff9b::/96. Packets to other \
         addresses are routed as ever.",
    ),
    Command::new(
        "nat64 add static bib <host:ip6-address> <port:u16> <shared:ip4-address> <open:u16> <protocol:nat64-protocol> \
         [vrf <vrf:u32>] [vfr <vrf:u32>] [del]",
        "Have the IPv4 Internet reach a port of an IPv6 host",
        binding,
    )
    .examples(&["nat64 add static bib 2001:db8::5 80 192.0.2.1 8080 tcp"])
    .doc("The IPv4 address is one that hosts share. `vfr` is VPP's spelling of `vrf`."),
    Command::new("set interface nat64 {in | out} <interface> [del]", "Translate packets that come in by an interface", side)
        .examples(&["set interface nat64 in local0", "set interface nat64 out local0 del"])
        .doc("`in`: IPv6 hosts are there, `out`: the IPv4 Internet. An interface can be both."),
    Command::new(
        "set nat64 timeouts [udp <udp:u32>] [tcp-established <tcp-established:u32>] [tcp-transitory <tcp-transitory:u32>] \
         [icmp <icmp:u32>] [reset]",
        "Set after how many seconds without a packet sessions end",
        set_timeouts,
    )
    .examples(&["set nat64 timeouts udp 120 icmp 30", "set nat64 timeouts reset"])
    .doc("Usually 300, 7440, 240 and 60."),
    Command::new("show nat64 timeouts", "Show after how long sessions end", show_timeouts).examples(&["show nat64 timeouts"]),
    Command::new("show nat64 pool", "Show IPv4 addresses that IPv6 hosts share", show_pool).examples(&["show nat64 pool"]),
    Command::new("show nat64 interfaces", "Show interfaces whose packets are translated", show_interfaces)
        .examples(&["show nat64 interfaces"]),
    Command::new("show nat64 prefix", "Show prefixes that stand for the IPv4 Internet", show_prefixes)
        .examples(&["show nat64 prefix"]),
    Command::new("show nat64 bib <which:nat64-which>", "Show bindings of hosts", show_bindings)
        .examples(&["show nat64 bib all", "show nat64 bib tcp"]),
    Command::new("show nat64 session table <which:nat64-which>", "Show sessions of hosts", show_sessions)
        .examples(&["show nat64 session table all", "show nat64 session table udp"]),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::new("nat64-protocol", "tcp, udp, icmp or a number", check::<Protocol>)
        .complete(|_, _| NAMES.iter().map(|(_, name)| (*name).to_owned()).collect()),
    ArgType::new("nat64-which", "all, tcp, udp, icmp or unknown", check::<ShowFilter>).complete(|_, _| {
        ["all", "tcp", "udp", "icmp", "unknown"].iter().map(|name| (*name).to_owned()).collect()
    }),
];

const NAMES: [(u8, &str); 3] = [(TCP, "tcp"), (UDP, "udp"), (ICMP, "icmp")];

/// A protocol as it is typed.
pub(crate) fn protocol_name(protocol: u8) -> String {
    let name = NAMES.iter().find(|(number, _)| *number == protocol).map(|(_, name)| (*name).to_owned());
    name.unwrap_or_else(|| protocol.to_string())
}

struct Protocol(u8);

impl FromArg for Protocol {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let named = NAMES.iter().find(|(_, name)| *name == text).map(|(number, _)| *number);
        let number = named.or_else(|| text.parse().ok());
        number.map(Protocol).ok_or_else(|| Expected::new("tcp, udp, icmp or a protocol's number, 0 to 255"))
    }
}

/// Which bindings or sessions are wanted.
#[derive(Clone, Copy)]
enum ShowFilter {
    All,
    Of(u8),
    Unknown,
}

impl FromArg for ShowFilter {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        match text {
            "all" => Ok(ShowFilter::All),
            "unknown" => Ok(ShowFilter::Unknown),
            _ => {
                let named = NAMES.iter().find(|(_, name)| *name == text);
                let expected = || Expected::new("all, tcp, udp, icmp or unknown");
                named.map(|(number, _)| ShowFilter::Of(*number)).ok_or_else(expected)
            }
        }
    }
}

impl ShowFilter {
    fn has(self, protocol: u8) -> bool {
        match self {
            ShowFilter::All => true,
            ShowFilter::Of(only) => only == protocol,
            ShowFilter::Unknown => !NAMES.iter().any(|(number, _)| *number == protocol),
        }
    }

    /// Between `NAT64` and what follows.
    fn word(self) -> String {
        match self {
            ShowFilter::All => String::new(),
            ShowFilter::Of(protocol) => format!("{} ", protocol_name(protocol)),
            ShowFilter::Unknown => "unknown ".to_owned(),
        }
    }
}

fn nat(control: &Control) -> Result<std::rc::Rc<Nat64>, CliError> {
    Ok(control.get::<Nat64>()?)
}

fn plugin(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    if args.has("disable") {
        nat.disable()?;
    } else {
        let size = |name: &str| Ok::<u32, CliError>(args.opt(name)?.unwrap_or(0));
        nat.enable(Enable { bib_buckets: size("bib-buckets")?, st_buckets: size("st-buckets")? })?;
    }
    Ok(Output::none())
}

fn pool(control: &Control, args: &Args) -> Result<Output, CliError> {
    let first: Ipv4Addr = args.get("first")?;
    let range = (first, args.opt("last")?.unwrap_or(first));
    let nat = nat(control)?;
    if args.has("del") { nat.del_addresses(range) } else { nat.add_addresses(range, args.opt("vrf")?) }?;
    Ok(Output::none())
}

fn of_interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let nat = nat(control)?;
    if args.has("del") { nat.unfollow_interface(interface) } else { nat.follow_interface(interface) }?;
    Ok(Output::none())
}

fn prefix(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (prefix, vrf): (Ip6Prefix, u32) = (args.get("prefix")?, args.opt("vrf")?.unwrap_or(0));
    let nat = nat(control)?;
    if args.has("del") { nat.del_prefix(vrf, prefix) } else { nat.set_prefix(vrf, prefix) }?;
    Ok(Output::none())
}

fn binding(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Protocol(protocol) = args.get("protocol")?;
    let inside = Inside { address: args.get("host")?, port: args.get("port")?, protocol, table: 0 };
    let outside = Outside { address: args.get("shared")?, port: args.get("open")?, protocol };
    let (nat, vrf) = (nat(control)?, args.opt("vrf")?.unwrap_or(0));
    if args.has("del") { nat.del_binding(vrf, inside) } else { nat.add_binding(vrf, inside, outside) }?;
    Ok(Output::none())
}

fn side(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let side = if args.has("in") { Side::Inside } else { Side::Outside };
    nat(control)?.set_side(interface, side, !args.has("del"))?;
    Ok(Output::none())
}

fn set_timeouts(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let now = if args.has("reset") { Timeouts::default() } else { nat.timeouts() };
    nat.set_timeouts(Timeouts {
        udp: args.opt("udp")?.unwrap_or(now.udp),
        tcp_established: args.opt("tcp-established")?.unwrap_or(now.tcp_established),
        tcp_transitory: args.opt("tcp-transitory")?.unwrap_or(now.tcp_transitory),
        icmp: args.opt("icmp")?.unwrap_or(now.icmp),
    })?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct TimeoutsView {
    udp: u32,
    tcp_established: u32,
    tcp_transitory: u32,
    icmp: u32,
}

fn show_timeouts(control: &Control, _: &Args) -> Result<Output, CliError> {
    let Timeouts { udp, tcp_established, tcp_transitory, icmp } = nat(control)?.timeouts();
    Ok(Output::view(TimeoutsView { udp, tcp_established, tcp_transitory, icmp }))
}

impl fmt::Display for TimeoutsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT64 session timeouts:")?;
        writeln!(f, " UDP {}sec", self.udp)?;
        writeln!(f, " ICMP {}sec", self.icmp)?;
        writeln!(f, " TCP transitory {}sec", self.tcp_transitory)?;
        writeln!(f, " TCP established {}sec", self.tcp_established)
    }
}

#[derive(Serialize)]
struct AddressView {
    address: Ipv4Addr,
    #[serde(skip_serializing_if = "Option::is_none")]
    tenant_vrf: Option<u32>,
    other: usize,
    udp: usize,
    tcp: usize,
    icmp: usize,
}

#[derive(Serialize)]
struct PoolView(Vec<AddressView>);

fn show_pool(control: &Control, _: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let bindings = nat.bindings()?;
    let view = |shared: crate::Address| {
        let mut view = AddressView {
            address: shared.address,
            tenant_vrf: shared.vrf,
            other: 0,
            udp: 0,
            tcp: 0,
            icmp: 0,
        };
        for bound in bindings.iter().filter(|bound| bound.outside.address == shared.address) {
            *(match bound.outside.protocol {
                TCP => &mut view.tcp,
                UDP => &mut view.udp,
                ICMP => &mut view.icmp,
                _ => &mut view.other,
            }) += 1;
        }
        view
    };
    Ok(Output::view(PoolView(nat.addresses().into_iter().map(view).collect())))
}

impl fmt::Display for PoolView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT64 pool:")?;
        for AddressView { address, tenant_vrf, other, udp, tcp, icmp } in &self.0 {
            match tenant_vrf {
                Some(vrf) => writeln!(f, " {address} tenant VRF: {vrf}")?,
                None => writeln!(f, " {address}")?,
            }
            for (count, name) in [(other, "other"), (udp, "udp"), (tcp, "tcp"), (icmp, "icmp")] {
                writeln!(f, "  {count} busy {name} ports")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct SideView {
    interface: String,
    sides: Vec<&'static str>,
}

#[derive(Serialize)]
struct SidesView(Vec<SideView>);

fn show_interfaces(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (nat, interfaces) = (nat(control)?, control.get::<Interfaces>()?);
    let view = |(interface, sides): (shoal_interface::SwIfIndex, crate::Sides)| SideView {
        interface: interfaces.name(interface).unwrap_or_else(|_| interface.0.to_string()),
        sides: [(sides.inside, "in"), (sides.outside, "out")]
            .into_iter()
            .filter(|(on, _)| *on)
            .map(|(_, side)| side)
            .collect(),
    };
    Ok(Output::view(SidesView(nat.sides().into_iter().map(view).collect())))
}

impl fmt::Display for SidesView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT64 interfaces:")?;
        self.0.iter().try_for_each(|view| writeln!(f, " {} {}", view.interface, view.sides.join(" ")))
    }
}

#[derive(Serialize)]
struct PrefixView {
    prefix: String,
    tenant_vrf: u32,
}

#[derive(Serialize)]
struct PrefixesView(Vec<PrefixView>);

fn show_prefixes(control: &Control, _: &Args) -> Result<Output, CliError> {
    let view = |(tenant_vrf, prefix): (u32, shoal_translate46::Prefix64)| PrefixView {
        prefix: prefix.to_string(),
        tenant_vrf,
    };
    Ok(Output::view(PrefixesView(nat(control)?.prefixes().into_iter().map(view).collect())))
}

impl fmt::Display for PrefixesView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT64 prefix:")?;
        self.0.iter().try_for_each(|view| writeln!(f, " {} tenant-vrf {}", view.prefix, view.tenant_vrf))
    }
}

#[derive(Serialize)]
struct BindingView {
    host: Ipv6Addr,
    host_port: u16,
    address: Ipv4Addr,
    port: u16,
    protocol: String,
    vrf: u32,
    r#static: bool,
    sessions: u32,
    #[serde(skip)]
    has_ports: bool,
}

#[derive(Serialize)]
struct BindingsView {
    bindings: Vec<BindingView>,
    #[serde(skip)]
    word: String,
}

fn show_bindings(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nat, which): (_, ShowFilter) = (nat(control)?, args.get("which")?);
    let view = |bound: Bound| BindingView {
        host: bound.inside.address,
        host_port: bound.inside.port,
        address: bound.outside.address,
        port: bound.outside.port,
        protocol: protocol_name(bound.inside.protocol),
        vrf: nat.vrf(bound.inside.table),
        r#static: bound.is_static,
        sessions: bound.sessions,
        has_ports: crate::config::has_ports(bound.inside.protocol),
    };
    let all = nat.bindings()?.into_iter().filter(|bound| which.has(bound.inside.protocol));
    Ok(Output::view(BindingsView { bindings: all.map(view).collect(), word: which.word() }))
}

impl fmt::Display for BindingsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT64 {}BIB entries:", self.word)?;
        for b in &self.bindings {
            let kind = if b.r#static { "static" } else { "dynamic" };
            if b.has_ports {
                write!(f, " {} {} {} {}", b.host, b.host_port, b.address, b.port)?;
            } else {
                write!(f, " {} {}", b.host, b.address)?;
            }
            writeln!(f, " protocol {} vrf {} {kind} {} sessions", b.protocol, b.vrf, b.sessions)?;
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct SessionView {
    host: Ipv6Addr,
    host_port: u16,
    remote: Ipv6Addr,
    address: Ipv4Addr,
    port: u16,
    remote_address: Ipv4Addr,
    remote_port: u16,
    protocol: String,
    vrf: u32,
    #[serde(skip)]
    number: u8,
}

#[derive(Serialize)]
struct SessionsView {
    sessions: Vec<SessionView>,
    #[serde(skip)]
    word: String,
}

fn show_sessions(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (nat, which): (_, ShowFilter) = (nat(control)?, args.get("which")?);
    let view = |record: Record| {
        let Record { inside, outside, remote: (remote, remote_port), .. } = record;
        SessionView {
            host: inside.address,
            host_port: inside.port,
            remote: nat.of_internet(inside.table, remote),
            address: outside.address,
            port: outside.port,
            remote_address: remote,
            remote_port,
            protocol: protocol_name(inside.protocol),
            vrf: nat.vrf(inside.table),
            number: inside.protocol,
        }
    };
    let all = nat.sessions()?.into_iter().filter(|record| which.has(record.inside.protocol));
    Ok(Output::view(SessionsView { sessions: all.map(view).collect(), word: which.word() }))
}

impl fmt::Display for SessionsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "NAT64 {}sessions:", self.word)?;
        for s in &self.sessions {
            let SessionView { host, host_port, remote, address, port, remote_address, remote_port, .. } = s;
            match s.number {
                TCP | UDP => write!(
                    f,
                    " {host} {host_port} {remote} {remote_port} {address} {port} {remote_address} {remote_port}"
                )?,
                ICMP => write!(f, " {host} {remote} {host_port} {address} {remote_address} {port}")?,
                _ => write!(f, " {host} {remote} {address} {remote_address}")?,
            }
            // As VPP spells it.
            writeln!(f, " protcol {} vrf {}", s.protocol, s.vrf)?;
        }
        Ok(())
    }
}
