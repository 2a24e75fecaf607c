//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_interface::InterfaceArg;
use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};

use crate::Ip4;

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::System, "set ip unreachables on", "", "set ip unreachables off"),
    LineKind::setting(
        Phase::Settings,
        "set interface ip table <interface> <table:u32>",
        "interface",
        "set interface ip table <interface> 0",
    )
    .needs(&["ip table <table>"])
    .makes("ip of <interface>")
    .flaps("the addresses of the interface"),
    LineKind::item(
        Phase::Settings,
        "set interface ip directed-broadcast <interface> enable",
        "set interface ip directed-broadcast <interface> disable",
    ),
    LineKind::item(Phase::Addresses, "enable ip4 interface <interface>", "disable ip4 interface <interface>"),
    LineKind::item(
        Phase::Addresses,
        "set interface ip address <interface> <address:ip4-prefix>",
        "set interface ip address del <interface> <address>",
    )
    .in_order_of("interface")
    .needs(&["?ip of <interface>"])
    .brought_by_others(is_brought),
];

/// Whether another party has brought the address of a line.
fn is_brought(control: &Control, args: &Args) -> bool {
    let (Ok(ip4), Ok(interface)) = (control.get::<Ip4>(), args.get::<InterfaceArg>("interface")) else {
        return false;
    };
    let address = args.text("address").and_then(|text| text.parse().ok());
    address.is_some_and(|address| ip4.is_brought(interface.0, address))
}
