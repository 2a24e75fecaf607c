//! `set interface collect-detailed-stats`: packets by kind of destination.

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{InterfaceArg, Interfaces};

pub(super) const SET: Command = Command::new(
    "set interface collect-detailed-stats <interface> {enable | disable}",
    "Count packets for one station, for groups and for everybody apart",
    set,
)
.examples(&["set interface collect-detailed-stats local0 enable"])
.doc(
    "The counters are `rx-unicast`, `rx-multicast`, `rx-broadcast` and the same of `tx` in the stats segment. The \
     features `stats-collect-rx` and `stats-collect-tx` count, so packets of this interface take no superpath.",
);

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface: InterfaceArg = args.get("interface")?;
    control.get::<Interfaces>()?.collect_detailed(interface.0, args.has("enable"))?;
    Ok(Output::none())
}
