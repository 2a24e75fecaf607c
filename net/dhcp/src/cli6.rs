//! Commands about DHCPv6 clients.

use std::fmt::{self, Write as _};
use std::rc::Rc;

use serde::Serialize;
use shoal_fib::PrefixArg;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::client_message6::Wanted;
use crate::{Client6Info, Dhcp, DhcpError};

pub(crate) const CLIENT: Command = Command::new(
    "dhcp6 client <interface> [disable]",
    "Have an interface get addresses from a DHCPv6 server",
    |control, args| client(control, args, Wanted::Addresses),
)
.examples(&["dhcp6 client local0", "dhcp6 client local0 disable"])
.doc("The router itself answers at the address; which routers and networks the link has, router advertisements say.");

pub(crate) const PREFIX_CLIENT: Command = Command::new(
    "dhcp6 pd client <interface> {prefix group <group:word> | disable}",
    "Have an interface get prefixes for a group from a DHCPv6 server",
    |control, args| client(control, args, Wanted::Prefixes),
)
.examples(&["dhcp6 pd client local0 prefix group isp", "dhcp6 pd client local0 disable"])
.doc("`set ip6 address` gives interfaces addresses from the prefixes of a group. What no interface uses of a prefix is unreachable.");

pub(crate) const ADDRESS: Command = Command::new(
    "set ip6 address <interface> {prefix group <group:word>} {<rest:ip-prefix>} [del]",
    "Give an interface an address from the prefix of a group, as soon as there is one",
    address,
)
.examples(&["set ip6 address local0 prefix group isp ::7:0:0:0:1/64"])
.doc("The first bits are the prefix's, the others and the length are those given: with a prefix of 56 bits ::7:0:0:0:1/64 is host 1 of network 7.");

pub(crate) const DUID: Command = Command::new(
    "dhcp6 duid {auto | <duid:word>}",
    "Set what DHCPv6 servers know this router by",
    duid,
)
.examples(&["dhcp6 duid 0003000102aabbccddee"])
.doc("Hexadecimal digits of a DUID (RFC 8415, 11). If it is not set, or `auto`, it follows from the link-layer address of the first interface that has one.");

pub(crate) const SHOW_CLIENTS: Command =
    Command::new("show dhcp6 clients", "Show DHCPv6 clients for addresses", |control, _| {
        show(control, Wanted::Addresses)
    })
    .examples(&["show dhcp6 clients"]);

pub(crate) const SHOW_PREFIX_CLIENTS: Command = Command::new(
    "show dhcp6 pd clients",
    "Show DHCPv6 clients for prefixes, and addresses from them",
    |control, _| show(control, Wanted::Prefixes),
)
.examples(&["show dhcp6 pd clients"]);

fn dhcp(control: &Control) -> Result<Rc<Dhcp>, CliError> {
    Ok(control.get::<Dhcp>()?)
}

fn refused(error: &DhcpError) -> CliError {
    CliError::argument("interface", error.to_string())
}

fn client(control: &Control, args: &Args, wanted: Wanted) -> Result<Output, CliError> {
    let (dhcp, interface) = (dhcp(control)?, args.get::<InterfaceArg>("interface")?.0);
    let done = if args.has("disable") {
        dhcp.del_client6(interface, wanted)
    } else {
        let group: String = args.opt("group")?.unwrap_or_default();
        dhcp.add_client6(interface, wanted, &group)
    };
    done.map_err(|e| refused(&e))?;
    Ok(Output::none())
}

fn address(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (dhcp, interface) = (dhcp(control)?, args.get::<InterfaceArg>("interface")?.0);
    let (group, rest): (String, PrefixArg) = (args.get("group")?, args.get("rest")?);
    let rest = rest
        .0
        .ip6()
        .ok_or_else(|| CliError::argument("rest", "an IPv6 address and the length of its link's prefix"))?;
    let done = if args.has("del") {
        dhcp.del_from_prefix(interface, &group, rest)
    } else {
        dhcp.add_from_prefix(interface, &group, rest)
    };
    done.map_err(|e| refused(&e))?;
    Ok(Output::none())
}

fn duid(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("auto") {
        dhcp(control)?.derive_duid();
        return Ok(Output::none());
    }
    let text: String = args.get("duid")?;
    let digits: Option<Vec<u8>> = text.chars().map(|c| c.to_digit(16).map(|digit| digit as u8)).collect();
    let bytes = digits.filter(|digits| digits.len() % 2 == 0).map(|digits| {
        let (pairs, _) = digits.as_chunks::<2>();
        pairs.iter().map(|[high, low]| high << 4 | low).collect::<Vec<u8>>()
    });
    let bytes = bytes.ok_or_else(|| CliError::argument("duid", "hexadecimal digits, two for each byte"))?;
    dhcp(control)?.set_duid(&bytes).map_err(|e| CliError::argument("duid", e.to_string()))?;
    Ok(Output::none())
}

/// Hexadecimal digits.
pub(crate) fn hex(bytes: &[u8]) -> String {
    bytes.iter().fold(String::new(), |mut text, byte| {
        let _ = write!(text, "{byte:02x}");
        text
    })
}

#[derive(Serialize)]
struct LeaseView {
    prefix: String,
    preferred: Option<u64>,
    valid: Option<u64>,
}

#[derive(Serialize)]
struct ClientView {
    interface: String,
    state: &'static str,
    group: String,
    server: Option<String>,
    renews_in: Option<u64>,
    rebinds_in: Option<u64>,
    leases: Vec<LeaseView>,
    /// Addresses that other stations had.
    declined: u64,
    /// How often the server had it ask again.
    reconfigured: u64,
}

#[derive(Serialize)]
struct FromPrefixView {
    interface: String,
    group: String,
    rest: String,
    address: Option<String>,
}

#[derive(Serialize)]
struct ClientsView {
    duid: String,
    clients: Vec<ClientView>,
    /// Messages that had clients ask again and were not believed.
    refused: u64,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    addresses: Vec<FromPrefixView>,
}

fn seconds(time: Option<u64>) -> String {
    time.map_or_else(|| "for good".to_owned(), |seconds| format!("{seconds}s"))
}

impl fmt::Display for ClientsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "DUID {}", self.duid)?;
        if self.refused > 0 {
            writeln!(f, "{} Reconfigure messages were not believed", self.refused)?;
        }
        for client in &self.clients {
            write!(f, "{} state {}", client.interface, client.state)?;
            if !client.group.is_empty() {
                write!(f, " prefix group {}", client.group)?;
            }
            writeln!(f)?;
            if let Some(server) = &client.server {
                writeln!(f, "  server {server}")?;
            }
            if let Some(renews) = client.renews_in {
                writeln!(f, "  renews in {renews}s, asks all servers in {}", seconds(client.rebinds_in))?;
            }
            for LeaseView { prefix, preferred, valid } in &client.leases {
                writeln!(f, "  {prefix} preferred {} valid {}", seconds(*preferred), seconds(*valid))?;
            }
            if client.declined > 0 {
                writeln!(f, "  declined {} addresses that other stations had", client.declined)?;
            }
            if client.reconfigured > 0 {
                writeln!(f, "  its server had it ask again {} times", client.reconfigured)?;
            }
        }
        for FromPrefixView { interface, group, rest, address } in &self.addresses {
            write!(f, "{interface} prefix group {group} {rest}: ")?;
            match address {
                Some(address) => writeln!(f, "{address}")?,
                None => writeln!(f, "no prefix")?,
            }
        }
        Ok(())
    }
}

fn show(control: &Control, wanted: Wanted) -> Result<Output, CliError> {
    let (dhcp, interfaces) = (dhcp(control)?, control.get::<Interfaces>()?);
    let name = |interface| interfaces.name(interface).unwrap_or_default();
    let clients = dhcp.clients6().into_iter().filter(|info| info.wanted == wanted);
    let view = |info: Client6Info| ClientView {
        interface: name(info.interface),
        state: info.phase.word(),
        group: info.group,
        server: info.server.map(|server| hex(&server)),
        renews_in: info.times.0,
        rebinds_in: info.times.1,
        declined: info.declined,
        reconfigured: info.reconfigured,
        leases: info
            .leases
            .into_iter()
            .map(|(prefix, preferred, valid)| LeaseView {
                prefix: if wanted == Wanted::Addresses {
                    prefix.addr().to_string()
                } else {
                    prefix.to_string()
                },
                preferred,
                valid,
            })
            .collect(),
    };
    let clients = clients.map(view).collect();
    let addresses = if wanted == Wanted::Prefixes { dhcp.from_prefixes() } else { Vec::new() };
    let of_prefix = |of: crate::FromPrefix| FromPrefixView {
        interface: name(of.interface),
        group: of.group,
        rest: of.rest.to_string(),
        address: of.address.map(|address| address.to_string()),
    };
    Ok(Output::view(ClientsView {
        duid: hex(&dhcp.duid()),
        clients,
        refused: dhcp.refused6(),
        addresses: addresses.into_iter().map(of_prefix).collect(),
    }))
}
