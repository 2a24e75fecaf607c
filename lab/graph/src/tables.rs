//! Tables of the Internet's size: how fast they are filled, what a route takes, how soon the loss of a next hop that half
//! a million routes share has taken effect on packets, and how fast a bridge domain learns.

use std::collections::BTreeMap;
use std::fs::File;
use std::io::BufWriter;
use std::net::{IpAddr, Ipv4Addr};
use std::path::Path as FilePath;
use std::time::Instant;

use clap::ValueEnum;
use serde::Serialize;
use shoal_adj::{AdjIndex, Adjacencies};
use shoal_cli::Cli;
use shoal_fib::{Fib, FibIndex, Path, Reach, Source, consecutive};
use shoal_infra::{Reader, qsbr};
use shoal_interface::SwIfIndex;
use shoal_lab_routes::commands::{self as lines, Wanted};
use shoal_module::cli::WIRE;
use shoal_wire::{Ip4Prefix, IpPrefix};

use crate::Result;
use crate::full_table::{self, NEXT_HOPS};
use crate::learning;
use crate::router::{MODULES, Router};
use crate::scenario::{self, Ip};
use crate::statistics::summary;

/// Where the results are written.
pub const RESULTS: &str = "target/bench-tables.json";
/// Times each is measured.
pub const ROUNDS: usize = 5;
/// Routes that lose a next hop.
const SHARED: u32 = 500_000;
const OUT: SwIfIndex = SwIfIndex(2);
const MAIN: FibIndex = FibIndex::DEFAULT;

/// One row.
#[derive(Serialize)]
pub struct Row {
    unit: &'static str,
    best: f64,
    median: f64,
    /// From the 10th to the 90th percentile, as a share of the median.
    spread: f64,
}

/// What was measured, by name.
#[derive(Serialize, Default)]
pub struct Rows(BTreeMap<&'static str, Row>);

impl Rows {
    /// Adds a row, and prints it.
    pub fn add(&mut self, name: &'static str, unit: &'static str, values: &[f64]) {
        let Some(all) = summary(values.iter().copied()) else { return };
        // Of rates the highest is the best, of everything else the lowest.
        let most = values.iter().copied().fold(all.min, f64::max);
        let best = if unit.ends_with("/s") { most } else { all.min };
        println!("{name:<24}{best:>14.2}{:>14.2}{:>9.1} %  {unit}", all.median, all.spread * 100.0);
        self.0.insert(name, Row { unit, best, median: all.median, spread: all.spread });
    }
}

/// What can be measured alone.
#[derive(Clone, Copy, PartialEq, Eq, Debug, clap::ValueEnum)]
pub enum Part {
    /// IPv4 routes, in one bulk and one by one
    InsertIp4,
    /// The same of IPv6
    InsertIp6,
    /// Routes of both families as lines of the CLI
    Exec,
    /// A next hop of many routes is lost
    Withdraw,
    /// Stations of a bridge domain are learned
    LearnMacs,
}

/// Measures these parts, or everything if none is named; prints it and writes it to a file.
pub fn run(json: &FilePath, only: &[Part], rounds: usize) -> Result<()> {
    println!("\n{:<24}{:>14}{:>14}{:>11}", "tables", "best", "median", "spread");
    let mut rows = Rows::default();
    for part in Part::value_variants().iter().filter(|part| only.is_empty() || only.contains(part)) {
        match part {
            Part::InsertIp4 => insert(&mut rows, Ip::V4, rounds)?,
            Part::InsertIp6 => insert(&mut rows, Ip::V6, rounds)?,
            Part::Exec => commands(&mut rows, rounds)?,
            Part::Withdraw => withdraw(&mut rows, SHARED, rounds * 4)?,
            Part::LearnMacs => learning::learn(&mut rows, learning::STATIONS, rounds)?,
        }
    }
    std::fs::write(json, serde_json::to_string_pretty(&rows)? + "\n")?;
    println!("written: {}", json.display());
    Ok(())
}

fn fib() -> Result<(Router, std::rc::Rc<Fib>)> {
    let router = Router::new(&scenario::find("ip4-1")?)?;
    let fib = router.control.get::<Fib>()?;
    Ok((router, fib))
}

/// A million IPv4 routes or 230,000 of IPv6, in random order: in one bulk, and one by one with 200 next hops; withdrawn
/// in one bulk.
fn insert(rows: &mut Rows, ip: Ip, rounds: usize) -> Result<()> {
    let prefixes = full_table::prefixes(ip)?;
    let (mut bulk, mut each, mut gone, mut bytes) = (Vec::new(), Vec::new(), Vec::new(), Vec::new());
    let hop = |n: u32| [Path::next_hop(Ipv4Addr::from_bits(0x0a00_0102 + n % u32::from(NEXT_HOPS)), OUT)];
    for _ in 0..rounds {
        let (_router, fib) = fib()?;
        let rate = |start: Instant| prefixes.len() as f64 / start.elapsed().as_secs_f64();
        let before = fib.capacity();
        let start = Instant::now();
        fib.add_many(MAIN, prefixes.iter().copied(), Source::Api, &hop(0))?;
        bulk.push(rate(start));
        let after = fib.capacity();
        let sum = |c: &shoal_fib::Capacity| (c.bytes + c.adjacencies.bytes) as f64;
        bytes.push((sum(&after) - sum(&before)) / prefixes.len() as f64);
        let start = Instant::now();
        fib.remove_many(MAIN, prefixes.iter().copied(), Source::Api)?;
        gone.push(rate(start));
        qsbr::reclaim();
        let start = Instant::now();
        for (n, prefix) in (0u32..).zip(&prefixes) {
            fib.add(MAIN, *prefix, Source::Api, &hop(n))?;
        }
        each.push(rate(start));
    }
    let names = match ip {
        Ip::V4 => ["route-insert-ip4", "route-insert-ip4-each", "route-withdraw-ip4", "route-bytes-ip4"],
        Ip::V6 => ["route-insert-ip6", "route-insert-ip6-each", "route-withdraw-ip6", "route-bytes-ip6"],
    };
    for (name, (unit, values)) in
        names.into_iter().zip([("routes/s", bulk), ("routes/s", each), ("routes/s", gone), ("bytes", bytes)])
    {
        rows.add(name, unit, &values);
    }
    Ok(())
}

/// The same tables, both in one, as lines of the CLI: 200 next hops, a fifth of the routes recursive.
fn commands(rows: &mut Rows, rounds: usize) -> Result<()> {
    let file = std::env::temp_dir().join(format!("shoal-tables-{}.cli", std::process::id()));
    let mut out = BufWriter::new(File::create(&file)?);
    lines::write(&Wanted::INTERNET, &mut out)?;
    out.into_inner().map_err(std::io::IntoInnerError::into_error)?;
    let measured = run_file(rows, &file, rounds);
    std::fs::remove_file(&file)?;
    measured
}

fn run_file(rows: &mut Rows, file: &FilePath, rounds: usize) -> Result<()> {
    let count = std::fs::read_to_string(file)?.lines().count() as f64;
    let types = MODULES.iter().flat_map(|m| m.arg_types).chain(WIRE);
    let cli = Cli::new(MODULES.iter().flat_map(|m| m.commands), types)?;
    let mut rates = Vec::new();
    for _ in 0..rounds {
        let (router, fib) = fib()?;
        let start = Instant::now();
        let reply = cli.execute_now(&router.control, &format!("exec {}", file.display()));
        rates.push(count / start.elapsed().as_secs_f64());
        if !reply.is_ok() {
            return Err(reply.text().into());
        }
        assert!(fib.capacity().routes.iter().sum::<usize>() as f64 >= count);
    }
    rows.add("route-exec", "routes/s", &rates);
    Ok(())
}

/// The time from the news that a next hop of many routes is lost until packets to any of them avoid it: one of two that
/// share the flows, and the one behind an address that all routes lead to.
fn withdraw(rows: &mut Rows, routes: u32, rounds: usize) -> Result<()> {
    let (a, b) = (Ipv4Addr::new(10, 0, 1, 10), Ipv4Addr::new(10, 0, 1, 11));
    let behind = Ipv4Addr::new(10, 255, 0, 1);
    let first = Ip4Prefix::new(Ipv4Addr::new(20, 0, 0, 0), 24)?;
    let shared = [Path::next_hop(a, OUT), Path::next_hop(b, OUT)];
    for (name, paths) in
        [("withdraw-500k", &shared[..]), ("withdraw-500k-recursive", &[Path::recursive(behind, MAIN)])]
    {
        let (router, fib) = fib()?;
        fib.add(MAIN, IpPrefix::host(behind.into()), Source::Api, &shared)?;
        fib.add_many(MAIN, consecutive(first, routes)?, Source::Api, paths)?;
        let mut took = Vec::new();
        for _ in 0..rounds {
            assert_eq!(next_hops(&router, &fib, routes), [IpAddr::from(a), IpAddr::from(b)]);
            let start = Instant::now();
            fib.set_next_hop(OUT, a.into(), Reach::Down);
            // Every reader of before has passed: packets that come now avoid it.
            qsbr::synchronize().map_err(|e| e.to_string())?;
            took.push(start.elapsed().as_secs_f64() * 1e3);
            assert_eq!(next_hops(&router, &fib, routes), [IpAddr::from(b)]);
            fib.set_next_hop(OUT, a.into(), Reach::Up);
        }
        rows.add(name, "ms", &took);
    }
    Ok(())
}

/// Where packets to some of the routes go, by what packets read.
fn next_hops(router: &Router, fib: &Fib, routes: u32) -> Vec<IpAddr> {
    let Ok(adjacencies) = router.control.get::<Adjacencies>() else { return Vec::new() };
    let reader = Reader::register();
    let mut all = Vec::new();
    for n in (0..routes).step_by((routes / 100).max(1) as usize) {
        let index: AdjIndex = fib.tables().lookup(MAIN, 0x1400_0001 + (n << 8), reader.guard());
        let buckets = adjacencies.members(index).map(|(_, buckets)| buckets).unwrap_or_default();
        let each = if buckets.is_empty() { vec![index] } else { buckets };
        all.extend(each.into_iter().filter_map(|i| adjacencies.get(i).next_hop()));
    }
    all.sort_unstable();
    all.dedup();
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_lost_next_hop_is_avoided_by_all_routes() {
        let mut rows = Rows::default();
        withdraw(&mut rows, 1_000, ROUNDS * 4).unwrap();
        assert_eq!(rows.0.len(), 2);
        assert!(rows.0.values().all(|row| row.best > 0.0));
    }
}
