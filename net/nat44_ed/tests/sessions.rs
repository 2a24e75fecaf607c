//! Sessions that hosts begin: made, kept, ended.

use shoal_nat::tuple::{ICMP, TCP, UDP};
use shoal_nat44_ed::Enable;
use shoal_nat44_ed::config::Timeouts;
use shoal_syslog::{Sender, Syslog};

use crate::common::{Bed, HOST, SHARED, bed, bed_of, packet, read, tuple};

const SYN: u8 = 2;
const ACK: u8 = 16;
const FIN: u8 = 1;
const RST: u8 = 4;

#[test]
fn packets_leave_with_a_shared_address_and_answers_come_back() {
    for (protocol, first, answer) in [(TCP, SYN, SYN | ACK), (UDP, 0, 0), (ICMP, 0, 1)] {
        let mut bed = bed();
        bed.share(SHARED);
        let dport = if protocol == ICMP { 5000 } else { 80 };
        let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", dport));
        let left = tuple((SHARED, 5000), ("192.0.2.2", dport));
        // RFC 4787, REQ-3: the port is kept when it is free.
        assert_eq!(bed.out(asked, protocol, first), Some(bed.left(left, protocol, first)));
        let back = bed.back(left.reversed(), protocol, answer);
        assert_eq!(back, Some(bed.came(asked.reversed(), protocol, answer)));
        let sessions = bed.sessions();
        assert_eq!(
            (sessions.len(), sessions[0].session.inside, sessions[0].session.outside),
            (1, asked, left)
        );
        assert_eq!(sessions[0].packets, 2);
        // Another host's port is another's.
        let other = tuple(("10.0.0.3", 5000), ("192.0.2.2", dport));
        let became = read(&bed.out(other, protocol, first).unwrap());
        assert_ne!(became.sport, 5000);
        assert!(became.sport >= 1024);
        assert_eq!(bed.router.counter("/nat44-ed/total-sessions"), 2);
    }
}

#[test]
fn unexpected_packets_are_dropped_and_counted() {
    let mut bed = bed();
    bed.share(SHARED);
    assert_eq!(bed.back(tuple(("192.0.2.2", 80), (SHARED, 5000)), UDP, 0), None);
    assert_eq!(bed.router.error("nat44-ed-out2in-slowpath", "no translation"), 1);
    // RFC 4787, REQ-8: answers come from the asked host, and from that port.
    bed.out(tuple(("10.0.0.2", 5000), ("192.0.2.2", 80)), UDP, 0).unwrap();
    assert_eq!(bed.back(tuple(("192.0.2.3", 80), (SHARED, 5000)), UDP, 0), None);
    assert_eq!(bed.back(tuple(("192.0.2.2", 81), (SHARED, 5000)), UDP, 0), None);
    assert_eq!(bed.out(tuple(("10.0.0.2", 5001), ("192.0.2.2", 80)), TCP, ACK), None);
    assert_eq!(bed.router.error("nat44-ed-in2out-slowpath", "non-SYN packet try to create session"), 1);
}

#[test]
fn without_addresses_packets_are_dropped_and_with_several_the_next_one_is_tried() {
    let mut bed = bed();
    let asked = |port| tuple(("10.0.0.2", port), ("192.0.2.2", 80));
    assert_eq!(bed.out(asked(5000), UDP, 0), None);
    assert_eq!(bed.router.error("nat44-ed-in2out-slowpath", "out of ports"), 1);
    bed.share(SHARED);
    bed.share("192.0.2.101");
    // A protocol without ports has one session for each address and remote host.
    let mut seen = std::collections::BTreeSet::new();
    for host in ["10.0.0.2", "10.0.0.3"] {
        let frame = bed.out(tuple((host, 0), ("192.0.2.2", 0)), 47, 0).unwrap();
        seen.insert(read(&frame).src);
    }
    assert_eq!(seen.len(), 2, "each host its address");
    assert_eq!(bed.out(tuple(("10.0.0.4", 0), ("192.0.2.2", 0)), 47, 0), None);
    assert_eq!(bed.router.error("nat44-ed-in2out-slowpath", "out of ports"), 2);
    assert!(bed.out(tuple(("10.0.0.4", 0), ("192.0.2.3", 0)), 47, 0).is_some(), "to another it has one");
}

#[test]
fn sessions_end_by_themselves_when_their_time_is_over() {
    for (protocol, flags, seconds) in [(UDP, 0, 300), (TCP, SYN, 240), (ICMP, 0, 60), (47, 0, 300)] {
        let mut bed = bed();
        bed.share(SHARED);
        let ports = if protocol == 47 { (0, 0) } else { (5000, 5000) };
        let asked = tuple(("10.0.0.2", ports.0), ("192.0.2.2", ports.1));
        let left = read(&bed.out(asked, protocol, flags).unwrap());
        bed.advance(seconds - 2);
        // RFC 4787, REQ-6: a packet of either direction keeps it.
        assert!(bed.back(left.reversed(), protocol, flags.max(u8::from(protocol == ICMP))).is_some());
        bed.advance(seconds - 2);
        assert_eq!(bed.sessions().len(), 1, "{protocol}");
        bed.advance(30);
        assert_eq!(bed.sessions().len(), 0, "{protocol}");
        assert_eq!(bed.router.counter("/nat44-ed/total-sessions"), 0);
        assert_eq!(bed.router.graph().next_timer().unwrap(), None, "nothing is left to wait for");
    }
}

#[test]
fn a_packet_after_the_end_begins_a_session_only_if_it_may() {
    let mut bed = bed();
    bed.share(SHARED);
    bed.nat().set_timeouts(Timeouts { udp: 1, tcp_transitory: 1, ..Timeouts::default() }).unwrap();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let left = read(&bed.out(asked, UDP, 0).unwrap());
    bed.out(asked, TCP, SYN).unwrap();
    bed.advance(3);
    // They are still listed, as timed out, but of no use.
    assert_eq!(bed.sessions().len(), 2);
    assert_eq!(bed.back(left.reversed(), UDP, 0), None);
    assert_eq!(bed.out(asked, TCP, ACK), None);
    assert_eq!(bed.sessions().len(), 0);
    assert!(bed.out(asked, UDP, 0).is_some() && bed.out(asked, TCP, SYN).is_some());
}

#[test]
fn a_connection_is_established_by_both_sides_and_ends_soon_after_fin_or_rst() {
    for end in [FIN | ACK, RST] {
        let mut bed = bed();
        bed.share(SHARED);
        let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
        let answer = tuple((SHARED, 5000), ("192.0.2.2", 80)).reversed();
        bed.out(asked, TCP, SYN).unwrap();
        bed.back(answer, TCP, SYN | ACK).unwrap();
        bed.out(asked, TCP, ACK).unwrap();
        assert!(bed.sessions()[0].states.0.is_established());
        // RFC 5382, REQ-5: two hours and four minutes.
        bed.advance(7430);
        assert!(bed.out(asked, TCP, ACK).is_some());
        bed.back(answer, TCP, end).unwrap();
        assert!(!bed.sessions()[0].states.0.is_established());
        bed.advance(200);
        assert_eq!(bed.sessions().len(), 1, "four minutes");
        bed.advance(60);
        assert_eq!(bed.sessions().len(), 0);
    }
}

#[test]
fn no_more_sessions_than_there_may_be_and_those_that_live_stay() {
    let mut bed = bed_of(Enable { sessions: 10, ..Enable::default() });
    bed.share(SHARED);
    let asked = |port| tuple(("10.0.0.2", port), ("192.0.2.2", 80));
    let passed = (5000..5020).filter(|port| bed.out(asked(*port), UDP, 0).is_some()).count();
    assert_eq!(passed, 10);
    assert_eq!(bed.router.error("nat44-ed-in2out-slowpath", "maximum sessions exceeded"), 10);
    // Those that are known go on.
    assert!((5000..5010).all(|port| bed.out(asked(port), UDP, 0).is_some()));
    // One whose time is over makes room before the timer takes it.
    bed.advance(301);
    assert!(bed.out(asked(6000), UDP, 0).is_some());
    // A limit of the VRF's hosts is one of theirs alone.
    bed.nat().clear_sessions().unwrap();
    bed.nat().set_limit(0, 3).unwrap();
    let passed = (5000..5020).filter(|port| bed.out(asked(*port), UDP, 0).is_some()).count();
    assert_eq!(passed, 3);
}

#[test]
fn udp_without_a_checksum_stays_without_and_ttl_ends_before_the_translation() {
    let mut bed = bed();
    bed.share(SHARED);
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let mut bytes = packet((HOST, bed.inside.mac()), asked, UDP, 0, 64, b"odd");
    bytes[40..42].fill(0);
    bed.send_inside(bytes);
    let frame = bed.outside.received_one();
    assert_eq!(frame[40..42], [0, 0]);
    // A host that traces its way gets an error, with its own packet inside.
    let bytes = packet((HOST, bed.inside.mac()), asked, UDP, 0, 1, b"payload");
    bed.send_inside(bytes);
    let told = bed.inside.received_one();
    assert_eq!((told[34], told[35]), (11, 0));
    assert_eq!(read(&[&[0; 14], &told[42..]].concat()), asked);
    assert_eq!(bed.outside.received(), Vec::<Vec<u8>>::new());
}

#[test]
fn segments_are_clamped_on_syn_only() {
    let mut bed = bed();
    bed.share(SHARED);
    bed.nat().set_mss(1400).unwrap();
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    // The builder's SYN has no options: nothing to clamp, and nothing is spoilt.
    assert_eq!(bed.out(asked, TCP, SYN), Some(bed.left(tuple((SHARED, 5000), ("192.0.2.2", 80)), TCP, SYN)));
}

#[test]
fn hosts_that_hit_every_port_take_bounded_work_and_memory() {
    let mut bed = bed_of(Enable { sessions: 2000, ..Enable::default() });
    bed.share(SHARED);
    let frames: Vec<Vec<u8>> = (0..6000_u16)
        .map(|n| {
            let asked = tuple(("10.0.0.3", 1024 + n), ("192.0.2.2", 80));
            packet((HOST, bed.inside.mac()), asked, UDP, 0, 64, b"x")
        })
        .collect();
    for burst in frames.chunks(256) {
        bed.send_all_inside(burst);
    }
    assert_eq!(bed.outside.received().len(), 2000);
    assert_eq!(bed.sessions().len(), 2000);
    assert_eq!(bed.router.error("nat44-ed-in2out-slowpath", "maximum sessions exceeded"), 4000);
}

#[test]
fn collectors_hear_when_sessions_begin_and_end() {
    let mut bed = bed();
    bed.share(SHARED);
    let asked = tuple(("10.0.0.2", 5000), ("192.0.2.2", 80));
    let lines = |bed: &mut Bed| {
        bed.router.run();
        let frames = bed.outside.received().into_iter().filter(|frame| frame[36..38] == [2, 2]);
        frames.map(|frame| String::from_utf8(frame[42..].to_vec()).unwrap()).collect::<Vec<String>>()
    };
    let packet = packet((HOST, bed.inside.mac()), asked, TCP, SYN, 64, b"");
    bed.send_inside(packet.clone());
    assert_eq!(lines(&mut bed), [""; 0], "nothing asks for it");
    bed.nat().clear_sessions().unwrap();
    let sender = Sender::new("192.0.2.7".parse().unwrap(), "192.0.2.1".parse().unwrap());
    bed.router.get::<Syslog>().set_sender(sender).unwrap();
    bed.send_inside(packet.clone());
    let wanted = |id: &str| {
        let host = "IATYP=\"IPv4\" ISADDR=\"10.0.0.2\" ISPORT=\"5000\"";
        let outside = format!("XATYP=\"IPv4\" XSADDR=\"{SHARED}\" XSPORT=\"5000\"");
        let far = "PROTO=\"6\" XDADDR=\"192.0.2.2\" XDPORT=\"80\"";
        format!("{id} [nsess SSUBIX=\"0\" SVLAN=\"0\" {host} {outside} {far}]")
    };
    let begins = lines(&mut bed);
    assert!(begins.len() == 1 && begins[0].contains(&wanted("SADD")), "{begins:?}");
    bed.send_inside(packet.clone());
    assert_eq!(lines(&mut bed), [""; 0], "it is known");
    // Ended by a command.
    bed.nat().clear_sessions().unwrap();
    let ends = lines(&mut bed);
    assert!(ends.len() == 1 && ends[0].contains(&wanted("SDEL")), "{ends:?}");
    // Ended by its timeout.
    bed.nat().set_timeouts(Timeouts { tcp_transitory: 5, ..Timeouts::default() }).unwrap();
    bed.send_inside(packet);
    assert_eq!(lines(&mut bed).len(), 1);
    bed.advance(30);
    let ends = lines(&mut bed);
    assert!(ends.len() == 1 && ends[0].contains(&wanted("SDEL")), "{ends:?}");
}
