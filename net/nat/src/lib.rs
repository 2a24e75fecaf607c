//! What all kinds of NAT share: which tuple a packet has, and how its bytes follow when the tuple changes.
//!
//! Nothing here knows of sessions, interfaces or nodes: [`tuple`] and [`flow`] read, [`rewrite`] and [`icmp`] write, [`delta`] keeps
//! checksums exact, [`maglev`] spreads flows over servers, [`shards`] is a table of mappings that is published as a whole and changed a part at a time.
#![forbid(unsafe_code)]

pub mod delta;
mod flags;
pub mod flow;
pub mod icmp;
pub mod ip6;
pub mod ip6_ports;
pub mod maglev;
pub mod mss;
pub mod random;
pub mod rewrite;
pub mod shards;
mod sides;
mod timeouts;
pub mod tuple;

pub use delta::Delta;
pub use flags::{NatConfigFlags, NatLogLevel, NatTimeouts};
pub use flow::{Flow, LaterFragment};
pub use ip6::{End, Ip6Seen};
pub use ip6_ports::{Ip6PortPacket, Ip6Rewrite};
pub use random::Random;
pub use rewrite::{Rewrite, Sum};
pub use shards::Shards;
pub use sides::{Side, Sides};
pub use timeouts::Timeouts;
pub use tuple::{Kind, ParsedPacket, PortPacket, Tuple};

#[cfg(test)]
mod tests;
