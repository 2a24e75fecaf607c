//! The device restarts while frames flow (RFC 6201). The reset goes on in a thread of its own, beside the trial.

use std::sync::{Arc, Mutex, PoisonError};
use std::thread::JoinHandle;
use std::time::Duration;

use shoal_lab_measure::{MeasureError, Report, ResetTest, Resets, Runner, Traffic};
use shoal_lab_plan::{Device, DeviceError, Reset};

/// The ways that are tried, each a result of its own. Those a device cannot do are told.
const KINDS: [(Reset, &str); 3] =
    [(Reset::Restart, "restart"), (Reset::Crash, "crash"), (Reset::Flap, "flap")];

/// Measures each way of restarting.
///
/// # Errors
///
/// If the device could be reset in no way.
pub fn run(
    runner: &mut Runner<'_>,
    traffic: &dyn Traffic,
    device: &mut Option<Box<dyn Device>>,
    rate: u64,
) -> Result<Report, MeasureError> {
    let Some(taken) = device.take() else {
        let none = DeviceError::Cannot { device: "no device".into(), what: "be reset".into() };
        return Err(none.into());
    };
    let mut beside = Beside { device: Arc::new(Mutex::new(taken)), under_way: None };
    let result = each_kind(runner, traffic, &mut beside, rate);
    let _ = beside.finish();
    // The thread that reset it has ended, so it has no other owner.
    *device =
        Arc::try_unwrap(beside.device).ok().map(|d| d.into_inner().unwrap_or_else(PoisonError::into_inner));
    result
}

fn each_kind(
    runner: &mut Runner<'_>,
    traffic: &dyn Traffic,
    beside: &mut Beside,
    rate: u64,
) -> Result<Report, MeasureError> {
    let mut report = Report::default();
    let case = runner.case.clone();
    for (kind, name) in KINDS {
        let duration = runner.conduct.duration.max(Duration::from_secs(5));
        let test = ResetTest { rate, kind, at: duration / 5, duration };
        runner.case.variant =
            if case.variant.is_empty() { name.into() } else { format!("{}, {name}", case.variant) };
        match test.measure(runner, traffic, beside) {
            Ok(runs) => report.rows.extend(test.rows(runner, &runs)),
            Err(MeasureError::Device(error @ DeviceError::Cannot { .. })) => {
                runner.remark(&error.to_string());
            }
            Err(error) if report.rows.is_empty() => return Err(error),
            Err(error) => {
                report.ended = Some(error);
                break;
            }
        }
    }
    runner.case = case;
    if report.rows.is_empty() {
        return Err(MeasureError::Setting {
            what: "reset",
            value: runner.case.dut.clone(),
            nearest: "it can be reset in no way that the lab knows".into(),
        });
    }
    Ok(report)
}

/// A device that is reset by another thread.
struct Beside {
    device: Arc<Mutex<Box<dyn Device>>>,
    under_way: Option<JoinHandle<Result<(), DeviceError>>>,
}

impl Resets for Beside {
    fn begin(&mut self, kind: Reset) {
        let device = Arc::clone(&self.device);
        self.under_way = Some(std::thread::spawn(move || {
            device.lock().unwrap_or_else(PoisonError::into_inner).reset(kind)
        }));
    }

    fn finish(&mut self) -> Result<(), DeviceError> {
        let Some(thread) = self.under_way.take() else { return Ok(()) };
        thread.join().unwrap_or_else(|_| {
            Err(DeviceError::Died {
                device: "the device".into(),
                reason: "its reset did not come to an end".into(),
            })
        })
    }
}
