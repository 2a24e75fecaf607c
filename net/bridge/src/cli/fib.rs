//! `l2fib add`, `l2fib del`, `l2fib flush-mac`, `clear l2fib`.

use shoal_interface::{InterfaceArg, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::{domain_of, refused};
use crate::{Bridges, Provision};

pub(super) const ADD: Command = Command::new(
    "l2fib add <mac> <domain:bridge-domain> {filter | <interface> [static | bvi]}",
    "Say where a station of a bridge domain is, or that its frames are dropped",
    add,
)
.doc("It is not forgotten when it is silent. One that is not `static` may move.");

pub(super) const DEL: Command = Command::new(
    "l2fib del <mac> <domain:bridge-domain>",
    "Forget where a station of a bridge domain is",
    del,
);

pub(super) const FLUSH_ALL: Command =
    Command::new("l2fib flush-mac all", "Forget what was learned of all bridge domains", flush_all)
        .examples(&["l2fib flush-mac all"]);

pub(super) const FLUSH_INTERFACE: Command = Command::new(
    "l2fib flush-mac interface <interface>",
    "Forget what was learned of an interface",
    flush_interface,
);

pub(super) const FLUSH_DOMAIN: Command = Command::new(
    "l2fib flush-mac bridge-domain <domain:bridge-domain>",
    "Forget what was learned of a bridge domain",
    flush_domain,
);

pub(super) const CLEAR: Command =
    Command::new("clear l2fib", "Forget all stations, those that were entered by commands too", clear)
        .examples(&["clear l2fib"]);

fn add(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (mac, number) = (args.get("mac")?, domain_of(args)?);
    let how = match (args.has("filter"), args.has("static"), args.has("bvi")) {
        (true, ..) => Provision::Filter,
        (_, true, _) => Provision::Static,
        (.., true) => Provision::Bvi,
        _ => Provision::Movable,
    };
    let interface = args.opt::<InterfaceArg>("interface")?.map_or(SwIfIndex::NONE, |arg| arg.0);
    control.get::<Bridges>()?.provision(mac, number, interface, how).map_err(refused)?;
    Ok(Output::none())
}

fn del(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (mac, number) = (args.get("mac")?, domain_of(args)?);
    control.get::<Bridges>()?.forget(mac, number).map_err(refused)?;
    Ok(Output::none())
}

fn flush_all(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.get::<Bridges>()?.flush_all();
    Ok(Output::none())
}

fn flush_interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    control.get::<Bridges>()?.flush_interface(interface);
    Ok(Output::none())
}

fn flush_domain(control: &Control, args: &Args) -> Result<Output, CliError> {
    let number = domain_of(args)?;
    control.get::<Bridges>()?.flush_domain(number).map_err(refused)?;
    Ok(Output::none())
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.get::<Bridges>()?.clear_macs();
    Ok(Output::none())
}
