//! Commands: `show ip icmp`, `set ip icmp rate-limit`, and the same for IPv6.

use std::fmt;

use serde::Serialize;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::limiter::Rate;
use crate::{Icmp, Icmp6, Messages, TypeCount};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new("show ip icmp", "Show the limit of ICMP errors and what came and went", show)
        .examples(&["show ip icmp"]),
    Command::new(
        "set ip icmp rate-limit <rate:u32> [burst <burst:u32>]",
        "Limit the ICMP errors sent, per second; 0 is no limit",
        rate_limit,
    )
    .examples(&["set ip icmp rate-limit 1000 burst 50", "set ip icmp rate-limit 0"]),
    Command::new("show ip6 icmp", "Show the limit of ICMPv6 errors and what came and went", show6)
        .examples(&["show ip6 icmp"]),
    Command::new(
        "set ip6 icmp rate-limit <rate:u32> [burst <burst:u32>]",
        "Limit the ICMPv6 errors sent, per second; 0 is no limit",
        rate_limit6,
    )
    .examples(&["set ip6 icmp rate-limit 1000 burst 50", "set ip6 icmp rate-limit 0"]),
];

/// `show ip icmp`.
#[derive(Serialize)]
struct View {
    rate_limit: Rate,
    types: Vec<Row>,
}

#[derive(Serialize)]
struct Row {
    r#type: u8,
    name: String,
    received: u64,
    sent: u64,
}

impl fmt::Display for View {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.rate_limit {
            Rate { per_second: 0, .. } => writeln!(f, "errors: not limited")?,
            Rate { per_second, burst } => {
                writeln!(f, "errors: at most {per_second} per second, burst {burst}")?;
            }
        }
        if !self.types.is_empty() {
            writeln!(f, "{:<4}{:<28}{:>12}{:>12}", "Type", "", "Received", "Sent")?;
        }
        for row in &self.types {
            writeln!(f, "{:<4}{:<28}{:>12}{:>12}", row.r#type, row.name, row.received, row.sent)?;
        }
        Ok(())
    }
}

fn view<T: fmt::Display + Copy>(icmp: &Messages<T>, number: fn(T) -> u8) -> Output {
    let row = |c: TypeCount<T>| Row {
        r#type: number(c.kind),
        name: c.kind.to_string(),
        received: c.rx,
        sent: c.tx,
    };
    Output::view(View { rate_limit: icmp.rate(), types: icmp.counts().into_iter().map(row).collect() })
}

fn show(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(view(&*control.get::<Icmp>()?, |kind| kind.0))
}

fn show6(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(view(&*control.get::<Icmp6>()?, |kind| kind.0))
}

fn set_rate<T>(icmp: &Messages<T>, args: &Args) -> Result<Output, CliError> {
    let rate = Rate { per_second: args.get("rate")?, burst: args.or("burst", icmp.rate().burst)? };
    icmp.set_rate(rate)?;
    Ok(Output::none())
}

fn rate_limit(control: &Control, args: &Args) -> Result<Output, CliError> {
    set_rate(&*control.get::<Icmp>()?, args)
}

fn rate_limit6(control: &Control, args: &Args) -> Result<Output, CliError> {
    set_rate(&*control.get::<Icmp6>()?, args)
}
