//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::setting(Phase::Settings, "set interface l2 xconnect <interface> <peer:interface>", "interface", "set interface l3 <interface>").makes("l2 of <interface>"),
    LineKind::setting(Phase::Policies, "set interface l2 tag-rewrite <interface> {pop <count:u8> | push {dot1q | dot1ad} <tag:u16> [<inner:u16>] | translate <how:word> {dot1q | dot1ad} <tag:u16> [<inner:u16>]}", "interface", "set interface l2 tag-rewrite <interface> disable").needs(&["?l2 of <interface>"]),
    LineKind::setting(Phase::Policies, "set interface l2 pbb-tag-rewrite <interface> {pop | push | translate_pbb_stag <outer_tag:u16>} {[dmac <dmac:mac>] & [smac <smac:mac>] & [s_id <s_id:u32>] & [b_vlanid <b_vlanid:u16>]}", "interface", "set interface l2 pbb-tag-rewrite <interface> disable").needs(&["?l2 of <interface>"]),
    LineKind::item(Phase::Policies, "set interface l2 efp-filter <interface>", "... disable").needs(&["?l2 of <interface>"]),
];
