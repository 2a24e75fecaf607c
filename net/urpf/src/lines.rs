//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[LineKind::setting(
    Phase::Settings,
    "set urpf {ip4 | ip6} {rx | tx} {strict | loose} [table <table:u32>] <interface>",
    "ip4 ip6 rx tx interface",
    "set urpf [ip4] [ip6] [rx] [tx] off <interface>",
)];
