//! `adjacency counters`, `set adj counters`, `set ip route counters`: packets and bytes by next hop, and by route.

use shoal_adj::{AdjError, AdjIndex, Adjacencies, Counted, Counting, Family};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

use crate::arg::{PrefixArg, TableArg};
use crate::via::of_paths;
use crate::{Fib, FibIndex, address};

pub(super) const VPPS: Command = Command::new(
    "adjacency counters {enable | disable}",
    "Count packets and bytes of all adjacencies, or not",
    set,
)
.examples(&["adjacency counters enable", "adjacency counters disable"])
.doc("VPP's words for `set adj counters`.");

pub(super) const SET: Command = Command::new(
    "set adj counters {enable | disable} [<adj-index:u32>]",
    "Count packets and bytes of one adjacency or of all, or not",
    set,
)
.examples(&["set adj counters enable", "set adj counters disable"])
.doc(
    "`show adj` and `show ip fib` print the counts, `/net/adjacency` in the stats segment has them. Bytes are with the \
     link-layer header. Packets that are counted do not take a superpath to its end; others are as fast as ever. An \
     adjacency that begins to count, begins at zero.",
);

pub(super) const ROUTES4: Command = Command::new(
    "set ip route counters {enable | disable} [<prefix:ip-prefix>] [table <table>]",
    "Count packets and bytes of one route, or of all routes of an IPv4 table, or not",
    routes4,
)
.examples(&["set ip route counters enable 0.0.0.0/0", "set ip route counters enable table 0"])
.doc(ROUTES);

pub(super) const ROUTES6: Command = Command::new(
    "set ip6 route counters {enable | disable} [<prefix:ip-prefix>] [table <table>]",
    "Count packets and bytes of one route, or of all routes of an IPv6 table, or not",
    routes6,
)
.examples(&["set ip6 route counters enable ::/0", "set ip6 route counters disable table 0"])
.doc(ROUTES);

const ROUTES: &str = "`show ip fib` prints the counts as `to:[packets:bytes]`, `/net/route/to` in the stats segment has \
                      them. Bytes are from the network header on. A route keeps its wish to count when it goes and \
                      comes again, and begins at zero. Packets that are counted take no superpath; each counter takes \
                      an adjacency.";

fn routes4(control: &Control, args: &Args) -> Result<Output, CliError> {
    routes(control, args, Family::Ip4)
}

fn routes6(control: &Control, args: &Args) -> Result<Output, CliError> {
    routes(control, args, Family::Ip6)
}

fn routes(control: &Control, args: &Args, family: Family) -> Result<Output, CliError> {
    let fib = control.get::<Fib>()?;
    let table = args.opt::<TableArg>("table")?;
    let index = table.map_or(Ok(FibIndex::DEFAULT), |t| t.of(&fib, family, "table"))?;
    let counting = if args.has("enable") { Counting::On } else { Counting::Off };
    let done = match args.opt::<PrefixArg>("prefix")? {
        Some(PrefixArg(prefix)) if address::family(&prefix) != family => {
            return Err(CliError::argument("prefix", format!("{prefix} is no prefix of {family}")));
        }
        Some(PrefixArg(prefix)) => fib.count_route(index, prefix, counting),
        None => fib.count_routes(family, index, counting),
    };
    done.map_err(of_paths)?;
    Ok(Output::none())
}

fn set(control: &Control, args: &Args) -> Result<Output, CliError> {
    let which = args.opt::<u32>("adj-index")?.map_or(Counted::All, |index| Counted::One(AdjIndex(index)));
    let counting = if args.has("enable") { Counting::On } else { Counting::Off };
    control.get::<Adjacencies>()?.count(which, counting).map_err(|e| {
        let nearest = match e {
            AdjError::NoAdjacency { nearest, .. } => Some(nearest.to_string()),
            AdjError::AllCount(_) | AdjError::NoHeader(_) => None,
            _ => return CliError::failed(e.to_string()),
        };
        CliError::argument("adj-index", e.to_string()).nearest(nearest)
    })?;
    Ok(Output::none())
}
