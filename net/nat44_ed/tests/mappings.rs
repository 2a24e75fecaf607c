//! Static mappings of every kind.

use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44_ed::mapping::{External, TwiceNat};
use shoal_nat44_ed::{Balanced, NatError, Purpose, Spec};

use crate::common::{Bed, FAR, HOST, SHARED, bed, ip, packet, read, spec, tuple};

const SYN: u8 = 2;

#[test]
fn a_port_leads_to_its_host_and_the_host_s_own_packets_have_it() {
    let mut bed = bed();
    bed.share(SHARED);
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    let asked = tuple(("192.0.2.2", 999), (SHARED, 8080));
    let came = tuple(("192.0.2.2", 999), ("10.0.0.5", 80));
    assert_eq!(bed.back(asked, TCP, SYN), Some(bed.came(came, TCP, SYN)));
    assert_eq!(bed.out(came.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
    // The host begins.
    let asked = tuple(("10.0.0.5", 80), ("192.0.2.3", 1000));
    let left = tuple((SHARED, 8080), ("192.0.2.3", 1000));
    assert_eq!(bed.out(asked, TCP, SYN), Some(bed.left(left, TCP, SYN)));
    // The port is given to no other session.
    for n in 0..50 {
        let frame = bed.out(tuple(("10.0.0.2", 8080), ("192.0.2.4", 1000 + n)), TCP, SYN).unwrap();
        assert_ne!(read(&frame).sport, 8080);
    }
    // With the mapping its sessions go, the others stay.
    bed.nat().del_mapping(&spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    assert_eq!(bed.sessions().len(), 50);
    assert_eq!(bed.back(tuple(("192.0.2.2", 999), (SHARED, 8080)), TCP, 16), None);
}

#[test]
fn a_whole_address_leads_to_its_host_with_every_protocol() {
    let mut bed = bed();
    bed.nat().add_mapping(spec(("10.0.0.6", 0), ("192.0.2.60", 0), 0)).unwrap();
    for (protocol, ports, flags) in [(TCP, (1, 2), SYN), (UDP, (1, 2), 0), (ICMP, (7, 7), 0), (47, (0, 0), 0)]
    {
        let asked = tuple(("192.0.2.2", ports.0), ("192.0.2.60", ports.1));
        let came = tuple(("192.0.2.2", ports.0), ("10.0.0.6", ports.1));
        assert_eq!(bed.back(asked, protocol, flags), Some(bed.came(came, protocol, flags)), "{protocol}");
        let answer = if protocol == ICMP { 1 } else { flags };
        let left = bed.left(asked.reversed(), protocol, answer);
        assert_eq!(bed.out(came.reversed(), protocol, answer), Some(left), "{protocol}");
    }
}

#[test]
fn hosts_reach_each_other_by_their_outside_ports() {
    let mut bed = bed();
    bed.share(SHARED);
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), TCP)).unwrap();
    let asked = tuple(("10.0.0.2", 5000), (SHARED, 8080));
    let bytes = packet((HOST, bed.inside.mac()), asked, TCP, SYN, 64, b"payload");
    bed.send_inside(bytes);
    let came = bed.inside.received_one();
    // RFC 4787, REQ-9: the source is the outside one.
    let became = tuple((SHARED, 5000), ("10.0.0.5", 80));
    assert_eq!(came, bed.came(became, TCP, SYN));
    let bytes = packet((HOST, bed.inside.mac()), became.reversed(), TCP, 18, 64, b"payload");
    bed.send_inside(bytes);
    assert_eq!(bed.inside.received_one(), bed.came(asked.reversed(), TCP, 18));
    assert_eq!(bed.router.counter("/nat44-ed/hairpinning"), 2);
}

#[test]
fn an_identity_mapping_keeps_packets_as_they_are() {
    let mut bed = bed();
    bed.share(SHARED);
    let one = Spec { identity: true, ..spec(("10.0.0.8", 22), ("10.0.0.8", 22), TCP) };
    bed.nat().add_mapping(one.clone()).unwrap();
    let asked = tuple(("192.0.2.2", 999), ("10.0.0.8", 22));
    assert_eq!(bed.back(asked, TCP, SYN), Some(bed.came(asked, TCP, SYN)));
    assert_eq!(bed.out(asked.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
    assert_eq!(bed.sessions().len(), 0);
    assert_eq!(bed.nat().add_mapping(one.clone()), Err(NatError::MappingExists));
    bed.nat().del_mapping(&one).unwrap();
    assert_eq!(bed.back(asked, TCP, SYN), None);
}

#[test]
fn twice_nat_hides_the_outside_host() {
    let mut bed = bed();
    bed.share(SHARED);
    let twice: std::net::Ipv4Addr = "10.0.0.200".parse().unwrap();
    bed.nat().add_addresses((twice, twice), Purpose::Twice, None).unwrap();
    let one = Spec { twice: TwiceNat::Always, ..spec(("10.0.0.5", 80), (SHARED, 80), TCP) };
    bed.nat().add_mapping(one).unwrap();
    let asked = tuple(("192.0.2.2", 999), (SHARED, 80));
    let came = read(&bed.back(asked, TCP, SYN).unwrap());
    assert_eq!((came.src, came.dst, came.dport), (ip("10.0.0.200"), ip("10.0.0.5"), 80));
    assert_eq!(bed.out(came.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
    // With the address its sessions go.
    bed.nat().del_addresses((twice, twice), Purpose::Twice).unwrap();
    assert_eq!(bed.sessions().len(), 0);
}

#[test]
fn a_client_whose_tuple_a_host_uses_gets_another_port_inside() {
    let mut bed = bed();
    bed.share(SHARED);
    let from_host = tuple(("10.0.0.5", 80), ("192.0.2.2", 999));
    bed.out(from_host, TCP, SYN).unwrap();
    let one = Spec { out2in_only: true, ..spec(("10.0.0.5", 80), (SHARED, 8080), TCP) };
    bed.nat().add_mapping(one).unwrap();
    let asked = tuple(("192.0.2.2", 999), (SHARED, 8080));
    let came = read(&bed.back(asked, TCP, SYN).unwrap());
    assert_eq!((came.src, came.dst, came.dport), (ip("192.0.2.2"), ip("10.0.0.5"), 80));
    assert_ne!(came.sport, 999, "no tuple is given to two");
    assert_eq!(bed.out(came.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
    let kept = tuple((SHARED, 80), ("192.0.2.2", 999));
    assert_eq!(read(&bed.out(from_host, TCP, 16).unwrap()).dst, kept.dst);
}

fn service(bed: &Bed, affinity: u32) -> Balanced {
    let host = |n| (format!("10.0.0.{n}").parse().unwrap(), 443, 50, 0);
    let many = Balanced {
        external: SHARED.parse().unwrap(),
        port: 443,
        protocol: TCP,
        locals: vec![host(5), host(6)],
        twice: TwiceNat::No,
        out2in_only: false,
        affinity,
        tag: String::new(),
    };
    bed.nat().add_balanced(many.clone()).unwrap();
    many
}

#[test]
fn a_service_has_several_hosts_and_a_client_keeps_its_own_with_affinity() {
    for affinity in [0, 30] {
        let mut bed = bed();
        bed.share(SHARED);
        service(&bed, affinity);
        let mut seen = std::collections::BTreeMap::new();
        for port in 2000..2060 {
            let asked = tuple(("192.0.2.2", port), (SHARED, 443));
            let came = read(&bed.back(asked, TCP, SYN).unwrap());
            *seen.entry(came.dst).or_insert(0) += 1;
            assert_eq!(bed.out(came.reversed(), TCP, 18), Some(bed.left(asked.reversed(), TCP, 18)));
        }
        assert_eq!(seen.len(), if affinity == 0 { 2 } else { 1 }, "{seen:?}");
    }
}

#[test]
fn hosts_of_a_service_come_and_go_and_two_remain() {
    let bed = bed();
    bed.share(SHARED);
    let many = service(&bed, 0);
    let (nat, key) = (bed.nat(), (many.external, 443, TCP));
    let third = ("10.0.0.7".parse().unwrap(), 443, 10, 0);
    assert_eq!(nat.set_back_end(key, third, false), Err(NatError::NoBackEnd));
    nat.set_back_end(key, third, true).unwrap();
    assert_eq!(nat.set_back_end(key, third, true), Err(NatError::BackEndExists));
    nat.set_back_end(key, many.locals[0], false).unwrap();
    assert_eq!(nat.set_back_end(key, third, false), Err(NatError::MustRemain));
    assert_eq!(nat.add_balanced(many.clone()), Err(NatError::MappingExists));
    nat.del_balanced(key).unwrap();
    assert_eq!(nat.del_balanced(key), Err(NatError::NoMapping));
    let one = Balanced { locals: many.locals[..1].to_vec(), ..many.clone() };
    assert_eq!(nat.add_balanced(one), Err(NatError::TooFew));
    let stranger = Balanced { external: "192.0.2.77".parse().unwrap(), ..many };
    assert!(matches!(nat.add_balanced(stranger), Err(NatError::NoPoolAddress(_))));
}

#[test]
fn what_makes_no_sense_is_refused() {
    let bed = bed();
    let nat = bed.nat();
    let ok = spec(("10.0.0.5", 80), (SHARED, 80), TCP);
    nat.add_mapping(ok.clone()).unwrap();
    assert_eq!(nat.add_mapping(ok.clone()), Err(NatError::MappingExists));
    assert_eq!(nat.add_mapping(spec(("10.0.0.5", 80), (SHARED, 81), TCP)), Err(NatError::MappingExists));
    nat.add_mapping(Spec { out2in_only: true, ..spec(("10.0.0.5", 80), (SHARED, 81), TCP) }).unwrap();
    let whole = spec(("10.0.0.6", 0), (SHARED, 0), 0);
    for bad in [
        Spec { twice: TwiceNat::Always, ..whole.clone() },
        Spec { twice: TwiceNat::OfItself, identity: true, ..ok.clone() },
        Spec { out2in_only: true, identity: true, ..ok.clone() },
        Spec { external_port: 0, ..ok.clone() },
    ] {
        assert!(matches!(nat.add_mapping(bad.clone()), Err(NatError::Unsupported(_))), "{bad:?}");
    }
    assert_eq!(nat.del_mapping(&whole), Err(NatError::NoMapping));
    let nowhere = Spec { external: External::Interface(shoal_interface::SwIfIndex(999)), ..ok };
    assert!(matches!(nat.add_mapping(nowhere), Err(NatError::If(_))));
}

#[test]
fn fragments_follow_their_first_one() {
    use shoal_wire::packet::Fragment;
    let mut bed = bed();
    bed.share(SHARED);
    bed.nat().add_mapping(spec(("10.0.0.5", 53), (SHARED, 53), UDP)).unwrap();
    let piece = |offset, place, payload: &[u8]| {
        let frame = shoal_testkit::PacketBuilder::ethernet(FAR, bed.outside.mac());
        let frame = frame.ip4([192, 0, 2, 2], [192, 0, 2, 100]).id(77).fragment(offset, place);
        let frame =
            if offset == 0 { frame.udp(999, 53) } else { frame.protocol(shoal_wire::IpProtocol::UDP) };
        frame.payload(payload).build()
    };
    let first = piece(0, Fragment::More, &[1; 24]);
    let last = piece(32, Fragment::Last, &[2; 8]);
    for order in [[&first, &last], [&last, &first]] {
        bed.send_all_outside(order);
        let came = bed.inside.received();
        assert_eq!(came.len(), 2, "{:?}", bed.router.errors());
        assert!(came.iter().all(|frame| frame[30..34] == ip("10.0.0.5").to_be_bytes()));
        assert!(came.iter().all(|frame| shoal_wire::checksum::checksum(&frame[14..34]) == 0));
    }
}
