//! Attached export: what is known of a connected network's hosts, in other tables that lead to the same link.
//!
//! A route of a table to an interface that belongs to another table (`ip route add 10.0.0.0/24 table 7 via eth1`)
//! *imports*: the hosts inside of it that the interface's own table knows on that link, neighbours and this router,
//! become entries of the route's table, too, from the source `attached-export`. Without them each packet to a neighbour
//! would meet the route alone and ask for the neighbour once more. They follow what they are copies of.

use std::rc::Rc;

use shoal_adj::Family;
use shoal_buffer::SwIfIndex;
use shoal_wire::IpPrefix;

use crate::change::State;
use crate::list::{List, ListId};
use crate::{FibError, FibIndex, Path, Source, Via, address};

/// A table and a route in it that leads to an interface of another.
pub(crate) type Importer = (FibIndex, IpPrefix);

/// Whose hosts a route imports.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Import {
    /// The interface's table.
    pub from: FibIndex,
    pub interface: SwIfIndex,
}

impl State {
    /// The table packets received on an interface are looked up in.
    fn table_of(&self, family: Family, interface: SwIfIndex) -> Option<FibIndex> {
        let data = self.interfaces.data(interface).ok()?;
        Some(FibIndex(match family {
            Family::Ip4 => data.fib_ip4,
            Family::Ip6 => data.fib_ip6,
        }))
    }

    /// What a route imports, as it is now.
    fn importing(&self, (fib, prefix): Importer) -> Option<Import> {
        let family = address::family(&prefix);
        if prefix.len() == family.max_len() {
            return None;
        }
        let slot = self.table(family, fib)?.get(&prefix)?;
        let list = self.lists.get(slot.route()?)?;
        let [Path { via: Via::Attached { interface, .. }, .. }] = list.paths()[..] else { return None };
        let from = self.table_of(family, interface).filter(|from| *from != fib)?;
        // Only where hosts have addresses of their own is there anything to know of them.
        self.has_neighbours(interface).then_some(Import { from, interface })
    }

    /// What an interface's table knows of a host on that link.
    fn exported(&self, import: Import, host: &IpPrefix) -> Option<Rc<[Path]>> {
        let slot = self.table(address::family(host), import.from)?.get(host)?;
        // A path MTU changes nothing of the way.
        let best = slot.all().find(|c| c.source != Source::PathMtu)?;
        let paths = self.lists.get(best.list)?.paths();
        let on_link = |via: Via| match via {
            Via::NextHop { interface, .. } => {
                best.source == Source::Adjacency && interface == import.interface
            }
            Via::Local { interface, .. } => {
                best.source == Source::Interface && interface == Some(import.interface)
            }
            _ => false,
        };
        matches!(&paths[..], [only] if on_link(only.via)).then(|| Rc::clone(paths))
    }

    /// What a table is to have of a host by imports.
    pub(crate) fn imported(&self, to: FibIndex, host: &IpPrefix) -> Option<Rc<[Path]>> {
        let inside = |((table, cover), _): &(&Importer, &Import)| *table == to && cover.covers(host);
        self.imports.iter().filter(inside).find_map(|(_, import)| self.exported(*import, host))
    }

    /// Whether an entry could begin to import because a list decides it, or anybody imports already.
    pub(crate) fn may_import(&self, list: ListId) -> bool {
        let attached = |via: Via| matches!(via, Via::Attached { .. });
        let leads = |list: &List| matches!(list.paths()[..], [only] if attached(only.via));
        !self.imports.is_empty() || self.lists.get(list).is_none_or(leads)
    }

    /// Another list decides an entry: it may be one that imports, or a host that others import.
    pub(crate) fn export(&mut self, fib: FibIndex, prefix: &IpPrefix) {
        if prefix.len() < address::family(prefix).max_len() {
            return self.import((fib, *prefix));
        }
        if self.imports.is_empty() {
            return;
        }
        let concerned =
            |((_, cover), import): &(&Importer, &Import)| import.from == fib && cover.covers(prefix);
        let to: Vec<FibIndex> = self.imports.iter().filter(concerned).map(|((to, _), _)| *to).collect();
        for to in to {
            self.copy(to, prefix);
        }
    }

    /// Makes a route import what it is to import now.
    fn import(&mut self, at: Importer) {
        let new = self.importing(at);
        let old = self.imports.get(&at).copied();
        if old == new {
            return;
        }
        let (to, cover) = at;
        let family = address::family(&cover);
        let mut hosts: Vec<IpPrefix> = Vec::new();
        if old.is_some() {
            self.imports.remove(&at);
            hosts.extend(self.hosts(family, to, &cover, |source| source == Source::AttachedExport));
        }
        if let Some(import) = new {
            self.imports.insert(at, import);
            hosts.extend(self.hosts(family, import.from, &cover, |source| {
                matches!(source, Source::Adjacency | Source::Interface)
            }));
        }
        for host in hosts {
            self.copy(to, &host);
        }
    }

    /// The hosts of a table inside a prefix that one of these sources contributes.
    fn hosts(
        &self,
        family: Family,
        fib: FibIndex,
        cover: &IpPrefix,
        wanted: impl Fn(Source) -> bool,
    ) -> Vec<IpPrefix> {
        let Some(table) = self.table(family, fib) else { return Vec::new() };
        let mut all = Vec::new();
        table.each_host(|host, slot| {
            if cover.covers(&host) && slot.all().any(|c| wanted(c.source)) {
                all.push(host);
            }
        });
        all
    }

    /// Makes what a table has of a host by imports right.
    fn copy(&mut self, to: FibIndex, host: &IpPrefix) {
        let wanted = self.imported(to, host);
        if let Err(e) = self.set_copy(to, host, wanted.as_deref()) {
            // Packets meet the route itself then, and the neighbour is asked for.
            tracing::warn!("{host} is not known by attached export: {e}");
        }
    }

    fn set_copy(&mut self, to: FibIndex, host: &IpPrefix, wanted: Option<&[Path]>) -> Result<(), FibError> {
        let family = address::family(host);
        let there = self.table(family, to).and_then(|t| t.get(host)?.of(Source::AttachedExport));
        let old = match wanted {
            Some(paths) => {
                let list = self.acquire(family, paths)?;
                if there == Some(list) {
                    Some(list)
                } else {
                    self.put(to, host, Source::AttachedExport, list).inspect_err(|_| self.release(list))?
                }
            }
            None if there.is_some() => self.take(to, host, Source::AttachedExport)?,
            None => None,
        };
        if let Some(old) = old {
            self.release(old);
        }
        Ok(())
    }

    /// An interface may belong to another table now: routes to it import, or no more.
    pub(crate) fn interface_moved(&mut self, family: Family, interface: SwIfIndex) {
        let Some(now) = self.table_of(family, interface) else { return };
        let before = self.belongs.insert((family, interface), now).unwrap_or_default();
        if before == now {
            return;
        }
        let leads = |via: Via| matches!(via, Via::Attached { interface: i, .. } if i == interface);
        let lists: Vec<_> = self
            .lists
            .naming(interface)
            .filter(|(_, l)| l.key.family == family && matches!(l.paths()[..], [only] if leads(only.via)))
            .map(|(id, _)| id)
            .collect();
        if lists.is_empty() {
            return;
        }
        let mut concerned: Vec<Importer> = Vec::new();
        for table in self.tables_of(family).iter().flatten() {
            table.each(|prefix, slot| {
                if slot.route().is_some_and(|list| lists.contains(&list)) {
                    concerned.push((table.index, prefix));
                }
            });
        }
        for at in concerned {
            self.import(at);
        }
    }

    /// An interface goes, and what is noted of it.
    pub(crate) fn forget_table_of(&mut self, interface: SwIfIndex) {
        for family in [Family::Ip4, Family::Ip6] {
            self.belongs.remove(&(family, interface));
        }
    }

    /// Looks for copies that are none, and hosts that are not copied; each is a line.
    pub(crate) fn check_exports(&self, broken: &mut Vec<String>) {
        for (at, import) in &self.imports {
            if self.importing(*at) != Some(*import) {
                broken.push(format!("{} in table index {}: imports what it should not", at.1, at.0));
            }
            let hosts = self.hosts(address::family(&at.1), import.from, &at.1, |_| true);
            for host in hosts.iter().filter(|host| self.exported(*import, host).is_some()) {
                if !self.has_copy(at.0, host) {
                    broken.push(format!("{host} is not known in table index {} by {}", at.0, at.1));
                }
            }
        }
        for table in self.all_tables() {
            table.each_host(|host, slot| {
                let list = slot.of(Source::AttachedExport).and_then(|list| self.lists.get(list));
                if let Some(list) = list
                    && self.imported(table.index, &host).as_deref() != Some(&list.paths()[..])
                {
                    broken.push(format!("{host} in table {}: is a copy of nothing", table.id));
                }
            });
        }
    }

    fn has_copy(&self, to: FibIndex, host: &IpPrefix) -> bool {
        let table = self.table(address::family(host), to);
        table.and_then(|t| t.get(host)).is_some_and(|slot| slot.of(Source::AttachedExport).is_some())
    }
}
