//! Addresses that this router has for the time being, shared with other routers, and the MAC address that goes with each.
//!
//! Their protocol (VRRP) says when: [`VirtualAddresses`] is what it tells.

use std::collections::HashMap;
use std::net::Ipv4Addr;
use std::rc::Rc;
use std::sync::Arc;

use shoal_infra::{Guard, Published};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_module::{Control, InitError};
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, IntoBytes, MacAddress};

use crate::counters::{ArpCounters, Kind};

/// As packets see them. Clones are the same table.
#[derive(Clone)]
pub(crate) struct VirtualTable(Arc<Published<HashMap<(SwIfIndex, Ipv4Addr), MacAddress>>>);

impl VirtualTable {
    pub(crate) fn new() -> Self {
        VirtualTable(Arc::new(Published::new(HashMap::new())))
    }

    /// The MAC address of a virtual address that this router has.
    pub(crate) fn mac(
        &self,
        interface: SwIfIndex,
        address: Ipv4Addr,
        guard: Guard<'_>,
    ) -> Option<MacAddress> {
        let all = self.0.load(guard);
        if all.is_empty() { None } else { all.get(&(interface, address)).copied() }
    }
}

/// Addresses that this router has for the time being.
pub struct VirtualAddresses {
    interfaces: Rc<Interfaces>,
    counters: ArpCounters,
    table: VirtualTable,
}

impl VirtualAddresses {
    pub(crate) fn new(
        control: &Rc<Control>,
        counters: ArpCounters,
        table: VirtualTable,
    ) -> Result<Rc<Self>, InitError> {
        let interfaces = control.get::<Interfaces>()?;
        interfaces.subscribe(|control, event| {
            if let (Ok(all), Event::Deleting(interface)) = (control.get::<VirtualAddresses>(), event) {
                all.change(|table| table.retain(|(of, _), _| *of != interface));
            }
        });
        Ok(Rc::new(VirtualAddresses { interfaces, counters, table }))
    }

    fn change(&self, change: impl FnOnce(&mut HashMap<(SwIfIndex, Ipv4Addr), MacAddress>)) {
        let mut all = HashMap::clone(&self.table.0.get());
        change(&mut all);
        self.table.0.replace(all);
    }

    /// Answers requests for an address on an interface with a MAC address, or does so no more.
    pub fn set(&self, interface: SwIfIndex, address: Ipv4Addr, mac: Option<MacAddress>) {
        self.change(|all| {
            match mac {
                Some(mac) => all.insert((interface, address), mac),
                None => all.remove(&(interface, address)),
            };
        });
    }

    /// Tells all stations of a link which MAC address goes with an address (a gratuitous ARP request).
    pub fn announce(&self, interface: SwIfIndex, address: Ipv4Addr, mac: MacAddress) -> bool {
        let arp = ArpHeader::new(ArpOpcode::REQUEST, mac, address, MacAddress::BROADCAST, address);
        let ends = (mac, MacAddress::BROADCAST);
        let sent = self.interfaces.send_frame_from(interface, ends, EtherType::ARP, arp.as_bytes());
        if sent {
            self.counters.count_tx(Kind::Gratuitous, 0, interface);
        }
        sent
    }
}
