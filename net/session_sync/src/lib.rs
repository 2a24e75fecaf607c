//! Two routers that know each other's NAT sessions, so that either can go on when the other fails.
//!
//! ```text
//! workers: sessions -- rings --> main thread: records --> datagrams (ordered, acknowledged, authentic) --> ip4-lookup, ip6-lookup
//! ip4-local, ip6-local -> session-sync4-input, session-sync6-input --> main thread: records --> workers: sessions
//! ```
//! | question | file |
//! |---|---|
//! | what a kind of NAT offers | `shoal_nat_state::sync` |
//! | what a datagram is | [`wire`], [`auth`] |
//! | whether it is of now | [`association`], [`window`] |
//! | who forwards | [`config`], `control/role` |
//! | what is sent when | `control/pump` |
//! | what becomes of what comes | `control/link` |
//!
//! [`SessionSync`] is the control plane.
#![forbid(unsafe_code)]

pub mod api;
pub mod association;
pub mod auth;
mod cli;
pub mod config;
mod control;
mod counters;
mod error;
mod lines;
pub mod node;
mod running;
pub mod window;
pub mod wire;

pub use auth::Key;
pub use config::{Peer, RoleSource, Timers};
pub use control::{FeatureView, SessionSync, View};
pub use error::SyncError;

use std::rc::Rc;

use shoal_graph::process::Receiver;
use shoal_module::{Control, InitError, Module};

use control::ChannelEnds;
use node::ReceivedDatagram;

/// The module.
pub static MODULE: Module = Module {
    name: "session_sync",
    description: "NAT sessions that two routers know",
    init,
    start,
    commands: cli::COMMANDS,
    api: &[&api::API],
    running: running::running,
    lines: lines::LINES,
    ..Module::NONE
};

/// Datagrams read in one go.
const READ: usize = 16;

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let (sync, ends) = SessionSync::new(control)?;
    control.put_rc(sync);
    control.put(ends);
    Ok(())
}

fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let (processes, sync, ends) =
        (control.processes()?, control.get::<SessionSync>()?, control.get::<ChannelEnds>()?);
    processes.spawn("session-sync-input", listen(Rc::clone(&sync), ends.known.clone()));
    processes.spawn("session-sync-strangers", listen(Rc::clone(&sync), ends.strange.clone()));
    processes.spawn_ticking("session-sync-process", ends.rung.clone(), move || sync.tick());
    Ok(())
}

/// Reads what the other router says; one answer is for all that has come.
async fn listen(sync: Rc<SessionSync>, heard: Receiver<ReceivedDatagram>) {
    let pace = shoal_module::cli::Pace::default();
    while let Ok(first) = heard.recv().await {
        sync.hear(&first);
        for _ in 1..READ {
            let Ok(next) = heard.try_recv() else { break };
            sync.hear(&next);
        }
        sync.acknowledge();
        pace.pause().await;
    }
}
