//! Hosts of several VRFs: which addresses they have, and where their answers go.

use shoal_adj::Family;
use shoal_arp::Neighbours;
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_ip4::Ip4;
use shoal_nat::Tuple;
use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ei::{Error, Side};
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_testkit::Port;

use crate::common::{Bed, HOST, SHARED, bed, ip, packet, read, spec, tuple};

/// The address of VRF 7 alone.
const OWN: &str = "192.0.2.107";

/// An interface of hosts in a VRF, with the addresses that those of VRF 0 have, and a way out.
fn tenant(bed: &mut Bed, vrf: u32, number: u32) -> Port {
    let table = bed.router.get::<Fib>().add_table(Family::Ip4, vrf, None).unwrap();
    let port = bed.router.pg(number);
    let ip4 = bed.router.get::<Ip4>();
    ip4.set_table(port.index(), vrf).unwrap();
    ip4.add_address(port.index(), "10.0.0.1/24".parse().unwrap()).unwrap();
    let neighbour = (port.index(), "10.0.0.2".parse().unwrap());
    bed.router.get::<Neighbours>().set(neighbour, HOST, Origin::Static, FibEntry::Wanted).unwrap();
    way_out(bed, table);
    bed.nat().set_side(port.index(), Side::Inside, true).unwrap();
    bed.router.run();
    port
}

fn way_out(bed: &Bed, table: FibIndex) {
    let far: std::net::IpAddr = "192.0.2.2".parse().unwrap();
    let path = Path::next_hop(far, bed.outside.index());
    let network: shoal_wire::Ip4Prefix = "192.0.2.0/24".parse().unwrap();
    bed.router.get::<Fib>().add(table, network, Source::Cli, &[path]).unwrap();
}

/// Sends a packet of a VRF's host; what leaves.
fn out(bed: &mut Bed, port: &Port, tuple: Tuple) -> Option<Tuple> {
    bed.router.send(port, packet((HOST, port.mac()), tuple, UDP, 0, 64, b"payload"));
    bed.outside.received().first().map(|frame| read(frame))
}

fn asked() -> Tuple {
    tuple(("10.0.0.2", 5000), ("192.0.2.2", 80))
}

#[test]
fn hosts_of_two_vrfs_with_one_address_have_sessions_of_their_own() {
    let mut bed = bed();
    let seven = tenant(&mut bed, 7, 2);
    let own = OWN.parse().unwrap();
    bed.nat().add_addresses((own, own), Some(7)).unwrap();
    let left = out(&mut bed, &seven, asked()).unwrap();
    assert_eq!(left.src, ip(OWN), "the address of the VRF comes before those for all");
    let other = read(&bed.out(asked(), UDP, 0).unwrap());
    assert_eq!(other.src, ip(SHARED), "an address of a VRF is not for others");
    let all = bed.sessions();
    assert_eq!(all.len(), 2);
    assert!(all.iter().all(|one| one.session.inside == (ip("10.0.0.2"), 5000)));
    let users = bed.nat().users().unwrap();
    let mut vrfs: Vec<u32> = users.iter().map(|user| user.vrf).collect();
    vrfs.sort_unstable();
    assert_eq!(vrfs, [0, 7]);
    assert_eq!(bed.nat().sessions_of("10.0.0.2".parse().unwrap(), Some(7)).unwrap().len(), 1);
    // Each answer goes to the host whose it is.
    for (left, is_seven) in [(left, true), (other, false)] {
        let back = packet((crate::common::FAR, bed.outside.mac()), left.reversed(), UDP, 0, 64, b"payload");
        bed.send_outside(back);
        let (mine, others) = (seven.received(), bed.inside.received());
        assert_eq!((mine.len(), others.len()), if is_seven { (1, 0) } else { (0, 1) });
        let came = if is_seven { &mine[0] } else { &others[0] };
        assert_eq!(read(came), asked().reversed());
    }
    // The second packet of each is one of a session that is known.
    assert_eq!(out(&mut bed, &seven, asked()), Some(left));
    assert_eq!(bed.sessions().len(), 2);
}

#[test]
fn a_vrf_without_an_address_of_its_own_has_those_for_all_and_none_of_another_s() {
    let mut bed = bed();
    let own = OWN.parse().unwrap();
    let (seven, eight) = (tenant(&mut bed, 7, 2), tenant(&mut bed, 8, 3));
    bed.nat().add_addresses((own, own), Some(7)).unwrap();
    assert_eq!(out(&mut bed, &eight, asked()).map(|left| left.src), Some(ip(SHARED)));
    let shared = SHARED.parse().unwrap();
    bed.nat().del_addresses((shared, shared)).unwrap();
    assert_eq!(bed.sessions().len(), 0, "sessions end with their address");
    assert_eq!(out(&mut bed, &eight, asked()), None);
    let names = <Error as shoal_graph::ErrorCounters>::COUNTERS;
    assert_eq!(
        bed.router.error("nat44-ei-in2out-slowpath", names[Error::OutOfPorts as usize].name),
        1,
        "an address of VRF 7 is not VRF 8's"
    );
    assert_eq!(out(&mut bed, &seven, asked()).map(|left| left.src), Some(ip(OWN)));
}

#[test]
fn a_mapping_of_a_vrf_leads_to_its_host() {
    let mut bed = bed();
    let seven = tenant(&mut bed, 7, 2);
    let mapping = spec(("10.0.0.2", 80), (SHARED, 8080), TCP);
    bed.nat().add_mapping(shoal_nat44_ei::Spec { vrf: Some(7), ..mapping }).unwrap();
    let served = tuple(("192.0.2.2", 999), (SHARED, 8080));
    let packet = packet((crate::common::FAR, bed.outside.mac()), served, TCP, 2, 64, b"payload");
    bed.send_outside(packet);
    let came = seven.received();
    assert_eq!(came.len(), 1, "{:?}", bed.router.errors());
    assert_eq!(read(&came[0]).destination(), ("10.0.0.2".parse().unwrap(), 80));
    assert_eq!(bed.inside.received(), Vec::<Vec<u8>>::new(), "the host of VRF 0 has the same address");
}
