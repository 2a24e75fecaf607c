//! What a test cost in energy, where a meter exists; in CPU time where none does.
//!
//! A [`Meter`] is opened from a [`Source`] and knows two calls: [`Meter::start`] when sending begins and [`Meter::stop`]
//! when it ends. Between them a thread looks at the source at 1 Hz. Power is integrated by the trapezium rule; an energy
//! counter, where the source has one, is the check and not the result, because such counters often step in whole
//! watt-hours, which is a sixth of what a two-minute trial takes.
//!
//! Two kinds of figures never mix. A [`Reading`] says its [`scope`](Reading::scope): a wall socket and a processor package
//! are different things. And [`cpu_seconds_per_million`] is CPU time, reported under its own name: it is what remains
//! where no meter exists, and it is not energy, since a poll-mode router uses its whole processor at no load too.
#![forbid(unsafe_code)]

mod command;
mod efficiency;
mod error;
mod integral;
mod meter;
mod rapl;
mod raritan;
mod reading;
mod source;

pub use efficiency::{Efficiency, cpu_seconds_per_million, metric};
pub use error::EnergyError;
pub use meter::Meter;
pub use raritan::{OutletOrInlet, Raritan};
pub use reading::{Gap, PowerSample, Reading};
pub use source::Source;
