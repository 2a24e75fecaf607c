//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "nat44 plugin enable [sessions <sessions:u32>] [inside-vrf <inside-vrf:u32>] [outside-vrf <outside-vrf:u32>]", "nat44 plugin disable").key("").makes("nat44").recreates("all sessions of NAT44"),
    LineKind::setting(Phase::Policies, "nat44 forwarding enable", "", "nat44 forwarding disable").needs(&["nat44"]),
    LineKind::setting(Phase::Policies, "nat mss-clamping <mss:u16>", "", "nat mss-clamping disable").needs(&["nat44"]),
    LineKind::setting(Phase::Policies, "set nat timeout udp <udp:u32> tcp-established <tcp-established:u32> tcp-transitory <tcp-transitory:u32> icmp <icmp:u32>", "", "set nat timeout reset").needs(&["nat44"]),
    LineKind::setting(Phase::Policies, "set nat44 session limit <limit:u32> vrf <vrf:u32>", "vrf", "set nat44 session limit off vrf <vrf>").needs(&["nat44"]),
    LineKind::setting(Phase::Policies, "nat ipfix logging domain <domain:u32> src-port <src-port:u16>", "", "nat ipfix logging disable"),
    LineKind::item(Phase::Policies, "nat44 vrf table add <table:u32>", "add -> del").needs(&["nat44"]).makes("nat44 vrf <table>"),
    LineKind::item(Phase::Policies, "nat44 vrf route add table <table:u32> <vrf:u32>", "add -> del").needs(&["nat44 vrf <table>"]),
    LineKind::item(Phase::Policies, "set interface nat44 {in <in:interface> | out <out:interface>}", "... del").needs(&["nat44"]),
    LineKind::item(Phase::Policies, "set interface nat44 out <interface> output-feature", "... del").needs(&["nat44"]),
    LineKind::item(Phase::Policies, "nat44 add interface address <interface> [twice-nat]", "... del").needs(&["nat44"]).makes("nat44 address of <interface>"),
    LineKind::item(Phase::Policies, "nat44 add address <address:ip4-address> [tenant-vrf <vrf:u32>] [twice-nat]", "... del").needs(&["nat44"]).makes("nat44 address <address>").flaps("sessions of the address"),
    LineKind::setting(Phase::Policies, "set nat44 mapping endpoint-independent address <address:ip4-address> filtering <filtering:word>", "address", "set nat44 mapping endpoint-independent address <address> del").needs(&["nat44 address <address>"]),
    LineKind::setting(Phase::Policies, "set nat44 mapping endpoint-independent interface <interface> filtering <filtering:word>", "interface", "set nat44 mapping endpoint-independent interface <interface> del").needs(&["nat44 address of <interface>"]),
    LineKind::item(Phase::Policies, "nat44 add static mapping [tcp | udp | icmp] local <local:ip4-address> [<local-port:u16>] external {<external:ip4-address> | <interface>} [<external-port:u16>] [vrf <vrf:u32>] [twice-nat | self-twice-nat] [out2in-only] [exact <exact:ip4-address>]", "... del").needs(&["nat44", "[?nat44 address <external>]"]),
    LineKind::item(Phase::Policies, "nat44 add identity mapping {<address:ip4-address> | external <interface>} [tcp <tcp:u16> | udp <udp:u16> | icmp <icmp:u16>] [vrf <vrf:u32>]", "... del").needs(&["nat44"]),
    LineKind::item(Phase::Policies, "nat44 add load-balancing static mapping protocol {tcp | udp | icmp} external <external:word> <rest:rest>", "nat44 add load-balancing static mapping protocol [tcp] [udp] [icmp] external <external> <rest> del").key("tcp udp icmp external").needs(&["nat44"]),
];
