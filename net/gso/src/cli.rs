//! Commands: `set interface feature gso`, `show interface gso`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Cutting, Gso};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface feature gso <interface> [enable | disable]",
        "Cut large packets in software before they leave by an interface",
        set,
    )
    .examples(&["set interface feature gso local0 enable", "set interface feature gso local0 disable"])
    .doc(
        "Nothing is cut where the device takes large packets (`show interface gso`). Drivers whose device does not cut as \
         they send, without this feature: it is for interfaces that would refuse, such as a packet generator's.",
    ),
    Command::new("show interface gso [<interface>]", "Show who cuts large packets and completes checksums", show)
        .examples(&["show interface gso", "show interface gso local0"]),
];

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (gso, InterfaceArg(interface)) = (control.get::<Gso>()?, args.get("interface")?);
    let cutting = if args.has("disable") { Cutting::Off } else { Cutting::On };
    gso.set(interface, cutting).map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    interface: String,
    /// Whether the feature is enabled.
    gso: bool,
    /// Whether the device completes checksums.
    device_checksum: bool,
    /// Whether the device takes large packets.
    device_gso: bool,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (gso, interfaces) = (control.get::<Gso>()?, control.get::<Interfaces>()?);
    let indices = match args.opt::<InterfaceArg>("interface")? {
        Some(InterfaceArg(index)) => vec![index],
        None => interfaces.indices(),
    };
    let row = |index| {
        let (device_checksum, device_gso) = gso.device(index).map_err(|e| CliError::failed(e.to_string()))?;
        let gso = gso.get(index) == Cutting::On;
        Ok(Row { interface: interfaces.name(index)?, gso, device_checksum, device_gso })
    };
    Ok(Output::view(View(indices.into_iter().map(row).collect::<Result<_, CliError>>()?)))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let word = |on| if on { "on" } else { "off" };
        writeln!(f, "{:<32}{:<10}{:<17}device gso", "Interface", "feature", "device checksum")?;
        self.0.iter().try_for_each(|row| {
            let (gso, checksum) = (word(row.gso), word(row.device_checksum));
            writeln!(f, "{:<32}{gso:<10}{checksum:<17}{}", row.interface, word(row.device_gso))
        })
    }
}
