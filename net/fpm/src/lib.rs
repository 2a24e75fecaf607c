//! FPM: routes that FRR's zebra gives the router by a connection of its own, as its module `dplane_fpm_nl` does.
//!
//! ```text
//! bgpd, ospfd, isisd, staticd --> zebra --> kernel --> linux-cp (netlink)
//!                                       --> fpm: frames of netlink messages over TCP --> the forwarding table
//!                                       <-- which routes are in the forwarding table
//! ```
//! Zebra connects, the router listens on a loopback address. [`Fpm`] is the control plane, and the whole of it.
#![forbid(unsafe_code)]

mod batch;
pub mod cli;
mod control;
mod frame;
mod lines;
mod netlink;
mod running;
mod server;
mod sweep;
mod table;

pub use control::{Fpm, State};
pub use frame::{FrameError, Frames, wrap};
pub use netlink::{FpmMessage, Messages, Route, RouteExit, answer, read};
pub use shoal_lcp::{DaemonAddress as Listen, ListenError as FpmError};
pub use table::AnnouncedRoutes;

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;
use std::time::Duration;

use shoal_lcp::Lcp;
use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};
use shoal_module::{Control, InitError, Module};

/// The module.
pub static MODULE: Module = Module {
    name: "fpm",
    description: "Routes of FRR's zebra (FPM)",
    init,
    start,
    commands: cli::COMMANDS,
    sections: &[SECTION],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

const SECTION: Section = Section {
    name: "fpm",
    doc: "routes of FRR's zebra by its forwarding plane manager protocol",
    effect: Effect::Honoured,
    body: Body::Keys(&[
        Key::new(
            "listen",
            Kind::Word,
            "loopback address and port that zebra connects to, such as 127.0.0.1:2620",
        ),
        Key::new("netns", Kind::Word, "network namespace of zebra, if not that of the router"),
        Key::new(
            "sweep-after",
            Kind::Seconds { min: 5.0, max: 86_400.0 },
            "seconds that zebra has to tell its routes again when it comes back (60)",
        ),
    ]),
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    // Routes leave by the interfaces of linux-cp, which the start-up file may switch off.
    if control.get::<Lcp>().is_err() {
        return Ok(());
    }
    let fpm = Fpm::new(control)?;
    control.put_rc(Rc::clone(&fpm));
    fpm.begin(control)
}

/// What the start-up file says.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let Ok(sections) = control.get::<BTreeMap<&'static str, Settings>>() else { return Ok(()) };
    let Some(settings) = sections.get(SECTION.name) else { return Ok(()) };
    let fpm = control.get::<Fpm>()?;
    if let Some(seconds) = settings.seconds("sweep-after") {
        fpm.set_sweep_after(Duration::from_secs_f64(seconds));
    }
    let Some(at) = settings.text("listen") else { return Ok(()) };
    let at: SocketAddr = at.parse().map_err(|_| {
        InitError::Other(format!(
            "fpm {{ listen {at} }}: expected an address and a port such as {}",
            control::USUAL
        ))
    })?;
    let listen = Listen { at, netns: settings.text("netns").map(str::to_owned) };
    fpm.listen_from_start(listen);
    Ok(())
}
