//! `ip_address_dump`, `ip_dump`: which addresses interfaces have, and on which ones a family runs.

use std::net::IpAddr;
use std::rc::Rc;

use shoal_interface::{IfFlags, Interfaces, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_message::{AddressWithPrefix, InterfaceIndex, Message, Prefix};
use shoal_module::api::{Call, Dump};

/// Asks for the addresses of a family on an interface.
#[derive(Message)]
#[message(request, details = IpAddressDetails)]
pub struct IpAddressDump {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
}

/// An address of an interface. Link-local ones of IPv6 are listed by `sw_interface_ip6_get_link_local_address`.
#[derive(Message)]
#[message(reply)]
pub struct IpAddressDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    /// The address and its network.
    pub prefix: AddressWithPrefix,
}

/// Asks for the interfaces on which a family runs.
#[derive(Message)]
#[message(request, details = IpDetails)]
pub struct IpDump {
    pub is_ipv6: bool,
}

/// An interface on which a family runs.
#[derive(Message)]
#[message(reply)]
pub struct IpDetails {
    /// The interface.
    pub sw_if_index: InterfaceIndex,
    pub is_ipv6: bool,
}

fn addresses(call: &Call, interface: SwIfIndex, is_ipv6: bool) -> Option<Vec<Prefix>> {
    let told = |address: IpAddr, len| Prefix { address, len };
    Some(if is_ipv6 {
        let all = call.get::<Ip6>().ok()?.addresses(interface);
        all.iter().map(|a| told(a.addr().into(), a.len())).collect()
    } else {
        let all = call.get::<Ip4>().ok()?.addresses(interface);
        all.iter().map(|a| told(a.addr().into(), a.len())).collect()
    })
}

impl Dump for IpAddressDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpAddressDetails> + 'static {
        let sw_if_index = self.sw_if_index;
        let all = addresses(call, SwIfIndex(sw_if_index.0), self.is_ipv6).unwrap_or_default();
        all.into_iter().map(move |prefix| IpAddressDetails { sw_if_index, prefix: AddressWithPrefix(prefix) })
    }
}

impl Dump for IpDump {
    fn dump(self, call: &Call) -> impl Iterator<Item = IpDetails> + 'static {
        let is_ipv6 = self.is_ipv6;
        let flag = if is_ipv6 { IfFlags::IP6 } else { IfFlags::IP4 };
        running(call, flag).map(move |i| IpDetails { sw_if_index: InterfaceIndex(i.0), is_ipv6 })
    }
}

fn running(call: &Call, flag: IfFlags) -> impl Iterator<Item = SwIfIndex> + use<> {
    let interfaces: Option<Rc<Interfaces>> = call.get::<Interfaces>().ok();
    let all = interfaces.iter().flat_map(|i| i.indices()).collect::<Vec<_>>();
    all.into_iter().filter(move |index| {
        let data = interfaces.as_ref().and_then(|i| i.data(*index).ok());
        data.is_some_and(|data| data.flags().has(flag))
    })
}
