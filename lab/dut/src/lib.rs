//! Devices under test: started, checked, reset, taken away.
#![forbid(unsafe_code)]

mod cleaner;
mod dpdk;
mod error;
mod interface_counters;
mod kernel;
mod leftover;
mod line;
mod linux;
mod ovs;
mod probe;
mod proc_stat;
mod process;
mod program;
mod registry;
mod routes;
mod settings;
mod shoal;
mod shoal_config;
mod softnet;
mod stand;
mod testpmd;
mod user_space;
mod vpp;
mod vpp_config;
mod wire;
mod wires;

pub use error::SetupError;
pub use leftover::{Swept, sweep};
pub use registry::{KNOWN, Known, UnknownDevice, device, devices};
pub use settings::{Cores, Settings};
