//! Commands: `set interface source-limit`, `show source-limit`.

use std::fmt;

use serde::Serialize;
use shoal_interface::{InterfaceArg, Interfaces};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::{Host, Limit, LimitError, SourceLimit};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "set interface source-limit <interface> [rate <rate:u32>] [burst <burst:u32>] [disable]",
        "Limit how many packets a second each host may send by an interface",
        set,
    )
    .examples(&[
        "set interface source-limit local0 rate 1000",
        "set interface source-limit local0 rate 1000 burst 50",
        "set interface source-limit local0 disable",
    ])
    .doc(
        "A host is a source address, of IPv4 or IPv6. `rate` is in packets a second, `burst` is how many may come at once: \
         a tenth of the rate by default. Each worker counts for itself.",
    ),
    Command::new("show source-limit", "Show limits of sources, and hosts that lost packets", show)
        .examples(&["show source-limit"]),
];

fn refused(error: LimitError) -> CliError {
    match error {
        LimitError::Range { what, value, least, most } => CliError::argument(what, error_text(what, value))
            .nearest(Some(value.clamp(least, most).to_string())),
        other => CliError::failed(other.to_string()),
    }
}

fn error_text(what: &str, value: u32) -> String {
    format!("a {what} of {value} is not possible")
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (limit, InterfaceArg(interface)) = (control.get::<SourceLimit>()?, args.get("interface")?);
    let (rate, burst) = (args.opt::<u32>("rate")?, args.opt::<u32>("burst")?);
    let off = args.has("disable");
    let wanted = match rate {
        _ if off && (rate.is_some() || burst.is_some()) => {
            return Err(CliError::argument("disable", "there is nothing to be set then"));
        }
        None if off => None,
        None => return Err(CliError::argument("interface", "`rate' is missing")),
        Some(rate) => Some(Limit { rate, burst: burst.unwrap_or((rate / 10).clamp(1, Limit::BURST.1)) }),
    };
    limit.set(interface, wanted).map_err(refused)?;
    Ok(Output::none())
}

#[derive(Serialize)]
struct LimitRow {
    interface: String,
    rate: u32,
    burst: u32,
}

#[derive(Serialize)]
struct HostRow {
    address: String,
    interface: String,
    thread: usize,
    lost: u64,
}

#[derive(Serialize)]
struct View {
    limits: Vec<LimitRow>,
    /// Hosts known, of all threads.
    known: usize,
    hosts: Vec<HostRow>,
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    let (limit, interfaces) = (control.get::<SourceLimit>()?, control.get::<Interfaces>()?);
    let name = |index| interfaces.name(index).unwrap_or_else(|_| "deleted".into());
    let look = limit.look().map_err(refused)?;
    let row = |Host { thread, interface, address, lost }| HostRow {
        address: address.to_string(),
        interface: name(interface),
        thread,
        lost,
    };
    let limits = limit.limits().into_iter();
    Ok(Output::view(View {
        limits: limits
            .map(|(index, Limit { rate, burst })| LimitRow { interface: name(index), rate, burst })
            .collect(),
        known: look.hosts.values().sum(),
        hosts: look.losers.into_iter().map(row).collect(),
    }))
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for LimitRow { interface, rate, burst } in &self.limits {
            writeln!(f, "{interface}: {rate} packets/s, burst {burst}")?;
        }
        writeln!(f, "{} hosts known", self.known)?;
        for HostRow { address, interface, thread, lost } in &self.hosts {
            writeln!(f, "  {address} on {interface}, thread {thread}: {lost} packets lost")?;
        }
        Ok(())
    }
}
