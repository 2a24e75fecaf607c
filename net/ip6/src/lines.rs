//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_interface::InterfaceArg;
use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase};
use shoal_wire::Ip6Prefix;

use crate::Ip6;

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(
        Phase::Settings,
        "set interface ip6 table <interface> <table:u32>",
        "interface",
        "set interface ip6 table <interface> 0",
    )
    .needs(&["ip6 table <table>"])
    .makes("ip6 of <interface>")
    .flaps("the addresses of the interface"),
    LineKind::item(
        Phase::Addresses,
        "enable ip6 interface <interface>",
        "disable ip6 interface <interface> keep-addresses",
    )
    .needs(&["?ip6 of <interface>"]),
    LineKind::setting(
        Phase::Addresses,
        "set ip6 link-local address <interface> <address:ip6-address>",
        "interface",
        "set ip6 link-local address <interface> auto",
    )
    .needs(&["?ip6 of <interface>"]),
    LineKind::item(
        Phase::Addresses,
        "set interface ip address <interface> <address:ip6-prefix>",
        "set interface ip address del <interface> <address>",
    )
    .in_order_of("interface")
    .needs(&["?ip6 of <interface>"])
    .brought_by_others(is_brought),
];

/// Whether another party has brought the address of a line.
fn is_brought(control: &Control, args: &Args) -> bool {
    let (Ok(ip6), Ok(interface)) = (control.get::<Ip6>(), args.get::<InterfaceArg>("interface")) else {
        return false;
    };
    let address = args.text("address").and_then(|text| text.parse::<Ip6Prefix>().ok());
    address.is_some_and(|address| ip6.is_brought(interface.0, address.addr()))
}
