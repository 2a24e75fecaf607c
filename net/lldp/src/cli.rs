//! Commands: `set lldp`, `set interface lldp`, `show lldp`.

use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::show::View;
use crate::{Lldp, LldpError, OnInterface, Settings};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set lldp [system-name <system-name:word>] [tx-hold <tx-hold:u32>] [tx-interval <tx-interval:u32>]",
        "Say who this router is on links with LLDP, and how often",
        set,
    )
    .doc(
        "PDUs are sent every `tx-interval` seconds, 30 at first, and hold for `tx-hold` intervals, 4 at first. The name is \
         the machine's unless it is set.",
    )
    .examples(&["set lldp system-name edge1 tx-hold 4 tx-interval 30"]),
    Command::new(
        "set interface lldp <interface> [port-desc <port-desc:word>] [mgmt-ip4 <mgmt-ip4:ip4-address>] \
         [mgmt-ip6 <mgmt-ip6:ip6-address>] [mgmt-oid <mgmt-oid:word>] [disable]",
        "Speak LLDP on an interface, or no longer",
        set_interface,
    )
    .doc("What is not named is not announced; asking again replaces all previous settings."),
    Command::new("show lldp [detail]", "Show who is at the other end of links", show)
        .examples(&["show lldp", "show lldp detail"]),
];

fn refused(error: LldpError) -> CliError {
    match error {
        LldpError::Range { what, value, least, most } => {
            let nearest = value.clamp(least, most).to_string();
            CliError::argument(what, error.to_string()).nearest(Some(nearest))
        }
        other => CliError::failed(other.to_string()),
    }
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let lldp = control.get::<Lldp>()?;
    let old = lldp.settings();
    let new = Settings {
        system_name: args.text("system-name").map_or(old.system_name, str::to_owned),
        tx_hold: args.or("tx-hold", old.tx_hold)?,
        tx_interval: args.or("tx-interval", old.tx_interval)?,
    };
    lldp.set(new).map_err(refused)?;
    Ok(Output::none())
}

fn set_interface(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (lldp, InterfaceArg(index)) = (control.get::<Lldp>()?, args.get("interface")?);
    if args.has("disable") {
        lldp.disable(index).map_err(refused)?;
        return Ok(Output::none());
    }
    let on = OnInterface {
        description: args.text("port-desc").unwrap_or_default().to_owned(),
        management_ip4: args.opt("mgmt-ip4")?,
        management_ip6: args.opt("mgmt-ip6")?,
        management_oid: args.text("mgmt-oid").unwrap_or_default().as_bytes().to_vec(),
    };
    lldp.enable(index, on).map_err(refused)?;
    Ok(Output::none())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (lldp, interfaces) = (control.get::<Lldp>()?, control.get::<Interfaces>()?);
    Ok(Output::view(View::new(&lldp, &interfaces, control.graph()?.clock().now(), args.has("detail"))))
}
