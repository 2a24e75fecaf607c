//! Commands.

use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::show::Shown;
use crate::{CreateVhost, Detail, Error, Role, Vhosts};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "create vhost-user socket <socket:path> [server] [feature-mask <mask:word>] [hwaddr <mac>] \
         [renumber <number:u32>] [gso] [packed]",
        "Create an interface to a virtual machine",
        create,
    )
    .examples(&[
        "create vhost-user socket /run/shoal/vm1.sock server",
        "create vhost-user socket vm2.sock server hwaddr 02:fe:00:00:00:01 renumber 7",
        "create vhost-user socket /run/vm3.sock feature-mask 0x100000000",
    ])
    .doc(
        "Prints the new interface's name. With `server` the router listens on the socket, else it connects, again and \
         again; a name without a slash lies in the runtime directory. What is not in the mask is not offered to the \
         guest. `gso` is always on, and `packed` not offered. The link comes up when the guest's driver is ready.",
    ),
    Command::new(
        "delete vhost-user {<interface> | sw_if_index <index:u32>}",
        "Delete an interface to a virtual machine",
        delete,
    )
    .examples(&["delete vhost-user VirtualEthernet0/0/0", "delete vhost-user sw_if_index 3"]),
    Command::new(
        "show vhost-user [<interface>] [descriptors] [verbose]",
        "Show interfaces to virtual machines",
        show,
    )
    .examples(&["show vhost-user", "show vhost-user VirtualEthernet0/0/0 descriptors"]),
];

/// A set of features as an operator writes it.
fn mask(text: &str) -> Result<u64, CliError> {
    let digits = text.strip_prefix("0x").unwrap_or(text);
    let wrong =
        || CliError::argument("mask", format!("`{text}' is no hexadecimal number of up to 16 digits"));
    u64::from_str_radix(digits, 16).map_err(|_| wrong())
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("packed") {
        return Err(Error::Packed.into());
    }
    let create = CreateVhost {
        socket: args.get("socket")?,
        role: if args.has("server") { Role::Server } else { Role::Client },
        mask: args.opt::<String>("mask")?.map_or(Ok(u64::MAX), |text| mask(&text))?,
        mac: args.opt("mac")?,
        number: args.opt("number")?,
        gso: args.has("gso"),
    };
    let index = control.get::<Vhosts>()?.create(&create)?;
    Ok(Output::text(format!("{}\n", control.get::<Interfaces>()?.name(index)?)))
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let index =
        InterfaceArg::optional(args)?.ok_or_else(|| CliError::argument("interface", "which interface?"))?;
    control.get::<Vhosts>()?.delete(index)?;
    Ok(Output::none())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let detail = if args.has("descriptors") { Detail::Descriptors } else { Detail::Brief };
    let all = control.get::<Vhosts>()?.list(InterfaceArg::optional(args)?, detail)?;
    let interfaces = control.get::<Interfaces>()?;
    let queues = all.iter().map(|info| interfaces.queues(info.index).unwrap_or_default()).collect();
    let sending = all.iter().map(|info| interfaces.tx_queues(info.index).unwrap_or_default()).collect();
    Ok(Output::view(Shown::new(all, queues, sending)))
}
