//! What a relay does to DHCPv4 messages (RFC 2131, RFC 3046, RFC 3527, RFC 6607).

use std::net::{IpAddr, Ipv4Addr};

use shoal_adj::Family;
use shoal_interface::SwIfIndex;

use super::relays::VirtualSubnet;
use super::{ALL, CLIENT_PORT, Dhcp, SERVER_PORT};
use crate::message4::{Kind, Message, option};
use crate::node::ReceivedPacket;

/// Sub-options of what a relay says.
const CIRCUIT: u8 = 1;
const LINK: u8 = 5;
const SUBNET: u8 = 151;
const SUBNET_CONTROL: u8 = 152;

/// What a relay says of a message: by which interface it came, in which network its sender is, and in which VPN.
fn information(interface: SwIfIndex, link: Ipv4Addr, subnet: Option<&VirtualSubnet>) -> Vec<u8> {
    let mut bytes = vec![CIRCUIT, 4];
    bytes.extend(interface.0.to_be_bytes());
    bytes.extend([LINK, 4]);
    bytes.extend(link.octets());
    if let Some(subnet) = subnet {
        let subnet = subnet.bytes();
        bytes.extend([SUBNET, subnet.len() as u8]);
        bytes.extend(subnet);
        bytes.extend([SUBNET_CONTROL, 0]);
    }
    bytes
}

/// By which interface a server's answer goes, and in which network.
fn circuit(information: &[u8]) -> Option<(SwIfIndex, Ipv4Addr)> {
    let (mut interface, mut link, mut rest) = (None, None, information);
    while let [number, length, after @ ..] = rest {
        let (value, after) = after.split_at_checked(usize::from(*length))?;
        match *number {
            CIRCUIT => {
                interface = value.first_chunk::<4>().map(|bytes| SwIfIndex(u32::from_be_bytes(*bytes)));
            }
            LINK => link = value.first_chunk::<4>().map(|bytes| Ipv4Addr::from(*bytes)),
            _ => {}
        }
        rest = after;
    }
    Some((interface?, link?))
}

impl Dhcp {
    pub(super) fn relay4(&self, heard: &ReceivedPacket, source: Ipv4Addr, data: &[u8]) {
        let Some(message) = Message::read(data) else { return };
        match message.kind() {
            Some(kind) if kind.is_of_server() => self.relay_to_client(heard, source, &message),
            Some(kind) => self.relay_to_servers(heard, kind, &message),
            None => {}
        }
    }

    fn relay_to_servers(&self, heard: &ReceivedPacket, kind: Kind, message: &Message<'_>) {
        let table = self.table_of(heard.interface, Family::Ip4);
        let Some((relay, subnet)) = self.relay_of(Family::Ip4, table) else { return };
        // Without an address the relay cannot name the link.
        let Some(link) = self.ip4.primary(heard.interface) else { return };
        let information = information(heard.interface, link, subnet.as_ref());
        let IpAddr::V4(source) = relay.source else { return };
        let Some(bytes) = message.relayed(source, &information) else { return };
        // VPP asks all servers for an offer, the first one last, and the first one for all else.
        let others = if kind == Kind::Discover { relay.servers.get(1..).unwrap_or_default() } else { &[] };
        for server in others.iter().chain(relay.servers.first()) {
            let Ok(table) = self.fib.index_of(Family::Ip4, server.vrf) else { continue };
            self.send(table, (relay.source, CLIENT_PORT, server.address, SERVER_PORT), 0, &bytes);
        }
    }

    fn relay_to_client(&self, heard: &ReceivedPacket, source: Ipv4Addr, message: &Message<'_>) {
        let table = self.table_of(heard.interface, Family::Ip4);
        if !self.is_server(source.into(), table) {
            return;
        }
        let Some((interface, link)) = message.option(option::RELAY).and_then(circuit) else { return };
        // The link's address must still be the interface's.
        if self.ip4.primary(interface) != Some(link) {
            return;
        }
        let ends = (IpAddr::V4(link), SERVER_PORT, ALL, CLIENT_PORT);
        self.broadcast(interface, ends, 0, message.bytes());
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_a_relay_says_of_a_message_leads_its_answer_back() {
        let (interface, link) = (SwIfIndex(4), Ipv4Addr::new(172, 16, 4, 1));
        let option = information(interface, link, None);
        assert_eq!(option, [1, 4, 0, 0, 0, 4, 5, 4, 172, 16, 4, 1]);
        assert_eq!(circuit(&option), Some((interface, link)));
        let number = VirtualSubnet::Number { organisation: 4, vpn: 1 };
        let option = information(interface, link, Some(&number));
        assert_eq!(option.get(12..), Some(&[151, 8, 1, 0, 0, 4, 0, 0, 0, 1, 152, 0][..]));
        let name = information(interface, link, Some(&VirtualSubnet::Name("v7".to_owned())));
        assert_eq!(name.get(12..), Some(&[151, 3, 0, b'v', b'7', 152, 0][..]));
        assert_eq!(circuit(&name), Some((interface, link)));
        for cut in [0, 5, 6, 11] {
            assert_eq!(circuit(option.get(..cut).unwrap_or_default()), None, "{cut}");
        }
    }
}
