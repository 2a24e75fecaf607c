//! Commands of bridge domains.

mod domain;
mod fib;
mod loops;
mod member;
mod show;
mod show_fib;
mod storm;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Args, CliError, Command, Expected, FromArg, check, nearest};

use crate::{BridgeError, Bridges};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    domain::CREATE,
    domain::LEARN,
    domain::FORWARD,
    domain::FLOOD,
    domain::UU_FLOOD,
    domain::ARP_TERM,
    domain::ARP_UFWD,
    domain::MAC_AGE,
    domain::LEARN_LIMIT,
    domain::DEFAULT_LEARN_LIMIT,
    domain::ARP_ENTRY,
    loops::SET,
    member::BRIDGE,
    member::LEARN,
    member::FORWARD,
    member::FLOOD,
    storm::SET,
    member::BVI_CREATE,
    member::BVI_DELETE,
    fib::ADD,
    fib::DEL,
    fib::FLUSH_ALL,
    fib::FLUSH_INTERFACE,
    fib::FLUSH_DOMAIN,
    fib::CLEAR,
    show::DOMAIN,
    loops::SHOW,
    storm::SHOW,
    show::MODE,
    show_fib::SHOW,
];

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] =
    &[ArgType::live("bridge-domain", "the number of a bridge domain", check::<DomainArg>, numbers)];

/// A domain that is there, or 0.
pub(crate) struct DomainArg(pub(crate) u32);

impl FromArg for DomainArg {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        let bridges = control.get::<Bridges>().map_err(|e| Expected::new(e.to_string()))?;
        let Ok(number) = text.parse::<u32>() else {
            return Err(Expected::new("the number of a bridge domain"));
        };
        if bridges.index_of(number).is_ok() {
            return Ok(DomainArg(number));
        }
        let all: Vec<String> = bridges.numbers().iter().map(u32::to_string).collect();
        let near = nearest(text, all.iter().map(String::as_str)).map(str::to_owned);
        Err(Expected::new(format!("a bridge domain (No such bridge domain {number})")).nearest(near))
    }
}

fn numbers(control: &Control, _: &str) -> Vec<String> {
    let Ok(bridges) = control.get::<Bridges>() else { return Vec::new() };
    bridges.numbers().iter().map(u32::to_string).collect()
}

/// The domain that a line names as `domain`.
fn domain_of(args: &Args) -> Result<u32, CliError> {
    Ok(args.get::<DomainArg>("domain")?.0)
}

/// Points at the argument that is wrong.
fn refused(error: BridgeError) -> CliError {
    let text = error.to_string();
    match error {
        BridgeError::TooLarge(_) => CliError::argument("number", text).nearest(Some("16777215".into())),
        BridgeError::Exists(_) | BridgeError::Default => CliError::argument("number", text),
        BridgeError::NoDomain(_) => CliError::argument("domain", text),
        _ => CliError::failed(text),
    }
}
