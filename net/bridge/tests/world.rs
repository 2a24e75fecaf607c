//! A router with a bridge domain of three ports, and what tests need.

use std::rc::Rc;

use shoal_bridge::{Bridges, Role, Settings};
use shoal_module::Module;
use shoal_module::cli::{Args, CliError, Output, Run};
use shoal_testkit::{PacketBuilder, Port, Router};

/// Modules of a switch that routes too.
pub const MODULES: &[&Module] = &[
    &shoal_interface::MODULE,
    &shoal_adj::MODULE,
    &shoal_ethernet::MODULE,
    &shoal_l2::MODULE,
    &shoal_fib::MODULE,
    &shoal_ip4::MODULE,
    &shoal_ip6::MODULE,
    &shoal_arp::MODULE,
    &shoal_icmp::MODULE,
    &shoal_ip6_nd::MODULE,
    &shoal_bridge::MODULE,
];

/// The domain's number.
pub const BD: u32 = 10;

pub struct World {
    pub router: Router,
    pub bridges: Rc<Bridges>,
    pub ports: Vec<Port>,
}

impl World {
    /// `ports` members of one domain.
    pub fn new(ports: u32) -> World {
        let mut router = Router::new(MODULES);
        let bridges = router.get::<Bridges>();
        bridges.create(BD, Settings::default()).unwrap();
        let ports: Vec<Port> = (0..ports).map(|n| router.pg(n)).collect();
        for port in &ports {
            bridges.join(port.index(), BD, 0, Role::Normal).unwrap();
        }
        World { router, bridges, ports }
    }

    /// Lets port `from` receive a frame; which ports have sent it.
    pub fn send(&mut self, from: usize, frame: &[u8]) -> Vec<usize> {
        let port = self.ports[from].clone();
        self.router.send(&port, frame);
        self.sent(frame)
    }

    /// Which ports have sent just this frame, by port; nothing else may have been sent.
    pub fn sent(&self, frame: &[u8]) -> Vec<usize> {
        let mut all = Vec::new();
        for (n, port) in self.ports.iter().enumerate() {
            for sent in port.received() {
                assert_eq!(sent, frame, "out of port {n}");
                all.push(n);
            }
        }
        all
    }
}

/// The address of a station.
pub fn station(n: u16) -> [u8; 6] {
    let [high, low] = n.to_be_bytes();
    [2, 0xaa, 0, 0, high, low]
}

/// A frame from one station to another.
pub fn frame(from: u16, to: u16) -> Vec<u8> {
    frame_between(station(from), station(to))
}

pub fn frame_between(from: [u8; 6], to: [u8; 6]) -> Vec<u8> {
    PacketBuilder::ethernet(from, to).ip4([10, 0, 0, 1], [10, 0, 0, 2]).udp(1, 2).payload(b"payload").build()
}

/// Runs one command of this crate or of layer 2 with its arguments by name.
pub fn run(router: &Router, command: &str, items: &str) -> Result<Output, CliError> {
    let mut all = shoal_bridge::MODULE.commands.iter().chain(shoal_l2::MODULE.commands);
    let command = all.find(|c| c.syntax.starts_with(command)).unwrap();
    let start = Args::new(Rc::clone(router.control()), items);
    let args = items.split_whitespace().fold(start, |args, item| match item.split_once('=') {
        Some((name, text)) => args.with(name.to_owned().leak(), text, 0..0),
        None => args.with_word(item.to_owned().leak(), 0..0),
    });
    let Run::Now(handler) = command.run else { panic!("answers later") };
    handler(router.control(), &args)
}
