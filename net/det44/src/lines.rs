//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "det44 plugin enable [inside vrf <inside-vrf:u32>] [outside vrf <outside-vrf:u32>]", "det44 plugin disable").key("").makes("det44").recreates("all sessions of DET44"),
    LineKind::setting(Phase::Policies, "set det44 timeouts udp <udp:u32> tcp established <tcp-established:u32> tcp transitory <tcp-transitory:u32> icmp <icmp:u32>", "", "set det44 timeouts reset").needs(&["det44"]),
    LineKind::item(Phase::Policies, "det44 add in <inside:ip4-prefix> out <outside:ip4-prefix>", "... del").needs(&["det44"]).flaps("sessions of the map"),
    LineKind::item(Phase::Policies, "set interface det44 {inside <inside:interface> | outside <outside:interface>}", "... del").needs(&["det44"]),
];
