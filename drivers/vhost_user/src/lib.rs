//! vhost-user: virtual machines through shared memory.
//!
//! [`Vhosts`] is the control plane: interfaces, sockets, and the tasks that talk to hypervisors. `vhost-user-input` and
//! the `-tx` nodes move packets. Below them, usable alone:
//!
//! - [`Session`]: what follows from what a front end says, whatever that is.
//! - [`Queue`], [`Sender`]: this end of a split virtqueue, whose other end is a stranger's.
//! - [`Message`]: the messages of the control channel.
//!
//! A guest may write to its memory whatever it likes, at any time. Each value is read once and checked before it is used;
//! packets are copied before anybody looks at them.
#![forbid(unsafe_code)]

pub mod api;
mod call;
pub mod cli;
mod config;
mod control;
mod error;
mod features;
mod info;
mod lines;
mod memory;
mod port;
mod proto;
mod queue;
mod running;
mod rx;
mod session;
mod show;
mod socket;
mod task;
mod tx;
mod vring;

use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};
use shoal_module::{Control, InitError, Module};

pub use call::Call;
pub use config::{CreateVhost, Role};
pub use control::Vhosts;
pub use error::Error;
pub use features::{FEATURES, Features, PROTOCOL};
pub use info::{Detail, RingInfo, VhostInfo};
pub use memory::{GuestMemory, MemoryError, Piece, RegionDescription, Trust};
pub use proto::{Answer, HEADER_BYTES, Header, MOST_BYTES, Malformed, Message};
pub use queue::{FoundPackets, Progress, Queue, Reader, Refusal, RingFault, Sender};
pub use session::{Fault, Gate, MOST_PAIRS, MOST_RINGS, Ring, Rings, Session};
pub use shoal_link::{Doorbell, EventError, EventFd, PeerFd};
pub use vring::{Desc, Vring, VringError, VringPlace};

/// The module.
pub static MODULE: Module = Module {
    name: "vhost-user",
    description: "vhost-user: virtual machines through shared memory",
    init,
    commands: cli::COMMANDS,
    api: &[&api::API],
    sections: &[SECTION],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Why a word of VPP's changes nothing.
const CALLS: &str = "the guest says itself how often it wants to be woken";

const SECTION: Section = Section {
    name: "vhost-user",
    doc: "virtual machines",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new(
            "trust-guests",
            Kind::Flag,
            "map guests' memory also where it could be taken away, which would end the router",
        ),
        Key::accepted(
            "coalesce-frames",
            Kind::U64 { min: 0, max: u32::MAX as u64 },
            CALLS,
            "packets per call",
        ),
        Key::accepted("coalesce-time", Kind::Seconds { min: 0.0, max: 3600.0 }, CALLS, "time between calls"),
        Key::accepted(
            "dont-dump-memory",
            Kind::Flag,
            "guests' memory is never in core dumps",
            "leave guests' memory out of core dumps",
        ),
    ]),
};

/// What the start-up file says.
fn trust(control: &Control) -> Trust {
    let sections = control.get::<BTreeMap<&'static str, Settings>>();
    let trusted = sections.is_ok_and(|s| s.get(SECTION.name).is_some_and(|s| s.flag("trust-guests")));
    if trusted { Trust::Guests } else { Trust::NoGuest }
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (vhosts, heard) = Vhosts::new(control, trust(control))?;
    control.processes()?.spawn("vhost-user-watch", control::listen(heard, Rc::downgrade(&vhosts)));
    control.put_rc(vhosts);
    Ok(())
}
