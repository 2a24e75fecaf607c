//! A router on a link with others, and one port more.

use std::net::{IpAddr, Ipv4Addr};
use std::rc::Rc;
use std::time::Duration;

use shoal_adj::Family;
use shoal_ip6::Ip6;
use shoal_testkit::{PacketBuilder, Port, Router, STACK};
use shoal_vrrp::{Advertisement, Config, State, Version, VrKey, Vrrp};
use shoal_wire::{EtherType, IpProtocol, MacAddress};

pub const ETHER: usize = 14;
pub const OURS: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 1);
pub const OTHER: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 9);
pub const OTHER_MAC: MacAddress = MacAddress([2, 0xaa, 0, 0, 0, 9]);
pub const VIP: Ipv4Addr = Ipv4Addr::new(10, 0, 0, 100);
pub const MAC: MacAddress = MacAddress([0, 0, 0x5e, 0, 1, 7]);
pub const MAC6: MacAddress = MacAddress([0, 0, 0x5e, 0, 2, 7]);

pub fn ip(text: &str) -> IpAddr {
    text.parse().unwrap()
}

pub struct Bed {
    pub router: Router,
    pub lan: Port,
    pub wan: Port,
    pub vrrp: Rc<Vrrp>,
}

pub fn bed() -> Bed {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_mfib::MODULE, &shoal_ip6_nd::MODULE, &shoal_vrrp::MODULE]);
    let mut router = Router::new(&modules);
    let (lan, wan) = (router.pg(0), router.pg(1));
    router.set_address(&lan, "10.0.0.1/24");
    router.set_address(&wan, "10.0.1.1/24");
    router.get::<Ip6>().add_address(lan.index(), "2001:db8::1/64".parse().unwrap()).unwrap();
    router.set_neighbour(&wan, Ipv4Addr::new(10, 0, 1, 2), OTHER_MAC);
    router.advance(Duration::from_secs(5));
    let vrrp = router.get::<Vrrp>();
    let bed = Bed { router, lan, wan, vrrp };
    bed.lan.received();
    bed.wan.received();
    bed
}

impl Bed {
    pub fn key(&self, family: Family) -> VrKey {
        VrKey { interface: self.lan.index(), vr_id: 7, family }
    }

    pub fn config(&self) -> Config {
        Config { addresses: vec![VIP.into()], ..Config::new(self.key(Family::Ip4)) }
    }

    pub fn config6(&self) -> Config {
        let addresses = vec![ip("fe80::7"), ip("2001:db8::100")];
        Config { addresses, ..Config::new(self.key(Family::Ip6)) }
    }

    /// Adds and starts.
    pub fn run(&self, config: Config) -> u32 {
        let key = config.key;
        let index = self.vrrp.add(config).unwrap();
        self.vrrp.start(key).unwrap();
        index
    }

    pub fn state(&self, index: u32) -> State {
        self.vrrp.info(index).unwrap().machine.state
    }

    pub fn advance(&mut self, milliseconds: u64) {
        self.router.advance(Duration::from_millis(milliseconds));
    }

    /// Frames of a kind that left for the link.
    pub fn left(&self, kind: EtherType) -> Vec<Vec<u8>> {
        let is = |frame: &Vec<u8>| frame[12..14] == kind.0.to_be_bytes();
        self.lan.received().into_iter().filter(is).collect()
    }

    /// Advertisements that left for the link, with the frames they were in.
    pub fn said(&self) -> Vec<(Vec<u8>, Advertisement)> {
        self.lan.received().into_iter().filter_map(|frame| read(&frame).map(|said| (frame, said))).collect()
    }

    pub fn hear(&mut self, frame: Vec<u8>) {
        self.router.send(&self.lan, frame);
        self.router.run();
    }
}

/// Another router's advertisement.
pub fn other(priority: u8, interval: u16) -> Vec<u8> {
    other_from(OTHER, Version::V3, priority, interval)
}

pub fn other_from(from: Ipv4Addr, version: Version, priority: u8, interval: u16) -> Vec<u8> {
    let said = Advertisement { version, vr_id: 7, priority, interval, addresses: 1, first: VIP.into() };
    let group = Ipv4Addr::new(224, 0, 0, 18);
    let message = said.write((from.into(), group.into()), &[VIP.into()]);
    let packet = PacketBuilder::ethernet(MAC, MacAddress::for_ip4_multicast(group)).ip4(from, group);
    packet.ttl(255).protocol(IpProtocol::VRRP).payload(&message).build()
}

/// The advertisement of a frame.
pub fn read(frame: &[u8]) -> Option<Advertisement> {
    let ip4 = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<4>()?));
    let ip6 = |at: usize| Some(IpAddr::from(*frame.get(at..)?.first_chunk::<16>()?));
    let (ends, message) = match frame.get(12..14)? {
        [8, 0] if frame.get(23) == Some(&112) => ((ip4(26)?, ip4(30)?), frame.get(34..)?),
        [0x86, 0xdd] if frame.get(20) == Some(&112) => ((ip6(22)?, ip6(38)?), frame.get(54..)?),
        _ => return None,
    };
    Some(Advertisement::read(ends, message).expect("what leaves is right"))
}
