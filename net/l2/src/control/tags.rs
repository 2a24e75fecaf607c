//! What an interface does to VLAN tags and to the headers of a provider's bridge.

use shoal_interface::{SwIfIndex, TagsSaid};

use super::{L2, L2Error, OnInterface};
use crate::pbb::PbbRewrite;
use crate::rewrite::TagRewrite;

impl L2 {
    /// What an interface does to tags.
    pub fn tags(&self, interface: SwIfIndex) -> TagRewrite {
        self.on(interface).tags
    }

    /// Says what an interface does to tags.
    ///
    /// # Errors
    /// There is no such interface, it has no Ethernet header, or its frames do not have so many tags.
    pub fn set_tags(&self, interface: SwIfIndex, tags: TagRewrite) -> Result<(), L2Error> {
        self.check(interface)?;
        let takes = self.ethernet.sub(interface).map(|sub| sub.takes);
        if tags.both_ways(takes).is_none() {
            return Err(L2Error::TooFewTags(self.interfaces.name(interface)?));
        }
        self.put(interface, OnInterface { tags, ..self.on(interface) })?;
        self.note_tags(interface)
    }

    /// What an interface does to headers of provider backbone bridging.
    pub fn pbb(&self, interface: SwIfIndex) -> PbbRewrite {
        self.on(interface).pbb
    }

    /// Says what an interface does to headers of provider backbone bridging: to frames that come in behind what it does to VLAN
    /// tags, to those that go out before.
    ///
    /// # Errors
    /// There is no such interface, or it has no Ethernet header.
    pub fn set_pbb(&self, interface: SwIfIndex, pbb: PbbRewrite) -> Result<(), L2Error> {
        self.check(interface)?;
        self.put(interface, OnInterface { pbb, ..self.on(interface) })?;
        self.note_tags(interface)
    }

    /// Writes what packets are to find of an interface after [`set_pbb`](L2::set_pbb).
    pub(super) fn store_pbb(&self, interface: SwIfIndex) -> Result<(), L2Error> {
        let (at, data) = (interface.0 as usize, self.on(interface).pbb.both_ways());
        let mut writer = self.pbb.borrow_mut();
        if writer.get(at) == Some(&data) {
            return Ok(());
        }
        writer.store(at, data).map_err(|e| L2Error::Table(e.to_string()))
    }

    fn note_tags(&self, interface: SwIfIndex) -> Result<(), L2Error> {
        let said = TagsSaid { provider: self.pbb(interface).said(), ..self.tags(interface).said() };
        Ok(self.interfaces.note_tag_rewrite(interface, said)?)
    }
}
