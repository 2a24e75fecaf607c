//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Policies, "bfd key set conf-key-id <conf-key-id:u32> type <type:word> secret <secret:word>", "bfd key del conf-key-id <conf-key-id>").key("conf-key-id").makes("bfd key <conf-key-id>"),
    LineKind::setting(Phase::Policies, "bfd udp tos <tos:u8>", "", "bfd udp tos 192"),
    LineKind::item(Phase::Policies, "bfd udp session add {multihop | interface <interface>} local-addr <local:ip-address> peer-addr <peer:ip-address> desired-min-tx <desired-min-tx:u32> required-min-rx <required-min-rx:u32> detect-mult <detect-mult:u8> [conf-key-id <conf-key-id:u32> bfd-key-id <bfd-key-id:u8>]", "bfd udp session del [multihop] [interface <interface>] local-addr <local> peer-addr <peer>").key("multihop interface local peer").makes("bfd [multihop] [<interface>] <local> <peer>").needs(&["[bfd key <conf-key-id>]"]).recreates("the session"),
    LineKind::item(Phase::Policies, "bfd udp session set-flags admin down {multihop | interface <interface>} local-addr <local:ip-address> peer-addr <peer:ip-address>", "bfd udp session set-flags admin up [multihop] [interface <interface>] local-addr <local> peer-addr <peer>").needs(&["bfd [multihop] [<interface>] <local> <peer>"]),
    LineKind::setting(Phase::Policies, "bfd udp echo-source set interface <interface>", "", "bfd udp echo-source del"),
];
