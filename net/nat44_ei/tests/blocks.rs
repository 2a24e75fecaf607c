//! Blocks of ports: what a host gets, when it is logged, what it cannot have.

use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ei::config::{Algorithm, Timeouts};
use shoal_syslog::{Sender, Syslog};

use crate::common::{Bed, HOST, bed, ip, packet, read, tuple};

fn with_blocks(size: u16, most: u8) -> Bed {
    let bed = bed();
    bed.nat().set_algorithm(Algorithm::Blocks { size, most }).unwrap();
    bed
}

fn asked(host: u8, port: u16) -> shoal_nat::Tuple {
    tuple((&format!("10.0.0.{host}"), port), ("192.0.2.2", 80))
}

#[test]
fn a_host_has_ports_of_its_own_and_of_no_other() {
    let mut bed = with_blocks(16, 2);
    let mut ports = std::collections::BTreeMap::new();
    for host in 2..8_u8 {
        for port in 1..=20 {
            for protocol in [UDP, TCP] {
                let to = read(&bed.out(asked(host, port), protocol, 2).unwrap());
                ports.entry((to.src, to.sport)).or_insert(host);
                assert_eq!(ports[&(to.src, to.sport)], host, "another host's port");
            }
        }
    }
    let blocks = bed.nat().blocks().unwrap();
    assert_eq!(blocks.len(), 12, "20 ports of each protocol need two blocks of 16");
    for block in &blocks {
        assert_eq!((block.first - 1024) % 1008 % 16, 0);
        assert_eq!(block.last - block.first, 15);
        for ((address, port), host) in &ports {
            let within = *address == block.address && (block.first..=block.last).contains(port);
            assert!(!within || block.host.0 == ip(&format!("10.0.0.{host}")), "{block:?}");
        }
    }
    // As many as a host may have; other protocols' ports and other hosts do not suffer.
    for port in 21..=32 {
        bed.out(asked(2, port), UDP, 0).unwrap();
    }
    assert_eq!(bed.out(asked(2, 33), UDP, 0), None);
    assert_eq!(bed.router.error("nat44-ei-in2out-slowpath", "out of ports"), 1);
    bed.out(asked(2, 33), TCP, 2).unwrap();
    bed.out(asked(3, 33), UDP, 0).unwrap();
    // A block goes with its last session.
    bed.nat().set_timeouts(Timeouts { udp: 5, tcp_transitory: 50, ..Timeouts::default() }).unwrap();
    bed.advance(10);
    assert_eq!(bed.nat().blocks().unwrap().len(), 12);
    bed.advance(60);
    assert_eq!(bed.nat().blocks().unwrap(), []);
}

#[test]
fn a_block_rests_before_a_host_has_it_again() {
    let mut bed = with_blocks(504, 1);
    bed.nat().set_timeouts(Timeouts { udp: 5, ..Timeouts::default() }).unwrap();
    let mut had = Vec::new();
    // Two blocks are in the host's part of an address, two in the next.
    for round in 0..4 {
        bed.out(asked(2, 7), UDP, 0).unwrap();
        let [block] = bed.nat().blocks().unwrap()[..] else { panic!("it has one") };
        assert!(!had.contains(&block.first), "round {round}: {} of {had:?}", block.first);
        had.push(block.first);
        bed.advance(10);
        assert_eq!(bed.nat().blocks().unwrap(), []);
    }
    let part = |first: &u16| (first - 1024) / 1008;
    assert_eq!(had.iter().map(part).collect::<std::collections::BTreeSet<_>>().len(), 2, "{had:?}");
    // RFC 6888, REQ-8: 120 s, and no more than twice that.
    bed.advance(240);
    bed.out(asked(2, 7), UDP, 0).unwrap();
    assert_eq!(part(&bed.nat().blocks().unwrap()[0].first), part(&had[0]), "its own part again");
}

#[test]
fn all_blocks_of_an_address_are_given_out_and_then_no_more() {
    let mut bed = with_blocks(1008, 1);
    let mut given = 0;
    for n in 0..70_u8 {
        let asked = tuple((&format!("10.0.0.{}", n + 2), 7), ("192.0.2.2", 80));
        given += u32::from(bed.out(asked, UDP, 0).is_some());
    }
    assert_eq!(given, 64, "parts of an address");
    assert_eq!(bed.nat().blocks().unwrap().len(), 64);
    bed.share("192.0.2.101");
    bed.share("192.0.2.102");
    assert!(bed.out(asked(71, 7), UDP, 0).is_some(), "the next address has some");
}

#[test]
fn a_log_has_a_line_for_a_block_and_none_for_its_sessions() {
    let mut bed = with_blocks(252, 1);
    let sender = Sender::new("192.0.2.7".parse().unwrap(), "192.0.2.1".parse().unwrap());
    bed.router.get::<Syslog>().set_sender(sender).unwrap();
    let lines = |bed: &mut Bed| {
        bed.router.run();
        let frames = bed.outside.received().into_iter().filter(|frame| frame[36..38] == [2, 2]);
        frames.map(|frame| String::from_utf8(frame[42..].to_vec()).unwrap()).collect::<Vec<String>>()
    };
    for port in 1..20 {
        let frame = packet((HOST, bed.inside.mac()), asked(2, port), UDP, 0, 64, b"");
        bed.send_inside(frame);
    }
    let begins = lines(&mut bed);
    assert_eq!(begins.len(), 1, "{begins:?}");
    assert!(begins[0].contains("PBADD [npblock "), "{begins:?}");
    let block = bed.nat().blocks().unwrap()[0];
    bed.nat().clear_sessions().unwrap();
    let ends = lines(&mut bed);
    assert_eq!(ends.len(), 1, "{ends:?}");
    let wanted = format!(
        "PBDEL [npblock SVLAN=\"0\" IATYP=\"IPv4\" ISADDR=\"10.0.0.2\" XATYP=\"IPv4\" XSADDR=\"192.0.2.100\" XPFIRST=\"{}\" XPLAST=\"{}\"]",
        block.first, block.last
    );
    assert!(ends[0].contains(&wanted), "{ends:?}");
}

#[test]
fn hosts_reach_what_is_exempt_with_their_own_addresses() {
    let mut bed = bed();
    let prefix = "192.0.2.2/32".parse().unwrap();
    bed.nat().set_exempt(prefix, true).unwrap();
    assert!(bed.nat().set_exempt(prefix, true).is_err());
    assert_eq!(bed.out(asked(2, 7), UDP, 0), Some(bed.left(asked(2, 7), UDP, 0)));
    let other = tuple(("10.0.0.2", 7), ("192.0.2.3", 80));
    assert_ne!(read(&bed.out(other, UDP, 0).unwrap()).src, other.src);
    bed.nat().set_exempt(prefix, false).unwrap();
    assert_eq!(bed.nat().set_exempt(prefix, false).unwrap_err().to_string(), "192.0.2.2/32 is not exempt");
    assert_ne!(read(&bed.out(asked(2, 8), UDP, 0).unwrap()).src, other.src);
}

#[test]
fn blocks_that_cannot_be_are_refused() {
    let bed = bed();
    for (size, most, expected) in
        [(15, 1, "nearest 16"), (1009, 1, "nearest 1008"), (100, 0, "at least 1 block")]
    {
        let refused = bed.nat().set_algorithm(Algorithm::Blocks { size, most }).unwrap_err().to_string();
        assert!(refused.contains(expected), "{refused}");
    }
    assert_eq!(bed.nat().algorithm(), Algorithm::Default);
}
