//! What a relay does to DHCPv6 messages (RFC 8415, 19).

use std::net::{IpAddr, Ipv6Addr};

use shoal_adj::Family;
use shoal_interface::SwIfIndex;

use super::{CLIENT_PORT6, Dhcp, SERVER_PORT6};
use crate::message6::{Forward, RELAY_FORWARD, RELAY_REPLY, Reply};
use crate::node::ReceivedPacket;

/// A client looks for servers.
const SOLICIT: u8 = 1;
/// Messages of servers to clients: not to be handed on to servers.
const OF_SERVERS: &[u8] = &[2, 7, 10];

impl Dhcp {
    pub(super) fn relay6(&self, heard: &ReceivedPacket, source: Ipv6Addr, data: &[u8]) {
        match data.first() {
            Some(&RELAY_REPLY) => self.relay_reply(heard, source, data),
            Some(kind) if OF_SERVERS.contains(kind) => {}
            Some(_) => self.relay_forward(heard, source, data),
            None => {}
        }
    }

    /// The first address of an interface by which servers tell its link.
    fn link_address(&self, interface: SwIfIndex) -> Option<Ipv6Addr> {
        self.ip6.addresses(interface).first().map(shoal_wire::Ip6Prefix::addr)
    }

    fn relay_forward(&self, heard: &ReceivedPacket, peer: Ipv6Addr, message: &[u8]) {
        let table = self.table_of(heard.interface, Family::Ip6);
        let Some((relay, subnet)) = self.relay_of(Family::Ip6, table) else { return };
        let Some(link) = self.link_address(heard.interface) else { return };
        let interface = heard.interface.0.to_be_bytes();
        let subnet = subnet.map(|subnet| subnet.bytes());
        let Some(bytes) = (Forward { link, peer, mac: heard.mac, interface, subnet, message }).write() else {
            return;
        };
        // As VPP: only a client that looks for servers is heard by all of them.
        let count = if message.first() == Some(&SOLICIT) { relay.servers.len() } else { 1 };
        for server in relay.servers.iter().take(count) {
            let Ok(table) = self.fib.index_of(Family::Ip6, server.vrf) else { continue };
            self.send(table, (relay.source, CLIENT_PORT6, server.address, SERVER_PORT6), 0, &bytes);
        }
    }

    fn relay_reply(&self, heard: &ReceivedPacket, source: Ipv6Addr, data: &[u8]) {
        let table = self.table_of(heard.interface, Family::Ip6);
        if !self.is_server(source.into(), table) {
            return;
        }
        let Some(reply) = Reply::read(data) else { return };
        let interface = SwIfIndex(u32::from_be_bytes(reply.interface));
        let Some(own) = self.link_address(interface) else { return };
        // Another relay takes it at the port of relays.
        let is_relay = matches!(reply.message.first(), Some(&RELAY_REPLY | &RELAY_FORWARD));
        let port = if is_relay { SERVER_PORT6 } else { CLIENT_PORT6 };
        let ends = (IpAddr::V6(own), SERVER_PORT6, IpAddr::V6(reply.peer), port);
        self.broadcast(interface, ends, 0, reply.message);
    }
}
