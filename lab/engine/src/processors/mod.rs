//! Who has the processors while the tester and the device want them.
//!
//! `files` reads what the kernel tells below `/proc`, a [`Look`] is all of it at one moment, and what happened between two
//! looks is [`Processors`](shoal_lab_plan::Processors). [`Accounted`] looks before and after each trial of a tester.

mod accounted;
mod difference;
mod files;
mod look;
#[cfg(test)]
mod tests;

pub use accounted::Accounted;
pub use look::{Look, Whose};
