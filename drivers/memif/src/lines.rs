//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::System, "create memif socket id <id:u32> filename <filename:word>", "delete memif socket id <id>").key("id").makes("memif socket <id>"),
    LineKind::item(Phase::Interfaces, "create interface memif id <id:u32> [socket-id <socket:u32>] [master] [ring-size <ring:u32>] [buffer-size <buffer:u32>] [hw-addr <mac>] [secret <secret:word>] [rx-queues <rx:u32>] [tx-queues <tx:u32>] [mode ip] [no-zero-copy]", "delete interface memif <made>").key("id socket").makes("interface memif[<socket>|0]/<id>").needs(&["[memif socket <socket>]"]).recreates("the interface"),
];
