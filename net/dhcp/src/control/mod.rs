//! The control plane: clients, relays, and how their messages are sent.

mod clients;
mod clients6;
mod conflicts6;
mod error;
mod from_prefixes;
mod relay4;
mod relay6;
mod relays;

pub use clients::{ClientIdentity, ClientInfo};
pub use clients6::{Client6Info, Replied};
pub use error::DhcpError;
pub use from_prefixes::FromPrefix;
pub use relays::{RelayInfo, Server, VirtualSubnet};

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::{Rc, Weak};

use shoal_adj::Family;
use shoal_buffer::Flags;
use shoal_datagram::{Checksum, Datagram};
use shoal_fib::{Fib, FibIndex};
use shoal_graph::process::{Receiver, Sender, channel};
use shoal_graph::{FeatureSpec, Graph, PacketNode};
use shoal_interface::{Event, Interfaces, SwIfIndex};
use shoal_ip::ListenerTable;
use shoal_ip4::{Ip4, Ip4Family};
use shoal_ip6::{Ip6, Ip6Family};
use shoal_mfib::Mfib;
use shoal_module::{Control, InitError};
use shoal_wire::{
    EtherType, EthernetHeader, FromBytes, IntoBytes, Ip4Header, Ip6Header, IpProtocol, MacAddress, UdpHeader,
};

use crate::message6::RELAY_REPLY;
use crate::node::{ArrivalPort, CLIENT_PORT, Detect, Input, ReceivedPacket};
use clients::Client;
use relays::{Relay, RelayKey};

/// DHCPv4's port of servers.
const SERVER_PORT: u16 = 67;
/// DHCPv6's port of clients.
const CLIENT_PORT6: u16 = 546;
/// DHCPv6's port of servers and relays.
const SERVER_PORT6: u16 = 547;
/// Packets that came and wait to be read.
const WAITING: usize = 256;
/// Routers that a message may pass, as VPP's.
const HOPS: u8 = 128;

/// DHCP of this router.
pub struct Dhcp {
    control: Weak<Control>,
    graph: Rc<Graph>,
    interfaces: Rc<Interfaces>,
    ip4: Rc<Ip4>,
    ip6: Rc<Ip6>,
    fib: Rc<Fib>,
    mfib: Rc<Mfib>,
    clients: RefCell<BTreeMap<SwIfIndex, Client>>,
    clients6: clients6::Clients6,
    relays: RefCell<BTreeMap<RelayKey, Relay>>,
    subnets: RefCell<BTreeMap<RelayKey, VirtualSubnet>>,
    heard: Receiver<ReceivedPacket>,
    bell: Sender<()>,
    rung: Receiver<()>,
}

/// A UDP datagram that came.
struct Udp<'a> {
    source: IpAddr,
    data: &'a [u8],
}

/// Reads a packet; `None`: it is cut short.
fn read_udp(packet: &[u8]) -> Option<Udp<'_>> {
    let (source, header, total): (IpAddr, usize, usize) = if packet.first()? >> 4 == 4 {
        let (ip, _) = Ip4Header::read_from_prefix(packet).ok()?;
        (ip.src().into(), ip.header_len(), ip.total_length().into())
    } else {
        let (ip, _) =
            Ip6Header::read_from_prefix(packet).ok().filter(|(ip, _)| ip.protocol() == IpProtocol::UDP)?;
        (ip.src().into(), Ip6Header::LEN, Ip6Header::LEN + usize::from(ip.payload_length()))
    };
    let udp = packet.get(header..total)?;
    let &[_, _, _, _, l0, l1, ..] = udp else { return None };
    let length = usize::from(u16::from_be_bytes([l0, l1]));
    Some(Udp { source, data: udp.get(UdpHeader::LEN..length)? })
}

impl Dhcp {
    pub(crate) fn new(control: &Rc<Control>) -> Result<Rc<Self>, InitError> {
        let (graph, interfaces) = (control.graph()?, control.get::<Interfaces>()?);
        let (tell, heard) = channel(WAITING);
        let (bell, rung) = channel(1);
        let (tell, table) = (|| tell.clone(), || interfaces.table());
        graph.add_packet(Input::<false, true> { tell: tell(), interfaces: table() })?;
        graph.add_packet(Input::<false, false> { tell: tell(), interfaces: table() })?;
        graph.add_packet(Input::<true, true> { tell: tell(), interfaces: table() })?;
        graph.add_packet(Input::<true, false> { tell: tell(), interfaces: table() })?;
        graph.add_packet(Detect)?;
        let before = &["ip4-not-enabled"];
        let spec = FeatureSpec { arc: shoal_ip4::UNICAST_ARC, node: Detect::NAME, before, after: &[] };
        graph.add_feature(spec);
        let dhcp = Rc::new(Dhcp {
            control: Rc::downgrade(control),
            graph,
            interfaces: Rc::clone(&interfaces),
            ip4: control.get::<Ip4>()?,
            ip6: control.get::<Ip6>()?,
            fib: control.get::<Fib>()?,
            mfib: control.get::<Mfib>()?,
            clients: RefCell::default(),
            clients6: clients6::Clients6::default(),
            relays: RefCell::default(),
            subnets: RefCell::default(),
            heard,
            bell,
            rung,
        });
        dhcp.watch_duplicates(control);
        let weak = Rc::downgrade(&dhcp);
        interfaces.subscribe(move |_, event| {
            if let Some(dhcp) = weak.upgrade() {
                match event {
                    Event::Deleting(interface) => dhcp.forget(interface),
                    Event::Admin(interface, _) | Event::Link(interface, _) => dhcp.follow(interface),
                    _ => {}
                }
            }
        });
        Ok(dhcp)
    }

    fn ring(&self) {
        // One ring that waits is enough.
        let _ = self.bell.try_send(());
    }

    pub(crate) fn rung(&self) -> Receiver<()> {
        self.rung.clone()
    }

    /// Reads what came.
    pub(crate) async fn listen(self: Rc<Self>) {
        let pace = shoal_module::cli::Pace::default();
        while let Ok(heard) = self.heard.recv().await {
            self.hear(&heard);
            pace.give_way().await;
        }
    }

    fn hear(&self, heard: &ReceivedPacket) {
        let Some(udp) = read_udp(&heard.packet) else { return };
        match udp.source {
            IpAddr::V4(source) if heard.to == ArrivalPort::Client => {
                self.answer_to_client(heard, source, udp.data);
            }
            IpAddr::V4(source) => self.relay4(heard, source, udp.data),
            IpAddr::V6(source)
                if udp.data.first() == Some(&RELAY_REPLY) || heard.to == ArrivalPort::Server =>
            {
                self.relay6(heard, source, udp.data);
            }
            IpAddr::V6(_) => self.answer_to_client6(heard, udp.data),
        }
    }

    /// Which of the local nodes' ports are DHCP's: those that a client or a relay needs.
    fn renew_ports(&self) {
        let Some(control) = self.control.upgrade() else { return };
        let has = |family| self.relays.borrow().keys().any(|key| key.family == family);
        let edge =
            |local: &str, node: &str| self.graph.add_edge(self.graph.node(local)?, self.graph.node(node)?);
        let has_clients = !self.clients.borrow().is_empty();
        let four = [
            (SERVER_PORT, "dhcp-proxy-to-server", has(Family::Ip4)),
            (CLIENT_PORT, "dhcp-proxy-to-client", has_clients),
        ];
        if let Ok(table) = control.get::<ListenerTable<Ip4Family>>() {
            for (port, node, on) in four {
                table.set_udp(port, if on { edge("ip4-local", node).ok() } else { None });
            }
        }
        let six = [
            (SERVER_PORT6, "dhcpv6-proxy-to-server", has(Family::Ip6)),
            (CLIENT_PORT6, "dhcpv6-proxy-to-client", has(Family::Ip6) || self.needs_port6()),
        ];
        if let Ok(table) = control.get::<ListenerTable<Ip6Family>>() {
            for (port, node, on) in six {
                table.set_udp(port, if on { edge("ip6-local", node).ok() } else { None });
            }
        }
    }

    /// The forwarding table of an interface.
    fn table_of(&self, interface: SwIfIndex, family: Family) -> FibIndex {
        match family {
            Family::Ip4 => self.ip4.fib_of(interface),
            Family::Ip6 => self.ip6.fib_of(interface),
        }
    }

    /// Sends a datagram by an interface to all stations of its link.
    fn broadcast(&self, interface: SwIfIndex, ends: (IpAddr, u16, IpAddr, u16), tos: u8, data: &[u8]) {
        let (source, from, destination, to) = ends;
        let datagram = Datagram {
            source: (source, from),
            destination: (destination, to),
            table: FibIndex::DEFAULT,
            hops: HOPS,
            tos,
            checksum: Checksum::Computed,
        };
        let (Ok(packet), Ok(of)) = (datagram.bytes(data), self.interfaces.data(interface)) else { return };
        let kind = if source.is_ipv4() { EtherType::IP4 } else { EtherType::IP6 };
        let ethernet = EthernetHeader::new(of.mac(), MacAddress::BROADCAST, kind);
        let bytes = [ethernet.as_bytes(), &packet].concat();
        let mut main = self.graph.main();
        let Ok(mut buffer) = main.cache().alloc_data(&bytes) else { return };
        let mut pkt = main.cache().packet(&mut buffer);
        if of.tag(&mut pkt).is_none() {
            return;
        }
        let meta = pkt.meta_mut();
        meta.tx = interface;
        meta.flags = meta.flags.with(Flags::LOCALLY_ORIGINATED);
        main.inject(self.interfaces.output_node(), buffer);
    }

    /// Sends a datagram to a station that the forwarding table knows the way to.
    fn send(&self, table: FibIndex, ends: (IpAddr, u16, IpAddr, u16), tos: u8, data: &[u8]) {
        let (source, from, destination, to) = ends;
        let datagram = Datagram {
            source: (source, from),
            destination: (destination, to),
            table,
            hops: HOPS,
            tos,
            checksum: Checksum::Computed,
        };
        if let Err(e) = datagram.send(&self.graph, data) {
            tracing::debug!("nothing is sent to {destination}: {e}");
        }
    }

    /// An interface goes.
    fn forget(&self, interface: SwIfIndex) {
        let client = self.clients.borrow_mut().remove(&interface);
        if let Some(client) = client {
            self.unbind(interface, &client);
            self.renew_ports();
        }
        self.forget6(interface);
    }
}

/// Any IPv4 address, and all.
const ANY: IpAddr = IpAddr::V4(Ipv4Addr::UNSPECIFIED);
const ALL: IpAddr = IpAddr::V4(Ipv4Addr::BROADCAST);
/// All servers and relays of a link.
const ALL_SERVERS: Ipv6Addr = Ipv6Addr::new(0xff02, 0, 0, 0, 0, 0, 1, 2);
