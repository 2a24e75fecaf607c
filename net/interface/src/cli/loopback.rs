//! Loopbacks: create and delete.

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{InterfaceArg, Interfaces};

pub(super) const CREATE: Command = Command::new(
    "create loopback interface [mac <mac>] [instance <instance:u32>]",
    "Create an interface without a wire; tells its name",
    create,
)
.examples(&["create loopback interface", "create loopback interface mac 02:fe:00:00:00:01 instance 7"]);

pub(super) const CREATE_OLD: Command = Command::new(
    "loopback create-interface [mac <mac>] [instance <instance:u32>]",
    "Older form of `create loopback interface'",
    create,
)
.form_of("create loopback interface")
.examples(&["loopback create-interface"]);

pub(super) const DELETE: Command =
    Command::new("delete loopback interface intfc <interface>", "Delete a loopback", delete);

pub(super) const DELETE_OLD: Command = Command::new(
    "loopback delete-interface intfc <interface>",
    "Older form of `delete loopback interface'",
    delete,
)
.form_of("delete loopback interface");

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let index = interfaces.create_loopback(args.opt("mac")?, args.opt("instance")?)?;
    Ok(Output::text(format!("{}\n", interfaces.name(index)?)))
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.delete_loopback(args.get::<InterfaceArg>("interface")?.0)?;
    Ok(Output::none())
}
