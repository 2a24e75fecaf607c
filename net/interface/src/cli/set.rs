//! `set interface ...` and `clear interfaces`.

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output, Toggle};

use crate::{InterfaceArg, Interfaces, MtuLayer, SwIfIndex};

pub(super) const STATE: Command =
    Command::new("set interface state <interface> {up | down}", "Set an interface up or down", state)
        .examples(&["set interface state local0 up", "set int state local0 down"]);

pub(super) const MTU: Command = Command::new(
    "set interface mtu {default | [packet | ip4 | ip6 | mpls] <mtu:u32>} <interface>",
    "Set the largest packet an interface carries, of one protocol or of all",
    mtu,
)
.examples(&[
    "set interface mtu 1500 local0",
    "set interface mtu packet 1500 local0",
    "set int mtu ip4 1400 local0",
])
.doc("Sizes are without the Ethernet header. 0 for a protocol means that of the interface.");

pub(super) const MAC: Command =
    Command::new("set interface mac address <interface> <mac>", "Set the MAC address", mac)
        .examples(&["set interface mac address local0 02:fe:00:00:00:01"]);

pub(super) const PROMISCUOUS: Command = Command::new(
    "set interface promiscuous {on | off} <interface>",
    "Accept frames for all MAC addresses, or only for its own",
    promiscuous,
)
.examples(&["set interface promiscuous on local0"]);

pub(super) const NAME: Command =
    Command::new("set interface name <interface> <new-name:word>", "Rename an interface", name)
        .examples(&["set interface name local0 nobody0"])
        .doc("The interface's nodes in the graph keep their names.");

pub(super) const RENUMBER: Command = Command::new(
    "renumber interface <interface> <number:u32>",
    "Give an interface whose name ends with a number another number",
    renumber,
)
.examples(&["renumber interface loop0 7"])
.doc("`loop0` becomes `loop7`. The interface's nodes in the graph keep their names.");

pub(super) const TAG: Command =
    Command::new("set interface tag <interface> [<tag:word>]", "Note a word on an interface", tag)
        .examples(&["set interface tag local0 uplink", "set interface tag local0"])
        .doc("Without a word there is none any more.");

pub(super) const CLEAR_INTERFACES: Command =
    Command::new("clear interfaces", "Set the counters of all interfaces to zero", clear_all)
        .examples(&["clear interfaces", "cl int"]);

pub(super) const CLEAR_HARDWARE: Command = Command::new(
    "clear hardware-interfaces [<interface>] ...",
    "Set the counters of all or some interfaces to zero",
    clear_some,
)
.examples(&["clear hardware-interfaces", "clear hardware-interfaces local0"]);

fn index(args: &Args) -> Result<SwIfIndex, CliError> {
    Ok(args.get::<InterfaceArg>("interface")?.0)
}

fn state(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.set_admin(index(args)?, args.has("up"))?;
    Ok(Output::none())
}

fn mtu(control: &Control, args: &Args) -> Result<Output, CliError> {
    if args.has("default") {
        control.get::<Interfaces>()?.forget_mtu(index(args)?)?;
        return Ok(Output::none());
    }
    let layer = match () {
        () if args.has("ip4") => MtuLayer::Ip4,
        () if args.has("ip6") => MtuLayer::Ip6,
        () if args.has("mpls") => MtuLayer::Mpls,
        () => MtuLayer::L3,
    };
    control.get::<Interfaces>()?.set_mtu(index(args)?, layer, args.get("mtu")?)?;
    Ok(Output::none())
}

fn mac(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.set_mac(index(args)?, args.get("mac")?)?;
    Ok(Output::none())
}

fn promiscuous(control: &Control, args: &Args) -> Result<Output, CliError> {
    let toggle = if args.has("on") { Toggle::On } else { Toggle::Off };
    control.get::<Interfaces>()?.set_promiscuous(index(args)?, toggle.is_on())?;
    Ok(Output::none())
}

fn name(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.rename(index(args)?, &args.get::<String>("new-name")?)?;
    Ok(Output::none())
}

fn renumber(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.renumber(index(args)?, args.get("number")?)?;
    Ok(Output::none())
}

fn tag(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<Interfaces>()?.set_tag(index(args)?, args.text("tag").unwrap_or_default())?;
    Ok(Output::none())
}

fn clear_all(control: &Control, _: &Args) -> Result<Output, CliError> {
    let interfaces = control.get::<Interfaces>()?;
    interfaces.clear_counters(&interfaces.indices())?;
    Ok(Output::none())
}

fn clear_some(control: &Control, args: &Args) -> Result<Output, CliError> {
    let named: Vec<SwIfIndex> = args.all::<InterfaceArg>("interface")?.into_iter().map(|i| i.0).collect();
    if named.is_empty() {
        return clear_all(control, args);
    }
    control.get::<Interfaces>()?.clear_counters(&named)?;
    Ok(Output::none())
}

#[cfg(test)]
mod tests {
    use std::rc::Rc;

    use super::*;
    use crate::testing;

    #[test]
    fn only_the_named_interfaces_counters_are_cleared() {
        let control = testing::router(|_| Ok(()));
        let interfaces = control.get::<Interfaces>().unwrap();
        let c = interfaces.graph().graph_counters();
        c.rx.ensure(2);
        c.drops.ensure(2);
        for at in 0..2 {
            c.rx.add(0, at, 3, 180);
            c.drops.add(0, at, 7);
        }
        let args = Args::new(Rc::clone(&control), "").with("interface", "local0", 0..0);
        clear_some(&control, &args).unwrap();
        assert_eq!((c.rx.sum(0), c.drops.sum(0)), ((0, 0), 0));
        assert_eq!((c.rx.sum(1), c.drops.sum(1)), ((3, 180), 7));
    }

    #[test]
    fn an_mtu_out_of_range_is_refused_with_the_nearest() {
        let control = testing::router(|_| Ok(()));
        let args =
            Args::new(Rc::clone(&control), "").with("mtu", "10", 0..0).with("interface", "local0", 0..0);
        let error = mtu(&control, &args).unwrap_err();
        assert!(error.message().contains("nearest 64"), "{error}");
    }
}
