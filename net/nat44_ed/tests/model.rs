//! Random packets, time and changes of the configuration, against what sessions say: no tuple is given to two, translations are
//! inverse to each other, what has no session does not get in, and every byte is right.

use std::collections::BTreeMap;

use shoal_nat::Tuple;
use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44::ports::has_ports;
use shoal_nat44_ed::Purpose;
use shoal_nat44_ed::bindings::Filtering;
use shoal_nat44_ed::mapping::TwiceNat;
use shoal_nat44_ed::session_direction::Marks;
use shoal_nat44_ed::sessions::{LINGER, TICKS};
use shoal_testkit::Rng;

use crate::common::{Bed, bed, ip, read, spec};

type Key = (Tuple, u8);

/// Sessions by their two keys, as the packets that come have them: what they leave with.
fn known(bed: &Bed) -> (BTreeMap<Key, Tuple>, BTreeMap<Key, Tuple>) {
    let (mut inside, mut outside) = (BTreeMap::new(), BTreeMap::new());
    let (mut ports, mut hosts) = (BTreeMap::new(), BTreeMap::new());
    let independent = bed.nat().filtering();
    let endpoint = |tuple: Tuple| (tuple.src, tuple.sport);
    for record in bed.sessions() {
        let session = record.session;
        let there = inside.insert((session.inside, session.protocol), session.outside);
        assert_eq!(there, None, "one inside tuple, two sessions: {session:?}");
        let back = outside.insert((session.outside.reversed(), session.protocol), session.inside.reversed());
        assert_eq!(back, None, "one outside tuple, two sessions: {session:?}");
        let of_mapping = session.marks & Marks::STATIC != 0;
        if !of_mapping && has_ports(session.protocol) && independent.contains_key(&session.outside.src) {
            let (host, port) = (endpoint(session.inside), endpoint(session.outside));
            let had = ports.insert((host, session.protocol), port).unwrap_or(port);
            assert_eq!(had, port, "a host's port has two outside ports: {session:?}");
            let had = hosts.insert((port, session.protocol), host).unwrap_or(host);
            assert_eq!(had, host, "an outside port is two hosts': {session:?}");
        }
        let timeout = bed.nat().timeout_of(&record);
        let longest = timeout + (LINGER + 10) * TICKS as u32;
        assert!(record.age <= longest, "a session outlives its time: {record:?}");
    }
    (inside, outside)
}

fn live(bed: &Bed, key: &Key, inside: bool) -> bool {
    bed.sessions().iter().any(|record| {
        let session = record.session;
        let of = if inside { session.inside } else { session.outside.reversed() };
        (of, session.protocol) == *key && record.age < bed.nat().timeout_of(record)
    })
}

fn flags(rng: &mut Rng, protocol: u8) -> u8 {
    match protocol {
        TCP => *rng.pick(&[2, 2, 2, 16, 18, 17, 4]),
        ICMP => *rng.pick(&[0, 1]),
        _ => 0,
    }
}

fn ports(rng: &mut Rng, protocol: u8) -> (u16, u16) {
    let port = |rng: &mut Rng| *rng.pick(&[53, 80, 1024, 5000, 5001, 40000]);
    match protocol {
        ICMP => {
            let id = port(rng);
            (id, id)
        }
        47 => (0, 0),
        _ => (port(rng), port(rng)),
    }
}

fn out(bed: &mut Bed, rng: &mut Rng) -> bool {
    let protocol = *rng.pick(&[TCP, UDP, ICMP, 47]);
    let (sport, dport) = ports(rng, protocol);
    let src = ip(rng.pick::<&str>(&["10.0.0.2", "10.0.0.3", "10.0.0.4"]));
    let dst = ip(rng.pick::<&str>(&["192.0.2.2", "192.0.2.3"]));
    let (key, flags) = ((Tuple { src, dst, sport, dport }, protocol), flags(rng, protocol));
    let (before, _) = known(bed);
    let was_live = live(bed, &key, true);
    let frame = bed.out(key.0, protocol, flags);
    let (after, outside) = known(bed);
    let Some(frame) = frame else {
        assert!(!was_live, "a packet of a live session is lost: {key:?}, {:?}", bed.router.errors());
        return false;
    };
    // It left as its session says, which is the one it had, and answers come back to the host.
    let to = after[&key];
    assert_eq!(frame, bed.left(to, protocol, flags));
    if was_live {
        assert_eq!(before[&key], to, "a flow keeps its mapping");
    }
    assert_eq!(outside[&(to.reversed(), protocol)], key.0.reversed());
    let shared = bed.nat().addresses().iter().any(|a| a.address.to_bits() == to.src);
    let mapped =
        bed.nat().mappings().iter().any(|(_, address)| address.is_some_and(|a| a.to_bits() == to.src));
    assert!(shared || mapped, "{to:?}");
    true
}

fn back(bed: &mut Bed, rng: &mut Rng) -> bool {
    let protocol = *rng.pick(&[TCP, UDP, ICMP, 47]);
    let (sport, dport) = ports(rng, protocol);
    let mut tuple = Tuple {
        src: ip(rng.pick::<&str>(&["192.0.2.2", "192.0.2.3"])),
        dst: ip(rng.pick::<&str>(&["192.0.2.100", "192.0.2.101", "192.0.2.110"])),
        sport,
        dport,
    };
    let (_, before) = known(bed);
    // Mostly to sessions that are there.
    let to_known: Vec<&Key> = before.keys().filter(|(_, p)| *p == protocol).collect();
    if !to_known.is_empty() && !rng.one_in(4) {
        tuple = rng.pick(&to_known).0;
    }
    let (key, flags) = ((tuple, protocol), flags(rng, protocol));
    let was_live = live(bed, &key, false);
    let frame = bed.back(tuple, protocol, flags);
    let (_, after) = known(bed);
    let Some(frame) = frame else {
        assert!(!was_live, "an answer is lost: {key:?}, {:?}", bed.router.errors());
        return false;
    };
    let to = after[&key];
    assert_eq!(frame, bed.came(to, protocol, flags));
    if was_live {
        assert_eq!(before[&key], to);
    } else {
        let of_mapping =
            bed.nat().mappings().iter().any(|(_, a)| a.is_some_and(|a| a.to_bits() == tuple.dst));
        let admits = bed.nat().filtering().get(&tuple.dst).copied();
        let is_open = matches!(protocol, TCP | UDP)
            && admits.is_some_and(|filtering| filtering != Filtering::AddressAndPortDependent);
        assert!(of_mapping || is_open, "no session asked for it: {key:?} came as {:?}", read(&frame));
    }
    true
}

fn change(bed: &mut Bed, rng: &mut Rng) {
    let nat = bed.nat();
    let address = rng.pick::<&str>(&["192.0.2.100", "192.0.2.101"]).parse().unwrap();
    let whole = spec(("10.0.0.4", 0), ("192.0.2.110", 0), 0);
    let mut one = spec(("10.0.0.3", 80), ("192.0.2.100", 80), TCP);
    one.twice = *rng.pick(&[TwiceNat::No, TwiceNat::OfItself]);
    let filtering = *rng.pick(&[
        None,
        Some(Filtering::EndpointIndependent),
        Some(Filtering::AddressDependent),
        Some(Filtering::AddressAndPortDependent),
    ]);
    match rng.below(8) {
        6..8 => _ = nat.set_independent((address, address), filtering),
        0 => _ = nat.add_addresses((address, address), Purpose::Pool, None),
        1 if nat.addresses().len() > 1 => _ = nat.del_addresses((address, address), Purpose::Pool),
        2 => _ = nat.add_mapping(one),
        3 => _ = nat.del_mapping(&one),
        4 => _ = nat.add_mapping(whole),
        _ => _ = nat.del_mapping(&whole),
    }
}

#[test]
fn whatever_comes_no_tuple_is_given_to_two_and_every_byte_is_right() {
    let seed = Rng::seed(18);
    for round in 0..4 {
        let mut rng = Rng::new(seed + round);
        let mut bed = bed();
        bed.share("192.0.2.100");
        if round % 2 == 1 {
            let address = "192.0.2.100".parse().unwrap();
            bed.nat().set_independent((address, address), Some(Filtering::EndpointIndependent)).unwrap();
        }
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
    }
}
