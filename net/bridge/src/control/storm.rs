//! Limits of what ports bring into their domains.

use shoal_interface::SwIfIndex;
use shoal_l2::{Mode, PortGuard};

use super::Bridges;
use crate::error::BridgeError;
use crate::storm::{StormClass, StormLimits};

impl Bridges {
    /// Limits what a member brings into its domain, until it leaves it.
    ///
    /// # Errors
    /// There is no such interface, or it is not a member of a bridge domain.
    pub fn set_storm_limits(&self, port: SwIfIndex, limits: StormLimits) -> Result<(), BridgeError> {
        let name = self.interfaces.name(port)?;
        if !matches!(self.l2.mode(port), Mode::Bridge(_)) {
            return Err(BridgeError::NotMember(name));
        }
        self.storm.set(port, limits);
        let unknown = limits.get(StormClass::UnknownUnicast).is_some();
        let groups = !limits.with(StormClass::UnknownUnicast, None).is_off();
        let guard = PortGuard { limits_groups: groups, limits_unknown: unknown, ..self.l2.guard(port) };
        self.l2.set_guard(port, guard)?;
        if limits.is_off() {
            self.storm_limits.borrow_mut().remove(&port);
        } else {
            self.storm_drops.iter().for_each(|drops| drops.ensure(port.0 as usize + 1));
            self.storm_limits.borrow_mut().insert(port, limits);
        }
        Ok(())
    }

    /// The limits of a port.
    pub fn storm_limits(&self, port: SwIfIndex) -> StormLimits {
        self.storm_limits.borrow().get(&port).copied().unwrap_or_default()
    }

    /// All ports with limits.
    pub fn storm_ports(&self) -> Vec<(SwIfIndex, StormLimits)> {
        self.storm_limits.borrow().iter().map(|(port, limits)| (*port, *limits)).collect()
    }

    /// How many frames of a class a port has lost to its limit.
    pub fn storm_drops(&self, port: SwIfIndex, class: StormClass) -> u64 {
        self.storm_drops.get(class as usize).map_or(0, |drops| drops.sum(port.0 as usize))
    }

    /// A port has left its domain: it has no limits in the next one.
    pub(super) fn forget_storm(&self, port: SwIfIndex) {
        if self.storm_limits.borrow_mut().remove(&port).is_some() {
            self.storm.set(port, StormLimits::default());
        }
    }
}
