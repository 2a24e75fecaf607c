//! Commands: `set interface span`, `show interface span`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Level, MirrorDirections, Span, SpanError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface span <interface> [l2] [disable] [destination <destination:interface>] [both | rx | tx]",
        "Mirror what an interface receives, sends, or both, to another one",
        set,
    )
    .doc(
        "Frames are copied at the device, or with `l2` where a bridge or a cross-connect gets them from the interface and sends \
         them there. Without a direction it is `both`. An interface may be mirrored to several. `disable` ends all mirrors of that level, or \
         the one to the destination that is named.",
    ),
    Command::new("show interface span", "Show which interfaces are mirrored to which", show)
        .examples(&["show interface span"]),
];

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (span, InterfaceArg(source)) = (control.get::<Span>()?, args.get("interface")?);
    let level = if args.has("l2") { Level::L2 } else { Level::Device };
    let ways = match () {
        () if args.has("disable") => MirrorDirections::NONE,
        () if args.has("rx") => MirrorDirections::RX,
        () if args.has("tx") => MirrorDirections::TX,
        () => MirrorDirections::BOTH,
    };
    let done = match args.opt::<InterfaceArg>("destination")? {
        Some(InterfaceArg(destination)) => span.set(level, source, destination, ways),
        None if ways == MirrorDirections::NONE => span.clear(level, source),
        None => Err(SpanError::NoDestination),
    };
    done.map_err(|e| CliError::argument("interface", e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    source: String,
    destination: String,
    device: &'static str,
    l2: &'static str,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (span, interfaces) = (control.get::<Span>()?, control.get::<Interfaces>()?);
    let name = |index| interfaces.name(index).unwrap_or_default();
    let row = |mirror: crate::Mirror| Row {
        source: name(mirror.source),
        destination: name(mirror.destination),
        device: mirror.device.name(),
        l2: mirror.l2.name(),
    };
    Ok(Output::view(View(span.list().into_iter().map(row).collect())))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut last = None;
        for Row { source, destination, device, l2 } in &self.0 {
            if last.is_none() {
                writeln!(f, "{:<32} {:<32}  {:>6}   {:>6}", "Source", "Destination", "Device", "L2")?;
            }
            let first = if last == Some(source) { "" } else { source };
            writeln!(f, "{first:<32} {destination:<32} ({device:>6}) ({l2:>6})")?;
            last = Some(source);
        }
        Ok(())
    }
}
