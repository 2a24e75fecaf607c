//! ICMP errors, from both sides, about packets of sessions and others.

use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_wire::checksum::checksum;

use crate::common::{FAR, HOST, SHARED, bed, icmp_error, ip, packet, read, spec, tuple};

#[test]
fn an_error_about_a_session_s_packet_reaches_the_host_with_its_own_packet_inside() {
    for (protocol, flags) in [(UDP, 0), (TCP, 2), (ICMP, 0)] {
        let mut bed = bed();
        let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", if protocol == ICMP { 5000 } else { 80 }));
        let left = bed.out(asked, protocol, flags).unwrap();
        bed.advance(10);
        // A router on the way says it, which is not the one that was asked.
        let of = |mac, src: &str, dst: &str, ttl| packet(mac, tuple((src, 7), (dst, 7)), ICMP, 0, ttl, b"");
        let mac = (FAR, bed.outside.mac());
        bed.send_outside(icmp_error(&of(mac, "192.0.2.3", SHARED, 64), &left[14..]));
        let told = bed.inside.received_one();
        let own = packet((HOST, HOST), asked, protocol, flags, 63, b"payload");
        let wanted = icmp_error(&of((bed.inside.mac(), HOST), "192.0.2.3", "10.0.0.2", 63), &own[14..]);
        assert_eq!(told, wanted);
        // RFC 5508, REQ-6: it does not keep the session, nor end it.
        assert!(bed.sessions()[0].age >= 80);
        let mut bad = icmp_error(&of(mac, "192.0.2.3", SHARED, 64), &left[14..]);
        bad[36] ^= 1;
        bed.send_outside(bad);
        assert_eq!(bed.inside.received(), Vec::<Vec<u8>>::new(), "a wrong checksum");
    }
}

#[test]
fn a_router_between_host_and_nat_is_not_seen_outside() {
    let mut bed = bed();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let to = read(&bed.out(asked, UDP, 0).unwrap());
    let answer = bed.back(to.reversed(), UDP, 0).unwrap();
    let of = packet((HOST, bed.inside.mac()), tuple(("10.0.0.9", 7), ("192.0.2.2", 7)), ICMP, 0, 64, b"");
    bed.send_inside(icmp_error(&of, &answer[14..]));
    let told = bed.outside.received_one();
    assert_eq!(told[26..30], ip(SHARED).to_be_bytes(), "RFC 5508, REQ-5");
    let inner = shoal_nat::ParsedPacket::read(&told[42..]).unwrap().tuple;
    assert_eq!(inner, to.reversed());
    assert_eq!(checksum(&told[34..]), 0);
}

#[test]
fn an_error_between_two_hosts_is_translated_twice() {
    let mut bed = bed();
    bed.nat().add_mapping(spec(("10.0.0.5", 80), (SHARED, 8080), UDP)).unwrap();
    let asked = tuple(("10.0.0.2", 5000), (SHARED, 8080));
    let came = bed.hairpin(asked, UDP, 0).unwrap();
    // The server says that nothing listens there.
    let of = packet((HOST, bed.inside.mac()), tuple(("10.0.0.5", 7), (SHARED, 7)), ICMP, 0, 64, b"");
    bed.send_inside(icmp_error(&of, &came[14..]));
    let told = bed.inside.received_one();
    assert_eq!(told[26..34], [ip(SHARED).to_be_bytes(), ip("10.0.0.2").to_be_bytes()].concat());
    let inner = shoal_nat::ParsedPacket::read(&told[42..]).unwrap().tuple;
    assert_eq!(inner, asked);
    assert_eq!(checksum(&told[34..]), 0);
}
