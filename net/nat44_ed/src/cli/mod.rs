//! Commands.

mod independent;
mod mapping;
mod session;
mod set;
mod show;

use std::net::Ipv4Addr;
use std::rc::Rc;

use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Expected, FromArg};

use crate::{Nat44, NatError};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    set::PLUGIN,
    set::INTERFACE,
    set::ADDRESS,
    set::INTERFACE_ADDRESS,
    independent::SET,
    set::FORWARDING,
    set::TIMEOUT,
    set::LIMIT,
    set::MSS,
    set::IPFIX,
    set::VRF_TABLE,
    set::VRF_ROUTE,
    mapping::STATIC,
    mapping::IDENTITY,
    mapping::BALANCED,
    mapping::BACK_END,
    session::DEL,
    session::SHOW,
    session::SUMMARY,
    session::CLEAR,
    show::ADDRESSES,
    show::INTERFACES,
    show::MAPPINGS,
    show::INTERFACE_ADDRESSES,
    show::VRF_TABLES,
    show::MSS,
    show::TIMEOUTS,
    show::WORKERS,
];

fn nat(control: &Control) -> Result<Rc<Nat44>, CliError> {
    Ok(control.get::<Nat44>()?)
}

/// Points at the argument that is wrong.
fn refused(error: NatError) -> CliError {
    let text = error.to_string();
    match error {
        NatError::Sessions { .. } => CliError::argument("sessions", text),
        NatError::Limit { .. } => CliError::argument("limit", text).nearest(Some("1".into())),
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
