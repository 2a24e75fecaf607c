//! Commands: `create bond`, `delete bond`, `bond add`, `bond del`, `set interface bond`, `show bond`.

use shoal_interface::{InterfaceArg, Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::show::{Brief, Details};
use crate::{AddMember, Balance, BondError, Bonds, Create, Mode};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "create bond {mode {round-robin | active-backup | broadcast | lacp | xor} & [load-balance {l2 | l23 | l34}] & \
         [numa-only] & [hw-addr <mac>] & [id <id:u32>] & [gso]}",
        "Create an interface of several Ethernet links; tells its name",
        create,
    )
    .doc(
        "`round-robin` gives each packet to the next member, `active-backup` all to one, `broadcast` each to all, `xor` the \
         packets of a flow to one, and `lacp` does as `xor` with the members that the other end agrees to. A flow is known \
         by its MAC addresses (`l2`), by MAC and IP addresses (`l23`), or by IP addresses and ports (`l34`). Without \
         `hw-addr` it has the MAC address of its first member. `gso`: it takes large packets, which members cut.",
    )
    .examples(&[
        "create bond mode lacp load-balance l34",
        "create bond mode active-backup hw-addr 02:fe:00:00:00:01 id 7",
    ]),
    Command::new("delete bond {<interface> | sw_if_index <sw-if-index:u32>}", "Delete a bond; its members stay", delete),
    Command::new(
        "bond add <bond:interface> <member:interface> [passive] [long-timeout]",
        "Make an interface a member of a bond",
        add,
    )
    .doc(
        "It takes the bond's MAC address and gets its own back when it leaves. With LACP, `passive` speaks only when it is \
         spoken to, and `long-timeout` lets the other end be silent for 90 seconds instead of 3.",
    ),
    Command::new("bond del {<interface> | sw_if_index <sw-if-index:u32>}", "Let a member of a bond go", detach),
    Command::new(
        "set interface bond <interface> weight <weight:u32>",
        "Say which member of mode active-backup is to do all: that of the highest weight",
        weight,
    ),
    Command::new("show bond [details]", "Show bonds", show).examples(&["show bond", "show bond details"]),
];

fn refused(error: BondError) -> CliError {
    match error {
        BondError::Exists(_) => CliError::argument("id", error.to_string()),
        BondError::Number(_, most) => {
            CliError::argument("id", error.to_string()).nearest(Some(most.to_string()))
        }
        BondError::Mac(_) => CliError::argument("mac", error.to_string()),
        other => CliError::failed(other.to_string()),
    }
}

fn chosen<T: Copy>(args: &Args, words: &[(T, &'static str)]) -> Option<T> {
    words.iter().find(|(_, word)| args.has(word)).map(|(choice, _)| *choice)
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bonds, interfaces) = (control.get::<Bonds>()?, control.get::<Interfaces>()?);
    let mode = chosen(args, &Mode::WORDS).unwrap_or(Mode::RoundRobin);
    let hashes = matches!(mode, Mode::Lacp | Mode::Xor);
    if let Some(word) = ["load-balance", "numa-only"].into_iter().find(|word| args.has(word) && !hashes) {
        return Err(CliError::argument(word, format!("'{word}' is for the modes lacp and xor")));
    }
    let how = Create {
        mode,
        balance: chosen(args, &Balance::WORDS).unwrap_or_default(),
        id: args.opt("id")?,
        mac: args.opt("mac")?,
        numa_only: args.has("numa-only"),
        gso: args.has("gso"),
    };
    let index = bonds.create(how).map_err(refused)?;
    Ok(Output::text(format!("{}\n", interfaces.name(index)?)))
}

fn which(args: &Args) -> Result<SwIfIndex, CliError> {
    match args.opt::<u32>("sw-if-index")? {
        Some(index) => Ok(SwIfIndex(index)),
        None => Ok(args.get::<InterfaceArg>("interface")?.0),
    }
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Bonds>()?.delete(which(args)?).map_err(refused)?;
    Ok(Output::none())
}

fn add(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (InterfaceArg(bond), InterfaceArg(member)) = (args.get("bond")?, args.get("member")?);
    let how = AddMember { passive: args.has("passive"), long_timeout: args.has("long-timeout") };
    control.get::<Bonds>()?.add(bond, member, how).map_err(refused)?;
    Ok(Output::none())
}

fn detach(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Bonds>()?.detach(which(args)?).map_err(refused)?;
    Ok(Output::none())
}

fn weight(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bonds, InterfaceArg(index)) = (control.get::<Bonds>()?, args.get("interface")?);
    bonds.set_weight(index, args.get("weight")?).map_err(refused)?;
    Ok(Output::none())
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (bonds, interfaces) = (control.get::<Bonds>()?, control.get::<Interfaces>()?);
    Ok(if args.has("details") {
        Output::view(Details::new(&bonds, &interfaces))
    } else {
        Output::view(Brief::new(&bonds, &interfaces))
    })
}
