//! Messages as they leave, settings, bad input, the binary API.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::time::Duration;

use shoal_message::Retval;
use shoal_module::Running;
use shoal_module::api::{Call, Request};
use shoal_syslog::api::*;
use shoal_syslog::{Facility, Message, Sender, Severity, Syslog, SyslogError};
use shoal_testkit::{PEER, PEER_MAC, US};
use shoal_testkit::{Port, Router, STACK, api};

fn bed() -> (Router, Port) {
    let mut modules = STACK.to_vec();
    modules.push(&shoal_syslog::MODULE);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    router.set_address(&port, "10.0.0.1/24");
    router.set_neighbour(&port, PEER, PEER_MAC);
    router.advance(Duration::from_secs(3));
    port.received();
    (router, port)
}

fn warning() -> Message {
    Message::new(Facility::Local7, Severity::Warning, "test", "testMsg")
        .element("e@1")
        .param("k", "v")
        .text("hello")
}

#[test]
fn a_message_leaves_as_one_datagram_with_these_bytes() {
    let (mut router, port) = bed();
    let syslog = router.get::<Syslog>();
    syslog.set_sender(Sender { port: 12345, ..Sender::new(PEER, US) }).unwrap();
    syslog.send(warning());
    router.run();
    let frame = port.received_one();
    let (ip, udp) = (&frame[14..34], &frame[34..42]);
    let pid = std::process::id();
    let want = format!("<188>1 1970-01-01T00:00:03.000000Z 10.0.0.1 test {pid} testMsg [e@1 k=\"v\"] hello");
    assert_eq!(std::str::from_utf8(&frame[42..]).unwrap(), want);
    assert_eq!((ip[6], ip[8], ip[9]), (0x40, 255, 17), "DF, TTL 255, UDP");
    assert_eq!((&ip[12..16], &ip[16..20]), (&US.octets()[..], &PEER.octets()[..]));
    assert_eq!(udp[..4], [2, 2, 0x30, 0x39], "from 514 to 12345");
    let mut sum = shoal_wire::checksum::Sum::pseudo_ip4(
        US,
        PEER,
        shoal_wire::IpProtocol::UDP,
        (frame.len() - 34) as u16,
    );
    sum.add(&frame[34..]);
    assert_eq!(sum.finish(), 0);
    assert_eq!(router.counter("/syslog/sent"), 1);
}

#[test]
fn the_filter_lets_pass_what_is_bad_enough_and_no_collector_means_silence() {
    let (mut router, port) = bed();
    let syslog = router.get::<Syslog>();
    let gate = syslog.gate();
    syslog.send(warning());
    assert!(!gate.passes(Severity::Emergency));
    syslog.set_sender(Sender::new(PEER, US)).unwrap();
    for (least, passes) in [(Severity::Error, false), (Severity::Warning, true), (Severity::Debug, true)] {
        syslog.set_filter(least);
        syslog.send(warning());
        router.run();
        assert_eq!((port.received().len() == 1, gate.passes(Severity::Warning)), (passes, passes));
    }
    syslog.disable();
    syslog.send(warning());
    router.run();
    assert!(port.received().is_empty() && !gate.passes(Severity::Emergency));
    assert_eq!((router.counter("/syslog/sent"), router.counter("/syslog/filtered")), (2, 1));
}

#[test]
fn long_text_is_cut_and_long_structured_data_is_a_counted_loss() {
    let (mut router, port) = bed();
    let syslog = router.get::<Syslog>();
    syslog.set_sender(Sender::new(PEER, US)).unwrap();
    syslog.send(warning().text("x".repeat(1000)));
    router.run();
    assert_eq!(port.received_one().len(), 42 + 480);
    syslog.send(warning().element("long").param("p", "y".repeat(500)));
    router.run();
    assert!(port.received().is_empty());
    assert_eq!(router.counter("/syslog/too-long"), 1);
}

#[test]
fn mistakes_change_nothing() {
    let (router, _) = bed();
    let syslog = router.get::<Syslog>();
    let good = Sender::new(PEER, US);
    syslog.set_sender(good).unwrap();
    let none = Ipv4Addr::UNSPECIFIED;
    let bad = [
        (Sender { collector: none, ..good }, SyslogError::NoCollector),
        (Sender { source: none, ..good }, SyslogError::NoSource),
        (Sender { collector: Ipv4Addr::BROADCAST, ..good }, SyslogError::NoHost(Ipv4Addr::BROADCAST)),
        (Sender { port: 0, ..good }, SyslogError::Port),
        (Sender { max_size: 479, ..good }, SyslogError::TooSmall(479)),
        (Sender { max_size: 65_508, ..good }, SyslogError::TooLarge(65_508)),
    ];
    for (sender, error) in bad {
        assert_eq!(syslog.set_sender(sender), Err(error));
    }
    assert!(matches!(syslog.set_sender(Sender { vrf: 7, ..good }), Err(SyslogError::Fib(_))));
    assert_eq!(syslog.sender(), Some(good));
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
    assert_eq!(SyslogGetSender {}.handle(&call).unwrap().collector_address, Ipv4Addr::UNSPECIFIED);
    let set = |port, size| SyslogSetSender {
        src_address: US,
        collector_address: PEER,
        collector_port: port,
        vrf_id: u32::MAX,
        max_msg_size: size,
    };
    assert_eq!(set(514, 100).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(SyslogSetSender { vrf_id: 9, ..set(514, 480) }.handle(&call), Err(Retval::NO_SUCH_FIB));
    set(5514, 2048).handle(&call).unwrap();
    let got = SyslogGetSender {}.handle(&call).unwrap();
    assert_eq!(
        (got.src_address, got.collector_address, got.collector_port, got.vrf_id, got.max_msg_size),
        (US, PEER, 5514, 0, 2048)
    );
    SyslogSetFilter { severity: SyslogSeverity::Warn }.handle(&call).unwrap();
    assert_eq!(SyslogGetFilter {}.handle(&call).unwrap().severity, SyslogSeverity::Warn);
}

#[test]
fn the_running_configuration_has_each_line_and_none_when_it_is_off() {
    let (router, _) = bed();
    let syslog = router.get::<Syslog>();
    let text = || {
        let mut running = Running::default();
        (shoal_syslog::MODULE.running)(router.control(), &mut running);
        running.pieces().collect::<String>()
    };
    assert!(!text().contains("syslog"), "{}", text());
    syslog.set_sender(Sender { port: 5514, max_size: 2048, ..Sender::new(PEER, US) }).unwrap();
    syslog.set_filter(Severity::Warning);
    assert!(
        text().contains("set syslog sender collector 10.0.0.2 src 10.0.0.1 port 5514 max-msg-size 2048\n")
    );
    assert!(text().contains("set syslog filter severity warning\n"));
}
