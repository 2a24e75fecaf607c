//! What flow collectors hear.

use super::*;

#[test]
fn flow_collectors_hear_of_bindings_and_sessions_and_of_what_there_is_not_enough_of() {
    let mut bed = bed();
    let ipfix = bed.router.get::<shoal_ipfix::Ipfix>();
    let (collector, source): (std::net::IpAddr, std::net::IpAddr) = (SERVER.into(), [10, 0, 0, 1].into());
    ipfix.set(shoal_ipfix::Exporter::new(collector, source)).unwrap();
    let export = shoal_nat44::export::Export::of(bed.router.control()).unwrap();
    export.set(Some((7, 0)));
    export.set(Some((7, 0)));
    let sets = |bed: &mut Bed| -> Vec<Vec<u8>> {
        bed.router.run();
        ipfix.flush();
        bed.router.run();
        let is_ipfix = |frame: &Vec<u8>| {
            frame[ETHER + 9] == 17 && frame[ETHER + 22..ETHER + 24] == 4739_u16.to_be_bytes()
        };
        let sent = bed.far.received().into_iter().filter(is_ipfix);
        sent.map(|frame| frame[ETHER + 44..].to_vec()).collect()
    };
    let of_templates = |sets: Vec<Vec<u8>>| -> Vec<u16> { sets.iter().map(|set| word(set, 4)).collect() };
    let all: Vec<u16> = (256..262).collect();
    assert_eq!(of_templates(sets(&mut bed)), all);
    bed.nat.set_timeouts(Timeouts { udp: 1, ..Timeouts::default() }).unwrap();
    let sent = bed.out(2, UDP).unwrap();
    let data = |sets: &[Vec<u8>], id: u16| {
        let of: Vec<&Vec<u8>> = sets.iter().filter(|set| word(set, 0) == id).collect();
        assert_eq!(of.len(), 1, "{id} {sets:?}");
        of[0][12..].to_vec()
    };
    let told = sets(&mut bed);
    let (sport, port) = (20_000_u16.to_be_bytes(), word(&sent, 20).to_be_bytes());
    let begin =
        |event: u8| [&[event][..], &host(2).octets(), &SHARED.octets(), &[17], &sport, &port].concat();
    let (far, dport) = (of(SERVER).octets(), word(&sent, 22).to_be_bytes());
    let end = [&far[..], &SERVER.octets(), &dport, &dport, &[0; 4]].concat();
    assert_eq!(data(&told, 260), [begin(10), vec![0; 4]].concat());
    assert_eq!(data(&told, 261), [begin(6), end.clone()].concat());
    bed.router.advance(Duration::from_secs(3));
    let told = sets(&mut bed);
    assert_eq!(data(&told, 261), [begin(7), end].concat());
    assert_eq!(data(&told, 260), [begin(11), vec![0; 4]].concat());
    // A binding of an operator counts whether it is used or not.
    bed.binding(2, 80, 8080, 6).unwrap();
    assert_eq!(data(&sets(&mut bed), 260)[0], 10);
    assert_eq!(bed.router.counter("/nat64/total-bibs"), 1);
    bed.nat.del_binding(0, Inside { address: host(2), port: 80, protocol: 6, table: 0 }).unwrap();
    assert_eq!(data(&sets(&mut bed), 260)[0], 11);
    // Without a shared address there is no port, and with as many bindings as there may be no binding.
    bed.nat.del_addresses((SHARED, SHARED)).unwrap();
    assert!(bed.out(2, UDP).is_none());
    assert_eq!(data(&sets(&mut bed), 257), [3, 0, 0, 0, 0]);
    bed.nat.disable().unwrap();
    bed.nat.enable(Enable { bib_buckets: 1, st_buckets: 9 }).unwrap();
    bed.nat.add_addresses((SHARED, SHARED), None).unwrap();
    bed.nat.set_side(bed.access.index(), Side::Inside, true).unwrap();
    for port in 0..11u16 {
        bed.send_out(2, of(SERVER), move |p| p.udp(3000 + port, 53));
    }
    assert_eq!(data(&sets(&mut bed), 259), [13, 2, 0, 0, 0, 10, 0, 0, 0], "in VPP's order of bytes");
    export.set(None);
    assert!(sets(&mut bed).is_empty());
}
