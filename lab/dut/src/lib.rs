//! Devices under test: started, checked, reset, taken away.
//!
//! A comparison is fair if every device gets the same: the same addresses and neighbours, frames from the same wires, a
//! processor that is not the tester's, and nothing that another run left behind. So all devices stand on the same ground.
//!
//! ```text
//!  registry    names ----> Device
//!                            |
//!              Linux, Wire   |   UserSpace<Adapter>: Shoal, Testpmd, Ovs, Vpp
//!                     \      |      /
//!  stand        Stand: folder, namespaces, record of commands, files and notes
//!                |   wires    two veth pairs (or TAPs), RPS, offloads off
//!                |   probe    datagrams both ways, both families, before the tester comes; where softirqs ran
//!                |   process  its programs: pinned, logged, ended with the lab
//!                v
//!  cleaner      Undo: what was made, journalled before it was, taken away in reverse order
//!  leftover     the same for labs that were killed
//! ```
//!
//! **Nothing is left behind.** A [`Device`](shoal_lab_plan::Device) cleans up when it is stopped, when it is dropped, and when
//! its start fails half way. A lab that is killed cannot do that: the kernel ends its programs (`PR_SET_PDEATHSIG`), and the
//! next start, or [`sweep`], works off its journal and deletes namespaces with its prefix and process id.
//!
//! **The kernel as a device** forwards wherever a frame is received, which on a veth is the sender's processor: the
//! tester's. RPS moves it, and the probe counts in `/proc/net/softnet_stat` that it did.
//!
//! Devices that are attached to by memif are not probed here, because this crate has no memif: the owner of an engine
//! sends the first frames.
#![forbid(unsafe_code)]

mod cleaner;
mod device_environment;
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
mod routing;
mod settings;
mod shoal;
mod shoal_config;
mod softnet;
mod testpmd;
mod user_space;
mod vpp;
mod vpp_config;
mod wire;
mod wires;

pub use leftover::{Swept, sweep};
pub use program::{can_run, find};
pub use registry::{KNOWN, Known, UnknownDevice, device, devices};
pub use routing::{Daemon, Forwarder, LINKS, LinkFailure, PeerLink, RoutingBed, Spent};
pub use settings::{Cores, Settings};
