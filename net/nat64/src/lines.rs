//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "nat64 plugin enable [bib-buckets <bib-buckets:u32>] [st-buckets <st-buckets:u32>]", "nat64 plugin disable").key("").makes("nat64").recreates("all sessions of NAT64"),
    LineKind::setting(Phase::Policies, "set nat64 timeouts udp <udp:u32> tcp-established <tcp-established:u32> tcp-transitory <tcp-transitory:u32> icmp <icmp:u32>", "", "set nat64 timeouts reset").needs(&["nat64"]),
    LineKind::setting(Phase::Policies, "nat64 add prefix <prefix:ip6-prefix> tenant-vrf <vrf:u32>", "vrf", "... del").needs(&["nat64"]),
    LineKind::item(Phase::Policies, "set interface nat64 {in | out} <interface>", "... del").needs(&["nat64"]),
    LineKind::item(Phase::Policies, "nat64 add interface address <interface>", "... del").needs(&["nat64"]),
    LineKind::item(Phase::Policies, "nat64 add pool address <address:ip4-address> [tenant-vrf <vrf:u32>]", "... del").needs(&["nat64"]).makes("nat64 address <address>").flaps("sessions of the address"),
    LineKind::item(Phase::Policies, "nat64 add static bib <host:ip6-address> <port:u16> <shared:ip4-address> <open:u16> <protocol:word> vrf <vrf:u32>", "... del").needs(&["nat64", "?nat64 address <shared>"]),
];
