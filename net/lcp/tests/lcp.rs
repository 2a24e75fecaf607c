//! Images of interfaces, with packet-generator interfaces in place of TAPs: what the kernel gets, and what it sends.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests
// size: all of it is about one router with one stand-in for Linux.

use std::cell::{Cell, RefCell};
use std::collections::BTreeMap;
use std::net::{IpAddr, Ipv6Addr};
use std::rc::Rc;

use shoal_arp::Neighbours;
use shoal_interface::{
    EventOrigin, HostChange, HostEvent, HostEventHandler, HostLink, HostLinkKind, HostListener, HostPort,
    HostPorts, HostSide, Interfaces, ListingCause, SwIfIndex,
};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_lcp::{Lcp, LcpError, Sync};
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_module::config::{At, Body, Setting, Settings, Value};
use shoal_module::{Control, InitError, Module};
use shoal_pg::{CreateInterface, Pg};
use shoal_testkit::{PEER, PEER_MAC, PacketBuilder, Port, Rng, Router};
use shoal_wire::packet::Fragment;
use shoal_wire::{IpProtocol, MacAddress, TcpFlags};

const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_neighbor::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_mfib::MODULE,
    &shoal_lcp::MODULE,
    &shoal_pg::MODULE,
    &FAKE,
];

/// Stands in for the TAP driver: `pg100`, `pg101`, ...
static FAKE: Module = Module { name: "fake", init: init_fake, ..Module::NONE };

#[derive(Default)]
struct FakeHost(RefCell<Vec<String>>, RefCell<Option<HostEventHandler>>, RefCell<Vec<bool>>, Cell<bool>);

/// Says that Linux was asked to list all there is.
struct Listener(Rc<FakeHost>);

impl HostListener for Listener {
    fn audit(&self) {
        self.0.0.borrow_mut().push("audit".into());
    }
}

struct Fake {
    pg: Rc<Pg>,
    interfaces: Rc<Interfaces>,
    said: Rc<FakeHost>,
}

fn init_fake(control: &Rc<Control>) -> Result<(), InitError> {
    let said = control.put(FakeHost::default());
    let fake = Fake { pg: control.get()?, interfaces: control.get()?, said };
    control.put(HostSide(Rc::new(fake)));
    Ok(())
}

impl Fake {
    fn say(&self, what: String) -> Result<(), String> {
        self.said.0.borrow_mut().push(what);
        Ok(())
    }
}

impl HostPorts for Fake {
    fn create(&self, port: &HostPort) -> Result<SwIfIndex, String> {
        if port.name == "refused" {
            return Err("it exists".into());
        }
        let free = (100..200).find(|n| self.interfaces.by_name(&format!("pg{n}")).is_none()).unwrap();
        let mac = Some(MacAddress([2, 0xfe, 0, 0, 1, free as u8]));
        self.said.3.set(port.up);
        self.say(format!("create {} mac {} mtu {}", port.name, port.mac, port.mtu))?;
        self.pg
            .create_interface(&CreateInterface { id: free, mac, ..CreateInterface::default() })
            .map_err(|e| e.to_string())
    }

    fn delete(&self, interface: SwIfIndex) -> Result<(), String> {
        self.interfaces.delete(interface).map_err(|e| e.to_string())
    }

    /// 7 for `pg100`, 8 for `pg101`, ...
    fn host_index(&self, interface: SwIfIndex) -> Option<u32> {
        self.interfaces.name(interface).ok()?.strip_prefix("pg")?.parse::<u32>().ok()?.checked_sub(93)
    }

    fn set_up(&self, _: SwIfIndex, up: bool) -> Result<(), String> {
        self.said.3.set(up);
        self.say((if up { "up" } else { "down" }).to_string())
    }

    fn is_up(&self, _: SwIfIndex) -> Option<bool> {
        Some(self.said.3.get())
    }

    fn set_carrier(&self, _: SwIfIndex, plugged: bool) -> Result<(), String> {
        self.said.2.borrow_mut().push(plugged);
        Ok(())
    }

    fn listen(&self, _: Option<&str>, hear: HostEventHandler) -> Result<Box<dyn HostListener>, String> {
        *self.said.1.borrow_mut() = Some(hear);
        Ok(Box::new(Listener(Rc::clone(&self.said))))
    }

    fn set_mtu(&self, _: SwIfIndex, mtu: u16) -> Result<(), String> {
        self.say(format!("mtu {mtu}"))
    }

    fn set_mac(&self, _: SwIfIndex, mac: MacAddress) -> Result<(), String> {
        self.say(format!("mac {mac}"))
    }

    fn set_address(&self, _: SwIfIndex, (addr, len): (IpAddr, u8), present: bool) -> Result<(), String> {
        self.say(format!("{} {addr}/{len}", if present { "add" } else { "del" }))
    }

    fn change_link(&self, _: SwIfIndex, host_index: u32, change: HostChange) -> Result<(), String> {
        self.say(format!("{host_index}: {change:?}"))
    }
}

/// A link of Linux that is up.
fn host_link(host_index: u32, name: &str) -> HostLink {
    let (mac, master, kind) = (None, None, HostLinkKind::Other);
    HostLink { host_index, name: name.into(), up: true, carrier: true, mtu: 0, mac, master, kind }
}

const US6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1);
const PEER6: Ipv6Addr = Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 2);

struct Setup {
    router: Router,
    phy: Port,
    host: SwIfIndex,
    sink: std::sync::Arc<shoal_pg::Sink>,
}

fn setup() -> Setup {
    let mut router = Router::new(MODULES);
    let phy = router.pg(0);
    router.set_address(&phy, "10.0.0.1/24");
    router.get::<Ip6>().add_address(phy.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.set_neighbour(&phy, PEER, PEER_MAC);
    let host = router.get::<Lcp>().create(phy.index(), "e0", None).unwrap();
    let sink = router.generator().attach_sink(host).unwrap();
    router.advance(std::time::Duration::from_secs(10));
    phy.received();
    sink.take();
    Setup { router, phy, host, sink }
}

fn v4(phy: &Port) -> PacketBuilder {
    PacketBuilder::ethernet(PEER_MAC, phy.mac()).ip4(PEER, [10, 0, 0, 1])
}

fn v6(phy: &Port) -> PacketBuilder {
    PacketBuilder::ethernet(PEER_MAC, phy.mac()).ip6(PEER6, US6)
}

/// What the kernel must get: the frame as it was received.
fn as_seen(frame: &[u8], dst: [u8; 6]) -> Vec<u8> {
    [&dst[..], &frame[6..]].concat()
}

#[test]
fn packets_without_a_listener_are_the_kernels() {
    let Setup { mut router, phy, sink, .. } = setup();
    let syn = TcpFlags::SYN;
    let mac = phy.mac().0;
    for frame in [
        v4(&phy).tcp(1000, 22, syn).build(),
        v6(&phy).tcp(1000, 22, syn).build(),
        v4(&phy).udp(1000, 520).payload_len(30).build(),
        v6(&phy).udp(1000, 521).payload_len(30).build(),
        v4(&phy).protocol(IpProtocol::OSPF).payload_len(44).build(),
        v6(&phy).protocol(IpProtocol::OSPF).payload_len(44).build(),
    ] {
        router.send(&phy, &frame);
        assert_eq!(sink.take(), [as_seen(&frame, mac)]);
        assert!(phy.received().is_empty());
    }
    assert_eq!(router.error("linux-cp-ip4-local", "packets given to the host"), 3);
    assert_eq!(router.error("linux-cp-ip6-local", "packets given to the host"), 3);
}

#[test]
fn without_an_image_the_sender_is_told_as_before() {
    let Setup { mut router, phy, sink, .. } = setup();
    router.get::<Lcp>().delete(phy.index()).unwrap();
    router.send(&phy, v4(&phy).udp(1000, 520).payload_len(30).build());
    let answer = phy.received_one();
    assert_eq!((answer[23], answer[34], answer[35]), (1, 3, 3), "ICMP port unreachable");
    assert!(sink.take().is_empty());
    assert!(router.interfaces().by_name("pg100").is_none());
}

#[test]
fn echo_requests_are_answered_here_and_other_icmp_is_shown() {
    let Setup { mut router, phy, sink, .. } = setup();
    router.send(&phy, v4(&phy).icmp_echo_request(1, 1).payload_len(20).build());
    phy.received_one();
    assert!(sink.take().is_empty());
    let reply = v4(&phy).icmp_echo_reply(1, 1).payload_len(20).build();
    router.send(&phy, &reply);
    assert_eq!(sink.take(), [as_seen(&reply, phy.mac().0)]);
    let reply = v6(&phy).icmp6_echo_reply(1, 1).payload_len(20).build();
    router.send(&phy, &reply);
    assert_eq!(sink.take(), [as_seen(&reply, phy.mac().0)]);
}

#[test]
fn groups_of_daemons_reach_the_kernel() {
    let Setup { mut router, phy, sink, .. } = setup();
    let (all4, all6) = ([224, 0, 0, 5], "ff02::5".parse::<Ipv6Addr>().unwrap());
    let (mac4, mac6) = (MacAddress::for_ip4_multicast(all4.into()), MacAddress::for_ip6_multicast(all6));
    let hello4 = PacketBuilder::ethernet(PEER_MAC, mac4).ip4(PEER, all4).protocol(IpProtocol::OSPF).ttl(1);
    let hello4 = hello4.payload_len(44).build();
    router.send(&phy, &hello4);
    assert_eq!(sink.take(), [as_seen(&hello4, mac4.0)]);
    let link: Ipv6Addr = "fe80::2".parse().unwrap();
    let hello6 = PacketBuilder::ethernet(PEER_MAC, mac6).ip6(link, all6).protocol(IpProtocol::OSPF).ttl(1);
    let hello6 = hello6.payload_len(44).build();
    router.send(&phy, &hello6);
    assert_eq!(sink.take(), [as_seen(&hello6, mac6.0)]);
}

#[test]
fn answers_to_arp_requests_of_the_kernel_reach_it() {
    let Setup { mut router, phy, host, sink } = setup();
    let ask = PacketBuilder::arp_request(phy.mac(), [10, 0, 0, 1], [10, 0, 0, 3]).build();
    router.generator().inject(host, ask.clone()).unwrap();
    router.run();
    assert_eq!(phy.received_one(), ask);
    let other = MacAddress([2, 0xaa, 0, 0, 0, 3]);
    let reply = PacketBuilder::arp_reply(other, [10, 0, 0, 3], phy.mac(), [10, 0, 0, 1]).build();
    router.send(&phy, &reply);
    let got = sink.take();
    assert_eq!(got.len(), 1);
    assert_eq!((&got[0][..6], &got[0][12..42]), (&phy.mac().0[..], &reply[12..42]));
    // The router has learnt it as well.
    let known = router.get::<Neighbours>().get((phy.index(), [10, 0, 0, 3].into()));
    assert_eq!(known.map(|n| n.mac), Some(other));
    // Requests are answered here.
    router.send(&phy, PacketBuilder::arp_request(other, [10, 0, 0, 3], [10, 0, 0, 1]).build());
    phy.received_one();
    assert!(sink.take().is_empty());
}

#[test]
fn what_the_kernel_sends_leaves_as_it_is() {
    let Setup { mut router, phy, host, .. } = setup();
    let syn_ack = TcpFlags(TcpFlags::SYN.0 | TcpFlags::ACK.0);
    let from = || PacketBuilder::ethernet(phy.mac(), PEER_MAC);
    for frame in [
        from().ip4([10, 0, 0, 1], PEER).tcp(22, 1000, syn_ack).ttl(1).build(),
        from().ip6(US6, PEER6).tcp(22, 1000, syn_ack).ttl(1).build(),
        from().vlan(7).ip4([10, 0, 0, 1], PEER).udp(1, 2).build(),
    ] {
        router.generator().inject(host, frame.clone()).unwrap();
        router.run();
        assert_eq!(phy.received_one(), frame);
    }
}

#[test]
fn punt_routes_lead_to_the_kernel() {
    let Setup { mut router, phy, sink, .. } = setup();
    let fib = router.get::<shoal_fib::Fib>();
    for prefix in ["192.0.2.0/24", "2001:db8:77::/48"] {
        let path = shoal_fib::Path::from(shoal_fib::Via::Punt);
        let prefix: shoal_wire::IpPrefix = prefix.parse().unwrap();
        fib.add(shoal_fib::FibIndex::DEFAULT, prefix, shoal_fib::Source::Cli, &[path]).unwrap();
    }
    let frame4 = PacketBuilder::ethernet(PEER_MAC, phy.mac()).ip4(PEER, [192, 0, 2, 9]).udp(1, 2).build();
    let far: Ipv6Addr = "2001:db8:77::9".parse().unwrap();
    let frame6 = PacketBuilder::ethernet(PEER_MAC, phy.mac()).ip6(PEER6, far).udp(1, 2).build();
    for frame in [frame4.clone(), frame6] {
        router.send(&phy, &frame);
        assert_eq!(sink.take(), [as_seen(&frame, phy.mac().0)]);
    }
    // An interface without an image has no place to punt to.
    router.get::<Lcp>().delete(phy.index()).unwrap();
    router.send(&phy, frame4);
    assert_eq!(router.error("error-punt", "no host takes punted packets"), 1);
}

fn said(router: &Router) -> Vec<String> {
    router.get::<FakeHost>().0.take()
}

#[test]
fn state_mtu_and_addresses_are_mirrored() {
    let Setup { mut router, phy, host, .. } = setup();
    let is_up = |router: &Router| router.interfaces().data(host).unwrap().is_up();
    assert_eq!(said(&router), ["create e0 mac 02:fe:00:00:00:00 mtu 9000"]);
    assert!(is_up(&router));
    router.interfaces().set_admin(phy.index(), false).unwrap();
    assert!(!is_up(&router));
    router.interfaces().set_admin(phy.index(), true).unwrap();
    assert!(is_up(&router));
    let ip4 = router.get::<Ip4>();
    ip4.add_address(phy.index(), "10.0.1.1/24".parse().unwrap()).unwrap();
    assert!(said(&router).is_empty());
    let lcp = router.get::<Lcp>();
    lcp.set_sync(Sync::On);
    assert_eq!(said(&router), ["mtu 9000", "up", "add 10.0.0.1/24", "add 10.0.1.1/24", "add 2001:db8::1/64"]);
    ip4.del_address(phy.index(), "10.0.1.1/24".parse().unwrap()).unwrap();
    router.get::<Ip6>().add_address(phy.index(), "2001:db8:1::1/64".parse().unwrap()).unwrap();
    router.interfaces().set_mtu(phy.index(), shoal_interface::MtuLayer::L3, 1400).unwrap();
    assert_eq!(said(&router), ["del 10.0.1.1/24", "add 2001:db8:1::1/64", "mtu 1400"]);
    router.run();
}

#[test]
fn what_cannot_be_is_refused_and_leaves_nothing() {
    let Setup { mut router, phy, host, .. } = setup();
    let other = router.pg(1);
    let lcp = router.get::<Lcp>();
    let refused = |phy, name: &str| lcp.create(phy, name, None).unwrap_err().to_string();
    assert_eq!(refused(phy.index(), "e1"), "pg0 has a pair already: pg100");
    assert_eq!(refused(host, "e1"), "pg100 is itself the image of pg0");
    for name in ["", "a b", "sixteen-letters-", "a/b", "%d", ".."] {
        assert!(matches!(lcp.create(other.index(), name, None), Err(LcpError::Name(_))), "{name}");
    }
    assert_eq!(refused(other.index(), "refused"), "Linux refuses interface refused: it exists");
    assert_eq!(
        refused(SwIfIndex(0), "e1"),
        "local0 carries no Ethernet frames, so Linux cannot have an image of it"
    );
    assert!(matches!(lcp.create(SwIfIndex(99), "e1", None), Err(LcpError::Interface(_))));
    assert_eq!(lcp.delete(other.index()).unwrap_err().to_string(), "pg1 has no pair");
    assert_eq!(lcp.list().len(), 1);
    // Either end may go first.
    router.interfaces().delete(phy.index()).unwrap();
    router.run();
    assert!(router.interfaces().by_name("pg100").is_none());
    assert!(lcp.list().is_empty());
    let host = lcp.create(other.index(), "e1", None).unwrap();
    router.interfaces().delete(host).unwrap();
    router.run();
    assert!(lcp.list().is_empty());
    router.send(
        &other,
        PacketBuilder::ethernet(PEER_MAC, other.mac()).ip4(PEER, [10, 0, 0, 1]).udp(1, 2).build(),
    );
}

/// What the start-up file says, as the daemon hands it on.
static STARTUP: Module = Module { name: "startup", init: init_startup, ..Module::NONE };

fn init_startup(control: &Rc<Control>) -> Result<(), InitError> {
    let at = At { source: 0, line: 1, column: 1, width: 1 };
    let mut settings = Settings::default();
    settings.push(Setting { key: "default netns", value: Value::Text("dataplane".into()), at });
    settings.push(Setting { key: "lcp-sync", value: Value::Flag, at });
    control.put(BTreeMap::from([("linux-cp", settings)]));
    Ok(())
}

#[test]
fn the_start_up_file_s_words_hold_from_the_start() {
    let mut router = Router::new(&[&[&STARTUP], MODULES].concat());
    let phy = router.pg(0);
    router.set_address(&phy, "10.0.0.1/24");
    let lcp = router.get::<Lcp>();
    assert_eq!((lcp.default_netns().as_deref(), lcp.sync()), (Some("dataplane"), Sync::On));
    lcp.create(phy.index(), "e0", None).unwrap();
    assert_eq!(lcp.list()[0].netns.as_deref(), Some("dataplane"));
    assert_eq!(said(&router)[1..], ["add 10.0.0.1/24"]);
    // Every word of VPP's is known; those that change nothing say why.
    let words: Vec<&str> = match shoal_lcp::MODULE.sections[0].body {
        Body::Keys(keys) => keys.iter().map(|k| k.name).collect(),
        _ => panic!("keys"),
    };
    for word in ["default netns", "lcp-sync", "lcp-auto-subint", "del-static-on-link-down"] {
        assert!(words.contains(&word), "{word}");
    }
}

#[test]
fn fragments_to_the_router_reach_the_kernel_as_one_packet() {
    let mut router = Router::new(&[MODULES, &[&shoal_reassembly::MODULE]].concat());
    let phy = router.pg(0);
    router.set_address(&phy, "10.0.0.1/24");
    router.get::<Ip6>().add_address(phy.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    let host = router.get::<Lcp>().create(phy.index(), "e0", None).unwrap();
    let sink = router.generator().attach_sink(host).unwrap();
    router.advance(std::time::Duration::from_secs(10));
    phy.received();
    sink.take();
    let whole4 = v4(&phy).udp(1000, 520).payload_len(3000).build();
    let whole6 = v6(&phy).udp(1000, 521).payload_len(3000).build();
    // Pieces of 1,480 bytes, the last one first.
    let pieces = |whole: &[u8], header: usize| -> Vec<(usize, bool, Vec<u8>)> {
        let body = &whole[14 + header..];
        let piece =
            |(n, bytes): (usize, &[u8])| (n * 1480, n * 1480 + bytes.len() < body.len(), bytes.to_vec());
        body.chunks(1480).enumerate().map(piece).rev().collect()
    };
    for (at, more, body) in pieces(&whole4, 20) {
        let place = if more { Fragment::More } else { Fragment::Last };
        let piece = v4(&phy).id(7).fragment(at as u16, place).protocol(IpProtocol::UDP).payload(&body);
        router.send(&phy, piece.build());
    }
    let got = sink.take();
    assert_eq!(got.len(), 1, "{:?}", router.errors());
    assert_eq!(got[0][34..], whole4[34..]);
    for (at, more, body) in pieces(&whole6, 40) {
        let [high, low] = (at as u16 | u16::from(more)).to_be_bytes();
        let piece = v6(&phy)
            .ip6_ext(IpProtocol::IPV6_FRAGMENTATION, &[high, low, 0, 0, 0, 7])
            .protocol(IpProtocol::UDP)
            .payload(&body);
        router.send(&phy, piece.build());
    }
    let got = sink.take();
    assert_eq!(got.len(), 1, "{:?}", router.errors());
    assert_eq!(got[0][54..], whole6[54..]);
    assert!(phy.received().is_empty());
}

#[test]
fn hostile_packets_end_well() {
    let Setup { mut router, phy, host, sink } = setup();
    let mut rng = Rng::new(5);
    for round in 0..600 {
        let mut bytes = match round % 4 {
            0 => v4(&phy).tcp(1, 22, TcpFlags::SYN).payload_len(40).build(),
            1 => v6(&phy).tcp(1, 22, TcpFlags::SYN).payload_len(40).build(),
            2 => v4(&phy).icmp_echo_reply(1, 2).payload_len(9).build(),
            _ => v6(&phy).ip6_ext(IpProtocol::IP6_DESTINATION_OPTIONS, &[1, 4, 0, 0, 0, 0]).udp(1, 9).build(),
        };
        let at = 14 + rng.below(bytes.len() - 14);
        bytes[at] ^= rng.below(256) as u8;
        bytes.truncate(rng.below(bytes.len()) + 1);
        router.send(&phy, &bytes);
        router.generator().inject(host, bytes).unwrap();
        router.run();
        phy.received();
        sink.take();
    }
    // Fragments are not put together here.
    let piece = v4(&phy).udp(1, 9).payload_len(64).fragment(0, Fragment::More).build();
    router.send(&phy, piece);
    assert!(phy.received().is_empty());
    router.may_hold(64);
}

/// Runs a command of this crate. Items are words, or arguments written `name=text`.
fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let command = shoal_lcp::cli::COMMANDS.iter().find(|c| c.syntax.starts_with(command)).unwrap();
    let args =
        items.split_whitespace().fold(Args::new(Rc::clone(router.control()), items), |args, item| match item
            .split_once('=')
        {
            Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
            None => args.with_word(item.to_owned().leak(), 0..0),
        });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}

#[test]
fn commands_do_and_print_what_vpp_does() {
    let mut router = Router::new(MODULES);
    let _phy = router.pg(0);
    run(&router, "lcp default netns", "netns=dataplane").unwrap();
    run(&router, "lcp lcp-sync", "on").unwrap();
    run(&router, "lcp create", "interface=pg0 host-if=e0").unwrap();
    assert_eq!(
        run(&router, "show lcp", "").unwrap().to_text(),
        "lcp default netns 'dataplane'\nlcp lcp-auto-subint off\nlcp lcp-sync on\nlcp lcp-sync-unnumbered on\n\
         lcp del-static-on-link-down off\nlcp del-dynamic-on-link-down off\n\
         itf-pair: [0] pg0 pg100 e0 7 type tap netns dataplane\n"
    );
    assert_eq!(run(&router, "show lcp", "").unwrap().to_json()["pairs"][0]["host_if"], "e0");
    run(&router, "lcp delete", "interface=pg0").unwrap();
    let CliError::Argument { message, .. } = run(&router, "lcp delete", "interface=pg0").unwrap_err() else {
        panic!("not of the argument")
    };
    assert_eq!(message, "pg0 has no pair");
}

#[test]
fn borrowed_addresses_are_mirrored_as_those_of_hosts() {
    let mut router = Router::new(MODULES);
    let (phy, lender) = (router.pg(0), router.pg(1));
    router.set_address(&lender, "10.0.1.1/24");
    let lcp = router.get::<Lcp>();
    lcp.set_sync(Sync::On);
    lcp.create(phy.index(), "e0", None).unwrap();
    router.get::<Ip4>().set_unnumbered(phy.index(), Some(lender.index())).unwrap();
    assert_eq!(said(&router)[1..], ["add 10.0.1.1/32"]);
    lcp.set_sync_unnumbered(Sync::Off);
    assert_eq!(said(&router), ["del 10.0.1.1/32"]);
}

#[test]
fn two_interfaces_of_the_router_can_be_a_pair() {
    let mut router = Router::new(MODULES);
    let (phy, host) = (router.pg(0), router.pg(1));
    run(&router, "test lcp add phy", "phy=pg0 host=pg1").unwrap();
    let frame = PacketBuilder::ethernet(phy.mac(), PEER_MAC).ip4([10, 0, 0, 1], PEER).udp(1, 2).build();
    router.send(&host, &frame);
    assert_eq!(phy.received_one(), frame);
    run(&router, "test lcp add phy", "phy=pg0 host=pg1").unwrap_err();
    run(&router, "test lcp del phy", "phy=pg0 host=pg1").unwrap();
    run(&router, "test lcp del phy", "phy=pg0 host=pg1").unwrap_err();
    assert!(router.interfaces().by_name("pg1").is_some());
}

#[path = "linux/listings.rs"]
mod listings;
#[path = "linux/mirror.rs"]
mod mirror;

#[path = "linux/link_failure.rs"]
mod link_failure;

#[path = "linux/facts.rs"]
mod facts;

#[path = "linux/main_table.rs"]
mod main_table;

#[path = "linux/carrier.rs"]
mod carrier;

#[path = "linux/multicast.rs"]
mod multicast;

#[path = "linux/vrf.rs"]
mod vrf;

#[path = "linux/vlan.rs"]
mod vlan;

/// Pairs through the binary API.
mod api {
    use shoal_lcp::api::*;
    use shoal_message::{InterfaceIndex, Retval, Text};
    use shoal_module::api::{Call, Get, Request};

    use super::*;

    fn call(setup: &Setup) -> Call {
        Call::local(setup.router.control())
    }

    fn add(call: &Call, phy: SwIfIndex, name: &str) -> Result<LcpItfPairAddDelV3Reply, Retval> {
        set(call, true, phy, name)
    }

    fn set(call: &Call, is_add: bool, phy: SwIfIndex, name: &str) -> Result<LcpItfPairAddDelV3Reply, Retval> {
        LcpItfPairAddDelV3 {
            is_add,
            sw_if_index: InterfaceIndex(phy.0),
            host_if_name: name.into(),
            host_if_type: LcpItfHostType::Tap,
            netns: Text::default(),
        }
        .handle(call)
    }

    fn names(call: &Call) -> Vec<String> {
        let (all, reply) = LcpItfPairGet { cursor: 0 }.get(call).unwrap();
        assert_eq!((reply.retval, reply.cursor), (0, u32::MAX));
        all.iter().map(|pair| pair.host_if_name.as_str().to_owned()).collect()
    }

    #[test]
    fn declared_messages_are_those_of_vpp() {
        shoal_testkit::api::same_as_vpp(&[&API]);
    }

    #[test]
    fn random_bytes_do_no_harm() {
        let mut setup = setup();
        shoal_testkit::api::random_bytes_do_no_harm(&mut setup.router, &[&API], 200);
    }

    #[test]
    fn pairs_are_made_told_and_taken_away() {
        let mut setup = setup();
        let second = setup.router.pg(1);
        let call = call(&setup);
        let netns = "dataplane".into();
        LcpDefaultNsSet { netns }.handle(&call).unwrap();
        assert_eq!(LcpDefaultNsGet {}.handle(&call).unwrap().netns.as_str(), "dataplane");
        let made = add(&call, second.index(), "e1").unwrap();
        assert_eq!(made.vif_index, 8);
        assert_eq!(names(&call), ["e0", "e1"]);
        let one = LcpItfPairGetV2 { cursor: 0, sw_if_index: InterfaceIndex(second.index().0) };
        let (pairs, _) = one.get(&call).unwrap();
        let [pair] = &pairs[..] else { panic!("one pair") };
        assert_eq!((pair.host_sw_if_index, pair.netns.as_str()), (made.host_sw_if_index, "dataplane"));
        set(&call, false, second.index(), "").unwrap();
        assert_eq!(names(&call), ["e0"]);
    }

    #[test]
    fn a_replacement_takes_away_what_is_not_asked_for_again() {
        let mut setup = setup();
        let second = setup.router.pg(1);
        let call = call(&setup);
        add(&call, second.index(), "e1").unwrap();
        LcpItfPairReplaceBegin {}.handle(&call).unwrap();
        let again = add(&call, setup.phy.index(), "e0").unwrap();
        assert_eq!(again.host_sw_if_index, InterfaceIndex(setup.host.0));
        assert!(add(&call, setup.phy.index(), "e0").is_err(), "once is enough");
        LcpItfPairReplaceEnd {}.handle(&call).unwrap();
        assert_eq!(names(&call), ["e0"]);
    }

    #[test]
    fn mistakes_have_vpps_numbers() {
        let mut setup = setup();
        let second = setup.router.pg(1).index();
        let call = call(&setup);
        let number = |done: Result<LcpItfPairAddDelV3Reply, Retval>| done.map(|_| ()).unwrap_err();
        assert_eq!(number(add(&call, SwIfIndex(77), "e1")), Retval::INVALID_SW_IF_INDEX);
        assert_eq!(number(add(&call, setup.phy.index(), "e1")), Retval::VALUE_EXIST);
        assert_eq!(number(add(&call, setup.host, "e1")), Retval::INVALID_INTERFACE);
        assert_eq!(number(add(&call, second, "a/b")), Retval::INVALID_ARGUMENT);
        assert_eq!(number(add(&call, second, "refused")), Retval::SYSCALL_ERROR_1);
        assert_eq!(number(set(&call, false, second, "")), Retval::INVALID_SW_IF_INDEX);
    }
}

#[test]
fn sub_interfaces_get_images_whose_frames_have_no_tags() {
    use shoal_ethernet::{Ethernet, Match, Vid};
    let mut router = Router::new(MODULES);
    let phy = router.pg(0);
    let (lcp, ethernet) = (router.get::<Lcp>(), router.get::<Ethernet>());
    let exact = |id| Match::exact_dot1q(Vid::new(id).unwrap());
    lcp.create(phy.index(), "e0", Some("dataplane")).unwrap();
    let early = ethernet.create_sub(phy.index(), 9, exact(9)).unwrap();
    assert_eq!(lcp.list().len(), 1, "only when it is wanted");
    run(&router, "lcp lcp-auto-subint", "on").unwrap();
    assert!(run(&router, "show lcp", "").unwrap().to_text().contains("lcp lcp-auto-subint on\n"));
    let default = ethernet.create_sub(phy.index(), 8, Match::Default).unwrap();
    let sub = ethernet.create_sub(phy.index(), 100, exact(100)).unwrap();
    let pair = lcp.list().pop().unwrap();
    assert_eq!((pair.phy, pair.name.as_str(), pair.netns.as_deref()), (sub, "e0.100", Some("dataplane")));
    let why =
        "pg0.8 takes frames with other tags, too: only a sub-interface with exact-match can have an image";
    assert_eq!(lcp.create(default, "e8", None).unwrap_err().to_string(), why);
    lcp.create(early, "early", None).unwrap();

    let sink = router.generator().attach_sink(pair.host).unwrap();
    router.interfaces().set_admin(sub, true).unwrap();
    router.get::<Ip4>().add_address(sub, "10.0.0.1/24".parse().unwrap()).unwrap();
    router.run();
    phy.received();
    sink.take();
    // To Linux: without the tag.
    let udp = PacketBuilder::ethernet(PEER_MAC, phy.mac()).ip4(PEER, [10, 0, 0, 1]).udp(1000, 179);
    router.send(&phy, udp.clone().vlan(100).build());
    assert_eq!(sink.take(), [udp.build()]);
    // From Linux: with it.
    let back = PacketBuilder::ethernet(phy.mac(), PEER_MAC).ip4([10, 0, 0, 1], PEER).udp(179, 1000);
    router.generator().inject(pair.host, back.clone().build()).unwrap();
    router.run();
    assert_eq!(phy.received(), [back.vlan(100).build()]);
    // The cable is that of the port.
    let plugged = |router: &Router| router.get::<FakeHost>().2.borrow().last().copied();
    router.interfaces().set_admin(phy.index(), false).unwrap();
    assert_eq!(plugged(&router), Some(false));
    router.interfaces().set_admin(phy.index(), true).unwrap();
    assert_eq!(plugged(&router), Some(true));
    ethernet.delete_sub(sub).unwrap();
    router.run();
    assert_eq!(lcp.list().len(), 2);
    assert_eq!(router.interfaces().name(pair.host).ok(), None, "the image goes with it");
}
