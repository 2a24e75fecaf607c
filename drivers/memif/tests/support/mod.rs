//! Two routers in one process, connected by memif, or one router and a peer made by hand.
#![allow(dead_code)]

pub mod hand;

use std::net::IpAddr;
use std::time::{Duration, Instant};

use shoal_arp::table::{FibEntry, Origin};
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_interface::{IfFlags, SwIfIndex};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_memif::{CreateMemif, Detail, MemifInfo, Memifs, Role};
use shoal_module::Module;
use shoal_testkit::{Port, Router};
use shoal_wire::{IpPrefix, MacAddress, Packet};

/// What a router needs to forward both families.
pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_memif::MODULE,
];

pub const PATIENCE: Duration = Duration::from_secs(20);
pub const HOST: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 1]);

/// A name for a socket that no other test has.
pub fn socket_name(test: &str) -> String {
    format!("@shoal-test-{}-{test}", std::process::id())
}

/// Runs routers until something is so; their clocks go on meanwhile.
pub fn run_until(routers: &mut [&mut Router], mut done: impl FnMut(&mut [&mut Router]) -> bool) -> bool {
    let deadline = Instant::now() + PATIENCE;
    loop {
        for router in routers.iter_mut() {
            router.advance(Duration::from_millis(20));
        }
        if done(routers) {
            return true;
        }
        if Instant::now() > deadline {
            return false;
        }
        // What was sent on a socket is there when its thread has seen it.
        std::thread::sleep(Duration::from_micros(200));
    }
}

/// A memif, up.
pub fn make(router: &mut Router, filename: &str, create: &CreateMemif) -> SwIfIndex {
    let memifs = router.get::<Memifs>();
    memifs.add_socket(Some(create.socket), filename).unwrap();
    let index = memifs.create(create).unwrap();
    router.interfaces().set_admin(index, true).unwrap();
    router.run();
    index
}

pub fn info(router: &Router, index: SwIfIndex) -> MemifInfo {
    router.get::<Memifs>().list(Some(index), Detail::Brief).unwrap().remove(0)
}

pub fn is_up(router: &Router, index: SwIfIndex) -> bool {
    router.interfaces().data(index).unwrap().flags().has(IfFlags::LINK_UP)
}

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

/// Gives an interface addresses such as `10.0.0.1/24` and `2001:db8::1/64`.
pub fn address(router: &Router, index: SwIfIndex, addresses: &[&str]) {
    for address in addresses {
        if address.contains(':') {
            router.get::<Ip6>().add_address(index, address.parse().unwrap()).unwrap();
        } else {
            router.get::<Ip4>().add_address(index, address.parse().unwrap()).unwrap();
        }
    }
}

pub fn route(router: &Router, to: &str, via: &str, index: SwIfIndex) {
    let path = Path::next_hop(ip(via), index);
    let to: IpPrefix = to.parse().unwrap();
    router.get::<Fib>().add(FibIndex::DEFAULT, to, Source::Cli, &[path]).unwrap();
}

/// Whether a frame is UDP to port 2000, as tests send it, and not what routers say to hosts.
pub fn is_ours(frame: &[u8]) -> bool {
    let at = if frame.get(12..14) == Some(&[0x08, 0x00]) { 36 } else { 56 };
    frame.get(at..at + 2) == Some(&2000_u16.to_be_bytes())
}

/// Two routers between two hosts: `pg0` - left - memif - right - `pg0`.
///
/// Left is the slave. The hosts' networks are 10.1.0.0/24 and 2001:db8:1::/64 on the left, 10.2 and 2001:db8:2 on the
/// right.
pub struct Pair {
    pub left: Router,
    pub right: Router,
    pub hosts: [Port; 2],
    pub ends: [SwIfIndex; 2],
    made: CreateMemif,
}

/// One of the two routers.
fn side(test: &str, create: &CreateMemif, role: Role, here: u8) -> (Router, Port, SwIfIndex) {
    let (mut router, there) = (Router::new(MODULES), 3 - here);
    let host = router.pg(0);
    let end = make(&mut router, &socket_name(test), &CreateMemif { socket: 1, role, ..create.clone() });
    let networks = [format!("10.{here}.0.1/24"), format!("2001:db8:{here}::1/64")];
    address(&router, host.index(), &networks.each_ref().map(String::as_str));
    let networks = [format!("10.9.0.{here}/24"), format!("2001:db8:9::{here}/64")];
    address(&router, end, &networks.each_ref().map(String::as_str));
    route(&router, &format!("10.{there}.0.0/24"), &format!("10.9.0.{there}"), end);
    route(&router, &format!("2001:db8:{there}::/64"), &format!("2001:db8:9::{there}"), end);
    (router, host, end)
}

impl Pair {
    pub fn new(test: &str, create: &CreateMemif) -> Self {
        Self::with(test, create, create)
    }

    pub fn with(test: &str, left: &CreateMemif, right: &CreateMemif) -> Self {
        let (left, host_left, end_left) = side(test, left, Role::Slave, 1);
        let (right_router, host_right, end_right) = side(test, right, Role::Master, 2);
        let (hosts, ends) = ([host_left, host_right], [end_left, end_right]);
        Pair { left, right: right_router, hosts, ends, made: right.clone() }
    }

    /// Another router in the place of the right one, which has gone.
    pub fn right_again(&mut self, test: &str) {
        let made = self.made.clone();
        let (right, host, end) = side(test, &made, Role::Master, 2);
        (self.right, self.hosts[1], self.ends[1]) = (right, host, end);
    }

    pub fn run_until(&mut self, mut done: impl FnMut(&mut Router, &mut Router) -> bool) -> bool {
        run_until(&mut [&mut self.left, &mut self.right], |routers| {
            let [left, right] = routers else { unreachable!("there are two") };
            done(left, right)
        })
    }

    pub fn connect(&mut self) {
        let [a, b] = self.ends;
        let connected = self.run_until(|left, right| is_up(left, a) && is_up(right, b));
        assert!(connected, "{:?} {:?}", info(&self.left, a).why, info(&self.right, b).why);
        self.learn();
    }

    /// Both hosts are known in both families, and the routers get to know each other.
    pub fn learn(&mut self) {
        for (router, host, n) in [(&self.left, &self.hosts[0], 1), (&self.right, &self.hosts[1], 2)] {
            let (ip4, ip6) = (format!("10.{n}.0.2"), format!("2001:db8:{n}::2"));
            router.set_neighbour(host, ip4.parse().unwrap(), HOST);
            let neighbours = router.get::<shoal_ip6_nd::Neighbours>();
            let key = (host.index(), ip6.parse().unwrap());
            neighbours.set(key, HOST, Origin::Static, FibEntry::Wanted).unwrap();
        }
        for from in [0, 1] {
            for packet in [self.ip4(from, 1), self.ip6(from, 1)] {
                let sent = self.crosses(from, &packet);
                assert!(
                    sent,
                    "no packet of {} bytes crosses from {from}: {:?} {:?}",
                    packet.len(),
                    self.left.errors(),
                    self.right.errors()
                );
            }
        }
        // Packets that were sent again, or waited for an answer.
        for _ in 0..20 {
            self.left.advance(Duration::from_millis(50));
            self.right.advance(Duration::from_millis(50));
        }
        self.hosts.iter().for_each(|host| drop(host.received()));
    }

    /// Whether a packet gets through, sent again until it does.
    fn crosses(&mut self, from: usize, packet: &[u8]) -> bool {
        let (to, len) = (self.hosts[1 - from].clone(), packet.len());
        let host = self.hosts[from].clone();
        let packet = packet.to_vec();
        self.run_until(move |left, right| {
            let router = if from == 0 { left } else { right };
            router.send(&host, &packet);
            to.received().iter().any(|p| p.len() == len && is_ours(p))
        })
    }

    pub fn ip4(&self, from: usize, number: u16) -> Vec<u8> {
        self.ip4_of(from, number, 18)
    }

    pub fn ip4_of(&self, from: usize, number: u16, payload: usize) -> Vec<u8> {
        let n = from as u8 + 1;
        Packet::ethernet(HOST, self.hosts[from].mac())
            .ip4([10, n, 0, 2], [10, 3 - n, 0, 2])
            .udp(1000 + number, 2000)
            .payload_len(payload)
            .build()
    }

    pub fn ip6(&self, from: usize, number: u16) -> Vec<u8> {
        self.ip6_of(from, number, 18)
    }

    pub fn ip6_of(&self, from: usize, number: u16, payload: usize) -> Vec<u8> {
        let n = from + 1;
        let host = |n: usize| -> std::net::Ipv6Addr { format!("2001:db8:{n}::2").parse().unwrap() };
        Packet::ethernet(HOST, self.hosts[from].mac())
            .ip6(host(n), host(3 - n))
            .udp(1000 + number, 2000)
            .payload_len(payload)
            .build()
    }

    pub fn router(&mut self, which: usize) -> &mut Router {
        if which == 0 { &mut self.left } else { &mut self.right }
    }

    /// Sends packets from a host and gives what the other one got.
    pub fn pass(&mut self, from: usize, packets: Vec<Vec<u8>>) -> Vec<Vec<u8>> {
        let (host, to, count) = (self.hosts[from].clone(), self.hosts[1 - from].clone(), packets.len());
        self.router(from).send_all(&host, packets);
        let mut got = Vec::new();
        self.run_until(|_, _| {
            got.extend(to.received().into_iter().filter(|p| is_ours(p)));
            got.len() >= count
        });
        got
    }
}
