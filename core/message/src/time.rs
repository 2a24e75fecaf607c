//! Times, as all messages have them: seconds, with a fraction.

use shoal_derive::Value;

/// A time of day: seconds since 1970 began, or since the router started, as the field says.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq)]
#[value(alias)]
pub struct Timestamp(pub f64);

/// A span of time in seconds.
#[derive(Value, Clone, Copy, Debug, Default, PartialEq)]
#[value(alias)]
pub struct Timedelta(pub f64);
