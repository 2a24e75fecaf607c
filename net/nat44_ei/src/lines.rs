//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "nat44 ei plugin enable [sessions <sessions:u32>] [users <users:u32>] [inside-vrf <inside-vrf:u32>] [outside-vrf <outside-vrf:u32>] [user-sessions <user-sessions:u32>] [static-mapping-only [connection-tracking]] [out2in-dpo]", "nat44 ei plugin disable").key("").makes("nat44 ei").recreates("all sessions of NAT44-EI"),
    LineKind::setting(Phase::Policies, "nat44 ei forwarding enable", "", "nat44 ei forwarding disable").needs(&["nat44 ei"]),
    LineKind::setting(Phase::Policies, "nat44 ei user-limit drop", "", "nat44 ei user-limit recycle").needs(&["nat44 ei"]),
    LineKind::setting(Phase::Policies, "nat44 ei mss-clamping <mss:u16>", "", "nat44 ei mss-clamping disable").needs(&["nat44 ei"]),
    LineKind::setting(Phase::Policies, "set nat44 ei timeout udp <udp:u32> tcp-established <tcp-established:u32> tcp-transitory <tcp-transitory:u32> icmp <icmp:u32>", "", "set nat44 ei timeout reset").needs(&["nat44 ei"]),
    LineKind::setting(Phase::Policies, "nat44 ei addr-port-assignment-alg {map-e psid <psid:u16> psid-offset <psid-offset:u8> psid-len <psid-len:u8> [rfc7597] | port-range <start:u16> - <end:u16> | port-blocks size <size:u16> per-user <per-user:u8>}", "", "nat44 ei addr-port-assignment-alg default").needs(&["nat44 ei"]),
    LineKind::item(Phase::Policies, "nat44 ei exempt <prefix:ip4-prefix>", "... del").needs(&["nat44 ei"]),
    LineKind::item(Phase::Policies, "set interface nat44 ei {in <in:interface> | out <out:interface>} [output-feature]", "... del").needs(&["nat44 ei"]),
    LineKind::item(Phase::Policies, "nat44 ei add interface address <interface>", "... del").needs(&["nat44 ei"]).makes("nat44 ei address <interface>"),
    LineKind::item(Phase::Policies, "nat44 ei add address <address:ip4-address> [tenant-vrf <vrf:u32>]", "... del").needs(&["nat44 ei"]).makes("nat44 ei address <address>").flaps("sessions of the address"),
    LineKind::item(Phase::Policies, "nat44 ei add static mapping [tcp | udp | icmp] local <local:ip4-address> [<local-port:u16>] external {<external:ip4-address> | <interface>} [<external-port:u16>] [vrf <vrf:u32>]", "... del").needs(&["nat44 ei", "[?nat44 ei address <external>]", "[?nat44 ei address <interface>]"]),
    LineKind::item(Phase::Policies, "nat44 ei add identity mapping {<address:ip4-address> | external <interface>} [tcp <tcp:u16> | udp <udp:u16> | icmp <icmp:u16>] [vrf <vrf:u32>]", "... del").needs(&["nat44 ei", "[?nat44 ei address <address>]", "[?nat44 ei address <interface>]"]),
    LineKind::setting(Phase::Policies, "nat44 ei ha listener <listener:word> path-mtu <path-mtu:u32>", "", "nat44 ei ha listener 0.0.0.0:0").needs(&["nat44 ei"]),
    LineKind::setting(Phase::Policies, "nat44 ei ha failover <failover:word> refresh-interval <refresh-interval:u32>", "", "nat44 ei ha failover 0.0.0.0:0").needs(&["nat44 ei"]),
];
