//! `show memory`: what the process takes.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command = Command::new(
    "show memory [main-heap | stats-segment | buffers | map] [verbose]",
    "Show memory of the process, the stats segment and buffers",
    show,
)
.examples(&["show memory", "show memory main-heap", "show memory stats-segment", "show memory map"])
.doc(
    "Address space is reserved in advance where tables may grow, so `virtual` says little; `resident` is what is \
     in use. `map` lists the mappings; `verbose` is taken for VPP's sake.",
);

#[derive(Serialize)]
struct Heap {
    resident: u64,
    peak: u64,
    r#virtual: u64,
}

#[derive(Serialize)]
struct Segment {
    total: u64,
    used: u64,
}

#[derive(Serialize)]
struct Buffers {
    total: u64,
    used: u64,
    pages: String,
}

#[derive(Serialize)]
struct Memory {
    #[serde(skip_serializing_if = "Option::is_none")]
    main_heap: Option<Heap>,
    #[serde(skip_serializing_if = "Option::is_none")]
    stats_segment: Option<Segment>,
    #[serde(skip_serializing_if = "Option::is_none")]
    buffers: Option<Buffers>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    map: Vec<Mapping>,
}

#[derive(Serialize)]
struct Mapping {
    start: String,
    size: u64,
    access: String,
    name: String,
}

fn show(control: &Control, args: &Args) -> Result<Output, CliError> {
    let graph = control.graph()?;
    let all = !["main-heap", "stats-segment", "buffers", "map"].iter().any(|w| args.has(w));
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let segment = graph.counters().segment();
    let pool = graph.pool().stats();
    let map = || std::fs::read_to_string("/proc/self/maps").unwrap_or_default();
    Ok(Output::view(Memory {
        main_heap: (all || args.has("main-heap")).then(|| heap(&status)),
        stats_segment: (all || args.has("stats-segment"))
            .then(|| Segment { total: segment.size() as u64, used: segment.used() as u64 }),
        buffers: (all || args.has("buffers")).then(|| Buffers {
            total: (pool.total * pool.size) as u64,
            used: (pool.used * pool.size) as u64,
            pages: format!("{:?}", pool.backing).to_lowercase(),
        }),
        map: if args.has("map") { map().lines().filter_map(mapping).collect() } else { Vec::new() },
    }))
}

fn heap(status: &str) -> Heap {
    let kib = |key: &str| {
        let line = status.lines().find_map(|l| l.strip_prefix(key)?.strip_prefix(':'));
        line.and_then(|l| l.split_whitespace().next()?.parse::<u64>().ok()).unwrap_or(0) * 1024
    };
    Heap { resident: kib("VmRSS"), peak: kib("VmHWM"), r#virtual: kib("VmSize") }
}

fn mapping(line: &str) -> Option<Mapping> {
    let mut fields = line.split_whitespace();
    let (start, end) = fields.next()?.split_once('-')?;
    let hex = |text| u64::from_str_radix(text, 16).ok();
    let access = fields.next()?.to_owned();
    let name = fields.skip(3).collect::<Vec<_>>().join(" ");
    Some(Mapping { start: start.to_owned(), size: hex(end)?.checked_sub(hex(start)?)?, access, name })
}

/// `1.23m`, as VPP writes sizes: powers of two.
pub(super) fn size(bytes: u64) -> String {
    let units = [(1u64 << 40, "t"), (1 << 30, "g"), (1 << 20, "m"), (1 << 10, "k")];
    match units.into_iter().find(|(unit, _)| bytes >= *unit) {
        Some((unit, name)) => format!("{:.2}{name}", bytes as f64 / unit as f64),
        None => bytes.to_string(),
    }
}

impl fmt::Display for Memory {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        if let Some(Heap { resident, peak, r#virtual }) = &self.main_heap {
            let (resident, peak, all) = (size(*resident), size(*peak), size(*r#virtual));
            writeln!(f, "main-heap\n  resident {resident}, at most {peak}, virtual {all}")?;
        }
        if let Some(Segment { total, used }) = &self.stats_segment {
            let free = size(total.saturating_sub(*used));
            writeln!(f, "stats-segment\n  total: {}, used: {}, free: {free}", size(*total), size(*used))?;
        }
        if let Some(Buffers { total, used, pages }) = &self.buffers {
            writeln!(f, "buffers\n  total: {}, used: {}, {pages} pages", size(*total), size(*used))?;
        }
        if !self.map.is_empty() {
            writeln!(f, "{:<16} {:>10} {:<6} Name", "StartAddr", "Size", "Access")?;
        }
        self.map.iter().try_for_each(|m| {
            let row = format!("{:<16} {:>10} {:<6} {}", m.start, size(m.size), m.access, m.name);
            writeln!(f, "{}", row.trim_end())
        })
    }
}

#[cfg(test)]
mod tests {
    use super::super::testing::Router;
    use super::*;

    #[test]
    fn figures_are_read_from_proc() {
        let heap = heap("Name:\tshoal\nVmSize:\t 1048576 kB\nVmHWM:\t  2048 kB\nVmRSS:\t    1024 kB\n");
        let memory = Memory { main_heap: Some(heap), stats_segment: None, buffers: None, map: vec![] };
        assert_eq!(memory.to_string(), "main-heap\n  resident 1.00m, at most 2.00m, virtual 1.00g\n");
    }

    #[test]
    fn mappings_are_cut_into_fields() {
        let map = mapping("7f00-7f10 rw-p 00000000 00:01 17 /memfd:shoal-stats (deleted)").unwrap();
        assert_eq!((map.size, map.name.as_str()), (16, "/memfd:shoal-stats (deleted)"));
        assert!(mapping("garbage").is_none());
    }

    #[test]
    fn parts_are_shown_alone_or_together() {
        let router = Router::new();
        let text = router.run("show memory");
        assert!(
            text.contains("main-heap\n") && text.contains("stats-segment\n") && text.contains("buffers\n")
        );
        assert!(!router.run("show memory stats-segment").contains("main-heap"));
        assert!(router.run("show memory map").contains("StartAddr"));
    }
}
