//! Paths as arguments of a command: `via` and what follows it.

use std::net::IpAddr;

use shoal_adj::Family;
use shoal_buffer::SwIfIndex;
use shoal_interface::InterfaceArg;
use shoal_module::cli::{Args, CliError};

use crate::{Fib, FibError, Path, TableArg, Via};

/// The part of a command's syntax that [`ViaArgs`] reads.
#[macro_export]
macro_rules! via_syntax {
    () => {
        "[via {drop | local | unreachable | prohibit | punt | ip4-lookup-in-table <lookup-table:table> \
         | ip6-lookup-in-table <lookup-table6:table> | source-lookup-in-table <source-table:table> | next-hop-table <next-hop-table:table> \
         | dvr <dvr:interface> | rx-ip4 <rx-ip4:interface> | rx-ip6 <rx-ip6:interface> \
         | <next-hop:ip-address> [<interface> | next-hop-table <next-hop-table:table>] | <interface>} \
         [weight <weight:u8>] [preference <preference:u8>] [resilient]] ..."
    };
}

/// Whose paths the arguments of [`via_syntax`](crate::via_syntax) are.
pub struct ViaArgs<'a> {
    /// All tables.
    pub fib: &'a Fib,
    /// Whose packets take them.
    pub family: Family,
    /// Where next hops are looked up that name no table.
    pub table: TableArg,
}

impl ViaArgs<'_> {
    /// All paths.
    ///
    /// # Errors
    /// One cannot be.
    pub fn paths(&self, args: &Args) -> Result<Vec<Path>, CliError> {
        args.groups("via").iter().map(|group| path(self, group)).collect()
    }

    /// The family of the first next hop that is named.
    ///
    /// # Errors
    /// It is no address.
    pub fn family(args: &Args) -> Result<Option<Family>, CliError> {
        Ok(args.opt::<IpAddr>("next-hop")?.map(Family::of))
    }

    /// Points at the argument that is wrong.
    pub fn explain(error: FibError) -> CliError {
        of_paths(error)
    }
}

/// One `via` and what follows it. Words decide before addresses.
fn path(of: &ViaArgs<'_>, args: &Args) -> Result<Path, CliError> {
    // `via ADDRESS' alone: what a million lines of a file are.
    if let [_, to] = args.items()
        && !to.word
        && to.name == "next-hop"
    {
        let next_hop = args.get::<IpAddr>("next-hop")?;
        let fib = of.table.of(of.fib, Family::of(next_hop), "next-hop")?;
        return Ok(Path::recursive(next_hop, fib));
    }
    let interface = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let next_hop = args.opt::<IpAddr>("next-hop")?;
    let other = args.opt::<TableArg>("next-hop-table")?;
    let words = [
        ("drop", Via::Drop),
        ("unreachable", Via::Unreachable),
        ("prohibit", Via::Prohibit),
        ("punt", Via::Punt),
    ];
    let any = match of.family {
        Family::Ip4 => IpAddr::from([0; 4]),
        Family::Ip6 => IpAddr::from([0u16; 8]),
    };
    let in_table = |table: TableArg, name| table.of(of.fib, of.family, name).map(Via::Lookup);
    let via = if let Some((_, via)) = words.into_iter().find(|(word, _)| args.has(word)) {
        via
    } else if args.has("local") {
        Via::Local { interface: None, address: any }
    } else if let Some((table, name)) = lookup_table(of, args)? {
        in_table(table, name)?
    } else if let Some(table) = args.opt::<TableArg>("source-table")? {
        Via::SourceLookup(table.of(of.fib, of.family, "source-table")?)
    } else if let Some(InterfaceArg(interface)) = args.opt("dvr")? {
        Via::Dvr { interface }
    } else if let Some(interface) = received_by(of, args)? {
        Via::InterfaceRx { interface }
    } else {
        match (next_hop, interface) {
            (Some(next_hop), Some(interface)) => Via::NextHop { interface, next_hop },
            (Some(next_hop), None) => {
                let table = other.unwrap_or(of.table);
                let name = if other.is_some() { "next-hop-table" } else { "next-hop" };
                Via::Recursive { next_hop, fib: table.of(of.fib, Family::of(next_hop), name)? }
            }
            (None, Some(interface)) => Via::Attached { interface, source: any },
            (None, None) => match other {
                Some(other) => in_table(other, "next-hop-table")?,
                None => {
                    return Err(CliError::argument("via", "`via' needs an address, an interface or a word"));
                }
            },
        }
    };
    let (weight, preference) = (args.or("weight", 1u8)?, args.or("preference", 0u8)?);
    let path = Path::from(via).weight(weight).preference(preference);
    Ok(if args.has("resilient") { path.resilient() } else { path })
}

/// The interface packets are received by once more.
fn received_by(of: &ViaArgs<'_>, args: &Args) -> Result<Option<SwIfIndex>, CliError> {
    for (name, family) in [("rx-ip4", Family::Ip4), ("rx-ip6", Family::Ip6)] {
        let Some(InterfaceArg(interface)) = args.opt(name)? else { continue };
        if family != of.family {
            let message = format!("packets of a route of {} are not received as {family}", of.family);
            return Err(CliError::argument(name, message));
        }
        return Ok(Some(interface));
    }
    Ok(None)
}

/// The table a route sends its packets to.
fn lookup_table(of: &ViaArgs<'_>, args: &Args) -> Result<Option<(TableArg, &'static str)>, CliError> {
    for (name, family) in [("lookup-table", Family::Ip4), ("lookup-table6", Family::Ip6)] {
        let Some(table) = args.opt::<TableArg>(name)? else { continue };
        if family != of.family {
            let message = format!("a route of {} cannot lead to a table of {family}", of.family);
            return Err(CliError::argument(name, message));
        }
        return Ok(Some((table, name)));
    }
    Ok(None)
}

/// Points at the argument that is wrong.
pub(crate) fn of_paths(error: FibError) -> CliError {
    let (name, nearest) = match &error {
        FibError::Weight => ("weight", Some("1".to_owned())),
        FibError::NextHop(_) | FibError::LinkLocal(_) => ("next-hop", None),
        FibError::Count { most, .. } => ("count", Some(most.to_string())),
        FibError::Bulk { fit, .. } => ("count", Some(fit.to_string())),
        FibError::NoEntry { nearest, .. } => ("prefix", nearest.map(|p| p.to_string())),
        FibError::NoPath { .. } | FibError::TooManyPaths(_) => ("via", None),
        FibError::AllCount { .. }
        | FibError::OtherSource { .. }
        | FibError::Full { .. }
        | FibError::NoMemory { .. } => ("prefix", None),
        _ => return error.into(),
    };
    CliError::argument(name, error.to_string()).nearest(nearest)
}
