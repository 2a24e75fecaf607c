//! Commands.

use std::time::Instant;

use shoal_adj::Family;
use shoal_interface::InterfaceArg;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::arg::{Match, Match4, Match6, TableArg};
use crate::via::of_paths as of_route;
use crate::view::{
    AdjListing, CapacityView, CheckView, EntryListing, FibListing, FibMemory, FibView, MemoryView,
    PathListDetail, PathListing, SummaryView, TablesView, WantedAdj,
};
use crate::{Fib, FibError, FibIndex, FlowFields, Source};

mod counting;
mod many;

use many::Wanted;

/// Commands of this crate.
pub static COMMANDS: &[Command] = &[
    Command::new(
        concat!(
            "ip route {add | del} [count <count:u32>] [table <table>] <prefix:ip-prefix> [table <table>] ",
            crate::via_syntax!()
        ),
        "Add paths to a route or to many, or take them away",
        route,
    )
    .long(many::are_wanted, many::routes)
    .examples(&[
        "ip route add 198.51.100.0/24 via 192.0.2.2",
        "ip route add 198.51.100.0/24 via 192.0.2.2 local0 weight 2 via 192.0.2.3 local0",
        "ip route add 2001:db8:1::/48 via 2001:db8::2 local0",
        "ip route add count 1000 198.51.100.0/32 via drop",
        "ip route add 198.51.100.0/24 table 0 via 192.0.2.2 next-hop-table 0",
        "ip route add 198.51.100.0/24 via rx-ip4 local0",
        "ip route del 198.51.100.0/24",
    ])
    .doc(
        "A next hop without an interface is looked up itself, over any number of other routes; it may be of the other \
         family. A route to one host by an interface alone has the host itself as next hop. `add` adds to the paths \
         that are there; `del` without paths takes all away. Bits beyond the prefix length are ignored. `count` adds, or \
         takes away, that many prefixes of the same length, side by side: all of them or, on error or when it is \
         interrupted, none; a deletion that is interrupted says how many are gone. Of several paths those of the lowest \
         preference that are up share the flows by weight. `resilient`: a path that is lost moves no flows but its own. \
         `rx-ip4`, `rx-ip6`: packets are treated as received by that interface: its features, its table.",
    ),
    Command::new("ip table {add | del} [<id:u32>] [<name:word>]", "Add or delete an IPv4 forwarding table", table4)
        .examples(&["ip table add 10 customers", "ip table del 10"])
        .doc(TABLE),
    Command::new("ip6 table {add | del} [<id:u32>] [<name:word>]", "Add or delete an IPv6 forwarding table", table6)
        .examples(&["ip6 table add 10 customers", "ip6 table del 10"])
        .doc(TABLE),
    Command::new(
        "set ip flow-hash table <table> [src] [dst] [sport] [dport] [proto] [reverse] [symmetric]",
        "Choose which fields of IPv4 packets choose among several paths",
        flow_hash4,
    )
    .examples(&["set ip flow-hash table 0 src dst", "set ip flow-hash table 0 src dst sport dport proto symmetric"])
    .doc(FLOW_HASH),
    Command::new(
        "set ip6 flow-hash table <table> [src] [dst] [sport] [dport] [proto] [reverse] [symmetric] [flowlabel]",
        "Choose which fields of IPv6 packets choose among several paths",
        flow_hash6,
    )
    .examples(&["set ip6 flow-hash table 0 src dst flowlabel"])
    .doc(FLOW_HASH),
    Command::new(
        "show ip fib [table <table> | index <index:u32>] [<match:ip4-match>] [summary] [detail] [mtrie] [memory]",
        "Show IPv4 forwarding tables: all, one, or the route of one address",
        show_fib4,
    )
    .examples(&["show ip fib", "show ip fib 192.0.2.1", "show ip fib table 0 summary", "sh ip fib 0.0.0.0/0 detail"]),
    Command::new(
        "show ip6 fib [table <table> | index <index:u32>] [<match:ip6-match>] [summary] [detail] [mtrie] [memory]",
        "Show IPv6 forwarding tables: all, one, or the route of one address",
        show_fib6,
    )
    .examples(&["show ip6 fib", "show ip6 fib 2001:db8::1", "show ip6 fib table 0 summary", "sh ip6 fib ::/0 detail"]),
    Command::new("show ip table", "Show which IPv4 forwarding tables there are", show_table4)
        .examples(&["show ip table"]),
    Command::new("show ip6 table", "Show which IPv6 forwarding tables there are", show_table6)
        .examples(&["show ip6 table"]),
    Command::new("show adj [nbr] [<adj-index:u32>] [<interface>] [summary]", "Show adjacencies", show_adj)
        .examples(&["show adj", "show adj 1", "show adj nbr", "show adj summary"]),
    counting::VPPS,
    counting::SET,
    counting::ROUTES4,
    counting::ROUTES6,
    Command::new("show fib entry [<index:u32>]", "Show entries of all forwarding tables", show_entry)
        .examples(&["show fib entry", "show fib entry 0"])
        .doc("Entries are numbered by table and address as they are now: a number may be another's a moment later."),
    Command::new("show fib path-lists [<index:u32>]", "Show lists of paths that entries share", show_path_lists)
        .examples(&["show fib path-lists", "show fib path-lists 0"]),
    Command::new("show fib paths [<index:u32>]", "Show all paths of entries", show_paths)
        .examples(&["show fib paths", "show fib paths 0"])
        .doc("Paths have the number of their list."),
    Command::new("show fib memory", "Show what forwarding tables take", show_memory).examples(&["show fib memory"]),
    Command::new("show fib capacity", "Show how many routes there are and how many more fit", show_capacity)
        .examples(&["show fib capacity"]),
    Command::new("show fib check", "Look for broken invariants in all forwarding structures", show_check)
        .examples(&["show fib check"])
        .doc("Walks everything, so it takes its time with large tables. Forwarding goes on meanwhile."),
];

const TABLE: &str = "`add` without a number takes one that is free and prints it. A table that interfaces or other tables' \
                     routes need cannot be deleted.";

const FLOW_HASH: &str = "Without a field: the usual ones. `reverse` exchanges source and destination; `symmetric` makes \
                         both directions of a flow take the same path.";

fn route(control: &Control, args: &Args) -> Result<Output, CliError> {
    if many::is_plain(control, args)? {
        return Ok(Output::none());
    }
    let (wanted, begun) = (Wanted::new(control, args)?, Instant::now());
    let (index, prefixes, paths) = (wanted.index, wanted.prefixes().map_err(of_route)?, &wanted.paths);
    let done = match (wanted.add, paths.is_empty()) {
        (true, _) => wanted.fib.add_paths(index, prefixes, Source::Cli, paths),
        (false, true) => wanted.fib.remove_many(index, prefixes, Source::Cli),
        (false, false) => wanted.fib.remove_paths(index, prefixes, Source::Cli, paths),
    };
    done.map_err(of_route)?;
    Ok(if args.has("count") { many::rate(wanted.count, begun) } else { Output::none() })
}

fn table4(control: &Control, args: &Args) -> Result<Output, CliError> {
    table(control, args, Family::Ip4)
}

fn table6(control: &Control, args: &Args) -> Result<Output, CliError> {
    table(control, args, Family::Ip6)
}

fn table(control: &Control, args: &Args, family: Family) -> Result<Output, CliError> {
    let (fib, name, add) = (control.get::<Fib>()?, args.text("name"), args.has("add"));
    let (id, chosen) = match args.opt::<u32>("id")? {
        Some(id) => (id, false),
        None if add => (fib.unused_id(family), true),
        None => return Err(CliError::failed("missing <id>: which table is to go?".to_owned())),
    };
    let done = if add { fib.add_table(family, id, name).map(drop) } else { fib.del_table(family, id) };
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
    Ok(if chosen { Output::text(format!("{id}\n")) } else { Output::none() })
}

fn flow_hash4(control: &Control, args: &Args) -> Result<Output, CliError> {
    flow_hash(control, args, Family::Ip4)
}

fn flow_hash6(control: &Control, args: &Args) -> Result<Output, CliError> {
    flow_hash(control, args, Family::Ip6)
}

fn flow_hash(control: &Control, args: &Args, family: Family) -> Result<Output, CliError> {
    let fib = control.get::<Fib>()?;
    let index = args.get::<TableArg>("table")?.of(&fib, family, "table")?;
    let chosen = FlowFields::ALL.into_iter().filter(|(word, _)| args.has(word)).map(|(_, field)| field);
    let fields = chosen.fold(FlowFields::NONE, FlowFields::with);
    fib.set_flow_fields(
        family,
        index,
        if fields == FlowFields::NONE { FlowFields::DEFAULT } else { fields },
    )?;
    Ok(Output::none())
}

fn show_fib4(control: &Control, args: &Args) -> Result<Output, CliError> {
    show_fib(control, args, Family::Ip4, args.opt::<Match4>("match")?.map(|m| m.0))
}

fn show_fib6(control: &Control, args: &Args) -> Result<Output, CliError> {
    show_fib(control, args, Family::Ip6, args.opt::<Match6>("match")?.map(|m| m.0))
}

fn show_fib(
    control: &Control,
    args: &Args,
    family: Family,
    filter: Option<Match>,
) -> Result<Output, CliError> {
    let fib = control.get::<Fib>()?;
    let only = match (args.opt::<TableArg>("table")?, args.opt::<u32>("index")?) {
        (Some(table), _) => Some(table.of(&fib, family, "table")?),
        (None, Some(index)) => {
            let index = FibIndex(index);
            fib.table(family, index).map_err(|e| CliError::argument("index", e.to_string()))?;
            Some(index)
        }
        (None, None) => None,
    };
    let mut tables = fib.list_tables(family);
    tables.retain(|t| only.is_none_or(|only| only == t.index));
    if args.has("memory") || args.has("mtrie") {
        return Ok(Output::view(MemoryView::new(&tables)));
    }
    if args.has("summary") {
        return Ok(Output::view(SummaryView::new(&tables)));
    }
    let Some(filter) = filter else {
        return Ok(Output::listing(FibListing::new(control, &tables, args.has("detail"))?));
    };
    let view = FibView::new(control, &tables, filter, args.has("detail"))?;
    if let (Match::Exact(prefix), Some(FibError::NoEntry { nearest, .. })) = (filter, view.missing()) {
        let message = format!("{} is in none of the tables shown", prefix.normalized());
        return Err(CliError::argument("match", message).nearest(nearest.map(|p| p.to_string())));
    }
    Ok(Output::view(view))
}

fn show_table4(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(TablesView::new(&control.get::<Fib>()?.list_tables(Family::Ip4))))
}

fn show_table6(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(TablesView::new(&control.get::<Fib>()?.list_tables(Family::Ip6))))
}

fn show_adj(control: &Control, args: &Args) -> Result<Output, CliError> {
    let interface = args.opt::<InterfaceArg>("interface")?.map(|i| i.0);
    let (neighbours, summary) = (args.has("nbr"), args.has("summary"));
    let wanted = WantedAdj { index: args.opt("adj-index")?, interface, neighbours, summary };
    Ok(Output::listing(AdjListing::new(control, wanted)?))
}

fn show_entry(control: &Control, args: &Args) -> Result<Output, CliError> {
    Ok(Output::listing(EntryListing::new(control, args.opt("index")?)?))
}

fn show_path_lists(control: &Control, args: &Args) -> Result<Output, CliError> {
    Ok(Output::listing(PathListing::new(control, PathListDetail::Lists, args.opt("index")?)?))
}

fn show_paths(control: &Control, args: &Args) -> Result<Output, CliError> {
    Ok(Output::listing(PathListing::new(control, PathListDetail::Paths, args.opt("index")?)?))
}

fn show_memory(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(FibMemory::new(&*control.get::<Fib>()?)))
}

fn show_capacity(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(CapacityView::new(&control.get::<Fib>()?.capacity())))
}

fn show_check(control: &Control, _: &Args) -> Result<Output, CliError> {
    Ok(Output::view(CheckView(control.get::<Fib>()?.check())))
}
