//! What can be measured: something that moves packets and counts clocks.

use std::sync::Arc;

use crate::Result;
use crate::flows::{Filling, Flows};
use crate::measurement_loop::MeasurementLoop;
use crate::meter::Meter;
use crate::router::Router;
use crate::scenario::{PathKind, Routes, Scenario};

/// Packets of one slice, about. Short enough that most slices are not interrupted, even on a busy machine.
pub const SLICE: usize = 1024;

/// What one node did.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Count {
    pub calls: u64,
    pub vectors: u64,
    pub clocks: u64,
}

impl Count {
    pub fn add(&mut self, more: Count) {
        self.calls += more.calls;
        self.vectors += more.vectors;
        self.clocks += more.clocks;
    }
}

/// Moves packets in slices of about [`SLICE`], without allocating.
pub trait Work {
    /// Names of what it counts. The first makes the packets and is no part of the path.
    fn nodes(&self) -> Vec<String>;

    /// Runs one slice and puts what each node did into `counts`, which has a place for each; tells how many
    /// packets.
    fn slice(&mut self, counts: &mut [Count]) -> u64;

    /// From now on the meter rests while packets are made.
    fn exclude_generation(&mut self, meter: Arc<Meter>) -> Result<()>;

    /// Whether all packets so far were forwarded correctly, and no buffer is missing.
    fn verify(&self) -> Result<()>;

    /// What filling its flow table takes; `None` without one.
    fn filling(&self) -> Result<Option<Filling>> {
        Ok(None)
    }
}

/// Sets a scenario up.
pub fn prepare(scenario: &Scenario) -> Result<Box<dyn Work>> {
    let mut work: Box<dyn Work> = match (scenario.way, scenario.routes) {
        (PathKind::Flows, Routes::Flows(flows)) => Box::new(Flows::new(flows)?),
        (PathKind::Ruler, _) => Box::new(MeasurementLoop::new(Router::new(scenario)?)?),
        _ => Box::new(Router::new(scenario)?),
    };
    // A first slice finds out which nodes there are.
    let mut counts = vec![Count::default(); work.nodes().len()];
    for _ in 0..8 {
        work.slice(&mut counts);
    }
    work.verify()?;
    Ok(work)
}
