//! Clients on the outside, back ends on the inside of a router.

use std::net::{IpAddr, Ipv4Addr, Ipv6Addr};
use std::rc::Rc;

use shoal_arp::table::{FibEntry, Origin};
use shoal_cnat::sessions::Record;
use shoal_cnat::translation::{Flags, LbType};
use shoal_cnat::{Cnat, Endpoint, PathSpec, Spec};
use shoal_fib::FlowFields;
use shoal_ip6::Ip6;
use shoal_module::cli::{Args, Run};
use shoal_testkit::PacketBuilder;
use shoal_testkit::nat_bed::{FAR, HOST, NatBed};
use shoal_wire::{TcpFlags, checksum};

pub const ETHER: usize = 14;
pub const TCP: u8 = 6;
pub const UDP: u8 = 17;
/// An identifier instead of ports.
pub const PING: u8 = 1;

/// An address and a port.
pub type End = (IpAddr, u16);

pub fn end(address: &str, port: u16) -> End {
    (address.parse().unwrap(), port)
}

pub fn client(is_ip6: bool, port: u16) -> End {
    end(if is_ip6 { "2001:db8:2::2" } else { "192.0.2.2" }, port)
}

pub fn vip(is_ip6: bool) -> End {
    end(if is_ip6 { "2001:db8:99::1" } else { "198.51.100.1" }, 80)
}

/// A back end: 2 to 9.
pub fn backend(is_ip6: bool, n: u8) -> End {
    end(&if is_ip6 { format!("2001:db8:1::{n}") } else { format!("10.0.0.{n}") }, 8080)
}

/// Where pods' connections go.
pub fn far(is_ip6: bool) -> End {
    end(if is_ip6 { "2001:db8:2::7" } else { "192.0.2.7" }, 443)
}

pub fn shared(is_ip6: bool) -> IpAddr {
    if is_ip6 { "2001:db8:77::1" } else { "203.0.113.9" }.parse().unwrap()
}

pub struct Bed {
    pub nat: NatBed,
    pub cnat: Rc<Cnat>,
}

pub fn to((address, port): End) -> PathSpec {
    PathSpec { source: Endpoint::NONE, destination: Endpoint::new(address, port), flags: 0 }
}

pub fn spec((address, port): End, protocol: u8, backends: &[End]) -> Spec {
    Spec {
        vip: Endpoint::new(address, port),
        protocol,
        is_real: false,
        flags: Flags::default(),
        lb: LbType::Default,
        fields: FlowFields::DEFAULT,
        paths: backends.iter().map(|end| to(*end)).collect(),
    }
}

pub fn bed() -> Bed {
    let nat = NatBed::new(&[&shoal_ip6_nd::MODULE, &shoal_reassembly::MODULE, &shoal_cnat::MODULE]);
    let (ip6, nd) = (nat.router.get::<Ip6>(), nat.router.get::<shoal_ip6_nd::Neighbours>());
    for (port, net, mac) in [(&nat.inside, "2001:db8:1", HOST), (&nat.outside, "2001:db8:2", FAR)] {
        ip6.add_address(port.index(), format!("{net}::ff/64").parse().unwrap()).unwrap();
        for host in 2..10 {
            let host = format!("{net}::{host}").parse().unwrap();
            nd.set((port.index(), host), mac, Origin::Static, FibEntry::Wanted).unwrap();
        }
    }
    let cnat = nat.router.get::<Cnat>();
    let mut bed = Bed { nat, cnat };
    bed.nat.advance(3);
    bed.quiet();
    bed
}

/// A packet that came out.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Out {
    pub ip: Vec<u8>,
}

fn word(bytes: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([bytes[at], bytes[at + 1]])
}

/// The ends of an IP packet without options or extension headers.
pub fn ends(ip: &[u8]) -> (End, End) {
    let is_ip6 = ip[0] >> 4 == 6;
    let address = |at: usize| -> IpAddr {
        if is_ip6 {
            Ipv6Addr::from(<[u8; 16]>::try_from(&ip[at..at + 16]).unwrap()).into()
        } else {
            Ipv4Addr::new(ip[at], ip[at + 1], ip[at + 2], ip[at + 3]).into()
        }
    };
    let (src, dst, protocol, upper) = if is_ip6 { (8, 24, ip[6], 40) } else { (12, 16, ip[9], 20) };
    let ports = match protocol {
        TCP | UDP => (word(ip, upper), word(ip, upper + 2)),
        _ => (word(ip, upper + 4), word(ip, upper + 4)),
    };
    ((address(src), ports.0), (address(dst), ports.1))
}

/// Whether the checksums are right.
pub fn is_whole(ip: &[u8]) -> bool {
    if ip[0] >> 4 == 6 {
        let upper = &ip[40..];
        let length = (upper.len() as u32).to_be_bytes();
        return checksum::verify(&[&ip[8..40], &length[..], &[0, 0, 0, ip[6]], upper].concat());
    }
    let upper = &ip[20..];
    let pseudo = match ip[9] {
        1 => upper.to_vec(),
        protocol => [&ip[12..20], &[0, protocol], &(upper.len() as u16).to_be_bytes()[..], upper].concat(),
    };
    checksum::verify(&ip[..20]) && checksum::verify(&pseudo)
}

impl Out {
    pub fn ends(&self) -> (End, End) {
        assert!(is_whole(&self.ip), "{:?}", self.ip);
        ends(&self.ip)
    }

    /// The packet that an ICMP error carries, and the error's own addresses.
    pub fn error(&self) -> ((IpAddr, IpAddr), Vec<u8>) {
        assert!(is_whole(&self.ip), "{:?}", self.ip);
        let header = if self.ip[0] >> 4 == 6 { 40 } else { 20 };
        let (src, dst) = ends(&self.ip);
        ((src.0, dst.0), self.ip[header + 8..].to_vec())
    }
}

impl Bed {
    fn quiet(&self) {
        self.nat.inside.received();
        self.nat.outside.received();
    }

    pub fn features(&self) {
        for port in [&self.nat.inside, &self.nat.outside] {
            self.cnat.set_feature(port.index(), true).unwrap();
        }
    }

    fn base(&self, from_inside: bool, (src, dst): (IpAddr, IpAddr)) -> PacketBuilder {
        let (mac, port) = if from_inside { (HOST, &self.nat.inside) } else { (FAR, &self.nat.outside) };
        let frame = PacketBuilder::ethernet(mac, port.mac());
        match (src, dst) {
            (IpAddr::V4(src), IpAddr::V4(dst)) => frame.ip4(src, dst),
            (IpAddr::V6(src), IpAddr::V6(dst)) => frame.ip6(src, dst),
            _ => panic!("{src} {dst}"),
        }
    }

    pub fn packet(&self, from_inside: bool, (src, dst): (End, End), protocol: u8, flags: u8) -> Vec<u8> {
        let frame = self.base(from_inside, (src.0, dst.0));
        let frame = match (protocol, flags) {
            (TCP, flags) => frame.tcp(src.1, dst.1, TcpFlags(flags)),
            (UDP, _) => frame.udp(src.1, dst.1),
            (_, 0) if src.0.is_ipv4() => frame.icmp_echo_request(src.1, 1),
            (_, 0) => frame.icmp6_echo_request(src.1, 1),
            (..) if src.0.is_ipv4() => frame.icmp_echo_reply(src.1, 1),
            _ => frame.icmp6_echo_reply(src.1, 1),
        };
        frame.payload(b"odd").build()
    }

    /// An ICMP error, "unreachable", about a packet.
    pub fn error(&self, from_inside: bool, (src, dst): (IpAddr, IpAddr), about: &[u8]) -> Vec<u8> {
        let frame = self.base(from_inside, (src, dst));
        if src.is_ipv6() {
            return frame.icmp6(&[&[1, 4, 0, 0, 0, 0, 0, 0][..], about].concat()).build();
        }
        shoal_testkit::nat_bed::icmp_error(&frame.icmp_echo_request(1, 1).build(), about)
    }

    fn out(port: &shoal_testkit::Port) -> Vec<Out> {
        port.received().into_iter().map(|frame| Out { ip: frame[ETHER..].to_vec() }).collect()
    }

    /// Sends a frame of the outside; what comes out inside.
    pub fn send_in(&mut self, frame: Vec<u8>) -> Vec<Out> {
        self.quiet();
        self.nat.send_outside(frame);
        Self::out(&self.nat.inside)
    }

    /// Sends a frame of the inside; what comes out outside.
    pub fn send_out(&mut self, frame: Vec<u8>) -> Vec<Out> {
        self.quiet();
        self.nat.send_inside(frame);
        Self::out(&self.nat.outside)
    }

    /// Sends a packet of the outside; where it goes from and to inside.
    pub fn comes(&mut self, ends: (End, End), protocol: u8, flags: u8) -> Option<(End, End)> {
        let frame = self.packet(false, ends, protocol, flags);
        let got = self.send_in(frame);
        assert!(got.len() <= 1);
        got.first().map(Out::ends)
    }

    /// Sends a packet of the inside; where it goes from and to outside.
    pub fn goes(&mut self, ends: (End, End), protocol: u8, flags: u8) -> Option<(End, End)> {
        let frame = self.packet(true, ends, protocol, flags);
        let got = self.send_out(frame);
        assert!(got.len() <= 1);
        got.first().map(Out::ends)
    }

    /// Runs a command of this crate: `words` are words, or arguments written `name=text`.
    pub fn run(&self, command: &str, words: &[&str]) -> Result<String, String> {
        let mut fits = shoal_cnat::cli::COMMANDS.iter().filter(|c| c.syntax.starts_with(command));
        let command = fits.next().unwrap();
        let control = self.nat.router.control();
        let args =
            words.iter().fold(Args::new(Rc::clone(control), ""), |args, word| match word.split_once('=') {
                Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
                None => args.with_word((*word).to_owned().leak(), 0..0),
            });
        let Run::Now(handler) = command.run else { panic!("answers later") };
        handler(control, &args).map(|output| output.to_text()).map_err(|e| e.to_string())
    }

    /// Adds a translation that is written so.
    pub fn add(&self, translation: &str) -> Result<String, String> {
        self.run("cnat translation add", &[&format!("translation={translation}")])
    }

    pub fn sessions(&self) -> Vec<Record> {
        self.cnat.sessions().unwrap()
    }

    pub fn errors(&self) -> Vec<(String, u64)> {
        self.nat.router.errors()
    }
}

pub fn turned((src, dst): (End, End)) -> (End, End) {
    (dst, src)
}
