//! The control plane: which path MTUs there are.

use std::cell::RefCell;
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_fib::{Fib, FibIndex, Source, Via};
use shoal_module::{Control, InitError};
use shoal_wire::IpPrefix;

use crate::PathMtuError;

/// Most path MTUs.
const MOST: usize = 65_536;

/// One path MTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathMtu {
    /// The id of the host's table.
    pub table: u32,
    /// The host.
    pub peer: IpAddr,
    /// The longest packet on the way there.
    pub mtu: u16,
}

/// Found by the table's id and the host.
type Key = (u32, IpAddr);

/// All path MTUs.
pub struct PathMtus {
    fib: Rc<Fib>,
    all: RefCell<BTreeMap<Key, (FibIndex, u16)>>,
    /// Those not said again since a replacement began.
    stale: RefCell<Option<BTreeSet<Key>>>,
}

/// What every link of a family carries.
fn least(peer: IpAddr) -> u16 {
    match peer {
        IpAddr::V4(_) => 68,
        IpAddr::V6(_) => 1280,
    }
}

fn is_host(peer: IpAddr) -> bool {
    let broadcast = matches!(peer, IpAddr::V4(a) if a.is_broadcast());
    // Link-local addresses of IPv6 are in no table.
    let link_local = matches!(peer, IpAddr::V6(a) if a.is_unicast_link_local());
    !(peer.is_unspecified() || peer.is_multicast() || peer.is_loopback() || broadcast || link_local)
}

impl PathMtus {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Self, InitError> {
        Ok(PathMtus { fib: control.get()?, all: RefCell::default(), stale: RefCell::default() })
    }

    /// Packets to a host are no longer than `mtu` from now on: IPv4 ones are cut, where they may be, and the senders of
    /// others are told.
    ///
    /// # Errors
    /// The value is out of range, the address is no host's, or there is no such table; nothing is changed then.
    pub fn update(&self, table: u32, peer: IpAddr, mtu: u16) -> Result<(), PathMtuError> {
        if !is_host(peer) {
            return Err(PathMtuError::NotAHost(peer));
        }
        if mtu < least(peer) {
            return Err(PathMtuError::Range { peer, mtu, least: least(peer) });
        }
        let fib = self.fib.index_of(Family::of(peer), table)?;
        let key = (table, peer);
        if self.all.borrow().len() >= MOST && !self.all.borrow().contains_key(&key) {
            return Err(PathMtuError::TooMany(MOST));
        }
        let path = Via::PathMtu { peer, fib, mtu }.into();
        self.fib.add(fib, IpPrefix::host(peer), Source::PathMtu, &[path])?;
        self.all.borrow_mut().insert(key, (fib, mtu));
        if let Some(stale) = self.stale.borrow_mut().as_mut() {
            stale.remove(&key);
        }
        Ok(())
    }

    /// The way to a host carries what its links carry, as far as anybody knows.
    ///
    /// # Errors
    /// There is no path MTU to it.
    pub fn delete(&self, table: u32, peer: IpAddr) -> Result<(), PathMtuError> {
        let removed = self.all.borrow_mut().remove(&(table, peer));
        let Some((fib, _)) = removed else {
            let all = self.all.borrow();
            let nearest = all.keys().find(|(t, p)| *t == table && p.is_ipv4() == peer.is_ipv4()).map(|k| k.1);
            return Err(PathMtuError::None { peer, table, nearest });
        };
        // Its table may have gone, with all that was in it.
        let still = self.fib.index_of(Family::of(peer), table) == Ok(fib);
        if still {
            self.fib.remove(fib, IpPrefix::host(peer), Source::PathMtu)?;
        }
        Ok(())
    }

    /// All of them that still have a table, by table and host.
    pub fn list(&self) -> Vec<PathMtu> {
        self.all
            .borrow_mut()
            .retain(|(table, peer), (fib, _)| self.fib.index_of(Family::of(*peer), *table) == Ok(*fib));
        let all = self.all.borrow();
        all.iter()
            .map(|((table, peer), (_, mtu))| PathMtu { table: *table, peer: *peer, mtu: *mtu })
            .collect()
    }

    /// Whoever knows all path MTUs begins to say them again.
    pub fn replace_begin(&self) {
        *self.stale.borrow_mut() = Some(self.all.borrow().keys().copied().collect());
    }

    /// All are said: what was not said again goes.
    ///
    /// # Errors
    /// A table refused; the rest goes all the same.
    pub fn replace_end(&self) -> Result<(), PathMtuError> {
        let stale = self.stale.borrow_mut().take().unwrap_or_default();
        let mut done = Ok(());
        for (table, peer) in stale {
            match self.delete(table, peer) {
                Ok(()) | Err(PathMtuError::None { .. }) => {}
                failed => done = failed,
            }
        }
        done
    }
}
