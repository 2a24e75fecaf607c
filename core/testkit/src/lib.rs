//! The whole router in one process, with a clock that tests move: inject, run until idle, look.
//!
//! [`Router`] is what most tests use, with [`STACK`] if it is to speak IPv4. [`node`] runs one packet through one
//! node, [`fuzz_all_nodes`] sends rubbish to every node, [`alloc`] counts allocations, [`netns`] makes real hosts.
//! For tests in a crate's `tests/` folder: a unit test inside `src/` would meet a second copy of its own crate here.
//!
//! ```
//! use shoal_testkit::Router;
//! let mut router = Router::new(&[]);
//! router.run();
//! assert_eq!(router.buffers_in_use(), 0);
//! ```
#![deny(unsafe_code)]
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "this crate is part of tests: a failure here is a test's failure, told at once"
)]

pub mod alloc;
pub mod api;
mod ask;
mod fuzz;
mod injector;
mod listener;
pub mod nat_bed;
pub mod netns;
pub mod node;
mod probe;
mod processor_time;
mod race;
mod rng;
mod router;
mod stack;
pub mod toy;
mod twins;
pub mod two_hosts;

pub use ask::ApiAsker;
pub use fuzz::{Fuzzed, fuzz_all_nodes};
pub use injector::{HAND, InjectedPacket, PacketInjector};
pub use listener::Listener;
pub use processor_time::processor_time;
pub use race::{must_go_on, race_time};
pub use rng::Rng;
pub use router::{CliFn, Config, Port, Router};
pub use stack::{PEER, PEER_MAC, STACK, US};
pub use twins::{Twin, Twins};

pub use shoal_wire::Packet as PacketBuilder;
