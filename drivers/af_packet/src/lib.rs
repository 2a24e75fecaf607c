//! AF_PACKET: the interfaces the kernel already has.
//!
//! [`HostInterfaces`] is the control plane: it takes kernel interfaces into the router and follows what the kernel
//! says of them. `af-packet-input` and the `-tx` nodes move packets. Below them, usable alone:
//!
//! - [`RxRing`]: one receive queue, a TPACKET_V3 ring read in place.
//! - [`TxQueue`]: one transmit queue, frames gathered from segments and sent by the batch.
//!
//! What the kernel says about an interface, now and whenever it changes, is [`shoal_link`]'s.
//!
//! Checksum-offloaded frames and superframes cross both queues with their `virtio_net_hdr`
//! ([`shoal_vnet`]), so local TCP with default offloads works.
#![deny(unsafe_code)]

pub mod api;
pub mod cli;
mod control;
mod error;
mod lines;
mod port;
mod queue;
mod resize;
mod running;
mod rx;
mod send;
#[allow(unsafe_code)]
mod sys;
mod tx;
mod watch;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

pub use control::{CreateHostInterface, HostInterfaces, Mode};
pub use error::Error;
pub use queue::TxOffload;
pub use sys::{
    Fanout, Promiscuous, Qdisc, RingFault, RingVersion, RxConfig, RxFrame, RxHandle, RxRing, RxStats,
    TxBatch, TxConfig, TxQueue, TxRefused, TxReport, VlanTag,
};

/// The module.
pub static MODULE: Module = Module {
    name: "af_packet",
    description: "Host interfaces: what the kernel already drives (AF_PACKET)",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put_rc(HostInterfaces::new(control)?);
    Ok(())
}
