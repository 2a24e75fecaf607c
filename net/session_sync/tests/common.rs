//! Two routers with the same inside and the same outside, and a link between them.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_arp::Neighbours;
use shoal_arp::table::{FibEntry, Origin};
use shoal_fib::{Fib, FibIndex, Path, Source};
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_nat::Tuple;
use shoal_nat::tuple::{TCP, UDP};
use shoal_nat44_ed::sessions::Record;
use shoal_nat44_ed::{Nat44, Purpose};
use shoal_nat64::Nat64;
use shoal_session_sync::{Key, Peer, RoleSource, SessionSync, Timers};
pub use shoal_testkit::nat_bed::{FAR, HOST, ip, packet, read, tuple};
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_wire::{MacAddress, TcpFlags};

/// The address that hosts share: on no link.
pub const SHARED: &str = "203.0.113.1";
/// That of NAT64.
pub const SHARED64: Ipv4Addr = Ipv4Addr::new(203, 0, 113, 64);
pub const SYN: u8 = 2;
pub const ACK: u8 = 16;
pub const SYN_ACK: u8 = 18;

pub const KEY: &str = "000102030405060708090a0b0c0d0e0f";

/// One of the two routers.
pub struct Side {
    pub router: Router,
    pub inside: Port,
    pub outside: Port,
    /// The world of NAT64: what is no session of nat44-ed is dropped on the other.
    pub outside64: Port,
    pub link: Port,
}

/// Addresses of the link.
pub fn link(is_ip6: bool, nth: u8) -> IpAddr {
    if is_ip6 {
        Ipv6Addr::new(0x2001, 0xdb8, 5, 0, 0, 0, 0, nth.into()).into()
    } else {
        Ipv4Addr::new(172, 16, 0, nth).into()
    }
}

pub fn peer(is_ip6: bool, own: u8, other: u8) -> Peer {
    let (local, address) = (link(is_ip6, own), link(is_ip6, other));
    Peer { address, local, port: Peer::PORT, key: Key::from_hex(KEY) }
}

fn host6(n: u16) -> Ipv6Addr {
    Ipv6Addr::new(0x2001, 0xdb8, 1, 0, 0, 0, 0, n)
}

impl Side {
    /// Router 1 or 2 without NAT. The link's other end is a neighbour.
    pub fn plain(nth: u8) -> Side {
        let mut modules = STACK.to_vec();
        modules.extend([
            &shoal_mfib::MODULE,
            &shoal_ip6_nd::MODULE,
            &shoal_bfd::MODULE,
            &shoal_reassembly::MODULE,
            &shoal_syslog::MODULE,
            &shoal_ipfix::MODULE,
            &shoal_nat44_ed::MODULE,
            &shoal_nat64::MODULE,
            &shoal_vrrp::MODULE,
            &shoal_session_sync::MODULE,
        ]);
        let mut router = Router::new(&modules);
        let (inside, outside) = (router.pg(0), router.pg(1));
        let link_port = router.pg(1 + u32::from(nth));
        let outside64 = router.pg(4);
        router.set_address(&outside64, "192.0.3.1/24");
        let other_mac = MacAddress([2, 0xfe, 0, 0, 0, 4 - nth]);
        for (port, net, mac) in [(&inside, "10.0.0", HOST), (&outside, "192.0.2", FAR)] {
            router.set_address(port, &format!("{net}.1/24"));
            for n in 2..10 {
                router.set_neighbour(port, format!("{net}.{n}").parse().unwrap(), mac);
            }
        }
        let ip6 = router.get::<Ip6>();
        ip6.add_address(inside.index(), "2001:db8:1::1/64".parse().unwrap()).unwrap();
        ip6.add_address(link_port.index(), format!("{}/64", link(true, nth)).parse().unwrap()).unwrap();
        router
            .get::<Ip4>()
            .add_address(link_port.index(), format!("{}/24", link(false, nth)).parse().unwrap())
            .unwrap();
        let nd = router.get::<shoal_ip6_nd::Neighbours>();
        for n in 2..10 {
            nd.set((inside.index(), host6(n)), HOST, Origin::Static, FibEntry::Wanted).unwrap();
        }
        let IpAddr::V6(other) = link(true, 3 - nth) else { unreachable!() };
        nd.set((link_port.index(), other), other_mac, Origin::Static, FibEntry::Wanted).unwrap();
        let IpAddr::V4(other) = link(false, 3 - nth) else { unreachable!() };
        let arp = router.get::<Neighbours>();
        arp.set((link_port.index(), other), other_mac, Origin::Static, FibEntry::Wanted).unwrap();
        let fib = router.get::<Fib>();
        let path = Path::next_hop(Ipv4Addr::new(192, 0, 2, 9), outside.index());
        fib.add(
            FibIndex::DEFAULT,
            "198.51.100.0/24".parse::<shoal_wire::IpPrefix>().unwrap(),
            Source::Cli,
            &[path],
        )
        .unwrap();
        router.advance(Duration::from_secs(3));
        let side = Side { router, inside, outside, outside64, link: link_port };
        side.forget();
        side
    }

    /// With both kinds of NAT.
    pub fn new(nth: u8) -> Side {
        let mut side = Side::plain(nth);
        side.enable();
        side.router.run();
        side.forget();
        side
    }

    pub fn enable(&self) {
        self.enable_for(20_000);
    }

    /// With room for so many sessions of the first kind.
    pub fn enable_for(&self, sessions: u32) {
        let nat = self.nat();
        nat.enable_nat(shoal_nat44_ed::Enable { sessions, ..Default::default() }).unwrap();
        nat.set_side(self.inside.index(), shoal_nat44_ed::Side::Inside, true).unwrap();
        nat.set_side(self.outside.index(), shoal_nat44_ed::Side::Outside, true).unwrap();
        let shared = SHARED.parse().unwrap();
        nat.add_addresses((shared, shared), Purpose::Pool, None).unwrap();
        let nat64 = self.nat64();
        nat64.enable(shoal_nat64::Enable::default()).unwrap();
        nat64.add_addresses((SHARED64, SHARED64), None).unwrap();
        nat64.set_side(self.inside.index(), shoal_nat64::Side::Inside, true).unwrap();
        nat64.set_side(self.outside64.index(), shoal_nat64::Side::Outside, true).unwrap();
    }

    pub fn nat(&self) -> Rc<Nat44> {
        self.router.get()
    }

    pub fn nat64(&self) -> Rc<Nat64> {
        self.router.get()
    }

    pub fn sync(&self) -> Rc<SessionSync> {
        self.router.get()
    }

    /// What has left of its ports is forgotten.
    pub fn forget(&self) {
        for port in [&self.inside, &self.outside, &self.outside64, &self.link] {
            port.received();
        }
    }

    pub fn sessions(&self) -> Vec<Record> {
        let all = self.nat().sessions(|_| true).unwrap();
        let mut all: Vec<Record> = all.into_iter().map(|(_, record)| record).collect();
        all.sort_by_key(|record| {
            let inside = record.session.inside;
            (inside.src, inside.sport, inside.dst, inside.dport, record.session.protocol)
        });
        all
    }

    fn one(frames: Vec<Vec<u8>>, mac: MacAddress) -> Option<Vec<u8>> {
        let mut frames: Vec<Vec<u8>> = frames.into_iter().filter(|frame| frame[..6] == mac.0).collect();
        assert!(frames.len() <= 1, "{frames:?}");
        frames.pop()
    }

    /// A host's packet; as what it leaves.
    pub fn out(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<Tuple> {
        let frame = packet((HOST, self.inside.mac()), tuple, protocol, flags, 64, b"payload");
        self.router.send(&self.inside, frame);
        Self::one(self.outside.received(), FAR).map(|frame| read(&frame))
    }

    /// A packet of the world; as what it comes to a host.
    pub fn back(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<Tuple> {
        let frame = packet((FAR, self.outside.mac()), tuple, protocol, flags, 64, b"payload");
        self.router.send(&self.outside, frame);
        Self::one(self.inside.received(), HOST).map(|frame| read(&frame))
    }

    /// An IPv6 host's packet to 198.51.100.7; as what it leaves.
    pub fn out6(&mut self, n: u16, sport: u16, protocol: u8, flags: u8) -> Option<Tuple> {
        let to = Ipv6Addr::new(0x64, 0xff9b, 0, 0, 0, 0, 0xc633, 0x6407);
        let frame = PacketBuilder::ethernet(HOST, self.inside.mac()).ip6(host6(n), to).ttl(64);
        let frame = match protocol {
            UDP => frame.udp(sport, 80),
            _ => frame.tcp(sport, 80, TcpFlags(flags)),
        };
        self.router.send(&self.inside, frame.payload(b"payload").build());
        Self::one(self.outside.received(), FAR).map(|frame| read(&frame))
    }

    /// What comes to an IPv6 host of a packet of the world: the host's address and port.
    pub fn back6(&mut self, tuple: Tuple, protocol: u8, flags: u8) -> Option<(Ipv6Addr, u16)> {
        let frame = packet((FAR, self.outside64.mac()), tuple, protocol, flags, 64, b"payload");
        self.router.send(&self.outside64, frame);
        let frame = Self::one(self.inside.received(), HOST)?;
        let address: [u8; 16] = frame[38..54].try_into().unwrap();
        Some((address.into(), u16::from_be_bytes([frame[56], frame[57]])))
    }

    /// A TCP connection of a host to the world, established; as what it leaves.
    pub fn connect(&mut self, tuple: Tuple) -> Option<Tuple> {
        let left = self.out(tuple, TCP, SYN)?;
        assert_eq!(self.back(left.reversed(), TCP, SYN_ACK), Some(tuple.reversed()));
        assert_eq!(self.out(tuple, TCP, ACK), Some(left));
        Some(left)
    }

    /// The same of an IPv6 host.
    pub fn connect6(&mut self, n: u16, sport: u16) -> Option<Tuple> {
        let left = self.out6(n, sport, TCP, SYN)?;
        assert_eq!(self.back6(left.reversed(), TCP, SYN_ACK), Some((host6(n), sport)));
        assert_eq!(self.out6(n, sport, TCP, ACK), Some(left));
        Some(left)
    }

    pub fn counter(&self, name: &str) -> u64 {
        self.router.counter(&format!("/session-sync/{name}"))
    }
}

/// What becomes of frames on the link.
pub type Fate<'a> = &'a mut dyn FnMut(usize, Vec<u8>) -> Vec<Vec<u8>>;

/// Both.
pub struct Pair {
    pub sides: [Side; 2],
    pub is_ip6: bool,
}

/// A pair of which the first forwards.
pub fn pair(is_ip6: bool) -> Pair {
    let mut pair = Pair { sides: [Side::new(1), Side::new(2)], is_ip6 };
    pair.configure(0, RoleSource::Active);
    pair.configure(1, RoleSource::Standby);
    pair.advance(300);
    assert!(pair.is_up(), "{:?}", pair.sides[0].router.errors());
    pair
}

impl Pair {
    pub fn configure(&mut self, at: usize, role: RoleSource) {
        let sync = self.sides[at].sync();
        sync.set_role(role).unwrap();
        let own = at as u8 + 1;
        sync.set_peer(Some(peer(self.is_ip6, own, 3 - own))).unwrap();
        self.sides[at].router.run();
    }

    pub fn is_up(&self) -> bool {
        self.sides.iter().all(|side| side.sync().view().up.is_some())
    }

    /// A router fails and comes again, without sessions.
    pub fn restart(&mut self, at: usize) {
        let now = self.sides[1 - at].router.now();
        self.sides[at] = Side::new(at as u8 + 1);
        let behind = now.since(self.sides[at].router.now());
        self.sides[at].router.advance(behind);
        self.sides[at].forget();
    }

    /// Frames of the link go to the other end, as long as there are any.
    pub fn carry_by(&mut self, fate: Fate<'_>) {
        for _ in 0..1000 {
            let mut any = false;
            for from in 0..2 {
                let frames = self.sides[from].link.received();
                let frames: Vec<Vec<u8>> = frames.into_iter().flat_map(|frame| fate(from, frame)).collect();
                any |= !frames.is_empty();
                let to = &mut self.sides[1 - from];
                let port = to.link.clone();
                to.router.send_all(&port, frames);
            }
            if !any {
                return;
            }
        }
        panic!("the two routers do not come to rest");
    }

    /// Time goes by for both.
    pub fn advance_by(&mut self, milliseconds: u64, fate: Fate<'_>) {
        for _ in 0..milliseconds.div_ceil(5) {
            for side in &mut self.sides {
                side.router.advance(Duration::from_millis(5));
            }
            self.carry_by(fate);
        }
    }

    pub fn advance(&mut self, milliseconds: u64) {
        self.advance_by(milliseconds, &mut |_, frame| vec![frame]);
    }

    /// The other one forwards from now on.
    pub fn fail_over(&mut self, to: usize) {
        self.sides[1 - to].sync().set_role(RoleSource::Standby).unwrap();
        self.sides[to].sync().set_role(RoleSource::Active).unwrap();
        self.advance(5);
        for side in &self.sides {
            side.inside.received();
            side.outside.received();
        }
    }
}

/// Times at which nothing is told again in the course of a test.
pub fn slow() -> Timers {
    Timers { refresh: 3600, ..Timers::default() }
}
