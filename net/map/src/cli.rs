//! Commands: `map ...`, `show map ...`.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};

use serde::Serialize;
use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::domain::Parameters;
use crate::{Map, MapError, Mode, Shown};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "map add domain {[tag <tag:word>] & ip4-pfx <ip4-pfx:ip4-prefix> & ip6-pfx <ip6-pfx:ip6-prefix> \
         & ip6-src <ip6-src:ip6-prefix> & [ea-bits-len <ea-bits-len:u8>] & [psid-offset <psid-offset:u8>] \
         & [psid-len <psid-len:u8>] & [mtu <mtu:u16>] & [index <index:u32>]}",
        "Have customers of an IPv6 network share IPv4 addresses",
        add_domain,
    )
    .examples(&[
        "map add domain ip4-pfx 192.0.2.0/24 ip6-pfx 2001:db8::/40 ip6-src 2001:db8:ffff::1/128 ea-bits-len 16 \
         psid-offset 4 psid-len 8",
    ])
    .doc(
        "With an `ip6-src` of 128 bits packets go in tunnels from there (MAP-E); with a shorter one it is the prefix that \
         stands for the Internet (MAP-T).",
    ),
    Command::new("map del domain index <index:u32>", "Delete a MAP domain", del_domain),
    Command::new(
        "map add rule index <index:u32> psid <psid:u16> ip6-dst <ip6-dst:ip6-address> [del]",
        "Give a port set of a MAP domain an address of its own",
        rule,
    )
    .doc("For domains without `ea-bits-len`."),
    Command::new(
        "map interface <interface:interface> [map-t] [del]",
        "Do MAP-E, or MAP-T, on an interface",
        interface,
    )
    .examples(&["map interface local0 map-t"]),
    Command::new("map params fragment {inner | outer} [ignore-df]", "Say how packets that are too large are fragmented", fragment)
        .examples(&["map params fragment outer"]),
    Command::new(
        "map params icmp source-address <source:ip4-address>",
        "Set the source of ICMP errors from routers without an IPv4 address",
        icmp,
    )
    .examples(&["map params icmp source-address 192.0.2.1"])
    .doc("0.0.0.0: none; such errors are dropped."),
    Command::new("map params icmp6 unreachables {on | off}", "Tell senders of packets that belong to no customer", icmp6)
        .examples(&["map params icmp6 unreachables on"]),
    Command::new(
        "map params security-check {enable | disable} [fragments {on | off}]",
        "Check that customers use their own addresses and ports",
        security,
    )
    .examples(&["map params security-check enable fragments off"]),
    Command::new(
        "map params pre-resolve {[ip4-nh <ip4-nh:ip4-address>] & [ip6-nh <ip6-nh:ip6-address>]} [del]",
        "Set where all packets go that leave MAP",
        pre_resolve,
    )
    .examples(&["map params pre-resolve ip4-nh 192.0.2.9"])
    .doc("The next hop is looked up in table 0, as that of a route is, whatever the packets' destinations are."),
    Command::new("map params tcp-mss <mss:u16>", "Limit the segments of TCP connections", tcp_mss)
        .examples(&["map params tcp-mss 1400"])
        .doc("0: no limit."),
    Command::new("map params traffic-class {copy | <class:u8>}", "Copy the class of packets, or set it", traffic_class)
        .examples(&["map params traffic-class copy", "map params traffic-class 32"]),
    Command::new("show map domain [index <index:u32>] [counters]", "Show MAP domains", show_domain)
        .examples(&["show map domain", "show map domain counters"]),
    Command::new("show map stats", "Show MAP's parameters and sums", show_stats).examples(&["show map stats"]),
];

fn failed(error: &MapError) -> CliError {
    CliError::failed(error.to_string())
}

fn add_domain(control: &Control, args: &Args) -> Result<Output, CliError> {
    let ip4: shoal_wire::Ip4Prefix = args.get("ip4-pfx")?;
    let (ip6, ip6_src): (shoal_wire::Ip6Prefix, shoal_wire::Ip6Prefix) =
        (args.get("ip6-pfx")?, args.get("ip6-src")?);
    let parameters = Parameters {
        ip4: ip4.normalized(),
        ip6: ip6.normalized(),
        ip6_src: ip6_src.normalized(),
        ea_bits: args.opt("ea-bits-len")?.unwrap_or(0),
        psid_offset: args.opt("psid-offset")?.unwrap_or(0),
        psid_length: args.opt("psid-len")?.unwrap_or(0),
        mtu: args.opt("mtu")?.unwrap_or(0),
        tag: args.text("tag").unwrap_or_default().to_owned(),
    };
    let map = control.get::<Map>()?;
    let added = match args.opt("index")? {
        Some(index) => map.add_domain_at(index, parameters),
        None => map.add_domain(parameters),
    };
    added.map_err(|e| failed(&e))?;
    Ok(Output::none())
}

fn del_domain(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Map>()?.del_domain(args.get("index")?).map_err(|e| failed(&e))?;
    Ok(Output::none())
}

fn rule(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (map, index, psid) = (control.get::<Map>()?, args.get("index")?, args.get("psid")?);
    let done = if args.has("del") {
        map.del_rule(index, psid)
    } else {
        map.add_rule(index, psid, args.get("ip6-dst")?)
    };
    done.map_err(|e| failed(&e))?;
    Ok(Output::none())
}

fn interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let mode = if args.has("map-t") { Mode::Translate } else { Mode::Encapsulate };
    let done = control.get::<Map>()?.set_interface(interface, mode, !args.has("del"));
    done.map_err(|e| CliError::argument("interface", e.to_string()))?;
    Ok(Output::none())
}

fn fragment(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Map>()?.set(|settings| {
        (settings.frag_inner, settings.frag_ignore_df) = (args.has("inner"), args.has("ignore-df"));
    });
    Ok(Output::none())
}

fn icmp(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Map>()?.set_icmp_source(args.get("source")?);
    Ok(Output::none())
}

fn icmp6(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Map>()?.set(|settings| settings.icmp6_unreachables = args.has("on"));
    Ok(Output::none())
}

fn security(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Map>()?.set(|settings| {
        settings.security_check = args.has("enable");
        if args.has("on") || args.has("off") {
            settings.security_check_fragments = args.has("on");
        }
    });
    Ok(Output::none())
}

fn pre_resolve(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (ip4, ip6, del) = (args.opt("ip4-nh")?, args.opt("ip6-nh")?, args.has("del"));
    let ip4 = ip4.map(|hop: Ipv4Addr| hop.into());
    let hops: Vec<IpAddr> = ip4.into_iter().chain(ip6.map(|hop: Ipv6Addr| hop.into())).collect();
    control.get::<Map>()?.set_next_hops(&hops, !del)?;
    Ok(Output::none())
}

fn tcp_mss(control: &Control, args: &Args) -> Result<Output, CliError> {
    let mss = args.get("mss")?;
    control.get::<Map>()?.set(|settings| settings.tcp_mss = mss);
    Ok(Output::none())
}

fn traffic_class(control: &Control, args: &Args) -> Result<Output, CliError> {
    let class: Option<u8> = args.opt("class")?;
    control.get::<Map>()?.set(|settings| {
        (settings.tc_copy, settings.tc_class) = (class.is_none(), class.unwrap_or(0));
    });
    Ok(Output::none())
}

#[derive(Serialize)]
struct Rule {
    psid: u16,
    ip6_dst: String,
}

#[derive(Serialize)]
struct Row {
    index: u32,
    tag: String,
    ip4_prefix: String,
    ip6_prefix: String,
    ip6_src: String,
    ea_bits: u8,
    psid_offset: u8,
    psid_length: u8,
    mtu: u16,
    rx: (u64, u64),
    tx: (u64, u64),
    rules: Vec<Rule>,
    #[serde(skip)]
    counters: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn row(shown: &Shown, counters: bool) -> Row {
    let Parameters { ip4, ip6, ip6_src, ea_bits, psid_offset, psid_length, mtu, tag } =
        &shown.domain.parameters;
    let [rx, tx] = shown.counts;
    let rule = |(psid, address): (&u16, &Ipv6Addr)| Rule { psid: *psid, ip6_dst: address.to_string() };
    Row {
        index: shown.index,
        tag: tag.clone(),
        ip4_prefix: ip4.to_string(),
        ip6_prefix: ip6.to_string(),
        ip6_src: ip6_src.to_string(),
        ea_bits: *ea_bits,
        psid_offset: *psid_offset,
        psid_length: *psid_length,
        mtu: *mtu,
        rx,
        tx,
        rules: shown.rules.iter().map(rule).collect(),
        counters,
    }
}

fn show_domain(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (map, counters) = (control.get::<Map>()?, args.has("counters"));
    let all = match args.opt("index")? {
        Some(index) => vec![map.domain(index).map_err(|e| failed(&e))?],
        None => map.all(),
    };
    Ok(Output::view(View(all.iter().map(|shown| row(shown, counters)).collect())))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for row in &self.0 {
            let tag = if row.tag.is_empty() { "[no-tag]" } else { &row.tag };
            write!(
                f,
                "[{}] tag {{{tag}}} ip4-pfx {} ip6-pfx {} ip6-src {} ea-bits-len {} psid-offset {} psid-len {} mtu {} ",
                row.index,
                row.ip4_prefix,
                row.ip6_prefix,
                row.ip6_src,
                row.ea_bits,
                row.psid_offset,
                row.psid_length,
                row.mtu
            )?;
            if row.counters {
                write!(f, "  TX: {}/{}  RX: {}/{}", row.tx.0, row.tx.1, row.rx.0, row.rx.1)?;
            }
            writeln!(f)?;
            for Rule { psid, ip6_dst } in &row.rules {
                writeln!(f, " rule psid: {psid} ip6-dst {ip6_dst}")?;
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct Stats {
    domains: usize,
    rules: usize,
    ip6_next_hop: Option<Ipv6Addr>,
    ip4_next_hop: Option<Ipv4Addr>,
    traffic_class: String,
    tcp_mss: u16,
    security_check: bool,
    security_check_fragments: bool,
    icmp_source: Option<String>,
    icmp6_unreachables: bool,
    inner_fragmentation: bool,
    ignore_df: bool,
    encapsulated: (u64, u64),
    decapsulated: (u64, u64),
}

fn show_stats(control: &Control, _: &Args) -> Result<Output, CliError> {
    let map = control.get::<Map>()?;
    let (all, settings, hops) = (map.all(), map.settings(), map.next_hops());
    let sum = |way: usize| {
        all.iter().filter_map(|shown| shown.counts.get(way)).fold((0, 0), |(p, b), (np, nb)| (p + np, b + nb))
    };
    Ok(Output::view(Stats {
        domains: all.len(),
        rules: all.iter().map(|shown| shown.rules.len()).sum(),
        ip6_next_hop: hops.ip6.map(|hop| hop.address),
        ip4_next_hop: hops.ip4.map(|hop| hop.address),
        traffic_class: if settings.tc_copy { "copy".into() } else { format!("{:x}", settings.tc_class) },
        tcp_mss: settings.tcp_mss,
        security_check: settings.security_check,
        security_check_fragments: settings.security_check_fragments,
        icmp_source: settings.icmp_source.map(|source| source.to_string()),
        icmp6_unreachables: settings.icmp6_unreachables,
        inner_fragmentation: settings.frag_inner,
        ignore_df: settings.frag_ignore_df,
        encapsulated: sum(1),
        decapsulated: sum(0),
    }))
}

fn on(on: bool) -> &'static str {
    if on { "enabled" } else { "disabled" }
}

impl fmt::Display for Stats {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "MAP domains: {}", self.domains)?;
        writeln!(f, "MAP rules: {}", self.rules)?;
        if self.ip6_next_hop.is_some() || self.ip4_next_hop.is_some() {
            let ip6 = self.ip6_next_hop.map_or("un-set".to_owned(), |hop| hop.to_string());
            let ip4 = self.ip4_next_hop.map_or("un-set".to_owned(), |hop| hop.to_string());
            writeln!(f, "MAP pre-resolve: IP6 next-hop: {ip6}, IP4 next-hop: {ip4}")?;
        }
        writeln!(f, "MAP traffic-class: {}", self.traffic_class)?;
        if self.tcp_mss > 0 {
            writeln!(f, "MAP TCP MSS clamping: {}", self.tcp_mss)?;
        }
        writeln!(
            f,
            "MAP IPv6 inbound security check: {}, fragmented packet security check: {}",
            on(self.security_check),
            on(self.security_check_fragments)
        )?;
        if let Some(source) = &self.icmp_source {
            writeln!(f, "ICMP-relay IPv4 source address: {source}")?;
        }
        writeln!(f, "ICMP6 unreachables sent for unmatched packets: {}", on(self.icmp6_unreachables))?;
        writeln!(f, "Inner fragmentation: {}", on(self.inner_fragmentation))?;
        writeln!(f, "Fragment packets regardless of DF flag: {}", on(self.ignore_df))?;
        writeln!(f, "Encapsulated packets: {} bytes: {}", self.encapsulated.0, self.encapsulated.1)?;
        writeln!(f, "Decapsulated packets: {} bytes: {}", self.decapsulated.0, self.decapsulated.1)
    }
}
