//! Commands.

mod ha;
mod mapping;
mod session;
mod set;
mod show;

use std::fmt;
use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Expected, FromArg, Output};

use crate::{Nat44Ei, NatError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    set::PLUGIN,
    set::INTERFACE,
    set::ADDRESS,
    set::INTERFACE_ADDRESS,
    set::FORWARDING,
    set::USER_LIMIT,
    set::TIMEOUT,
    set::ALGORITHM,
    set::EXEMPT,
    set::MSS,
    set::IPFIX,
    mapping::STATIC,
    mapping::IDENTITY,
    ha::LISTENER,
    ha::FAILOVER,
    ha::FLUSH,
    ha::RESYNC,
    ha::SHOW,
    session::DEL,
    session::DEL_USER,
    session::CLEAR,
    session::SHOW,
    session::SUMMARY,
    show::ADDRESSES,
    show::INTERFACES,
    show::MAPPINGS,
    show::INTERFACE_ADDRESSES,
    show::ALGORITHM,
    show::BLOCKS,
    show::EXEMPT,
    show::MSS,
    show::USER_LIMIT,
    show::TIMEOUTS,
    show::WORKERS,
    show::TABLES,
];

fn nat(control: &Control) -> Result<Rc<Nat44Ei>, CliError> {
    Ok(control.get::<Nat44Ei>()?)
}

/// Points at the argument that is wrong.
fn refused(error: NatError) -> CliError {
    let text = error.to_string();
    match error {
        NatError::Sessions { .. } => CliError::argument("sessions", text),
        NatError::Range(..) => CliError::argument("last", text),
        NatError::AddressExists(_) | NatError::NoAddress(_) => CliError::argument("first", text),
        _ => CliError::failed(text),
    }
}

/// An address and a port: `192.0.2.1:80`.
struct Endpoint(Ipv4Addr, u16);

impl FromArg for Endpoint {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let parts = text.split_once(':').and_then(|(a, p)| Some((a.parse().ok()?, p.parse().ok()?)));
        let (address, port) = parts.ok_or_else(|| Expected::new("an address and a port, as 192.0.2.1:80"))?;
        Ok(Endpoint(address, port))
    }
}

/// The protocol among the words of a line; 0 if there is none.
fn protocol(args: &Args) -> u8 {
    let words = [("tcp", 6), ("udp", 17), ("icmp", 1)];
    words.into_iter().find(|(word, _)| args.has(word)).map_or(0, |(_, number)| number)
}

fn text(write: impl FnOnce(&mut String) -> fmt::Result) -> Result<Output, CliError> {
    let mut text = String::new();
    write(&mut text).map_err(|e| CliError::failed(e.to_string()))?;
    Ok(Output::text(text))
}

fn name(control: &Control, interface: SwIfIndex) -> String {
    let named = control.get::<Interfaces>().ok().and_then(|all| all.name(interface).ok());
    named.unwrap_or_else(|| interface.0.to_string())
}
