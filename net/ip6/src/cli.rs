//! Commands. Those about both families are in `net/ip_interface`.

use std::net::Ipv6Addr;

use shoal_interface::{InterfaceArg, SwIfIndex};
use shoal_ip::{of_address, of_table};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::Ip6;

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new("set interface ip6 table <interface> <table>", "Choose an interface's IPv6 table", table)
        .examples(&["set interface ip6 table local0 0"])
        .doc("Only while the interface has no IPv6 addresses."),
    Command::new("enable ip6 interface <interface>", "Let IPv6 run on an interface", enable)
        .examples(&["enable ip6 interface local0"])
        .doc("It gets a link-local address. IPv6 also runs on each interface with an IPv6 address."),
    Command::new(
        "disable ip6 interface <interface> [keep-addresses]",
        "Let IPv6 run on an interface only while it has an address",
        disable,
    )
    .examples(&["disable ip6 interface local0", "disable ip6 interface local0 keep-addresses"])
    .doc("It must have none, unless it is to keep them."),
    Command::new(
        "set ip6 link-local address <interface> {<address:ip6-address> | auto}",
        "Choose an interface's link-local address",
        link_local,
    )
    .examples(&["set ip6 link-local address local0 fe80::1"])
    .doc("Without one, and with `auto`, it is made of the interface's MAC address (RFC 2464)."),
];

fn interface(args: &Args) -> Result<SwIfIndex, CliError> {
    Ok(args.get::<InterfaceArg>("interface")?.0)
}

fn table(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (ip6, interface, table) = (control.get::<Ip6>()?, interface(args)?, args.get::<u32>("table")?);
    ip6.set_table(interface, table).map_err(of_table)?;
    Ok(Output::none())
}

fn enable(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Ip6>()?.enable(interface(args)?, true)?;
    Ok(Output::none())
}

fn disable(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("keep-addresses") {
        control.get::<Ip6>()?.leave_to_addresses(interface(args)?)?;
        return Ok(Output::none());
    }
    control.get::<Ip6>()?.enable(interface(args)?, false)?;
    Ok(Output::none())
}

fn link_local(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Some(address) = args.opt::<Ipv6Addr>("address")? else {
        control.get::<Ip6>()?.derive_link_local(interface(args)?).map_err(of_address)?;
        return Ok(Output::none());
    };
    control.get::<Ip6>()?.set_link_local(interface(args)?, address).map_err(of_address)?;
    Ok(Output::none())
}
