//! A device under test inside the engine: it does to frames exactly what it is told, and says what it did.
//!
//! It is how the engine proves itself. Whatever the tester counts is compared with what the device says, and searches have
//! to find the numbers that were set. With a simulated clock nothing is left to chance.

mod behaviour;
mod bridge;
mod device;
mod nat;
mod path;
mod port;

pub use behaviour::{AddressTable, Behaviour, BehaviourCounts, NatFault, NatTable, Stalls, WhenFull};
pub use port::{Control, SyntheticPort};
