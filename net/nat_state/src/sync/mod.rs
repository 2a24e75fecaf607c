//! Sessions that another router knows, too: what a kind of NAT has to offer so that `session_sync` can carry them.
//!
//! ```text
//! a thread's sessions -- Tap: Put, Gone --> Ring (bounded, one for each thread) --> SyncedFeature::take, on the main thread
//! SyncedFeature::enter, on the main thread --> the thread that owns the session: SyncedStore::enter
//! ```
//! A thread tells of a TCP connection when it is established and when it closes, of other sessions when a look at them some time
//! after their begin finds a second packet: sessions of one packet are not worth the way. What is used is told again by a walk
//! over the table. A ring that is full loses what it is told, counts it, and is repaired by a walk that tells of all sessions.
//!
//! Without another router a thread's [`Tap`] is empty, and a session that begins or ends costs one comparison more.

mod feature;
mod store;
mod synced;
mod tap;

pub use feature::{Authority, Counts, Misfit, Op, Role, SyncedFeature, SyncedFeatures};
pub use store::{Candidate, Entered, SyncedStore};
pub use synced::{SyncControl, Synced};
pub use tap::{Bell, Ring, Tap, Told};
