//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase, word};

use crate::{InterfaceArg, Interfaces};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set superpath off", "", "set superpath on"),
    LineKind::item(
        Phase::Interfaces,
        "create loopback interface [mac <mac>] [instance <instance:u32>]",
        "delete loopback interface intfc <made>",
    )
    .key("instance")
    .makes("interface loop<instance>")
    .recreates("the interface"),
    LineKind::item(
        Phase::Interfaces,
        "bvi create [mac <mac>] [instance <instance:u32>]",
        "bvi delete <made>",
    )
    .key("instance")
    .makes("interface bvi<instance>")
    .recreates("the interface"),
    LineKind::item(Phase::Names, "set interface name <interface> <new-name:word>", "").key("interface"),
    LineKind::setting(
        Phase::Settings,
        "set interface tag <interface> <tag:word>",
        "interface",
        "set interface tag <interface>",
    ),
    LineKind::setting(
        Phase::Settings,
        "set interface mtu <mtu:u32> <interface>",
        "interface",
        "set interface mtu default <interface>",
    ),
    LineKind::setting(
        Phase::Settings,
        "set interface mtu {ip4 | ip6 | mpls} <mtu:u32> <interface>",
        "ip4 ip6 mpls interface",
        "set interface mtu [ip4] [ip6] [mpls] 0 <interface>",
    ),
    LineKind::setting(
        Phase::Settings,
        "set interface mac address <interface> <mac>",
        "interface",
        "set interface mac address <interface> 00:00:00:00:00:00",
    ),
    LineKind::setting(
        Phase::Settings,
        "set interface promiscuous on <interface>",
        "interface",
        "set interface promiscuous off <interface>",
    ),
    LineKind::setting(
        Phase::Settings,
        "set interface rx-mode <interface> queue <queue:u32> {polling | interrupt | adaptive}",
        "interface queue",
        "set interface rx-mode <interface> queue <queue> adaptive",
    ),
    LineKind::setting(
        Phase::Settings,
        "set interface rx-placement <interface> queue <queue:u32> {worker <worker:u32> | main}",
        "interface queue",
        "set interface rx-placement <interface> queue <queue> auto",
    ),
    LineKind::setting(
        Phase::Settings,
        "set interface tx-queue <interface> queue <queue:u32> threads <threads:word>",
        "interface queue",
        "",
    )
    .found(tx_in_turn),
    LineKind::item(
        Phase::Settings,
        "set interface collect-detailed-stats <interface> enable",
        "set interface collect-detailed-stats <interface> disable",
    ),
    LineKind::setting(
        Phase::Policies,
        "set interface feature <interface> <feature:word> arc <arc:word> [disable]",
        "interface feature arc",
        "set interface feature <interface> <feature> arc <arc> [!disable]",
    ),
    LineKind::item(
        Phase::State,
        "set interface state <interface> up",
        "set interface state <interface> down",
    )
    .flaps("the interface"),
];

/// Threads send by the queues in turn.
fn tx_in_turn(control: &Control, args: &Args) -> Option<String> {
    let interfaces = control.get::<Interfaces>().ok()?;
    let InterfaceArg(index) = args.get("interface").ok()?;
    let (name, queue) = (interfaces.name(index).ok()?, args.get::<u32>("queue").ok()?);
    let queues = interfaces.tx_queues(index).ok()?.len();
    let threads = interfaces.graph().threads().into_iter().map(|thread| thread.index);
    let threads: Vec<String> =
        threads.filter(|thread| thread % queues.max(1) == queue as usize).map(|t| t.to_string()).collect();
    Some(format!("set interface tx-queue {} queue {queue} threads {}", word(&name), threads.join(",")))
}
