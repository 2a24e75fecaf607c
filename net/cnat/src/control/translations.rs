//! Translations: made, changed, deleted.

use std::collections::{BTreeMap, BTreeSet};
use std::fmt;
use std::net::IpAddr;
use std::sync::Arc;

use shoal_adj::Family;
use shoal_fib::FlowFields;
use shoal_interface::SwIfIndex;
use shoal_nat::maglev;

use super::endpoint::{AddressSource, Endpoint};
use super::{Cnat, CnatError};
use crate::config::{Config, Place};
use crate::shared::MOST_TRANSLATIONS;
use crate::show::Proto;
use crate::translation::{Backend, Flags, LbType, Translation, bits};

/// Back ends of a translation there may be.
pub const MOST_BACKENDS: usize = 4096;
const _: () = assert!(MOST_BACKENDS < maglev::NONE as usize);
/// TCP's and UDP's protocol numbers.
const PROTOCOLS: [u8; 2] = [6, 17];

/// Packets stay as they are and go the way to the back end. VPP's bit.
pub const NO_NAT: u8 = 2;

/// A back end as it is given.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PathSpec {
    /// The new source, if there is one.
    pub source: Endpoint,
    /// What becomes the destination.
    pub destination: Endpoint,
    /// [`NO_NAT`] or 0.
    pub flags: u8,
}

/// A translation as it is given.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// What packets are sent to.
    pub vip: Endpoint,
    /// TCP or UDP.
    pub protocol: u8,
    /// The address is one of this router or its host, to which other packets go on.
    pub is_real: bool,
    /// What is special about it.
    pub flags: Flags,
    /// How new connections are spread.
    pub lb: LbType,
    /// Which fields of packets choose the back end.
    pub fields: FlowFields,
    /// Back ends.
    pub paths: Vec<PathSpec>,
}

/// What packets are sent to, for messages.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Vip(pub IpAddr, pub u16, pub u8);

impl fmt::Display for Vip {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{};{} {}", self.0, self.1, Proto(self.2))
    }
}

/// What a translation has put into the configuration.
#[derive(Default)]
struct Built {
    place: Option<Place>,
    backends: Vec<Place>,
    is_pinned: bool,
    client: Option<IpAddr>,
}

/// All translations.
#[derive(Default)]
pub(super) struct Translations {
    specs: BTreeMap<u32, Spec>,
    built: BTreeMap<u32, Built>,
    serials: BTreeMap<u32, u32>,
    last_serial: u32,
    /// How many translations have a back end, and how many of them say its connections' source port.
    uses: BTreeMap<Place, (usize, usize)>,
    /// How many have a virtual address that has a route.
    clients: BTreeMap<IpAddr, usize>,
    /// Those of which that may have become another number than none, or none.
    pub(super) changed_clients: BTreeSet<IpAddr>,
}

impl Translations {
    pub(super) fn specs(&self) -> &BTreeMap<u32, Spec> {
        &self.specs
    }

    /// Addresses with a route to the node.
    pub(super) fn clients(&self) -> impl Iterator<Item = (IpAddr, usize)> {
        self.clients.iter().map(|(address, count)| (*address, *count))
    }

    /// Whether an address has one.
    pub(super) fn is_client(&self, address: IpAddr) -> bool {
        self.clients.contains_key(&address)
    }

    fn ids_that_follow(&self, interface: SwIfIndex) -> BTreeSet<u32> {
        let follows = |spec: &Spec| {
            let paths = spec.paths.iter().flat_map(|path| [path.source, path.destination]);
            paths.chain([spec.vip]).any(|endpoint| endpoint.follows(interface))
        };
        self.specs.iter().filter(|(_, spec)| follows(spec)).map(|(id, _)| *id).collect()
    }

    fn use_backend(&mut self, config: &mut Config, place: Place, is_pinned: bool, on: bool) {
        let (all, pinned) = self.uses.entry(place).or_default();
        let step = |count: &mut usize| *count = if on { *count + 1 } else { count.saturating_sub(1) };
        step(all);
        if is_pinned {
            step(pinned);
        }
        if *all == 0 {
            self.uses.remove(&place);
            config.backends.remove(&place);
        } else {
            config.backends.insert(place, *pinned > 0);
        }
    }

    fn use_client(&mut self, config: &mut Config, address: IpAddr, on: bool) {
        self.changed_clients.insert(address);
        let count = self.clients.entry(address).or_default();
        *count = if on { *count + 1 } else { count.saturating_sub(1) };
        let key = (address.is_ipv6(), bits(address));
        if *count == 0 {
            self.clients.remove(&address);
            config.clients.remove(&key);
        } else {
            config.clients.insert(key, ());
        }
    }

    /// Takes out what a translation has put into the configuration.
    fn take(&mut self, config: &mut Config, id: u32) {
        let Some(built) = self.built.remove(&id) else { return };
        for place in built.backends {
            self.use_backend(config, place, built.is_pinned, false);
        }
        if let Some(address) = built.client {
            self.use_client(config, address, false);
        }
        if let Some(place) = built.place.filter(|place| config.vips.get(place) == Some(&id)) {
            config.vips.remove(&place);
        }
        if let Some(translation) = config.translations.get_mut(id as usize) {
            *translation = None;
        }
    }

    /// Translations that packets do not see: their address is none, or another's.
    fn missing(&self) -> impl Iterator<Item = u32> {
        let all = if self.built.len() == self.specs.len() { None } else { Some(self.specs.keys()) };
        all.into_iter().flatten().filter(|id| !self.built.contains_key(id)).copied()
    }

    /// Puts in those that are not: what they are for may be free now.
    fn put_missing(&mut self, config: &mut Config, address_of: impl Fn(AddressSource) -> Option<IpAddr>) {
        if self.built.len() == self.specs.len() {
            return;
        }
        let missing: Vec<u32> = self.missing().collect();
        for id in missing {
            self.put(config, id, &address_of);
        }
    }

    /// Puts it in, as addresses are now.
    fn put(&mut self, config: &mut Config, id: u32, address_of: impl Fn(AddressSource) -> Option<IpAddr>) {
        let Some(spec) = self.specs.get(&id).cloned() else { return };
        let Some(vip) = address_of(spec.vip.from) else { return };
        let is_ip6 = vip.is_ipv6();
        let place = Place { is_ip6, address: bits(vip), port: spec.vip.port, protocol: spec.protocol };
        if config.vips.get(&place).is_some() {
            tracing::debug!("cnat: another translation has {vip} port {} already", spec.vip.port);
            return;
        }
        let backend = |path: &PathSpec| {
            let destination = address_of(path.destination.from).filter(|a| a.is_ipv6() == is_ip6)?;
            let source = address_of(path.source.from).filter(|a| a.is_ipv6() == is_ip6);
            Some(Backend {
                source: source.map(bits),
                source_port: path.source.port,
                destination: bits(destination),
                port: path.destination.port,
                no_nat: path.flags & NO_NAT != 0,
            })
        };
        let backends: Vec<Backend> = spec.paths.iter().filter_map(backend).collect();
        let serial = self.serials.get(&id).copied().unwrap_or_default();
        let lb = (spec.lb, config.limits.maglev_len);
        let translation = Translation::new((id, serial), is_ip6, (spec.flags, spec.fields), lb, backends);
        let is_pinned = translation.is_pinned();
        let place_of = |backend: &Backend| Place {
            is_ip6,
            address: backend.destination,
            port: backend.port,
            protocol: spec.protocol,
        };
        let backends: Vec<Place> = translation.backends.iter().map(place_of).collect();
        for place in &backends {
            self.use_backend(config, *place, is_pinned, true);
        }
        let client = (!spec.is_real && !spec.flags.has(Flags::NO_CLIENT)).then_some(vip);
        if let Some(address) = client {
            self.use_client(config, address, true);
        }
        config.vips.insert(place, id);
        if config.translations.len() <= id as usize {
            config.translations.resize(id as usize + 1, None);
        }
        if let Some(there) = config.translations.get_mut(id as usize) {
            *there = Some(Arc::new(translation));
        }
        self.built.insert(id, Built { place: Some(place), backends, is_pinned, client });
    }
}

impl Cnat {
    /// Makes a translation, or gives one of the same virtual address, port and protocol other back ends; its number. Sessions go on,
    /// also those of back ends that it has no more.
    ///
    /// # Errors
    /// It makes no sense, or there is no room.
    pub fn update(&self, spec: Spec) -> Result<u32, CnatError> {
        self.check(&spec)?;
        self.open()?;
        let there = self.id_of(&spec);
        let id = match there {
            Some(id) => id,
            None => self.free_id()?,
        };
        if there.is_none() {
            self.shared.translated.ensure(id as usize + 1);
            self.shared.translated.zero(id as usize);
            let translations = &mut self.state.borrow_mut().translations;
            translations.last_serial = translations.last_serial.wrapping_add(1).max(1);
            let serial = translations.last_serial;
            translations.serials.insert(id, serial);
        }
        let old = self.replace(id, Some(spec));
        if let Err(e) = self.follow_routes() {
            if old.is_none() {
                self.state.borrow_mut().translations.serials.remove(&id);
            }
            self.replace(id, old);
            self.follow_routes()?;
            return Err(e);
        }
        Ok(id)
    }

    /// The translation of the same virtual address, port and protocol.
    fn id_of(&self, spec: &Spec) -> Option<u32> {
        let vip = self.addresses().of(spec.vip.from);
        let state = self.state.borrow();
        if let Some(vip) = vip {
            let (is_ip6, address) = (vip.is_ipv6(), bits(vip));
            let place = Place { is_ip6, address, port: spec.vip.port, protocol: spec.protocol };
            if let Some(id) = state.config.vips.get(&place) {
                return Some(*id);
            }
        }
        // One that follows an interface without an address.
        let same = |of: &Spec| (of.vip, of.protocol) == (spec.vip, spec.protocol);
        let mut missing = state.translations.missing();
        missing.find(|id| state.translations.specs.get(id).is_some_and(same))
    }

    fn free_id(&self) -> Result<u32, CnatError> {
        let state = self.state.borrow();
        let specs = &state.translations.specs;
        let next = specs.last_key_value().map_or(0, |(last, _)| last + 1);
        let all = if specs.len() as u32 == next { next..next + 1 } else { 0..next + 1 };
        let free = all.into_iter().find(|id| !specs.contains_key(id));
        free.filter(|id| (*id as usize) < MOST_TRANSLATIONS).ok_or(CnatError::TooMany("65536 translations"))
    }

    /// Has packets see a translation, or none, from now on; the one that was there.
    fn replace(&self, id: u32, spec: Option<Spec>) -> Option<Spec> {
        let addresses = self.addresses();
        let state = &mut *self.state.borrow_mut();
        state.translations.take(&mut state.config, id);
        let old = match spec {
            Some(spec) => state.translations.specs.insert(id, spec),
            None => state.translations.specs.remove(&id),
        };
        state.translations.put(&mut state.config, id, |from| addresses.of(from));
        state.translations.put_missing(&mut state.config, |from| addresses.of(from));
        self.publish(state);
        old
    }

    /// Deletes a translation. Its sessions go on until they end.
    ///
    /// # Errors
    /// There is none of this number.
    pub fn del(&self, id: u32) -> Result<(), CnatError> {
        let nearest = {
            let state = self.state.borrow();
            let specs = state.translations.specs();
            if specs.contains_key(&id) { None } else { Some(nearest(specs.keys(), id)) }
        };
        if let Some(nearest) = nearest {
            return Err(CnatError::NoTranslation { id, nearest });
        }
        self.replace(id, None);
        self.state.borrow_mut().translations.serials.remove(&id);
        self.follow_routes()
    }

    /// An interface has another address now, or has gone.
    pub(super) fn follow_endpoints(&self, interface: SwIfIndex) {
        let ids = self.state.borrow().translations.ids_that_follow(interface);
        for id in ids {
            let spec = self.state.borrow().translations.specs.get(&id).cloned();
            self.replace(id, spec);
        }
    }

    /// All translations, by number.
    pub fn translations(&self) -> BTreeMap<u32, Spec> {
        self.state.borrow().translations.specs.clone()
    }

    /// Packets and bytes that went to back ends of a translation.
    pub fn counted(&self, id: u32) -> (u64, u64) {
        self.shared.translated.sum(id as usize)
    }

    fn check(&self, spec: &Spec) -> Result<(), CnatError> {
        let Spec { vip, protocol, is_real, flags, paths, .. } = spec;
        if !PROTOCOLS.contains(protocol) {
            return Err(CnatError::Protocol(*protocol));
        }
        if vip.port == 0 {
            return Err(CnatError::Port("vip"));
        }
        if flags.0 & !Flags::ALL != 0 {
            let (value, nearest) = (flags.0.into(), (flags.0 & Flags::ALL).into());
            return Err(CnatError::Value { what: "translation flags", value, nearest });
        }
        if paths.len() > MOST_BACKENDS {
            return Err(CnatError::TooMany("4096 back ends of a translation"));
        }
        let Some(family) = vip.family() else {
            return Err(CnatError::NotOneHost(std::net::Ipv4Addr::UNSPECIFIED.into()));
        };
        self.check_vip(vip, *is_real || flags.has(Flags::NO_CLIENT))?;
        for path in paths {
            self.check_path(vip, family, *protocol, path)?;
        }
        Ok(())
    }

    fn check_vip(&self, vip: &Endpoint, has_no_route: bool) -> Result<(), CnatError> {
        if let AddressSource::Interface(interface, _) = vip.from {
            self.interfaces.name(interface)?;
        }
        let Some(address) = self.addresses().of(vip.from) else { return Ok(()) };
        if !is_one_host(address) {
            return Err(CnatError::NotOneHost(address));
        }
        let owner = self.addresses().interface_of(address, &self.interfaces).filter(|_| !has_no_route);
        match owner {
            Some(interface) => {
                let interface = self.interfaces.name(interface).unwrap_or_default();
                Err(CnatError::Own { address, interface })
            }
            None => Ok(()),
        }
    }

    fn check_path(
        &self,
        vip: &Endpoint,
        family: Family,
        protocol: u8,
        path: &PathSpec,
    ) -> Result<(), CnatError> {
        let PathSpec { source, destination, flags } = path;
        if flags & !NO_NAT != 0 {
            return Err(CnatError::Value {
                what: "back end flags",
                value: (*flags).into(),
                nearest: (flags & NO_NAT).into(),
            });
        }
        if destination.port == 0 {
            return Err(CnatError::Port("back end"));
        }
        for endpoint in [source, destination] {
            if let AddressSource::Interface(interface, _) = endpoint.from {
                self.interfaces.name(interface)?;
            }
        }
        let is_host = |endpoint: &Endpoint| match endpoint.from {
            AddressSource::Given(address) => is_one_host(address),
            AddressSource::Interface(..) => true,
        };
        let fits = |endpoint: &Endpoint| endpoint.family() == Some(family) && is_host(endpoint);
        if !fits(destination) || (source.family().is_some() && !fits(source)) {
            let strange = if fits(destination) { source } else { destination };
            let address = match strange.from {
                AddressSource::Given(address) => address,
                AddressSource::Interface(..) => {
                    self.addresses().of(strange.from).unwrap_or(Endpoint::UNSPECIFIED)
                }
            };
            let family = if family == Family::Ip6 { "IPv6" } else { "IPv4" };
            let vip = super::endpoint::Shown(*vip, &self.interfaces).to_string();
            return Err(CnatError::Family { address, vip, family });
        }
        match self.addresses().of(vip.from) {
            Some(address) if destination == vip => Err(CnatError::Itself(Vip(address, vip.port, protocol))),
            _ => Ok(()),
        }
    }
}

/// Whether an address is one host's.
pub(super) fn is_one_host(address: IpAddr) -> bool {
    let is_broadcast = matches!(address, IpAddr::V4(address) if address.is_broadcast());
    !address.is_unspecified() && !address.is_multicast() && !is_broadcast
}

fn nearest<'a>(ids: impl Iterator<Item = &'a u32>, id: u32) -> Option<u32> {
    ids.copied().min_by_key(|there| there.abs_diff(id))
}
