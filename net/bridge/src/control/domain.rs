//! Domains: created, changed, deleted.

use std::collections::BTreeMap;
use std::net::IpAddr;

use shoal_interface::SwIfIndex;
use shoal_l2::{Bitmap, Input, Port, Role};
use shoal_wire::MacAddress;

use super::{Bridges, Domain, LoopState};
use crate::error::BridgeError;
use crate::table::{DomainData, Member};

/// Largest number of a domain.
const MOST_NUMBER: u32 = (1 << 24) - 1;
/// Most bytes of a tag.
const MOST_TAG: usize = 63;

/// What can be switched on and off in a domain.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Switch {
    /// Learn where stations are.
    Learn,
    /// Forward frames where their stations are.
    Forward,
    /// Flood what is for unknown stations.
    UnknownFlood,
    /// Flood what is for groups.
    Flood,
    /// Answer requests for stations that are known by address.
    ArpTerm,
    /// Forward requests to one interface.
    ArpForward,
}

impl Switch {
    /// All, in the order of the API's bits.
    pub const ALL: [Switch; 6] = [
        Switch::Learn,
        Switch::Forward,
        Switch::Flood,
        Switch::UnknownFlood,
        Switch::ArpTerm,
        Switch::ArpForward,
    ];

    /// Its feature.
    pub fn feature(self) -> Input {
        match self {
            Switch::Learn => Input::Learn,
            Switch::Forward => Input::Forward,
            Switch::UnknownFlood => Input::UnknownFlood,
            Switch::Flood => Input::Flood,
            Switch::ArpTerm => Input::ArpTerm,
            Switch::ArpForward => Input::ArpForward,
        }
    }

    /// Its bit in the API.
    pub fn bit(self) -> u32 {
        match self {
            Switch::Learn => 1,
            Switch::Forward => 2,
            Switch::Flood => 4,
            Switch::UnknownFlood => 8,
            Switch::ArpTerm => 16,
            Switch::ArpForward => 32,
        }
    }

    /// The word of commands that create a domain.
    pub fn word(self) -> &'static str {
        match self {
            Switch::Learn => "learn",
            Switch::Forward => "forward",
            Switch::UnknownFlood => "uu-flood",
            Switch::Flood => "flood",
            Switch::ArpTerm => "arp-term",
            Switch::ArpForward => "arp-ufwd",
        }
    }

    /// Whether it is on by default.
    pub fn is_usual(self) -> bool {
        !matches!(self, Switch::ArpTerm | Switch::ArpForward)
    }
}

/// What a domain is like.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Settings {
    on: u32,
    /// Minutes after which stations are forgotten; 0: never.
    pub mac_age: u8,
    /// The operator's tag.
    pub tag: String,
}

impl Default for Settings {
    fn default() -> Self {
        let usual = Switch::ALL.into_iter().filter(|switch| switch.is_usual());
        Settings { on: usual.fold(0, |on, switch| on | switch.bit()), mac_age: 0, tag: String::new() }
    }
}

impl Settings {
    /// Whether something is on.
    pub fn has(&self, switch: Switch) -> bool {
        self.on & switch.bit() != 0
    }

    /// Switches something on or off.
    pub fn set(&mut self, switch: Switch, on: bool) {
        self.on = if on { self.on | switch.bit() } else { self.on & !switch.bit() };
    }

    /// What is on, as the bits of the API.
    pub fn bits(&self) -> u32 {
        self.on
    }
}

impl Domain {
    /// What the features of members are cut down to.
    pub(crate) fn features(&self) -> Bitmap {
        let switched = Switch::ALL.into_iter().fold(Bitmap::ALL, |all, switch| {
            if self.settings.has(switch) { all } else { all.without(switch.feature()) }
        });
        if self.unknown.is_some() {
            return switched;
        }
        switched.without(Input::UnknownForward).without(Input::ArpForward)
    }

    /// What packets are to read of it.
    fn data(&self) -> DomainData {
        let flooded = |role: Role| {
            let open = |interface| !self.loops.blocked.contains_key(interface);
            let all = self.members.iter().rev();
            let all = all.filter(move |(interface, port)| port.role == role && open(interface));
            all.map(move |(interface, port)| Member {
                interface: *interface,
                group: port.group,
                is_bvi: role == Role::Bvi,
            })
        };
        DomainData {
            members: flooded(Role::Normal).chain(flooded(Role::Bvi)).collect(),
            unknown: self.unknown,
            stations: self.stations.iter().map(|(address, mac)| (*address, *mac)).collect(),
        }
    }
}

impl Bridges {
    /// Creates a domain.
    ///
    /// # Errors
    /// There is one of this number, the number or the tag is too long, or there are too many.
    pub fn create(&self, number: u32, settings: Settings) -> Result<(), BridgeError> {
        match number {
            0 => return Err(BridgeError::Default),
            _ if number > MOST_NUMBER => return Err(BridgeError::TooLarge(number)),
            _ if self.domains.borrow().contains_key(&number) => return Err(BridgeError::Exists(number)),
            _ if settings.tag.len() > MOST_TAG => return Err(BridgeError::LongTag(settings.tag.len())),
            _ => {}
        }
        let index = self.new_index().ok_or(BridgeError::Full)?;
        let domain = Domain {
            index,
            settings,
            learn_limit: None,
            sequence: 0,
            members: Vec::new(),
            bvi: None,
            unknown: None,
            stations: BTreeMap::new(),
            protection: None,
            loops: LoopState::default(),
        };
        self.table.set_limit(index, self.default_limit.get());
        self.table.set_move_limit(index, 0);
        self.domains.borrow_mut().insert(number, domain);
        self.publish(number)
    }

    /// A number that no domain has.
    pub fn free_number(&self) -> u32 {
        let domains = self.domains.borrow();
        (1..=MOST_NUMBER).find(|number| !domains.contains_key(number)).unwrap_or(MOST_NUMBER)
    }

    /// Deletes a domain, and what it has learned.
    ///
    /// # Errors
    /// There is none of this number, it is the one that drops, or it has members.
    pub fn delete(&self, number: u32) -> Result<(), BridgeError> {
        if number == 0 {
            return Err(BridgeError::Default);
        }
        let domain = self.domain(number)?;
        if !domain.members.is_empty() || domain.unknown.is_some() {
            return Err(BridgeError::InUse);
        }
        self.domains.borrow_mut().remove(&number);
        self.table.set_domain(domain.index, DomainData::default());
        self.l2.set_domain(domain.index, Bitmap::default())?;
        // The index is free when nothing bears it.
        self.scan.retire(domain.index);
        self.ring();
        Ok(())
    }

    /// An index bears nothing any more.
    pub(crate) fn give_back(&self, index: u16) {
        self.free.borrow_mut().insert(index);
    }

    pub(crate) fn domain(&self, number: u32) -> Result<Domain, BridgeError> {
        self.domains.borrow().get(&number).cloned().ok_or(BridgeError::NoDomain(number))
    }

    /// Changes a domain and tells packets of it.
    pub(crate) fn modify(&self, number: u32, change: impl FnOnce(&mut Domain)) -> Result<(), BridgeError> {
        if number == 0 {
            return Err(BridgeError::Default);
        }
        {
            let mut domains = self.domains.borrow_mut();
            change(domains.get_mut(&number).ok_or(BridgeError::NoDomain(number))?);
        }
        self.publish(number)
    }

    pub(super) fn publish(&self, number: u32) -> Result<(), BridgeError> {
        let domain = self.domain(number)?;
        self.table.set_domain(domain.index, domain.data());
        self.table.set_age(domain.index, domain.settings.mac_age);
        self.l2.set_domain(domain.index, domain.features())?;
        self.ring();
        Ok(())
    }

    /// What a domain is like.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn settings(&self, number: u32) -> Result<Settings, BridgeError> {
        Ok(self.domain(number)?.settings)
    }

    /// The features its members are cut down to.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn features(&self, number: u32) -> Result<Bitmap, BridgeError> {
        Ok(self.domain(number)?.features())
    }

    /// Switches something in a domain on or off.
    ///
    /// # Errors
    /// There is none of this number, or it is the one that drops.
    pub fn switch(&self, number: u32, switch: Switch, on: bool) -> Result<(), BridgeError> {
        self.modify(number, |domain| domain.settings.set(switch, on))
    }

    /// Says after how many minutes stations are forgotten; 0: never.
    ///
    /// # Errors
    /// As [`Bridges::switch`].
    pub fn set_age(&self, number: u32, minutes: u8) -> Result<(), BridgeError> {
        self.modify(number, |domain| domain.settings.mac_age = minutes)
    }

    /// Says how many stations of a domain may be learned; `None`: as many as the default is, also when that changes.
    ///
    /// # Errors
    /// As [`Bridges::switch`].
    pub fn set_learn_limit(&self, number: u32, limit: Option<u32>) -> Result<(), BridgeError> {
        self.modify(number, |domain| domain.learn_limit = limit)?;
        self.table.set_limit(self.index_of(number)?, limit.unwrap_or(self.default_limit.get()));
        Ok(())
    }

    /// Says how many stations may be learned of each domain that has no limit of its own.
    pub fn set_default_learn_limit(&self, limit: u32) {
        self.default_limit.set(limit);
        for domain in self.domains.borrow().values().filter(|domain| domain.learn_limit.is_none()) {
            self.table.set_limit(domain.index, limit);
        }
    }

    /// How many.
    pub fn default_learn_limit(&self) -> u32 {
        self.default_limit.get()
    }

    /// How many may be learned of a domain, if it has a limit of its own.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn learn_limit(&self, number: u32) -> Result<Option<u32>, BridgeError> {
        Ok(self.domain(number)?.learn_limit)
    }

    /// Which station has an address in a domain, for those who ask.
    ///
    /// # Errors
    /// There is no such domain, or it is the one that drops.
    pub fn bind(&self, number: u32, address: IpAddr, mac: MacAddress) -> Result<(), BridgeError> {
        self.modify(number, |domain| {
            domain.stations.insert(address, mac);
        })
    }

    /// It does not.
    ///
    /// # Errors
    /// As [`Bridges::bind`], or nothing or another station has the address.
    pub fn unbind(&self, number: u32, address: IpAddr, mac: MacAddress) -> Result<(), BridgeError> {
        if self.domain(number)?.stations.get(&address) != Some(&mac) {
            return Err(BridgeError::NoBinding(address, mac));
        }
        self.modify(number, |domain| {
            domain.stations.remove(&address);
        })
    }

    /// No station has any address in a domain.
    ///
    /// # Errors
    /// As [`Bridges::bind`].
    pub fn unbind_all(&self, number: u32) -> Result<(), BridgeError> {
        self.modify(number, |domain| domain.stations.clear())
    }

    /// All stations with an address.
    ///
    /// # Errors
    /// There is no such domain.
    pub fn bindings(&self, number: u32) -> Result<Vec<(IpAddr, MacAddress)>, BridgeError> {
        Ok(self.domain(number)?.stations.into_iter().collect())
    }

    /// Where a domain's packets are routed, and which port gets packets for unknown stations.
    ///
    /// # Errors
    /// There is no such domain.
    pub fn special(&self, number: u32) -> Result<[Option<SwIfIndex>; 2], BridgeError> {
        let domain = self.domain(number)?;
        Ok([domain.bvi, domain.unknown])
    }

    /// A domain's index, and how often it was flushed.
    ///
    /// # Errors
    /// There is no such domain.
    pub fn counts(&self, number: u32) -> Result<(u16, u8), BridgeError> {
        let domain = self.domain(number)?;
        Ok((domain.index, domain.sequence))
    }

    /// An ordinary place of a domain, for tests and commands.
    pub(crate) fn port(index: u16, group: u8, role: Role) -> Port {
        Port { domain: index, group, role }
    }
}
