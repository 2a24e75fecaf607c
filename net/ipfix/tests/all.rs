//! Messages as they leave, several exporters, settings, bad input, the binary API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::IpAddr;
use std::time::Duration;

use shoal_ipfix::api::*;
use shoal_ipfix::{Exporter, Field, Ipfix, IpfixError, Template};
use shoal_message::Retval;
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Get, Request};
use shoal_testkit::{PEER, PEER_MAC, Port, Router, STACK, US, api};

fn bed() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_ipfix::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    for last in [2, 3, 4, 5, 6, 7] {
        router.set_neighbour(&port, [10, 0, 0, last].into(), PEER_MAC);
    }
    router.advance(Duration::from_secs(3));
    port.received();
    (router, port)
}

fn to(last: u8) -> Exporter {
    Exporter::new(IpAddr::from([10, 0, 0, last]), IpAddr::V4(US))
}

fn template() -> Template {
    Template { domain: 7, source_port: 4000, fields: vec![Field::new(230, 1), Field::new(8, 4)] }
}

/// The IPFIX messages that left.
fn sent(router: &mut Router, port: &Port) -> Vec<Vec<u8>> {
    router.run();
    port.received().into_iter().map(|frame| frame[42..].to_vec()).collect()
}

const TEMPLATE: [u8; 16] = [0, 2, 0, 16, 1, 0, 0, 2, 0, 230, 0, 1, 0, 8, 0, 4];

fn header(length: u8, second: u8, sequence: u8) -> [u8; 16] {
    [0, 10, 0, length, 0, 0, 0, second, 0, 0, 0, sequence, 0, 0, 0, 7]
}

#[test]
fn templates_go_first_and_again_and_records_wait_a_second_at_most() {
    let (mut router, port) = bed();
    let ipfix = router.get::<Ipfix>();
    let key = ipfix.add_report(template());
    assert!(sent(&mut router, &port).is_empty(), "no collector");
    ipfix.set(Exporter { port: 5000, ..to(2) }).unwrap();
    assert!(sent(&mut router, &port).is_empty(), "they wait for a record");
    router.advance(Duration::from_secs(3));
    assert!(sent(&mut router, &port).is_empty());
    router.advance(Duration::from_secs(2));
    let frames = port.received();
    let frame = &frames[0];
    assert_eq!((frames.len(), &frame[26..34]), (1, &[10, 0, 0, 1, 10, 0, 0, 2][..]));
    assert_eq!(frame[34..42], [0x0f, 0xa0, 0x13, 0x88, 0, 40, 0, 0], "4000 to 5000, no checksum");
    assert_eq!((frame[20], frame[22]), (0x40, 254), "DF, TTL");
    assert_eq!(frame[42..], [&header(32, 8, 0)[..], &TEMPLATE].concat());
    ipfix.record(key, &[4, 10, 0, 0, 5]);
    ipfix.record(key, &[5, 10, 0, 0, 6]);
    assert!(sent(&mut router, &port).is_empty(), "they wait for others");
    router.advance(Duration::from_secs(1));
    let data = [1, 0, 0, 14, 4, 10, 0, 0, 5, 5, 10, 0, 0, 6];
    assert_eq!(sent(&mut router, &port), [[&header(30, 9, 0)[..], &data].concat()]);
    ipfix.record(key, &[4, 10, 0, 0, 7]);
    ipfix.flush();
    let all = sent(&mut router, &port);
    let data = [&header(25, 9, 2)[..], &[1, 0, 0, 9, 4, 10, 0, 0, 7]].concat();
    assert_eq!(all, [data], "two records came before, and the template is known");
    router.advance(Duration::from_secs(20));
    assert_eq!(sent(&mut router, &port), [[&header(32, 28, 3)[..], &TEMPLATE].concat()]);
}

#[test]
fn a_full_message_is_sent_and_none_is_longer_than_the_path_carries() {
    let (mut router, port) = bed();
    let ipfix = router.get::<Ipfix>();
    ipfix.set(Exporter { path_mtu: 100, ..to(2) }).unwrap();
    let key = ipfix.add_report(template());
    for n in 0..50u8 {
        ipfix.record(key, &[n, 0, 0, 0, 0]);
    }
    ipfix.flush();
    router.run();
    let frames = port.received();
    assert!(frames.iter().all(|frame| frame.len() <= 114));
    let (mut records, mut sequence) = (Vec::new(), 0);
    for frame in &frames {
        let message = &frame[42..];
        assert_eq!(u32::from_be_bytes(message[8..12].try_into().unwrap()), sequence);
        let mut rest = &message[16..];
        while !rest.is_empty() {
            let (set, length) = (u16::from_be_bytes([rest[0], rest[1]]), usize::from(rest[3]));
            if set == 256 {
                records.extend(rest[4..length].chunks(5).map(|record| record[0]));
                sequence += ((length - 4) / 5) as u32;
            }
            rest = &rest[length..];
        }
    }
    assert_eq!(records, (0..50).collect::<Vec<u8>>());
    assert_eq!(ipfix.sent(0), (frames.len() as u64, 50, 0));
    ipfix.record(key, &[1, 2]);
    assert_eq!(ipfix.sent(0).2, 1, "a record of another length");
}

#[test]
fn every_exporter_gets_every_record_and_one_to_an_ip6_collector_has_checksums() {
    let (mut router, port) = bed();
    let ipfix = router.get::<Ipfix>();
    ipfix.set(to(2)).unwrap();
    assert_eq!(ipfix.add(to(3)), Ok(1));
    let (source, collector): (IpAddr, IpAddr) =
        ("2001:db8::1".parse().unwrap(), "2001:db8::9".parse().unwrap());
    assert_eq!(ipfix.add(Exporter::new(collector, source)), Ok(2));
    let fib = router.get::<shoal_fib::Fib>();
    let next_hop: std::net::Ipv6Addr = "fe80::2".parse().unwrap();
    let path = shoal_fib::Path::next_hop(next_hop, port.index());
    let prefix: shoal_wire::IpPrefix = "2001:db8::9/128".parse().unwrap();
    fib.add(shoal_fib::FibIndex(0), prefix, shoal_fib::Source::Cli, &[path]).unwrap();
    let key = ipfix.add_report(template());
    router.run();
    port.received();
    ipfix.record(key, &[4, 10, 0, 0, 5]);
    ipfix.flush();
    router.run();
    let frames = port.received();
    let of = |last: u8| frames.iter().filter(|f| f[12..14] == [8, 0] && f[33] == last).count();
    assert_eq!((of(2), of(3)), (2, 2), "the template again, and the record");
    assert_eq!(ipfix.sent(2).1, 1);
}

#[test]
fn mistakes_change_nothing() {
    let (router, _) = bed();
    let ipfix = router.get::<Ipfix>();
    ipfix.set(to(2)).unwrap();
    let good = to(3);
    let (none, six): (IpAddr, IpAddr) = ("0.0.0.0".parse().unwrap(), "2001:db8::1".parse().unwrap());
    let many: IpAddr = "224.0.0.1".parse().unwrap();
    let bad = [
        (Exporter { source: none, ..good }, IpfixError::NoSource),
        (Exporter { source: six, ..good }, IpfixError::Families(good.collector, six)),
        (Exporter { collector: many, ..good }, IpfixError::NoHost(many)),
        (Exporter { port: 0, ..good }, IpfixError::Port),
        (Exporter { path_mtu: 1451, ..good }, IpfixError::TooBig(1451)),
        (Exporter { path_mtu: 67, ..good }, IpfixError::TooSmall(67)),
        (Exporter { template_interval: 0, ..good }, IpfixError::Interval),
    ];
    for (exporter, error) in bad {
        assert_eq!(ipfix.set(exporter), Err(error.clone()));
        assert_eq!(ipfix.add(exporter), Err(error));
    }
    assert_eq!(ipfix.add(Exporter::OFF), Err(IpfixError::NoCollector));
    assert!(matches!(ipfix.set(Exporter { vrf: Some(9), ..good }), Err(IpfixError::Fib(_))));
    for last in 3..7 {
        assert_eq!(ipfix.add(to(last)), Ok(u32::from(last) - 2));
    }
    assert_eq!(ipfix.add(to(7)), Err(IpfixError::TooMany));
    assert_eq!(ipfix.add(Exporter { path_mtu: 900, ..to(4) }), Ok(2), "the one that is there");
    assert_eq!(ipfix.remove(to(7).collector), Err(IpfixError::NoExporter(to(7).collector)));
    assert_eq!(ipfix.remove(to(2).collector), Err(IpfixError::First(to(2).collector)));
    assert_eq!(ipfix.remove(to(4).collector), Ok(2));
    assert_eq!(ipfix.add(to(7)), Ok(2));
    assert_eq!(ipfix.exporters(0).len(), 5);
}

#[test]
fn templates_and_the_records_of_each_are_in_messages_of_their_own() {
    let (mut router, port) = bed();
    let ipfix = router.get::<Ipfix>();
    let keys = [ipfix.add_report(template()), ipfix.add_report(template())];
    ipfix.set(to(2)).unwrap();
    let sets = |all: Vec<Vec<u8>>| -> Vec<[u8; 2]> {
        all.iter()
            .map(|message| {
                assert_eq!(usize::from(message[19]), message.len() - 16, "one set");
                [message[16], message[17]]
            })
            .collect()
    };
    assert!(sent(&mut router, &port).is_empty());
    for at in [1, 0, 1, 0] {
        ipfix.record(keys[at], &[4, 10, 0, 0, 5]);
    }
    ipfix.flush();
    assert_eq!(sets(sent(&mut router, &port)), [[0, 2], [0, 2], [1, 0], [1, 1]]);
    ipfix.record(keys[1], &[4, 10, 0, 0, 5]);
    ipfix.remove_report(keys[1]);
    assert_eq!(sets(sent(&mut router, &port)), [[1, 1]], "what waits is sent before");
}

#[test]
fn a_template_that_goes_is_sent_no_more_and_its_number_is_not_given_again() {
    let (mut router, port) = bed();
    let ipfix = router.get::<Ipfix>();
    ipfix.set(to(2)).unwrap();
    let key = ipfix.add_report(template());
    sent(&mut router, &port);
    ipfix.remove_report(key);
    sent(&mut router, &port);
    ipfix.record(key, &[4, 10, 0, 0, 5]);
    ipfix.flush();
    assert!(sent(&mut router, &port).is_empty());
    ipfix.add_report(template());
    ipfix.flush();
    let all = sent(&mut router, &port);
    assert_eq!(all[0][20..22], [1, 1], "257");
}

#[test]
fn messages_are_those_of_vpp_and_survive_random_bytes() {
    api::same_as_vpp(&[&API]);
    let (mut router, _) = bed();
    api::random_bytes_do_no_harm(&mut router, &[&API], 200);
}

#[test]
fn messages_do_what_commands_do() {
    let (router, _) = bed();
    let call = Call::local(router.control());
    let set = |mtu| SetIpfixExporter {
        collector_address: PEER.into(),
        collector_port: u16::MAX,
        src_address: US.into(),
        vrf_id: u32::MAX,
        path_mtu: mtu,
        template_interval: u32::MAX,
        udp_checksum: false,
    };
    assert_eq!(set(1451).handle(&call), Err(Retval::INVALID_VALUE));
    set(u32::MAX).handle(&call).unwrap();
    let first = IpfixExporterDump {}.dump(&call).next().unwrap();
    assert_eq!((first.collector_port, first.path_mtu, first.template_interval), (4739, 512, 20));
    let other = |is_create| IpfixExporterCreateDelete {
        is_create,
        collector_address: IpAddr::from([10, 0, 0, 3]),
        collector_port: 4739,
        src_address: US.into(),
        vrf_id: 0,
        path_mtu: 1400,
        template_interval: 20,
        udp_checksum: true,
    };
    assert_eq!(other(false).handle(&call).err(), Some(Retval::NO_SUCH_ENTRY));
    assert_eq!(other(true).handle(&call).unwrap().stat_index, 1);
    let (all, end) = IpfixAllExporterGet { cursor: 0 }.get(&call).unwrap();
    assert_eq!((all.len(), all[1].path_mtu, all[1].udp_checksum, end.cursor), (2, 1400, true, u32::MAX));
    other(false).handle(&call).unwrap();
    SetIpfixClassifyStream { domain_id: 0, src_port: 0 }.handle(&call).unwrap();
    let stream = IpfixClassifyStreamDump {}.dump(&call).next().unwrap();
    assert_eq!((stream.domain_id, stream.src_port), (1, 4739));
    IpfixFlush {}.handle(&call).unwrap();
}

#[test]
fn the_running_configuration_has_each_line() {
    let (router, _) = bed();
    let ipfix = router.get::<Ipfix>();
    ipfix.set(Exporter { path_mtu: 1450, template_interval: 30, ..to(2) }).unwrap();
    ipfix
        .add(Exporter { port: 5000, checksum: shoal_datagram::Checksum::Computed, vrf: Some(0), ..to(3) })
        .unwrap();
    ipfix.set_classify_stream(2, 4740);
    let mut running = Running::default();
    (shoal_ipfix::MODULE.running)(router.control(), &mut running);
    let text: String = running.pieces().collect();
    for line in [
        "set ipfix exporter collector 10.0.0.2 src 10.0.0.1 path-mtu 1450 template-interval 30",
        "ipfix exporter add collector 10.0.0.3 src 10.0.0.1 fib-id 0 port 5000 udp-checksum",
        "set ipfix classify stream domain 2 src-port 4740",
    ] {
        assert!(text.lines().any(|l| l == line), "{line} not in {text}");
    }
}
