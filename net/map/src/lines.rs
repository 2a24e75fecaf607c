//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::Policies, "map params fragment {inner | outer} [ignore-df]", "", "map params fragment outer"),
    LineKind::setting(Phase::Policies, "map params icmp source-address <source:ip4-address>", "", "map params icmp source-address 0.0.0.0"),
    LineKind::setting(Phase::Policies, "map params icmp6 unreachables on", "", "map params icmp6 unreachables off"),
    LineKind::setting(Phase::Policies, "map params security-check {enable | disable} fragments {on | off}", "", "map params security-check enable fragments off"),
    LineKind::setting(Phase::Policies, "map params pre-resolve ip4-nh <hop:ip4-address>", "", "... del"),
    LineKind::setting(Phase::Policies, "map params pre-resolve ip6-nh <hop:ip6-address>", "", "... del"),
    LineKind::setting(Phase::Policies, "map params tcp-mss <mss:u16>", "", "map params tcp-mss 0"),
    LineKind::setting(Phase::Policies, "map params traffic-class <class:u8>", "", "map params traffic-class copy"),
    LineKind::item(Phase::Policies, "map add domain [tag <tag:word>] ip4-pfx <ip4-pfx:ip4-prefix> ip6-pfx <ip6-pfx:ip6-prefix> ip6-src <ip6-src:ip6-prefix> [ea-bits-len <ea-bits-len:u8>] [psid-offset <psid-offset:u8>] [psid-len <psid-len:u8>] [mtu <mtu:u16>] index <index:u32>", "map del domain index <index>").key("index").makes("map domain <index>").recreates("the domain"),
    LineKind::item(Phase::Policies, "map add rule index <index:u32> psid <psid:u16> ip6-dst <ip6-dst:ip6-address>", "... del").key("index psid").needs(&["map domain <index>"]),
    LineKind::item(Phase::Policies, "map interface <interface> [map-t]", "... del").key("interface"),
];
