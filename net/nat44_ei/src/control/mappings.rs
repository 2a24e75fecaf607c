//! Static mappings.

use std::net::Ipv4Addr;

use shoal_adj::Family;
use shoal_interface::SwIfIndex;
use shoal_nat44::mapping::{External, ExternalKey, Local, Mapping, TwiceNat};

use super::{Nat44Ei, NatError};
use crate::config::Mode;
use crate::sessions::Session;

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
    /// Whether addresses stay what they are.
    pub identity: bool,
    /// What an operator calls it.
    pub tag: String,
}

impl Spec {
    /// Whether it is one of whole addresses.
    pub fn is_address_only(&self) -> bool {
        self.protocol == 0
    }
}

/// What was asked for, and what packets see of it.
#[derive(Clone, Debug)]
pub(super) struct Static {
    spec: Spec,
    /// Not seen while its interface has no address.
    pub external: Option<ExternalKey>,
}

impl Static {
    /// Whether the router answers for its address.
    pub fn answers(&self) -> bool {
        !self.spec.identity && matches!(self.spec.external, External::Address(_))
    }
}

impl Nat44Ei {
    fn vrf_of(&self, spec: &Spec) -> u32 {
        spec.vrf.unwrap_or_else(|| self.enabled().map_or(0, |on| on.inside_vrf))
    }

    /// Whether one is what another asks for. An identity mapping may be there for several VRFs.
    fn same(&self, one: &Spec, other: &Spec) -> bool {
        one.external == other.external
            && (one.external_port, one.protocol) == (other.external_port, other.protocol)
            && one.identity == other.identity
            && (!one.identity || self.vrf_of(one) == self.vrf_of(other))
    }

    fn check(&self, spec: &Spec) -> Result<(), NatError> {
        self.on()?;
        if let External::Interface(interface) = spec.external {
            self.interfaces.name(interface)?;
        }
        if !spec.is_address_only() && (spec.external_port == 0 || spec.local_port == 0) {
            return Err(NatError::Unsupported("a mapping of a port has no port 0"));
        }
        Ok(())
    }

    /// Whether hosts share the address of a mapping of a port. One of a whole address needs that not, and without shared addresses
    /// none does.
    fn check_shared(&self, spec: &Spec, address: Ipv4Addr) -> Result<(), NatError> {
        let needs_not = spec.is_address_only() || self.on()?.mode != Mode::Dynamic;
        if needs_not || self.state.borrow().pool.has(address) {
            return Ok(());
        }
        Err(NatError::NotShared(address))
    }

    fn make(&self, spec: &Spec, address: Ipv4Addr) -> Result<Mapping, NatError> {
        let vrf = self.vrf_of(spec);
        let table = self.fib.index_of(Family::Ip4, vrf)?.0;
        let local = if spec.identity { address } else { spec.local };
        let (port, external_port) =
            if spec.is_address_only() { (0, 0) } else { (spec.local_port, spec.external_port) };
        let interface = match spec.external {
            External::Interface(interface) => Some(interface),
            External::Address(_) => None,
        };
        Ok(Mapping {
            external: (address.to_bits(), external_port),
            protocol: spec.protocol,
            locals: vec![Local { address: local.to_bits(), port, probability: 0, vrf, table }],
            twice: TwiceNat::No,
            out2in_only: false,
            identity: spec.identity,
            balanced: None,
            pool_address: None,
            interface,
            tag: spec.tag.clone(),
        })
    }

    /// Packets see a mapping from now on.
    fn see(&self, spec: &Spec, address: Ipv4Addr) -> Result<ExternalKey, NatError> {
        self.check_shared(spec, address)?;
        let mut mapping = self.make(spec, address)?;
        let key = (mapping.external.0, mapping.external.1, mapping.protocol);
        let mut state = self.state.borrow_mut();
        let mappings = &mut state.config.mappings;
        if let Some(there) = mappings.external(key.0, key.1, key.2).filter(|_| mappings.has_external(&key)) {
            if !(spec.identity && there.identity) {
                return Err(NatError::MappingExists);
            }
            mapping.locals.extend(there.locals.iter().copied());
            mappings.remove(key);
        } else if mapping
            .locals
            .iter()
            .any(|l| mappings.has_local(&(l.address, l.port, l.table, spec.protocol)))
        {
            return Err(NatError::MappingExists);
        }
        mappings.insert(mapping);
        Ok(key)
    }

    /// Packets see it no more; its sessions end.
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
        self.publish();
        let (address, port, protocol) = key;
        let ended = self.retain(move |session: &Session| {
            let is_port = protocol == 0 || (session.outside.1, session.protocol) == (port, protocol);
            !(session.is_static && session.outside.0 == address && is_port)
        });
        if let Err(e) = ended {
            tracing::warn!("sessions of a mapping stay until they time out: {e}");
        }
    }

    /// Adds a mapping. A port that was given out is taken back from its host.
    ///
    /// # Errors
    /// NAT is off, there is one, the combination makes no sense, or the port is of an address that hosts do not share.
    pub fn add_mapping(&self, spec: Spec) -> Result<(), NatError> {
        self.check(&spec)?;
        if self.state.borrow().statics.iter().any(|one| self.same(&one.spec, &spec)) {
            return Err(NatError::MappingExists);
        }
        let vrf = self.vrf_of(&spec);
        self.held.hold(vrf)?;
        let address = match spec.external {
            External::Address(address) => Some(Ipv4Addr::from_bits(address)),
            External::Interface(interface) => self.ip4.primary(interface),
        };
        let external = match address.map(|address| self.see(&spec, address)).transpose() {
            Ok(external) => external,
            Err(e) => {
                self.held.release(vrf);
                return Err(e);
            }
        };
        let local = spec.local.to_bits();
        let of_port = (spec.protocol, spec.local_port);
        self.state.borrow_mut().statics.push(Static { spec, external });
        self.publish();
        let Some((address, port, protocol)) = external else { return Ok(()) };
        self.retain(move |session| {
            let whole = protocol == 0;
            let host =
                session.inside.0 == local && (whole || (session.protocol, session.inside.1) == of_port);
            let shared = session.outside.0 == address
                && (whole || (session.protocol, session.outside.1) == (protocol, port));
            session.is_static || !(host || shared)
        })
    }

    /// Takes a mapping away; its sessions end.
    ///
    /// # Errors
    /// NAT is off, or there is none.
    pub fn del_mapping(&self, spec: &Spec) -> Result<(), NatError> {
        self.on()?;
        let is_it = |one: &super::Static| {
            self.same(&one.spec, spec)
                && (spec.identity
                    || (one.spec.local, one.spec.local_port) == (spec.local, spec.local_port)
                        && self.vrf_of(&one.spec) == self.vrf_of(spec))
        };
        let at = self.state.borrow().statics.iter().position(is_it).ok_or(NatError::NoMapping)?;
        let Static { spec, external } = self.state.borrow_mut().statics.remove(at);
        if let Some(key) = external {
            self.hide(&spec, key);
        }
        self.held.release(self.vrf_of(&spec));
        self.publish();
        Ok(())
    }

    /// An interface's address is this now.
    pub(super) fn resolve_mappings(&self, interface: SwIfIndex, primary: Option<Ipv4Addr>) {
        let of_it: Vec<(usize, Static)> = {
            let state = self.state.borrow();
            let all = state.statics.iter().enumerate();
            all.filter(|(_, one)| one.spec.external == External::Interface(interface))
                .map(|(at, one)| (at, one.clone()))
                .collect()
        };
        for (at, Static { spec, external }) in of_it {
            if external.map(|key| key.0) == primary.map(Ipv4Addr::to_bits) {
                continue;
            }
            if let Some(key) = external {
                self.hide(&spec, key);
            }
            let seen = primary.map(|address| self.see(&spec, address)).transpose().unwrap_or_else(|e| {
                tracing::warn!(%interface, "a mapping with its address is not used: {e}");
                None
            });
            if let Some(one) = self.state.borrow_mut().statics.get_mut(at) {
                one.external = seen;
            }
        }
    }

    /// Whether a mapping has a port of an address.
    pub(super) fn has_port_of(&self, address: Ipv4Addr) -> bool {
        let of_port = |one: &Static| {
            let is_it = one.external.is_some_and(|key| key.0 == address.to_bits());
            is_it && !one.spec.identity && !one.spec.is_address_only()
        };
        self.state.borrow().statics.iter().any(of_port)
    }

    /// An address that followed an interface is shared no more: mappings to it go, and those that name the interface wait.
    pub(super) fn forget_mappings_to(&self, address: Ipv4Addr) {
        let state = self.state.borrow();
        let to_it =
            state.statics.iter().filter(|one| one.external.is_some_and(|key| key.0 == address.to_bits()));
        let (go, wait): (Vec<Static>, Vec<Static>) =
            to_it.cloned().partition(|one| matches!(one.spec.external, External::Address(_)));
        drop(state);
        for Static { spec, .. } in go {
            if let Err(e) = self.del_mapping(&spec) {
                tracing::warn!(%address, "a mapping to it stays: {e}");
            }
        }
        for Static { spec, external } in wait {
            if let Some(key) = external {
                self.hide(&spec, key);
            }
            if let Some(one) = self.state.borrow_mut().statics.iter_mut().find(|one| one.spec == spec) {
                one.external = None;
            }
        }
    }

    pub(super) fn forget_mappings_of(&self, interface: SwIfIndex) {
        let state = self.state.borrow();
        let of_it = state.statics.iter().map(|one| &one.spec);
        let gone: Vec<Spec> =
            of_it.filter(|spec| spec.external == External::Interface(interface)).cloned().collect();
        drop(state);
        for spec in gone {
            if let Err(e) = self.del_mapping(&spec) {
                tracing::warn!(%interface, "a mapping with its address stays: {e}");
            }
        }
    }

    /// Mappings, with the address that those of interfaces have now.
    pub fn mappings(&self) -> Vec<(Spec, Option<Ipv4Addr>)> {
        let state = self.state.borrow();
        let shown = |one: &Static| (one.spec.clone(), one.external.map(|key| Ipv4Addr::from_bits(key.0)));
        state.statics.iter().map(shown).collect()
    }
}
