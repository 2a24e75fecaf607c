//! Static mappings.

use std::net::Ipv4Addr;

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_nat44::mapping::External;

use super::{nat, protocol, refused};
use crate::Spec;

pub(super) const STATIC: Command = Command::new(
    "nat44 ei add static mapping [tcp | udp | icmp] local <local:ip4-address> [<local-port:u16>] external \
     {<external:ip4-address> | <interface>} [<external-port:u16>] [vrf <vrf:u32>] [del]",
    "Lead an outside address, or one of its ports, to a host",
    mapping,
)
.examples(&[
    "nat44 ei add static mapping tcp local 10.0.0.5 80 external 192.0.2.1 8080",
    "nat44 ei add static mapping local 10.0.0.6 external 192.0.2.2",
])
.doc("Without a protocol all of an address leads to the host.");

pub(super) const IDENTITY: Command = Command::new(
    "nat44 ei add identity mapping {<address:ip4-address> | external <interface>} \
     [tcp <tcp:u16> | udp <udp:u16> | icmp <icmp:u16>] [vrf <vrf:u32>] [del]",
    "Keep an address, or one of its ports, as it is",
    identity,
)
.examples(&["nat44 ei add identity mapping 10.0.0.8", "nat44 ei add identity mapping 10.0.0.8 tcp 22"]);

fn external(args: &Args, name: &str) -> Result<External, CliError> {
    if let Some(InterfaceArg(interface)) = args.opt("interface")? {
        return Ok(External::Interface(interface));
    }
    Ok(External::Address(args.get::<Ipv4Addr>(name)?.to_bits()))
}

fn set(control: &Control, args: &Args, spec: Spec) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let done = if args.has("del") { nat.del_mapping(&spec) } else { nat.add_mapping(spec) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn mapping(control: &Control, args: &Args) -> Result<Output, CliError> {
    let spec = Spec {
        local: args.get("local")?,
        local_port: args.or("local-port", 0)?,
        external: external(args, "external")?,
        external_port: args.or("external-port", 0)?,
        protocol: protocol(args),
        vrf: args.opt("vrf")?,
        identity: false,
        tag: String::new(),
    };
    set(control, args, spec)
}

fn identity(control: &Control, args: &Args) -> Result<Output, CliError> {
    let port = ["tcp", "udp", "icmp"].into_iter().find(|name| args.has(name));
    let port = port.map_or(Ok(0), |name| args.get(name))?;
    let spec = Spec {
        local: args.or("address", Ipv4Addr::UNSPECIFIED)?,
        local_port: port,
        external: external(args, "address")?,
        external_port: port,
        protocol: protocol(args),
        vrf: args.opt("vrf")?,
        identity: true,
        tag: String::new(),
    };
    set(control, args, spec)
}
