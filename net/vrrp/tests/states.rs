//! Which router has the addresses.

use std::net::Ipv4Addr;

use shoal_fib::{Fib, FibIndex, Path, Reach, Source};
use shoal_interface::Interfaces;
use shoal_vrrp::{Config, State, Version, VrrpError};
use shoal_wire::{EtherType, IpProtocol, MacAddress, checksum};

use crate::bed::*;

#[test]
fn without_another_it_takes_the_addresses_and_tells_so() {
    let mut bed = bed();
    let index = bed.run(bed.config());
    assert_eq!(bed.state(index), State::Backup);
    bed.advance(3600);
    assert_eq!(bed.state(index), State::Backup);
    // One report that it listens to the group (RFC 3376), and nothing else.
    let [report] = &bed.left(EtherType::IP4)[..] else { panic!("one packet") };
    assert_eq!(
        (&report[..6], report[23], report[38], &report[42..46]),
        (&[1, 0, 0x5e, 0, 0, 0x16][..], 2, 0x22, &[0, 0, 0, 1][..])
    );
    assert_eq!(report[50..54], [224, 0, 0, 18]);
    assert!(checksum::verify(&report[14..38]) && checksum::verify(&report[38..54]));
    bed.advance(20);
    assert_eq!(bed.state(index), State::Master);
    let frames = bed.lan.received();
    let said = read(&frames[0]).unwrap();
    assert_eq!((said.version, said.vr_id, said.priority, said.interval), (Version::V3, 7, 100, 100));
    assert_eq!((said.addresses, said.first), (1, VIP.into()));
    // RFC 9568, 7.2: from the virtual MAC address, with the most that a TTL can be.
    assert_eq!(frames[0][..12], [1, 0, 0x5e, 0, 0, 0x12, 0, 0, 0x5e, 0, 1, 7]);
    assert_eq!((frames[0][22], &frames[0][26..30]), (255, &OURS.octets()[..]));
    assert!(checksum::verify(&frames[0][14..34]));
    // The link learns where the address is.
    let arp = &frames[1];
    assert_eq!((&arp[..6], &arp[6..12], &arp[12..14]), (&[0xff; 6][..], &MAC.0[..], &[8, 6][..]));
    assert_eq!(
        (&arp[22..28], &arp[28..32], &arp[38..42]),
        (&MAC.0[..], &VIP.octets()[..], &VIP.octets()[..])
    );
    bed.advance(5000);
    assert_eq!(bed.said().len(), 5);
    bed.vrrp.stop(bed.config().key).unwrap();
    bed.router.run();
    let said = bed.said();
    assert_eq!((said.len(), said[0].1.priority), (1, 0));
    bed.advance(5000);
    assert!(bed.said().is_empty());
    assert_eq!(bed.router.counter("/net/vrrp/adv-sent"), 7);
}

#[test]
fn it_yields_to_a_higher_one_and_comes_back() {
    let mut bed = bed();
    let index = bed.run(bed.config());
    bed.advance(4000);
    bed.lan.received();
    bed.hear(other(99, 100));
    assert_eq!(bed.state(index), State::Master);
    bed.hear(other(150, 50));
    assert_eq!(bed.state(index), State::Backup);
    // It waits by the interval of the other one.
    let machine = bed.vrrp.info(index).unwrap().machine;
    assert_eq!((machine.master_interval, machine.master_down()), (50, 180));
    for _ in 0..10 {
        bed.advance(1000);
        bed.hear(other(150, 50));
    }
    assert_eq!(bed.state(index), State::Backup);
    assert!(bed.said().is_empty());
    // The other one goes, and says so.
    bed.hear(other(0, 50));
    bed.advance(310);
    assert_eq!(bed.state(index), State::Master);
    // Of two with the same priority the one with the higher address has them.
    bed.hear(other(100, 100));
    assert_eq!(bed.state(index), State::Backup);
    bed.advance(4000);
    bed.hear(other_from(Ipv4Addr::new(10, 0, 0, 0), Version::V3, 100, 100));
    assert_eq!(bed.state(index), State::Master);
}

#[test]
fn without_preemption_it_leaves_the_addresses_where_they_are() {
    let mut bed = bed();
    let index = bed.run(Config { preempt: false, priority: 200, ..bed.config() });
    for _ in 0..5 {
        bed.advance(2000);
        bed.hear(other(50, 100));
    }
    assert_eq!(bed.state(index), State::Backup);
    bed.advance(4000);
    assert_eq!(bed.state(index), State::Master);
}

#[test]
fn version_2_speaks_seconds_and_versions_do_not_mix() {
    let mut bed = bed();
    let config = Config { version: Version::V2, interval: 200, ..bed.config() };
    let index = bed.run(config);
    bed.advance(8000);
    let said = bed.said();
    assert_eq!((said[0].1.version, said[0].1.interval), (Version::V2, 200));
    bed.hear(other(150, 200));
    bed.hear(other_from(OTHER, Version::V2, 150, 100));
    assert_eq!(bed.state(index), State::Master);
    assert_eq!(bed.router.counter("/net/vrrp/addr-mismatch"), 2);
    bed.hear(other_from(OTHER, Version::V2, 150, 200));
    assert_eq!(bed.state(index), State::Backup);
    let bad = Config { version: Version::V2, interval: 150, ..bed.config() };
    assert!(matches!(bed.vrrp.update(index, bad), Err(VrrpError::Version(_))));
}

#[test]
fn an_owner_begins_at_once_and_an_interface_that_is_down_waits() {
    let mut bed = bed();
    let owner = Config { priority: 255, addresses: vec![OURS.into()], ..bed.config() };
    assert!(matches!(
        bed.vrrp.add(Config { addresses: vec![VIP.into()], ..owner.clone() }),
        Err(VrrpError::NotOwned(..))
    ));
    let index = bed.run(owner);
    assert_eq!(bed.state(index), State::Master);
    let interfaces = bed.router.get::<Interfaces>();
    interfaces.set_admin(bed.lan.index(), false).unwrap();
    bed.router.run();
    assert_eq!(bed.state(index), State::InterfaceDown);
    assert!(interfaces.macs(bed.lan.index()).is_empty());
    interfaces.set_admin(bed.lan.index(), true).unwrap();
    bed.router.run();
    assert_eq!(bed.state(index), State::Master);
    assert_eq!(interfaces.macs(bed.lan.index()), [MAC]);
    // The interface goes, and all with it.
    interfaces.delete(bed.lan.index()).unwrap();
    assert!(bed.vrrp.list().is_empty());
}

#[test]
fn interfaces_and_routes_that_are_tracked_lower_the_priority() {
    let mut bed = bed();
    let index = bed.run(bed.config());
    let key = bed.config().key;
    let adjusted = |bed: &Bed| bed.vrrp.info(index).unwrap().machine.adjusted();
    bed.vrrp.track_interfaces(key, &[(bed.wan.index(), 30)]).unwrap();
    bed.vrrp.track_route(key, "0.0.0.0/0".parse().unwrap(), 20).unwrap();
    // The table has a default route, but it leads nowhere.
    assert_eq!(adjusted(&bed), 80);
    let fib = bed.router.get::<Fib>();
    let way = Path::next_hop(Ipv4Addr::new(10, 0, 1, 2), bed.wan.index());
    let default: shoal_wire::IpPrefix = "0.0.0.0/0".parse().unwrap();
    fib.add(FibIndex::DEFAULT, default, Source::Cli, &[way]).unwrap();
    bed.advance(4000);
    assert_eq!((adjusted(&bed), bed.state(index)), (100, State::Master));
    // A BFD session says that the next hop is down.
    let next_hop = Ipv4Addr::new(10, 0, 1, 2).into();
    fib.set_watched(Some(bed.wan.index()), next_hop, Reach::Down);
    bed.advance(200);
    assert_eq!(adjusted(&bed), 80);
    fib.set_watched(Some(bed.wan.index()), next_hop, Reach::Up);
    bed.advance(200);
    assert_eq!(adjusted(&bed), 100);
    bed.router.get::<Interfaces>().set_admin(bed.wan.index(), false).unwrap();
    bed.advance(200);
    assert_eq!(adjusted(&bed), 50);
    bed.lan.received();
    bed.advance(1000);
    assert_eq!(bed.said()[0].1.priority, 50);
    bed.hear(other(60, 100));
    assert_eq!(bed.state(index), State::Backup);
    bed.router.get::<Interfaces>().set_admin(bed.wan.index(), true).unwrap();
    bed.advance(4000);
    assert_eq!((adjusted(&bed), bed.state(index)), (100, State::Master));
    bed.vrrp.untrack_interfaces(key, &[bed.wan.index()]).unwrap();
    assert!(bed.vrrp.untrack_interfaces(key, &[bed.wan.index()]).is_err());
    bed.vrrp.untrack_route(key, default).unwrap();
    assert!(bed.vrrp.untrack_route(key, default).is_err());
    assert!(bed.vrrp.track_interfaces(key, &[(bed.wan.index(), 0)]).is_err());
}

#[test]
fn peers_are_told_one_by_one() {
    let mut bed = bed();
    bed.router.set_neighbour(&bed.lan, OTHER, OTHER_MAC);
    let config = Config { unicast: true, ..bed.config() };
    let index = bed.vrrp.add(config.clone()).unwrap();
    assert_eq!(bed.vrrp.start(config.key), Err(VrrpError::NoPeers));
    bed.vrrp.set_peers(config.key, vec![OTHER.into()]).unwrap();
    bed.vrrp.start(config.key).unwrap();
    bed.advance(4000);
    let said = bed.said();
    assert_eq!(
        (said[0].0[..6].to_vec(), said[0].0[30..34].to_vec()),
        (OTHER_MAC.0.to_vec(), OTHER.octets().to_vec())
    );
    assert_eq!(said[0].0[22], 255);
    // A peer's advertisement comes to this router's address; a stranger's does not count.
    let unicast = |bed: &Bed, from: Ipv4Addr| {
        let said = shoal_vrrp::Advertisement {
            version: Version::V3,
            vr_id: 7,
            priority: 150,
            interval: 100,
            addresses: 1,
            first: VIP.into(),
        };
        let message = said.write((from.into(), OURS.into()), &[VIP.into()]);
        let packet = shoal_testkit::PacketBuilder::ethernet(OTHER_MAC, bed.lan.mac()).ip4(from, OURS);
        packet.ttl(255).protocol(IpProtocol::VRRP).payload(&message).build()
    };
    bed.hear(unicast(&bed, Ipv4Addr::new(10, 0, 0, 8)));
    assert_eq!(bed.state(index), State::Master);
    bed.hear(unicast(&bed, OTHER));
    assert_eq!(bed.state(index), State::Backup);
}

#[test]
fn strangers_are_counted_and_change_nothing() {
    let mut bed = bed();
    let index = bed.run(bed.config());
    bed.advance(4000);
    let good = other(200, 100);
    let mut far = good.clone();
    far[22] = 254;
    far[24..26].fill(0);
    let sum = checksum::checksum(&far[14..34]).to_be_bytes();
    far[24..26].copy_from_slice(&sum);
    bed.hear(far);
    let mut bad = good.clone();
    bad[36] ^= 1;
    bed.hear(bad);
    let mut old = good.clone();
    old[34] = 0x11;
    bed.hear(old);
    let mut of_another = good.clone();
    of_another[35] = 8;
    of_another[40..42].fill(0);
    bed.hear(of_another);
    assert_eq!(bed.state(index), State::Master);
    for what in ["VRRP advertisement TTL is not 255", "VRRP version is not 3"] {
        assert_eq!(bed.router.error("vrrp4-input", what), 1, "{what}");
    }
    assert_eq!(bed.router.error("vrrp4-input", "VRRP checksum failed"), 2);
    let mut rng = shoal_testkit::Rng::new(shoal_testkit::Rng::seed(5));
    for _ in 0..5000 {
        let mut frame = good.clone();
        for _ in 0..=rng.below(3) {
            let at = ETHER + rng.below(frame.len() - ETHER);
            frame[at] = rng.next_u64() as u8;
        }
        frame.truncate(ETHER + rng.below(frame.len() - ETHER + 1));
        bed.router.send(&bed.lan, frame);
    }
    bed.router.run();
    assert_eq!(bed.router.buffers_in_use(), 0);
    // A group that is not VRRP's, and another virtual router's number.
    let other = MacAddress::for_ip4_multicast(Ipv4Addr::new(224, 0, 0, 18));
    assert_eq!(other.0, [1, 0, 0x5e, 0, 0, 0x12]);
}
