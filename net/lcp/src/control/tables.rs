//! Tables of this router that Linux has a use for: which one the main table of a namespace is, and those that are made when they are
//! missing and go with their last user.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_fib::{Family, Fib, FibError, FibIndex, Source};

use super::*;

/// The kernel's main table.
pub(super) const MAIN: u32 = 254;
/// The kernel's table of its own addresses.
pub(super) const LOCAL: u32 = 255;

/// Who holds the tables.
const HOLDER: Source = Source::LcpRt;

/// How often a namespace needs each table.
pub(super) type Held = BTreeMap<(Family, u32), usize>;

/// A table of each family.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default, serde::Serialize)]
pub struct TablePair {
    /// That of IPv4.
    pub ip4: u32,
    /// That of IPv6.
    pub ip6: u32,
}

impl TablePair {
    /// The tables of one number.
    pub(super) fn both(id: u32) -> Self {
        TablePair { ip4: id, ip6: id }
    }

    /// That of a family.
    pub fn of(self, family: Family) -> u32 {
        match family {
            Family::Ip4 => self.ip4,
            Family::Ip6 => self.ip6,
        }
    }

    /// Where both say the same they say it together, else nothing counts but table 0.
    fn common(self, other: TablePair) -> TablePair {
        let same = |a, b| if a == b { a } else { 0 };
        TablePair { ip4: same(self.ip4, other.ip4), ip6: same(self.ip6, other.ip6) }
    }
}

/// Whether a table of the kernel is that of interfaces that are in no VRF.
pub(super) fn is_main(kernel: u32) -> bool {
    kernel == MAIN || kernel == LOCAL
}

impl Lcp {
    /// This router's table for one of a namespace's. The main table is the one that all interfaces with an image there are in, as far as
    /// no VRF of Linux has them; where they are in different ones it is table 0.
    pub fn table_in(&self, netns: &Option<String>, family: Family, kernel: u32) -> u32 {
        if is_main(kernel) { self.main_tables(netns).of(family) } else { kernel }
    }

    /// This router's tables for the main table of a namespace.
    pub(super) fn main_tables(&self, netns: &Option<String>) -> TablePair {
        self.with(netns, |mirror| mirror.main).unwrap_or_default()
    }

    /// The tables that packets of an interface are looked up in.
    pub(super) fn tables_of(&self, interface: SwIfIndex) -> TablePair {
        let fib = self.control.upgrade().and_then(|control| control.get::<Fib>().ok());
        let (Some(fib), Ok(data)) = (fib, self.interfaces.data(interface)) else {
            return TablePair::default();
        };
        let id = |family, index| fib.id_of(family, FibIndex(index)).unwrap_or(0);
        TablePair { ip4: id(Family::Ip4, data.fib_ip4), ip6: id(Family::Ip6, data.fib_ip6) }
    }

    /// An interface may be in another table: that is looked at when the change is complete.
    pub(super) fn tables_changed(self: &Rc<Self>, phy: SwIfIndex) {
        if self.moving.get() == Some(phy) {
            return;
        }
        let now = self.tables_of(phy);
        let netns = match self.pairs.borrow_mut().get_mut(&phy) {
            Some(pair) if pair.tables != now => {
                pair.tables = now;
                pair.netns.clone()
            }
            _ => return,
        };
        let processes = self.control.upgrade().and_then(|control| control.processes().ok());
        let Some(processes) = processes else { return self.decide_main(&netns) };
        let lcp = Rc::downgrade(self);
        processes.spawn_unlisted(async move {
            if let Some(lcp) = lcp.upgrade() {
                lcp.decide_main(&netns);
            }
        });
    }

    /// Finds out which tables the main table of a namespace is now; its routes go there if they are others.
    pub(super) fn decide_main(&self, netns: &Option<String>) {
        let now = {
            let pairs = self.pairs.borrow();
            let counts = |pair: &&Pair| {
                pair.netns == *netns && pair.host_index != 0 && pair.vrf.is_none() && !pair.is_made_by_linux()
            };
            let own = pairs.values().filter(counts).map(|pair| pair.tables);
            own.reduce(TablePair::common).unwrap_or_default()
        };
        let before = self.with(netns, |mirror| std::mem::replace(&mut mirror.main, now));
        let Some(before) = before.filter(|before| *before != now) else { return };
        let keys: Vec<_> = self
            .with(netns, |mirror| {
                let moves = |(table, (address, _)): &routes::Key| {
                    let family = Family::of(*address);
                    is_main(*table) && before.of(family) != now.of(family)
                };
                mirror.routes.iter().map(|(key, _)| *key).filter(moves).collect()
            })
            .unwrap_or_default();
        self.decide_slowly(netns, keys);
        self.decide_all_multicast(netns, false);
        // Sub-interfaces that were made for VLANs of Linux are where Linux's main table is.
        let made: Vec<SwIfIndex> = {
            let pairs = self.pairs.borrow();
            let made = pairs.iter().filter(|(_, pair)| pair.netns == *netns && pair.is_made_by_linux());
            made.map(|(phy, _)| *phy).collect()
        };
        for phy in made {
            self.follow_vrf(phy);
        }
        self.tell_observers(netns);
    }

    /// A namespace needs a table once more.
    pub(super) fn hold(
        &self,
        netns: &Option<String>,
        fib: &Fib,
        table: (Family, u32),
    ) -> Result<FibIndex, FibError> {
        self.hold_for(netns, fib, table, 1)
    }

    /// A namespace needs a table for so many things more.
    pub(super) fn hold_for(
        &self,
        netns: &Option<String>,
        fib: &Fib,
        (family, id): (Family, u32),
        count: usize,
    ) -> Result<FibIndex, FibError> {
        let is_held = self.with(netns, |mirror| mirror.held.contains_key(&(family, id))) == Some(true);
        let index = if is_held { fib.index_of(family, id) } else { fib.hold_table(family, id, HOLDER) }?;
        self.with(netns, |mirror| *mirror.held.entry((family, id)).or_default() += count);
        Ok(index)
    }

    /// It needs it once less.
    pub(super) fn let_go(&self, netns: &Option<String>, fib: &Fib, table: (Family, u32)) {
        self.let_go_of(netns, fib, table, 1);
    }

    /// It needs it for so many things less.
    pub(super) fn let_go_of(
        &self,
        netns: &Option<String>,
        fib: &Fib,
        (family, id): (Family, u32),
        count: usize,
    ) {
        let last = self.with(netns, |mirror| {
            let Some(held) = mirror.held.get_mut(&(family, id)) else { return false };
            *held = held.saturating_sub(count);
            *held == 0 && mirror.held.remove(&(family, id)).is_some()
        });
        if last == Some(true)
            && let Ok(index) = fib.index_of(family, id)
        {
            fib.unlock(family, index, HOLDER);
        }
    }
}
