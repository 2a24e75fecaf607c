//! Commands.

use std::fmt;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use serde::Serialize;
use shoal_adj::Family;
use shoal_interface::{InterfaceArg, Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::cli6;
use crate::client::State;
use crate::{ClientIdentity, Dhcp, DhcpError, Server, VirtualSubnet};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set dhcp client [del] intfc <interface> [hostname <hostname:word>] [client-id <client-id:word>] [broadcast] [dscp <dscp:u8>]",
        "Have an interface get its address from a DHCP server",
        client,
    )
    .examples(&["set dhcp client intfc local0 hostname gw"])
    .doc(
        "Address, network and default route are those of the lease, and go with it. `broadcast` asks servers to answer to all stations of \
         the link. `dscp` is the whole byte of the header, as VPP has it.",
    ),
    Command::new("show dhcp client [intfc <interface>] [verbose]", "Show clients and their leases", show_clients)
        .examples(&["show dhcp client", "show dhcp client verbose"]),
    Command::new(
        "set dhcp proxy server <server:ip4-address> src-address <source:ip4-address> [server-fib-id <server-fib-id:u32>] \
         [rx-fib-id <rx-fib-id:u32>] [del]",
        "Hand DHCP messages of hosts on to a server",
        relay4,
    )
    .examples(&["set dhcp proxy server 192.0.2.9 src-address 192.0.2.1"])
    .doc(
        "Hosts are those of the VRF `rx-fib-id`, the server is reached in `server-fib-id`. Each message says by which interface it came \
         (option 82); an interface needs an address for that.",
    ),
    Command::new("show dhcp proxy", "Show servers that DHCP messages are handed on to", show_relays4)
        .examples(&["show dhcp proxy"]),
    Command::new(
        "set dhcp option-82 vss table <table:u32> {oui <oui:u32> vpn-id <vpn-id:u32> | vpn-ascii-id <vpn-ascii-id:word> | default | delete}",
        "Say to servers which VPN the hosts of a VRF are in",
        subnet4,
    )
    .examples(&["set dhcp option-82 vss table 7 vpn-ascii-id customer"]),
    Command::new("show dhcp vss", "Show which VPN the hosts of VRFs are in", show_subnets4).examples(&["show dhcp vss"]),
    Command::new(
        "set dhcpv6 proxy server <server:ip6-address> src-address <source:ip6-address> [server-fib-id <server-fib-id:u32>] \
         [rx-fib-id <rx-fib-id:u32>] [del]",
        "Hand DHCPv6 messages of hosts on to a server",
        relay6,
    )
    .examples(&["set dhcpv6 proxy server 2001:db8::9 src-address 2001:db8::1"]),
    Command::new("show dhcpv6 proxy", "Show servers that DHCPv6 messages are handed on to", show_relays6)
        .examples(&["show dhcpv6 proxy"]),
    Command::new(
        "set dhcpv6 vss table <table:u32> {oui <oui:u32> vpn-id <vpn-id:u32> | vpn-ascii-id <vpn-ascii-id:word> | default | delete}",
        "Say to servers which VPN the IPv6 hosts of a VRF are in",
        subnet6,
    )
    .examples(&["set dhcpv6 vss table 7 oui 4 vpn-id 1"]),
    Command::new("show dhcpv6 vss", "Show which VPN the IPv6 hosts of VRFs are in", show_subnets6)
        .examples(&["show dhcpv6 vss"]),
    cli6::CLIENT,
    cli6::PREFIX_CLIENT,
    cli6::ADDRESS,
    cli6::DUID,
    cli6::SHOW_CLIENTS,
    cli6::SHOW_PREFIX_CLIENTS,
];

fn dhcp(control: &Control) -> Result<Rc<Dhcp>, CliError> {
    Ok(control.get::<Dhcp>()?)
}

fn refused(error: DhcpError) -> CliError {
    let text = error.to_string();
    match error {
        DhcpError::UnknownServer(_) | DhcpError::ServerExists(_) | DhcpError::NoServer(_) => {
            CliError::argument("server", text)
        }
        DhcpError::NoSource => CliError::argument("source", text),
        DhcpError::NoSubnet(_) => CliError::argument("table", text),
        _ => CliError::failed(text),
    }
}

fn client(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (dhcp, InterfaceArg(interface)) = (dhcp(control)?, args.get("interface")?);
    if args.has("del") {
        dhcp.del_client(interface).map_err(refused)?;
        return Ok(Output::none());
    }
    let asks = ClientIdentity {
        hostname: args.text("hostname").unwrap_or_default().to_owned(),
        id: args.text("client-id").unwrap_or_default().as_bytes().to_vec(),
        broadcast: args.has("broadcast"),
        tos: args.or("dscp", 0)?,
        tells: None,
    };
    dhcp.add_client(interface, asks).map_err(refused)?;
    Ok(Output::none())
}

fn name(control: &Control, interface: SwIfIndex) -> String {
    let named = control.get::<Interfaces>().ok().and_then(|all| all.name(interface).ok());
    named.unwrap_or_else(|| interface.0.to_string())
}

/// A client as it is shown.
#[derive(Serialize)]
struct ClientView {
    interface: String,
    state: &'static str,
    address: Option<String>,
    router: Option<Ipv4Addr>,
    name_servers: Vec<Ipv4Addr>,
    server: Option<Ipv4Addr>,
    hostname: String,
    /// Seconds until it acts next.
    next: u64,
    #[serde(skip)]
    verbose: bool,
}

#[derive(Serialize)]
struct ClientsView(Vec<ClientView>);

impl fmt::Display for ClientsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (nth, client) in self.0.iter().enumerate() {
            let ClientView {
                interface,
                state,
                address,
                router,
                name_servers,
                server,
                hostname,
                next,
                verbose,
            } = client;
            let installed = u8::from(address.is_some());
            write!(f, "[{nth}] {interface} state {state} installed {installed}")?;
            match address {
                Some(address) => write!(f, " address {address}")?,
                None => write!(f, " no address")?,
            }
            if let Some(router) = router {
                write!(f, " gw {router}")?;
            }
            if let Some(server) = server {
                write!(f, " server {server}")?;
            }
            for name_server in name_servers {
                write!(f, " dns {name_server}")?;
            }
            writeln!(f)?;
            if *verbose {
                writeln!(
                    f,
                    "  hostname: {}, next step in {next}s",
                    if hostname.is_empty() { "none" } else { hostname }
                )?;
            }
        }
        Ok(())
    }
}

fn show_clients(control: &Control, args: &Args) -> Result<Output, CliError> {
    let only: Option<InterfaceArg> = args.opt("interface")?;
    let view = |info: crate::ClientInfo| {
        let lease = info.lease.as_ref();
        ClientView {
            interface: name(control, info.interface),
            state: match info.state {
                State::Discover => "DHCP_DISCOVER",
                State::Request => "DHCP_REQUEST",
                State::Bound => "DHCP_BOUND",
            },
            address: lease.map(|lease| lease.address.to_string()),
            router: lease.and_then(|lease| lease.router),
            name_servers: lease.map(|lease| lease.name_servers.clone()).unwrap_or_default(),
            server: lease.map(|lease| lease.server),
            hostname: info.asks.hostname,
            next: info.next,
            verbose: args.has("verbose"),
        }
    };
    let all = dhcp(control)?.clients().into_iter();
    let wanted = all.filter(|info| only.as_ref().is_none_or(|InterfaceArg(only)| *only == info.interface));
    Ok(Output::view(ClientsView(wanted.map(view).collect())))
}

fn relay(control: &Control, args: &Args, server: IpAddr, source: IpAddr) -> Result<Output, CliError> {
    let (dhcp, rx) = (dhcp(control)?, args.or("rx-fib-id", 0)?);
    let server = Server { address: server, vrf: args.or("server-fib-id", 0)? };
    let done =
        if args.has("del") { dhcp.del_server(rx, server) } else { dhcp.add_server(rx, server, source) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn relay4(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (server, source): (Ipv4Addr, Ipv4Addr) = (args.get("server")?, args.get("source")?);
    relay(control, args, server.into(), source.into())
}

fn relay6(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (server, source): (Ipv6Addr, Ipv6Addr) = (args.get("server")?, args.get("source")?);
    relay(control, args, server.into(), source.into())
}

/// A server as it is shown.
#[derive(Serialize)]
struct ServerView {
    fib: u32,
    address: IpAddr,
}

/// A relay as it is shown.
#[derive(Serialize)]
struct RelayView {
    rx_fib: u32,
    source: IpAddr,
    servers: Vec<ServerView>,
}

#[derive(Serialize)]
struct RelaysView(Vec<RelayView>);

impl fmt::Display for RelaysView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:>10}{:>18}  Servers FIB,Address", "RX FIB", "Src Address")?;
        for RelayView { rx_fib, source, servers } in &self.0 {
            write!(f, "{rx_fib:>10}{:>18}  ", source.to_string())?;
            for ServerView { fib, address } in servers {
                write!(f, "{fib},{address} ")?;
            }
            writeln!(f)?;
        }
        Ok(())
    }
}

fn relays(control: &Control, family: Family) -> Result<Output, CliError> {
    let all = dhcp(control)?.relays(family).into_iter();
    let view = all.map(|relay| RelayView {
        rx_fib: relay.vrf,
        source: relay.source,
        servers: relay.servers.iter().map(|one| ServerView { fib: one.vrf, address: one.address }).collect(),
    });
    Ok(Output::view(RelaysView(view.collect())))
}

fn show_relays4(control: &Control, _: &Args) -> Result<Output, CliError> {
    relays(control, Family::Ip4)
}

fn show_relays6(control: &Control, _: &Args) -> Result<Output, CliError> {
    relays(control, Family::Ip6)
}

fn subnet(control: &Control, args: &Args, family: Family) -> Result<Output, CliError> {
    let (dhcp, table) = (dhcp(control)?, args.get("table")?);
    if args.has("delete") {
        dhcp.del_subnet(family, table).map_err(refused)?;
        return Ok(Output::none());
    }
    let subnet = if let Some(name) = args.text("vpn-ascii-id") {
        VirtualSubnet::Name(name.to_owned())
    } else if args.has("default") {
        VirtualSubnet::Default
    } else {
        VirtualSubnet::Number { organisation: args.get("oui")?, vpn: args.get("vpn-id")? }
    };
    dhcp.set_subnet(family, table, subnet).map_err(refused)?;
    Ok(Output::none())
}

fn subnet4(control: &Control, args: &Args) -> Result<Output, CliError> {
    subnet(control, args, Family::Ip4)
}

fn subnet6(control: &Control, args: &Args) -> Result<Output, CliError> {
    subnet(control, args, Family::Ip6)
}

/// A VPN as it is shown.
#[derive(Serialize)]
struct SubnetView {
    table: u32,
    name: Option<String>,
    oui: Option<u32>,
    vpn: Option<u32>,
}

#[derive(Serialize)]
struct SubnetsView(Vec<SubnetView>);

impl fmt::Display for SubnetsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for SubnetView { table, name, oui, vpn } in &self.0 {
            match (name, oui, vpn) {
                (Some(name), ..) => writeln!(f, " fib_table: {table}  ASCII VPN ID: {name}")?,
                (_, Some(oui), Some(vpn)) => writeln!(f, " fib_table: {table}  oui: {oui} vpn-id: {vpn}")?,
                _ => writeln!(f, " fib_table: {table}  VPN ID: default global")?,
            }
        }
        Ok(())
    }
}

fn subnets(control: &Control, family: Family) -> Result<Output, CliError> {
    let all = dhcp(control)?.subnets(family).into_iter();
    let view = |(table, subnet)| match subnet {
        VirtualSubnet::Name(name) => SubnetView { table, name: Some(name), oui: None, vpn: None },
        VirtualSubnet::Number { organisation, vpn } => {
            SubnetView { table, name: None, oui: Some(organisation), vpn: Some(vpn) }
        }
        VirtualSubnet::Default => SubnetView { table, name: None, oui: None, vpn: None },
    };
    Ok(Output::view(SubnetsView(all.map(view).collect())))
}

fn show_subnets4(control: &Control, _: &Args) -> Result<Output, CliError> {
    subnets(control, Family::Ip4)
}

fn show_subnets6(control: &Control, _: &Args) -> Result<Output, CliError> {
    subnets(control, Family::Ip6)
}
