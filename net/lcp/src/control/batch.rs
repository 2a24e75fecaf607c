//! Routes that are told together: those that leave the same way enter the forwarding table together, and those that are gone leave it together.
//!
//! A routing daemon that gets a full table tells the kernel a million routes, most of which leave by a few next hops. What leads there is
//! found once, and the forwarding table fetches entries ahead of their turn.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_fib::{Family, Fib, Source};
use shoal_interface::{EventOrigin, HostEvent, HostRoute, HostWay};
use shoal_wire::IpPrefix;

use super::mirror::Mirror;
use super::next_hops::resilient;
use super::routes::{Installed, Key};
use super::tables::is_main;
use super::*;

/// How many ways are told apart in a batch; routes by others are decided one by one.
const WAYS: usize = 16;

/// Prefixes with one route each that leave the same way, or with none any more.
struct Run {
    /// Their table in Linux.
    table: u32,
    family: Family,
    /// What the forwarding table is to have of them, or has had.
    installed: Installed,
    /// How they leave.
    exit: Option<Exit>,
    /// Each with whether the forwarding table has it already.
    prefixes: Vec<(Key, IpPrefix, bool)>,
}

/// How routes leave.
#[derive(PartialEq, Eq)]
enum Exit {
    /// By a number.
    Id(u32),
    /// So.
    Direct(HostWay),
}

impl Exit {
    fn is_of(&self, route: &HostRoute) -> bool {
        match self {
            Exit::Id(id) => route.next_hop_id == Some(*id),
            Exit::Direct(way) => route.next_hop_id.is_none() && route.way == *way,
        }
    }

    fn of(route: &HostRoute) -> Self {
        route.next_hop_id.map_or_else(|| Exit::Direct(route.way.clone()), Exit::Id)
    }
}

impl Mirror {
    /// This router's table for one of Linux's.
    fn table_of(&self, family: Family, kernel: u32) -> u32 {
        if is_main(kernel) { self.main.of(family) } else { kernel }
    }

    /// Puts prefixes that have the same fate together; those that are not like others are returned.
    fn runs(&self, keys: &[Key]) -> (Vec<Run>, Vec<Key>) {
        let (mut runs, mut alone): (Vec<Run>, Vec<Key>) = Default::default();
        for key in keys {
            let (table, (address, len)) = *key;
            let (family, Ok(prefix)) = (Family::of(address), IpPrefix::new(address, len)) else { continue };
            let Some(known) = self.routes.known(key) else {
                alone.push(*key);
                continue;
            };
            let route = known.routes.only();
            let installed = match (route, known.installed) {
                (Some(route), before) => {
                    let source = if route.learnt() { Source::LcpRtDynamic } else { Source::LcpRt };
                    let installed = Installed { id: self.table_of(family, table), source };
                    if before.is_some_and(|before| before != installed) {
                        alone.push(*key);
                        continue;
                    }
                    installed
                }
                (None, Some(before)) if known.routes.first().is_none() => before,
                _ => {
                    alone.push(*key);
                    continue;
                }
            };
            let is_it = |run: &Run| {
                (run.table, run.family, run.installed) == (table, family, installed)
                    && match (&run.exit, route) {
                        (Some(exit), Some(route)) => exit.is_of(route),
                        (exit, route) => exit.is_none() && route.is_none(),
                    }
            };
            let one = (*key, prefix, known.installed.is_some());
            let full = runs.len() == WAYS;
            match runs.iter().rposition(is_it).and_then(|at| runs.get_mut(at)) {
                Some(run) => run.prefixes.push(one),
                None if full => alone.push(*key),
                None => {
                    let exit = route.map(Exit::of);
                    runs.push(Run { table, family, installed, exit, prefixes: vec![one] });
                }
            }
        }
        (runs, alone)
    }
}

impl Lcp {
    /// The kernel says several things of a namespace.
    pub(crate) fn hear_many(&self, netns: &Option<String>, events: Vec<(EventOrigin, HostEvent)>) {
        if self.with(netns, |mirror| mirror.left.is_some()) == Some(true) {
            return;
        }
        let mut changed = Vec::new();
        for (told, event) in events {
            match event {
                HostEvent::Route { route, present } => {
                    changed.extend(self.hear_route(netns, told, route, present));
                }
                // Whatever else it is, it comes behind the routes before it.
                other => {
                    self.decide_many(netns, &mut changed);
                    self.hear(netns, told, other);
                }
            }
        }
        self.decide_many(netns, &mut changed);
    }

    /// Decides prefixes, which may be named more than once, and empties the list.
    pub(super) fn decide_many(&self, netns: &Option<String>, changed: &mut Vec<Key>) {
        let mut keys = std::mem::take(changed);
        if let [only] = keys.as_slice() {
            self.decide(netns, *only);
        } else if let Some(fib) = self.control.upgrade().and_then(|control| control.get::<Fib>().ok()) {
            keys.sort_unstable();
            keys.dedup();
            let (runs, alone) = self.with(netns, |mirror| mirror.runs(&keys)).unwrap_or_default();
            for run in &runs {
                let done = match &run.exit {
                    Some(exit) => self.install_run(netns, &fib, run, exit),
                    None => self.withdraw_run(netns, &fib, run),
                };
                if !done {
                    for (key, ..) in &run.prefixes {
                        self.decide(netns, *key);
                    }
                }
            }
            for key in alone {
                self.decide(netns, key);
            }
        }
        keys.clear();
        *changed = keys;
    }

    /// Puts routes that leave the same way into the forwarding table, all or none; whether that is done.
    fn install_run(&self, netns: &Option<String>, fib: &Fib, run: &Run, exit: &Exit) -> bool {
        if run.prefixes.len() < 2 {
            return false;
        }
        let (way, buckets) = match exit {
            Exit::Direct(way) => (Some(way.clone()), None),
            Exit::Id(id) => {
                let known = |mirror: &mut Mirror| (mirror.known_way(*id), mirror.next_hops.buckets(*id));
                self.with(netns, known).unwrap_or_default()
            }
        };
        // A number that is not known: what the kernel has written out counts, which may differ from route to route.
        let Some(way) = way else { return false };
        let paths = resilient(self.paths_of(netns, (run.family, run.table), &way), buckets);
        if paths.is_empty() {
            return false;
        }
        // Paths that take the place of others keep the flows of those that stay: that is decided with the first route, and the others lead the
        // same way.
        let replaced = run.prefixes.iter().find(|(_, _, is_there)| *is_there).filter(|_| paths.len() > 1);
        if let Some((key, ..)) = replaced {
            self.decide(netns, *key);
        }
        let table = (run.family, run.installed.id);
        let new = run.prefixes.iter().filter(|(_, _, is_there)| !is_there).count();
        let index = match new {
            0 => fib.index_of(table.0, table.1),
            _ => self.hold_for(netns, fib, table, new),
        };
        let Ok(index) = index else { return false };
        let prefixes = run.prefixes.iter().map(|(_, prefix, _)| *prefix);
        if fib.add_many(index, prefixes, run.installed.source, &paths).is_err() {
            self.let_go_of(netns, fib, table, new);
            return false;
        }
        self.with(netns, |mirror| {
            for (key, _, is_there) in &run.prefixes {
                if !is_there {
                    mirror.routes.set_installed(key, Some(run.installed));
                    mirror.pending.remove(key);
                }
            }
        });
        true
    }

    /// Takes routes that are gone out of the forwarding table; whether that is done.
    fn withdraw_run(&self, netns: &Option<String>, fib: &Fib, run: &Run) -> bool {
        let table = (run.family, run.installed.id);
        let prefixes = run.prefixes.iter().map(|(_, prefix, _)| *prefix);
        let taken = fib
            .index_of(table.0, table.1)
            .and_then(|index| fib.remove_many(index, prefixes, run.installed.source));
        if taken.is_err() {
            return false;
        }
        self.with(netns, |mirror| {
            for (key, ..) in &run.prefixes {
                mirror.routes.set_installed(key, None);
                mirror.pending.remove(key);
            }
        });
        self.let_go_of(netns, fib, table, run.prefixes.len());
        for (key, ..) in &run.prefixes {
            self.give_way_to_others(netns, *key, run.installed);
        }
        true
    }
}
