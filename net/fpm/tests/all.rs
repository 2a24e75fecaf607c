//! Frames and messages on bytes, next hops and groups, routes in the forwarding table, a peer that comes back, bad input.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

mod messages;

use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpStream};
use std::rc::Rc;
use std::time::{Duration, Instant};

use messages::*;
use shoal_buffer::SwIfIndex;
use shoal_fib::{Fib, FibIndex, Path, Source, Via};
use shoal_fpm::{
    Fpm, FpmError, FpmMessage, FrameError, Frames, Listen, Messages, RouteExit, answer, read, wrap,
};
use shoal_interface::{
    HostEventHandler, HostListener, HostNextHop, HostPath, HostPort, HostPorts, HostSide, HostWay, Interfaces,
};
use shoal_ip4::Ip4;
use shoal_lcp::Lcp;
use shoal_module::{Control, InitError, Module, Running};
use shoal_pg::{CreateInterface, Pg};
use shoal_testkit::{Port, Router, STACK};
use shoal_wire::{IpPrefix, MacAddress};

/// Images of interfaces that are generator interfaces; each has the number 7 in the kernel.
struct Fake(Rc<Pg>, Rc<Interfaces>);

static HOST: Module = Module { name: "host", description: "images for tests", init: host, ..Module::NONE };

fn host(control: &Rc<Control>) -> Result<(), InitError> {
    control.put(HostSide(Rc::new(Fake(control.get()?, control.get()?))));
    Ok(())
}

/// The kernel says nothing.
struct SilentKernel;

impl HostListener for SilentKernel {
    fn audit(&self) {}
}

impl HostPorts for Fake {
    fn create(&self, _: &HostPort) -> Result<SwIfIndex, String> {
        let mac = Some(MacAddress([2, 0xfe, 0, 0, 1, 100]));
        let create = CreateInterface { id: 100, mac, ..CreateInterface::default() };
        self.0.create_interface(&create).map_err(|e| e.to_string())
    }

    fn delete(&self, interface: SwIfIndex) -> Result<(), String> {
        self.1.delete(interface).map_err(|e| e.to_string())
    }

    fn host_index(&self, _: SwIfIndex) -> Option<u32> {
        Some(7)
    }

    fn set_up(&self, _: SwIfIndex, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn is_up(&self, _: SwIfIndex) -> Option<bool> {
        None
    }

    fn set_carrier(&self, _: SwIfIndex, _: bool) -> Result<(), String> {
        Ok(())
    }

    fn listen(&self, _: Option<&str>, _: HostEventHandler) -> Result<Box<dyn HostListener>, String> {
        Ok(Box::new(SilentKernel))
    }

    fn set_mtu(&self, _: SwIfIndex, _: u16) -> Result<(), String> {
        Ok(())
    }

    fn set_mac(&self, _: SwIfIndex, _: MacAddress) -> Result<(), String> {
        Ok(())
    }

    fn set_address(&self, _: SwIfIndex, _: (IpAddr, u8), _: bool) -> Result<(), String> {
        Ok(())
    }
}

struct Bed {
    router: Router,
    phy: Port,
    fpm: Rc<Fpm>,
    at: SocketAddr,
}

/// A router that listens, with an interface that has an image.
fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_pg::MODULE, &HOST, &shoal_mfib::MODULE, &shoal_lcp::MODULE, &shoal_fpm::MODULE]);
    let mut router = Router::new(&modules);
    let phy = router.pg(0);
    router.set_address(&phy, "10.0.0.1/24");
    router.get::<Lcp>().create(phy.index(), "e0", None).unwrap();
    let fpm = router.get::<Fpm>();
    let at = fpm.listen(&Listen { at: "127.0.0.1:0".parse().unwrap(), netns: None }).unwrap();
    Bed { router, phy, fpm, at }
}

impl Bed {
    fn connect(&mut self) -> TcpStream {
        let before = self.router.counter("/fpm/connections");
        let zebra = TcpStream::connect(self.at).unwrap();
        zebra.set_read_timeout(Some(Duration::from_millis(20))).unwrap();
        self.until(|bed| bed.router.counter("/fpm/connections") > before);
        zebra
    }

    /// Runs the router until something is so; fails after ten seconds.
    fn until(&mut self, so: impl Fn(&Bed) -> bool) {
        let begun = Instant::now();
        while !so(self) {
            assert!(
                begun.elapsed() < Duration::from_secs(10),
                "it does not become so: {:?}",
                self.fpm.state()
            );
            self.router.run();
            std::thread::sleep(Duration::from_millis(1));
        }
    }

    /// Sends messages in one frame and waits until that has been read.
    fn send(&mut self, zebra: &mut TcpStream, messages: &[Vec<u8>]) {
        let before = self.router.counter("/fpm/frames");
        zebra.write_all(&frame(messages)).unwrap();
        self.until(|bed| bed.router.counter("/fpm/frames") > before);
        self.router.run();
    }

    /// What zebra is answered: whether each of so many routes is in the forwarding table.
    fn answers(&mut self, zebra: &mut TcpStream, want: usize) -> Vec<(IpPrefix, bool)> {
        let (mut frames, mut found, begun) = (Frames::default(), Vec::new(), Instant::now());
        while found.len() < want {
            assert!(begun.elapsed() < Duration::from_secs(10), "{} answers of {want}", found.len());
            self.router.run();
            let mut bytes = [0; 4096];
            let Ok(n) = zebra.read(&mut bytes) else { continue };
            frames.push(&bytes[..n]);
            while let Some(range) = frames.next_frame().unwrap() {
                for message in Messages::of(frames.payload(range)) {
                    let flags = u32::from_ne_bytes(message[24..28].try_into().unwrap());
                    let FpmMessage::Route(route) = read(message) else { panic!("no route: {message:?}") };
                    assert_eq!(message[6..8], 1u16.to_ne_bytes(), "NLM_F_REQUEST");
                    found.push((route.prefix, flags & 0x4000 != 0));
                    assert_eq!(flags & 0x2000_0000 != 0, flags & 0x4000 == 0);
                }
            }
        }
        found
    }

    /// Whether the forwarding table has these paths to a prefix from zebra, or any.
    fn has(&self, prefix: &str, paths: &[Path]) -> bool {
        let prefix: IpPrefix = prefix.parse().unwrap();
        self.router.get::<Fib>().has_paths(FibIndex::DEFAULT, [prefix], Source::Fpm, paths).is_ok()
    }

    fn via(&self, next_hop: &str) -> Path {
        Path::next_hop(next_hop.parse::<IpAddr>().unwrap(), self.phy.index())
    }
}

#[test]
fn frames_are_read_whatever_the_pieces_they_come_in() {
    let mut stream = Vec::new();
    for payload in [&[1u8, 2, 3][..], &[], &[9; 300]] {
        let at = stream.len();
        stream.extend_from_slice(payload);
        wrap(&mut stream, at);
    }
    assert_eq!(stream[..4], [1, 1, 0, 7], "version, netlink, length with the header");
    for piece in [1, 2, 5, 1000] {
        let (mut frames, mut found) = (Frames::default(), Vec::new());
        for bytes in stream.chunks(piece) {
            frames.push(bytes);
            while let Some(range) = frames.next_frame().unwrap() {
                found.push(frames.payload(range).to_vec());
            }
        }
        assert_eq!(found, [vec![1, 2, 3], vec![], vec![9; 300]]);
    }
    for (bytes, error) in [
        ([2, 1, 0, 4], FrameError::Version(2)),
        ([1, 2, 0, 4], FrameError::Type(2)),
        ([1, 1, 0, 3], FrameError::Short(3)),
    ] {
        let mut frames = Frames::default();
        frames.push(&bytes);
        assert_eq!(frames.next_frame(), Err(error));
    }
}

#[test]
fn messages_say_what_their_bytes_say() {
    let via = |host_index, next_hop: &str, weight| HostPath {
        host_index,
        next_hop: Some(next_hop.parse().unwrap()),
        weight,
    };
    let route = |bytes: &[u8]| match read(bytes) {
        FpmMessage::Route(route) => route,
        other => panic!("{other:?}"),
    };
    let one = route(&new_route("198.51.100.0/24", &[oif(3), gateway("10.0.0.7")]));
    assert_eq!((one.table, one.protocol, one.prefix.to_string().as_str()), (254, 186, "198.51.100.0/24"));
    assert_eq!(one.way, Some(RouteExit::Direct(HostWay::via([via(3, "10.0.0.7", 1)]))));
    let six = route(&new_route("2001:db8:5::/48", &[table(1000), id(12)]));
    assert_eq!((six.table, six.way), (1000, Some(RouteExit::Id(12))));
    let many = route(&new_route("0.0.0.0/0", &[multipath(&[(3, 0, "10.0.0.7"), (4, 9, "10.0.1.7")])]));
    assert_eq!(
        many.way,
        Some(RouteExit::Direct(HostWay::via([via(3, "10.0.0.7", 1), via(4, "10.0.1.7", 10)])))
    );
    let mut no_way = new_route("192.0.2.0/24", &[]);
    no_way[16 + 7] = 6;
    assert_eq!(route(&no_way).way, Some(RouteExit::Direct(HostWay::Blackhole)));
    let labelled = route(&new_route("192.0.2.0/24", &[oif(3), gateway("10.0.0.7"), encap()]));
    assert_eq!(labelled.way, None, "labels are not put before packets here");
    assert_eq!(
        read(&next_hop(5, &[nh_oif(3), nh_gateway("10.0.0.7")])),
        FpmMessage::NextHop(5, HostNextHop::One(via(3, "10.0.0.7", 1)))
    );
    assert_eq!(
        read(&next_hop(6, &[nh_group(&[(5, 0), (7, 256)])])),
        FpmMessage::NextHop(6, HostNextHop::Group(vec![(5, 1), (7, 257)]))
    );
    assert_eq!(read(&no_next_hop(6)), FpmMessage::NoNextHop(6));
    let prefix: IpPrefix = "198.51.100.0/24".parse().unwrap();
    assert_eq!(read(&del_route("198.51.100.0/24")), FpmMessage::NoRoute { table: 254, prefix });
}

#[test]
fn every_cut_and_every_flipped_byte_is_read_without_harm() {
    let all = [
        new_route("198.51.100.0/24", &[oif(3), gateway("10.0.0.7"), table(9)]),
        new_route("2001:db8::/32", &[multipath(&[(3, 0, "2001:db8::7"), (4, 9, "2001:db8::8")])]),
        next_hop(6, &[nh_group(&[(5, 0), (7, 256)])]),
    ];
    for message in all {
        for len in 0..message.len() {
            let _ = read(&message[..len]);
            let _ = Messages::of(&message[..len]).map(read).count();
        }
        for at in 0..message.len() {
            for value in [0, 1, 3, 0x7f, 0xff] {
                let mut bad = message.clone();
                bad[at] = value;
                let _ = read(&bad);
                let _ = Messages::of(&bad).map(read).count();
            }
        }
        let mut out = Vec::new();
        answer(&message[..10], true, &mut out);
        answer(&message, false, &mut out);
    }
}

#[test]
fn routes_are_in_the_forwarding_table_and_zebra_is_told_so() {
    let mut bed = bed();
    let mut zebra = bed.connect();
    let to = "198.51.100.0/24";
    bed.send(
        &mut zebra,
        &[new_route(to, &[oif(7), gateway("10.0.0.7")]), new_route("2001:db8:5::/48", &[blackhole()])],
    );
    assert_eq!(
        bed.answers(&mut zebra, 2),
        [(to.parse().unwrap(), true), ("2001:db8:5::/48".parse().unwrap(), false)],
        "a route without a next hop is none"
    );
    assert!(bed.has(to, &[bed.via("10.0.0.7")]));
    // Another next hop: as zebra of FRR 8 says it, in one frame.
    bed.send(&mut zebra, &[del_route(to), new_route(to, &[oif(7), gateway("10.0.0.8")])]);
    assert!(bed.has(to, &[bed.via("10.0.0.8")]) && !bed.has(to, &[bed.via("10.0.0.7")]));
    bed.send(&mut zebra, &[del_route(to)]);
    assert!(!bed.has(to, &[]));
    let state = bed.fpm.state();
    assert_eq!((state.routes, state.installed), (0, 0));
}

#[test]
fn of_many_frames_that_come_together_each_counts_in_its_order() {
    let mut bed = bed();
    let mut zebra = bed.connect();
    let (a, b) = ([oif(7), gateway("10.0.0.7")], [id(1)]);
    let prefix = |n: usize| format!("198.18.{}.{}/32", n / 256, n % 256);
    let mut all = Vec::new();
    // Three ways, one of which is not known yet, and now and then a route that is none, goes, or comes once more another way.
    for n in 0..600 {
        let way = if n % 100 < 40 { &a[..] } else { &b[..] };
        all.push(new_route(&prefix(n), way));
        match n {
            100 => all.push(next_hop(1, &[nh_oif(7), nh_gateway("10.0.0.8")])),
            200 => all.push(new_route("198.18.0.3/32", &[blackhole()])),
            300 => all.push(new_route("198.18.0.4/32", &b)),
            400 => all.push(del_route("198.18.0.5/32")),
            410 => all.push(new_route("198.18.0.6/32", &a)),
            _ => {}
        }
    }
    let stream: Vec<u8> = all.iter().flat_map(|message| frame(std::slice::from_ref(message))).collect();
    zebra.write_all(&stream).unwrap();
    let answers = bed.answers(&mut zebra, 603);
    bed.until(|bed| bed.fpm.state().installed == 598);
    assert_eq!(bed.fpm.state().routes, 598);
    let refused: Vec<String> = answers.iter().filter(|a| !a.1).map(|a| a.0.to_string()).collect();
    assert_eq!(refused, ["198.18.0.3/32"]);
    // Those that waited are answered when their next hop comes, all others in the order in which they came.
    let third: Vec<String> =
        answers.iter().map(|a| a.0.to_string()).filter(|p| p.starts_with("198.18.2.")).collect();
    assert_eq!(third, (512..600).map(prefix).collect::<Vec<_>>());
    for n in (0..600).filter(|n| ![3, 4, 5].contains(n)) {
        let next_hop = if n % 100 < 40 { "10.0.0.7" } else { "10.0.0.8" };
        assert!(bed.has(&prefix(n), &[bed.via(next_hop)]), "{n}");
    }
    assert!(bed.has("198.18.0.4/32", &[bed.via("10.0.0.8")]));
    assert!(!bed.has("198.18.0.3/32", &[]) && !bed.has("198.18.0.5/32", &[]));
}

#[test]
fn zebras_routes_are_where_the_interfaces_of_its_namespace_are() {
    let mut bed = bed();
    let (mut zebra, to) = (bed.connect(), "198.51.100.0/24");
    let prefix: IpPrefix = to.parse().unwrap();
    let path = [bed.via("10.0.0.7")];
    bed.send(&mut zebra, &[new_route(to, &[oif(7), gateway("10.0.0.7")])]);
    assert!(bed.has(to, &path));
    // The interface goes to another table, and comes back.
    let (fib, ip4) = (bed.router.get::<Fib>(), bed.router.get::<Ip4>());
    let red = fib.add_table(shoal_fib::Family::Ip4, 10, None).unwrap();
    let has =
        |bed: &Bed, table| bed.router.get::<Fib>().has_paths(table, [prefix], Source::Fpm, &path).is_ok();
    for (id, table, other) in [(10, red, FibIndex::DEFAULT), (0, FibIndex::DEFAULT, red)] {
        ip4.del_all(bed.phy.index()).unwrap();
        ip4.set_table(bed.phy.index(), id).unwrap();
        ip4.add_address(bed.phy.index(), "10.0.0.1/24".parse().unwrap()).unwrap();
        bed.until(|bed| has(bed, table));
        assert!(!has(&bed, other));
    }
    // It is withdrawn where it is.
    ip4.del_all(bed.phy.index()).unwrap();
    ip4.set_table(bed.phy.index(), 10).unwrap();
    bed.until(|bed| has(bed, red));
    bed.fpm.stop();
    bed.until(|bed| !has(bed, red));
}

#[test]
fn a_group_that_changes_changes_its_routes_and_what_is_missing_is_waited_for() {
    let mut bed = bed();
    let mut zebra = bed.connect();
    let (a, b) = ("198.51.100.0/24", "203.0.113.0/24");
    bed.send(&mut zebra, &[new_route(a, &[id(30)]), new_route(b, &[id(31)])]);
    assert_eq!((bed.fpm.state().routes, bed.fpm.state().installed), (2, 0));
    bed.send(
        &mut zebra,
        &[
            next_hop(1, &[nh_oif(7), nh_gateway("10.0.0.7")]),
            next_hop(31, &[nh_oif(7), nh_gateway("10.0.0.9")]),
        ],
    );
    bed.until(|bed| bed.fpm.state().installed == 1);
    bed.send(&mut zebra, &[next_hop(30, &[nh_group(&[(1, 0), (2, 1)])])]);
    assert!(!bed.has(a, &[]), "a member is missing");
    bed.send(&mut zebra, &[next_hop(2, &[nh_oif(7), nh_gateway("10.0.0.8")])]);
    bed.until(|bed| bed.fpm.state().installed == 2);
    assert!(bed.has(a, &[bed.via("10.0.0.7"), bed.via("10.0.0.8").weight(2)]));
    assert_eq!(
        bed.answers(&mut zebra, 2),
        [(b.parse().unwrap(), true), (a.parse().unwrap(), true)],
        "answered when they are"
    );
    bed.send(&mut zebra, &[next_hop(30, &[nh_group(&[(2, 0)])])]);
    bed.until(|bed| !bed.has(a, &[bed.via("10.0.0.7")]));
    assert!(bed.has(a, &[bed.via("10.0.0.8")]));
    bed.send(&mut zebra, &[no_next_hop(2)]);
    bed.until(|bed| !bed.has(a, &[]));
    bed.send(&mut zebra, &[next_hop(2, &[nh_blackhole()])]);
    bed.until(|bed| bed.has(a, &[Via::Drop.into()]));
}

#[test]
fn routes_by_an_interface_without_an_image_wait_for_it() {
    let mut bed = bed();
    let mut zebra = bed.connect();
    let to = "198.51.100.0/24";
    bed.router.get::<Lcp>().delete(bed.phy.index()).unwrap();
    bed.send(&mut zebra, &[new_route(to, &[oif(7), gateway("10.0.0.7")])]);
    assert!(!bed.has(to, &[]));
    bed.router.get::<Lcp>().create(bed.phy.index(), "e0", None).unwrap();
    bed.until(|bed| bed.has(to, &[bed.via("10.0.0.7")]));
    assert_eq!(bed.answers(&mut zebra, 1).len(), 1);
    bed.router.get::<Lcp>().delete(bed.phy.index()).unwrap();
    bed.until(|bed| !bed.has(to, &[]));
}

#[test]
fn routes_stay_while_zebra_is_away_and_go_if_it_does_not_tell_them_again() {
    let mut bed = bed();
    let mut zebra = bed.connect();
    let by = [oif(7), gateway("10.0.0.7")];
    let all = ["198.51.100.0/26", "198.51.100.64/26", "198.51.100.128/26"];
    bed.send(&mut zebra, &all.map(|to| new_route(to, &by)));
    drop(zebra);
    bed.until(|bed| bed.fpm.state().connected.is_none());
    assert!(all.iter().all(|to| bed.has(to, &[])), "they stay");
    let mut zebra = bed.connect();
    bed.send(&mut zebra, &[new_route(all[0], &by)]);
    bed.pass(Duration::from_secs(70));
    assert_eq!(bed.fpm.state().routes, 3, "one of three: it has not begun");
    drop(zebra);
    bed.until(|bed| bed.fpm.state().connected.is_none());
    let mut zebra = bed.connect();
    bed.send(&mut zebra, &[new_route(all[0], &by), new_route(all[1], &by)]);
    bed.pass(Duration::from_secs(30));
    assert_eq!(bed.fpm.state().routes, 3, "it has a minute");
    bed.pass(Duration::from_secs(40));
    bed.until(|bed| bed.fpm.state().routes == 2);
    assert!(bed.has(all[1], &[]) && !bed.has(all[2], &[]));
    bed.fpm.stop();
    bed.until(|bed| !bed.has(all[0], &[]) && !bed.has(all[1], &[]));
}

impl Bed {
    fn pass(&mut self, time: Duration) {
        for _ in 0..time.as_secs() {
            self.router.advance(Duration::from_secs(1));
            self.router.run();
        }
    }
}

#[test]
fn strangers_are_turned_away_and_nonsense_ends_the_connection() {
    let mut bed = bed();
    let mut zebra = bed.connect();
    let mut second = TcpStream::connect(bed.at).unwrap();
    bed.until(|bed| bed.router.counter("/fpm/connections-turned-away") == 1);
    assert_eq!(second.read(&mut [0; 1]).unwrap_or(0), 0);
    bed.send(&mut zebra, &[new_route("198.51.100.0/24", &[oif(7), gateway("10.0.0.7")])]);
    zebra.write_all(b"GET / HTTP/1.1\r\n\r\n").unwrap();
    bed.until(|bed| bed.fpm.state().connected.is_none());
    assert!(bed.has("198.51.100.0/24", &[]), "what was told stays");
    let open: SocketAddr = "192.0.2.1:2620".parse().unwrap();
    assert_eq!(
        bed.fpm.listen(&Listen { at: open, netns: None }).unwrap_err().to_string(),
        "192.0.2.1:2620 is no loopback address, nearest 127.0.0.1:2620"
    );
    let taken = std::net::TcpListener::bind("127.0.0.1:0").unwrap().local_addr();
    drop(taken);
    let busy = std::net::TcpListener::bind("127.0.0.1:0").unwrap();
    let at = busy.local_addr().unwrap();
    assert!(matches!(bed.fpm.listen(&Listen { at, netns: None }), Err(FpmError::Refused(..))));
    assert_eq!(bed.fpm.state().listen.unwrap().at, bed.at, "it listens where it did");
}

#[test]
fn groups_in_circles_and_of_groups_end() {
    let mut bed = bed();
    let mut zebra = bed.connect();
    bed.send(
        &mut zebra,
        &[
            next_hop(1, &[nh_group(&[(2, 0)])]),
            next_hop(2, &[nh_group(&[(1, 0)])]),
            new_route("198.51.100.0/24", &[id(1)]),
        ],
    );
    assert!(!bed.answers(&mut zebra, 1)[0].1);
    assert_eq!(bed.fpm.state().installed, 0);
}

#[test]
fn where_it_listens_is_saved() {
    let bed = bed();
    let mut running = Running::default();
    (shoal_fpm::MODULE.running)(bed.router.control(), &mut running);
    let text = running.pieces().collect::<String>();
    assert!(text.contains(&format!("fpm listen {}\n", bed.at)), "{text}");
}
