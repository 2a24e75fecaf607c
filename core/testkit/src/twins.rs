//! Two routers that differ in nothing but one setting, and everything that can be seen of them from outside.

use std::collections::BTreeMap;
use std::time::Duration;

use shoal_interface::SwIfIndex;
use shoal_wire::describe_frame;

use crate::{InjectedPacket, PacketInjector, Port, Rng, Router};

/// One of two routers, with a giver for each port.
pub struct Twin {
    /// The router.
    pub router: Router,
    /// Its ports.
    pub ports: Vec<Port>,
    /// Their receive queues.
    pub givers: Vec<PacketInjector>,
}

/// What a comparison needs to know of the packets.
#[derive(Clone, Copy)]
pub struct Twins {
    /// Makes a router: the plain one, or with `true` the one that does it otherwise.
    pub make: fn(bool) -> Twin,
    /// Makes a random packet for a port, the number of which is given.
    pub packet: fn(&mut Rng, &Port, usize) -> InjectedPacket,
    /// Which sent packets keep their order. It also takes out of a packet what may differ.
    pub flow: fn(&mut [u8]) -> Vec<u8>,
}

impl Twin {
    /// A router with these ports.
    pub fn new(mut router: Router, ports: Vec<Port>) -> Twin {
        let givers = ports.iter().map(|p| PacketInjector::new(&router, p, 0)).collect();
        router.run();
        Twin { router, ports, givers }
    }

    /// Packets dispatched by a node.
    pub fn vectors(&self, node: &str) -> u64 {
        let node = self.router.graph().node(node).unwrap();
        self.router.graph().graph_counters().vectors.sum(node.number() as usize)
    }

    /// All counters of interfaces, by name and interface.
    pub fn interface_counters(&self) -> BTreeMap<(&'static str, usize), u64> {
        let c = self.router.graph().graph_counters();
        let mut all = BTreeMap::new();
        for i in 0..=self.ports.len() {
            for (name, bytes, counter) in [("rx", "rx bytes", &c.rx), ("tx", "tx bytes", &c.tx)] {
                let (packets, octets) = counter.sum(i);
                all.extend([((name, i), packets), ((bytes, i), octets)]);
            }
            let simple = [
                ("drops", &c.drops),
                ("punt", &c.punt),
                ("rx-no-buf", &c.rx_no_buf),
                ("rx-miss", &c.rx_miss),
                ("rx-error", &c.rx_error),
                ("tx-error", &c.tx_error),
            ];
            all.extend(simple.map(|(name, counter)| ((name, i), counter.sum(i))));
            let interface = SwIfIndex(i as u32);
            all.extend(
                ["/if/ip4", "/if/ip6"].map(|name| ((name, i), self.router.if_counter(name, interface))),
            );
        }
        all
    }
}

impl Twins {
    fn by_flow(&self, packets: Vec<Vec<u8>>) -> BTreeMap<Vec<u8>, Vec<Vec<u8>>> {
        let mut flows: BTreeMap<_, Vec<_>> = BTreeMap::new();
        for mut packet in packets {
            flows.entry((self.flow)(&mut packet)).or_default().push(packet);
        }
        flows
    }

    /// Fails the test when anything differs: packets sent since the last look, counters, buffers. Tells how many packets
    /// there were.
    pub fn compare(&self, plain: &mut Twin, other: &mut Twin, at: &str) -> usize {
        let mut sent = 0;
        for (a, b) in plain.ports.iter().zip(&other.ports) {
            let (a_out, b_out) = (a.received(), b.received());
            sent += a_out.len();
            let counts = (a_out.len(), b_out.len());
            let (a_out, b_out) = (self.by_flow(a_out), self.by_flow(b_out));
            if counts.0 != counts.1 {
                let differ =
                    a_out.keys().chain(b_out.keys()).find(|flow| a_out.get(*flow) != b_out.get(*flow));
                let of = |out: &BTreeMap<Vec<u8>, Vec<Vec<u8>>>| {
                    differ
                        .and_then(|flow| out.get(flow))
                        .into_iter()
                        .flatten()
                        .map(|p| describe_frame(p).to_string())
                        .collect::<Vec<_>>()
                };
                let (a_text, b_text) = (of(&a_out).join("\n"), of(&b_out).join("\n"));
                panic!("{counts:?} packets out of {}, {at}; ordinary:\n{a_text}\nfused:\n{b_text}", a.name());
            }
            for (a_flow, b_flow) in a_out.values().zip(b_out.values()) {
                let differ = a_flow.iter().zip(b_flow).find(|(a, b)| a != b);
                if let Some((a_packet, b_packet)) = differ {
                    let (a_text, b_text) = (describe_frame(a_packet), describe_frame(b_packet));
                    panic!("out of {}, {at}, ordinary:\n{a_text}\nfused:\n{b_text}", a.name());
                }
            }
            assert!(a_out == b_out, "flows out of {}, {at}", a.name());
        }
        let (a, b) = (plain.router.errors(), other.router.errors());
        assert_eq!(a, b, "error counters, {at}");
        assert_eq!(plain.interface_counters(), other.interface_counters(), "interface counters, {at}");
        assert_eq!(plain.router.buffers_in_use(), other.router.buffers_in_use(), "buffers, {at}");
        sent
    }

    /// Sends random bursts through both, comparing after each, and lets time pass now and then. Gives back both.
    pub fn run(&self, seed: u64, bursts: usize) -> (Twin, Twin) {
        let (mut plain, mut other) = ((self.make)(false), (self.make)(true));
        let mut rng = Rng::new(seed);
        let mut sent = 0;
        for burst in 0..bursts {
            let most = *rng.pick(&[1, 4, 40, 300]);
            let packets = 1 + rng.below(most);
            // One frame of which most packets are one: the first, the last, and the one in the middle are.
            let often =
                (packets <= 256 && rng.one_in(4)).then(|| (self.packet)(&mut rng, &plain.ports[0], 0));
            for n in 0..packets {
                // Mostly from one port, so that frames are long.
                let rx = if often.is_some() || rng.one_in(2) { 0 } else { rng.below(plain.ports.len()) };
                let marked = [0, packets / 2, packets - 1].contains(&n) || rng.one_in(2);
                let packet = match &often {
                    Some(often) if marked => often.clone(),
                    _ => (self.packet)(&mut rng, &plain.ports[rx], rx),
                };
                plain.givers[rx].give(packet.clone());
                other.givers[rx].give(packet);
            }
            plain.router.run();
            other.router.run();
            sent += self.compare(&mut plain, &mut other, &format!("burst {burst}, SHOAL_SEED={seed}"));
            if rng.one_in(8) {
                let pause = Duration::from_millis(*rng.pick(&[10, 150, 1000, 3000]));
                plain.router.advance(pause);
                other.router.advance(pause);
            }
        }
        // Longer than fragments of one datagram wait for each other.
        for world in [&mut plain, &mut other] {
            world.router.advance(Duration::from_mins(2));
        }
        self.compare(&mut plain, &mut other, &format!("the end, SHOAL_SEED={seed}"));
        let left = (plain.router.buffers_in_use(), other.router.buffers_in_use());
        assert_eq!(left, (0, 0), "SHOAL_SEED={seed}");
        assert!(sent > bursts, "only {sent} packets came out of {bursts} bursts");
        (plain, other)
    }
}
