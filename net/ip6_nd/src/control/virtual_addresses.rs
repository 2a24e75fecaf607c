//! Addresses that this router has for the time being, shared with other routers (VRRP).

use std::net::Ipv6Addr;

use shoal_interface::SwIfIndex;
use shoal_wire::MacAddress;
use shoal_wire::ip6_address::{ALL_NODES, solicited_node};
use shoal_wire::mld::RecordType;
use shoal_wire::nd::NaFlags;

use super::Nd;
use crate::NdError;
use crate::counters::Kind;
use crate::frame::{self, MessageRoute};

impl Nd {
    /// Takes what is sent to groups on an interface, and reports so at once, all in one report (RFC 3810). Those who ask for the same
    /// group are counted.
    ///
    /// # Errors
    /// There is no such interface.
    pub fn listen(&self, interface: SwIfIndex, groups: &[Ipv6Addr]) -> Result<(), NdError> {
        self.interfaces.data(interface)?;
        for group in groups {
            self.ip6.join(interface, *group)?;
            self.join_quietly(interface, *group);
        }
        if self.is_up(interface) {
            self.report(interface, groups, RecordType::CHANGE_TO_EXCLUDE);
        }
        Ok(())
    }

    /// Undoes one [`listen`](Self::listen).
    pub fn unlisten(&self, interface: SwIfIndex, groups: &[Ipv6Addr]) {
        for group in groups {
            self.ip6.leave(interface, *group);
            self.leave(interface, *group);
        }
    }

    /// Answers solicitations for an address on an interface with a MAC address, or does so no more.
    ///
    /// # Errors
    /// There is no such interface, or no host can have the address.
    pub fn set_virtual(
        &self,
        interface: SwIfIndex,
        address: Ipv6Addr,
        mac: Option<MacAddress>,
    ) -> Result<(), NdError> {
        self.interfaces.data(interface)?;
        if address.is_unspecified() || address.is_multicast() || address.is_loopback() {
            return Err(NdError::NoHost(address));
        }
        let (key, group) = ((interface, address), solicited_node(address));
        let was_there = self.virtual_addresses.borrow().contains_key(&key);
        match mac {
            Some(mac) => {
                if !was_there {
                    // Solicitations go to the group.
                    self.ip6.join(interface, group)?;
                    self.join(interface, group);
                }
                self.virtual_addresses.borrow_mut().insert(key, mac);
            }
            None if was_there => {
                self.virtual_addresses.borrow_mut().remove(&key);
                self.ip6.leave(interface, group);
                self.leave(interface, group);
            }
            None => {}
        }
        self.publish(interface);
        Ok(())
    }

    /// Tells all nodes of a link which MAC address goes with a virtual address (RFC 9568 8.2.2).
    pub fn announce_virtual(&self, interface: SwIfIndex, address: Ipv6Addr, mac: MacAddress) -> bool {
        let way = MessageRoute::to_group(mac, address, ALL_NODES);
        let frame = frame::advertisement(&way, address, NaFlags::ROUTER | NaFlags::OVERRIDE);
        let sent = frame.is_some_and(|bytes| self.send(interface, &bytes));
        if sent {
            self.counters.count_tx(Kind::UnsolicitedAdvertisement, 0, interface);
        }
        sent
    }
}
