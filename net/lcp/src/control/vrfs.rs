//! VRFs of Linux: an image that is part of one makes its interface use the table of that number, in both families.
//!
//! The kernel takes an interface that is up down and up again when it becomes part of a VRF or leaves it. It says nothing of IPv4
//! routes that go with that, and it drops IPv6 addresses. So routes by the image are forgotten, all is listed again, and what becomes
//! of the addresses is decided when that is done.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_fib::{Family, Fib, Via};
use shoal_interface::{EventOrigin, HostLinkKind};
use shoal_ip::AddressError;
use shoal_wire::{Ip4Prefix, IpPrefix};

use super::mirror::LedBy;
use super::tables::is_main;
use super::*;

/// A VRF of Linux, for display.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct VrfInfo {
    /// Its namespace, none for the router's own.
    pub netns: Option<String>,
    /// Its name.
    pub name: String,
    /// The kernel's table.
    pub table: u32,
    /// This router's table, if it can have one of that number.
    pub id: Option<u32>,
    /// Interfaces whose images are part of it.
    pub members: Vec<SwIfIndex>,
}

/// This router's table for a VRF with a table of the kernel; none if there cannot be one. The kernel knows no table 0, and
/// the highest number means `none' to clients of this router.
fn usable(table: u32) -> Option<u32> {
    (table != 0 && table != u32::MAX).then_some(table)
}

impl mirror::Mirror {
    /// The kernel's table of a VRF.
    pub(super) fn vrf_table(&self, host_index: u32) -> Option<u32> {
        match self.links.get(&host_index)?.kind {
            HostLinkKind::Vrf { table } => Some(table),
            _ => None,
        }
    }

    /// How many VRFs there are.
    pub(super) fn vrf_count(&self) -> usize {
        self.links.values().filter(|link| matches!(link.kind, HostLinkKind::Vrf { .. })).count()
    }
}

impl Lcp {
    /// All VRFs of Linux in namespaces with images.
    pub fn vrfs(&self) -> Vec<VrfInfo> {
        let (mirrors, pairs) = (self.mirrors.borrow(), self.pairs.borrow());
        let mut all = Vec::new();
        for (netns, mirror) in mirrors.iter() {
            for (index, link) in &mirror.links {
                let HostLinkKind::Vrf { table } = link.kind else { continue };
                let is_member = |pair: &Pair| {
                    let link = mirror.links.get(&pair.host_index);
                    pair.netns == *netns && link.is_some_and(|link| link.master == Some(*index))
                };
                let members = pairs.iter().filter(|(_, pair)| is_member(pair)).map(|(phy, _)| *phy);
                all.push(VrfInfo {
                    netns: netns.clone(),
                    name: link.name.clone(),
                    table,
                    id: if is_main(table) { Some(mirror.main.ip4) } else { usable(table) },
                    members: members.collect(),
                });
            }
        }
        all
    }

    /// A VRF has come, has another table, or has gone: interfaces whose images are part of it follow, and routes that lead by it.
    pub(super) fn vrf_changed(&self, netns: &Option<String>, host_index: u32) {
        let members: Vec<SwIfIndex> = {
            let (mirrors, pairs) = (self.mirrors.borrow(), self.pairs.borrow());
            let Some(mirror) = mirrors.get(netns) else { return };
            let is_member = |pair: &Pair| {
                let link = mirror.links.get(&pair.host_index);
                pair.netns == *netns && link.is_some_and(|link| link.master == Some(host_index))
            };
            pairs.iter().filter(|(_, pair)| is_member(pair)).map(|(phy, _)| *phy).collect()
        };
        for phy in members {
            self.follow_vrf(phy);
        }
        self.change_routes(netns, LedBy(host_index));
        if self.with(netns, |mirror| mirror.vrf_table(host_index).is_none()) == Some(true) {
            self.forget_lookups(netns, host_index);
        }
        self.tell_observers(netns);
    }

    /// An interface uses the table that Linux says its image does.
    pub(super) fn follow_vrf(&self, phy: SwIfIndex) {
        let Some((netns, host_index, (now, is_made))) = self
            .pairs
            .borrow()
            .get(&phy)
            .filter(|pair| pair.host_index != 0)
            .map(|pair| (pair.netns.clone(), pair.host_index, (pair.vrf, pair.is_made_by_linux())))
        else {
            return;
        };
        let wanted = self.with(&netns, |mirror| {
            let link = mirror.links.get(&host_index)?;
            // A VRF of the main table is none.
            Some(link.master.and_then(|master| mirror.vrf_table(master)).filter(|table| !is_main(*table)))
        });
        // Nothing is known of the image yet.
        let Some(wanted) = wanted.flatten() else { return };
        let wanted = match wanted.map(usable) {
            // What Linux has made is where its main table is.
            None => Some(self.main_tables(&netns)).filter(|main| is_made && *main != TablePair::default()),
            Some(Some(id)) => Some(TablePair::both(id)),
            Some(None) => {
                let first =
                    self.with(&netns, |mirror| mirror.refuse(host_index, "no table of the VRF's number"));
                if first == Some(true) {
                    let why = "this router has no table of that number".to_owned();
                    self.warn(phy, "VRF of its image", Err(why));
                }
                return;
            }
        };
        if wanted == now {
            self.with(&netns, |mirror| mirror.refused.remove(&host_index));
            return;
        }
        // One that leaves a VRF goes back to where it was.
        if let Err(why) = self.move_to(&netns, phy, wanted) {
            // It is tried again after each listing.
            if self.with(&netns, |mirror| mirror.refuse(host_index, &why)) == Some(true) {
                self.warn(phy, "VRF of its image", Err(why));
            }
            return;
        }
        self.with(&netns, |mirror| mirror.refused.remove(&host_index));
        if let Some(pair) = self.pairs.borrow_mut().get_mut(&phy) {
            pair.vrf = wanted;
        }
        self.decide_main(&netns);
        // There may be room for addresses where it was, and where it is.
        self.give_back_lost();
        // Entries of daemons for a table wait for it.
        self.decide_all_multicast(&netns, false);
    }

    /// Moves an interface to tables, with its addresses: those of a VRF, or those where it was before.
    fn move_to(&self, netns: &Option<String>, phy: SwIfIndex, vrf: Option<TablePair>) -> Result<(), String> {
        let Some(control) = self.control.upgrade() else { return Ok(()) };
        let fib = control.get::<Fib>().map_err(|e| e.to_string())?;
        let Some((from_linux, host)) = self.moves_with(phy) else { return Ok(()) };
        let to = self.destination(&fib, phy, vrf);
        let before = self.own_addresses(phy);
        // Neither family moves alone.
        let mut held = Vec::new();
        let done = Family::ALL.into_iter().try_for_each(|family| {
            self.hold(netns, &fib, (family, to.of(family))).map_err(|e| e.to_string())?;
            held.push(family);
            Ok(())
        });
        let done = done.and_then(|()| {
            // Of a VRF no configuration has what Linux has given.
            let is_linux = |address: IpPrefix| from_linux.contains(&(address.addr(), address.len()));
            let moved = Moved { phy, to, is_linux: &is_linux, in_vrf: vrf.is_some() };
            self.moving.set(Some(phy));
            let done = moved.ip4(&control).and(moved.ip6(&control));
            self.moving.set(None);
            done
        });
        // What Linux sends into a TUN is routed as if that had received it.
        let done = done.and_then(|()| match host {
            Some(phy) => {
                let moved = Moved { phy, to, is_linux: &|_| false, in_vrf: false };
                moved.ip4(&control).and(moved.ip6(&control))
            }
            None => Ok(()),
        });
        // From now on the interface itself needs the tables.
        for family in held {
            self.let_go(netns, &fib, (family, to.of(family)));
        }
        let tables = self.tables_of(phy);
        // Addresses that had no room there stay in Linux, and are tried again.
        let own = self.own_addresses(phy);
        if let Some(pair) = self.pairs.borrow_mut().get_mut(&phy) {
            pair.tables = tables;
            pair.addresses.retain(|address| own.contains(address));
            pair.from_linux.retain(|address| own.contains(address));
            let lost = before.into_iter().filter(|address| !own.contains(address));
            pair.lost.extend(lost.map(|address| (address, from_linux.contains(&address))));
        }
        done
    }

    /// The tables that an interface goes to: where it was before it became part of a VRF, that is remembered.
    fn destination(&self, fib: &Fib, phy: SwIfIndex, vrf: Option<TablePair>) -> TablePair {
        let mut pairs = self.pairs.borrow_mut();
        let Some(pair) = pairs.get_mut(&phy) else { return TablePair::default() };
        if let Some(vrf) = vrf {
            if pair.vrf.is_none() {
                pair.before_vrf = pair.tables;
            }
            return vrf;
        }
        let there = |family| match pair.before_vrf.of(family) {
            id if fib.index_of(family, id).is_ok() => id,
            _ => 0,
        };
        TablePair { ip4: there(Family::Ip4), ip6: there(Family::Ip6) }
    }

    /// Tries addresses again that had no room in the tables that interfaces went to.
    fn give_back_lost(&self) {
        let Some(control) = self.control.upgrade() else { return };
        let all: Vec<_> = {
            let pairs = self.pairs.borrow();
            let of = |(phy, pair): (&SwIfIndex, &Pair)| {
                let lost = pair.lost.iter().map(|(address, is_linux)| (*phy, *address, *is_linux));
                lost.collect::<Vec<_>>()
            };
            pairs.iter().flat_map(of).collect()
        };
        for (phy, address, is_linux) in all {
            let given = match IpPrefix::new(address.0, address.1) {
                _ if is_linux => self.set_address(phy, address, true).is_ok(),
                Ok(IpPrefix::Ip4(own)) => {
                    control.get::<Ip4>().is_ok_and(|ip| ip.add_address(phy, own).is_ok())
                }
                Ok(IpPrefix::Ip6(own)) => {
                    control.get::<Ip6>().is_ok_and(|ip| ip.add_address(phy, own).is_ok())
                }
                Err(_) => true,
            };
            if let Some(pair) = self.pairs.borrow_mut().get_mut(&phy)
                && (given || Self::has(&control, phy, address))
            {
                pair.lost.remove(&address);
            }
        }
    }

    fn has(control: &Control, phy: SwIfIndex, (address, len): (IpAddr, u8)) -> bool {
        match IpPrefix::new(address, len) {
            Ok(IpPrefix::Ip4(own)) => control.get::<Ip4>().is_ok_and(|ip| ip.addresses(phy).contains(&own)),
            Ok(IpPrefix::Ip6(own)) => control.get::<Ip6>().is_ok_and(|ip| ip.addresses(phy).contains(&own)),
            Err(_) => false,
        }
    }

    /// A pair goes and its interface stays: with the addresses that Linux has given it, and in the table where Linux has put it. All that
    /// is the operator's from now on.
    pub(super) fn keep_interface(&self, phy: SwIfIndex, pair: &Pair) {
        for address in &pair.from_linux {
            self.mark_brought(phy, *address, false);
        }
        let Some(control) = self.control.upgrade().filter(|_| pair.vrf.is_some()) else { return };
        let (Ok(fib), Ok(ip4), Ok(ip6)) = (control.get::<Fib>(), control.get::<Ip4>(), control.get::<Ip6>())
        else {
            return;
        };
        fib.ask_for(Family::Ip4, ip4.fib_of(phy));
        fib.ask_for(Family::Ip6, ip6.fib_of(phy));
    }

    /// Which addresses of an interface Linux has given it, and the image, if that is a TUN.
    fn moves_with(&self, phy: SwIfIndex) -> Option<(AddressSet, Option<SwIfIndex>)> {
        let pairs = self.pairs.borrow();
        let pair = pairs.get(&phy)?;
        Some((pair.from_linux.clone(), (pair.layer == HostLayer::Ip).then_some(pair.host)))
    }

    /// An image has become part of something else, or of nothing.
    pub(super) fn master_changed(&self, netns: &Option<String>, told: EventOrigin, host_index: u32) {
        let Some(phy) = self.phy_of(netns, host_index) else { return };
        self.with(netns, |mirror| {
            // A listing tells of links before addresses, so that this one says what there is.
            let listed = told == EventOrigin::Listed;
            let set = if listed { &mut mirror.settling } else { &mut mirror.moved };
            set.insert(host_index)
        });
        self.forget_next_hops_by(netns, host_index);
        self.flush(netns, host_index);
        self.follow_vrf(phy);
    }

    /// All has been listed: IPv6 addresses that Linux has dropped from images because they became part of something else go here,
    /// too; or Linux gets them back, if addresses are mirrored.
    pub(super) fn settle(&self, netns: &Option<String>) {
        let settled = self.with(netns, |mirror| {
            let settling = std::mem::take(&mut mirror.settling);
            let (now, later) = std::mem::take(&mut mirror.dropped)
                .into_iter()
                .partition::<Vec<_>, _>(|(host_index, _)| settling.contains(host_index));
            mirror.dropped = later.into_iter().collect();
            let there = &mirror.addresses;
            (settling, now.into_iter().filter(|gone| !there.contains(gone)).collect::<Vec<_>>())
        });
        let Some((settling, dropped)) = settled else { return };
        for (host_index, address) in dropped {
            let Some(phy) = self.phy_of(netns, host_index) else { continue };
            if let Some(pair) = self.pairs.borrow_mut().get_mut(&phy) {
                pair.addresses.retain(|a| *a != address);
            }
            if self.sync.get() == Sync::Off {
                self.warn(phy, "address of its image", self.set_address(phy, address, false));
            }
        }
        for host_index in settling {
            if let Some(phy) = self.phy_of(netns, host_index) {
                self.sync_addresses(phy);
            }
        }
        // What could not be moved before may be possible now.
        let all: Vec<SwIfIndex> = {
            let pairs = self.pairs.borrow();
            pairs.iter().filter(|(_, pair)| pair.netns == *netns).map(|(phy, _)| *phy).collect()
        };
        for phy in all {
            self.follow_vrf(phy);
        }
        self.give_back_lost();
        if let Some(fib) = self.control.upgrade().and_then(|control| control.get::<Fib>().ok()) {
            fib.forget_unwanted();
        }
    }

    /// A route that leads by a VRF is looked up again in the table of that; one in that table itself would be for ever.
    pub(super) fn lookup_by(
        &self,
        netns: &Option<String>,
        (family, from): (Family, u32),
        host_index: u32,
    ) -> Option<Via> {
        let fib = self.control.upgrade().and_then(|control| control.get::<Fib>().ok())?;
        let id = self.with(netns, |mirror| mirror.vrf_table(host_index)).flatten().and_then(usable)?;
        let id = self.table_in(netns, family, id);
        if id == self.table_in(netns, family, from) {
            return None;
        }
        let key = (host_index, family);
        let before = self.with(netns, |mirror| mirror.looked_up.get(&key).copied()).flatten();
        if before == Some(id) {
            return fib.index_of(family, id).ok().map(Via::Lookup);
        }
        let index = self.hold(netns, &fib, (family, id)).ok()?;
        self.with(netns, |mirror| mirror.looked_up.insert(key, id));
        if let Some(before) = before {
            self.let_go(netns, &fib, (family, before));
        }
        Some(Via::Lookup(index))
    }

    /// A VRF has another table, or has gone: no route needs its table for a lookup any more.
    fn forget_lookups(&self, netns: &Option<String>, host_index: u32) {
        let Some(fib) = self.control.upgrade().and_then(|control| control.get::<Fib>().ok()) else { return };
        for family in Family::ALL {
            let held = self.with(netns, |mirror| mirror.looked_up.remove(&(host_index, family))).flatten();
            if let Some(id) = held {
                self.let_go(netns, &fib, (family, id));
            }
        }
    }

    /// The namespace is heard no longer.
    pub(super) fn forget_all_lookups(&self, netns: &Option<String>) {
        let all: Option<BTreeSet<u32>> =
            self.with(netns, |mirror| mirror.looked_up.keys().map(|(vrf, _)| *vrf).collect());
        for vrf in all.unwrap_or_default() {
            self.forget_lookups(netns, vrf);
        }
    }
}

/// An interface on its way to a table.
struct Moved<'a> {
    phy: SwIfIndex,
    to: TablePair,
    /// Whether Linux has given it an address.
    is_linux: &'a dyn Fn(IpPrefix) -> bool,
    /// Whether the table is that of a VRF.
    in_vrf: bool,
}

impl Moved<'_> {
    /// Whether no configuration has an address there.
    fn is_learnt(&self, address: IpPrefix, before: bool) -> bool {
        if (self.is_linux)(address) { self.in_vrf } else { before }
    }

    fn lost(&self, address: IpPrefix, why: &AddressError) {
        let id = self.to.of(Family::of(address.addr()));
        tracing::warn!("linux-cp: {address} is lost on the way to table {id}: {why}");
    }

    /// Moves what IPv4 has on the interface. Addresses that have no room in the table are lost.
    fn ip4(&self, control: &Control) -> Result<(), String> {
        let ip4 = control.get::<Ip4>().map_err(|e| e.to_string())?;
        let had = ip4.addresses(self.phy).into_iter();
        let had: Vec<(Ip4Prefix, bool)> = had.map(|a| (a, ip4.is_learnt(self.phy, a))).collect();
        for (address, _) in &had {
            ip4.del_address(self.phy, *address).map_err(|e| e.to_string())?;
        }
        let moved = ip4.follow_table(self.phy, self.to.ip4).map_err(|e| e.to_string());
        for (address, was_learnt) in had {
            let put = if self.is_learnt(address.into(), was_learnt) {
                ip4.add_learnt(self.phy, address)
            } else {
                ip4.add_address(self.phy, address)
            };
            if let Err(e) = put {
                self.lost(address.into(), &e);
            }
            ip4.set_brought(self.phy, address, (self.is_linux)(address.into()));
        }
        moved
    }

    /// The same of IPv6. What is known to be the router's alone needs no proof again.
    fn ip6(&self, control: &Control) -> Result<(), String> {
        let ip6 = control.get::<Ip6>().map_err(|e| e.to_string())?;
        let before = ip6.on(self.phy);
        for address in &before.addresses {
            ip6.del_address(self.phy, *address).map_err(|e| e.to_string())?;
        }
        let moved = ip6.follow_table(self.phy, self.to.ip6).map_err(|e| e.to_string());
        for address in before.addresses {
            if let Err(e) = ip6.add_address(self.phy, address) {
                self.lost(address.into(), &e);
                continue;
            }
            ip6.set_brought(self.phy, address.addr(), (self.is_linux)(address.into()));
            if self.is_learnt(address.into(), before.learnt.contains(&address.addr())) {
                ip6.set_learnt(self.phy, address.addr());
            }
            if !before.unproven.contains(&address.addr()) {
                let allowed = ip6.set_use(self.phy, address.addr(), shoal_ip6::Use::Allowed);
                allowed.map_err(|e| e.to_string())?;
            }
        }
        moved
    }
}
