//! Commands: `show lacp`.

use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::Lacp;
use crate::show::{Brief, Details, rows};

/// Commands of this crate.
pub static COMMANDS: &[Command] =
    &[Command::new("show lacp [<interface>] [details]", "Show what both ends of bonds say of their links", show)
        .examples(&["show lacp", "show lacp details"])
        .doc(
            "Each bit of a state is 1 or 0: the other end was not heard for some time (exp) or never (def), it sends (dis) \
             and takes (col) frames, the link is part of the right bond (syn), may be one of several (agg), PDUs are wanted \
             each second (tim), and are sent unasked (act).",
        )];

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (lacp, interfaces) = (control.get::<Lacp>()?, control.get::<Interfaces>()?);
    let only = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let rows = rows(&lacp, &interfaces, only, control.graph()?.clock().now());
    Ok(if args.has("details") { Output::view(Details(rows)) } else { Output::view(Brief(rows)) })
}
