//! `perfmon start`, `perfmon stop`, `perfmon reset`, `show perfmon ...`.

use std::fmt::{self, Write as _};

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, Output, check};

use crate::bundle::{BUNDLES, Bundle, Source};
use crate::control::{Active, Perfmon, Statistics, ThreadStatistics};
use crate::counters::Kind;
use crate::nodes::NodeRow;

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "perfmon start [bundle] <bundle:perfmon-bundle> [type {node | thread}]",
        "Count what the processor or the kernel counts",
        start,
    )
    .examples(&["perfmon start bundle context-switches", "perfmon start bundle page-faults type node"])
    .doc(
        "`type thread` counts each thread as a whole and costs nothing; threads that are made later are not among them. \
         `type node` reads the counters around every node, and packets pass every node by itself: that is slower, and \
         counts include a system call's share. `show perfmon bundle` says what this machine counts.",
    ),
    Command::new("perfmon stop", "Count no longer; what was counted stays", stop).examples(&["perfmon stop"]),
    Command::new("perfmon reset", "Count no longer, and forget what was counted", reset).examples(&["perfmon reset"]),
    Command::new("clear perfmon", "Forget what was counted so far, and go on", clear).examples(&["clear perfmon"]),
    Command::new("show perfmon bundle [<bundle:perfmon-bundle>] [verbose]", "Show what can be counted", show_bundles)
        .examples(&["show perfmon bundle", "show perfmon bundle inst-and-clock"]),
    Command::new("show perfmon source", "Show where counters come from", show_sources).examples(&["show perfmon source"]),
    Command::new("show perfmon active-bundle", "Show what is counted, or was counted last", show_active)
        .examples(&["show perfmon active-bundle"]),
    Command::new("show perfmon statistics [raw]", "Show what was counted", show_statistics)
        .examples(&["show perfmon statistics"])
        .doc("By node, counts are per packet, or per call where a node has no packets; `raw` has the counts themselves."),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[ArgType::new("perfmon-bundle", "a bundle of counters", check::<Named>)
    .complete(|_, _| BUNDLES.iter().map(|bundle| bundle.name.to_owned()).collect())];

struct Named(&'static Bundle);

impl FromArg for Named {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let names = || BUNDLES.iter().map(|bundle| bundle.name).collect::<Vec<_>>().join(", ");
        Bundle::named(text)
            .map(Named)
            .ok_or_else(|| Expected::new(format!("a bundle of counters: {}", names())))
    }
}

fn perfmon(control: &Control) -> Result<std::rc::Rc<Perfmon>, CliError> {
    Ok(control.get::<Perfmon>()?)
}

fn start(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Named(bundle) = args.get("bundle")?;
    let kinds = [Kind::Node, Kind::Thread];
    let kind = kinds.into_iter().find(|kind| args.has(kind.name()));
    perfmon(control)?.start(bundle, kind)?;
    Ok(Output::none())
}

fn stop(control: &Control, _: &Args) -> Result<Output, CliError> {
    perfmon(control)?.stop()?;
    Ok(Output::none())
}

fn reset(control: &Control, _: &Args) -> Result<Output, CliError> {
    perfmon(control)?.reset();
    Ok(Output::none())
}

fn clear(control: &Control, _: &Args) -> Result<Output, CliError> {
    perfmon(control)?.clear();
    Ok(Output::none())
}

#[derive(Serialize)]
struct BundleView {
    name: &'static str,
    types: Vec<&'static str>,
    source: &'static str,
    description: &'static str,
    available: bool,
    #[serde(skip_serializing_if = "Option::is_none")]
    reason: Option<String>,
}

#[derive(Serialize)]
struct Bundles(Vec<BundleView>);

fn show_bundles(_: &Control, args: &Args) -> Result<Output, CliError> {
    let only: Option<Named> = args.opt("bundle")?;
    let wanted = |bundle: &&&'static Bundle| only.as_ref().is_none_or(|Named(only)| only.name == bundle.name);
    let view = |bundle: &'static Bundle| {
        let refused = Perfmon::try_out(bundle).err();
        BundleView {
            name: bundle.name,
            types: bundle.kinds.iter().map(|kind| kind.name()).collect(),
            source: bundle.source.name(),
            description: bundle.description,
            available: refused.is_none(),
            reason: refused.map(|error| error.to_string()),
        }
    };
    let all: Vec<&'static Bundle> = BUNDLES.iter().collect();
    Ok(Output::view(Bundles(all.iter().filter(wanted).map(|bundle| view(bundle)).collect())))
}

impl fmt::Display for Bundles {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<20}{:<14}{:<11}Description", "Name", "Type(s)", "Source")?;
        for bundle in &self.0 {
            let types = bundle.types.join(",");
            write!(f, "{:<20}{types:<14}{:<11}{}", bundle.name, bundle.source, bundle.description)?;
            match &bundle.reason {
                Some(reason) => writeln!(f, " (not on this machine: {reason})")?,
                None => writeln!(f)?,
            }
        }
        Ok(())
    }
}

#[derive(Serialize)]
struct SourceView {
    name: &'static str,
    description: &'static str,
}

#[derive(Serialize)]
struct Sources(Vec<SourceView>);

fn show_sources(_: &Control, _: &Args) -> Result<Output, CliError> {
    let view = |source: Source| SourceView { name: source.name(), description: source.description() };
    Ok(Output::view(Sources(Source::ALL.into_iter().map(view).collect())))
}

impl fmt::Display for Sources {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<20}Description", "Name")?;
        self.0.iter().try_for_each(|source| writeln!(f, "{:<20}{}", source.name, source.description))
    }
}

#[derive(Serialize)]
struct ActiveView {
    bundle: &'static str,
    r#type: &'static str,
    running: bool,
    seconds: f64,
}

impl ActiveView {
    fn new(active: &Active) -> Self {
        ActiveView {
            bundle: active.bundle.name,
            r#type: active.kind.name(),
            running: active.runs,
            seconds: active.time.as_secs_f64(),
        }
    }
}

fn show_active(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(match perfmon(control)?.active() {
        Some(active) => Output::view(ActiveView::new(&active)),
        None => Output::text("no active bundle\n"),
    })
}

impl fmt::Display for ActiveView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let state = if self.running { "running" } else { "stopped" };
        writeln!(f, "{} ({}), {state}, {:.1} seconds", self.bundle, self.r#type, self.seconds)
    }
}

#[derive(Serialize)]
struct Row {
    node: String,
    calls: u64,
    packets: u64,
    counts: Vec<u64>,
}

#[derive(Serialize)]
struct ThreadView {
    thread: String,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    counts: Vec<u64>,
    #[serde(skip_serializing_if = "Vec::is_empty")]
    nodes: Vec<Row>,
}

#[derive(Serialize)]
struct StatisticsView {
    #[serde(flatten)]
    active: ActiveView,
    counters: Vec<&'static str>,
    threads: Vec<ThreadView>,
    #[serde(skip)]
    description: &'static str,
    #[serde(skip)]
    ratio: Option<&'static str>,
    #[serde(skip)]
    raw: bool,
}

fn show_statistics(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Statistics { active, threads } = perfmon(control)?.statistics()?;
    let counters: Vec<&str> = active.bundle.counters.iter().map(|counted| counted.name).collect();
    let counts = |values: [u64; crate::counters::MOST]| values.into_iter().take(counters.len()).collect();
    let row =
        |(node, NodeRow { calls, packets, values })| Row { node, calls, packets, counts: counts(values) };
    let thread = |(thread, statistics)| match statistics {
        ThreadStatistics::Whole(values) => ThreadView { thread, counts: counts(values), nodes: Vec::new() },
        ThreadStatistics::Nodes(rows) => {
            ThreadView { thread, counts: Vec::new(), nodes: rows.into_iter().map(row).collect() }
        }
    };
    let threads = threads.into_iter().map(thread).collect();
    Ok(Output::view(StatisticsView {
        active: ActiveView::new(&active),
        description: active.bundle.description,
        ratio: active.bundle.ratio,
        raw: args.has("raw"),
        counters,
        threads,
    }))
}

impl StatisticsView {
    /// The headings of counts; what a ratio divides is needed by it, so both are shown.
    fn headings(&self, per: &str) -> String {
        let mut text = String::new();
        for counter in &self.counters {
            // Into a string, which cannot fail.
            let _ = write!(text, "{:>26}", format!("{counter}{per}"));
        }
        if let Some(ratio) = self.ratio {
            let _ = write!(text, "{ratio:>22}");
        }
        text
    }

    fn ratio_of(&self, counts: &[u64]) -> String {
        match (self.ratio, counts) {
            (Some(_), [above, below]) if *below > 0 => format!("{:>22.2}", *above as f64 / *below as f64),
            (Some(_), _) => format!("{:>22}", "-"),
            (None, _) => String::new(),
        }
    }
}

impl fmt::Display for StatisticsView {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{}", self.description)?;
        if self.active.r#type == Kind::Thread.name() {
            writeln!(f, "{:<20}{}", "Thread", self.headings(""))?;
            for thread in &self.threads {
                write!(f, "{:<20}", thread.thread)?;
                thread.counts.iter().try_for_each(|count| write!(f, "{count:>26}"))?;
                writeln!(f, "{}", self.ratio_of(&thread.counts))?;
            }
            return Ok(());
        }
        let per = if self.raw { "" } else { "/Packet" };
        for thread in &self.threads {
            writeln!(f, "{}", thread.thread)?;
            writeln!(
                f,
                "  {:<34}{:>12}{:>14}{:>14}{}",
                "Name",
                "Calls",
                "Packets",
                "Packets/Call",
                self.headings(per)
            )?;
            for row in &thread.nodes {
                let mean = row.packets as f64 / row.calls.max(1) as f64;
                write!(f, "  {:<34}{:>12}{:>14}{mean:>14.2}", row.node, row.calls, row.packets)?;
                for count in &row.counts {
                    let of = if row.packets > 0 { row.packets } else { row.calls };
                    if self.raw {
                        write!(f, "{count:>26}")?;
                    } else {
                        write!(f, "{:>26.2}", *count as f64 / of.max(1) as f64)?;
                    }
                }
                writeln!(f, "{}", self.ratio_of(&row.counts))?;
            }
        }
        Ok(())
    }
}
