//! `show cpu`: the processor.

use std::fmt;

use serde::Serialize;
use shoal_graph::clock::tsc_hz;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

pub(super) const SHOW: Command = Command::new("show cpu", "Show the processor", show)
    .examples(&["show cpu"])
    .doc("The base frequency is that of the time-stamp counter: what clocks in `show runtime` count.");

/// What the kernel says of the first processor.
#[derive(Serialize)]
struct Cpu {
    model_name: String,
    family: String,
    flags: String,
    base_ghz: f64,
}

impl Cpu {
    fn new(cpuinfo: &str, hz: f64) -> Self {
        let value = |key: &str| {
            let fits = |l: &str| {
                l.split_once(':').filter(|(k, _)| k.trim() == key).map(|(_, v)| v.trim().to_owned())
            };
            cpuinfo.lines().find_map(fits).unwrap_or_else(|| "unknown".into())
        };
        let family =
            format!("family {} model {} stepping {}", value("cpu family"), value("model"), value("stepping"));
        Cpu { model_name: value("model name"), family, flags: value("flags"), base_ghz: hz / 1e9 }
    }
}

fn show(_: &Control, _: &Args) -> Result<Output, CliError> {
    let cpuinfo = std::fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    Ok(Output::view(Cpu::new(&cpuinfo, tsc_hz())))
}

impl fmt::Display for Cpu {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        writeln!(f, "{:<25} {}", "Model name:", self.model_name)?;
        writeln!(f, "{:<25} {}", "Microarch model (family):", self.family)?;
        writeln!(f, "{:<25} {}", "Flags:", self.flags)?;
        writeln!(f, "{:<25} {:.4} GHz", "Base frequency:", self.base_ghz)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn labels_stand_in_a_column() {
        let cpuinfo = "processor\t: 0\ncpu family\t: 25\nmodel\t\t: 17\nmodel name\t: AMD EPYC\nstepping\t: 1\n\
                       flags\t\t: fpu sse2 avx2\n";
        assert_eq!(
            Cpu::new(cpuinfo, 2.1e9).to_string(),
            "Model name:               AMD EPYC\n\
             Microarch model (family): family 25 model 17 stepping 1\n\
             Flags:                    fpu sse2 avx2\n\
             Base frequency:           2.1000 GHz\n"
        );
    }
}
