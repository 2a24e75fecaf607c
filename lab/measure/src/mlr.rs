//! MLRsearch: several loss goals in one search that puts up with noise (RFC 9971).
//!
//! A load is a *lower bound* of a goal if trials that lose more than the goal allows cannot take up more than the *exceed
//! ratio* of the *duration sum*, and an *upper bound* the other way round. So single unlucky trials cost nothing, and RFC 2544
//! is the special case in which none may be unlucky.

mod bounds;
mod goal;
mod search;

pub use bounds::{Bounds, Class, LoadTrial, Loads, classify, conditional_throughput};
pub use goal::{Goal, Target};
pub use search::{GoalResult, MlrSearch};
