//! What passes besides IP and ARP, borrowed addresses, and pairs of two interfaces that are there already.

use super::*;

/// OSI's numbers of protocols of the network layer (ISO/IEC TR 9577), as far as VPP knows them.
const OSI: [u8; 19] = [
    0x00, 0x01, 0x03, 0x08, 0x09, 0x0c, 0x80, 0x81, 0x82, 0x83, 0x85, 0x8a, 0x8c, 0x8d, 0x8e, 0xb0, 0xc1,
    0xcc, 0xcf,
];
/// Frames longer than a length can say, with an LLC header behind the type.
const LONG_LLC: EtherType = EtherType(0x8870);

impl Lcp {
    /// Whether new sub-interfaces of interfaces with an image get one.
    pub fn auto_subint(&self) -> Sync {
        self.auto_subint.get()
    }

    /// Gives new sub-interfaces of interfaces with an image one from now on, or no longer.
    pub fn set_auto_subint(&self, auto: Sync) {
        self.auto_subint.set(auto);
    }

    /// A new sub-interface gets an image if its port has one and that is wanted: `<image of the port>.<number>`.
    pub(super) fn create_of_sub(&self, sub: SwIfIndex) {
        let Some(of) = self.interfaces.sub(sub).filter(|of| of.takes.is_exact()) else { return };
        if self.making.get() {
            return;
        }
        let port = {
            let pairs = self.pairs.borrow();
            pairs.get(&of.port).map(|pair| (format!("{}.{}", pair.name, of.number), pair.netns.clone()))
        };
        let Some((name, netns)) = port.filter(|_| self.auto_subint.get() == Sync::On) else { return };
        if let Err(e) = self.create(sub, &name, netns.as_deref()) {
            let sub = self.interfaces.name(sub).unwrap_or_default();
            tracing::warn!("linux-cp: no image of {sub}: {e}");
        }
    }

    /// Linux sees an interface without a link as one whose cable is pulled, so that daemons there need not wait for their
    /// timers.
    pub(super) fn follow_link(&self, phy: SwIfIndex, is_up: bool) {
        let host = self.host_of(phy).filter(|_| !self.is_vlan(phy));
        let (Some(host), Ok(side)) = (host, self.host_side()) else { return };
        // One that is none of the kernel's has no cable.
        if side.host_index(host).is_some() {
            self.warn(phy, "link", side.set_carrier(host, is_up));
        }
    }

    /// Lets packets of an OSI protocol pass between all interfaces and their images, in both directions.
    ///
    /// # Errors
    /// The start-up file disables OSI, there is no such protocol, or another module takes these frames.
    pub fn enable_osi(&self, protocol: u8) -> Result<(), LcpError> {
        if !self.osi_is_on.get() {
            return Err(LcpError::OsiDisabled);
        }
        if !OSI.contains(&protocol) {
            return Err(LcpError::OsiProtocol(protocol));
        }
        let control = self.control.upgrade().ok_or(LcpError::NoDriver)?;
        let ethernet = control.get::<Ethernet>().map_err(|_| LcpError::NoDriver)?;
        if self.osi_protocols().is_empty() {
            if !ethernet.give(LONG_LLC, self.osi_edge, crate::MODULE.name) {
                return Err(LcpError::Type(LONG_LLC));
            }
            ethernet.give_llc(self.osi_edge);
        }
        self.osi.add(protocol);
        Ok(())
    }

    /// Lets packets of an OSI protocol pass no more.
    pub fn disable_osi(&self, protocol: u8) {
        let had = self.osi.has(protocol);
        self.osi.remove(protocol);
        if had
            && self.osi_protocols().is_empty()
            && let Some(ethernet) = self.control.upgrade().and_then(|control| control.get::<Ethernet>().ok())
        {
            ethernet.take_back(LONG_LLC, crate::MODULE.name);
        }
    }

    /// OSI protocols that pass.
    pub fn osi_protocols(&self) -> Vec<u8> {
        (0..=u8::MAX).filter(|protocol| self.osi.has(*protocol)).collect()
    }

    /// Lets frames of a type pass between all interfaces and their images, in both directions.
    ///
    /// # Errors
    /// This router handles the type itself, or it is not one of a protocol.
    pub fn enable_type(&self, kind: EtherType) -> Result<(), LcpError> {
        if self.types.borrow().contains(&kind) {
            return Ok(());
        }
        let control = self.control.upgrade().ok_or(LcpError::NoDriver)?;
        let given = control
            .get::<Ethernet>()
            .is_ok_and(|ethernet| ethernet.give(kind, self.other, crate::MODULE.name));
        if !given {
            return Err(LcpError::Type(kind));
        }
        self.types.borrow_mut().insert(kind);
        Ok(())
    }

    /// Lets frames of a type pass no more.
    pub fn disable_type(&self, kind: EtherType) {
        if self.types.borrow_mut().remove(&kind)
            && let Some(ethernet) = self.control.upgrade().and_then(|control| control.get::<Ethernet>().ok())
        {
            ethernet.take_back(kind, crate::MODULE.name);
        }
    }

    /// Types of frames that pass besides IP and ARP.
    pub fn types(&self) -> Vec<EtherType> {
        self.types.borrow().iter().copied().collect()
    }

    /// Whether addresses that an interface borrows are passed on to the kernel.
    pub fn sync_unnumbered(&self) -> Sync {
        self.sync_unnumbered.get()
    }

    /// Passes addresses that interfaces borrow on to the kernel from now on, or no longer; where addresses are passed
    /// on at all.
    pub fn set_sync_unnumbered(&self, sync: Sync) {
        self.sync_unnumbered.set(sync);
        let all: Vec<SwIfIndex> = self.pairs.borrow().keys().copied().collect();
        for phy in all {
            self.sync_addresses(phy);
        }
    }

    /// The addresses an interface borrows, as those of hosts: the network is the lender's.
    pub(super) fn borrowed_addresses(&self, control: &Control, phy: SwIfIndex) -> Vec<(IpAddr, u8)> {
        if self.sync_unnumbered.get() == Sync::Off {
            return Vec::new();
        }
        let ip4 = control.get::<Ip4>().ok().filter(|ip4| ip4.lender(phy).is_some());
        let ip4 = ip4.map(|ip4| ip4.spoken(phy)).unwrap_or_default();
        let ip6 = control.get::<Ip6>().map(|ip6| ip6.borrowed(phy)).unwrap_or_default();
        let ip6 = ip6.iter().filter(|p| !p.addr().is_unicast_link_local());
        let ip4 = ip4.iter().map(|p| (IpAddr::V4(p.addr()), 32));
        ip4.chain(ip6.map(|p| (IpAddr::V6(p.addr()), 128))).collect()
    }

    /// Pairs two interfaces of this router: what is for the host goes out of the second one. For tests of what uses pairs.
    ///
    /// # Errors
    /// One of them is not there, or has a pair.
    pub fn pair(&self, phy: SwIfIndex, host: SwIfIndex) -> Result<(), LcpError> {
        let (phy_name, name) = (self.interfaces.name(phy)?, self.interfaces.name(host)?);
        for (interface, taken) in [(phy, &phy_name), (host, &name)] {
            if let Some(peer) = self.peers.of(interface) {
                let peer = self.interfaces.name(peer).unwrap_or_default();
                return Err(LcpError::Paired(taken.clone(), peer));
            }
        }
        if let Err(e) = self.connect(phy, host, true) {
            self.disconnect(phy, host);
            return Err(e);
        }
        let data = self.interfaces.data(host)?;
        let layer = if data.flags().has(IfFlags::ETHERNET) { HostLayer::Ethernet } else { HostLayer::Ip };
        self.enter(phy, Pair::new(host, name, None, (0, layer)));
        Ok(())
    }

    /// Takes a pair of two interfaces apart; both stay.
    ///
    /// # Errors
    /// They are not a pair.
    pub fn part(&self, phy: SwIfIndex, host: SwIfIndex) -> Result<(), LcpError> {
        let name = self.interfaces.name(phy)?;
        if self.host_of(phy) != Some(host) || self.is_vlan(phy) {
            return Err(LcpError::NotPaired(name));
        }
        self.take(phy);
        self.disconnect(phy, host);
        Ok(())
    }
}
