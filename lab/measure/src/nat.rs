//! Stateful devices: how fast sessions are made and ended, how many there can be, and traffic over them (RFC 9693).
//!
//! Phase 1 sends each four-tuple once from the inside; the responder outside learns what the NAT made of it. Phase 2 sends
//! over what exists. Plain throughput, loss, latency and delay variation over connections are the ordinary tests, given
//! [`Established`] traffic.

mod capacity;
mod established;
mod scaling;
mod setup;
mod teardown;

pub use capacity::{Capacity, CapacityFound};
pub use established::Established;
pub use scaling::{StateScaling, StateScalingPoint};
pub use setup::{Setup, SetupFound};
pub use teardown::{Teardown, TeardownRun};

use shoal_lab_plan::DeviceError;

/// What a test asks of a stateful device.
pub trait Sessions {
    /// Forgets all sessions: by the device's own command, or by a restart. Returns when it is done.
    ///
    /// # Errors
    ///
    /// If it cannot.
    fn clear(&mut self) -> Result<(), DeviceError>;
}

impl<F: FnMut() -> Result<(), DeviceError>> Sessions for F {
    fn clear(&mut self) -> Result<(), DeviceError> {
        self()
    }
}
