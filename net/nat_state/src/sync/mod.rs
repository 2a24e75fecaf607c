//! Sessions that another router knows, too: what a kind of NAT has to offer so that `session_sync` can carry them.
//!
//! ```text
//! a thread's sessions -- Tap: Put, Gone --> a ring (bounded, one for each thread) --> SyncedFeature::take, on the main thread
//! SyncedFeature::enter, on the main thread --> the thread that owns the session: SyncedStore::enter
//! ```
//! A thread tells of a TCP connection when it is established and when it closes, of other sessions when a look at them some time
//! after their begin finds a second packet: sessions of one packet are not worth the way. What is used is told again by a walk
//! over the table. What a ring has no room for is counted; a session is marked, and reported when there is room, and if the end of one
//! was lost, a walk tells of all sessions, so that the other router knows which are not.
//!
//! Without another router a thread's [`Tap`] is empty, and a session that begins or ends costs one comparison more.

mod feature;
mod ring;
mod store;
mod synced;
mod tap;

pub use feature::{Authority, Counts, Lost, Misfit, Op, Role, SyncedFeature, SyncedFeatures};
pub use ring::Bell;
pub use store::{Candidate, Entered, SyncedStore};
pub use synced::{SyncControl, Synced};
pub use tap::Tap;
