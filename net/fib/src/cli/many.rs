//! `ip route add count N`: many routes for one line, a few at a time.

use std::net::IpAddr;
use std::rc::Rc;
use std::time::Instant;

use shoal_adj::Family;
use shoal_module::Control;
use shoal_module::cli::{Args, CliError, Item, Later, Output, Pace, Sink};
use shoal_wire::IpPrefix;

use crate::arg::{PrefixArg, TableArg};
use crate::via::of_paths as of_route;
use crate::{Fib, FibError, FibIndex, Path, Source, ViaArgs, address, consecutive};

/// Routes that are done at once: some hundred microseconds at most.
const PIECE: u32 = 128;

/// What `ip route` is asked for.
pub(super) struct Wanted {
    pub fib: Rc<Fib>,
    pub index: FibIndex,
    pub add: bool,
    pub paths: Vec<Path>,
    family: Family,
    first: IpPrefix,
    pub(super) count: u32,
}

impl Wanted {
    pub fn new(control: &Control, args: &Args) -> Result<Wanted, CliError> {
        let fib = control.get::<Fib>()?;
        let first = args.get::<PrefixArg>("prefix")?.0;
        let family = address::family(&first);
        let table = args.opt::<TableArg>("table")?;
        let index = table.map_or(Ok(FibIndex::DEFAULT), |t| t.of(&fib, family, "table"))?;
        let count = args.or("count", 1u32)?;
        let paths = ViaArgs { fib: &fib, family, table: table.unwrap_or(TableArg(0)) }.paths(args)?;
        let add = args.has("add");
        if add && paths.is_empty() {
            return Err(CliError::argument("prefix", "a route needs at least one `via'"));
        }
        Ok(Wanted { fib, index, add, paths, family, first, count })
    }

    /// All prefixes.
    pub fn prefixes(&self) -> Result<impl Iterator<Item = IpPrefix> + Clone + use<>, FibError> {
        consecutive(self.first, self.count)
    }

    /// Adds some at a time. The last ones go first when that fails, or when the client has gone.
    async fn add(&self, sink: &Sink) -> Result<(), CliError> {
        let mut left = self.prefixes().map_err(of_route)?;
        let bulk = self.fib.begin_paths((self.family, self.index), Source::Cli, &self.paths);
        let (mut bulk, pace) = (bulk.map_err(of_route)?, Pace::default());
        let mut done = Ok(());
        while done.is_ok() && bulk.done() < self.count as usize {
            done = bulk.add(left.by_ref().take(PIECE as usize)).map_err(of_route);
            pace.give_way().await;
            if sink.is_gone() {
                done = Err(CliError::failed("interrupted, no route was added"));
            }
        }
        let piece = PIECE as usize;
        while if done.is_ok() { bulk.keep(piece) } else { bulk.undo(piece) } {
            pace.give_way().await;
        }
        done
    }

    /// Looks whether all are there, and then takes some away at a time.
    async fn remove(&self, sink: &Sink) -> Result<(), CliError> {
        let (pace, paths, fib) = (Pace::default(), &self.paths, &self.fib);
        let pieces = || (0..self.count).step_by(PIECE as usize);
        let mut left = self.prefixes().map_err(of_route)?;
        for _ in pieces() {
            let piece = left.by_ref().take(PIECE as usize);
            fib.has_paths(self.index, piece, Source::Cli, paths).map_err(of_route)?;
            pace.give_way().await;
            if sink.is_gone() {
                return Err(CliError::failed("interrupted, no route was deleted"));
            }
        }
        let mut left = self.prefixes().map_err(of_route)?;
        for done in pieces() {
            let so_far = |why: String| CliError::failed(format!("{done} of {} are gone: {why}", self.count));
            if sink.is_gone() {
                return Err(so_far("interrupted".into()));
            }
            let piece: Vec<IpPrefix> = left.by_ref().take(PIECE as usize).collect();
            let all = || piece.iter().copied();
            // Others may have taken some away meanwhile.
            let there = fib.has_paths(self.index, all(), Source::Cli, paths);
            let gone = there.and_then(|()| match paths.as_slice() {
                [] => fib.remove_many(self.index, all(), Source::Cli),
                _ => fib.remove_paths(self.index, all(), Source::Cli, paths),
            });
            gone.map_err(|e| so_far(e.to_string()))?;
            pace.give_way().await;
        }
        Ok(())
    }
}

/// Adds a route `PREFIX via ADDRESS`, or deletes a route, in table 0: what a million lines of a file are. `false`:
/// something else is wanted.
pub(super) fn is_plain(control: &Control, args: &Args) -> Result<bool, CliError> {
    let (prefix, to) = match args.items() {
        [add, prefix, via, to] if is_word(add, "add") && is_word(via, "via") => (prefix, Some(to)),
        [del, prefix] if is_word(del, "del") => (prefix, None),
        _ => return Ok(false),
    };
    if prefix.name != "prefix" || to.is_some_and(|to| to.word || to.name != "next-hop") {
        return Ok(false);
    }
    let fib = control.get::<Fib>()?;
    let prefix = args.read::<PrefixArg>(prefix)?.0;
    let done = match to {
        Some(to) => {
            let path = Path::recursive(args.read::<IpAddr>(to)?, FibIndex::DEFAULT);
            fib.add_paths(FibIndex::DEFAULT, [prefix], Source::Cli, &[path])
        }
        None => fib.remove_many(FibIndex::DEFAULT, [prefix], Source::Cli),
    };
    done.map_err(of_route)?;
    Ok(true)
}

fn is_word(item: &Item, word: &str) -> bool {
    item.word && item.name == word
}

/// Whether there are so many that others would wait.
pub(super) fn are_wanted(args: &Args) -> bool {
    args.has("count") && args.opt::<u32>("count").is_ok_and(|count| count.is_some_and(|n| n > PIECE))
}

/// How fast `count` routes were changed, as VPP says it.
pub(super) fn rate(count: u32, begun: Instant) -> Output {
    Output::text(format!("{:.6e} routes/sec\n", f64::from(count) / begun.elapsed().as_secs_f64().max(1e-9)))
}

/// Adds or deletes many routes.
pub(super) fn routes(control: Rc<Control>, args: Args, sink: Sink) -> Later {
    Box::pin(async move {
        let wanted = Wanted::new(&control, &args)?;
        let begun = Instant::now();
        if wanted.add {
            wanted.add(&sink).await?;
        } else {
            wanted.remove(&sink).await?;
        }
        Ok(rate(wanted.count, begun))
    })
}
