//! Static mappings.

use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;

use super::{Nat44, NatError};
use shoal_nat44::mapping::{External, ExternalKey, Local, Mapping, TwiceNat};

/// A mapping as it is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Spec {
    /// The inside address; of an identity mapping the address itself, or none if it is an interface's.
    pub local: Ipv4Addr,
    /// Its port.
    pub local_port: u16,
    /// The outside address.
    pub external: External,
    /// Its port.
    pub external_port: u16,
    /// The protocol; 0 for whole addresses.
    pub protocol: u8,
    /// The VRF of the host; `None`: that of hosts by default.
    pub vrf: Option<u32>,
    /// Whether the outside host is hidden.
    pub twice: TwiceNat,
    /// Whether sessions begin outside only.
    pub out2in_only: bool,
    /// Whether addresses stay what they are.
    pub identity: bool,
    /// The address that stands for outside hosts, if it is a certain one.
    pub pool_address: Option<Ipv4Addr>,
    /// What an operator calls it.
    pub tag: String,
}

impl Spec {
    /// Whether it is one of whole addresses.
    pub fn is_address_only(&self) -> bool {
        self.protocol == 0
    }

    fn same(&self, other: &Spec) -> bool {
        self.external == other.external
            && self.external_port == other.external_port
            && self.protocol == other.protocol
            && self.identity == other.identity
    }
}

/// A service with several hosts, as it is asked for.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Balanced {
    /// The outside address.
    pub external: Ipv4Addr,
    /// Its port.
    pub port: u16,
    /// The protocol.
    pub protocol: u8,
    /// The hosts: address, port, probability, VRF.
    pub locals: Vec<(Ipv4Addr, u16, u8, u32)>,
    /// Whether the outside host is hidden.
    pub twice: TwiceNat,
    /// Whether sessions begin outside only.
    pub out2in_only: bool,
    /// Seconds that a client keeps its host.
    pub affinity: u32,
    /// What an operator calls it.
    pub tag: String,
}

/// What was asked for, and what packets see of it.
#[derive(Clone, Debug)]
pub(super) enum Static {
    /// Of one host; not seen while its interface has no address.
    One(Spec, Option<ExternalKey>),
    /// Of several.
    Many(Balanced),
}

impl Nat44 {
    fn vrf_of(&self, spec: &Spec) -> u32 {
        let state = self.state.borrow();
        let inside = state.on.as_ref().map_or(0, |on| on.inside_vrf);
        spec.vrf.unwrap_or(inside)
    }

    fn check(&self, spec: &Spec) -> Result<(), NatError> {
        self.on()?;
        if let External::Interface(interface) = spec.external {
            self.interfaces.name(interface)?;
        }
        if spec.twice != TwiceNat::No && (spec.is_address_only() || spec.identity) {
            return Err(NatError::Unsupported("twice-nat needs a mapping of a port"));
        }
        if spec.out2in_only && spec.identity {
            return Err(NatError::Unsupported("an identity mapping is never out2in-only"));
        }
        if !spec.is_address_only() && (spec.external_port == 0 || spec.local_port == 0) {
            return Err(NatError::Unsupported("a mapping of a port has no port 0"));
        }
        Ok(())
    }

    /// The outside address that a mapping has now.
    fn address_of(&self, external: External) -> Option<Ipv4Addr> {
        match external {
            External::Address(address) => Some(Ipv4Addr::from_bits(address)),
            External::Interface(interface) => self.ip4.primary(interface),
        }
    }

    fn make(&self, spec: &Spec, address: Ipv4Addr) -> Result<Mapping, NatError> {
        let vrf = self.vrf_of(spec);
        let table = self.fib.index_of(Family::Ip4, vrf)?.0;
        let local = if spec.identity { address } else { spec.local };
        let (port, external_port) =
            if spec.is_address_only() { (0, 0) } else { (spec.local_port, spec.external_port) };
        let local = Local { address: local.to_bits(), port, probability: 0, vrf, table };
        let interface = match spec.external {
            External::Interface(interface) => Some(interface),
            External::Address(_) => None,
        };
        Ok(Mapping {
            external: (address.to_bits(), external_port),
            protocol: spec.protocol,
            locals: vec![local],
            twice: spec.twice,
            out2in_only: spec.out2in_only,
            identity: spec.identity,
            balanced: None,
            pool_address: spec.pool_address.map(Ipv4Addr::to_bits),
            interface,
            tag: spec.tag.clone(),
        })
    }

    /// Adds a mapping.
    ///
    /// # Errors
    /// NAT is off, there is one, or the combination makes no sense.
    pub fn add_mapping(&self, spec: Spec) -> Result<(), NatError> {
        self.check(&spec)?;
        let vrf = self.vrf_of(&spec);
        let exists = |one: &Static| {
            matches!(one, Static::One(other, _)
                if other.same(&spec) && (!spec.identity || self.vrf_of(other) == vrf))
        };
        if self.state.borrow().statics.iter().any(exists) {
            return Err(NatError::MappingExists);
        }
        self.held.hold(vrf)?;
        let key = match self.address_of(spec.external).map(|address| self.see(&spec, address)) {
            Some(Err(e)) => {
                self.held.release(vrf);
                return Err(e);
            }
            Some(Ok(key)) => Some(key),
            None => None,
        };
        self.state.borrow_mut().statics.push(Static::One(spec, key));
        self.publish();
        Ok(())
    }

    /// Has packets see a mapping.
    fn see(&self, spec: &Spec, address: Ipv4Addr) -> Result<ExternalKey, NatError> {
        let mut mapping = self.make(spec, address)?;
        let key = (mapping.external.0, mapping.external.1, mapping.protocol);
        let mut state = self.state.borrow_mut();
        let mappings = &mut state.config.mappings;
        if let Some(there) = mappings.external(key.0, key.1, key.2).filter(|_| mappings.has_external(&key)) {
            // An identity mapping may be there for several tables.
            if !(spec.identity && there.identity) {
                return Err(NatError::MappingExists);
            }
            mapping.locals.extend(there.locals.iter().copied());
            mappings.remove(key);
        } else if !spec.out2in_only
            && !spec.identity
            && mapping.locals.iter().any(|l| mappings.has_local(&(l.address, l.port, l.table, spec.protocol)))
        {
            return Err(NatError::MappingExists);
        }
        mappings.insert(mapping);
        Ok(key)
    }

    /// Packets see a mapping no more.
    fn hide(&self, spec: &Spec, key: ExternalKey) {
        let vrf = self.vrf_of(spec);
        let mut state = self.state.borrow_mut();
        let Some(old) = state.config.mappings.remove(key) else { return };
        if spec.identity && old.locals.len() > 1 {
            let mut left = Mapping::clone(&old);
            left.locals.retain(|local| local.vrf != vrf);
            state.config.mappings.insert(left);
        }
        drop(state);
        self.end_of_mapping(&old);
    }

    /// Takes a mapping away; its sessions end.
    ///
    /// # Errors
    /// NAT is off, or there is none.
    pub fn del_mapping(&self, spec: &Spec) -> Result<(), NatError> {
        self.on()?;
        let vrf = self.vrf_of(spec);
        let is_it = |one: &Static| {
            matches!(one, Static::One(other, _) if other.same(spec)
                && (spec.identity || other.local == spec.local && other.local_port == spec.local_port)
                && (!spec.identity || self.vrf_of(other) == vrf))
        };
        let at = self.state.borrow().statics.iter().position(is_it);
        let at = at.ok_or(NatError::NoMapping)?;
        let gone = self.state.borrow_mut().statics.remove(at);
        if let Static::One(spec, key) = gone {
            if let Some(key) = key {
                self.hide(&spec, key);
            }
            self.held.release(self.vrf_of(&spec));
        }
        self.publish();
        Ok(())
    }

    /// An interface's address is this now.
    pub(super) fn resolve_mappings(&self, interface: SwIfIndex, primary: Option<Ipv4Addr>) {
        let all: Vec<(usize, Spec, Option<ExternalKey>)> = {
            let state = self.state.borrow();
            let of_it = |(at, one): (usize, &Static)| match one {
                Static::One(spec, key) if spec.external == External::Interface(interface) => {
                    Some((at, spec.clone(), *key))
                }
                _ => None,
            };
            state.statics.iter().enumerate().filter_map(of_it).collect()
        };
        for (at, spec, key) in all {
            if key.map(|key| key.0) == primary.map(Ipv4Addr::to_bits) {
                continue;
            }
            if let Some(key) = key {
                self.hide(&spec, key);
            }
            let seen = primary.map(|address| self.see(&spec, address));
            let seen = seen.and_then(|seen| {
                seen.inspect_err(
                    |e| tracing::warn!(%interface, "a mapping with its address is not used: {e}"),
                )
                .ok()
            });
            if let Some(Static::One(_, key)) = self.state.borrow_mut().statics.get_mut(at) {
                *key = seen;
            }
        }
    }

    pub(super) fn forget_mappings_of(&self, interface: SwIfIndex) {
        let of_it = |one: &Static| match one {
            Static::One(spec, _) if spec.external == External::Interface(interface) => Some(spec.clone()),
            _ => None,
        };
        let gone: Vec<Spec> = self.state.borrow().statics.iter().filter_map(of_it).collect();
        for spec in gone {
            if let Err(e) = self.del_mapping(&spec) {
                tracing::warn!(%interface, "a mapping with its address stays: {e}");
            }
        }
    }

    /// Mappings of one host, with the address that those of interfaces have now.
    pub fn mappings(&self) -> Vec<(Spec, Option<Ipv4Addr>)> {
        let state = self.state.borrow();
        let shown = |one: &Static| match one {
            Static::One(spec, key) => Some((spec.clone(), key.map(|key| Ipv4Addr::from_bits(key.0)))),
            Static::Many(_) => None,
        };
        state.statics.iter().filter_map(shown).collect()
    }

    /// Services with several hosts.
    pub fn balanced(&self) -> Vec<Balanced> {
        let state = self.state.borrow();
        let shown = |one: &Static| if let Static::Many(many) = one { Some(many.clone()) } else { None };
        state.statics.iter().filter_map(shown).collect()
    }

    /// Adds a service with several hosts.
    ///
    /// # Errors
    /// NAT is off, there is a mapping, there are fewer than two hosts, or its address is no shared one.
    pub fn add_balanced(&self, asked: Balanced) -> Result<(), NatError> {
        self.on()?;
        if asked.locals.len() < 2 {
            return Err(NatError::TooFew);
        }
        if asked.port == 0 || asked.protocol == 0 || asked.locals.iter().any(|(_, port, ..)| *port == 0) {
            return Err(NatError::Unsupported("a balanced service has a protocol and ports"));
        }
        let key = (asked.external.to_bits(), asked.port, asked.protocol);
        let state = self.state.borrow();
        if state.config.mappings.has_external(&key) {
            return Err(NatError::MappingExists);
        }
        let is_shared = state.pool.has(asked.external);
        drop(state);
        if !asked.out2in_only && !is_shared {
            return Err(NatError::NoPoolAddress(asked.external));
        }
        let mapping = self.make_balanced(&asked)?;
        let mut state = self.state.borrow_mut();
        state.config.mappings.insert(mapping);
        state.statics.push(Static::Many(asked));
        drop(state);
        self.publish();
        Ok(())
    }

    fn make_balanced(&self, asked: &Balanced) -> Result<Mapping, NatError> {
        let mut locals = Vec::with_capacity(asked.locals.len());
        for &(address, port, probability, vrf) in &asked.locals {
            let table = self.fib.want_table(Family::Ip4, vrf, None)?.0;
            locals.push(Local { address: address.to_bits(), port, probability, vrf, table });
        }
        Ok(Mapping {
            external: (asked.external.to_bits(), asked.port),
            protocol: asked.protocol,
            locals,
            twice: asked.twice,
            out2in_only: asked.out2in_only,
            identity: false,
            balanced: Some(asked.affinity),
            pool_address: None,
            interface: None,
            tag: asked.tag.clone(),
        })
    }

    fn balanced_at(&self, (address, port, protocol): (Ipv4Addr, u16, u8)) -> Option<(usize, Balanced)> {
        let state = self.state.borrow();
        let is_it = |(at, one): (usize, &Static)| match one {
            Static::Many(many) if (many.external, many.port, many.protocol) == (address, port, protocol) => {
                Some((at, many.clone()))
            }
            _ => None,
        };
        state.statics.iter().enumerate().find_map(is_it)
    }

    /// Takes a service away; its sessions end.
    ///
    /// # Errors
    /// NAT is off, or there is none.
    pub fn del_balanced(&self, service: (Ipv4Addr, u16, u8)) -> Result<(), NatError> {
        self.on()?;
        let (at, _) = self.balanced_at(service).ok_or(NatError::NoMapping)?;
        let mut state = self.state.borrow_mut();
        state.statics.remove(at);
        let (address, port, protocol) = service;
        let old = state.config.mappings.remove((address.to_bits(), port, protocol));
        drop(state);
        self.publish();
        if let Some(old) = old {
            self.end_of_mapping(&old);
        }
        Ok(())
    }

    /// Adds a host to a service, or takes one away, whose sessions end.
    ///
    /// # Errors
    /// NAT is off, there is no such service or host, it is there already, or fewer than two would remain.
    pub fn set_back_end(
        &self,
        service: (Ipv4Addr, u16, u8),
        host: (Ipv4Addr, u16, u8, u32),
        on: bool,
    ) -> Result<(), NatError> {
        self.on()?;
        let (at, mut many) = self.balanced_at(service).ok_or(NatError::NoBackEnd)?;
        let is_it = |one: &(Ipv4Addr, u16, u8, u32)| (one.0, one.1, one.3) == (host.0, host.1, host.3);
        let there = many.locals.iter().position(is_it);
        match (on, there) {
            (true, Some(_)) => return Err(NatError::BackEndExists),
            (false, None) => return Err(NatError::NoBackEnd),
            (false, Some(_)) if many.locals.len() <= 2 => return Err(NatError::MustRemain),
            (true, None) => many.locals.push(host),
            (false, Some(nth)) => _ = many.locals.remove(nth),
        }
        let new = self.make_balanced(&many)?;
        let mut state = self.state.borrow_mut();
        let (address, port, protocol) = service;
        let old = state.config.mappings.remove((address.to_bits(), port, protocol));
        state.config.mappings.insert(new);
        if let Some(one) = state.statics.get_mut(at) {
            *one = Static::Many(many);
        }
        drop(state);
        self.publish();
        if let (false, Some(old)) = (on, old) {
            let mut gone = Mapping::clone(&old);
            gone.locals.retain(|local| local.address == host.0.to_bits() && local.port == host.1);
            self.end_of_mapping(&gone);
        }
        Ok(())
    }
}
