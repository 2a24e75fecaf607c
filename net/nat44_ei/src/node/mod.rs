//! The nodes.
//!
//! | node | packets |
//! |---|---|
//! | `nat44-ei-in2out`, `nat44-ei-out2in`, `nat44-ei-classify`, `nat44-ei-in2out-output` | of sessions that are known |
//! | the same names with `-slowpath` | all others |
//! | `nat44-ei-hairpinning` | between two hosts of different threads |
//! | `nat44-ei-ha` | of another router, about its sessions |

mod asked;
mod decide;
pub mod fast;
pub mod ha;
mod icmp;
pub mod next;
pub mod slow;
pub mod stage;
mod stateless;

use shoal_derive::TraceLine;

/// What `show trace` says of a packet.
#[derive(TraceLine)]
#[line("{name}: sw_if_index {interface}, next index {next}, {word} {session}")]
pub struct Trace {
    /// The path.
    pub name: &'static str,
    /// The interface.
    pub interface: u32,
    /// Where it goes.
    pub next: u32,
    /// What VPP calls the session.
    pub word: &'static str,
    /// The number of its session; -1: it has none.
    pub session: i64,
}
