//! Tables and prefixes as arguments.

use std::net::Ipv4Addr;

use shoal_module::Control;
use shoal_module::cli::{ArgType, Expected, FromArg, check};
use shoal_wire::Ip4Prefix;

use crate::{Fib, FibError, FibIndex};

/// A table given by its id.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableArg {
    /// Its id.
    pub id: u32,
    /// Its index.
    pub index: FibIndex,
}

impl FromArg for TableArg {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        let fib = control.get::<Fib>().map_err(|e| Expected::new(e.to_string()))?;
        let id =
            u32::from_arg(text, control).map_err(|e| Expected { what: "the id of a table".into(), ..e })?;
        match fib.index_of(id) {
            Ok(index) => Ok(TableArg { id, index }),
            Err(FibError::NoTable { nearest, .. }) => {
                Err(Expected::new("the id of a table").nearest(Some(nearest.to_string())))
            }
            Err(e) => Err(Expected::new(e.to_string())),
        }
    }
}

/// What to look for: an address's longest match, or one prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Match {
    Longest(Ipv4Addr),
    Exact(Ip4Prefix),
}

impl FromArg for Match {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        if text.contains('/') {
            return Ip4Prefix::from_arg(text, control).map(Match::Exact);
        }
        Ipv4Addr::from_arg(text, control)
            .map(Match::Longest)
            .map_err(|_| Expected::new("an IPv4 address such as 192.0.2.1, or a prefix such as 192.0.2.0/24"))
    }
}

fn ids(control: &Control, _: &str) -> Vec<String> {
    control.get::<Fib>().map(|fib| fib.ids().iter().map(u32::to_string).collect()).unwrap_or_default()
}

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::live("table", "id of a forwarding table", check::<TableArg>, ids),
    ArgType::new("ip4-match", "IPv4 address or prefix", check::<Match>),
];
