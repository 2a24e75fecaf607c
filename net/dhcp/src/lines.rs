//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "set dhcp proxy server <server:ip4-address> src-address <source:ip4-address> [server-fib-id <server-fib-id:u32>] [rx-fib-id <rx-fib-id:u32>]", "... del"),
    LineKind::item(Phase::Policies, "set dhcpv6 proxy server <server:ip6-address> src-address <source:ip6-address> [server-fib-id <server-fib-id:u32>] [rx-fib-id <rx-fib-id:u32>]", "... del"),
    LineKind::setting(Phase::Policies, "set dhcp option-82 vss table <table:u32> {oui <oui:u32> vpn-id <vpn-id:u32> | vpn-ascii-id <vpn-ascii-id:word> | default}", "table", "set dhcp option-82 vss table <table> delete"),
    LineKind::setting(Phase::Policies, "set dhcpv6 vss table <table:u32> {oui <oui:u32> vpn-id <vpn-id:u32> | vpn-ascii-id <vpn-ascii-id:word> | default}", "table", "set dhcpv6 vss table <table> delete"),
    LineKind::item(Phase::Policies, "set dhcp client intfc <interface> [hostname <hostname:word>] [client-id <client-id:word>] [broadcast] [dscp <dscp:u8>]", "set dhcp client del intfc <interface>").key("interface").recreates("the lease"),
    LineKind::setting(Phase::Policies, "dhcp6 duid <duid:word>", "", "dhcp6 duid auto"),
    LineKind::item(Phase::Policies, "dhcp6 client <interface>", "dhcp6 client <interface> disable").recreates("the lease"),
    LineKind::item(Phase::Policies, "dhcp6 pd client <interface> prefix group <group:word>", "dhcp6 pd client <interface> disable").key("interface").recreates("the prefixes"),
    LineKind::item(Phase::Policies, "set ip6 address <interface> prefix group <group:word> <rest:ip-prefix>", "... del"),
];
