//! The control plane: which path MTUs there are.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, BTreeSet};
use std::net::IpAddr;
use std::rc::Rc;

use shoal_adj::Family;
use shoal_fib::{Fib, FibIndex, Source, Via};
use shoal_graph::Graph;
use shoal_graph::clock::Time;
use shoal_module::{Control, InitError};
use shoal_wire::IpPrefix;

use crate::PathMtuError;

mod learn;

pub(crate) use learn::State;
pub use learn::{Learning, Learnt, MOST_LEARNT};

/// Most configured path MTUs.
pub(crate) const MOST: usize = 65_536;

/// One path MTU.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathMtu {
    /// The id of the host's table.
    pub table: u32,
    /// The host.
    pub peer: IpAddr,
    /// The longest packet on the way there.
    pub mtu: u16,
    /// What errors reported of it, if any did.
    pub learnt: Option<Learnt>,
}

/// Found by the table's id and the host.
type Key = (u32, IpAddr);

/// What is known of one host.
#[derive(Clone, Copy)]
struct Known {
    fib: FibIndex,
    /// The size that an operator or a client configured.
    said: Option<u16>,
    learnt: Option<Learnt>,
}

impl Known {
    /// The least of what is known; `None` when nothing is any more.
    fn mtu(&self) -> Option<u16> {
        self.said.into_iter().chain(self.learnt.map(|l| l.mtu)).min()
    }
}

/// All path MTUs.
pub struct PathMtus {
    graph: Rc<Graph>,
    fib: Rc<Fib>,
    all: RefCell<BTreeMap<Key, Known>>,
    /// How many of them are configured.
    said: Cell<usize>,
    /// Those not sent again since a replacement began.
    stale: RefCell<Option<BTreeSet<Key>>>,
    learning: RefCell<learn::State>,
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
    pub(crate) fn new(control: &Rc<Control>, learning: learn::State) -> Result<Self, InitError> {
        Ok(PathMtus {
            graph: control.graph()?,
            fib: control.get()?,
            all: RefCell::default(),
            said: Cell::new(0),
            stale: RefCell::default(),
            learning: RefCell::new(learning),
        })
    }

    /// Packets to a host are no longer than `mtu` from now on: IPv4 ones are cut, where they may be, and the senders of
    /// others get an error.
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
        let known = self.known(key, fib);
        if known.is_none_or(|k| k.said.is_none()) && self.said() >= MOST {
            return Err(PathMtuError::TooMany(MOST));
        }
        self.write(key, Known { fib, said: Some(mtu), learnt: known.and_then(|k| k.learnt) })?;
        if let Some(stale) = self.stale.borrow_mut().as_mut() {
            stale.remove(&key);
        }
        Ok(())
    }

    /// The way to a host carries what its links carry, as far as is known: configured and learnt sizes are forgotten.
    ///
    /// # Errors
    /// There is no path MTU to it.
    pub fn delete(&self, table: u32, peer: IpAddr) -> Result<(), PathMtuError> {
        let key = (table, peer);
        let known = self.all.borrow().get(&key).copied();
        let Some(known) = known else {
            let all = self.all.borrow();
            let nearest = all.keys().find(|(t, p)| *t == table && p.is_ipv4() == peer.is_ipv4()).map(|k| k.1);
            return Err(PathMtuError::None { peer, table, nearest });
        };
        self.write(key, Known { said: None, learnt: None, ..known })
    }

    /// How many are configured.
    pub(crate) fn said(&self) -> usize {
        self.said.get()
    }

    /// Counts which are configured and which are to be forgotten, when the facts of a host change.
    fn account(&self, key: Key, old: Option<&Known>, new: Option<&Known>) {
        let said = |known: Option<&Known>| usize::from(known.is_some_and(|k| k.said.is_some()));
        self.said.set((self.said.get() + said(new)).saturating_sub(said(old)));
        let due = |known: Option<&Known>| known.and_then(|k| k.learnt).map(|l| l.until);
        self.learning.borrow_mut().moved(key, due(old), due(new));
    }

    /// What is known of a host, if that was of the same table and not of one that had its id before.
    fn known(&self, key: Key, fib: FibIndex) -> Option<Known> {
        self.all.borrow().get(&key).copied().filter(|known| known.fib == fib)
    }

    /// Makes this all that is known of a host: the entry in the table first, which alone can be refused.
    fn write(&self, key: Key, new: Known) -> Result<(), PathMtuError> {
        let (table, peer) = key;
        let old = self.all.borrow().get(&key).copied();
        // Its table may have gone, with all that was in it.
        let there = self.fib.index_of(Family::of(peer), table) == Ok(new.fib);
        let before = old.filter(|old| old.fib == new.fib).and_then(|old| old.mtu());
        if let (true, Some(mtu)) = (there, new.mtu().filter(|mtu| Some(*mtu) != before)) {
            let path = Via::PathMtu { peer, fib: new.fib, mtu }.into();
            self.fib.add(new.fib, IpPrefix::host(peer), Source::PathMtu, &[path])?;
        } else if there && before.is_some() && new.mtu().is_none() {
            self.fib.remove(new.fib, IpPrefix::host(peer), Source::PathMtu)?;
        }
        let new = Some(new).filter(|new| there && new.mtu().is_some());
        self.account(key, old.as_ref(), new.as_ref());
        match new {
            Some(new) => drop(self.all.borrow_mut().insert(key, new)),
            None => drop(self.all.borrow_mut().remove(&key)),
        }
        Ok(())
    }

    /// All of them that still have a table, by table and host.
    pub fn list(&self) -> Vec<PathMtu> {
        self.forget_tables();
        let all = self.all.borrow();
        let row = |((table, peer), known): (&Key, &Known)| {
            Some(PathMtu { table: *table, peer: *peer, mtu: known.mtu()?, learnt: known.learnt })
        };
        all.iter().filter_map(row).collect()
    }

    /// Those an operator or a client has configured: table, host and the longest packet.
    pub fn all_said(&self) -> Vec<(u32, IpAddr, u16)> {
        self.forget_tables();
        let said = |((table, peer), known): (&Key, &Known)| Some((*table, *peer, known.said?));
        self.all.borrow().iter().filter_map(said).collect()
    }

    /// Forgets those whose table has gone.
    fn forget_tables(&self) {
        let gone = |((table, peer), known): (&Key, &Known)| {
            let there = self.fib.index_of(Family::of(*peer), *table) == Ok(known.fib);
            (!there).then_some((*table, *peer))
        };
        let gone: Vec<Key> = self.all.borrow().iter().filter_map(gone).collect();
        for key in gone {
            let known = self.all.borrow_mut().remove(&key);
            self.account(key, known.as_ref(), None);
        }
    }

    /// A client that knows all path MTUs begins to send them again. What was learnt is not concerned.
    pub fn replace_begin(&self) {
        let all = self.all.borrow();
        let said = all.iter().filter(|(_, known)| known.said.is_some()).map(|(key, _)| *key);
        *self.stale.borrow_mut() = Some(said.collect());
    }

    /// All are sent: what was not sent again goes.
    ///
    /// # Errors
    /// A table refused; the rest goes all the same.
    pub fn replace_end(&self) -> Result<(), PathMtuError> {
        let stale = self.stale.borrow_mut().take().unwrap_or_default();
        let mut done = Ok(());
        for key in stale {
            let known = self.all.borrow().get(&key).copied();
            if let Some(known) = known
                && let Err(e) = self.write(key, Known { said: None, ..known })
            {
                done = Err(e);
            }
        }
        done
    }

    fn now(&self) -> Time {
        self.graph.clock().now()
    }
}
