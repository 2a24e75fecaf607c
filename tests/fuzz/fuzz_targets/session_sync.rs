//! What the other router of a pair may say of its NAT sessions, without a key. The input is a series of steps: what it is, a length,
//! and so many bytes. What is sent is mostly of the association, so that records are read.
#![no_main]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;
use std::time::Duration;

use libfuzzer_sys::fuzz_target;
use shoal_nat44_ed::Nat44;
use shoal_nat64::Nat64;
use shoal_session_sync::wire::{Header, Kind};
use shoal_session_sync::{Peer, RoleSource, SessionSync};
use shoal_testkit::nat_bed::{FAR, NatBed};
use shoal_testkit::{PacketBuilder, Port};

const OWN: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(172, 16, 0, 2);
const SHARED: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 1);
const SHARED64: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 64);
/// The number by which the other router calls its association.
const SENDER: u64 = 77;
/// Sessions of each kind that the router has room for.
const MOST: u32 = 500;

thread_local! {
    static BED: RefCell<Option<Bed>> = const { RefCell::new(None) };
}

/// A router with NAT44 and NAT64, and its link to the other one.
struct Bed {
    nat: NatBed,
    link: Port,
}

fn bed() -> Bed {
    let mut bed = NatBed::new(&[
        &shoal_mfib::MODULE,
        &shoal_ip6_nd::MODULE,
        &shoal_bfd::MODULE,
        &shoal_reassembly::MODULE,
        &shoal_syslog::MODULE,
        &shoal_ipfix::MODULE,
        &shoal_nat44_ed::MODULE,
        &shoal_nat64::MODULE,
        &shoal_vrrp::MODULE,
        &shoal_session_sync::MODULE,
    ]);
    let (inside, outside) = (bed.inside.index(), bed.outside.index());
    let nat = bed.router.get::<Nat44>();
    nat.enable_nat(shoal_nat44_ed::Enable { sessions: MOST, ..Default::default() }).expect("good limits");
    nat.set_side(inside, shoal_nat44_ed::Side::Inside, true).expect("the interface is there");
    nat.set_side(outside, shoal_nat44_ed::Side::Outside, true).expect("the interface is there");
    nat.add_addresses((SHARED, SHARED), shoal_nat44_ed::Purpose::Pool, None).expect("a good address");
    let nat64 = bed.router.get::<Nat64>();
    nat64.enable(shoal_nat64::Enable { bib_buckets: MOST / 10, st_buckets: MOST / 10 }).expect("good limits");
    nat64.set_side(inside, shoal_nat64::Side::Inside, true).expect("the interface is there");
    nat64.add_addresses((SHARED64, SHARED64), None).expect("a good address");
    let link = bed.router.pg(2);
    bed.router.set_address(&link, "172.16.0.1/24");
    bed.router.set_neighbour(&link, OTHER, FAR);
    Bed { nat: bed, link }
}

fn say(bed: &mut Bed, data: &[u8]) {
    let frame = PacketBuilder::ethernet(FAR, bed.link.mac()).ip4(OTHER, OWN).udp(Peer::PORT, Peer::PORT);
    bed.nat.router.send(&bed.link, frame.payload(data).build());
}

fn datagram(header: Header, records: &[u8]) -> Vec<u8> {
    let mut bytes = Vec::new();
    header.write(&mut bytes);
    bytes.extend(records);
    bytes
}

fn header(kind: Kind, receiver: u64, sequence: u64) -> Header {
    Header { kind, is_active: true, sender: SENDER, receiver, sequence, ack: 1, behind: 0 }
}

/// Both say hello; the number by which the router calls the association.
fn meet(bed: &mut Bed, sync: &SessionSync) -> u64 {
    sync.set_peer(None).expect("there may be none");
    bed.nat.router.advance(Duration::from_millis(50));
    let peer = Peer { address: OTHER.into(), local: OWN.into(), port: Peer::PORT, key: None };
    sync.set_peer(Some(peer)).expect("a good peer");
    bed.nat.router.run();
    bed.link.received();
    say(bed, &datagram(header(Kind::Hello, 0, 1), b""));
    let frames = bed.link.received();
    let mut answers = frames.iter().filter_map(|frame| Header::read(frame.get(42..)?).ok());
    let own = answers.find(|answer| answer.receiver == SENDER).expect("it answers").sender;
    say(bed, &datagram(header(Kind::Hello, own, 2), b""));
    assert!(sync.view().up.is_some(), "both know each other");
    own
}

fn check(bed: &Bed) {
    let all = bed.nat.router.get::<Nat44>().sessions(|_| true).expect("it is on");
    let ends: BTreeSet<_> = all
        .iter()
        .map(|(_, record)| {
            let (session, outside) = (record.session, record.session.outside);
            assert_eq!(outside.src, SHARED.to_bits(), "only what hosts share");
            (outside.src, outside.sport, outside.dst, outside.dport, session.protocol)
        })
        .collect();
    assert_eq!(ends.len(), all.len(), "two sessions of NAT44 have one tuple");
    assert!(all.len() <= MOST as usize, "{} sessions of NAT44", all.len());
    let all = bed.nat.router.get::<Nat64>().sessions().expect("it is on");
    assert!(all.len() <= MOST as usize, "{} sessions of NAT64", all.len());
}

fuzz_target!(|data: &[u8]| {
    BED.with_borrow_mut(|bed| {
        let bed = bed.get_or_insert_with(self::bed);
        let sync = bed.nat.router.get::<SessionSync>();
        sync.set_role(RoleSource::Standby).expect("it can be one");
        let own = meet(bed, &sync);
        let (mut rest, mut sequence) = (data, 1);
        while let Some((&[what, length], more)) = rest.split_first_chunk::<2>() {
            let (bytes, later) = more.split_at(usize::from(length).min(more.len()));
            rest = later;
            match (what % 8, bytes) {
                (0..=3, records) => {
                    say(bed, &datagram(header(Kind::Data, own, sequence), records));
                    sequence += 1;
                }
                // A header of the association, of any kind and with any window.
                (4, &[kind, near, ref records @ ..]) => {
                    let kind = [Kind::Hello, Kind::Data, Kind::Ack][usize::from(kind) % 3];
                    let sequence = sequence.wrapping_add_signed(i64::from(near.cast_signed()));
                    let (ack, behind) = match records {
                        &[ack, behind, ..] => (u64::from(ack), u64::MAX >> (behind & 63)),
                        _ => (u64::MAX, 0),
                    };
                    let is_active = near & 1 == 0;
                    say(
                        bed,
                        &datagram(Header { is_active, ack, behind, ..header(kind, own, sequence) }, records),
                    );
                }
                (5, datagram) => say(bed, datagram),
                (6, &[ticks, ..]) => {
                    bed.nat.router.advance(Duration::from_millis(u64::from(ticks) * 8));
                    bed.link.received();
                }
                (7, &[role, ..]) => {
                    let role = if role & 1 == 0 { RoleSource::Standby } else { RoleSource::Active };
                    sync.set_role(role).expect("it can be either");
                    bed.nat.router.run();
                }
                _ => {}
            }
        }
        bed.nat.router.advance(Duration::from_millis(100));
        let view = sync.view();
        assert!(view.early <= 1024 && view.unacknowledged <= 1024 && view.refused.len() <= 64);
        check(bed);
        bed.nat.inside.received();
        bed.nat.outside.received();
        bed.link.received();
        assert_eq!(bed.nat.router.buffers_in_use(), 0, "buffers did not come back");
        bed.nat.router.get::<Nat44>().clear_sessions().expect("it is on");
        bed.nat.router.run();
    });
});
