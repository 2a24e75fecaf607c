//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::Policies, "set ipfix exporter collector <collector:ip-address> src <src:ip-address> [fib-id <fib-id:u32>] [port <port:u16>] [path-mtu <path-mtu:u32>] [template-interval <template-interval:u32>] [udp-checksum]", "", "set ipfix exporter disable"),
    LineKind::item(Phase::Policies, "ipfix exporter add collector <collector:ip-address> src <src:ip-address> [fib-id <fib-id:u32>] [port <port:u16>] [path-mtu <path-mtu:u32>] [template-interval <template-interval:u32>] [udp-checksum]", "ipfix exporter del <collector>").key("collector"),
    LineKind::setting(Phase::Policies, "set ipfix classify stream domain <domain:u32> src-port <src-port:u16>", "", "set ipfix classify stream disable"),
];
