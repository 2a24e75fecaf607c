//! Commands.

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::proto::Mode;
use crate::show::Shown;
use crate::{BUFFER_SIZE, CreateMemif, Detail, Error, Memifs, RING_SIZE, Role};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "create memif socket id <id:u32> {filename <filename:word> | del}",
        "Create a socket by which memifs find their peers",
        create_socket,
    )
    .examples(&[
        "create memif socket id 1 filename /run/shoal/memif-1.sock",
        "create memif socket id 2 filename @containers",
        "create memif socket id 2 del",
    ])
    .doc(
        "A name without a slash lies in the runtime directory; one that begins with `@` is an abstract one, without a \
         file. Socket 0 is always there: `memif.sock` in the runtime directory. All interfaces of a socket are masters, \
         which listen there, or all are slaves, which connect.",
    ),
    Command::new("delete memif socket id <id:u32>", "Delete a socket of memifs", delete_socket)
        .examples(&["delete memif socket id 1"]),
    Command::new(
        "create interface memif [id <id:u32>] [socket-id <socket:u32>] [master | slave] [ring-size <ring:u32>] \
         [buffer-size <buffer:u32>] [hw-addr <mac>] [secret <secret:word>] [rx-queues <rx:u32>] \
         [tx-queues <tx:u32>] [mode {ethernet | ip | punt-inject}] [no-zero-copy] [use-dma]",
        "Create an interface to another process, through shared memory",
        create,
    )
    .examples(&[
        "create interface memif id 0 master",
        "create interface memif id 3 socket-id 1 slave ring-size 2048 rx-queues 2 tx-queues 2",
        "create interface memif id 4 socket-id 2 master mode ip secret swordfish",
    ])
    .doc(
        "It is called `memifSOCKET/ID`. The peer's must have the same id, mode and secret, and the other role: `slave` \
         unless `master` is given. Rings, buffers and numbers of queues are the slave's to choose: 1024 entries, 2048 \
         bytes and one queue each way by default. Packets are always copied, so `no-zero-copy` and `use-dma` \
         change nothing.",
    ),
    Command::new(
        "delete interface memif {<interface> | sw_if_index <index:u32>}",
        "Delete a memif",
        delete,
    )
    .examples(&["delete interface memif memif0/0", "delete interface memif sw_if_index 3"]),
    Command::new("show memif [<interface>] [descriptors]", "Show memifs and their sockets", show)
        .examples(&["show memif", "show memif memif0/0 descriptors"]),
];

fn create_socket(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (memifs, id) = (control.get::<Memifs>()?, args.get("id")?);
    match args.opt::<String>("filename")? {
        Some(filename) => drop(memifs.add_socket(Some(id), &filename)?),
        None => memifs.delete_socket(id)?,
    }
    Ok(Output::none())
}

fn delete_socket(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Memifs>()?.delete_socket(args.get("id")?)?;
    Ok(Output::none())
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("punt-inject") {
        return Err(Error::PuntInject.into());
    }
    let buffer: u32 = args.opt("buffer")?.unwrap_or(BUFFER_SIZE.into());
    let (what, rule) = ("buffer-size", "from 64 to 65535");
    let too_large = |_| Error::Range { what, value: buffer.into(), rule, nearest: u16::MAX.into() };
    let create = CreateMemif {
        id: args.opt("id")?.unwrap_or(0),
        socket: args.opt("socket")?.unwrap_or(0),
        role: if args.has("master") { Role::Master } else { Role::Slave },
        mode: if args.has("ip") { Mode::Ip } else { Mode::Ethernet },
        ring_size: args.opt("ring")?.unwrap_or(RING_SIZE),
        buffer_size: u16::try_from(buffer).map_err(too_large)?,
        rx_queues: args.opt("rx")?.unwrap_or(1),
        tx_queues: args.opt("tx")?.unwrap_or(1),
        mac: args.opt("mac")?,
        secret: args.opt("secret")?.unwrap_or_default(),
        zero_copy: !args.has("no-zero-copy"),
    };
    control.get::<Memifs>()?.create(&create)?;
    Ok(Output::none())
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    let index =
        InterfaceArg::optional(args)?.ok_or_else(|| CliError::argument("interface", "which memif?"))?;
    control.get::<Memifs>()?.delete(index)?;
    Ok(Output::none())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let memifs = control.get::<Memifs>()?;
    let detail = if args.has("descriptors") { Detail::Descriptors } else { Detail::Brief };
    let only = InterfaceArg::optional(args)?;
    let sockets = if only.is_none() { memifs.sockets() } else { Vec::new() };
    Ok(Output::view(Shown::new(sockets, memifs.list(only, detail)?)))
}
