//! Members of domains: they come, and they leave.

use shoal_interface::SwIfIndex;
use shoal_l2::{Mode, Port, Role};

use super::{Bridges, Settings};
use crate::entry::{Entry, Key};
use crate::error::BridgeError;

/// A member as `show bridge-domain` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MemberInfo {
    /// The interface.
    pub interface: SwIfIndex,
    /// Its place.
    pub port: Port,
    /// Counts what made what was learned of it out of date.
    pub sequence: u8,
}

impl Bridges {
    /// The same as [`Bridges::join`], but a domain that is not there is created.
    ///
    /// # Errors
    /// As [`Bridges::join`] and [`Bridges::create`]; then no domain was created.
    pub fn join_or_create(
        &self,
        interface: SwIfIndex,
        number: u32,
        group: u8,
        role: Role,
    ) -> Result<(), BridgeError> {
        let created = self.index_of(number).is_err();
        if created {
            self.create(number, Settings::default())?;
        }
        let joined = self.join(interface, number, group, role);
        if created && joined.is_err() {
            self.delete(number)?;
        }
        joined
    }

    /// Makes an interface a member of a domain.
    ///
    /// # Errors
    /// There is no such domain or interface, or it has a BVI already: then the interface stays what it was.
    pub fn join(&self, interface: SwIfIndex, number: u32, group: u8, role: Role) -> Result<(), BridgeError> {
        let index = self.index_of(number)?;
        self.l2.check(interface)?;
        let port = Self::port(index, group, role);
        if number == 0 {
            return Ok(self.l2.set_mode(interface, Mode::Bridge(Self::port(0, group, Role::Normal)))?);
        }
        let bvi = self.domain(number)?.bvi;
        if role == Role::Bvi && bvi.is_some_and(|bvi| bvi != interface) {
            return Err(BridgeError::HasBvi);
        }
        if let Mode::Bridge(old) = self.l2.mode(interface)
            && old.domain == index
        {
            self.let_go(interface, number)?;
        }
        self.l2.set_mode(interface, Mode::Bridge(port))?;
        self.modify(number, |domain| match role {
            Role::UnknownForward => domain.unknown = Some(interface),
            Role::Normal | Role::Bvi => {
                domain.members.push((interface, port));
                if role == Role::Bvi {
                    domain.bvi = Some(interface);
                }
            }
        })?;
        self.outdate(interface)?;
        if role == Role::Bvi {
            self.enter_bvi(interface, index)?;
        }
        Ok(())
    }

    /// Takes an interface out of its domain: it is routed again.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn leave(&self, interface: SwIfIndex) -> Result<(), BridgeError> {
        Ok(self.l2.set_mode(interface, Mode::L3)?)
    }

    /// An interface has left the domain where it was, by whatever way.
    pub(super) fn left(&self, interface: SwIfIndex, port: Port) {
        self.forget_storm(interface);
        let Some(number) = self.number_of(port.domain) else { return };
        self.forget_loops(number, interface);
        if let Err(e) = self.let_go(interface, number) {
            tracing::warn!(%interface, "it stays a member of bridge domain {number}: {e}");
        }
    }

    /// Forgets a member.
    fn let_go(&self, interface: SwIfIndex, number: u32) -> Result<(), BridgeError> {
        let bvi = self.domain(number)?.bvi == Some(interface);
        self.modify(number, |domain| {
            domain.members.retain(|(member, _)| *member != interface);
            if domain.bvi == Some(interface) {
                domain.bvi = None;
            }
            if domain.unknown == Some(interface) {
                domain.unknown = None;
            }
        })?;
        if bvi {
            self.remove_bvi(interface, self.index_of(number)?);
        }
        // What was learned of it is out of date.
        let mut sequences = self.sequences.borrow_mut();
        let sequence = sequences.entry(interface).or_default();
        *sequence = sequence.wrapping_add(1);
        drop(sequences);
        self.scan.want();
        self.ring();
        Ok(())
    }

    /// What was learned of an interface is out of date from now on.
    pub(crate) fn outdate(&self, interface: SwIfIndex) -> Result<(), BridgeError> {
        {
            let mut sequences = self.sequences.borrow_mut();
            let sequence = sequences.entry(interface).or_default();
            *sequence = sequence.wrapping_add(1);
        }
        self.renew_sequence(interface)
    }

    /// Tells packets the number under which stations of an interface are learned.
    pub(crate) fn renew_sequence(&self, interface: SwIfIndex) -> Result<(), BridgeError> {
        let Mode::Bridge(port) = self.l2.mode(interface) else { return Ok(()) };
        let of_domain = self.number_of(port.domain).and_then(|number| self.domain(number).ok());
        let high = of_domain.map_or(0, |domain| domain.sequence);
        let low = self.sequences.borrow().get(&interface).copied().unwrap_or(0);
        Ok(self.l2.set_sequence(interface, u16::from(high) << 8 | u16::from(low))?)
    }

    /// The members of a domain in the order they came, the BVI first.
    ///
    /// # Errors
    /// There is no such domain.
    pub fn members(&self, number: u32) -> Result<Vec<MemberInfo>, BridgeError> {
        let domain = self.domain(number)?;
        let sequences = self.sequences.borrow();
        let info = |(interface, port): (SwIfIndex, Port)| MemberInfo {
            interface,
            port,
            sequence: sequences.get(&interface).copied().unwrap_or(0),
        };
        let mut all: Vec<MemberInfo> = domain.members.into_iter().map(info).collect();
        all.sort_by_key(|member| member.port.role != Role::Bvi);
        Ok(all)
    }

    /// The BVI's addresses are stations of the domain.
    fn enter_bvi(&self, bvi: SwIfIndex, index: u16) -> Result<(), BridgeError> {
        let mut macs = vec![self.interfaces.data(bvi)?.mac()];
        macs.extend(self.interfaces.macs(bvi));
        let flags = Entry::STATIC | Entry::AGE_NOT | Entry::BVI;
        for mac in macs {
            self.put(Key::new(mac, index), Entry::new(bvi, flags, 0, 0))?;
            self.bvi_macs.borrow_mut().entry(bvi).or_default().push(mac);
        }
        Ok(())
    }

    fn remove_bvi(&self, bvi: SwIfIndex, index: u16) {
        let macs = self.bvi_macs.borrow_mut().remove(&bvi);
        for mac in macs.unwrap_or_default() {
            self.take_out(Key::new(mac, index));
        }
    }

    /// A BVI has other addresses.
    pub(super) fn follow_bvi(&self, interface: SwIfIndex) {
        let Mode::Bridge(Port { domain, role: Role::Bvi, .. }) = self.l2.mode(interface) else { return };
        self.remove_bvi(interface, domain);
        if let Err(e) = self.enter_bvi(interface, domain) {
            tracing::warn!(%interface, "its address is not known in its bridge domain: {e}");
        }
    }
}
