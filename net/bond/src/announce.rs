//! When another member takes over, the other end has to learn where this station is now.

use std::net::Ipv4Addr;

use shoal_interface::{Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_ip6_nd::Nd;
use shoal_module::Control;
use shoal_wire::{ArpHeader, ArpOpcode, EtherType, IntoBytes, MacAddress};

/// Announces all addresses of a bond and of its sub-interfaces: by gratuitous ARP (RFC 5227, 3) and by unsolicited
/// neighbour advertisements (RFC 4861, 7.2.6).
pub(crate) fn announce(control: &Control, interfaces: &Interfaces, bond: SwIfIndex) {
    for index in std::iter::once(bond).chain(interfaces.subs_of(bond)) {
        if !interfaces.data(index).is_ok_and(|data| data.is_up()) {
            continue;
        }
        if let Ok(ip4) = control.get::<Ip4>() {
            ip4.spoken(index).iter().for_each(|prefix| say(interfaces, index, prefix.addr()));
        }
        if let (Ok(ip6), Ok(nd)) = (control.get::<Ip6>(), control.get::<Nd>()) {
            let addresses = ip6.addresses(index).into_iter().map(|prefix| prefix.addr());
            for address in addresses.chain(ip6.link_local(index)) {
                nd.announce(index, address);
            }
        }
    }
}

/// One gratuitous request: sender and target are the address.
fn say(interfaces: &Interfaces, index: SwIfIndex, address: Ipv4Addr) {
    let Ok(data) = interfaces.data(index) else { return };
    let arp = ArpHeader::new(ArpOpcode::REQUEST, data.mac(), address, MacAddress::ZERO, address);
    interfaces.send_frame(index, MacAddress::BROADCAST, EtherType::ARP, arp.as_bytes());
}
