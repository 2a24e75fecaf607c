//! Static bindings, and what there is of others.

use std::collections::BTreeMap;

use super::{Nat64, Nat64Error};
use crate::config::{Inside, Outside, has_ports};
use crate::sessions::Bound;

/// A binding as it is shown.
pub type Listed = Bound;

impl Nat64 {
    /// A host is always found by this address and port. `vrf`: the host's.
    ///
    /// # Errors
    /// NAT64 is off, hosts do not share the address, or one of the two is bound already.
    pub fn add_binding(&self, vrf: u32, mut inside: Inside, outside: Outside) -> Result<(), Nat64Error> {
        self.on()?;
        if !self.addresses().iter().any(|shared| shared.address == outside.address) {
            return Err(Nat64Error::NotShared(outside.address));
        }
        if has_ports(inside.protocol) && (inside.port == 0 || outside.port == 0) {
            return Err(Nat64Error::NoPort(inside.protocol));
        }
        inside.table = self.hold_table(vrf)?.0;
        let mut state = self.state.borrow_mut();
        let config = &mut state.config;
        let refused = match (config.by_inside.get(&inside), config.by_outside.get(&outside)) {
            (Some(_), _) => Some(Nat64Error::BindingExists),
            (None, Some(_)) => Some(Nat64Error::PortTaken(outside.port)),
            (None, None) => None,
        };
        if let Some(refused) = refused {
            drop(state);
            self.release_table(vrf);
            return Err(refused);
        }
        config.by_inside.insert(inside, outside);
        config.by_outside.insert(outside, inside);
        state.statics.insert(inside, outside);
        drop(state);
        self.publish();
        self.export_binding(true, &inside, outside);
        // What the host or the port had by chance ends: the binding counts from now on.
        self.end_sessions(move |record| record.inside == inside || record.outside == outside)
    }

    /// It is so no more; its sessions end. The host's end says which one it is.
    ///
    /// # Errors
    /// NAT64 is off, or there is no such binding.
    pub fn del_binding(&self, vrf: u32, mut inside: Inside) -> Result<(), Nat64Error> {
        self.on()?;
        let table = self.fib.index_of(shoal_adj::Family::Ip6, vrf).map_err(|_| Nat64Error::NoBinding)?;
        inside.table = table.0;
        let outside = self.state.borrow().statics.get(&inside).copied().ok_or(Nat64Error::NoBinding)?;
        self.forget_bindings(|mine, _| *mine == inside);
        self.publish();
        let ended = self.end_sessions(move |record| record.inside == inside && record.outside == outside);
        self.export_binding(false, &inside, outside);
        ended
    }

    /// Static bindings go, without their sessions.
    pub(super) fn forget_bindings(&self, goes: impl Fn(&Inside, &Outside) -> bool) {
        let mut state = self.state.borrow_mut();
        let gone: Vec<(Inside, Outside)> =
            state.statics.iter().filter(|(i, o)| goes(i, o)).map(|(i, o)| (*i, *o)).collect();
        for (inside, outside) in &gone {
            state.statics.remove(inside);
            state.config.by_inside.remove(inside);
            state.config.by_outside.remove(outside);
        }
        drop(state);
        for (inside, _) in gone {
            self.release_table(self.vrf(inside.table));
        }
    }

    /// Static bindings: the host's VRF with each.
    pub fn statics(&self) -> Vec<(u32, Inside, Outside)> {
        let all: Vec<(Inside, Outside)> =
            self.state.borrow().statics.iter().map(|(inside, outside)| (*inside, *outside)).collect();
        all.into_iter().map(|(inside, outside)| (self.vrf(inside.table), inside, outside)).collect()
    }

    /// All bindings, by host; static ones also where no session uses them.
    ///
    /// # Errors
    /// A thread does not answer.
    pub fn bindings(&self) -> Result<Vec<Listed>, Nat64Error> {
        let of_threads = self.graph.on_every_state(&self.keeping, |_, sessions| sessions.bound())?;
        let unused = |(inside, outside): (&Inside, &Outside)| {
            (*inside, Bound { inside: *inside, outside: *outside, is_static: true, sessions: 0 })
        };
        let mut all: BTreeMap<Inside, Bound> = self.state.borrow().statics.iter().map(unused).collect();
        all.extend(of_threads.into_values().flatten().map(|bound| (bound.inside, bound)));
        Ok(all.into_values().collect())
    }
}
