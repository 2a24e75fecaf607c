//! Instructions per packet: of the processor's counter where there is one, else of valgrind.
//!
//! Only the path is counted: the meter rests while packets are made.

use std::io;
use std::process::{Command, Stdio};
use std::sync::Arc;

use crate::Result;
use crate::meter::Meter;
use crate::scenario::{Scenario, find};
use crate::sys;
use crate::work::{self, Count, SLICE, Work};

/// Slices that are counted, and those before that warm up.
const SLICES: usize = 256;
const WARM: usize = 16;

/// Who counts.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Counter {
    Perf,
    Valgrind,
    /// Not counted, and why.
    Skipped(String),
}

impl Counter {
    /// The best there is here.
    pub fn find() -> Counter {
        let perf = match counts() {
            Ok(()) => return Counter::Perf,
            Err(e) => e,
        };
        match Command::new("valgrind").arg("--version").stdout(Stdio::null()).status() {
            Ok(status) if status.success() && cfg!(target_arch = "x86_64") => Counter::Valgrind,
            _ => Counter::Skipped(format!("no performance counters ({perf}) and no valgrind")),
        }
    }

    pub fn name(&self) -> String {
        match self {
            Counter::Perf => "performance counter".into(),
            Counter::Valgrind => "valgrind".into(),
            Counter::Skipped(why) => format!("SKIPPED: {why}"),
        }
    }

    /// Instructions per packet of a scenario; `None` without a counter.
    pub fn per_packet(&self, scenario: &Scenario, work: &mut dyn Work) -> Result<Option<f64>> {
        match self {
            Counter::Perf => perf(work).map(Some),
            Counter::Valgrind => valgrind(scenario).map(Some),
            Counter::Skipped(_) => Ok(None),
        }
    }
}

/// Whether the processor's counter is there and moves: some virtual machines have one that stands still.
fn counts() -> io::Result<()> {
    let counter = sys::Instructions::open()?;
    counter.enable();
    std::hint::black_box((0..1000u32).map(std::hint::black_box).sum::<u32>());
    counter.disable();
    if counter.read()? > 1000 { Ok(()) } else { Err(io::Error::other("the counter stands still")) }
}

fn perf(work: &mut dyn Work) -> Result<f64> {
    let meter = Arc::new(Meter::Perf(sys::Instructions::open()?));
    work.exclude_generation(Arc::clone(&meter))?;
    let packets = run(work, &meter, SLICES);
    let Meter::Perf(counter) = &*meter else { return Err("not a performance counter".into()) };
    Ok(counter.read()? as f64 / packets.max(1) as f64)
}

/// Runs slices with the meter on; tells how many packets were counted. The meter is off before and after.
fn run(work: &mut dyn Work, meter: &Meter, slices: usize) -> u64 {
    let mut counts = vec![Count::default(); work.nodes().len()];
    meter.resume();
    let packets = (0..slices).map(|_| work.slice(&mut counts)).sum();
    meter.pause();
    packets
}

/// Runs this program under valgrind with two numbers of packets; the difference leaves out what is counted once.
fn valgrind(scenario: &Scenario) -> Result<f64> {
    let count = |slices: usize| -> Result<u64> {
        let program = std::env::current_exe()?;
        let options = ["--tool=callgrind", "--callgrind-out-file=/dev/null"];
        let quiet = ["--instr-atstart=no", "--collect-atstart=no"];
        let output = Command::new("valgrind")
            .args(options)
            .args(quiet)
            .arg(program)
            .args(["count", "--scenario", scenario.name, "--slices", &slices.to_string()])
            .output()?;
        let text = String::from_utf8_lossy(&output.stderr);
        let wrong = || format!("valgrind: {}", text.lines().last().unwrap_or("no output"));
        if !output.status.success() {
            return Err(wrong().into());
        }
        collected(&text).ok_or_else(|| wrong().into())
    };
    let (few, many) = (SLICES / 4, SLICES);
    let difference = count(many)?.checked_sub(count(few)?).ok_or("valgrind counted less for more packets")?;
    // A slice is made of whole frames.
    let slice = (SLICE / scenario.frame).max(1) * scenario.frame;
    Ok(difference as f64 / ((many - few) * slice) as f64)
}

/// What callgrind says at its end: `==1== Collected : 1234`.
fn collected(text: &str) -> Option<u64> {
    text.lines().find_map(|l| l.split_once("Collected : ")?.1.trim().parse().ok())
}

/// The part that runs under valgrind.
pub fn count_here(name: &str, slices: usize) -> Result<()> {
    let scenario = find(name)?;
    let mut work = work::prepare(&scenario)?;
    let meter = Arc::new(Meter::Valgrind);
    let mut counts = vec![Count::default(); work.nodes().len()];
    for _ in 0..WARM {
        work.slice(&mut counts);
    }
    work.exclude_generation(Arc::clone(&meter))?;
    sys::valgrind_start_instrumentation();
    run(&mut *work, &meter, slices);
    work.verify()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_last_line_of_callgrind_is_read() {
        let text = "==7== Events    : Ir\n==7== Collected : 123456\n==7== \n==7== I   refs:      123,456\n";
        assert_eq!(collected(text), Some(123_456));
        assert_eq!(collected("==7== Fatal"), None);
    }

    #[test]
    fn outside_of_valgrind_its_meter_changes_nothing() {
        let mut work = work::prepare(&find("ip4-1").unwrap()).unwrap();
        let meter = Arc::new(Meter::Valgrind);
        work.exclude_generation(Arc::clone(&meter)).unwrap();
        assert_eq!(run(&mut *work, &meter, 2), 2 * SLICE as u64);
        work.verify().unwrap();
    }
}
