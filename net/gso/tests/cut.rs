//! Large packets in, packets out; each case in both families.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use std::net::IpAddr;

use shoal_buffer::Flags;
use shoal_fib::Family;
use shoal_gso::{Cutting, Gso, GsoError};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_pg::CreateInterface;
use shoal_testkit::{InjectedPacket, PacketBuilder, PacketInjector, Port, Rng, Router, STACK};
use shoal_wire::checksum::Sum;
use shoal_wire::{IpProtocol, MacAddress};

const FAMILIES: [Family; 2] = [Family::Ip4, Family::Ip6];
const ETH: usize = 14;

/// Packets come in by the first port and leave by the second, whose device takes large packets of this size, or none.
fn router(gso_size: Option<u16>) -> (Router, Vec<Port>) {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_gso::MODULE]);
    let mut router = Router::new(&modules);
    let out = CreateInterface { id: 1, gso_size, ..CreateInterface::default() };
    let ports = vec![router.pg(0), router.pg_with(&out)];
    for (n, port) in ports.iter().enumerate() {
        let (ip4, ip6) = (router.get::<Ip4>(), router.get::<Ip6>());
        ip4.add_address(port.index(), format!("10.0.{n}.1/24").parse().unwrap()).unwrap();
        ip6.add_address(port.index(), format!("2001:db8:{n}::1/64").parse().unwrap()).unwrap();
        let (mac, i) = (MacAddress([2, 0xaa, 0, 0, 0, n as u8]), port.index());
        let arp = router.get::<shoal_arp::Neighbours>();
        arp.set((i, format!("10.0.{n}.2").parse().unwrap()), mac, Origin::Static, FibEntry::Wanted).unwrap();
        let nd = router.get::<shoal_ip6_nd::Neighbours>();
        nd.set((i, format!("2001:db8:{n}::2").parse().unwrap()), mac, Origin::Static, FibEntry::Wanted)
            .unwrap();
    }
    router.advance(std::time::Duration::from_secs(3));
    for port in &ports {
        port.received();
    }
    (router, ports)
}

fn addresses(family: Family) -> (IpAddr, IpAddr) {
    match family {
        Family::Ip4 => ("10.0.0.2".parse().unwrap(), "10.0.1.2".parse().unwrap()),
        Family::Ip6 => ("2001:db8::2".parse().unwrap(), "2001:db8:1::2".parse().unwrap()),
    }
}

fn transport(family: Family) -> usize {
    ETH + if family == Family::Ip4 { 20 } else { 40 }
}

fn pseudo(family: Family, protocol: IpProtocol, len: usize) -> Sum {
    match addresses(family) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => Sum::pseudo_ip4(src, dst, protocol, len as u16),
        (IpAddr::V6(src), IpAddr::V6(dst)) => Sum::pseudo_ip6(src, dst, protocol, len as u32),
        _ => unreachable!("{family}"),
    }
}

/// A large packet as a TAP would hand it over: TCP, or UDP.
fn large(family: Family, port: &Port, tcp: bool, payload: &[u8], size: u16) -> InjectedPacket {
    let frame = PacketBuilder::ethernet([2, 0xaa, 0, 0, 0, 0], port.mac());
    let frame = match addresses(family) {
        (IpAddr::V4(src), IpAddr::V4(dst)) => frame.ip4(src, dst),
        (IpAddr::V6(src), IpAddr::V6(dst)) => frame.ip6(src, dst),
        _ => unreachable!("{family}"),
    };
    let header: Vec<u8> = if tcp {
        vec![0, 80, 4, 0, 0, 0, 1, 0, 0, 0, 0, 0, 0x50, 0x99, 2, 0, 0, 0, 0, 0]
    } else {
        let len = (8 + payload.len()) as u16;
        [&[0, 80, 4, 0][..], &len.to_be_bytes(), &[0, 0]].concat()
    };
    let protocol = if tcp { IpProtocol::TCP } else { IpProtocol::UDP };
    let bytes = frame.payload(&[&header, payload].concat()).protocol(protocol).build();
    let kind = match (tcp, family) {
        (false, _) => Flags::GSO_UDP,
        (true, Family::Ip4) => Flags::GSO_TCP4,
        (true, Family::Ip6) => Flags::GSO_TCP6,
    };
    InjectedPacket {
        bytes,
        flags: Flags::GSO.with(Flags::L4_CHECKSUM_OFFLOAD).with(Flags::L4_CHECKSUM_OK).with(kind),
        gso_size: size,
        l4: transport(family) as i16,
        checksum_offset: if tcp { 16 } else { 6 },
        gso_header: header.len() as u16,
        ..InjectedPacket::default()
    }
}

fn cut(router: &Router, family: Family, what: &str) -> u64 {
    router.error(&format!("gso-{family}"), what)
}

#[test]
fn large_packets_are_counted_as_errors_without_it_and_cut_with_it() {
    for family in FAMILIES {
        for (tcp, header) in [(true, 20), (false, 8)] {
            let (mut router, ports) = router(None);
            let giver = PacketInjector::new(&router, &ports[0], 0);
            let payload: Vec<u8> = (0..30_000u32).map(|i| (i / 7) as u8).collect();
            let given = large(family, &ports[0], tcp, &payload, 1400);
            giver.give(given.clone());
            router.run();
            assert_eq!(ports[1].received().len(), 1, "it leaves in one piece");
            assert_eq!(router.error("pg1-tx", "gso disabled on itf  -- gso packet drop"), 1);

            router.get::<Gso>().set(ports[1].index(), Cutting::On).unwrap();
            giver.give(given.clone());
            router.run();
            let pieces = ports[1].received();
            assert_eq!(pieces.len(), 22, "{family}, tcp {tcp}");
            let mut together = Vec::new();
            for (n, piece) in pieces.iter().enumerate() {
                let l4 = &piece[transport(family)..];
                let protocol = if tcp { IpProtocol::TCP } else { IpProtocol::UDP };
                let mut sum = pseudo(family, protocol, l4.len());
                sum.add(l4);
                assert_eq!(sum.folded(), 0xffff, "{family}: checksum of piece {n}");
                if tcp {
                    let seq = u32::from_be_bytes(l4[4..8].try_into().unwrap());
                    assert_eq!(seq as usize, 256 + together.len());
                    let flags = 0x10 | if n == 0 { 0x80 } else { 0 } | if n == 21 { 9 } else { 0 };
                    assert_eq!(l4[13], flags, "piece {n}");
                } else {
                    assert_eq!(usize::from(u16::from_be_bytes([l4[4], l4[5]])), l4.len());
                }
                match family {
                    Family::Ip4 => {
                        let ip = &piece[ETH..ETH + 20];
                        assert_eq!(usize::from(u16::from_be_bytes([ip[2], ip[3]])), piece.len() - ETH);
                        assert_eq!(shoal_wire::checksum::checksum(ip), 0, "piece {n}");
                        let id = u16::from_be_bytes([given.bytes[18], given.bytes[19]]);
                        assert_eq!(u16::from_be_bytes([ip[4], ip[5]]), id.wrapping_add(n as u16));
                        assert_eq!(ip[8], 63, "a hop was taken off each");
                    }
                    Family::Ip6 => {
                        let ip = &piece[ETH..ETH + 40];
                        assert_eq!(usize::from(u16::from_be_bytes([ip[4], ip[5]])), piece.len() - ETH - 40);
                        assert_eq!(ip[7], 63, "a hop was taken off each");
                    }
                }
                together.extend_from_slice(&l4[header..]);
            }
            assert!(together == payload, "{family}, tcp {tcp}");
            assert_eq!((cut(&router, family, "cut"), cut(&router, family, "made")), (1, 22));
            // Off again, others pass as ever.
            router.get::<Gso>().set(ports[1].index(), Cutting::Off).unwrap();
            giver.give(given);
            router.run();
            assert_eq!(ports[1].received().len(), 1);
        }
    }
}

#[test]
fn pieces_are_no_longer_than_a_buffer_as_in_vpp() {
    for family in FAMILIES {
        let (mut router, ports) = router(None);
        for port in &ports {
            router.interfaces().set_mtu(port.index(), shoal_interface::MtuLayer::L3, 9000).unwrap();
        }
        router.get::<Gso>().set(ports[1].index(), Cutting::On).unwrap();
        let giver = PacketInjector::new(&router, &ports[0], 0);
        let payload: Vec<u8> = (0..50_000u32).map(|i| (i / 3) as u8).collect();
        giver.give(large(family, &ports[0], true, &payload, 8900));
        router.run();
        let pieces = ports[1].received();
        assert_eq!(pieces.iter().map(Vec::len).max(), Some(shoal_buffer::DATA_SIZE), "{family}");
        let together: Vec<u8> = pieces.iter().flat_map(|p| &p[transport(family) + 20..]).copied().collect();
        assert!(together == payload, "{family}");
        for piece in pieces {
            let l4 = &piece[transport(family)..];
            let mut sum = pseudo(family, IpProtocol::TCP, l4.len());
            sum.add(l4);
            assert_eq!(sum.folded(), 0xffff, "{family}");
        }
    }
}

#[test]
fn a_device_that_takes_large_packets_gets_them_whole() {
    for family in FAMILIES {
        let (mut router, ports) = router(Some(1460));
        router.get::<Gso>().set(ports[1].index(), Cutting::On).unwrap();
        let giver = PacketInjector::new(&router, &ports[0], 0);
        giver.give(large(family, &ports[0], true, &vec![5; 20_000], 1400));
        router.run();
        assert_eq!(ports[1].received_one().len(), 20_000 + transport(family) + 20);
        assert_eq!(cut(&router, family, "cut"), 0);
    }
}

#[test]
fn what_lies_about_itself_is_dropped_and_counted() {
    for family in FAMILIES {
        let (mut router, ports) = router(None);
        router.get::<Gso>().set(ports[1].index(), Cutting::On).unwrap();
        let giver = PacketInjector::new(&router, &ports[0], 0);
        let good = || large(family, &ports[0], true, &[5; 4000], 1400);
        let bad: Vec<(&str, InjectedPacket)> = vec![
            (
                "UDP that is TCP",
                InjectedPacket {
                    flags: good()
                        .flags
                        .without(Flags::GSO_TCP4)
                        .without(Flags::GSO_TCP6)
                        .with(Flags::GSO_UDP),
                    ..good()
                },
            ),
            ("no kind", InjectedPacket { flags: Flags::GSO.with(Flags::L4_CHECKSUM_OFFLOAD), ..good() }),
            ("checksum behind the segment", InjectedPacket { checksum_offset: 3000, ..good() }),
            (
                "transport inside the network header",
                InjectedPacket { l4: transport(family) as i16 - 8, ..good() },
            ),
            ("1,025 pieces", large(family, &ports[0], true, &[5; 1025], 1)),
        ];
        let all = bad.len() as u64;
        for (what, given) in bad {
            giver.give(given);
            router.run();
            assert!(ports[1].received().is_empty(), "{family}: {what}");
        }
        assert_eq!(cut(&router, family, "invalid"), all, "{family}: {:?}", router.errors());
        giver.give(large(family, &ports[0], true, &[5; 1024], 1));
        router.run();
        assert_eq!(ports[1].received().len(), 1024, "{family}");
    }
}

#[test]
fn an_exhausted_pool_is_counted_and_nothing_is_kept() {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_gso::MODULE]);
    for family in FAMILIES {
        let (mut router, ports) = router(None);
        router.get::<Gso>().set(ports[1].index(), Cutting::On).unwrap();
        let giver = PacketInjector::new(&router, &ports[0], 0);
        // 8 of them want more buffers than there are, all in one frame.
        for _ in 0..8 {
            giver.give(large(family, &ports[0], true, &[5; 1000], 1));
        }
        router.run();
        let sent = ports[1].received().len();
        assert!(sent < 8000 && sent > 2000, "{sent}");
        assert!(cut(&router, family, "no_buffer") > 0, "{:?}", router.errors());
    }
}

#[test]
fn random_metadata_never_harms() {
    let mut rng = Rng::new(Rng::seed(5));
    for family in FAMILIES {
        let (mut router, ports) = router(None);
        router.interfaces().set_mtu(ports[1].index(), shoal_interface::MtuLayer::L3, 1500).unwrap();
        router.get::<Gso>().set(ports[1].index(), Cutting::On).unwrap();
        let giver = PacketInjector::new(&router, &ports[0], 0);
        for _ in 0..1000 {
            let mut given = large(
                family,
                &ports[0],
                rng.below(2) == 0,
                &vec![1; rng.below(6000)],
                rng.below(3000) as u16,
            );
            match rng.below(5) {
                0 => given.l4 = rng.below(400) as i16 - 150,
                1 => given.checksum_offset = rng.below(70_000) as u16,
                2 => given.gso_header = rng.below(70_000) as u16,
                3 => {
                    let at = ETH + rng.below(given.bytes.len() - ETH);
                    given.bytes[at] = rng.below(256) as u8;
                }
                _ => given.cuts = vec![rng.below(80), rng.below(80)],
            }
            giver.give(given);
        }
        router.run();
        for piece in ports[1].received() {
            // Metadata may claim that the TCP header has no options: only this test writes such a lie.
            assert!(piece.len() <= 1514 + 40, "{family}: {} bytes", piece.len());
        }
    }
}

#[test]
fn merging_undoes_cutting_on_the_way_out() {
    for family in FAMILIES {
        // What one router cuts ...
        let (mut router, ports) = router(None);
        router.get::<Gso>().set(ports[1].index(), Cutting::On).unwrap();
        let giver = PacketInjector::new(&router, &ports[0], 0);
        let payload: Vec<u8> = (0..30_000u32).map(|i| (i / 7) as u8).collect();
        let mut given = large(family, &ports[0], true, &payload, 1400);
        // Without CWR, which is sent once, and FIN, which ends a connection: neither is merged with anything.
        given.bytes[transport(family) + 13] &= 0x7e;
        giver.give(given);
        router.run();
        let pieces = ports[1].received();
        drop((giver, router));
        // ... another one merges, as long as it is told to.
        for on in [true, false] {
            let (mut router, ports) = self::router(Some(1460));
            router.generator().set_coalesce(ports[1].index(), on).unwrap();
            let again = pieces.iter().map(|piece| [&ports[0].mac().0[..], &piece[6..]].concat());
            router.send_all(&ports[0], again);
            router.run();
            if !on {
                assert_eq!(ports[1].received().len(), 22);
                continue;
            }
            let merged = ports[1].received_one();
            assert!(merged[transport(family) + 20..] == payload[..], "{family}");
            assert_eq!(router.error("pg1-tx", "merged"), 21);
        }
    }
}

#[test]
fn an_interface_that_is_not_there_is_refused() {
    let (router, _) = router(None);
    let error = router.get::<Gso>().set(shoal_interface::SwIfIndex(99), Cutting::On).unwrap_err();
    assert!(matches!(error, GsoError::Interface(_)), "{error}");
}
