//! Commands. Addresses are given by the command for both families, which is with IPv6.

use shoal_interface::{InterfaceArg, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output, Toggle};

use crate::{Ip4, Ip4Error};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new("set interface ip table <interface> <table>", "Choose an interface's IPv4 table", table)
        .examples(&["set interface ip table local0 0"])
        .doc("Only while the interface has no addresses."),
    Command::new(
        "set interface ip directed-broadcast <interface> <state:on-off>",
        "Send packets for a connected network's last address to everybody in it",
        directed_broadcast,
    )
    .examples(&["set interface ip directed-broadcast local0 disable"])
    .doc("Off at first, as RFC 2644 wants it: such packets are dropped."),
    Command::new("enable ip4 interface <interface>", "Let IPv4 run on an interface", enable)
        .examples(&["enable ip4 interface local0"])
        .doc("IPv4 also runs on each interface with an IPv4 address."),
    Command::new(
        "disable ip4 interface <interface>",
        "Let IPv4 run on an interface only while it has an address",
        disable,
    )
    .examples(&["disable ip4 interface local0"]),
];

fn interface(args: &Args) -> Result<SwIfIndex, CliError> {
    Ok(args.get::<InterfaceArg>("interface")?.0)
}

/// Points at the address for whatever is wrong with it.
pub fn of_address(error: Ip4Error) -> CliError {
    let nearest = match &error {
        Ip4Error::NotAHost { nearest, .. } | Ip4Error::NoAddress { nearest, .. } => {
            nearest.map(|n| n.to_string())
        }
        Ip4Error::Duplicate { .. } | Ip4Error::Overlap { .. } => None,
        _ => return error.into(),
    };
    CliError::argument("address", error.to_string()).nearest(nearest)
}

fn table(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (ip4, interface, table) = (control.get::<Ip4>()?, interface(args)?, args.get::<u32>("table")?);
    ip4.set_table(interface, table).map_err(|e| match e {
        Ip4Error::Fib(e) => CliError::argument("table", e.to_string()),
        Ip4Error::HasAddresses { .. } => CliError::argument("interface", e.to_string()),
        e => e.into(),
    })?;
    Ok(Output::none())
}

fn directed_broadcast(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Ip4>()?.set_directed_broadcast(interface(args)?, args.get::<Toggle>("state")?.is_on())?;
    Ok(Output::none())
}

fn enable(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Ip4>()?.enable(interface(args)?, true)?;
    Ok(Output::none())
}

fn disable(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Ip4>()?.enable(interface(args)?, false)?;
    Ok(Output::none())
}
