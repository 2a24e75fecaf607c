//! Commands: `ip container`, `show ip container`.

use std::fmt;
use std::net::IpAddr;

use serde::Serialize;
use shoal_fib::PrefixArg;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::IpPrefix;

use crate::{ContainerProxy, ProxyError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "ip container {{<address:ip-address> | <prefix:ip-prefix>} & <interface> & [del]}",
        "Take packets to an address behind an interface, or no longer",
        set,
    )
    .examples(&["ip container 172.16.9.9 local0", "ip container 172.16.9.9 local0 del"])
    .doc("The address of a container, or the prefix of several. It is in the interface's table."),
    Command::new(
        "show ip container [{{<address:ip-address> | <prefix:ip-prefix>} & <interface>}]",
        "Show whose packets are taken",
        show,
    )
    .examples(&["show ip container", "show ip container 172.16.9.9 local0"]),
];

fn failed(error: ProxyError) -> CliError {
    let name = match &error {
        ProxyError::Interface(_) => "interface",
        ProxyError::NotProxied(..) | ProxyError::Fib(_) => "address",
    };
    CliError::argument(name, error.to_string())
}

/// The given address or prefix.
fn said(args: &Args) -> Result<Option<IpPrefix>, CliError> {
    let address = args.opt::<IpAddr>("address")?.map(IpPrefix::host);
    Ok(address.or(args.opt::<PrefixArg>("prefix")?.map(|prefix| prefix.0)))
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let proxy = control.get::<ContainerProxy>()?;
    let InterfaceArg(interface) = args.get("interface")?;
    let prefix = said(args)?.ok_or_else(|| CliError::argument("address", "an address is missing"))?;
    let done = if args.has("del") { proxy.remove(prefix, interface) } else { proxy.add(prefix, interface) };
    done.map_err(failed)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct State {
    on: bool,
}

#[derive(Serialize)]
struct Row {
    prefix: String,
    interface: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct Table(Vec<Row>);

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (proxy, interfaces) = (control.get::<ContainerProxy>()?, control.get::<Interfaces>()?);
    if let Some(prefix) = said(args)? {
        let InterfaceArg(interface) = args.get("interface")?;
        return Ok(Output::view(State { on: proxy.is_set(prefix, interface) }));
    }
    let row = |(prefix, interface): (IpPrefix, _)| Row {
        prefix: prefix.to_string(),
        interface: interfaces.name(interface).unwrap_or_default(),
    };
    Ok(Output::view(Table(proxy.list().into_iter().map(row).collect())))
}

impl fmt::Display for State {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "ip container proxy is: {}", if self.on { "on" } else { "off" })
    }
}

impl fmt::Display for Table {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        self.0.iter().try_for_each(|Row { prefix, interface }| writeln!(f, "{prefix} {interface}"))
    }
}
