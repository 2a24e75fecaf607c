//! Commands.

use shoal_link::Link;
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, Output, Toggle};

use crate::control::{CreateHostInterface, HostInterfaces, Mode};
use crate::{Qdisc, RingVersion, TxOffload};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "create host-interface {name <name:kernel-interface> & [hw-addr <mac>] \
         & [num-rx-queues <rx:u32>] & [num-tx-queues <tx:u32>] & [mode {ip | ethernet}] \
         & [qdisc-bypass-enable] & [qdisc-bypass-disable] \
         & [cksum-gso-disable] & [v2 | v3]}",
        "Take an interface of the host kernel into the router",
        create,
    )
    .examples(&[
        "create host-interface name eth1",
        "create host-interface v3 name eth1 hw-addr 02:fe:00:00:00:01",
        "create host-interface name eth1 num-rx-queues 2 num-tx-queues 2 qdisc-bypass-disable",
        "create host-interface name eth1 cksum-gso-disable",
        "create host-interface name tun0 mode ip",
    ])
    .doc(
        "Prints the new interface's name, `host-` and the kernel's name. Setting it up or down and changing its MTU \
         does the same to the kernel's interface (its MTU is only ever raised); its link state follows the kernel. \
         `cksum-gso-disable`: the router completes checksums and cuts large packets itself before it sends them, for a \
         device or a kernel that gets it wrong; without it the kernel does, or leaves it to the device. \
         `qdisc-bypass-enable` sends past the kernel's queueing discipline, which implies `cksum-gso-disable` because \
         it cuts nothing there; it is off, and VPP's `qdisc-bypass-disable` says what is so anyway. `v2`, unlike in VPP the \
         default, takes TPACKET_V2 rings: the router sees a packet at once. `v3` takes TPACKET_V3 rings, which hand \
         packets over by the block: a lone one is seen half a millisecond later, and jumbo frames cost less.",
    ),
    Command::new(
        "delete host-interface {name <name:host-interface>}",
        "Give an interface back to the host kernel",
        delete,
    )
    .examples(&["delete host-interface name eth1"]),
    Command::new(
        "set host-interface l4-cksum-offload <name:host-interface> <state:on-off>",
        "Let the kernel complete checksums and cut large packets, or the router",
        set_offload,
    )
    .examples(&["set host-interface l4-cksum-offload eth1 off"])
    .doc("On at first, unless `cksum-gso-disable` or `qdisc-bypass-enable` was given."),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::live("kernel-interface", "interface of the host kernel", word, |_, _| Link::names()),
    ArgType::live("host-interface", "host interface, by its kernel name", word, |control, _| {
        control.get::<HostInterfaces>().map(|h| h.names()).unwrap_or_default()
    }),
];

fn word(_: &Control, text: &str) -> Result<(), Expected> {
    if text.is_empty() || text.len() > 15 { Err("an interface name of 1 to 15 bytes".into()) } else { Ok(()) }
}

fn create(control: &Control, args: &Args) -> Result<Output, CliError> {
    let create = CreateHostInterface {
        name: args.get("name")?,
        mac: args.opt("mac")?,
        rx_queues: args.opt("rx")?,
        tx_queues: args.opt("tx")?,
        mode: if args.has("ip") { Mode::Ip } else { Mode::Ethernet },
        qdisc: if args.has("qdisc-bypass-enable") { Qdisc::Bypass } else { Qdisc::Use },
        offload: if args.has("cksum-gso-disable") { TxOffload::Router } else { TxOffload::Kernel },
        version: if args.has("v3") { RingVersion::V3 } else { RingVersion::V2 },
    };
    control.get::<HostInterfaces>()?.create(&create)?;
    Ok(Output::text(format!("host-{}\n", create.name)))
}

fn set_offload(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (hosts, name) = (control.get::<HostInterfaces>()?, args.get::<String>("name")?);
    let offload = if args.get::<Toggle>("state")?.is_on() { TxOffload::Kernel } else { TxOffload::Router };
    hosts.set_offload(hosts.named(&name)?, offload)?;
    Ok(Output::none())
}

fn delete(control: &Control, args: &Args) -> Result<Output, CliError> {
    control.get::<HostInterfaces>()?.delete(&args.get::<String>("name")?)?;
    Ok(Output::none())
}
