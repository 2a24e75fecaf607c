//! `set metrics`, `show metrics`.

use std::fmt;
use std::net::SocketAddr;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, Output, check};

use crate::{Metrics, USUAL};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new("set metrics listen <address:ip-port>", "Serve counters to Prometheus there", set)
        .doc(
            "`http://ADDRESS/metrics` has all counters; `?format=vpp` those of VPP's exporter, by its names. No password is \
             asked for, so an address of this machine alone (127.0.0.1:9482, [::1]:9482) is safest. \
             `metrics { listen 127.0.0.1:9482 }` in the start-up file says the same.",
        ),
    Command::new("set metrics disable", "Serve counters to Prometheus no more", disable)
        .examples(&["set metrics disable"]),
    Command::new("show metrics", "Show where counters are served to Prometheus, and how often", show)
        .examples(&["show metrics"]),
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[ArgType::new("ip-port", "an address and a port", check::<Port>)];

struct Port(SocketAddr);

impl FromArg for Port {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let expected = || Expected::new(format!("an address and a port such as {USUAL}"));
        text.parse().map(Port).map_err(|_| expected())
    }
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let Port(address) = args.get("address")?;
    control.get::<Metrics>()?.listen(address)?;
    Ok(Output::none())
}

fn disable(control: &Control, _: &Args) -> Result<Output, CliError> {
    control.get::<Metrics>()?.disable();
    Ok(Output::none())
}

#[derive(serde::Serialize)]
struct View {
    address: Option<SocketAddr>,
    scrapes: u64,
    refused_connections: u64,
    last_scrape_microseconds: u64,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let state = control.get::<Metrics>()?.state();
    Ok(Output::view(View {
        address: state.address,
        scrapes: state.scrapes,
        refused_connections: state.refused,
        last_scrape_microseconds: state.last_microseconds,
    }))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.address {
            Some(address) => writeln!(f, "metrics at http://{address}/metrics")?,
            None => writeln!(f, "metrics are served nowhere")?,
        }
        writeln!(f, "  {} scrapes, the last took {} us", self.scrapes, self.last_scrape_microseconds)?;
        writeln!(f, "  {} connections refused", self.refused_connections)
    }
}
