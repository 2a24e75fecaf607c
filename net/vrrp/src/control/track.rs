//! What lowers the priority: interfaces that are down, routes that lead nowhere.

use shoal_adj::{AdjKind, Family};
use shoal_fib::{FibIndex, Path, Via};
use shoal_interface::SwIfIndex;
use shoal_wire::IpPrefix;

use super::Vrrp;
use crate::config::VrKey;
use crate::error::VrrpError;
use crate::machine::Todo;

/// What leads nowhere.
const DEAD_END_KINDS: [AdjKind; 5] =
    [AdjKind::None, AdjKind::Drop, AdjKind::Unreachable, AdjKind::Prohibit, AdjKind::Closed];

/// The interface by which a path leaves, if it names one.
fn interface(path: &Path) -> Option<SwIfIndex> {
    match path.via {
        Via::Attached { interface, .. } | Via::NextHop { interface, .. } => Some(interface),
        _ => None,
    }
}

fn check(by: u8) -> Result<(), VrrpError> {
    match by {
        0 => Err(VrrpError::Range { what: "a priority of", value: 0, most: 254 }),
        255 => Err(VrrpError::Range { what: "a priority of", value: 255, most: 254 }),
        _ => Ok(()),
    }
}

impl Vrrp {
    /// Has interfaces that are down lower the priority of a virtual router, each by so much.
    ///
    /// # Errors
    /// There is no such virtual router or interface, or a number is out of range.
    pub fn track_interfaces(&self, key: VrKey, all: &[(SwIfIndex, u8)]) -> Result<(), VrrpError> {
        let index = self.index_of(key)?;
        for (interface, by) in all {
            self.interfaces.data(*interface)?;
            check(*by)?;
        }
        if let Some(entry) = self.vrs.borrow_mut().all.get_mut(&index) {
            entry.interfaces.extend(all.iter().copied());
        }
        self.weigh(index);
        Ok(())
    }

    /// They do so no more.
    ///
    /// # Errors
    /// There is no such virtual router, or one is not tracked.
    pub fn untrack_interfaces(&self, key: VrKey, all: &[SwIfIndex]) -> Result<(), VrrpError> {
        let index = self.index_of(key)?;
        let tracked = self.info(index).map(|info| info.interfaces).unwrap_or_default();
        let is_tracked = |interface: &SwIfIndex| tracked.iter().any(|(other, _)| other == interface);
        if let Some(other) = all.iter().find(|interface| !is_tracked(interface)) {
            return Err(VrrpError::NotTracked(self.name(*other)));
        }
        if let Some(entry) = self.vrs.borrow_mut().all.get_mut(&index) {
            entry.interfaces.retain(|interface, _| !all.contains(interface));
        }
        self.weigh(index);
        Ok(())
    }

    /// Has a route lower the priority of a virtual router by so much while it is not there, or all of its next hops are down: what
    /// BFD says of them included.
    ///
    /// # Errors
    /// There is no such virtual router, or the number is out of range.
    pub fn track_route(&self, key: VrKey, prefix: IpPrefix, by: u8) -> Result<(), VrrpError> {
        let index = self.index_of(key)?;
        check(by)?;
        if let Some(entry) = self.vrs.borrow_mut().all.get_mut(&index) {
            entry.routes.insert(prefix.normalized(), by);
        }
        self.weigh(index);
        Ok(())
    }

    /// It does so no more.
    ///
    /// # Errors
    /// There is no such virtual router, or the route is not tracked.
    pub fn untrack_route(&self, key: VrKey, prefix: IpPrefix) -> Result<(), VrrpError> {
        let index = self.index_of(key)?;
        let prefix = prefix.normalized();
        let removed =
            self.vrs.borrow_mut().all.get_mut(&index).and_then(|entry| entry.routes.remove(&prefix));
        removed.ok_or_else(|| VrrpError::NotTracked(prefix.to_string()))?;
        self.weigh(index);
        Ok(())
    }

    /// Whether routes are tracked at all.
    pub(crate) fn tracks_routes(&self) -> bool {
        self.vrs.borrow().all.values().any(|entry| !entry.routes.is_empty())
    }

    /// Looks at all routes that are tracked.
    pub(crate) fn look_at_routes(&self) {
        let tracking = |(index, entry): (&u32, &super::Entry)| (!entry.routes.is_empty()).then_some(*index);
        let all: Vec<u32> = self.vrs.borrow().all.iter().filter_map(tracking).collect();
        for index in all {
            self.weigh(index);
        }
    }

    /// Whether a route is there and leads somewhere.
    fn leads(&self, key: VrKey, prefix: IpPrefix) -> bool {
        let family = Family::of(prefix.addr());
        let table = match (family == key.family, family) {
            (false, _) => FibIndex::DEFAULT,
            (true, Family::Ip4) => self.ip4.fib_of(key.interface),
            (true, Family::Ip6) => self.ip6.fib_of(key.interface),
        };
        let best = self.fib.entry(table, prefix).ok().and_then(|entry| entry.lists.into_iter().next());
        best.is_some_and(|list| {
            let is_way = !DEAD_END_KINDS.contains(&self.adjacencies.get(list.adj).kind());
            is_way && list.paths.iter().any(|path| interface(path).is_none_or(|via| self.carries(via)))
        })
    }

    /// By how much what is tracked lowers the priority now.
    pub(super) fn weigh(&self, index: u32) {
        let Some(info) = self.info(index) else { return };
        let key = info.config.key;
        let interfaces = info.interfaces.iter().filter(|(interface, _)| !self.carries(*interface));
        let routes = info.routes.iter().filter(|(prefix, _)| !self.leads(key, *prefix));
        let lowered = interfaces.map(|(_, by)| u32::from(*by)).sum::<u32>()
            + routes.map(|(_, by)| u32::from(*by)).sum::<u32>();
        if lowered == info.machine.lowered {
            return;
        }
        self.with(index, |machine, now| {
            machine.lower(lowered, now);
            Todo::default()
        });
    }
}
