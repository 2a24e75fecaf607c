//! A whole run, from the first scenario to the file.

use std::collections::BTreeMap;
use std::time::{Duration, Instant};

use shoal_testkit::alloc::allocations;

use crate::arguments::Arguments;
use crate::control_loop::Pace;
use crate::instructions::Counter;
use crate::machine::{self, Machine};
use crate::results::{Measurement, Results};
use crate::scenario::{self, PathKind, Scenario};
use crate::statistics::summary;
use crate::window::{Measured, Window, measure};
use crate::work::{self, Count, Work};
use crate::{Result, report, scaling};

/// Fewest windows of a scenario, and how long one is.
const FEWEST: usize = 15;
const WINDOW: f64 = 0.1;
/// Slices in which allocations are counted.
const SLICES: usize = 256;

/// Runs the chosen scenarios, prints and writes what they say.
pub fn all(arguments: &Arguments) -> Result<()> {
    let (scenarios, scaling) = chosen(&arguments.scenario)?;
    let processors = machine::cpus();
    let (cpu, cpus) = machine::pin(arguments.cpu)?;
    let mut results = Results { machine: Machine::new(cpu, cpus), ..Results::default() };
    let counter = if arguments.no_instructions {
        Counter::Skipped("--no-instructions".into())
    } else {
        Counter::find()
    };
    results.instructions_by = counter.name();
    if !scenarios.is_empty() {
        print!("{}", report::head(&results));
    }
    let (steal, start) = (machine::steal(None), Instant::now());
    for scenario in &scenarios {
        let (measurement, nodes, best) = one(scenario, arguments.seconds, cpu, &counter)?;
        results.machine.control = results.machine.control.min(best);
        print!("{}", report::scenario(scenario, &measurement, &nodes));
        results.scenarios.push(measurement);
    }
    match (scaling, processors.len()) {
        (true, 0 | 1) => println!("{}: SKIPPED, there is one processor", scaling::NAME),
        (true, _) => {
            eprintln!("{}: one worker alone, and two ...", scaling::NAME);
            let found = scaling::measure(&processors, arguments.seconds * 3.0)?;
            print!("{}", scaling::report(&found));
            results.scaling = Some(found);
        }
        (false, _) => {}
    }
    let ticks = machine::steal(None).saturating_sub(steal) as f64;
    // The kernel's ticks are hundredths of a second, of each processor.
    results.machine.steal =
        ticks / 100.0 / (start.elapsed().as_secs_f64() * results.machine.processors as f64);
    results.machine.load_after = machine::load();
    if !results.scenarios.is_empty() {
        print!("{}", report::tail(&results));
    }
    results.write(&arguments.json)?;
    println!("written: {}", arguments.json.display());
    judge(&results)
}

/// The scenarios of these names, and whether the one of two workers is among them; all when there are no names.
fn chosen(names: &[String]) -> Result<(Vec<Scenario>, bool)> {
    let (of_workers, others): (Vec<String>, Vec<String>) =
        names.iter().cloned().partition(|name| name == scaling::NAME);
    if others.is_empty() && !of_workers.is_empty() {
        return Ok((Vec::new(), true));
    }
    Ok((scenario::chosen(&others)?, names.is_empty() || !of_workers.is_empty()))
}

/// What ends a run with an error although it was measured: packets that allocate.
fn judge(results: &Results) -> Result<()> {
    let guilty: Vec<&str> =
        results.scenarios.iter().filter(|s| s.allocations > 0.0).map(|s| s.name.as_str()).collect();
    if guilty.is_empty() { Ok(()) } else { Err(format!("packets allocate in {}", guilty.join(", ")).into()) }
}

/// One scenario: what it says, its nodes in the order of the path, the control loop at its best.
fn one(
    scenario: &Scenario,
    seconds: f64,
    cpu: usize,
    counter: &Counter,
) -> Result<(Measurement, Vec<String>, Pace)> {
    let mut work = work::prepare(scenario)?;
    let wanted = FEWEST.max((seconds / WINDOW).round() as usize);
    let long = Duration::from_secs_f64(seconds / wanted as f64);
    eprintln!("{}: {wanted} windows of {:.2} s ...", scenario.name, long.as_secs_f64());
    let nodes = work.nodes();
    let measured = measure(&mut *work, cpu, wanted, long);
    let mut measurement = sum_up(&nodes, &measured);
    measurement.name = scenario.name.into();
    measurement.feature = scenario.way != PathKind::Ruler;
    measurement.allocations = allocations_per_packet(&mut *work);
    work.verify()?;
    if !matches!(counter, Counter::Skipped(_)) {
        eprintln!("{}: instructions by {} ...", scenario.name, counter.name());
    }
    measurement.instructions = counter.per_packet(scenario, &mut *work)?;
    measurement.filling = work.filling()?;
    Ok((measurement, nodes, measured.control))
}

fn allocations_per_packet(work: &mut dyn Work) -> f64 {
    let mut counts = vec![Count::default(); work.nodes().len()];
    let mut packets = 0;
    let count = allocations(|| packets = (0..SLICES).map(|_| work.slice(&mut counts)).sum());
    count as f64 / packets.max(1) as f64
}

fn sum_up(nodes: &[String], measured: &Measured) -> Measurement {
    let of = |f: &dyn Fn(&Window) -> f64| summary(measured.windows.iter().map(f)).unwrap_or_default();
    let path = of(&|w| w.path());
    let mut measurement = Measurement {
        clocks_min: path.min,
        clocks_median: path.median,
        clocks_spread: path.spread,
        windows: measured.windows.len(),
        disturbed: measured.disturbed,
        ..Measurement::default()
    };
    for (at, name) in nodes.iter().enumerate() {
        let clocks = of(&|w| w.clocks(at));
        if at == 0 {
            measurement.generation = clocks.min;
        } else {
            measurement.nodes.insert(name.clone(), clocks.min);
            measurement.nodes_median.insert(name.clone(), clocks.median);
        }
        let all = measured.windows.iter().filter_map(|w| w.nodes.get(at));
        let (vectors, calls) = all.fold((0, 0), |(v, c), n| (v + n.vectors, c + n.calls));
        measurement.vectors_per_call.insert(name.clone(), vectors as f64 / calls.max(1) as f64);
    }
    let (slices, left_out) = measured.windows.iter().fold((0, 0), |(s, l), w| (s + w.slices, l + w.left_out));
    measurement.left_out = left_out as f64 / (slices + left_out).max(1) as f64;
    measurement.dropped = measured.dropped.iter().fold(BTreeMap::new(), |mut all, why| {
        *all.entry(why.name().to_owned()).or_default() += 1;
        all
    });
    measurement
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_path_allocates_nothing() {
        for name in ["ip4-1-nodes", "ip4-1", "ip4-1-vec12", "ruler-fused"] {
            let mut work = work::prepare(&scenario::find(name).unwrap()).unwrap();
            let allocations = allocations_per_packet(&mut *work);
            assert!(allocations == 0.0, "{name}: {allocations} allocations per packet");
        }
    }

    #[test]
    fn a_run_with_allocations_ends_with_an_error_that_names_the_scenario() {
        let clean = Measurement { name: "clean".into(), ..Measurement::default() };
        let dirty = Measurement { name: "dirty".into(), allocations: 0.001, ..Measurement::default() };
        let mut results = Results { scenarios: vec![clean], ..Results::default() };
        assert!(judge(&results).is_ok());
        results.scenarios.push(dirty);
        assert_eq!(judge(&results).unwrap_err().to_string(), "packets allocate in dirty");
    }

    #[test]
    fn generation_is_told_apart_from_the_path() {
        let count = |clocks| Count { calls: 2, vectors: 20, clocks };
        let window = |a, b| Window {
            nodes: vec![count(1000), count(a), count(b)],
            packets: 20,
            slices: 3,
            left_out: 1,
            ..Window::default()
        };
        let names = ["pg-input".to_owned(), "a".to_owned(), "b".to_owned()];
        let measured = Measured {
            windows: vec![window(100, 40), window(60, 100)],
            dropped: vec![crate::window::Disturbance::Steal; 2],
            disturbed: false,
            control: Pace::default(),
        };
        let m = sum_up(&names, &measured);
        assert_eq!((m.clocks_min, m.clocks_median, m.generation), (7.0, 7.5, 50.0));
        assert_eq!(m.nodes, BTreeMap::from([("a".into(), 3.0), ("b".into(), 2.0)]));
        assert_eq!(m.vectors_per_call.get("pg-input"), Some(&10.0));
        assert_eq!((m.left_out, m.dropped["stolen time"]), (0.25, 2));
    }
}
