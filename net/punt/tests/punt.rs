//! What is punted, where it goes and how much of it, for both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use shoal_fib::{Family, Fib, FibIndex, Path, Source, Via};
use shoal_icmp::limiter::Rate;
use shoal_interface::{HostEventHandler, HostListener, HostPort, HostPorts, HostSide, Interfaces, SwIfIndex};
use shoal_ip::ListenerTable;
use shoal_ip4::Ip4Family;
use shoal_ip6::Ip6;
use shoal_lcp::Lcp;
use shoal_module::{Control, InitError, Module};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_pg::{CreateInterface, Pg};
use shoal_punt::{L4, Punt, PuntError, Registered, RegistrationState, Rx};
use shoal_testkit::{PEER, PEER_MAC, PacketBuilder, Port, Rng, Router};
use shoal_wire::{IpPrefix, IpProtocol, MacAddress, TcpFlags};

const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_neighbor::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_punt::MODULE,
    &shoal_mfib::MODULE,
    &shoal_lcp::MODULE,
    &shoal_pg::MODULE,
    &FAKE,
];

/// Stands in for the TAP driver: `pg100`.
static FAKE: Module = Module { name: "fake", init: init_fake, ..Module::NONE };

struct Fake(Rc<Pg>, Rc<Interfaces>);

fn init_fake(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(HostSide(Rc::new(Fake(control.get()?, control.get()?))));
    Ok(())
}

/// The kernel says nothing.
struct SilentKernel;

impl HostListener for SilentKernel {
    fn audit(&self) {}
}

impl HostPorts for Fake {
    fn create(&self, _: &HostPort) -> Result<SwIfIndex, String> {
        let mac = Some(MacAddress([2, 0xfe, 0, 0, 1, 100]));
        let create = CreateInterface { id: 100, mac, ..CreateInterface::default() };
        self.0.create_interface(&create).map_err(|e| e.to_string())
    }

    fn delete(&self, interface: SwIfIndex) -> Result<(), String> {
        self.1.delete(interface).map_err(|e| e.to_string())
    }

    fn host_index(&self, _: SwIfIndex) -> Option<u32> {
        None
    }

    fn set_up(&self, _: SwIfIndex, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn is_up(&self, _: SwIfIndex) -> Option<bool> {
        None
    }

    fn set_carrier(&self, _: SwIfIndex, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn listen(&self, _: Option<&str>, _: HostEventHandler) -> Result<Box<dyn HostListener>, String> {
        Ok(Box::new(SilentKernel))
    }

    fn set_mtu(&self, _: SwIfIndex, _: u16) -> Result<(), String> {
        Ok(())
    }

    fn set_mac(&self, _: SwIfIndex, _: MacAddress) -> Result<(), String> {
        Ok(())
    }

    fn set_address(&self, _: SwIfIndex, _: (IpAddr, u8), _: bool) -> Result<(), String> {
        Ok(())
    }
}

const COLLECTOR: MacAddress = MacAddress([2, 0xcc, 0, 0, 0, 9]);

fn six(net: u16, host: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, net, 0, 0, 0, 0, host)
}

fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// `pg0` with peers, and `pg1` with a collector of punted packets, 10.0.1.9 and 2001:db8:1::9.
fn router() -> (Router, Port, Port) {
    let mut router = Router::new(MODULES);
    let (a, b) = (router.pg(0), router.pg(1));
    router.set_address(&a, "10.0.0.1/24");
    router.set_address(&b, "10.0.1.1/24");
    let ip6 = router.get::<Ip6>();
    ip6.add_address(a.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    ip6.add_address(b.index(), "2001:db8:1::1/64".parse().unwrap()).unwrap();
    router.set_neighbour(&a, PEER, PEER_MAC);
    router.set_neighbour(&b, [10, 0, 1, 9].into(), COLLECTOR);
    let neighbours = router.get::<shoal_ip6_nd::Neighbours>();
    neighbours.set((a.index(), six(0, 2)), PEER_MAC, Origin::Static, FibEntry::Wanted).unwrap();
    neighbours.set((b.index(), six(1, 9)), COLLECTOR, Origin::Static, FibEntry::Wanted).unwrap();
    router.advance(std::time::Duration::from_secs(10));
    drop((a.received(), b.received()));
    (router, a, b)
}

fn to_us(a: &Port, family: Family) -> PacketBuilder {
    let packet = PacketBuilder::ethernet(PEER_MAC, a.mac());
    match family {
        Family::Ip4 => packet.ip4(PEER, [10, 0, 0, 1]),
        Family::Ip6 => packet.ip6(six(0, 2), six(0, 1)),
    }
}

fn udp(a: &Port, family: Family, port: u16) -> Vec<u8> {
    to_us(a, family).udp(1000, port).payload_len(30).build()
}

fn tcp(a: &Port, family: Family) -> Vec<u8> {
    to_us(a, family).tcp(1000, 179, TcpFlags::SYN).build()
}

fn set(router: &Router, family: Family, l4: L4, standing: RegistrationState) -> Result<(), PuntError> {
    router.get::<Punt>().set(Registered { family, l4 }, standing)
}

fn collector(family: Family, b: &Port) -> Path {
    let next_hop = if family == Family::Ip4 { ip("10.0.1.9") } else { ip("2001:db8:1::9") };
    Path::next_hop(next_hop, b.index())
}

/// How many packets had no taker.
fn untaken(router: &Router) -> u64 {
    router.counter("/if/punt")
}

#[test]
fn what_is_punted_is_not_refused_and_the_rest_is() {
    for family in Family::ALL {
        let (mut router, a, _) = router();
        let punted = |router: &mut Router, frame: Vec<u8>| {
            let before = untaken(router);
            router.send(&a, frame);
            (untaken(router) - before, a.received().len())
        };
        assert_eq!(punted(&mut router, udp(&a, family, 53)), (0, 1), "refused");
        for (l4, frame, other) in [
            (L4::Udp(53), udp(&a, family, 53), udp(&a, family, 54)),
            (L4::AllTcp, tcp(&a, family), udp(&a, family, 53)),
            (
                L4::Protocol(89),
                to_us(&a, family).protocol(IpProtocol::OSPF).payload_len(44).build(),
                tcp(&a, family),
            ),
        ] {
            set(&router, family, l4, RegistrationState::Punted).unwrap();
            assert_eq!(punted(&mut router, frame.clone()), (1, 0), "{l4:?}");
            assert_eq!(punted(&mut router, other), (0, 1), "{l4:?}");
            set(&router, family, l4, RegistrationState::NotPunted).unwrap();
            assert_eq!(punted(&mut router, frame), (0, 1), "{l4:?}");
        }
        // All of UDP and one port: each is taken back alone.
        set(&router, family, L4::Udp(53), RegistrationState::Punted).unwrap();
        set(&router, family, L4::AllUdp, RegistrationState::Punted).unwrap();
        assert_eq!(punted(&mut router, udp(&a, family, 60_000)), (1, 0));
        set(&router, family, L4::AllUdp, RegistrationState::NotPunted).unwrap();
        assert_eq!(punted(&mut router, udp(&a, family, 60_000)), (0, 1));
        assert_eq!(punted(&mut router, udp(&a, family, 53)), (1, 0));
        set(&router, family, L4::AllUdp, RegistrationState::Punted).unwrap();
        set(&router, family, L4::Udp(53), RegistrationState::NotPunted).unwrap();
        assert_eq!(punted(&mut router, udp(&a, family, 53)), (1, 0));
        // Who counts is not the other family.
        let other = if family == Family::Ip4 { Family::Ip6 } else { Family::Ip4 };
        assert_eq!(punted(&mut router, udp(&a, other, 53)), (0, 1));
    }
}

#[test]
fn the_host_gets_what_is_punted_where_it_has_an_image() {
    for family in Family::ALL {
        let (mut router, a, _) = router();
        let host = router.get::<Lcp>().create(a.index(), "e0", None).unwrap();
        let sink = router.generator().attach_sink(host).unwrap();
        sink.take();
        set(&router, family, L4::AllUdp, RegistrationState::Punted).unwrap();
        set(&router, family, L4::AllTcp, RegistrationState::Punted).unwrap();
        for frame in [udp(&a, family, 53), tcp(&a, family)] {
            router.send(&a, &frame);
            let got = sink.take();
            assert_eq!((got.len(), a.received().len()), (1, 0));
            assert_eq!(got[0][12..], frame[12..]);
        }
        // A limit for the host's sake.
        router.get::<Punt>().set_rate(family, Some(Rate { per_second: 1, burst: 2 })).unwrap();
        router.send_all(&a, (0..10).map(|_| udp(&a, family, 53)));
        assert_eq!(sink.take().len(), 2);
    }
}

#[test]
fn punted_packets_are_redirected_by_where_they_came_in() {
    for family in Family::ALL {
        let (mut router, a, b) = router();
        let punt = router.get::<Punt>();
        let node = if family == Family::Ip4 { "ip4-punt-redirect" } else { "ip6-punt-redirect" };
        set(&router, family, L4::AllUdp, RegistrationState::Punted).unwrap();
        punt.redirect(family, Rx::All, &[collector(family, &b)]).unwrap();
        router.send(&a, udp(&a, family, 53));
        assert_eq!(b.received_one()[..6], COLLECTOR.0);
        // As VPP: with a redirect the same holds for packets without a taker, but not for unexpected UDP.
        for frame in [tcp(&a, family), to_us(&a, family).protocol(IpProtocol::OSPF).payload_len(44).build()] {
            router.send(&a, frame);
            assert_eq!((b.received_one()[..6] == COLLECTOR.0, a.received().len()), (true, 0));
        }
        punt.redirect(family, Rx::Interface(a.index()), &[Via::Drop.into()]).unwrap();
        router.send(&a, udp(&a, family, 53));
        assert_eq!((b.received().len(), router.error(node, "redirected")), (0, 4));
        punt.redirect(family, Rx::Interface(b.index()), &[Via::Drop.into()]).unwrap();
        punt.end_redirect(family, Rx::Interface(a.index())).unwrap();
        router.send(&a, udp(&a, family, 53));
        b.received_one();
        assert_eq!(punt.redirects(family).len(), 2);
        // What a route punts goes the same way.
        let prefix: IpPrefix =
            if family == Family::Ip4 { "20.0.0.0/8" } else { "2001:db8:f::/48" }.parse().unwrap();
        router.get::<Fib>().add(FibIndex(0), prefix, Source::Cli, &[Via::Punt.into()]).unwrap();
        let frame = PacketBuilder::ethernet(PEER_MAC, a.mac());
        let frame = match family {
            Family::Ip4 => frame.ip4(PEER, [20, 1, 1, 1]),
            Family::Ip6 => frame.ip6(six(0, 2), six(0xf, 1)),
        };
        router.send(&a, frame.udp(1, 2).payload_len(20).build());
        b.received_one();
        // An interface takes its way along, one that is led to as well.
        router.interfaces().delete(b.index()).unwrap();
        assert_eq!(punt.redirects(family).len(), 1);
        let before = b.received().len();
        router.send(&a, udp(&a, family, 53));
        assert_eq!(b.received().len(), before);
        punt.end_redirect(family, Rx::All).unwrap();
        router.send(&a, tcp(&a, family));
        assert_eq!(a.received().len(), 1, "its sender is told");
        router.send(&a, udp(&a, family, 53));
        assert_eq!((untaken(&router) > 0, punt.redirects(family).len()), (true, 0));
        assert_eq!(router.get::<Fib>().check(), Vec::<String>::new());
    }
}

#[test]
fn the_policer_lets_so_many_through_and_counts_the_rest() {
    for family in Family::ALL {
        let (mut router, a, b) = router();
        let punt = router.get::<Punt>();
        let node = if family == Family::Ip4 { "ip4-punt-policer" } else { "ip6-punt-policer" };
        set(&router, family, L4::AllUdp, RegistrationState::Punted).unwrap();
        punt.redirect(family, Rx::All, &[collector(family, &b)]).unwrap();
        punt.set_rate(family, Some(Rate { per_second: 10, burst: 5 })).unwrap();
        router.send_all(&a, (0..100).map(|_| udp(&a, family, 53)));
        let dropped =
            |router: &Router| router.error(node, "more punted packets than the policer lets through");
        assert_eq!((b.received().len(), dropped(&router)), (5, 95));
        router.advance(std::time::Duration::from_millis(200));
        b.received();
        router.send_all(&a, (0..100).map(|_| udp(&a, family, 53)));
        assert_eq!((b.received().len(), dropped(&router)), (2, 193));
        punt.set_rate(family, None).unwrap();
        router.send_all(&a, (0..100).map(|_| udp(&a, family, 53)));
        assert_eq!((b.received().len(), punt.rate(family)), (100, None));
    }
}

#[test]
fn what_cannot_be_punted_is_refused_and_changes_nothing() {
    let (router, a, b) = router();
    let punt = router.get::<Punt>();
    let graph = router.graph();
    let edge = graph.add_edge(graph.node("ip4-local").unwrap(), graph.node("drop").unwrap()).unwrap();
    let listeners = router.get::<ListenerTable<Ip4Family>>();
    listeners.set_udp(67, Some(edge));
    listeners.set_protocol(IpProtocol::OSPF, Some(edge));
    let refused = |family, l4, standing| set(&router, family, l4, standing).unwrap_err().to_string();
    assert_eq!(
        refused(Family::Ip4, L4::Udp(67), RegistrationState::Punted),
        "UDP port 67 of ip4 is this router's own already"
    );
    assert_eq!(
        refused(Family::Ip4, L4::Protocol(89), RegistrationState::Punted),
        "protocol 89 of ip4 is this router's own already"
    );
    assert_eq!(
        refused(Family::Ip6, L4::Tcp(22), RegistrationState::Punted),
        "TCP is punted as a whole, not by port (22): nearest `all'"
    );
    for own in [1, 6, 17, 58] {
        assert!(matches!(
            set(&router, Family::Ip6, L4::Protocol(own), RegistrationState::Punted),
            Err(PuntError::Protocol(_))
        ));
    }
    assert_eq!(
        refused(Family::Ip4, L4::Udp(53), RegistrationState::NotPunted),
        "UDP port 53 of ip4 is not punted"
    );
    // All of UDP leaves what others listen to.
    set(&router, Family::Ip4, L4::AllUdp, RegistrationState::Punted).unwrap();
    assert_eq!(listeners.udp(67), Some(edge));
    set(&router, Family::Ip4, L4::AllUdp, RegistrationState::NotPunted).unwrap();
    assert_eq!((listeners.udp(67), listeners.udp(68)), (Some(edge), None));
    assert!(punt.registered().is_empty());
    let none = punt.end_redirect(Family::Ip4, Rx::Interface(a.index())).unwrap_err();
    assert_eq!(none.to_string(), "nothing received by pg0 is redirected");
    assert!(punt.redirect(Family::Ip4, Rx::Interface(SwIfIndex(99)), &[collector(Family::Ip4, &b)]).is_err());
    assert!(punt.redirect(Family::Ip4, Rx::All, &[]).is_err());
    assert_eq!(
        punt.set_rate(Family::Ip6, Some(Rate { per_second: 0, burst: 1 })).unwrap_err(),
        PuntError::NoRate
    );
    assert!(punt.redirects(Family::Ip4).is_empty());
}

#[test]
fn random_and_truncated_packets_break_nothing() {
    let (mut router, a, b) = router();
    let mut rng = Rng::new(Rng::seed(3));
    for family in Family::ALL {
        set(&router, family, L4::AllUdp, RegistrationState::Punted).unwrap();
        set(&router, family, L4::AllTcp, RegistrationState::Punted).unwrap();
        router.get::<Punt>().redirect(family, Rx::All, &[collector(family, &b)]).unwrap();
        for _ in 0..1000 {
            let mut frame = if rng.one_in(2) { udp(&a, family, 53) } else { tcp(&a, family) };
            for _ in 0..rng.below(4) {
                let at = 14 + rng.below(frame.len() - 14);
                frame[at] = rng.next_u64() as u8;
            }
            frame.truncate(14 + rng.below(frame.len() - 13));
            router.send(&a, frame);
        }
    }
    // Whatever waits for a neighbour gives up.
    router.advance(std::time::Duration::from_secs(20));
    drop((a.received(), b.received()));
}

#[test]
fn udp_ports_are_listed_with_the_node_that_takes_them() {
    let (router, ..) = router();
    let punt = router.get::<Punt>();
    let ports = |family| punt.udp_ports(family).unwrap();
    let before = (ports(Family::Ip4), ports(Family::Ip6));
    set(&router, Family::Ip4, L4::Udp(5353), RegistrationState::Punted).unwrap();
    let mut after = before.0.clone();
    after.push((5353, "ip4-punt".into()));
    after.sort();
    assert_eq!((ports(Family::Ip4), ports(Family::Ip6)), (after.clone(), before.1), "of its family alone");
    set(&router, Family::Ip4, L4::AllUdp, RegistrationState::Punted).unwrap();
    assert_eq!(ports(Family::Ip4), after, "all others are the host's, and are no rows");
    set(&router, Family::Ip4, L4::AllUdp, RegistrationState::NotPunted).unwrap();
    set(&router, Family::Ip4, L4::Udp(5353), RegistrationState::NotPunted).unwrap();
    assert_eq!(ports(Family::Ip4), before.0);
}
