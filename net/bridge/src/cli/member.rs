//! `set interface l2 bridge`, `set interface l2 learn|forward|flood`, `bvi create`, `bvi delete`.

use shoal_interface::{InterfaceArg, Interfaces};
use shoal_l2::{Input, L2, Role};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use super::refused;
use crate::Bridges;

pub(super) const BRIDGE: Command = Command::new(
    "set interface l2 bridge <interface> <domain:bridge-domain> [bvi | uu-fwd] [<group:u8>]",
    "Make an interface a member of a bridge domain",
    bridge,
)
.doc(
    "A domain that is not there is created. The domain's packets are routed at the member that is the `bvi`, a loopback or `bviN`. `uu-fwd` gets what is for \
     unknown stations, and nothing is flooded to it. Members of one split-horizon group send each other nothing; 0 is no \
     group. `set interface l3` takes an interface out of its bridge domain.",
);

pub(super) const LEARN: Command = Command::new(
    "set interface l2 learn <interface> [disable]",
    "Learn which stations are behind a bridge's member",
    learn,
);

pub(super) const FORWARD: Command = Command::new(
    "set interface l2 forward <interface> [disable]",
    "Forward frames of a bridge's member to where their stations are",
    forward,
);

pub(super) const FLOOD: Command = Command::new(
    "set interface l2 flood <interface> [disable]",
    "Flood frames of a bridge's member for groups and for everybody",
    flood,
);

pub(super) const BVI_CREATE: Command = Command::new(
    "bvi create [mac <mac>] [instance <instance:u32>]",
    "Create an interface that can be a bridge domain's routed one; tells its name",
    bvi_create,
)
.examples(&["bvi create", "bvi create mac 02:00:00:00:00:33 instance 3"]);

pub(super) const BVI_DELETE: Command =
    Command::new("bvi delete <interface>", "Delete such an interface", bvi_delete);

fn bridge(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (InterfaceArg(interface), number) = (args.get("interface")?, args.get::<u32>("domain")?);
    let role = match (args.has("bvi"), args.has("uu-fwd")) {
        (true, _) => Role::Bvi,
        (_, true) => Role::UnknownForward,
        _ => Role::Normal,
    };
    let group = args.or("group", 0_u8)?;
    control.get::<Bridges>()?.join_or_create(interface, number, group, role).map_err(refused)?;
    Ok(Output::none())
}

fn set(control: &Control, args: &Args, feature: Input) -> Result<Output, CliError> {
    let InterfaceArg(interface) = args.get("interface")?;
    let l2 = control.get::<L2>()?;
    l2.check(interface)?;
    let input = l2.input(interface);
    let wanted = if args.has("disable") { input.without(feature) } else { input.with(feature) };
    l2.set_input(interface, wanted)?;
    Ok(Output::none())
}

fn learn(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Input::Learn)
}

fn forward(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Input::Forward)
}

fn flood(control: &Control, args: &Args) -> Result<Output, CliError> {
    set(control, args, Input::Flood)
}

fn bvi_create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    let index = interfaces.create_bvi(args.opt("mac")?, args.opt("instance")?)?;
    Ok(Output::text(format!("{}\n", interfaces.name(index)?)))
}

fn bvi_delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.delete_bvi(args.get::<InterfaceArg>("interface")?.0)?;
    Ok(Output::none())
}
