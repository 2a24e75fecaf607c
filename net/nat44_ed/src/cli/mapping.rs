//! Static mappings.

use std::net::Ipv4Addr;

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{Endpoint, nat, protocol, refused};
use crate::{Balanced, Spec};
use shoal_nat44::mapping::{External, TwiceNat};

pub(super) const STATIC: Command = Command::new(
    "nat44 add static mapping [tcp | udp | icmp] local <local:ip4-address> [<local-port:u16>] external \
     {<external:ip4-address> | <interface>} [<external-port:u16>] [vrf <vrf:u32>] [twice-nat | self-twice-nat] \
     [out2in-only] [exact <exact:ip4-address>] [del]",
    "Lead an outside address, or one of its ports, to a host",
    mapping,
)
.examples(&[
    "nat44 add static mapping tcp local 10.0.0.5 80 external 192.0.2.1 8080",
    "nat44 add static mapping local 10.0.0.6 external 192.0.2.2",
])
.doc(
    "Without a protocol all of an address leads to the host. `twice-nat` hides the outside host behind an address of the \
     twice-nat pool, `self-twice-nat` only if it is the inside host itself, `exact` says which address that is. With \
     `out2in-only` sessions begin outside only.",
);

pub(super) const IDENTITY: Command = Command::new(
    "nat44 add identity mapping {<address:ip4-address> | external <interface>} \
     [tcp <tcp:u16> | udp <udp:u16> | icmp <icmp:u16>] [vrf <vrf:u32>] [del]",
    "Keep an address, or one of its ports, as it is",
    identity,
)
.examples(&["nat44 add identity mapping 10.0.0.8", "nat44 add identity mapping 10.0.0.8 tcp 22"]);

pub(super) const BALANCED: Command = Command::new(
    "nat44 add load-balancing static mapping protocol {tcp | udp} external <external:word> \
     [local <local:word> probability <probability:u8> [vrf <vrf:u32>]] ... [affinity <affinity:u32>] \
     [twice-nat | self-twice-nat] [out2in-only] [del]",
    "Lead an outside port to one of several hosts",
    balanced,
)
.examples(&[
    "nat44 add load-balancing static mapping protocol tcp external 192.0.2.1:443 local 10.0.0.5:443 probability 60 \
     local 10.0.0.6:443 probability 40 affinity 30",
])
.doc("Hosts are chosen at random, by their probabilities; a client keeps its host for `affinity` seconds.");

pub(super) const BACK_END: Command = Command::new(
    "nat44 add load-balancing back-end protocol {tcp | udp} external <external:word> local <local:word> \
     [probability <probability:u8>] [vrf <vrf:u32>] [del]",
    "Add a host to those an outside port leads to",
    back_end,
);

fn twice(args: &Args) -> TwiceNat {
    match (args.has("twice-nat"), args.has("self-twice-nat")) {
        (true, _) => TwiceNat::Always,
        (_, true) => TwiceNat::OfItself,
        _ => TwiceNat::No,
    }
}

fn external(args: &Args, name: &str) -> Result<External, CliError> {
    if let Some(InterfaceArg(interface)) = args.opt("interface")? {
        return Ok(External::Interface(interface));
    }
    Ok(External::Address(args.get::<Ipv4Addr>(name)?.to_bits()))
}

fn mapping(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let spec = Spec {
        local: args.get("local")?,
        local_port: args.or("local-port", 0)?,
        external: external(args, "external")?,
        external_port: args.or("external-port", 0)?,
        protocol: protocol(args),
        vrf: args.opt("vrf")?,
        twice: twice(args),
        out2in_only: args.has("out2in-only"),
        identity: false,
        pool_address: args.opt("exact")?,
        tag: String::new(),
    };
    let done = if args.has("del") { nat.del_mapping(&spec) } else { nat.add_mapping(spec) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn identity(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let port = ["tcp", "udp", "icmp"].into_iter().find(|name| args.has(name));
    let port = port.map_or(Ok(0), |name| args.get(name))?;
    let spec = Spec {
        local: args.or("address", Ipv4Addr::UNSPECIFIED)?,
        local_port: port,
        external: external(args, "address")?,
        external_port: port,
        protocol: protocol(args),
        vrf: args.opt("vrf")?,
        twice: TwiceNat::No,
        out2in_only: false,
        identity: true,
        pool_address: None,
        tag: String::new(),
    };
    let done = if args.has("del") { nat.del_mapping(&spec) } else { nat.add_mapping(spec) };
    done.map_err(refused)?;
    Ok(Output::none())
}

fn balanced(control: &Control, args: &Args) -> Result<Output, CliError> {
    let nat = nat(control)?;
    let (Endpoint(external, port), protocol) = (args.get("external")?, protocol(args));
    if args.has("del") {
        nat.del_balanced((external, port, protocol)).map_err(refused)?;
        return Ok(Output::none());
    }
    let mut locals = Vec::new();
    for local in args.groups("local") {
        let Endpoint(address, port) = local.get("local")?;
        locals.push((address, port, local.get("probability")?, local.or("vrf", 0)?));
    }
    let asked = Balanced {
        external,
        port,
        protocol,
        locals,
        twice: twice(args),
        out2in_only: args.has("out2in-only"),
        affinity: args.or("affinity", 0)?,
        tag: String::new(),
    };
    nat.add_balanced(asked).map_err(refused)?;
    Ok(Output::none())
}

fn back_end(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (Endpoint(external, port), Endpoint(host, host_port)) = (args.get("external")?, args.get("local")?);
    let host = (host, host_port, args.or("probability", 0)?, args.or("vrf", 0)?);
    nat(control)?.set_back_end((external, port, protocol(args)), host, !args.has("del")).map_err(refused)?;
    Ok(Output::none())
}
