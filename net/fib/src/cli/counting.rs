//! `adjacency counters`, `set adj counters`: packets and bytes by next hop.

use shoal_adj::{AdjError, AdjIndex, Adjacencies, Counted, Counting};
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Command, Output};

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
