//! Tables and prefixes as arguments.

use std::net::IpAddr;

use shoal_adj::Family;
use shoal_module::Control;
use shoal_module::cli::{ArgType, CliError, Expected, FromArg, check};
use shoal_wire::IpPrefix;

use crate::{Fib, FibError, FibIndex};

/// A table given by its id. There is one in each family, or in one of them: which is meant is known by what it is
/// for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct TableArg(pub u32);

impl TableArg {
    /// The index of the family's table of this id; the error points at the argument `name`.
    ///
    /// # Errors
    /// The family has none.
    pub fn of(self, fib: &Fib, family: Family, name: &'static str) -> Result<FibIndex, CliError> {
        fib.index_of(family, self.0).map_err(|e| {
            let nearest =
                if let FibError::NoTable { nearest, .. } = &e { Some(nearest.to_string()) } else { None };
            CliError::argument(
                name,
                format!("{} of {family}", e.to_string().split(',').next().unwrap_or_default()),
            )
            .nearest(nearest)
        })
    }
}

impl FromArg for TableArg {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        let fib = control.get::<Fib>().map_err(|e| Expected::new(e.to_string()))?;
        let id =
            u32::from_arg(text, control).map_err(|e| Expected { what: "the id of a table".into(), ..e })?;
        let mut nearest = None;
        for family in Family::ALL {
            match fib.index_of(family, id) {
                Ok(_) => return Ok(TableArg(id)),
                Err(FibError::NoTable { nearest: n, .. }) => nearest = nearest.or(Some(n.to_string())),
                Err(e) => return Err(Expected::new(e.to_string())),
            }
        }
        Err(Expected::new("the id of a table").nearest(nearest))
    }
}

/// A prefix of either family.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PrefixArg(pub IpPrefix);

impl FromArg for PrefixArg {
    fn from_arg(text: &str, _: &Control) -> Result<Self, Expected> {
        let what = |e| Expected::new(format!("a prefix such as 10.0.0.0/24 or 2001:db8::/32 ({e})"));
        text.parse().map(PrefixArg).map_err(what)
    }
}

/// What to look for: an address's longest match, or one prefix.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) enum Match {
    Longest(IpAddr),
    Exact(IpPrefix),
}

impl Match {
    pub fn family(self) -> Family {
        match self {
            Match::Longest(addr) => Family::of(addr),
            Match::Exact(prefix) => crate::address::family(&prefix),
        }
    }
}

fn matching(text: &str, control: &Control, family: Family) -> Result<Match, Expected> {
    let found = if text.contains('/') {
        PrefixArg::from_arg(text, control).map(|p| Match::Exact(p.0))?
    } else {
        IpAddr::from_arg(text, control).map(Match::Longest).map_err(|_| expected(family))?
    };
    if found.family() == family { Ok(found) } else { Err(expected(family)) }
}

fn expected(family: Family) -> Expected {
    Expected::new(match family {
        Family::Ip4 => "an IPv4 address such as 192.0.2.1, or a prefix such as 192.0.2.0/24",
        Family::Ip6 => "an IPv6 address such as 2001:db8::1, or a prefix such as 2001:db8::/32",
    })
}

/// As [`Match`], of IPv4.
pub(crate) struct Match4(pub Match);

impl FromArg for Match4 {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        matching(text, control, Family::Ip4).map(Match4)
    }
}

/// As [`Match`], of IPv6.
pub(crate) struct Match6(pub Match);

impl FromArg for Match6 {
    fn from_arg(text: &str, control: &Control) -> Result<Self, Expected> {
        matching(text, control, Family::Ip6).map(Match6)
    }
}

fn ids(control: &Control, _: &str) -> Vec<String> {
    let Ok(fib) = control.get::<Fib>() else { return Vec::new() };
    let mut ids: Vec<u32> = Family::ALL.into_iter().flat_map(|family| fib.ids(family)).collect();
    ids.sort_unstable();
    ids.dedup();
    ids.iter().map(u32::to_string).collect()
}

/// Argument types of this crate.
pub static ARG_TYPES: &[ArgType] = &[
    ArgType::live("table", "id of a forwarding table", check::<TableArg>, ids),
    ArgType::new("ip-prefix", "IPv4 or IPv6 address and prefix length", check::<PrefixArg>),
    ArgType::new("ip4-match", "IPv4 address or prefix", check::<Match4>),
    ArgType::new("ip6-match", "IPv6 address or prefix", check::<Match6>),
];
