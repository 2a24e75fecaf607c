//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "set ip source-and-port-range-check vrf <vrf:u32> <hosts:ip4-prefix> range <low:u16> - <high:u16>", "... del"),
    LineKind::item(Phase::Policies, "set interface ip source-and-port-range-check <interface> [tcp-in-vrf <tcp-in:u32>] [tcp-out-vrf <tcp-out:u32>] [udp-in-vrf <udp-in:u32>] [udp-out-vrf <udp-out:u32>]", "... del").key("interface"),
];
