//! The router's counters for Prometheus: `GET /metrics` on a port of this machine.
//!
//! A thread of its own serves HTTP. It reads the stats segment as any other process would, so that neither workers
//! nor the main thread notice a scrape. [`families`] turns counters into what Prometheus wants to see, by names of
//! its kind (`shoal_interface_receive_packets_total`); [`vpp`] gives those of VPP's exporter on request. [`server`]
//! bounds what a client may take: connections, bytes of a request, time.
#![forbid(unsafe_code)]

mod cli;
mod control;
pub mod families;
mod http;
mod lines;
mod scrape;
pub mod server;
pub mod vpp;

pub use control::{Metrics, MetricsError, State};

use std::collections::BTreeMap;
use std::net::SocketAddr;
use std::rc::Rc;

use shoal_module::config::{Body, Effect, Key, Kind, Section, Settings};
use shoal_module::{Control, InitError, Module, Phase, Running};

/// Where it listens unless told otherwise: the port of VPP's exporter.
pub const USUAL: &str = "127.0.0.1:9482";

const SECTION: Section = Section {
    name: "metrics",
    doc: "the counters for Prometheus, over HTTP; without this section the router serves none",
    effect: Effect::Honoured,
    body: Body::Keys(&[Key::new(
        "listen",
        Kind::Word,
        "address and port; default 127.0.0.1:9482. No password is asked for",
    )]),
};

/// The module.
pub static MODULE: Module = Module {
    name: "metrics",
    description: "Counters for Prometheus over HTTP",
    init,
    start,
    commands: cli::COMMANDS,
    arg_types: cli::ARG_TYPES,
    sections: &[SECTION],
    running,
    lines: lines::LINES,
    ..Module::NONE
};

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(Metrics::new(control.graph()?));
    Ok(())
}

/// Where the start-up file wants it to listen, if it has the section.
///
/// # Errors
/// The address is none, in words.
pub fn address(settings: &Settings) -> Result<SocketAddr, String> {
    let text = settings.text("listen").unwrap_or(USUAL);
    let address = text.parse().ok().filter(|address: &SocketAddr| address.port() != 0);
    address.ok_or_else(|| format!("metrics listen {text}: give an address and a port such as {USUAL}"))
}

/// Where the start-up file has it.
fn first(control: &Control) -> Option<Result<SocketAddr, String>> {
    let sections = control.get::<BTreeMap<&'static str, Settings>>().ok()?;
    sections.get(SECTION.name).map(address)
}

/// Where it listens, if that is elsewhere than the start-up file says.
fn running(control: &Control, running: &mut Running) {
    let Ok(metrics) = control.get::<Metrics>() else { return };
    let first = first(control).and_then(Result::ok);
    match metrics.state().address {
        now if now == first => {}
        Some(address) => running.line(Phase::System, format!("set metrics listen {address}")),
        None => running.line(Phase::System, "set metrics disable"),
    }
}

/// Listens, if the start-up file has the section.
fn start(control: &Rc<Control>) -> Result<(), InitError> {
    let Some(address) = first(control) else { return Ok(()) };
    let address = address.map_err(InitError::Other)?;
    control.get::<Metrics>()?.listen(address).map_err(|e| InitError::Other(e.to_string()))
}
