//! Why energy could not be measured.

use std::path::PathBuf;

use thiserror::Error;

/// Why energy could not be measured.
#[derive(Debug, Error)]
pub enum EnergyError {
    /// The SNMP agent gave no answer. An agent says nothing to a wrong community, so the two look alike.
    #[error(
        "{agent} did not answer within {seconds} s: not reachable, or \"{community}\" is not its community"
    )]
    Silent {
        /// Host and port.
        agent: String,
        /// The community that was used.
        community: String,
        /// How long was waited, tries together.
        seconds: f64,
    },
    /// The agent answered with something else than a number for this object.
    #[error("{agent} has no number at {oid}: {what}; check PDU, outlet and sensor type (5 power, 8 energy)")]
    NoNumber {
        /// Host and port.
        agent: String,
        /// The object asked for.
        oid: String,
        /// What came instead.
        what: String,
    },
    /// The agent's name does not lead to an address, or no socket could be made.
    #[error("{agent}: {reason}; an agent is written host:port, 192.0.2.7:161 for instance")]
    Agent {
        /// As given.
        agent: String,
        /// The system's error.
        reason: String,
    },
    /// No usable RAPL domain.
    #[error("{folder}: no RAPL domain named package-N can be read there{hint}")]
    NoRapl {
        /// Where was looked.
        folder: PathBuf,
        /// What may help, beginning with a comma or semicolon; empty if nothing is known.
        hint: String,
    },
    /// A file of a RAPL domain does not hold what it should.
    #[error("{file}: {reason}")]
    RaplFile {
        /// The file.
        file: PathBuf,
        /// What is wrong with it.
        reason: String,
    },
    /// A counter fell in a way that no wrap explains.
    #[error("{what} went back from {before} to {now}")]
    WentBack {
        /// Whose counter.
        what: String,
        /// What it was.
        before: u64,
        /// What it is.
        now: u64,
    },
    /// The command did not run, did not end in time, or did not end well.
    #[error("{command}: {reason}")]
    Command {
        /// As a user could type it.
        command: String,
        /// What happened.
        reason: String,
    },
    /// The text for watts is not a number of watts.
    #[error("{from} gave \"{text}\" for watts; a number from 0 to 1000000 is needed, 151.5 for instance")]
    NotWatts {
        /// Who gave it.
        from: String,
        /// What it gave, cut to 60 characters.
        text: String,
    },
    /// `start` twice, or `stop` without `start`.
    #[error("the meter {0}")]
    Order(&'static str),
    /// The thread that looks at the meter is gone.
    #[error("the thread that looks at the meter {0}")]
    Thread(String),
}
