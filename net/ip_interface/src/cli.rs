//! Commands.

use shoal_interface::{InterfaceArg, SwIfIndex};
use shoal_ip::of_address;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::IpPrefix;

use crate::set_unnumbered;

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface ip address [del] <interface> {<address:ip-prefix> | all}",
        "Give an interface an IPv4 or IPv6 address, or take one or all away",
        address,
    )
    .examples(&[
        "set interface ip address local0 192.0.2.1/24",
        "set interface ip address local0 2001:db8::1/64",
        "set int ip address del local0 all",
    ])
    .doc(
        "The address brings a connected network and a route to the router itself; an IPv4 address also drops for the \
         network's first and last address, an IPv6 address IPv6 on the interface with a link-local address. Networks \
         of two interfaces in one table must not overlap.",
    ),
    Command::new(
        "set interface unnumbered [del] <interface> [use <lender:interface>]",
        "Let an interface speak from the addresses of another, IPv4 and IPv6",
        unnumbered,
    )
    .examples(&["set interface unnumbered tap0 use loop0", "set interface unnumbered del tap0"])
    .doc(
        "The interface needs no network of its own: hosts behind it are reached by routes that name it, such as \
         `ip route add 10.0.0.5/32 via tap0'. It keeps a link-local IPv6 address of its own.",
    ),
];

fn interface(args: &Args) -> Result<SwIfIndex, CliError> {
    Ok(args.get::<InterfaceArg>("interface")?.0)
}

fn address(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (ip4, ip6, interface) = (control.get::<Ip4>()?, control.get::<Ip6>()?, interface(args)?);
    let address = args.text("address").and_then(|text| text.parse::<IpPrefix>().ok());
    match (address, args.has("del")) {
        (None, false) => return Err(CliError::argument("all", "all addresses can be deleted, not added")),
        (None, true) => {
            ip4.del_all(interface)?;
            ip6.del_all(interface)?;
        }
        (Some(IpPrefix::Ip4(address)), true) => {
            ip4.del_address(interface, address).map_err(of_address)?;
        }
        (Some(IpPrefix::Ip4(address)), false) => {
            ip4.add_address(interface, address).map_err(of_address)?;
        }
        (Some(IpPrefix::Ip6(address)), true) => ip6.del_address(interface, address).map_err(of_address)?,
        (Some(IpPrefix::Ip6(address)), false) => ip6.add_address(interface, address).map_err(of_address)?,
    }
    Ok(Output::none())
}

fn unnumbered(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (ip4, ip6, interface) = (control.get::<Ip4>()?, control.get::<Ip6>()?, interface(args)?);
    if args.has("del") {
        set_unnumbered(&ip4, &ip6, interface, None).map_err(|e| CliError::failed(e.to_string()))?;
        return Ok(Output::none());
    }
    let lender = args.opt::<InterfaceArg>("lender")?.ok_or_else(|| {
        CliError::argument("lender", "whose addresses it is to use: `use' and an interface")
    })?;
    let set = set_unnumbered(&ip4, &ip6, interface, Some(lender.0));
    set.map_err(|e| CliError::argument("lender", e.to_string()))?;
    Ok(Output::none())
}
