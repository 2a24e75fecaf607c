//! What the other router of VPP's high availability of NAT44-EI may say. The input is a series of steps: what it is, a length, and so
//! many bytes.
#![no_main]

use std::cell::RefCell;
use std::collections::BTreeSet;
use std::net::Ipv4Addr;

use libfuzzer_sys::fuzz_target;
use shoal_nat44_ei::ha_wire::{CHANGE, HEADER, Header};
use shoal_nat44_ei::{Enable, Failover, Listener, Nat44Ei, Side};
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::{FAR, NatBed};

const OWN: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 1);
const OTHER: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 7);
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 100);
/// Sessions that the router has room for.
const MOST: u32 = 500;

thread_local! {
    static BED: RefCell<Option<NatBed>> = const { RefCell::new(None) };
}

fn bed() -> NatBed {
    let bed = NatBed::new(&[
        &shoal_reassembly::MODULE,
        &shoal_syslog::MODULE,
        &shoal_ipfix::MODULE,
        &shoal_nat44_ei::MODULE,
    ]);
    let nat = bed.router.get::<Nat44Ei>();
    nat.enable(Enable { sessions: MOST, user_sessions: MOST, ..Enable::default() }).expect("good limits");
    nat.set_side(bed.inside.index(), Side::Inside, true).expect("the interface is there");
    nat.set_side(bed.outside.index(), Side::Outside, true).expect("the interface is there");
    nat.add_addresses((SHARED, SHARED), None).expect("a good address");
    nat.set_listener(Listener { address: OWN, port: 12345, path_mtu: 512 }).expect("a good listener");
    nat.set_failover(Failover { address: OTHER, port: 12346, refresh: 10 });
    bed
}

fn say(bed: &mut NatBed, from: Ipv4Addr, data: &[u8]) {
    let frame = PacketBuilder::ethernet(FAR, bed.outside.mac()).ip4(from, OWN).udp(12346, 12345);
    bed.send_outside(frame.payload(data).build());
}

/// A header and what may be changes, as many as the bytes make.
fn changes(is_ack: bool, sequence: u32, changes: &[u8]) -> Vec<u8> {
    let count = changes.len().div_ceil(CHANGE) as u16;
    let mut bytes = Vec::with_capacity(HEADER + changes.len());
    bytes.extend(Header { is_ack, count, sequence, thread: 0 }.write());
    bytes.extend(changes);
    bytes
}

fuzz_target!(|data: &[u8]| {
    BED.with_borrow_mut(|bed| {
        let bed = bed.get_or_insert_with(self::bed);
        let (mut rest, mut sequence) = (data, 1);
        while let Some((&[what, length], more)) = rest.split_first_chunk::<2>() {
            let (bytes, later) = more.split_at(usize::from(length).min(more.len()));
            rest = later;
            match what % 8 {
                0..=3 => {
                    say(bed, OTHER, &changes(false, sequence, bytes));
                    sequence += 1;
                }
                4 => say(bed, OTHER, &changes(true, u32::from(length), b"")),
                5 => say(bed, OTHER, bytes),
                6 => say(bed, Ipv4Addr::new(192, 0, 2, 3), bytes),
                _ => bed.advance(u64::from(length)),
            }
        }
        let nat = bed.router.get::<Nat44Ei>();
        nat.flush();
        bed.router.run();
        let all = nat.sessions(|_| true).expect("it is on");
        let ends: BTreeSet<_> = all
            .iter()
            .map(|(_, record)| (record.session.outside, record.session.remote, record.session.protocol))
            .collect();
        assert_eq!(ends.len(), all.len(), "two sessions have one tuple");
        assert!(all.len() <= MOST as usize, "{} sessions", all.len());
        bed.inside.received();
        bed.outside.received();
        assert_eq!(bed.router.buffers_in_use(), 0, "buffers did not come back");
        nat.clear_sessions().expect("it is on");
        bed.router.run();
    });
});
