//! Mirrors at the device, of routed interfaces.

use std::rc::Rc;
use std::time::Duration;

use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_interface::SwIfIndex;
use shoal_module::Running;
use shoal_span::{Level, MODULE, Mirror, MirrorDirections, Span};
use shoal_testkit::{PEER_MAC, PacketBuilder, Port, Router, STACK};

/// A router between two networks, and two ports that listen.
pub struct World {
    pub router: Router,
    pub ports: Vec<Port>,
    pub span: Rc<Span>,
}

impl World {
    pub fn new() -> World {
        let mut modules = STACK.to_vec();
        modules.extend([&shoal_ip6_nd::MODULE, &shoal_l2::MODULE, &shoal_bridge::MODULE, &MODULE]);
        let mut router = Router::new(&modules);
        let ports: Vec<Port> = (0..4).map(|n| router.pg(n)).collect();
        let (ip6, nd) = (router.get::<shoal_ip6::Ip6>(), router.get::<shoal_ip6_nd::Neighbours>());
        for (n, port) in ports[..2].iter().enumerate() {
            router.set_address(port, &format!("10.0.{n}.1/24"));
            router.set_neighbour(port, [10, 0, n as u8, 2].into(), PEER_MAC);
            ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
            let (kind, route) =
                (shoal_neighbor::table::Origin::Static, shoal_neighbor::table::FibEntry::Wanted);
            let hop = format!("2001:db8:{n}::2").parse().unwrap();
            nd.set((port.index(), hop), PEER_MAC, kind, route).unwrap();
        }
        router.advance(Duration::from_secs(3));
        for port in &ports {
            drop(port.received());
        }
        let span = router.get::<Span>();
        World { router, ports, span }
    }

    pub fn index(&self, port: usize) -> SwIfIndex {
        self.ports[port].index()
    }

    pub fn set(&self, source: usize, destination: usize, ways: MirrorDirections) {
        self.span.set(Level::Device, self.index(source), self.index(destination), ways).unwrap();
    }

    /// A packet of `len` bytes for the network of port 1, as port 0 receives it.
    pub fn packet(&self, len: usize) -> Vec<u8> {
        let start = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 9], self.ports[0].mac());
        start.ip4([10, 0, 0, 2], [10, 0, 1, 2]).udp(1, 2).payload_len(len).build()
    }

    fn packet6(&self) -> Vec<u8> {
        let start = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 9], self.ports[0].mac());
        let address = |net| [0x2001, 0xdb8, net, 0, 0, 0, 0, 2];
        start.ip6(address(0), address(1)).udp(1, 2).payload(b"payload").build()
    }

    pub fn running(&self) -> String {
        let mut running = Running::default();
        (MODULE.running)(self.router.control(), &mut running);
        running.pieces().collect()
    }
}

#[test]
fn what_comes_in_and_goes_out_is_seen_as_it_is_on_the_wire() {
    let mut world = World::new();
    let small = [world.packet(20), world.packet6()];
    let large = world.packet(1400);
    world.set(0, 2, MirrorDirections::RX);
    world.set(1, 3, MirrorDirections::BOTH);
    for packet in small.iter().chain([&large]) {
        let port = world.ports[0].clone();
        world.router.send(&port, packet);
        let sent = world.ports[1].received_one();
        assert_ne!(&sent, packet, "it was routed");
        assert_eq!(&world.ports[2].received_one(), packet);
        assert_eq!(world.ports[3].received_one(), sent);
    }
    assert_eq!(world.router.error("span-input", "SPAN incoming packets processed"), 3);
    assert_eq!(world.router.error("span-output", "SPAN incoming packets processed"), 3);
    world.set(0, 2, MirrorDirections::TX);
    let port = world.ports[0].clone();
    world.router.send(&port, &large);
    assert!(world.ports[2].received().is_empty(), "it was received");
    assert_eq!(world.ports[3].received().len(), 1);
}

#[test]
fn one_interface_has_many_mirrors_and_one_mirror_many_interfaces() {
    let mut world = World::new();
    for to in [2, 3] {
        world.set(0, to, MirrorDirections::BOTH);
        world.set(1, to, MirrorDirections::BOTH);
    }
    let (port, packets) = (world.ports[0].clone(), [world.packet(1400), world.packet(1), world.packet(700)]);
    world.router.send_all(&port, &packets);
    let sent = world.ports[1].received();
    for to in [2, 3] {
        let mut seen = world.ports[to].received();
        assert_eq!(seen.len(), 6);
        seen.retain(|frame| !packets.contains(frame));
        assert_eq!(seen, sent);
    }
    world.span.clear(Level::Device, world.index(0)).unwrap();
    world.router.send_all(&port, &packets);
    assert_eq!((world.ports[2].received().len(), world.ports[3].received().len()), (3, 3));
}

#[test]
fn a_copy_is_not_mirrored_again() {
    let mut world = World::new();
    // In a circle, in both ways.
    for (from, to) in [(0, 2), (2, 3), (3, 0), (1, 0), (0, 1)] {
        world.set(from, to, MirrorDirections::BOTH);
    }
    let (port, packet) = (world.ports[0].clone(), world.packet(1000));
    world.router.send(&port, &packet);
    let seen: Vec<usize> = world.ports.iter().map(|port| port.received().len()).collect();
    assert_eq!(seen, [1, 2, 1, 0], "0 sees what 1 sends, 1 what 0 receives besides the packet itself");
}

#[test]
fn a_port_is_mirrored_with_its_sub_interfaces() {
    let mut world = World::new();
    let outer = Vid::new(7).unwrap();
    let takes = Match::Tags { kind: TagKind::Dot1q, outer, inner: Inner::None, exact: Exact::Yes };
    let sub = world.router.get::<Ethernet>().create_sub(world.index(1), 7, takes).unwrap();
    world.router.interfaces().set_admin(sub, true).unwrap();
    let ip4 = world.router.get::<shoal_ip4::Ip4>();
    ip4.add_address(sub, "10.0.7.1/24".parse().unwrap()).unwrap();
    let (kind, route) = (shoal_neighbor::table::Origin::Static, shoal_neighbor::table::FibEntry::Wanted);
    let arp = world.router.get::<shoal_arp::Neighbours>();
    arp.set((sub, [10, 0, 7, 2].into()), PEER_MAC, kind, route).unwrap();
    world.router.run();
    for port in &world.ports {
        drop(port.received());
    }
    world.set(1, 2, MirrorDirections::BOTH);
    let start = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 9], world.ports[0].mac());
    let packet = start.ip4([10, 0, 0, 2], [10, 0, 7, 2]).udp(1, 2).build();
    let port = world.ports[0].clone();
    world.router.send(&port, &packet);
    let sent = world.ports[1].received_one();
    assert_eq!(sent[12..16], [0x81, 0, 0, 7]);
    assert_eq!(world.ports[2].received_one(), sent);
    // The sub-interface alone, to another one too; one copy each.
    let set = |to, ways| world.span.set(Level::Device, sub, to, ways);
    assert!(set(world.index(3), MirrorDirections::BOTH).unwrap_err().to_string().contains("sub-interface"));
    set(world.index(3), MirrorDirections::TX).unwrap();
    set(world.index(2), MirrorDirections::TX).unwrap();
    world.router.send(&port, &packet);
    assert_eq!((world.ports[2].received_one(), world.ports[3].received_one()), (sent.clone(), sent));
}

#[test]
fn a_mirror_ends_with_either_interface_and_its_index_says_nothing_of_the_next_one() {
    let mut world = World::new();
    let (port, packet) = (world.ports[0].clone(), world.packet(900));
    world.set(0, 2, MirrorDirections::BOTH);
    world.set(0, 3, MirrorDirections::RX);
    world.set(3, 2, MirrorDirections::RX);
    let gone = world.index(2);
    world.router.interfaces().delete(gone).unwrap();
    assert_eq!(world.span.list().len(), 1);
    let again = world.router.pg(9);
    assert_eq!(again.index(), gone, "the index is used again");
    world.router.send(&port, &packet);
    assert!(again.received().is_empty());
    assert_eq!(world.ports[3].received_one(), packet);
    world.ports[1].received_one();
    world.router.interfaces().delete(world.index(0)).unwrap();
    assert!(world.span.list().is_empty());
    let new = world.router.pg(8);
    world.router.send(&new, &packet);
    assert!(world.ports[3].received().is_empty());
}

#[test]
fn traces_and_commands_tell_names_also_new_ones() {
    let mut world = World::new();
    world.set(0, 2, MirrorDirections::RX);
    world.set(0, 3, MirrorDirections::BOTH);
    world.span.set(Level::L2, world.index(1), world.index(3), MirrorDirections::TX).unwrap();
    world.router.interfaces().rename(world.index(2), "probe").unwrap();
    assert_eq!(
        world.running(),
        "# policies\nset interface span pg0 destination probe rx\nset interface span pg0 destination pg3 both\n\
         set interface span pg1 l2 destination pg3 tx\n"
    );
    let list = world.span.list();
    let [source, destination] = [1, 3].map(|n| world.index(n));
    assert_eq!(
        list[2],
        Mirror { source, destination, device: MirrorDirections::NONE, l2: MirrorDirections::TX }
    );
    world.router.trace_add("pg-input", 1);
    let (port, packet) = (world.ports[0].clone(), world.packet(1400));
    world.router.send(&port, &packet);
    let trace = world.router.trace();
    for line in ["SPAN: mirrored pg0 -> probe", "SPAN: mirrored pg0 -> pg3"] {
        assert!(trace.contains(line), "{trace}");
    }
    for port in &world.ports {
        drop(port.received());
    }
}
