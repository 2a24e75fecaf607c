//! Commands. Addresses are given by the command for both families, which is in `net/ip_interface`.

use shoal_interface::{InterfaceArg, SwIfIndex};
use shoal_ip::{Unreachables, of_table};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output, Toggle};

use crate::Ip4;

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
    Command::new(
        "set ip unreachables <state:on-off>",
        "Tell senders that there is no route for their packets",
        unreachables,
    )
    .examples(&["set ip unreachables on"])
    .doc(
        "ICMP errors of both families about packets without a route, and about those whose neighbour does not answer, as \
         RFC 1812 wants them. Off at first, as in VPP: such packets are dropped and counted. Routes `via unreachable` and \
         `via prohibit` tell the sender anyway.",
    ),
];

fn interface(args: &Args) -> Result<SwIfIndex, CliError> {
    Ok(args.get::<InterfaceArg>("interface")?.0)
}

fn table(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (ip4, interface, table) = (control.get::<Ip4>()?, interface(args)?, args.get::<u32>("table")?);
    ip4.set_table(interface, table).map_err(of_table)?;
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

fn unreachables(control: &Control, args: &Args) -> Result<Output, CliError> {
    Unreachables::of(control).send(args.get::<Toggle>("state")?.is_on());
    Ok(Output::none())
}

fn disable(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Ip4>()?.enable(interface(args)?, false)?;
    Ok(Output::none())
}
