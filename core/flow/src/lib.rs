//! A table of flows: what a feature keeps of each connection, host or session, found by a key of fixed size.
//!
//! ```text
//!             hash           bucket: one line               entry
//!  key ──── seed ───► first ──► [12 tags | away | 12 numbers] ──► [generation, last seen, links of the wheel | key | value]
//!                └──► second ─► [12 tags | ...
//! ```
//!
//! A flow is in one of the two buckets that its hash names, in the first if there was room: a look-up reads one line of the
//! index and the flow's own. Both are asked for ahead, for a whole frame, in three stages:
//!
//! 1. [`FlowTable::search`] hashes a key and asks memory for its first bucket;
//! 2. [`FlowTable::seek`] compares the tags of up to 32 searches, and asks memory for the entries;
//! 3. [`FlowTable::find`] compares the key, and gives the flow.
//!
//! That is `prepare`, `seek` and `packet` of a staged node, and `begin`, `advance` and `find` of a lookup on a superpath.
//! Between the stages flows may come and go: the third looks again where the second did not find.
//!
//! * **One owner.** A table belongs to one worker, which changes it by `&mut`: no locks, no atomics.
//! * **No stall.** The index grows by a bucket at a time ([linear hashing][lh]), in address space that was reserved when
//!   the table was made: an insertion moves twelve flows at most, and there is never a second index beside the first.
//!   [Expiry](FlowTable::expire) and [deletion in bulk](FlowTable::sweep) are done in steps of as many flows as the caller says.
//! * **Bounded.** Flows and bytes have limits; an insertion beyond them is an [error](InsertError) that names the limit.
//! * **No chains.** The hash has a random [`Seed`], so that senders who choose addresses and ports do not choose buckets. A full
//!   bucket has no overflow list: a flow moves one of 24 others to its other bucket, or is refused.
//! * **Expiry.** Each flow has one timer in a [wheel](shoal_infra::wheel). A packet stores the time, and only if it is another
//!   tick than before; the timer is moved when its old time comes.
//!
//! ```
//! use shoal_flow::{FlowTable, Ip4Flow, Settings, TableId, Tick, Timeout};
//!
//! const UDP: Timeout = Timeout::new(0);
//! // At most 1,000 flows; a tick is a second; flows of the timeout `UDP` end after 300 without a packet.
//! let settings = Settings::flows(1_000).timeout(UDP, 300);
//! let mut table = FlowTable::<Ip4Flow, u64>::new(settings, Tick(0))?;
//!
//! let source = ([10, 0, 0, 1].into(), 5000);
//! let key = Ip4Flow::new(source, ([192, 0, 2, 1].into(), 53), 17, TableId::DEFAULT);
//! let handle = table.insert(key, 1, UDP, Tick(5))?;
//!
//! // A packet, in stages; in a node there are many searches in each.
//! let mut searches = [table.search(key)];
//! table.seek(&mut searches);
//! for search in &searches {
//!     let mut flow = table.find(search).ok_or("no such flow")?;
//!     flow.touch(Tick(9));
//!     *flow.value_mut() += 1;
//! }
//! assert_eq!(table.get(handle), Some(&2));
//!
//! // 300 ticks after its last packet it is gone, and so is what the handle named.
//! assert_eq!(table.expire(Tick(308), 64, |_, _| {}).removed, 0);
//! assert_eq!(table.expire(Tick(309), 64, |key, packets| println!("{key:?}: {packets} packets")).removed, 1);
//! assert_eq!((table.get(handle), table.len()), (None, 0));
//! # Ok::<(), Box<dyn std::error::Error>>(())
//! ```
//!
//! [lh]: https://en.wikipedia.org/wiki/Linear_hashing
#![forbid(unsafe_code)]

mod bucket;
mod entry;
mod expiry;
mod hash;
mod index;
mod key;
mod search;
mod settings;
mod sweep;
mod table;
#[cfg(test)]
mod tests;

pub use entry::{Flow, Handle};
pub use expiry::{Expired, Tick, Timeout};
pub use hash::Seed;
pub use key::{FlowKey, Ip4Flow, Ip6Flow, TableId};
pub use search::Search;
pub use settings::{InsertError, Settings, TableError, Usage};
pub use sweep::{Sweep, SweepAction};
pub use table::FlowTable;
