//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::Policies, "lb conf ip4-src-address <source:ip4-address>", "", "lb conf ip4-src-address 255.255.255.255"),
    LineKind::setting(Phase::Policies, "lb conf ip6-src-address <source:ip6-address>", "", "lb conf ip6-src-address ffff:ffff:ffff:ffff:ffff:ffff:ffff:ffff"),
    LineKind::setting(Phase::Policies, "lb conf buckets <buckets:u32>", "", "lb conf buckets 1024").flaps("which flows are known"),
    LineKind::setting(Phase::Policies, "lb conf timeout <timeout:u32>", "", "lb conf timeout 40"),
    LineKind::item(Phase::Policies, "lb vip <prefix:ip-prefix> [protocol {tcp | udp} port <port:u16>] encap {gre4 | gre6 | l3dsr | nat4 | nat6} [dscp <dscp:u8>] [type {nodeport | clusterip}] [target_port <target-port:u16>] [node_port <node-port:u16>] [new_len <new-length:u32>] [src_ip_sticky]", "lb vip <prefix> [protocol] [tcp] [udp] [port <port>] del").key("prefix tcp udp port").makes("lb <prefix> [tcp] [udp] [<port>]").recreates("the service and its flows"),
    LineKind::item(Phase::Policies, "lb as <prefix:ip-prefix> [protocol {tcp | udp} port <port:u16>] <server:ip-address>", "... del").needs(&["lb <prefix> [tcp] [udp] [<port>]"]),
    LineKind::item(Phase::Policies, "lb set interface {nat4 | nat6} in <interface>", "... del"),
];
