//! Stations: entered by the operator, listed, flushed.

use shoal_interface::SwIfIndex;
use shoal_l2::Mode;
use shoal_wire::MacAddress;

use super::Bridges;
use crate::entry::{Entry, Key};
use crate::error::BridgeError;
use crate::fib::Refused;

/// How an operator enters a station.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Provision {
    /// It is behind an interface, and may move.
    Movable,
    /// It is behind an interface and nowhere else.
    Static,
    /// It is the address of the interface where the domain's packets are routed.
    Bvi,
    /// Frames from and to it are dropped.
    Filter,
}

impl Provision {
    fn flags(self) -> u8 {
        Entry::AGE_NOT
            | match self {
                Provision::Movable => 0,
                Provision::Static => Entry::STATIC,
                Provision::Bvi => Entry::STATIC | Entry::BVI,
                Provision::Filter => Entry::STATIC | Entry::FILTER,
            }
    }
}

/// A station as `show l2fib` prints it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct MacInfo {
    /// Its address.
    pub mac: MacAddress,
    /// The index of its domain.
    pub domain: u16,
    /// What is known.
    pub entry: Entry,
}

impl Bridges {
    /// Enters a station, or says otherwise where it is.
    ///
    /// # Errors
    /// There is no such domain, the address is none of a station, or there is no room.
    pub fn provision(
        &self,
        mac: MacAddress,
        number: u32,
        interface: SwIfIndex,
        how: Provision,
    ) -> Result<(), BridgeError> {
        let index = self.index_of(number)?;
        if number == 0 {
            return Err(BridgeError::NoDomain(0));
        }
        if mac.is_multicast() || mac.is_zero() {
            return Err(BridgeError::NotStation(mac));
        }
        let interface = if how == Provision::Filter { SwIfIndex::NONE } else { interface };
        if how != Provision::Filter {
            self.interfaces.name(interface)?;
        }
        self.put(Key::new(mac, index), Entry::new(interface, how.flags(), 0, 0))
    }

    /// Puts an entry into the table, instead of one that is there.
    pub(super) fn put(&self, key: Key, entry: Entry) -> Result<(), BridgeError> {
        let macs = self.table.macs();
        // A packet may teach the station at this moment.
        for _ in 0..1_000 {
            self.take_out(key);
            match macs.enter(key, entry) {
                Ok(()) => return Ok(()),
                Err(Refused::Full) => return Err(BridgeError::NoRoom(key.mac())),
                Err(Refused::Busy | Refused::Known) => std::thread::yield_now(),
            }
        }
        Err(BridgeError::NoRoom(key.mac()))
    }

    /// Takes an entry out of the table.
    pub(super) fn take_out(&self, key: Key) -> Option<Entry> {
        let entry = self.table.macs().remove(key)?;
        if entry.is_learned() {
            self.table.unlearned(key.domain());
        }
        Some(entry)
    }

    /// Forgets a station.
    ///
    /// # Errors
    /// There is no such domain or station.
    pub fn forget(&self, mac: MacAddress, number: u32) -> Result<(), BridgeError> {
        let index = self.index_of(number)?;
        self.take_out(Key::new(mac, index)).map(drop).ok_or(BridgeError::NoStation)
    }

    /// A station, if it is known.
    pub fn station(&self, mac: MacAddress, number: u32) -> Option<MacInfo> {
        let domain = self.index_of(number).ok()?;
        let macs = self.table.macs();
        let entry = macs.find(&macs.search(Key::new(mac, domain)))?.entry;
        Some(MacInfo { mac, domain, entry })
    }

    /// The stations of a part of the table; parts are those of [`crate::MacTable::groups`].
    pub fn stations_of(&self, group: usize) -> Vec<MacInfo> {
        let all = self.table.macs().entries(group).into_iter();
        all.map(|(key, entry)| MacInfo { mac: key.mac(), domain: key.domain(), entry }).collect()
    }

    /// Whether what was learned is still true: nothing was flushed since, and the interface is where it was.
    pub fn is_current(&self, info: &MacInfo) -> bool {
        if !info.entry.is_learned() {
            return true;
        }
        let Mode::Bridge(port) = self.l2.mode(info.entry.interface()) else { return false };
        let high = self.number_of(info.domain).and_then(|number| self.domain(number).ok());
        let high = high.map_or(0, |domain| domain.sequence);
        let low = self.sequences.borrow().get(&info.entry.interface()).copied().unwrap_or(0);
        port.domain == info.domain && info.entry.sequence() == u16::from(high) << 8 | u16::from(low)
    }

    /// Forgets all stations, those that an operator entered too.
    pub fn clear_macs(&self) {
        for group in self.table.macs().groups() {
            for (key, _) in self.table.macs().entries(group) {
                self.take_out(key);
            }
        }
    }

    /// What was learned of an interface is not true any more.
    pub fn flush_interface(&self, interface: SwIfIndex) {
        if !matches!(self.l2.mode(interface), Mode::Bridge(_)) {
            return;
        }
        if let Err(e) = self.outdate(interface) {
            tracing::warn!(%interface, "stations stay: {e}");
        }
        self.scan.want();
        self.ring();
    }

    /// What was learned in a domain is not true any more.
    ///
    /// # Errors
    /// There is no such domain.
    pub fn flush_domain(&self, number: u32) -> Result<(), BridgeError> {
        self.modify(number, |domain| domain.sequence = domain.sequence.wrapping_add(1))?;
        for (interface, _) in self.domain(number)?.members {
            self.renew_sequence(interface)?;
        }
        self.scan.want();
        self.ring();
        Ok(())
    }

    /// What was learned anywhere is not true any more.
    pub fn flush_all(&self) {
        for number in self.numbers() {
            if let Err(e) = self.flush_domain(number) {
                tracing::warn!(number, "stations stay: {e}");
            }
        }
    }
}
