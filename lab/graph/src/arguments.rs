//! The command line.

use std::path::PathBuf;

use clap::{Parser, Subcommand};

/// Clocks, instructions and allocations per packet of the graph's paths.
#[derive(Parser, Debug)]
#[command(version, args_conflicts_with_subcommands = true)]
pub struct Arguments {
    #[command(subcommand)]
    pub command: Option<Command>,
    /// Only this scenario; may be given several times
    #[arg(long, value_name = "NAME")]
    pub scenario: Vec<String>,
    /// Seconds each scenario is measured, in 15 windows or more
    #[arg(long, default_value_t = 2.0, value_parser = seconds)]
    pub seconds: f64,
    /// Where the results are written
    #[arg(long, value_name = "FILE", default_value = "target/bench.json")]
    pub json: PathBuf,
    /// Do not count instructions
    #[arg(long)]
    pub no_instructions: bool,
    /// The processor to run on; the last one if left out
    #[arg(long, value_name = "N")]
    pub cpu: Option<usize>,
}

#[derive(Subcommand, Debug)]
pub enum Command {
    /// Print two runs side by side, with their ratios
    Compare {
        /// Results of the run to compare with
        a: PathBuf,
        /// Results of the run that is judged
        b: PathBuf,
    },
    /// Fill tables of the Internet's size, take a next hop of half a million routes away, learn a million stations
    Tables {
        /// Where the results are written
        #[arg(long, value_name = "FILE", default_value = crate::tables::RESULTS)]
        json: PathBuf,
        /// Only this part: insert-ip4, insert-ip6, exec, withdraw or learn-macs; may be given several times
        #[arg(long, value_name = "PART")]
        only: Vec<crate::tables::Part>,
        /// Times each is measured
        #[arg(long, value_name = "N", default_value_t = crate::tables::ROUNDS)]
        rounds: usize,
    },
    /// Run a scenario under valgrind; `shoal-lab-graph` calls itself so
    #[command(hide = true)]
    Count {
        #[arg(long)]
        scenario: String,
        #[arg(long)]
        slices: usize,
    },
}

fn seconds(text: &str) -> Result<f64, String> {
    let seconds: f64 = text.parse().map_err(|_| "not a number of seconds".to_owned())?;
    if (0.05..=3600.0).contains(&seconds) { Ok(seconds) } else { Err("0.05 to 3600 seconds".to_owned()) }
}

#[cfg(test)]
mod tests {
    use clap::CommandFactory;

    use super::*;

    #[test]
    fn the_declaration_holds_together() {
        Arguments::command().debug_assert();
    }

    #[test]
    fn seconds_have_bounds() {
        assert_eq!(seconds("2"), Ok(2.0));
        assert!(seconds("0").is_err() && seconds("nan").is_err() && seconds("x").is_err());
    }
}
