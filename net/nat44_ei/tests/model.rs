//! Random packets, time and changes of the configuration, against what sessions say: an end is given to one, a mapping is kept for
//! all of a host's remotes, what nothing is known of does not get in, and every byte is right.

use std::collections::BTreeMap;

use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44_ei::session_direction::replace;
use shoal_testkit::Rng;

use crate::common::{Bed, bed, ip, read, spec};

type End = (u32, u16, u8);

type Ends = BTreeMap<End, (u32, u16)>;

/// Sessions by their two ends.
fn known(bed: &Bed) -> (Ends, Ends) {
    let (mut inside, mut outside) = (BTreeMap::new(), BTreeMap::new());
    for record in bed.sessions() {
        let session = record.session;
        let (host, end) = (session.inside, session.outside);
        let there = inside.insert((host.0, host.1, session.protocol), end);
        assert_eq!(there, None, "one host's port, two sessions: {session:?}");
        let back = outside.insert((end.0, end.1, session.protocol), host);
        assert_eq!(back, None, "one end, two sessions: {session:?}");
    }
    let users = bed.nat().users().unwrap();
    let counted: u32 = users.iter().map(|user| user.sessions + user.statics).sum();
    assert_eq!(counted as usize, inside.len(), "hosts have all sessions");
    (inside, outside)
}

fn tuple_of(rng: &mut Rng, protocol: u8, src: &[&str], dst: &[&str]) -> Tuple {
    let port = |rng: &mut Rng| *rng.pick(&[53, 80, 1024, 5000, 5001, 40000]);
    let (sport, dport) = (port(rng), port(rng));
    let dport = if protocol == ICMP { sport } else { dport };
    Tuple { src: ip(rng.pick::<&str>(src)), dst: ip(rng.pick::<&str>(dst)), sport, dport }
}

fn out(bed: &mut Bed, rng: &mut Rng) -> bool {
    let protocol = *rng.pick(&[TCP, UDP, ICMP]);
    let tuple = tuple_of(rng, protocol, &["10.0.0.2", "10.0.0.3", "10.0.0.4"], &["192.0.2.2", "192.0.2.3"]);
    let host = (tuple.src, tuple.sport, protocol);
    let (before, _) = known(bed);
    let frame = bed.out(tuple, protocol, 0);
    let (after, outside) = known(bed);
    let Some(frame) = frame else {
        assert!(!before.contains_key(&host), "a packet of a session is lost: {:?}", bed.router.errors());
        return false;
    };
    let end = after[&host];
    assert_eq!(frame, bed.left(replace(tuple, end, false, protocol == ICMP), protocol, 0));
    if let Some(had) = before.get(&host) {
        assert_eq!(*had, end, "a host's port keeps its mapping");
    }
    assert_eq!(outside[&(end.0, end.1, protocol)], (tuple.src, tuple.sport));
    true
}

fn back(bed: &mut Bed, rng: &mut Rng) -> bool {
    let protocol = *rng.pick(&[TCP, UDP, ICMP]);
    let mut tuple =
        tuple_of(rng, protocol, &["192.0.2.2", "192.0.2.3"], &["192.0.2.100", "192.0.2.101", "192.0.2.110"]);
    let (_, before) = known(bed);
    let to_known: Vec<&End> = before.keys().filter(|(.., p)| *p == protocol).collect();
    if !to_known.is_empty() && !rng.one_in(4) {
        (tuple.dst, tuple.dport, _) = **rng.pick(&to_known);
        if protocol == ICMP {
            tuple.sport = tuple.dport;
        }
    }
    let end = (tuple.dst, tuple.dport, protocol);
    let flags = u8::from(protocol == ICMP);
    let frame = bed.back(tuple, protocol, flags);
    let (_, after) = known(bed);
    let Some(frame) = frame else {
        assert!(!before.contains_key(&end), "an answer is lost: {:?}", bed.router.errors());
        return false;
    };
    let host = after[&end];
    assert_eq!(frame, bed.came(replace(tuple, host, true, protocol == ICMP), protocol, flags));
    if !before.contains_key(&end) {
        let mappings = bed.nat().mappings();
        let of_mapping = mappings.iter().any(|(_, a)| a.is_some_and(|a| a.to_bits() == tuple.dst));
        assert!(of_mapping, "nothing is known of it: {end:?} came as {:?}", read(&frame));
    }
    true
}

fn change(bed: &mut Bed, rng: &mut Rng) {
    let nat = bed.nat();
    let address = rng.pick::<&str>(&["192.0.2.100", "192.0.2.101"]).parse().unwrap();
    let whole = spec(("10.0.0.4", 0), ("192.0.2.110", 0), 0);
    let one = spec(("10.0.0.3", 80), ("192.0.2.100", 80), TCP);
    match rng.below(6) {
        0 => _ = nat.add_addresses((address, address), None),
        1 if nat.addresses().len() > 1 => _ = nat.del_addresses((address, address)),
        2 => _ = nat.add_mapping(one),
        3 => _ = nat.del_mapping(&one),
        4 => _ = nat.add_mapping(whole),
        _ => _ = nat.del_mapping(&whole),
    }
}

#[test]
fn whatever_comes_no_end_is_given_to_two_and_every_byte_is_right() {
    let seed = Rng::seed(19);
    for round in 0..4 {
        let mut rng = Rng::new(seed + round);
        let mut bed = bed();
        let (mut left, mut came) = (0, 0);
        for _ in 0..700 {
            match rng.below(20) {
                0 => change(&mut bed, &mut rng),
                1 => bed.advance(*rng.pick(&[1, 30, 70, 250])),
                2..=10 => left += u32::from(out(&mut bed, &mut rng)),
                _ => came += u32::from(back(&mut bed, &mut rng)),
            }
        }
        assert!(left > 100 && came > 100, "{left} left, {came} came: too few to show anything");
        bed.advance(8000);
        assert_eq!(bed.sessions().len(), 0, "seed {seed}");
        assert_eq!(bed.nat().users().unwrap(), []);
    }
}
