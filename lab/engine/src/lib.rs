//! Sends streams at exact times, and accounts for each frame that comes back.
//!
//! An [`Engine`] is a [`Tester`](shoal_lab_plan::Tester): it runs a [`Trial`](shoal_lab_plan::Trial) over two ports and says
//! what came of it. One thread does everything, because one clock must see a frame leave and arrive, and because on two
//! processors the other one belongs to the device.
//!
//! The parts, from the outside in:
//!
//! - [`attach()`] makes an engine at a device's ports; [`Engine::simulated`] makes one around a device that does exactly what
//!   it is told ([`Behaviour`]); [`self_test()`] finds out what a tester whose ports are joined can do.
//! - `run` is the loop: it looks at both ports, sends what is due, and never waits on a real clock. `sending` writes frames,
//!   `reception` knows them again.
//! - `timeline` says when each frame is due, in integers. `sequence` says which came, a bit for each; `account` puts a
//!   stream's numbers together; `meter` has the delays, `jitter` T-Rex's two figures of them; `flow` is what a NAT made of
//!   tuples; `looks` is what the tester knows of its own lateness.
//! - [`Transport`] is a port: memif, AF_PACKET, AF_XDP, TAP, DPDK by the router's plugin, or synthetic. Rings are the
//!   drivers' own; parsing and checksums are not the router's.
//! - [`probe()`] sends to many addresses in turn for as long as it takes, while a device learns to reach them.
//! - [`Accounted`] is a tester that knows who had the processors during each trial.
//! - [`Clock`] is the processor's counter, checked against the kernel, or simulated time.
#![forbid(unsafe_code)]

mod account;
mod attach;
mod clock;
mod engine;
mod error;
mod flow;
mod jitter;
mod loop_times;
mod meter;
mod port;
mod probes;
mod processors;
mod reception;
mod run;
mod self_test;
mod sending;
mod sequence;
mod sides;
mod steal;
mod synthetic;
mod timeline;

pub use attach::attach;
pub use clock::{Clock, ClockCheck, ClockError, MachineClock, Reading, SimulatedClock};
pub use engine::{Engine, MEMORY};
pub use error::EngineError;
pub use port::{
    DpdkError, DpdkPlugin, DpdkPort, DpdkSettings, Drops, Flushed, InterfaceError, MEMIF_RING, MemifEnd,
    MemifError, MemifPort, PacketPort, PortError, Received, TapPort, Transport, XdpPort, dpdk_plugin,
    dpdk_settings, run_in,
};
pub use probes::{Next, Probes, probe};
pub use processors::{Accounted, Look, Whose};
pub use self_test::{Ceiling, SelfTest, self_test};
pub use synthetic::{
    AddressTable, Behaviour, BehaviourCounts, Control, NatFault, NatTable, Stalls, SyntheticPort, WhenFull,
};
