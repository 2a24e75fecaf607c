//! What can be counted.

use perf_event::events::{Event, Hardware, Software};

use crate::counters::Kind;

/// Where counters come from.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Source {
    /// The kernel: every machine has them.
    Linux,
    /// The processor: machines without a performance monitoring unit, as many guests are, have none.
    Processor,
}

impl Source {
    /// All of them.
    pub const ALL: [Source; 2] = [Source::Linux, Source::Processor];

    /// As it is typed.
    pub const fn name(self) -> &'static str {
        match self {
            Source::Linux => "linux",
            Source::Processor => "processor",
        }
    }

    /// What it is.
    pub const fn description(self) -> &'static str {
        match self {
            Source::Linux => "Linux kernel performance counters",
            Source::Processor => "performance counters of the processor, through Linux",
        }
    }
}

/// One counter of a bundle.
pub(crate) struct Counted {
    /// Its heading.
    pub(crate) name: &'static str,
    /// What Linux is asked for.
    pub(crate) event: fn() -> Event,
}

/// Counters that are read together.
pub struct Bundle {
    /// As it is typed; VPP's name where VPP has such a bundle.
    pub name: &'static str,
    /// Where they come from.
    pub source: Source,
    /// What it says.
    pub description: &'static str,
    /// How it can be counted, the usual way first.
    pub kinds: &'static [Kind],
    pub(crate) counters: &'static [Counted],
    /// The first counter divided by the second, as a heading says.
    pub(crate) ratio: Option<&'static str>,
}

macro_rules! counted {
    ($($name:literal = $event:expr),+) => {
        &[$(Counted { name: $name, event: || $event.into() }),+]
    };
}

/// All of them.
pub static BUNDLES: &[Bundle] = &[
    Bundle {
        name: "context-switches",
        source: Source::Linux,
        description: "per-thread context switches",
        kinds: &[Kind::Thread],
        counters: counted!(
            "Context-Switches" = Software::CONTEXT_SWITCHES,
            "Migrations" = Software::CPU_MIGRATIONS
        ),
        ratio: None,
    },
    Bundle {
        name: "page-faults",
        source: Source::Linux,
        description: "per-thread page faults",
        kinds: &[Kind::Thread, Kind::Node],
        counters: counted!("Minor" = Software::PAGE_FAULTS_MIN, "Major" = Software::PAGE_FAULTS_MAJ),
        ratio: None,
    },
    Bundle {
        name: "inst-and-clock",
        source: Source::Processor,
        description: "instructions/packet, cycles/packet and IPC",
        kinds: &[Kind::Node, Kind::Thread],
        counters: counted!("Instructions" = Hardware::INSTRUCTIONS, "Cycles" = Hardware::CPU_CYCLES),
        ratio: Some("IPC"),
    },
    Bundle {
        name: "branch-mispred",
        source: Source::Processor,
        description: "branches and mispredicted ones",
        kinds: &[Kind::Node, Kind::Thread],
        counters: counted!(
            "Mispredicted" = Hardware::BRANCH_MISSES,
            "Branches" = Hardware::BRANCH_INSTRUCTIONS
        ),
        ratio: Some("Mispredicted/Branch"),
    },
    Bundle {
        name: "cache-hierarchy",
        source: Source::Processor,
        description: "accesses to the last level of cache, and misses",
        kinds: &[Kind::Node, Kind::Thread],
        counters: counted!("Misses" = Hardware::CACHE_MISSES, "Accesses" = Hardware::CACHE_REFERENCES),
        ratio: Some("Misses/Access"),
    },
];

impl Bundle {
    /// The bundle of a name.
    pub fn named(name: &str) -> Option<&'static Bundle> {
        BUNDLES.iter().find(|bundle| bundle.name == name)
    }
}
