//! DET44 through a whole router: translated bytes, both directions, connections that end, limits, errors, hairpins, workers, bad
//! input, messages, saved configuration.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::net::Ipv4Addr;
use std::rc::Rc;
use std::time::Duration;

use shoal_det44::api::*;
use shoal_det44::config::Timeouts;
use shoal_det44::sessions::State;
use shoal_det44::{Det44, Det44Error, Enable, Side};
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{PacketBuilder, Port, Rng, Router, STACK, api};
use shoal_wire::{IpProtocol, MacAddress, TcpFlags, checksum};

const FAR_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 2]);
const HOST_MAC: MacAddress = MacAddress([2, 0xbb, 0, 0, 0, 2]);
const SERVER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 2);
/// Of hosts 192.168.1.0 to .255, 64 to an address: 1008 ports each.
const SHARED: Ipv4Addr = Ipv4Addr::new(192, 0, 2, 0);
const ETHER: usize = 14;

fn host(n: u8) -> Ipv4Addr {
    Ipv4Addr::new(192, 168, 1, n)
}

fn first(n: u8) -> u16 {
    1024 + 1008 * u16::from(n)
}

struct Bed {
    router: Router,
    far: Port,
    access: Port,
    det44: Rc<Det44>,
}

fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_reassembly::MODULE, &shoal_ipfix::MODULE, &shoal_det44::MODULE]);
    let mut router = Router::new(&modules);
    let (far, access) = (router.pg(0), router.pg(1));
    router.set_address(&far, "10.0.0.1/24");
    router.set_address(&access, "192.168.1.254/24");
    router.set_neighbour(&far, SERVER, FAR_MAC);
    for n in 2..6 {
        router.set_neighbour(&access, host(n), HOST_MAC);
    }
    let det44 = router.get::<Det44>();
    det44.enable(Enable::default()).unwrap();
    det44.add_map("192.168.1.0/24".parse().unwrap(), "192.0.2.0/30".parse().unwrap()).unwrap();
    det44.set_side(access.index(), Side::Inside, true).unwrap();
    det44.set_side(far.index(), Side::Outside, true).unwrap();
    router.advance(Duration::from_secs(3));
    far.received();
    access.received();
    Bed { router, far, access, det44 }
}

impl Bed {
    fn send_out(&mut self, n: u8, dst: Ipv4Addr, make: impl Fn(PacketBuilder) -> PacketBuilder) {
        let packet = PacketBuilder::ethernet(HOST_MAC, self.access.mac()).ip4(host(n), dst).ttl(64);
        self.router.send(&self.access, make(packet).build());
    }

    fn out(&mut self, n: u8, make: impl Fn(PacketBuilder) -> PacketBuilder) -> Option<Vec<u8>> {
        self.send_out(n, SERVER, make);
        self.far.received().pop().map(|frame| frame[ETHER..].to_vec())
    }

    fn back(&mut self, packet: &[u8]) -> Option<Vec<u8>> {
        let frame = [&self.far.mac().0[..], &FAR_MAC.0, &[8, 0], packet].concat();
        self.router.send(&self.far, frame);
        self.access.received().pop().map(|frame| frame[ETHER..].to_vec())
    }

    fn answer(&mut self, make: impl Fn(PacketBuilder) -> PacketBuilder) -> Option<Vec<u8>> {
        let packet = make(PacketBuilder::ethernet(FAR_MAC, HOST_MAC).ip4(SERVER, SHARED).ttl(9)).build();
        self.back(&packet[ETHER..])
    }

    fn tcp(&mut self, from_host: bool, flags: TcpFlags) {
        let port = first(2) + 5000 % 1008;
        if from_host {
            self.out(2, |p| p.tcp(5000, 80, flags)).expect("it leaves");
        } else {
            self.answer(|p| p.tcp(80, port, flags)).expect("it comes back");
        }
    }
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

fn addresses(ip: &[u8]) -> (Ipv4Addr, Ipv4Addr) {
    let at = |n: usize| Ipv4Addr::new(ip[n], ip[n + 1], ip[n + 2], ip[n + 3]);
    (at(12), at(16))
}

fn is_whole(ip: &[u8]) -> bool {
    let upper = &ip[20..];
    let pseudo = [&ip[12..20], &[0, ip[9]], &(upper.len() as u16).to_be_bytes()[..]].concat();
    let bytes = if ip[9] == 1 { upper.to_vec() } else { [&pseudo, upper].concat() };
    checksum::verify(&ip[..20]) && checksum::verify(&bytes)
}

#[test]
fn hosts_have_their_own_ports_and_answers_find_them() {
    let mut bed = bed();
    for n in [2, 3] {
        let left = bed.out(n, |p| p.udp(20_000, 53).payload(b"odd")).expect("it leaves");
        let port = first(n) + 20_000 % 1008;
        assert_eq!((addresses(&left), word(&left, 20), word(&left, 22)), ((SHARED, SERVER), port, 53));
        assert!(is_whole(&left));
        let got = bed.answer(|p| p.udp(53, port).payload(b"even")).expect("the host gets it");
        assert_eq!((addresses(&got), word(&got, 22)), ((SERVER, host(n)), 20_000));
        assert!(is_whole(&got));
    }
    let echo = bed.out(2, |p| p.icmp_echo_request(9, 1).payload(b"ping!")).unwrap();
    assert_eq!(word(&echo, 24), first(2) + 9);
    let got = bed.answer(|p| p.icmp_echo_reply(first(2) + 9, 1).payload(b"ping!")).unwrap();
    assert!(is_whole(&echo) && is_whole(&got) && word(&got, 24) == 9);
    // A port that another of its speaks with the same server has.
    let other = bed.out(2, |p| p.udp(20_000 + 1008, 53)).unwrap();
    assert_eq!(word(&other, 20), first(2) + 20_000 % 1008 + 1);
    // Packets without a session, and hosts without a map.
    assert!(bed.answer(|p| p.udp(53, first(4))).is_none());
    assert!(bed.answer(|p| p.udp(53, 80)).is_none());
    assert_eq!(bed.router.error("det44-out2in", "No translation"), 2);
    let alien = PacketBuilder::ethernet(HOST_MAC, bed.access.mac())
        .ip4([172, 16, 0, 1], SERVER.octets())
        .ttl(9)
        .udp(1, 2);
    bed.router.send(&bed.access, alien.build());
    assert!(bed.far.received().is_empty());
    assert_eq!(bed.router.error("det44-in2out", "No translation"), 1);
    assert!(bed.out(2, |p| p.protocol(IpProtocol::GRE).payload(b"no ports")).is_none());
    assert_eq!(bed.router.counter("/det44/total-sessions"), 4);
    // What is for the router is its own.
    bed.send_out(2, Ipv4Addr::new(10, 0, 0, 1), |p| p.icmp_echo_request(1, 1));
    assert_eq!(bed.access.received().len(), 1);
}

#[test]
fn connections_end_with_their_last_packet_in_either_order() {
    let mut bed = bed();
    let (fin, ack) = (TcpFlags::FIN | TcpFlags::ACK, TcpFlags::ACK);
    let open = |bed: &mut Bed| {
        bed.tcp(true, TcpFlags::SYN);
        bed.tcp(false, TcpFlags::SYN | TcpFlags::ACK);
        bed.tcp(true, ack);
        assert_eq!(bed.det44.sessions().unwrap()[0].state, State::Established);
    };
    open(&mut bed);
    for (from_host, flags) in [(true, fin), (false, ack), (false, fin), (true, ack)] {
        assert_eq!(bed.det44.sessions().unwrap().len(), 1);
        bed.tcp(from_host, flags);
    }
    assert!(bed.det44.sessions().unwrap().is_empty());
    open(&mut bed);
    for (from_host, flags) in [(false, fin), (true, ack), (true, fin), (false, ack)] {
        assert_eq!(bed.det44.sessions().unwrap().len(), 1);
        bed.tcp(from_host, flags);
    }
    assert!(bed.det44.sessions().unwrap().is_empty());
}

#[test]
fn sessions_end_in_their_time_by_command_and_with_their_map() {
    let mut bed = bed();
    bed.out(2, |p| p.udp(20_000, 53)).unwrap();
    bed.out(2, |p| p.tcp(5000, 80, TcpFlags::SYN)).unwrap();
    bed.out(2, |p| p.icmp_echo_request(9, 1)).unwrap();
    let left = |bed: &Bed| bed.det44.sessions().unwrap().len();
    bed.router.advance(Duration::from_secs(62));
    assert_eq!(left(&bed), 2, "ICMP");
    bed.router.advance(Duration::from_secs(182));
    assert_eq!(left(&bed), 1, "a connection that was not answered");
    bed.det44.set_timeouts(Timeouts { udp: 5, ..Timeouts::default() }).unwrap();
    bed.router.advance(Duration::from_mins(1));
    assert_eq!(left(&bed), 0);
    bed.out(2, |p| p.udp(20_000, 53)).unwrap();
    let shared = (SHARED, first(2) + 20_000 % 1008);
    assert_eq!(bed.det44.close_out(shared, (SERVER, 54)), Err(Det44Error::NoMatch));
    assert_eq!(bed.det44.close_out(shared, (SERVER, 53)), Ok(()));
    assert_eq!(bed.det44.close_in((host(2), 20_000), (SERVER, 53)), Err(Det44Error::NoMatch));
    bed.out(3, |p| p.udp(20_000, 53)).unwrap();
    bed.det44.del_map("192.168.1.0/24".parse().unwrap(), "192.0.2.0/30".parse().unwrap()).unwrap();
    assert_eq!(left(&bed), 0);
    assert!(bed.out(3, |p| p.udp(20_000, 53)).is_none());
}

#[test]
fn a_host_with_all_its_sessions_is_told_and_others_are_not_concerned() {
    let mut bed = bed();
    for port in 0..1000u16 {
        bed.send_out(2, SERVER, move |p| p.udp(3000 + port, 53));
    }
    assert_eq!(bed.far.received().len(), 1000);
    bed.send_out(2, SERVER, |p| p.udp(9000, 53));
    let told = bed.access.received().pop().expect("the host is told")[ETHER..].to_vec();
    assert_eq!((told[9], told[20], told[21]), (1, 3, 1), "host unreachable");
    assert_eq!(bed.router.error("det44-in2out", "Maximum sessions exceeded"), 1);
    // So are collectors of flow records; who sent a query is not.
    let (collector, source): (std::net::IpAddr, std::net::IpAddr) = (SERVER.into(), [10, 0, 0, 1].into());
    let ipfix = bed.router.get::<shoal_ipfix::Ipfix>();
    ipfix.set(shoal_ipfix::Exporter::new(collector, source)).unwrap();
    let export = shoal_nat44::export::Export::of(bed.router.control()).unwrap();
    export.set(Some((0, 0)));
    bed.router.run();
    bed.far.received();
    bed.send_out(2, SERVER, |p| p.icmp_echo_request(77, 1));
    assert!(bed.access.received().is_empty());
    assert_eq!(bed.router.error("det44-in2out", "Out of ports"), 1);
    bed.router.run();
    ipfix.flush();
    bed.router.run();
    let frames = bed.far.received();
    let sets: Vec<&[u8]> = frames.iter().map(|frame| &frame[ETHER + 20 + 8 + 16..]).collect();
    let templates = sets.iter().filter(|set| set[..2] == [0, 2]).count();
    assert_eq!((templates, export.gate().is_open()), (7, true));
    let record = sets.iter().find(|set| set[..2] == [1, 6]).expect("a record of the seventh template");
    let host = host(2).octets();
    assert_eq!(
        record[12..],
        [&[13, 3, 0, 0, 0, 0xe8, 3, 0, 0][..], &host].concat(),
        "in VPP's order of bytes"
    );
    assert!(bed.out(3, |p| p.udp(9000, 53)).is_some());
    assert!(bed.out(2, |p| p.udp(3000, 53)).is_some(), "a session that there is goes on");
}

#[test]
fn errors_fragments_and_hairpins_find_their_host() {
    let mut bed = bed();
    let sent = bed.out(2, |p| p.udp(20_000, 53)).unwrap();
    let mut error = PacketBuilder::ethernet(FAR_MAC, HOST_MAC)
        .ip4(Ipv4Addr::new(10, 7, 7, 7), SHARED)
        .protocol(IpProtocol::ICMP)
        .payload(&[&[3, 1, 0, 0, 0, 0, 0, 0][..], &sent[..28]].concat())
        .build()[ETHER..]
        .to_vec();
    let sum = checksum::checksum(&error[20..]);
    error[22..24].copy_from_slice(&sum.to_be_bytes());
    let got = bed.back(&error).expect("the host is told");
    assert_eq!(
        (addresses(&got).1, addresses(&got[28..]).0, word(&got[28..], 20)),
        (host(2), host(2), 20_000)
    );
    assert!(is_whole(&got));
    // Host 2 has opened its port towards host 3's; host 3 answers.
    let (two, three) = (first(2) + 20_000 % 1008, first(3) + 4000 % 1008);
    bed.send_out(3, SHARED, move |p| p.udp(4000, two));
    assert!(bed.access.received().is_empty(), "not asked for");
    bed.send_out(2, SHARED, move |p| p.udp(20_000, three));
    let got = bed.access.received().pop().expect("host 3 gets it")[ETHER..].to_vec();
    assert_eq!((addresses(&got), word(&got, 20), word(&got, 22)), ((SHARED, host(3)), two, 4000));
    assert!(is_whole(&got));
    // A datagram in two parts.
    let whole =
        PacketBuilder::ethernet(HOST_MAC, bed.access.mac()).ip4(host(2), SERVER).ttl(64).udp(20_000, 53);
    let whole = whole.payload(&[7; 64]).build();
    for (from, to, more) in [(0usize, 32usize, 0x2000u16), (32, 72, 0)] {
        let mut part = [&whole[..ETHER + 20], &whole[ETHER + 20 + from..ETHER + 20 + to]].concat();
        part[ETHER + 2..ETHER + 4].copy_from_slice(&(20 + (to - from) as u16).to_be_bytes());
        part[ETHER + 6..ETHER + 8].copy_from_slice(&(more | (from / 8) as u16).to_be_bytes());
        part[ETHER + 10..ETHER + 12].fill(0);
        let sum = checksum::checksum(&part[ETHER..ETHER + 20]);
        part[ETHER + 10..ETHER + 12].copy_from_slice(&sum.to_be_bytes());
        bed.router.send(&bed.access, part);
        let left = bed.far.received().pop().expect("each part leaves")[ETHER..].to_vec();
        assert_eq!(addresses(&left), (SHARED, SERVER));
    }
}

#[test]
fn no_session_is_lost_when_workers_come_and_go() {
    let mut bed = bed();
    let graph = Rc::clone(bed.router.graph());
    for n in 2..6 {
        bed.out(n, |p| p.udp(20_000, 53)).unwrap();
    }
    for _ in 0..3 {
        graph.add_worker(None).unwrap();
    }
    bed.router.run();
    graph.remove_worker(1).unwrap();
    bed.router.run();
    assert_eq!(bed.det44.sessions().unwrap().len(), 4);
    for n in 2..6 {
        let got = bed.answer(|p| p.udp(53, first(n) + 20_000 % 1008)).expect("its session went with it");
        assert_eq!(addresses(&got).1, host(n));
        bed.out(n, |p| p.udp(30_000, 53)).expect("and it begins others");
    }
}

#[test]
fn random_packets_do_no_harm() {
    let mut bed = bed();
    bed.router.may_hold(2000);
    let mut rng = Rng::new(3);
    let out = PacketBuilder::ethernet(HOST_MAC, bed.access.mac())
        .ip4(host(2), SERVER)
        .udp(20_000, 53)
        .payload(&[1; 60])
        .build();
    bed.router.send(&bed.access, &out);
    let port = first(2) + 20_000 % 1008;
    let back = PacketBuilder::ethernet(FAR_MAC, bed.far.mac())
        .ip4(SERVER, SHARED)
        .udp(53, port)
        .payload(&[1; 60])
        .build();
    for _ in 0..3000 {
        for (frame, inside) in [(&out, true), (&back, false)] {
            let mut bytes = frame.clone();
            for _ in 0..=rng.below(3) {
                let at = ETHER + rng.below(bytes.len() - ETHER);
                bytes[at] = rng.below(256) as u8;
            }
            bytes.truncate(ETHER + 1 + rng.below(bytes.len() - ETHER));
            bed.router.send(if inside { &bed.access } else { &bed.far }, &bytes);
        }
    }
    bed.far.received();
    bed.access.received();
    bed.out(3, |p| p.udp(1, 2)).expect("it works");
    shoal_testkit::fuzz_all_nodes(&mut bed.router, 9, 500);
}

#[test]
fn mistakes_change_nothing_messages_are_vpps_and_all_is_saved() {
    let bed = bed();
    let det44 = &bed.det44;
    let prefix = |text: &str| text.parse().unwrap();
    assert_eq!(det44.enable(Enable::default()), Err(Det44Error::AlreadyOn));
    assert_eq!(Retval::from(Det44Error::AlreadyOn), Retval(1));
    let unfit = det44.add_map(prefix("10.9.0.0/30"), prefix("192.0.9.0/24"));
    assert!(matches!(unfit, Err(Det44Error::Unfit { .. })));
    let twice = det44.add_map(prefix("192.168.1.128/25"), prefix("192.0.9.0/30"));
    assert!(matches!(twice, Err(Det44Error::Exists(_))));
    let shared = det44.add_map(prefix("10.9.0.0/24"), prefix("192.0.2.1/32"));
    assert!(matches!(shared, Err(Det44Error::Exists(_))));
    assert_eq!(det44.reverse(SHARED, 80), Err(Det44Error::Port(80)));

    let call = Call::local(bed.router.control());
    let map = |is_add, in_plen, out_plen| Det44AddDelMap {
        is_add,
        in_addr: Ipv4Addr::new(10, 5, 0, 7),
        in_plen,
        out_addr: Ipv4Addr::new(192, 0, 2, 40),
        out_plen,
    };
    assert_eq!(map(true, 33, 30).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(map(true, 24, 30).handle(&call), Ok(()));
    assert_eq!(map(true, 24, 30).handle(&call), Err(Retval::VALUE_EXIST));
    assert_eq!(map(false, 24, 31).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    let maps: Vec<_> =
        Det44MapDump {}.dump(&call).map(|m| (m.in_addr, m.sharing_ratio, m.ports_per_host)).collect();
    assert_eq!(maps[1], (Ipv4Addr::new(10, 5, 0, 0), 64, 1008));
    let share = NatDetForward { in_addr: Ipv4Addr::new(10, 5, 0, 5) }.handle(&call).unwrap();
    assert_eq!((share.out_port_lo, share.out_port_hi), (6064, 7071));
    let back = Det44Reverse { out_port: 6064, out_addr: share.out_addr }.handle(&call).unwrap();
    assert_eq!(back.in_addr, Ipv4Addr::new(10, 5, 0, 5));
    assert_eq!(Det44Forward { in_addr: SERVER }.handle(&call).map(drop), Err(Retval::NO_SUCH_ENTRY));
    let side = |is_add| Det44InterfaceAddDelFeature {
        is_add,
        is_inside: true,
        sw_if_index: InterfaceIndex(bed.far.index().0),
    };
    assert_eq!(side(false).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(side(true).handle(&call), Ok(()));
    assert_eq!(side(true).handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(
        Det44InterfaceDump {}.dump(&call).map(|i| (i.is_inside, i.is_outside)).collect::<Vec<_>>(),
        [(true, true), (true, false)]
    );
    let times = Det44SetTimeouts { udp: 200, tcp_established: 7450, tcp_transitory: 250, icmp: 30 };
    assert_eq!(times.handle(&call), Ok(()));
    let some = Det44SetTimeouts { udp: 0, tcp_established: 0, tcp_transitory: 0, icmp: 0 };
    assert_eq!(some.handle(&call), Ok(()), "as before");
    assert_eq!(Det44GetTimeouts {}.handle(&call).unwrap().tcp_established, 7450);

    let mut running = Running::default();
    (shoal_det44::MODULE.running)(bed.router.control(), &mut running);
    let lines = running.pieces().collect::<String>();
    for line in [
        "det44 plugin enable\n",
        "set det44 timeouts udp 200 tcp established 7450 tcp transitory 250 icmp 30\n",
        "det44 add in 10.5.0.0/24 out 192.0.2.40/30\n",
        "set interface det44 inside pg1\n",
        "set interface det44 outside pg0\n",
    ] {
        assert!(lines.contains(line), "{line} of {lines}");
    }
    det44.disable().unwrap();
    assert_eq!(map(true, 24, 30).handle(&call), Err(Retval::UNSUPPORTED));
    assert_eq!(det44.disable(), Err(Det44Error::AlreadyOff));
    assert!(det44.maps().is_empty() && det44.sides().is_empty());
    api::same_as_vpp(&[&shoal_det44::api::API]);
    let mut router = bed.router;
    api::random_bytes_do_no_harm(&mut router, &[&shoal_det44::api::API], 200);
}
