//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Interfaces, "create interface af_xdp host-if <host:word> name <name:word> [mac-reuse | hw-addr <mac>] [num-rx-queues <queues:word>] [rx-queue-size <rx-size:u32>] [tx-queue-size <tx-size:u32>] [netns <netns:word>] [zero-copy | no-zero-copy] [pool-memory | own-memory] [busy-poll-usecs <usecs:u32> busy-poll-budget <budget:u32>] [multi-buffer] [no-syscall-lock] [force] [pinhole <pinhole:word>]", "delete interface af_xdp <made>").key("name").makes("interface <name>").recreates("the interface"),
];
