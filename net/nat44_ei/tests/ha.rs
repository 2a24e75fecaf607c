//! Another router learns of sessions, and goes on with them.

use std::net::Ipv4Addr;

use shoal_nat::tuple::UDP;
use shoal_nat44_ei::config::Algorithm;
use shoal_nat44_ei::ha_wire::{CHANGE, Change, HEADER, Header};
use shoal_nat44_ei::sessions::{Event, Session};
use shoal_nat44_ei::{Failover, Listener};
use shoal_testkit::PacketBuilder;

use crate::common::{Bed, FAR, SHARED, bed, ip, read, tuple};

const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);

fn pair() -> Bed {
    let bed = bed();
    bed.nat().set_listener(Listener { address: OWN, port: 12345, path_mtu: 512 }).unwrap();
    bed.nat().set_failover(Failover { address: OTHER, port: 12346, refresh: 10 });
    bed
}

/// What was sent to the other router, with the header of each datagram.
fn sent(bed: &Bed) -> Vec<(Header, Vec<Change>)> {
    let to_other = |frame: &Vec<u8>| frame[30..34] == OTHER.octets();
    let frames = bed.outside.received().into_iter().filter(to_other);
    frames
        .map(|frame| {
            let ip: &[u8] = &frame[14..34];
            assert_eq!((ip[8], &frame[34..38]), (254, &[0x30, 0x39, 0x30, 0x3a][..]), "TTL and ports");
            assert_eq!(frame[40..42], [0, 0], "no checksum");
            let data = &frame[42..];
            let header = Header::read(data).unwrap();
            let changes: Vec<Change> =
                data[HEADER..].chunks(CHANGE).map(|bytes| Change::read(bytes).unwrap()).collect();
            assert_eq!(usize::from(header.count), changes.len());
            (header, changes)
        })
        .collect()
}

fn datagram(bed: &mut Bed, from: Ipv4Addr, data: &[u8]) {
    let frame = PacketBuilder::ethernet(FAR, bed.outside.mac()).ip4(from, OWN).udp(12346, 12345);
    bed.send_outside(frame.payload(data).build());
    bed.router.run();
}

fn acknowledge(bed: &mut Bed, header: Header) {
    let ack = Header { is_ack: true, count: 0, ..header };
    datagram(bed, OTHER, &ack.write());
}

fn counter(bed: &Bed, name: &str) -> u64 {
    bed.router.counter(&format!("/nat44-ei/ha/{name}"))
}

#[test]
fn the_other_router_hears_of_sessions_and_answers() {
    let mut bed = pair();
    let asked = |port| tuple(("10.0.0.2", port), ("192.0.2.2", 80));
    let left: Vec<_> = (1..4).map(|port| read(&bed.out(asked(port), UDP, 0).unwrap())).collect();
    bed.nat().flush();
    bed.router.run();
    let told = sent(&bed);
    assert_eq!(told.len(), 1, "{:?}", bed.router.errors());
    assert_eq!((told[0].0.count, told[0].0.is_ack), (3, false));
    for (change, left) in told[0].1.iter().zip(&left) {
        assert_eq!(change.event, Event::Begins);
        assert_eq!(change.session.outside, (left.src, left.sport));
        assert_eq!(change.session.remote, (ip("192.0.2.2"), 80));
    }
    assert_eq!(counter(&bed, "add-event-send"), 3);
    acknowledge(&mut bed, told[0].0);
    assert_eq!(counter(&bed, "ack-recv"), 1);
    // Nothing is sent again.
    bed.advance(10);
    assert_eq!(sent(&bed).len(), 0);
    assert_eq!(counter(&bed, "retry-count"), 0);
    // One that ends, and one that is used, are sent within a second.
    bed.nat().del_session(("10.0.0.2".parse().unwrap(), 1), true, UDP, 0).unwrap();
    bed.advance(2);
    let mut told = sent(&bed);
    for (header, _) in &told {
        acknowledge(&mut bed, *header);
    }
    for _ in 0..2 {
        bed.out(asked(2), UDP, 0).unwrap();
        bed.advance(11);
        let more = sent(&bed);
        for (header, _) in &more {
            acknowledge(&mut bed, *header);
        }
        told.extend(more);
    }
    let events: Vec<Event> = told.iter().flat_map(|(_, changes)| changes).map(|c| c.event).collect();
    assert_eq!(events[0], Event::Ends, "{events:?}");
    let used = told.iter().flat_map(|(_, changes)| changes).find(|c| c.event == Event::Used).unwrap();
    assert_eq!((used.session.inside, used.packets >= 2, used.bytes > 0), ((0, 0), true, true));
    assert_eq!(
        (used.session.outside, used.session.remote),
        ((left[1].src, left[1].sport), (ip("192.0.2.2"), 80))
    );
}

#[test]
fn what_is_not_acknowledged_is_sent_thrice_again_and_then_counted() {
    let mut bed = pair();
    for port in 1..3 {
        bed.out(tuple(("10.0.0.2", port), ("192.0.2.2", 80)), UDP, 0).unwrap();
    }
    let mut seen = Vec::new();
    for _ in 0..12 {
        bed.advance(1);
        seen.extend(sent(&bed).into_iter().map(|(header, _)| header.sequence));
    }
    assert_eq!(seen, [seen[0]; 4]);
    assert_eq!((counter(&bed, "retry-count"), counter(&bed, "missed-count")), (3, 1), "datagrams");
}

#[test]
fn sessions_of_another_router_go_on_here() {
    let mut bed = bed();
    bed.nat().set_listener(Listener { address: OWN, port: 12345, path_mtu: 512 }).unwrap();
    let session = Session {
        inside: (ip("10.0.0.2"), 5000),
        inside_table: 0,
        outside: (ip(SHARED), 40000),
        outside_table: 0,
        protocol: UDP,
        is_static: false,
        remote: (ip("192.0.2.2"), 80),
    };
    // The host's worker has the port.
    let begins = Change { event: Event::Begins, session, packets: 3, bytes: 300 };
    let header = Header { is_ack: false, count: 1, sequence: 77, thread: 0 };
    let say = |bed: &mut Bed, event| {
        let change = Change { event, ..begins };
        datagram(bed, OTHER, &[header.write().to_vec(), change.write()].concat());
    };
    say(&mut bed, Event::Begins);
    let answers: Vec<Vec<u8>> = bed.outside.received();
    let ack = Header::read(&answers[0][42..]).unwrap();
    assert_eq!((ack.is_ack, ack.sequence, ack.count), (true, 77, 0));
    assert_eq!((counter(&bed, "add-event-recv"), counter(&bed, "ack-send")), (1, 1));
    let there = bed.sessions();
    assert_eq!((there.len(), there[0].packets, there[0].session.outside), (1, 3, session.outside));
    // The host goes on as if nothing had happened.
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked, UDP, 0), Some(bed.left(tuple((SHARED, 40000), ("192.0.2.2", 80)), UDP, 0)));
    say(&mut bed, Event::Begins);
    assert_eq!(bed.sessions().len(), 1, "told twice, there once");
    // One that is used, or ends, is named by its outside end.
    let say_of = |bed: &mut Bed, event, packets| {
        let session = Session { inside: (0, 0), ..session };
        let change = Change { event, session, packets, bytes: 500 };
        datagram(bed, OTHER, &[header.write().to_vec(), change.write()].concat());
    };
    say_of(&mut bed, Event::Used, 9);
    assert_eq!((counter(&bed, "refresh-event-recv"), bed.sessions()[0].packets), (1, 9));
    say_of(&mut bed, Event::Ends, 0);
    assert_eq!((counter(&bed, "del-event-recv"), bed.sessions().len()), (1, 0));
    say_of(&mut bed, Event::Used, 9);
    assert_eq!(bed.sessions().len(), 0, "only one that begins makes a session");
    // Rubbish does nothing.
    datagram(&mut bed, OTHER, &[9; 100]);
    datagram(&mut bed, OTHER, &[header.write().to_vec(), vec![0xff; CHANGE - 1]].concat());
    assert_eq!(bed.sessions().len(), 0);
    // Where the other router is known, another is not heard.
    bed.nat().set_failover(Failover { address: Ipv4Addr::new(192, 0, 2, 8), port: 1, refresh: 1 });
    say(&mut bed, Event::Begins);
    assert_eq!(bed.sessions().len(), 0);
}

#[test]
fn a_host_has_its_block_of_ports_here_too() {
    let mut bed = bed();
    bed.nat().set_algorithm(Algorithm::Blocks { size: 16, most: 1 }).unwrap();
    bed.nat().set_listener(Listener { address: OWN, port: 12345, path_mtu: 512 }).unwrap();
    let session = Session {
        inside: (ip("10.0.0.2"), 5000),
        inside_table: 0,
        outside: (ip(SHARED), 1024 + 5 * 16 + 3),
        outside_table: 0,
        protocol: UDP,
        is_static: false,
        remote: (ip("192.0.2.2"), 80),
    };
    let begins = Change { event: Event::Begins, session, packets: 3, bytes: 300 };
    let header = Header { is_ack: false, count: 1, sequence: 77, thread: 0 };
    datagram(&mut bed, OTHER, &[header.write().to_vec(), begins.write()].concat());
    assert_eq!(bed.outside.received().len(), 1, "the answer");
    let blocks = bed.nat().blocks().unwrap();
    let block = blocks.first().unwrap();
    assert_eq!((blocks.len(), block.host.0, block.first), (1, session.inside.0, 1024 + 5 * 16));
    // Its next session has a port of the same block, that of another host one of another.
    let mut of = |host: &str| {
        let asked = tuple((host, 6000), ("192.0.2.2", 80));
        read(&bed.out(asked, UDP, 0).unwrap()).sport
    };
    let (own, other) = (of("10.0.0.2"), of("10.0.0.3"));
    assert_eq!(own / 16, block.first / 16);
    assert_ne!(other / 16, block.first / 16);
}

#[test]
fn all_sessions_are_sent_when_asked_for() {
    let mut bed = bed();
    for host in 2..8_u8 {
        for port in 1..20 {
            bed.out(tuple((&format!("10.0.0.{host}"), port), ("192.0.2.2", 80)), UDP, 0).unwrap();
        }
    }
    bed.nat().set_listener(Listener { address: OWN, port: 12345, path_mtu: 512 }).unwrap();
    bed.nat().set_failover(Failover { address: OTHER, port: 12346, refresh: 10 });
    bed.nat().resync(None).unwrap();
    assert!(bed.nat().is_resyncing());
    bed.router.run();
    let told = sent(&bed);
    let changes: usize = told.iter().map(|(_, changes)| changes.len()).sum();
    assert_eq!(changes, 6 * 19);
    assert!(told.iter().all(|(_, changes)| changes.len() <= 10), "a path MTU of 512");
    for (header, _) in told {
        acknowledge(&mut bed, header);
    }
    assert!(!bed.nat().is_resyncing());
    assert_eq!(counter(&bed, "missed-count"), 0);
}
