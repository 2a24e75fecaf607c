//! What a meter gave.

use serde::{Deserialize, Serialize};

/// What a meter gave between `start` and `stop`.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Reading {
    /// `snmp-raritan`, `rapl`, `command`, `none`.
    pub source: String,
    /// What was measured: `outlet 3 of PDU 1 (wall)`, `package-0, dram (not wall)`. Different scopes do not compare.
    pub scope: String,
    /// Watt-hours; `None` is "not measured".
    pub wh: Option<f64>,
    /// Mean power in watts; `None` is "not measured".
    pub watts: Option<f64>,
    /// Seconds from the first to the last look.
    pub seconds: f64,
    /// Each look's power.
    pub samples: Vec<PowerSample>,
    /// Times in which looks failed. Power is taken to run straight from the look before to the look after.
    pub gaps: Vec<Gap>,
    /// What the source's own energy counter says, in watt-hours: a check only.
    pub counter_wh: Option<f64>,
    /// What is to be known when reading it.
    pub notes: Vec<String>,
}

/// Power at a time.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct PowerSample {
    /// Seconds since the start.
    pub at: f64,
    /// Watts; of RAPL, the mean since the look before.
    pub watts: f64,
}

/// A time without a look that succeeded.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct Gap {
    /// Seconds since the start: the last look that succeeded.
    pub from: f64,
    /// Seconds since the start: the next look that succeeded, or the end.
    pub to: f64,
    /// Why the first of the looks failed.
    pub why: String,
}

impl Reading {
    /// Nothing was measured.
    pub fn not_measured(seconds: f64) -> Self {
        Reading { source: "none".into(), scope: "not measured".into(), seconds, ..Reading::default() }
    }

    /// Whether it has a figure.
    pub fn is_measured(&self) -> bool {
        self.wh.is_some()
    }

    /// Watt-hours above what `idle` (the device doing nothing, measured by the same source and scope) would have taken in
    /// the same time. `None` if either was not measured or they measured different things. Less than 0 is possible
    /// and is noise: it is given as it is.
    pub fn above_idle(&self, idle: &Reading) -> Option<f64> {
        if self.source != idle.source || self.scope != idle.scope {
            return None;
        }
        Some(self.wh? - idle.watts? * self.seconds / 3600.0)
    }
}
