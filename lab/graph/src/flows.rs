//! `flow-64k` and `flow-1m`: look-ups in a flow table, in the three stages of a staged node, a frame of keys at a time.
//!
//! There are no packets: what a node adds to it is the same as on every other path. Each look-up finds a random flow, stores the
//! tick of the packet and counts it, as every feature would.

use std::hint::black_box;
use std::sync::Arc;

use serde::{Deserialize, Serialize};
use shoal_flow::{FlowTable, Ip4Flow, Search, Seed, Settings, TableId, Tick, Timeout};
use shoal_graph::GROUP;
use shoal_graph::clock::{tsc, tsc_hz};

use crate::Result;
use crate::meter::Meter;
use crate::work::{Count, SLICE, Work};

const FRAME: usize = 256;
const SEED: u64 = 1;
/// Times a table is filled, to tell what an insertion costs from what else happens on the machine.
const FILLS: usize = 3;
/// Frames that see the same tick: some ten million packets, as many as come in a second.
const TICK: u64 = 40_000;
const IDLE: Timeout = Timeout::new(0);

/// What a feature keeps of a flow: with key and table it fills a cache line.
#[derive(Clone, Copy, Default)]
struct Value {
    packets: u64,
    bytes: u64,
    _rewrite: [u64; 2],
}

type Table = FlowTable<Ip4Flow, Value>;

/// What filling a table takes.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Filling {
    /// Flows put into an empty table, in a second.
    pub insertions_per_second: f64,
    /// The slowest insertion, in microseconds, with the page faults of memory that is used for the first time.
    pub slowest_us: f64,
    /// The slowest insertion where memory was fetched before.
    pub slowest_ready_us: f64,
    /// Bytes of table for each flow, beside what the feature keeps.
    pub bytes_per_flow: f64,
}

/// The loop with what it needs.
pub struct Flows {
    count: u32,
    table: Table,
    keys: [Ip4Flow; FRAME],
    searches: [Search<Ip4Flow>; FRAME],
    rng: fastrand::Rng,
    frames: u64,
    missed: usize,
    meter: Option<Arc<Meter>>,
}

/// The flow of a number: of random addresses and ports.
fn flow(number: u32) -> Ip4Flow {
    let mixed = number.wrapping_mul(0x9e37_79b1);
    let source = (mixed.into(), (number >> 7) as u16);
    Ip4Flow::new(source, ((!mixed).into(), 443), 6, TableId::DEFAULT)
}

fn empty(flows: u32, ready: u32) -> Result<Table> {
    let settings = Settings::flows(flows).timeout(IDLE, 300).seed(Seed::fixed(SEED)).ready(ready);
    Ok(FlowTable::new(settings, Tick(0))?)
}

impl Flows {
    pub fn new(flows: u32) -> Result<Self> {
        let mut table = empty(flows, 0)?;
        for number in 0..flows {
            table.insert(flow(number), Value::default(), IDLE, Tick(0))?;
        }
        Ok(Flows {
            count: flows,
            table,
            keys: [Ip4Flow::default(); FRAME],
            searches: [Search::default(); FRAME],
            rng: fastrand::Rng::with_seed(SEED),
            frames: 0,
            missed: 0,
            meter: None,
        })
    }

    fn generate(&mut self) {
        if let Some(meter) = &self.meter {
            meter.pause();
        }
        for key in &mut self.keys {
            *key = flow(self.rng.u32(..self.count));
        }
        black_box(&mut self.keys);
        if let Some(meter) = &self.meter {
            meter.resume();
        }
    }
}

impl Work for Flows {
    fn nodes(&self) -> Vec<String> {
        ["generation", "flow-search", "flow-seek", "flow-find"].map(Into::into).into()
    }

    fn slice(&mut self, counts: &mut [Count]) -> u64 {
        counts.fill(Count::default());
        for _ in 0..SLICE / FRAME {
            let start = tsc();
            self.generate();
            let generated = tsc();
            search(&self.table, &self.keys, &mut self.searches);
            let searched = tsc();
            seek(&self.table, &mut self.searches);
            let sought = tsc();
            self.missed += FRAME - find(&mut self.table, &self.searches, Tick(self.frames / TICK));
            let found = tsc();
            self.frames += 1;
            let stages = [(start, generated), (generated, searched), (searched, sought), (sought, found)];
            for (count, (from, to)) in counts.iter_mut().zip(stages) {
                count.add(Count { calls: 1, vectors: FRAME as u64, clocks: to.wrapping_sub(from) });
            }
        }
        SLICE as u64
    }

    fn exclude_generation(&mut self, meter: Arc<Meter>) -> Result<()> {
        self.meter = Some(meter);
        Ok(())
    }

    fn verify(&self) -> Result<()> {
        if self.missed > 0 {
            return Err(format!("{} look-ups found no flow", self.missed).into());
        }
        let counted: u64 = (0..self.count)
            .filter_map(|number| self.table.get(self.table.handle_of(flow(number))?))
            .map(|value| value.packets)
            .sum();
        match self.frames * FRAME as u64 {
            looked if looked == counted => Ok(()),
            looked => Err(format!("{looked} look-ups, {counted} packets counted").into()),
        }
    }

    fn filling(&self) -> Result<Option<Filling>> {
        let hz = tsc_hz();
        let (grown, _) = fill(self.count, 0)?;
        let (ready, table) = fill(self.count, self.count)?;
        let slowest = |clocks: &[u32]| f64::from(clocks.iter().copied().max().unwrap_or_default()) / hz * 1e6;
        let all: u64 = grown.iter().copied().map(u64::from).sum();
        Ok(Some(Filling {
            insertions_per_second: f64::from(self.count) * hz / all.max(1) as f64,
            slowest_us: slowest(&grown),
            slowest_ready_us: slowest(&ready),
            bytes_per_flow: table.usage().bytes as f64 / f64::from(self.count) - size_of::<Value>() as f64,
        }))
    }
}

/// Fills tables that are the same: of each insertion the clocks it took at best, which are its own.
fn fill(flows: u32, ready: u32) -> Result<(Vec<u32>, Table)> {
    let mut best = vec![u32::MAX; flows as usize];
    let mut last = None;
    for _ in 0..FILLS {
        // The one before gives its memory back first.
        drop(last.take());
        let mut table = empty(flows, ready)?;
        let mut before = tsc();
        for (number, best) in (0..flows).zip(&mut best) {
            table.insert(flow(number), Value::default(), IDLE, Tick(0))?;
            let after = tsc();
            *best = (*best).min(u32::try_from(after.wrapping_sub(before)).unwrap_or(u32::MAX));
            before = after;
        }
        last = Some(table);
    }
    Ok((best, last.ok_or("no table was filled")?))
}

#[inline(never)]
fn search(table: &Table, keys: &[Ip4Flow; FRAME], searches: &mut [Search<Ip4Flow>; FRAME]) {
    for (search, key) in searches.iter_mut().zip(keys) {
        *search = table.search(*key);
    }
}

#[inline(never)]
fn seek(table: &Table, searches: &mut [Search<Ip4Flow>; FRAME]) {
    for group in searches.chunks_mut(GROUP) {
        table.seek(group);
    }
}

/// Tells how many were found.
#[inline(never)]
fn find(table: &mut Table, searches: &[Search<Ip4Flow>; FRAME], now: Tick) -> usize {
    let mut found = 0;
    for search in searches {
        if let Some(mut flow) = table.find(search) {
            flow.touch(now);
            let value = flow.value_mut();
            value.packets += 1;
            value.bytes += 64;
            found += 1;
        }
    }
    found
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_look_up_finds_its_flow_and_counts_it() {
        let mut work = Flows::new(5_000).unwrap();
        let mut counts = [Count::default(); 4];
        assert_eq!(work.slice(&mut counts), SLICE as u64);
        assert!(counts.iter().all(|count| count.vectors == SLICE as u64 && count.clocks > 0));
        work.verify().unwrap();
        work.table.remove(work.table.handle_of(flow(7)).unwrap()).unwrap();
        for _ in 0..200 {
            work.slice(&mut counts);
        }
        assert!(work.verify().unwrap_err().to_string().contains("found no flow"));
    }

    #[test]
    fn what_filling_takes_is_told() {
        let filling = Flows::new(20_000).unwrap().filling().unwrap().unwrap();
        assert!(filling.insertions_per_second > 0.0);
        assert!(filling.slowest_us > 0.0 && filling.slowest_ready_us > 0.0);
        assert!((32.0..=64.0).contains(&filling.bytes_per_flow), "{filling:?}");
    }
}
