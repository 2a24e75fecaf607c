//! Commands: `set npt66 binding`, `show npt66`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Binding, Npt66, Npt66Error};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set npt66 binding interface <interface> internal <internal:ip6-prefix> external <external:ip6-prefix> [del]",
        "Have an IPv6 prefix stand for another outside of an interface",
        set,
    )
    .examples(&["set npt66 binding interface local0 internal fd01:203:405::/48 external 2001:db8:1::/48"])
    .doc(
        "Prefixes have up to 64 bits; the shorter one is made as long as the longer one with zeros. One word of the address \
         changes so that no checksum does (RFC 6296).",
    ),
    Command::new("show npt66", "Show which IPv6 prefix stands for which", show).examples(&["show npt66"]),
];

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (npt, InterfaceArg(interface)) = (control.get::<Npt66>()?, args.get("interface")?);
    let binding = Binding { internal: args.get("internal")?, external: args.get("external")? };
    let done =
        if args.has("del") { npt.remove(interface, Some(binding)) } else { npt.add(interface, binding) };
    done.map_err(|e| match &e {
        Npt66Error::TooLong(prefix) => {
            let which = if *prefix == binding.internal { "internal" } else { "external" };
            let nearest = format!("{}/64", prefix.addr());
            CliError::argument(which, e.to_string()).nearest(Some(nearest))
        }
        _ => CliError::argument("interface", e.to_string()),
    })?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct Row {
    index: u32,
    interface: String,
    internal: String,
    external: String,
}

#[derive(Serialize)]
#[serde(transparent)]
struct View(Vec<Row>);

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let row = |(interface, index, Binding { internal, external })| Row {
        index,
        interface: interfaces.name(interface).unwrap_or_default(),
        internal: internal.to_string(),
        external: external.to_string(),
    };
    let rows = control.get::<Npt66>()?.list().into_iter().map(row).collect();
    Ok(Output::view(View(rows)))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for Row { index, interface, internal, external } in &self.0 {
            writeln!(f, "[{index}] {interface} internal: {internal} external: {external}")?;
        }
        Ok(())
    }
}
