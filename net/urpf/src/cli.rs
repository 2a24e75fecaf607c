//! Commands: `set urpf`, `show urpf`.

use std::fmt;

use serde::Serialize;
use shoal_fib::{Family, Fib, TableArg};
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Direction, Mode, Setting, Urpf};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set urpf {ip4 | ip6} {rx | tx} {off | strict | loose} [table <table>] <interface>",
        "Check whether packets come from where their source is",
        set,
    )
    .examples(&["set urpf ip4 rx strict local0", "set urpf ip6 rx loose table 0 local0", "set urpf ip4 tx off local0"])
    .doc(
        "`loose` asks that the source is reached by any interface, `strict` that it is reached by the one the packet \
         came in by (`rx`), or not by the one it goes out by (`tx`). Sources are looked up in the table of the \
         interface, or in `table`. A default route is a way like any other; of several ways one is enough.",
    ),
    Command::new("show urpf [<interface>]", "Show where sources are checked", show)
        .examples(&["show urpf", "show urpf local0"]),
];

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (urpf, fib) = (control.get::<Urpf>()?, control.get::<Fib>()?);
    let InterfaceArg(interface) = args.get("interface")?;
    let family = if args.has("ip6") { Family::Ip6 } else { Family::Ip4 };
    let direction = if args.has("tx") { Direction::Tx } else { Direction::Rx };
    let mode = match (args.has("strict"), args.has("loose")) {
        (true, _) => Mode::Strict,
        (_, true) => Mode::Loose,
        _ => Mode::Off,
    };
    let table = args.opt::<TableArg>("table")?.map(|t| t.of(&fib, family, "table")).transpose()?;
    urpf.set(Setting { interface, family, direction, mode, table })
        .map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    interface: String,
    family: &'static str,
    direction: String,
    mode: String,
    /// The table's id; none: the interface's own.
    table: Option<u32>,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (urpf, interfaces, fib) =
        (control.get::<Urpf>()?, control.get::<Interfaces>()?, control.get::<Fib>()?);
    let only = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let settings = urpf.settings().into_iter().filter(|s| only.is_none_or(|only| only == s.interface));
    let row = |s: Setting| Row {
        interface: interfaces.name(s.interface).unwrap_or_default(),
        family: s.family.name(),
        direction: s.direction.to_string(),
        mode: s.mode.to_string(),
        table: s.table.and_then(|table| fib.id_of(s.family, table).ok()),
    };
    Ok(Output::view(View(settings.map(row).collect())))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = "";
        for Row { interface, family, direction, mode, table } in &self.0 {
            if interface != last {
                writeln!(f, "{interface}")?;
                last = interface;
            }
            let table = table.map_or_else(|| "its own table".into(), |id| format!("table {id}"));
            writeln!(f, "  {family} {direction} {mode:<6} {table}")?;
        }
        Ok(())
    }
}
