//! Who forwards.

use shoal_adj::Family;
use shoal_arp::VirtualAddresses;
use shoal_bfd::{Bfd, State as BfdState};
use shoal_interface::IfFlags;
use shoal_nat_state::sync::Role;
use shoal_redundancy::Standing;

use super::SessionSync;
use crate::config::RoleSource;
use crate::error::SyncError;

/// Nanoseconds in which two routers that have started meet by BFD.
const MEETING: u64 = 5_000_000_000;

impl SessionSync {
    /// Says what tells who forwards.
    ///
    /// # Errors
    /// There is no such interface or virtual router.
    pub fn set_role(&self, source: RoleSource) -> Result<(), SyncError> {
        match source {
            RoleSource::Active | RoleSource::Standby | RoleSource::Bfd(_) => {}
            RoleSource::Vrrp(group) => {
                if self.redundancy.standing(group).is_none() {
                    let (number, interface) = (group.number, group.interface);
                    return Err(SyncError::NoGroup { number, interface });
                }
            }
            RoleSource::Interface(interface) => {
                self.interfaces.data(interface).map_err(|_| SyncError::NoInterface(interface))?;
            }
        }
        let mut state = self.state.borrow_mut();
        if std::mem::replace(&mut state.source, source) != source {
            (state.was_met, state.role_since) = (false, self.now());
        }
        drop(state);
        self.renew_role();
        Ok(())
    }

    /// What this router is of the two.
    pub fn role(&self) -> Role {
        self.state.borrow().role
    }

    /// What this router should be now.
    fn judge(&self) -> Role {
        let is_active = match self.role_source() {
            RoleSource::Active => true,
            RoleSource::Standby => false,
            // A virtual router that has gone leaves its addresses to others.
            RoleSource::Vrrp(group) => self.redundancy.standing(group) == Some(Standing::Master),
            RoleSource::Interface(interface) => {
                let up = IfFlags::ADMIN_UP.set(IfFlags::LINK_UP, true);
                self.interfaces.data(interface).is_ok_and(|data| data.flags().all(up))
            }
            RoleSource::Bfd(key) => {
                let bfd = self.control.upgrade().and_then(|control| control.get::<Bfd>().ok());
                let is_up = bfd.and_then(|bfd| bfd.state_of(key)) == Some(BfdState::Up);
                let mut state = self.state.borrow_mut();
                state.was_met |= is_up;
                // A router that has just started waits for the session before it believes that the other has failed.
                let waited = self.now().0.saturating_sub(state.role_since.0) >= MEETING;
                !is_up && (state.was_met || waited)
            }
        };
        if is_active { Role::Active } else { Role::Standby }
    }

    /// Something has changed that may say who forwards.
    pub(super) fn renew_role(&self) {
        let role = self.judge();
        let mut state = self.state.borrow_mut();
        if std::mem::replace(&mut state.role, role) == role {
            return;
        }
        for of in &mut state.features {
            (of.tells_all, of.told_at) = (true, None);
        }
        // The other router hears of it at once.
        state.next_hello = shoal_graph::clock::Time(0);
        let has_peer = state.peer.is_some();
        drop(state);
        if has_peer {
            tracing::info!(
                "session-sync: this router is {}",
                if role == Role::Active { "active" } else { "standby" }
            );
            self.give_roles();
            self.bell.ring();
        }
    }

    /// Has all kinds of NAT do as this router's role is.
    pub(super) fn give_roles(&self) {
        let state = self.state.borrow();
        let role = match (&state.peer, state.role) {
            (None, _) => Role::Alone,
            // While the other router is silent, nothing is told.
            (Some(_), Role::Active) if !state.association.is_up() => Role::Alone,
            (Some(_), role) => role,
        };
        drop(state);
        for feature in &self.features {
            feature.set_role(role, &self.bell);
        }
        if role != Role::Standby {
            self.announce();
        }
    }

    /// Tells stations of the links outside that this router answers for the addresses that hosts share.
    fn announce(&self) {
        let arp = self.control.upgrade().and_then(|control| control.get::<VirtualAddresses>().ok());
        let Some(arp) = arp.filter(|_| self.state.borrow().peer.is_some()) else { return };
        for (interface, address) in self.features.iter().flat_map(|feature| feature.answers()) {
            if let Ok(data) = self.interfaces.data(interface) {
                arp.announce(interface, address, data.mac());
            }
        }
    }
}

/// How a family is written.
pub(crate) fn family_word(family: Family) -> &'static str {
    if family == Family::Ip6 { " ipv6" } else { "" }
}
