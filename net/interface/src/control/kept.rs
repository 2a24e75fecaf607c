//! Settings of an interface that its present state does not show: what a configuration is written from.

use std::collections::BTreeMap;

use shoal_buffer::SwIfIndex;
use shoal_wire::MacAddress;

use super::{Interfaces, MtuLayer};
use crate::InterfaceError;

/// What an interface in layer 2 does to VLAN tags, as messages have it.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct TagsSaid {
    /// The operation's number.
    pub op: u32,
    /// Whether the first tag that is put on is one of 802.1Q.
    pub is_dot1q: bool,
    /// The ids that are put on.
    pub ids: [u16; 2],
    /// What it does to the header of a provider's bridge.
    pub provider: ProviderSaid,
}

/// The header of a provider's bridge (802.1ah) that an interface in layer 2 puts on or takes off; all 0: none.
#[derive(Clone, Copy, Default, PartialEq, Eq, Debug)]
pub struct ProviderSaid {
    /// The id of the tag that it is exchanged for.
    pub outer_tag: u16,
    /// The destination address.
    pub dst: MacAddress,
    /// The source address.
    pub src: MacAddress,
    /// The VLAN.
    pub vlan: u16,
    /// The service.
    pub service: u32,
}

/// Settings of one interface.
#[derive(Clone, Default, Debug)]
pub(crate) struct Kept {
    /// The name it was made with.
    pub made_as: String,
    /// The MTU it was made with, or that of its device in the kernel.
    pub usual_mtu: u16,
    /// The MTU that was asked for.
    pub mtu: Option<u16>,
    /// Features by arc and name that were switched on or off by name.
    pub features: BTreeMap<(String, String), bool>,
    /// Receive queues that were put on a thread.
    pub placed: BTreeMap<u32, usize>,
    /// It comes and goes with something else, which recreates it.
    pub follows: bool,
    /// What layer 2 does to tags.
    pub tag_rewrite: TagsSaid,
}

impl Interfaces {
    fn keep<T>(&self, index: SwIfIndex, what: impl FnOnce(&mut Kept) -> T) -> Result<T, InterfaceError> {
        let mut all = self.all.borrow_mut();
        let interface = all.get_mut(&index).ok_or(InterfaceError::NoIndex(index))?;
        Ok(what(&mut interface.kept))
    }

    pub(crate) fn kept(&self, index: SwIfIndex) -> Option<Kept> {
        self.all.borrow().get(&index).map(|interface| interface.kept.clone())
    }

    /// The name an interface was made with.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn made_as(&self, index: SwIfIndex) -> Result<String, InterfaceError> {
        self.keep(index, |kept| kept.made_as.clone())
    }

    /// An interface that something else makes and takes away is none that an operator made: no configuration names it.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn set_follows(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        self.keep(index, |kept| kept.follows = true)
    }

    /// Notes what layer 2 does to tags, for messages that list interfaces.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn note_tag_rewrite(&self, index: SwIfIndex, said: TagsSaid) -> Result<(), InterfaceError> {
        self.keep(index, |kept| kept.tag_rewrite = said)
    }

    /// Whether something else makes an interface and takes it away.
    pub fn follows(&self, index: SwIfIndex) -> bool {
        self.all.borrow().get(&index).is_some_and(|interface| interface.kept.follows)
    }

    /// The device's own MTU has changed: the interface's becomes the same, whatever was asked for before.
    ///
    /// # Errors
    /// As [`Interfaces::set_mtu`].
    pub fn follow_mtu(&self, index: SwIfIndex, mtu: u16) -> Result<(), InterfaceError> {
        if self.all.borrow().get(&index).is_some_and(|interface| interface.mtu.l3 == mtu) {
            // Somebody asked for it, and the device has followed.
            return Ok(());
        }
        self.set_mtu(index, MtuLayer::L3, mtu.into())?;
        self.keep(index, |kept| {
            kept.usual_mtu = mtu;
            kept.mtu = None;
        })
    }

    pub(super) fn keep_mtu(&self, index: SwIfIndex, mtu: u16) {
        let given = self.all.borrow().get(&index).is_some_and(|i| i.device.has_given_mtu());
        // There is always the interface: its MTU has just been set.
        let _ = self.keep(index, |kept| kept.mtu = (given || mtu != kept.usual_mtu).then_some(mtu));
    }

    pub(super) fn keep_placement(&self, index: SwIfIndex, number: u32, thread: usize) {
        let _ = self.keep(index, |kept| kept.placed.insert(number, thread));
    }

    /// An interface has the MTU that it came with, or that its device has taken since, and no other was asked for.
    ///
    /// # Errors
    /// As [`Interfaces::set_mtu`].
    pub fn forget_mtu(&self, index: SwIfIndex) -> Result<(), InterfaceError> {
        let usual = self.keep(index, |kept| kept.usual_mtu)?;
        self.set_mtu(index, MtuLayer::L3, usual.into())?;
        self.keep(index, |kept| kept.mtu = None)
    }

    /// A queue may be anywhere.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn forget_placement(&self, index: SwIfIndex, number: u32) -> Result<(), InterfaceError> {
        self.keep(index, |kept| {
            kept.placed.remove(&number);
        })
    }

    /// Enables or disables a feature of an arc on an interface because somebody named it.
    ///
    /// # Errors
    /// There is no such interface, arc or feature.
    pub fn set_feature(
        &self,
        arc: &str,
        feature: &str,
        index: SwIfIndex,
        on: bool,
    ) -> Result<(), InterfaceError> {
        let is_on = |(name, on): &(String, bool)| name == feature && *on;
        let arcs = self.graph.features(Some(index));
        let before = arcs.iter().any(|(name, features)| *name == arc && features.iter().any(is_on));
        self.enable_feature(arc, feature, index, on)?;
        self.keep(index, |kept| {
            let key = (arc.to_owned(), feature.to_owned());
            match kept.features.get(&key) {
                // Back to the default.
                Some(said) if *said != on => drop(kept.features.remove(&key)),
                None if before != on => drop(kept.features.insert(key, on)),
                _ => {}
            }
        })
    }
}
