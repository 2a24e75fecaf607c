//! Where figures come from.

use std::path::PathBuf;
use std::time::Duration;

use serde::{Deserialize, Serialize};

use crate::command::Command;
use crate::rapl::Rapl;
use crate::raritan::RaritanProbe;
use crate::{EnergyError, Raritan};

/// Where figures come from: `[energy]` of the lab's configuration.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "source")]
pub enum Source {
    /// A Raritan PX3 power strip by SNMP v2c.
    SnmpRaritan(Raritan),
    /// The processor's own counters.
    Rapl {
        /// `/sys/class/powercap` unless a test says otherwise.
        #[serde(default = "powercap")]
        folder: PathBuf,
    },
    /// A program that prints watts.
    Command {
        /// Program and arguments.
        argv: Vec<String>,
        /// Milliseconds it may take; then it is killed and the look failed.
        #[serde(default = "command_limit")]
        limit_ms: u64,
    },
    /// Nothing: figures are absent and the report says "not measured".
    #[default]
    None,
}

fn powercap() -> PathBuf {
    PathBuf::from("/sys/class/powercap")
}

const fn command_limit() -> u64 {
    800
}

/// One look at a source.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Look {
    /// Power now.
    Watts(f64),
    /// Joules since the look before; 0 at the first.
    Joules(f64),
}

/// What can be looked at.
pub trait Probe: Send {
    /// Power now, or energy since the last look.
    fn look(&mut self) -> Result<Look, EnergyError>;

    /// The source's energy counter in watt-hours, if it has one.
    fn counter(&mut self) -> Option<f64> {
        None
    }

    /// See [`Reading::scope`](crate::Reading::scope).
    fn scope(&self) -> String;
}

impl Source {
    /// As `Reading::source` has it.
    pub const fn name(&self) -> &'static str {
        match self {
            Source::SnmpRaritan(_) => "snmp-raritan",
            Source::Rapl { .. } => "rapl",
            Source::Command { .. } => "command",
            Source::None => "none",
        }
    }

    /// What is to be looked at; nothing for `none`.
    pub(crate) fn probe(&self) -> Result<Option<Box<dyn Probe>>, EnergyError> {
        Ok(match self {
            Source::SnmpRaritan(at) => Some(Box::new(RaritanProbe::open(at)?)),
            Source::Rapl { folder } => Some(Box::new(Rapl::open(folder)?)),
            Source::Command { argv, limit_ms } => {
                Some(Box::new(Command::new(argv, Duration::from_millis(*limit_ms))?))
            }
            Source::None => None,
        })
    }
}
