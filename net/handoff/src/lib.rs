//! Received packets spread over workers by their flow.
//!
//! [`Handoff`] is the control plane. It enables the feature `worker-handoff` on the arc `device-input` of an
//! interface and says which workers take its packets; the node picks one by the hash of a packet's flow and hands it
//! over through the rings that lie between all threads. Packets of a flow stay in order. The default for an interface
//! depends on the workers: while there are more workers than queues, all workers share.
#![forbid(unsafe_code)]

pub mod cli;
mod control;
mod error;
mod flow;
mod lines;
pub mod node;
mod running;
mod spread;
mod tunnel;

pub use control::{DefaultPlacement, Handoff, OnInterface, Workers};
pub use error::HandoffError;
pub use flow::{Depth, Label, Rules, hash};

use std::collections::BTreeMap;
use std::rc::Rc;

use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};
use shoal_module::{Capacity, Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "handoff",
    description: "Received packets spread over workers by their flow",
    init,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    sections: &[SECTION],
    capacity,
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

const SECTION: Section = Section {
    name: "handoff",
    doc: "how received packets are spread over workers",
    effect: Effect::Honoured,
    body: Body::Keys(&[Key::new(
        "default",
        Kind::Choice(&["auto", "off"]),
        "for interfaces without a setting: `auto`, the default, spreads their packets over all workers while \
         there are more workers than receive queues, so that none is idle; `off` leaves packets where they come in",
    )]),
};

/// The rings between threads, whose memory is there already.
fn capacity(control: &Control) -> Vec<Capacity> {
    let Some(rings) = control.get::<Handoff>().ok().map(|handoff| handoff.rings()) else {
        return Vec::new();
    };
    let (waiting, all) = rings.iter().fold((0, 0), |(w, all), ring| (w + ring.waiting, all + ring.capacity));
    vec![Capacity::up_to("handoff frames", waiting, all, 0)]
}

/// What the start-up file says. A router put together without one spreads nothing by itself.
fn unsaid(control: &Control) -> DefaultPlacement {
    let Ok(sections) = control.get::<BTreeMap<&'static str, Settings>>() else {
        return DefaultPlacement::Off;
    };
    match sections.get(SECTION.name).and_then(|settings| settings.text("default")) {
        Some("off") => DefaultPlacement::Off,
        _ => DefaultPlacement::Auto,
    }
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let handoff = Handoff::new(control, unsaid(control))?;
    control.put_rc(handoff);
    Ok(())
}
