//! Raw structures behind safe APIs: what every other crate of the router builds its tables from.
//!
//! Workers read, one control thread writes, no thread waits. The pieces that make this work are [`qsbr`] (when may
//! memory be freed), [`qsbr::Published`] (a whole value replaced at once), and structures that never move and are
//! updated in place.
//!
//! All `unsafe` of this crate is under `raw/`; each file there begins with its invariant.
//! With `--cfg loom` only the lock-free pieces are built, on loom's atomics, for model checking.
#![deny(unsafe_code)]

#[allow(unsafe_code)]
mod raw;
mod sync;

pub mod bitmap;
#[cfg(not(loom))]
pub mod budget;
#[cfg(not(loom))]
pub mod mtrie;
mod padded;
#[cfg(not(loom))]
mod pieces;
pub mod pool;
pub mod qsbr;
#[cfg(not(loom))]
pub mod scheduling {
    //! How the kernel schedules a thread.
    pub use crate::raw::scheduling::set;
}
#[cfg(not(loom))]
pub mod segment;
mod shares;
pub mod spsc;
pub mod timer_wheel;
pub mod twin;
pub mod wheel;

pub use bitmap::Bitmap;
#[cfg(not(loom))]
pub use mtrie as mtrie4;
#[cfg(not(loom))]
pub use mtrie::{Mtrie, Mtrie4, Mtrie4Writer, Mtrie6, Mtrie6Writer, MtrieWriter};
pub use padded::{PADDING, Padded};
#[cfg(not(loom))]
pub use pieces::Pieces;
pub use pool::{Handle, Pool, PoolFull};
pub use qsbr::{Guard, OwnReaderOnline, Published, Reader};
#[cfg(not(loom))]
pub use raw::arena::{StableArena, StableBox};
pub use raw::prefetch::{prefetch_address, prefetch_far, prefetch_read};
#[cfg(not(loom))]
pub use raw::region::{Backing, Pages, Region};
pub use raw::simd::equal_bytes;
#[cfg(not(loom))]
pub use raw::stable_vec::StableVec;
pub use raw::zeroable::Zeroable;
#[cfg(not(loom))]
pub use segment::{SegmentFull, SegmentView, SharedSegment, U64Slice};
pub use shares::Shares;
pub use timer_wheel::{TimerHandle, TimerWheel};
#[cfg(not(loom))]
pub use twin::{StoreError, TwinTable, TwinTableWriter};
pub use twin::{TwinCell, TwinWriter, twin_cell};
pub use wheel::{Links, Step, Timers, Wheel};
