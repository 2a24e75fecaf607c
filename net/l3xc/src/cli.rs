//! Commands: `l3xc`, `show l3xc`.

use std::fmt;

use serde::Serialize;
use shoal_adj::Family;
use shoal_fib::{Fib, TableArg, ViaArgs, via};
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{L3xc, L3xcError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        concat!("l3xc {add | del} <interface> [ip4 | ip6] ", shoal_fib::via_syntax!()),
        "Give all packets of an interface the same paths, or route them again",
        l3xc,
    )
    .doc("Paths are those of `ip route`; `add` replaces those that are there. The family is that of the next hop, or the one \
          that is named."),
    Command::new("show l3xc", "Show cross-connects of routed interfaces", show).examples(&["show l3xc"]),
];

fn family_of(args: &Args) -> Family {
    let six = args.items().iter().any(|item| args.text_of(item).contains(':'));
    if args.has("ip6") || six && !args.has("ip4") { Family::Ip6 } else { Family::Ip4 }
}

fn l3xc(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (l3xc, fib) = (control.get::<L3xc>()?, control.get::<Fib>()?);
    let InterfaceArg(interface) = args.get("interface")?;
    let family = family_of(args);
    let paths = ViaArgs { fib: &fib, family, table: TableArg(0) }.paths(args)?;
    let done = if paths.is_empty() {
        Err(L3xcError::NoPaths)
    } else if args.has("del") {
        l3xc.remove(interface, family)
    } else {
        l3xc.set(interface, family, &paths)
    };
    done.map_err(|e| CliError::argument("interface", e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    interface: String,
    family: &'static str,
    paths: String,
    adjacency: u32,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (l3xc, fib) = (control.get::<L3xc>()?, control.get::<Fib>()?);
    let interfaces = control.get::<Interfaces>()?;
    let row = |info: crate::L3xcInfo| Row {
        interface: interfaces.name(info.interface).unwrap_or_default(),
        family: info.family.name(),
        paths: via(&fib, &interfaces, (info.family, 0), &info.paths).trim_start().to_owned(),
        adjacency: info.adj,
    };
    Ok(Output::view(View(l3xc.list().into_iter().map(row).collect())))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (n, Row { interface, family, paths, adjacency }) in self.0.iter().enumerate() {
            writeln!(f, "l3xc:[{n}]: {interface} {family}")?;
            writeln!(f, "  {paths}")?;
            writeln!(f, "  dpo-idx {adjacency}")?;
        }
        Ok(())
    }
}
