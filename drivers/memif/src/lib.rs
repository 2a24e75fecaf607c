//! memif: packets between processes through shared memory, protocol version 2.0.
//!
//! [`Memifs`] is the control plane: sockets, interfaces, and the words exchanged with peers. `memif-input` and the `-tx`
//! nodes move packets. Below them, usable alone:
//!
//! - [`Consumer`], [`Producer`]: the two ends of a ring, either of which may be a stranger's.
//! - [`Message`]: the messages of the control channel.
//!
//! The peer may write to shared memory whatever it likes, at any time. Each value is read once and checked before it is
//! used; packets are copied before anybody looks at them.
#![forbid(unsafe_code)]

pub mod api;
pub mod cli;
mod config;
mod consumer;
mod control;
mod error;
mod info;
mod lines;
mod memif;
mod port;
mod producer;
mod proto;
mod region;
mod ring;
mod running;
mod rx;
mod session;
mod show;
mod socket;
mod tx;

use std::rc::Rc;

use shoal_module::{Control, InitError, Module};

pub use config::{BUFFER_SIZE, CreateMemif, MOST_QUEUES, RING_SIZE, Role};
pub use consumer::{Consumer, Found, RingFault, Slots};
pub use control::Memifs;
pub use error::Error;
pub use info::{Detail, MemifInfo, RingInfo, SocketInfo};
pub use producer::{Producer, Refusal};
pub use proto::{AddRing, Hello, Init, MESSAGE_BYTES, Malformed, Message, Mode, Secret, VERSION};
pub use region::{Region, RegionError, Regions};
pub use ring::{Desc, RingMemory, RingPlace, RingPlaceError, ring_bytes};
pub use shoal_link::{Doorbell, EventError, EventFd, Listener, PeerFd};
pub use socket::{Link, LinkError, Place, listen};

/// The module.
pub static MODULE: Module = Module {
    name: "memif",
    description: "memif: packets between processes through shared memory",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (memifs, heard) = control::Memifs::new(control)?;
    control.processes()?.spawn("memif-watch", control::listen(heard, Rc::downgrade(&memifs)));
    control.put_rc(memifs);
    Ok(())
}
