//! Routes that come one after the other and leave the same way: they enter the forwarding table together.
//!
//! Zebra tells a table route by route, in no order that the forwarding table would like, and most of the routes of a peer have one next hop.
//! What leads there is found once, and the forwarding table fetches entries ahead of their turn.

use shoal_fib::{Family, FibIndex, Path, Source};
use shoal_interface::Resolved;
use shoal_lcp::resilient;
use shoal_wire::IpPrefix;

use crate::control::{Fpm, Outcome};
use crate::netlink::{Route, RouteExit};
use crate::table::{Entry, Key};

/// Routes that wait to enter the table, in the order in which they came, with the messages that tell them.
#[derive(Debug, Default)]
pub(crate) struct Batch<'m> {
    /// Where they go; none as long as there are none.
    to: Option<(u32, Family, RouteExit)>,
    routes: Vec<(IpPrefix, &'m [u8])>,
}

impl<'m> Batch<'m> {
    /// How many there are.
    pub fn len(&self) -> usize {
        self.routes.len()
    }

    /// Takes a route, if it goes where the others go.
    pub fn take(&mut self, route: &Route, way: &RouteExit, message: &'m [u8]) -> bool {
        let family = Family::of(route.prefix.addr());
        match &self.to {
            Some((table, of, exit)) if (*table, *of) != (route.table, family) || exit != way => return false,
            Some(_) => {}
            None => self.to = Some((route.table, family, way.clone())),
        }
        self.routes.push((route.prefix, message));
        true
    }
}

/// What routes that leave one way have in common.
enum Exit {
    /// A table, and what packets do.
    Paths(FibIndex, Vec<Path>),
    /// None of them enters the table.
    Not(Outcome),
}

impl Fpm {
    /// Puts routes into the forwarding table and empties the batch; answers about them go behind `out`.
    pub(crate) fn settle(&self, batch: &mut Batch<'_>, generation: u64, out: &mut Vec<u8>) {
        let Some((table, family, way)) = batch.to.take() else { return };
        let id = self.table_of(family, table);
        let exit = self.exit_of((family, table), id, &way);
        // All of them or none; which of them it is that cannot be, they tell alone.
        let together = match &exit {
            Exit::Paths(index, paths) => {
                let prefixes = batch.routes.iter().map(|(prefix, _)| *prefix);
                self.fib().add_many(*index, prefixes, Source::Fpm, paths).is_ok()
            }
            Exit::Not(_) => false,
        };
        for (prefix, message) in batch.routes.drain(..) {
            let outcome = match &exit {
                Exit::Paths(..) if together => Outcome::Installed,
                Exit::Paths(index, paths) => self.add(*index, prefix, paths),
                Exit::Not(outcome) => *outcome,
            };
            let unanswered = (outcome == Outcome::Waits).then(|| message.into());
            let installed = (outcome == Outcome::Installed).then_some(id);
            self.keep((table, prefix), Entry { way: way.clone(), generation, installed, unanswered });
            match outcome {
                Outcome::Installed => self.tell(message, true, out),
                Outcome::Failed => self.tell(message, false, out),
                Outcome::Waits => {}
            }
        }
    }

    /// Keeps what became of a route, in place of the one before it to its prefix.
    fn keep(&self, key: Key, entry: Entry) {
        let now = entry.installed;
        let before = self.told.borrow_mut().put(key, entry).and_then(|before| before.installed);
        self.note_installed(&key, before, now);
    }

    /// What routes of one of zebra's tables that leave this way have in common, as next hops and images are now; `id` is this
    /// router's table.
    fn exit_of(&self, (family, table): (Family, u32), id: u32, way: &RouteExit) -> Exit {
        let (resolved, buckets) = {
            let told = self.told.borrow();
            (told.resolve(way), told.buckets(way))
        };
        let way = match resolved {
            Resolved::Known(way) => way,
            Resolved::Unknown => return Exit::Not(Outcome::Failed),
            Resolved::Missing(id) => {
                self.told.borrow_mut().wait_for(id);
                return Exit::Not(Outcome::Waits);
            }
        };
        let paths = resilient(self.lcp().paths_of(&self.netns(), (family, table), &way), buckets);
        if paths.is_empty() {
            return Exit::Not(Outcome::Waits);
        }
        match self.index_of(family, id) {
            Ok(index) => Exit::Paths(index, paths),
            Err(e) => {
                tracing::debug!("fpm: table {id}: {e}");
                Exit::Not(Outcome::Failed)
            }
        }
    }

    fn add(&self, index: FibIndex, prefix: IpPrefix, paths: &[Path]) -> Outcome {
        match self.fib().add(index, prefix, Source::Fpm, paths) {
            Ok(()) => Outcome::Installed,
            Err(e) => {
                tracing::debug!("fpm: route {prefix} not taken: {e}");
                Outcome::Failed
            }
        }
    }

    /// Puts one route into the forwarding table as its next hops say now.
    pub(crate) fn install(&self, (table, prefix): &Key, id: u32, way: &RouteExit) -> Outcome {
        match self.exit_of((Family::of(prefix.addr()), *table), id, way) {
            Exit::Paths(index, paths) => self.add(index, *prefix, &paths),
            Exit::Not(outcome) => outcome,
        }
    }
}
