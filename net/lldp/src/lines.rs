//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::cli::Args;
use shoal_module::{Control, LineKind, Phase, word};

use crate::Settings;

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Settings, "set lldp [system-name <system-name:word>] [tx-hold <tx-hold:u32>] [tx-interval <tx-interval:u32>]", "").key("").found(at_first),
    LineKind::item(Phase::Settings, "set interface lldp <interface> [port-desc <port-desc:word>] [mgmt-ip4 <mgmt-ip4:ip4-address>] [mgmt-ip6 <mgmt-ip6:ip6-address>] [mgmt-oid <mgmt-oid:word>]", "set interface lldp <interface> disable").key("interface"),
];

/// The settings without any command.
fn at_first(_: &Control, _: &Args) -> Option<String> {
    let Settings { system_name, tx_hold, tx_interval } = Settings::default();
    Some(format!("set lldp system-name {} tx-hold {tx_hold} tx-interval {tx_interval}", word(&system_name)))
}
