//! What can be typed.

use std::path::PathBuf;
use std::time::Duration;

use clap::{Args, Parser, Subcommand, ValueEnum};
use shoal_lab_measure::WhenDisturbed;

/// Measures routers by the RFCs, and says how far to trust the figures.
///
/// Without a command: what can run here, a demonstration of a minute with every device there is, and a report of it.
#[derive(Debug, Parser)]
#[command(name = "shoal-lab", version)]
pub struct Cli {
    /// What to do.
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Settings, as `shoal-lab config show` prints them.
    #[arg(long, global = true, value_name = "FILE")]
    pub config: Option<PathBuf>,
    /// Where results folders are made.
    #[arg(long, global = true, value_name = "FOLDER", default_value = "results")]
    pub results: PathBuf,
    /// One JSON object a line instead of text.
    #[arg(long, global = true)]
    pub json: bool,
}

/// The commands.
#[derive(Debug, Subcommand)]
pub enum Command {
    /// What can run here, what limits it, and how to mend that
    Doctor,
    /// The tester without a device: its highest rate, its own delay, its stalls
    Selftest(Selftest),
    /// What there is to choose from
    List {
        /// Of what.
        what: Listed,
    },
    /// Run one test
    Run(Box<Run>),
    /// Run a set of tests
    Suite(Box<Suite>),
    /// Make a page of one or several results folders
    Report {
        /// Results folders.
        #[arg(required = true)]
        results: Vec<PathBuf>,
        /// The page; in the first folder if left out.
        #[arg(short, long)]
        output: Option<PathBuf>,
    },
    /// Is there a difference between two results, and how sure is that?
    Compare {
        /// The one.
        a: PathBuf,
        /// The other.
        b: PathBuf,
    },
    /// Print the figures of a results folder
    Show {
        /// The folder.
        results: PathBuf,
    },
    /// Go on with a run that was interrupted
    Resume {
        /// Its folder.
        results: PathBuf,
    },
    /// Settings
    Config {
        /// What to do with them.
        #[command(subcommand)]
        command: ConfigCommand,
    },
    /// As siitperf-tp, with its arguments and output
    #[command(name = "siitperf-tp")]
    SiitperfTp(Siitperf),
    /// As siitperf-lat
    #[command(name = "siitperf-lat")]
    SiitperfLat(Siitperf),
    /// As siitperf-pdv
    #[command(name = "siitperf-pdv")]
    SiitperfPdv(Siitperf),
}

/// What can be listed.
#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
pub enum Listed {
    /// Devices under test, and whether they can be measured here
    Duts,
    /// What the tester's ports can be, and whether DPDK's can
    Ports,
    /// Tests
    Tests,
    /// Traffic profiles
    Profiles,
    /// Published figures
    Figures,
    /// Suites
    Suites,
}

/// What can be done with settings.
#[derive(Debug, Subcommand)]
pub enum ConfigCommand {
    /// Print all settings, in the form of the file
    Show {
        /// And where each comes from.
        #[arg(long)]
        origin: bool,
    },
}

/// Of the self-test.
#[derive(Debug, Args)]
pub struct Selftest {
    /// Wires, several with commas: memif, af-packet, af-xdp, dpdk (a memif between two of its devices).
    #[arg(long, value_delimiter = ',', default_value = "memif,af-packet")]
    pub transport: Vec<String>,
    /// Frame sizes with FCS.
    #[arg(long, value_delimiter = ',', default_value = "64")]
    pub size: Vec<u32>,
    /// Seconds of each trial.
    #[arg(long, default_value = "1", value_parser = seconds)]
    pub duration: Duration,
    /// What is done with trials during which others had the processors.
    #[arg(long, value_name = "mark|repeat|refuse", value_parser = when_disturbed)]
    pub when_disturbed: Option<WhenDisturbed>,
}

/// One test.
#[derive(Clone, Debug, Args)]
pub struct Run {
    /// Which test (`shoal-lab list tests`), or `stl` for a TRex profile.
    pub test: String,
    /// The profile, for `stl`.
    pub profile: Option<PathBuf>,
    /// What all runs of the lab know.
    #[command(flatten)]
    pub common: Common,
    /// The profile's own settings: `size=64,vm=var2`, or as its argument parser wants them.
    #[arg(short = 't', long, value_name = "SETTINGS")]
    pub tunables: Option<String>,
    /// What the profile's rates are scaled to: `10gbpsl1`, `1mpps`, `50%`.
    #[arg(long, value_name = "RATE")]
    pub port_rate: Option<String>,
    /// Offered rate in frames a second and direction, for tests that need one; the throughput if left out. Of
    /// address-capacity: at which addresses are taught.
    #[arg(long, value_parser = count)]
    pub rate: Option<u64>,
    /// Shares of that rate in percent, several with commas: `latency --percent 10,50,90`.
    #[arg(long, value_delimiter = ',', value_parser = clap::value_parser!(u8).range(1..=200))]
    pub percent: Vec<u8>,
    /// Flows (source ports), connections of a NAT, addresses of a bridge; for sweeps several with commas.
    #[arg(long, value_delimiter = ',', value_parser = count)]
    pub flows: Vec<u64>,
    /// Further routes in the device, for sweeps several with commas.
    #[arg(long, value_delimiter = ',', value_parser = count)]
    pub routes: Vec<u64>,
    /// Scenarios of `replay`, several with commas: `ip4-1m`, `ip4-ecmp16`; `docs/bench.md` has all.
    #[arg(long, value_delimiter = ',')]
    pub scenario: Vec<String>,
    /// For `convergence`: the table, and who brings it.
    #[command(flatten)]
    pub tables: Tables,
    /// For `replay` and `revisions`: what to compare with.
    #[command(flatten)]
    pub bases: Bases,
}

/// The table of `convergence`, and who brings it.
#[derive(Clone, Debug, Default, PartialEq, Eq, Args)]
pub struct Tables {
    /// IPv4 prefixes that the peer announces; 10,000 if no table is asked for.
    #[arg(long, value_name = "PREFIXES", value_parser = count)]
    pub routes4: Option<u64>,
    /// IPv6 prefixes that the peer announces; 2,000 if no table is asked for.
    #[arg(long, value_name = "PREFIXES", value_parser = count)]
    pub routes6: Option<u64>,
    /// Who brings routes, several with commas: frr, frr-fpm, bird; netlink (the lab writes them into the kernel), fpm (the lab sends
    /// them to Shoal).
    #[arg(long, value_delimiter = ',', value_name = "DAEMONS")]
    pub daemon: Vec<String>,
    /// What happens, several with commas: announce (always), failure (of a link that half of the packets take), withdraw.
    #[arg(long, value_delimiter = ',', value_name = "PHASES")]
    pub phase: Vec<String>,
}

/// A suite.
#[derive(Clone, Debug, Args)]
pub struct Suite {
    /// quick, ci, paper, blog, thesis, nat.
    #[arg(value_name = "SUITE")]
    pub which: String,
    /// What all runs of the lab know.
    #[command(flatten)]
    pub common: Common,
    /// For `ci`: what to compare with.
    #[command(flatten)]
    pub bases: Bases,
}

/// Another build to compare with, in turns.
#[derive(Clone, Debug, Default, Args)]
pub struct Bases {
    /// Another build to compare with, in turns: the router, or a folder or checkout that has it and its `shoal-lab-graph`.
    #[arg(long, value_name = "PROGRAM|FOLDER")]
    pub base: Option<PathBuf>,
    /// The other build's `shoal-lab-graph`; looked for beside the router if left out.
    #[arg(long, value_name = "PROGRAM")]
    pub base_replay: Option<PathBuf>,
}

/// What all runs of the lab know.
#[derive(Clone, Debug, Default, Args)]
pub struct Common {
    /// Devices (`shoal-lab list duts`), several with commas.
    #[arg(long, value_delimiter = ',')]
    pub dut: Vec<String>,
    /// The wire: memif, af-packet, af-xdp, tap; the device's best if left out.
    #[arg(long)]
    pub transport: Option<String>,
    /// Frame sizes with FCS, or mixes such as `imix:classic`, several with commas.
    #[arg(long, value_delimiter = ',')]
    pub size: Vec<String>,
    /// 4, 6, or both with a comma.
    #[arg(long, value_delimiter = ',')]
    pub ip: Vec<String>,
    /// fwd, rev or bi.
    #[arg(long)]
    pub direction: Option<String>,
    /// What the device does: route, cross-connect, bridge, snat.
    #[arg(long, default_value = "route", value_parser = ["route", "cross-connect", "bridge", "snat"])]
    pub forwarding: String,
    /// Workers of the device, several with commas.
    #[arg(long, value_delimiter = ',')]
    pub workers: Vec<u16>,
    /// How often each is measured.
    #[arg(long)]
    pub runs: Option<u32>,
    /// Seconds of each trial.
    #[arg(long, value_parser = seconds)]
    pub duration: Option<Duration>,
    /// strict (60 s, 20 runs, to the frame), normal (10 s, 10 runs, 0.1 %), quick (2 s, 3 runs, 1 %), ci.
    #[arg(long)]
    pub preset: Option<String>,
    /// own (every frame signed and accounted for) or siitperf (its plain form).
    #[arg(long)]
    pub frame: Option<String>,
    /// What is done with trials during which others had the processors: mark, repeat, or refuse, which gives no figure if it
    /// happens each time.
    #[arg(long, value_name = "mark|repeat|refuse", value_parser = when_disturbed)]
    pub when_disturbed: Option<WhenDisturbed>,
    /// The end searches begin from, in frames a second and direction; the self-test's rate if left out.
    #[arg(long, value_parser = count)]
    pub max: Option<u64>,
    /// Look at each received frame whole, not at one in 64.
    #[arg(long)]
    pub verify: bool,
    /// Print what would be done: commands, frames, time. Nothing is started.
    #[arg(long)]
    pub dry_run: bool,
    /// Refuse what would take longer: `30m`, `9h`.
    #[arg(long, value_parser = seconds)]
    pub budget: Option<Duration>,
    /// Do it even if it takes longer than the budget.
    #[arg(long)]
    pub yes: bool,
    /// What the results folder is called, after the date.
    #[arg(long)]
    pub name: Option<String>,
    /// What must hold, such as `throughput_median>=200k`; may be given several times.
    #[arg(long = "assert", value_name = "EXPRESSION")]
    pub assertions: Vec<String>,
    /// Write the verdicts as JUnit.
    #[arg(long, value_name = "FILE")]
    pub junit: Option<PathBuf>,
    /// The program of replays, `shoal-lab-graph`; looked for in the checkout, beside this one and on the path if left out.
    #[arg(long, value_name = "PROGRAM")]
    pub replay: Option<PathBuf>,
    /// Where energy is measured: none, rapl, `command:PROGRAM`, `snmp-raritan:HOST/OUTLET`.
    #[arg(long)]
    pub energy: Option<String>,
    /// Plain lines even on a terminal.
    #[arg(long)]
    pub plain: bool,
}

/// Arguments in siitperf's own form.
#[derive(Debug, Args)]
#[command(disable_help_flag = true)]
pub struct Siitperf {
    /// As siitperf's: size rate duration timeout n m ...
    #[arg(trailing_var_arg = true, allow_hyphen_values = true)]
    pub arguments: Vec<String>,
}

fn when_disturbed(text: &str) -> Result<WhenDisturbed, String> {
    WhenDisturbed::by_name(text).map_err(|error| error.to_string())
}

/// A time: `10`, `500ms`, `2s`, `30m`, `9h`.
fn seconds(text: &str) -> Result<Duration, String> {
    let units = [("ms", 0.001), ("s", 1.0), ("m", 60.0), ("h", 3600.0)];
    let (number, unit) = units
        .iter()
        .find_map(|(name, unit)| text.strip_suffix(name).map(|n| (n, *unit)))
        .unwrap_or((text, 1.0));
    let value: f64 =
        number.trim().parse().map_err(|_| format!("`{text}' is no time; such as 2s, 500ms or 30m"))?;
    if !(0.0..=1e7).contains(&value) {
        return Err(format!("{text}: must be between 0 and 10,000,000"));
    }
    Ok(Duration::from_secs_f64(value * unit))
}

/// A number of things: `200000`, `200k`, `1.5M`.
fn count(text: &str) -> Result<u64, String> {
    let wrong = || format!("`{text}' is no number; such as 200000, 200k or 1.5M");
    let digits = text.replace('_', "");
    let units = [("k", 1e3), ("K", 1e3), ("M", 1e6), ("G", 1e9)];
    let with_unit = units.iter().find_map(|(name, unit)| digits.strip_suffix(name).map(|n| (n, *unit)));
    // Without a unit it is a whole number, exact however large.
    let Some((number, unit)) = with_unit else { return digits.parse().map_err(|_| wrong()) };
    let value: f64 = number.parse().map_err(|_| wrong())?;
    if !(0.0..=1e9).contains(&value) {
        return Err(format!("{text}: must be between 0 and 1000000000 of its unit"));
    }
    Ok((value * unit).round() as u64)
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory as _;

    use super::*;

    #[test]
    fn the_arguments_are_consistent() {
        Cli::command().debug_assert();
    }

    #[test]
    fn times_and_counts_have_units() {
        assert_eq!(seconds("500ms"), Ok(Duration::from_millis(500)));
        assert_eq!(seconds("9h"), Ok(Duration::from_hours(9)));
        assert_eq!(seconds("2"), Ok(Duration::from_secs(2)));
        assert_eq!(count("1.5M"), Ok(1_500_000));
        assert_eq!(count("18446744073709551615"), Ok(u64::MAX));
        for wrong in ["", "-1", "x", "1e99h", "NaN"] {
            assert!(seconds(wrong).is_err(), "{wrong}");
        }
        for wrong in ["", "-1", "1.5", "k", "9999999999G", "NaNk"] {
            assert!(count(wrong).is_err(), "{wrong}");
        }
    }
}
