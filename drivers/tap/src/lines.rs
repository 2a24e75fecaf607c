//! Every form of line that `running.rs` writes: what it replaces, how it is taken back, what that interrupts.

use shoal_module::{LineKind, Phase};

pub(crate) static LINES: &[LineKind] = &[
    LineKind::item(Phase::Interfaces, "create tap id <id:u32> [hw-addr <mac>] [host-if-name <host-name:word>] [host-ns <ns:word>] [host-mac-addr <host-mac:mac>] [host-ip4-addr <ip4:ip4-prefix>] [host-ip6-addr <ip6:ip6-prefix>] [host-ip4-gw <gw4:ip4-address>] [host-ip6-gw <gw6:ip6-address>] [host-bridge <bridge:word>] [host-mtu-size <mtu:u32>] [num-rx-queues <rx:u32>] [num-tx-queues <tx:u32>] [rx-ring-size <rx-ring:u32>] [tx-ring-size <tx-ring:u32>] [persist] [attach] [no-gso] [gro-coalesce] [vhost-net | no-vhost-net]", "delete tap <made>").key("id").makes("interface tap<id>").recreates("the tap, with what the kernel has on it"),
    LineKind::item(Phase::Interfaces, "create tap id <id:u32> [hw-addr <mac>] [host-if-name <host-name:word>] [host-ns <ns:word>] [host-mac-addr <host-mac:mac>] [host-ip4-addr <ip4:ip4-prefix>] [host-ip6-addr <ip6:ip6-prefix>] [host-ip4-gw <gw4:ip4-address>] [host-ip6-gw <gw6:ip6-address>] [host-bridge <bridge:word>] [host-mtu-size <mtu:u32>] [num-rx-queues <rx:u32>] [num-tx-queues <tx:u32>] [rx-ring-size <rx-ring:u32>] [tx-ring-size <tx-ring:u32>] [persist] [attach] tun [no-gso] [gro-coalesce] [vhost-net | no-vhost-net]", "delete tap <made>").key("id").makes("interface tun<id>").recreates("the tun, with what the kernel has on it"),
    LineKind::setting(Phase::Settings, "set tap offload <interface> csum-offload-disable", "interface", "set tap offload <interface> csum-offload-enable"),
];
