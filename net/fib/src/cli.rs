//! Commands.

use std::net::Ipv4Addr;

use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};
use shoal_wire::Ip4Prefix;

use crate::arg::{Match, TableArg};
use crate::view::{AdjView, FibView, Filter, MemoryView, SummaryView, TablesView};
use crate::{Fib, FibError, FibIndex, Path, Source, Via, consecutive};

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        "ip route {add | del} [count <count:u32>] [table <table>] <prefix:ip4-prefix> [table <table>] \
         [via {drop | local | unreachable | prohibit | punt | ip4-lookup-in-table <lookup-table:table> \
         | next-hop-table <next-hop-table:table> \
         | <next-hop:ip4-address> [<interface> | next-hop-table <next-hop-table:table>] | <interface>} \
         [weight <weight:u8>] [preference <preference:u8>]] ...",
        "Add paths to a route or to many, or take them away",
        route,
    )
    .examples(&[
        "ip route add 198.51.100.0/24 via 192.0.2.2",
        "ip route add 198.51.100.0/24 via 192.0.2.2 local0 weight 2 via 192.0.2.3 local0",
        "ip route add count 1000 198.51.100.0/32 via drop",
        "ip route add 198.51.100.0/24 table 0 via 192.0.2.2 next-hop-table 0",
        "ip route del 198.51.100.0/24",
    ])
    .doc(
        "A next hop without an interface is looked up itself, over any number of other routes. `add` adds to the \
         paths that are there; `del` without paths takes all away. Bits beyond the prefix length are ignored. \
         `count` adds that many prefixes of the same length, side by side. Of several paths the first usable one \
         of the lowest preference forwards for now.",
    ),
    Command::new("ip table {add | del} <id:u32> [<name:word>]", "Add or delete a forwarding table", table)
        .examples(&["ip table add 10 customers", "ip table del 10"])
        .doc("A table that interfaces or other tables' routes need cannot be deleted."),
    Command::new(
        "show ip fib [table <table> | index <index:u32>] [<match:ip4-match>] [summary] [detail] [mtrie] [memory]",
        "Show forwarding tables: all, one, or the route of one address",
        show_fib,
    )
    .examples(&["show ip fib", "show ip fib 192.0.2.1", "show ip fib table 0 summary", "sh ip fib 0.0.0.0/0 detail"]),
    Command::new("show ip table", "Show which forwarding tables there are", show_table).examples(&["show ip table"]),
    Command::new("show adj [<adj-index:u32>] [<interface>] [summary]", "Show adjacencies", show_adj)
        .examples(&["show adj", "show adj 1", "show adj summary"]),
];

fn route(control: &Control, args: &Args) -> Result<Output, CliError> {
    let fib = control.get::<Fib>()?;
    let index = args.opt::<TableArg>("table")?.map_or(FibIndex::DEFAULT, |t| t.index);
    let prefix = args.get::<Ip4Prefix>("prefix")?;
    let count = args.or("count", 1u32)?;
    let prefixes = consecutive(prefix, count).map_err(of_route)?;
    let paths: Vec<Path> =
        args.groups("via").iter().map(|group| path(index, group)).collect::<Result<_, CliError>>()?;
    let done = match (args.has("add"), paths.is_empty()) {
        (true, true) => return Err(CliError::argument("prefix", "a route needs at least one `via'")),
        (true, false) => fib.add_paths(index, prefixes, Source::Cli, &paths),
        (false, true) => fib.remove_many(index, prefixes, Source::Cli),
        (false, false) => fib.remove_paths(index, prefixes, Source::Cli, &paths),
    };
    done.map_err(of_route)?;
    Ok(Output::none())
}

/// One `via` and what follows it. Words decide before addresses.
fn path(table: FibIndex, args: &Args) -> Result<Path, CliError> {
    let interface = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let next_hop = args.opt::<Ipv4Addr>("next-hop")?;
    let other = args.opt::<TableArg>("next-hop-table")?.map(|t| t.index);
    let words = [
        ("drop", Via::Drop),
        ("unreachable", Via::Unreachable),
        ("prohibit", Via::Prohibit),
        ("punt", Via::Punt),
    ];
    let via = if let Some((_, via)) = words.into_iter().find(|(word, _)| args.has(word)) {
        via
    } else if args.has("local") {
        Via::Local { interface: None, address: Ipv4Addr::UNSPECIFIED }
    } else if let Some(lookup) = args.opt::<TableArg>("lookup-table")? {
        Via::Lookup(lookup.index)
    } else {
        match (next_hop, interface) {
            (Some(next_hop), Some(interface)) => Via::NextHop { interface, next_hop },
            (Some(next_hop), None) => Via::Recursive { next_hop, fib: other.unwrap_or(table) },
            (None, Some(interface)) => Via::Attached { interface, source: Ipv4Addr::UNSPECIFIED },
            (None, None) => match other {
                Some(other) => Via::Lookup(other),
                None => {
                    return Err(CliError::argument("via", "`via' needs an address, an interface or a word"));
                }
            },
        }
    };
    let (weight, preference) = (args.or("weight", 1u8)?, args.or("preference", 0u8)?);
    Ok(Path::from(via).weight(weight).preference(preference))
}

/// Points at the argument that is wrong.
fn of_route(error: FibError) -> CliError {
    let (name, nearest) = match &error {
        FibError::Weight => ("weight", Some("1".to_owned())),
        FibError::NextHop(_) => ("next-hop", None),
        FibError::Count { most, .. } => ("count", Some(most.to_string())),
        FibError::NoEntry { nearest, .. } => ("prefix", nearest.map(|p| p.to_string())),
        FibError::NoPath { .. } => ("via", None),
        FibError::OtherSource { .. } | FibError::Full { .. } => ("prefix", None),
        _ => return error.into(),
    };
    CliError::argument(name, error.to_string()).nearest(nearest)
}

fn table(control: &Control, args: &Args) -> Result<Output, CliError> {
    let (fib, id, name) = (control.get::<Fib>()?, args.get::<u32>("id")?, args.text("name"));
    let done = if args.has("add") { fib.add_table(id, name).map(drop) } else { fib.del_table(id) };
    done.map_err(|e| match &e {
        FibError::NameTaken(..) => CliError::argument("name", e.to_string()),
        FibError::NoTable { nearest, .. } => {
            CliError::argument("id", e.to_string()).nearest(Some(nearest.to_string()))
        }
        FibError::TableExists(_) | FibError::DefaultTable | FibError::TableInUse { .. } => {
            CliError::argument("id", e.to_string())
        }
        _ => e.into(),
    })?;
    Ok(Output::none())
}

fn show_fib(control: &Control, args: &Args) -> Result<Output, CliError> {
    let fib = control.get::<Fib>()?;
    let only = match (args.opt::<TableArg>("table")?, args.opt::<u32>("index")?) {
        (Some(table), _) => Some(table.index),
        (None, Some(index)) => {
            let index = FibIndex(index);
            fib.table(index).map_err(|e| CliError::argument("index", e.to_string()))?;
            Some(index)
        }
        (None, None) => None,
    };
    let mut tables = fib.list_tables();
    tables.retain(|t| only.is_none_or(|only| only == t.index));
    if args.has("memory") || args.has("mtrie") {
        return Ok(Output::view(MemoryView::new(&tables)));
    }
    if args.has("summary") {
        return Ok(Output::view(SummaryView::new(&tables)));
    }
    let filter = match args.opt::<Match>("match")? {
        None => Filter::All,
        Some(Match::Longest(addr)) => Filter::Longest(addr),
        Some(Match::Exact(prefix)) => Filter::Exact(prefix),
    };
    let view = FibView::new(control, &tables, filter, args.has("detail"))?;
    if let (Filter::Exact(prefix), Some(FibError::NoEntry { nearest, .. })) = (filter, view.missing()) {
        let message = format!("{} is in none of the tables shown", prefix.normalized());
        return Err(CliError::argument("match", message).nearest(nearest.map(|p| p.to_string())));
    }
    Ok(Output::view(view))
}

fn show_table(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(TablesView::new(&control.get::<Fib>()?.list_tables())))
}

fn show_adj(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let view = AdjView::new(control, args.opt("adj-index")?, interface, args.has("summary"))?;
    if let (Some(index), true) = (args.opt::<u32>("adj-index")?, view.is_empty()) {
        let nearest = view.nearest(index).map(|n| n.to_string());
        return Err(CliError::argument("adj-index", format!("no adjacency {index}")).nearest(nearest));
    }
    Ok(Output::view(view))
}
