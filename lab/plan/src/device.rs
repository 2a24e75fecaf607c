//! Devices under test.

use std::path::PathBuf;

use serde::{Deserialize, Serialize};
use thiserror::Error;

use crate::Scenario;

/// A device under test, as its adapter handles it. Everything it starts ends with [`stop`](Self::stop), and when it is
/// dropped.
pub trait Device: Send {
    /// As users write it: `shoal`, `linux-route`, `testpmd-mac`.
    fn name(&self) -> &str;

    /// Whether it can be measured here.
    ///
    /// # Errors
    ///
    /// The reason, as the report prints it: `skipped: REASON`.
    fn available(&self, scenario: &Scenario) -> Result<(), String>;

    /// Wires between tester and device that it can be measured over: `memif`, `af-packet`; the best first.
    fn transports(&self) -> Vec<&'static str>;

    /// Sets it up and starts it; afterwards its ports can be attached to and it forwards.
    ///
    /// # Errors
    ///
    /// If it does not start. Nothing of it is left then.
    fn start(&mut self, scenario: &Scenario, transport: &str) -> Result<Ports, DeviceError>;

    /// Its own counters as name and value: frames received and sent of each port, drops by reason.
    ///
    /// # Errors
    ///
    /// If it does not answer.
    fn counters(&mut self) -> Result<Vec<(String, u64)>, DeviceError>;

    /// CPU time that its processes have used so far, in microseconds; of a kernel: the softirq time of its processor.
    fn cpu_time(&mut self) -> Option<u64>;

    /// Restarts it, in one of the ways of RFC 6201. Afterwards the ports may have to be attached again.
    ///
    /// # Errors
    ///
    /// If it cannot do that.
    fn reset(&mut self, kind: Reset) -> Result<(), DeviceError>;

    /// Ends it and takes away what was set up for it: namespaces, files, processes. Twice does nothing.
    fn stop(&mut self);

    /// What was done to have it run, for the record.
    fn describe(&self) -> Described;
}

/// Ways of restarting.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum Reset {
    /// Asked to end (SIGTERM), and started.
    Restart,
    /// Killed, and started.
    Crash,
    /// Reads its configuration again.
    Reload,
    /// The left port goes down and up.
    Flap,
    /// Another number of workers.
    Workers(u16),
    /// All sessions of a NAT, or addresses that a bridge has learnt, are forgotten.
    Flush,
}

/// The device's two ports.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Ports {
    /// Beside the tester's left port.
    pub left: Port,
    /// Beside its right port.
    pub right: Port,
}

/// A port of the device, as the tester attaches to it.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct Port {
    /// How to attach.
    pub attachment: Attachment,
    /// The device's MAC: where frames for it go. A bridge or cross-connect has none: the other tester port's is used.
    pub mac: Option<[u8; 6]>,
}

/// How the tester attaches to a port.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case", tag = "kind")]
pub enum Attachment {
    /// The device is the master and listens.
    Memif {
        /// Its socket.
        socket: PathBuf,
        /// The interface's id.
        id: u32,
    },
    /// A network interface, the tester's end of a veth pair.
    Interface {
        /// The namespace it is in, as a file to `setns` to; none: this process's.
        namespace: Option<PathBuf>,
        /// Its name.
        name: String,
        /// `af-packet` or `af-xdp`.
        transport: String,
    },
    /// A TAP that the tester makes and the device uses from the kernel's side.
    Tap {
        /// The namespace the kernel's side is in.
        namespace: Option<PathBuf>,
        /// Its name.
        name: String,
    },
    /// A device of DPDK's, which the tester opens by the router's DPDK plugin.
    Dpdk {
        /// The namespace it is opened in, for devices that are made of an interface (`net_af_packet`).
        namespace: Option<PathBuf>,
        /// As behind the router's `dpdk attach`: `0000:03:00.0`, `net_af_packet0,iface=left mtu 1500`.
        words: String,
    },
}

/// What was done to have a device run.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub struct Described {
    /// Program and its version.
    pub version: String,
    /// Each command, in order, as a user could type it.
    pub commands: Vec<String>,
    /// Files it was given: name and text.
    pub files: Vec<(String, String)>,
    /// Facts that matter: where softirqs ran, queue sizes.
    pub notes: Vec<String>,
}

/// Why a device failed.
#[derive(Debug, Error)]
pub enum DeviceError {
    /// It cannot be measured here.
    #[error("skipped: {0}")]
    Unavailable(String),
    /// It did not start.
    #[error("{device} did not start: {reason}")]
    Start {
        /// Its name.
        device: String,
        /// What happened.
        reason: String,
    },
    /// It does not forward.
    #[error("{device} forwards nothing: {reason}")]
    Silent {
        /// Its name.
        device: String,
        /// What was tried.
        reason: String,
    },
    /// It went away.
    #[error("{device} ended: {reason}")]
    Died {
        /// Its name.
        device: String,
        /// What is known.
        reason: String,
    },
    /// It cannot do what was asked for.
    #[error("{device} cannot {what}")]
    Cannot {
        /// Its name.
        device: String,
        /// What was asked for.
        what: String,
    },
}
