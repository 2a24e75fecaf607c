//! Traffic over connections that exist (RFC 9693 4.5): with it the ordinary tests run over a stateful device.

use std::time::Duration;

use shoal_lab_plan::{Side, Stream};

use super::{Sessions, Setup};
use crate::{MeasureError, Offer, Runner, StatefulTraffic, Traffic};

/// Connections that were made, as [`Traffic`]. The NAT's timeouts must be longer than the tests that use it.
pub struct Established<'t> {
    traffic: &'t dyn StatefulTraffic,
    tuples: u64,
}

impl<'t> Established<'t> {
    /// Phase 1: makes `tuples` connections at `rate`, a safe one, and waits for `pause`.
    ///
    /// # Errors
    ///
    /// If not all of them could be made: siitperf's "Failed to fill state table".
    pub fn make(
        runner: &mut Runner<'_>,
        traffic: &'t dyn StatefulTraffic,
        device: &mut dyn Sessions,
        tuples: u64,
        rate: u64,
        pause: Duration,
    ) -> Result<Established<'t>, MeasureError> {
        runner.begin("nat-preliminary", 1, 1);
        let shown = Setup::fill(runner, traffic, device, tuples, rate)?;
        if !Setup::is_filled(&shown, tuples) {
            return Err(MeasureError::Setting {
                what: "preliminary rate",
                value: rate.to_string(),
                nearest: format!(
                    "failed to fill the state table: {} of {tuples} connections came through; take a lower rate",
                    shown.outcome.direction(Side::Left).received
                ),
            });
        }
        runner.wait(pause)?;
        Ok(Established { traffic, tuples })
    }
}

impl Traffic for Established<'_> {
    fn streams(&self, offer: &Offer) -> Result<Vec<Stream>, MeasureError> {
        self.traffic.over(self.tuples, offer)
    }

    fn size(&self) -> u32 {
        self.traffic.size()
    }

    fn sides(&self) -> Vec<Side> {
        Side::BOTH.to_vec()
    }
}
