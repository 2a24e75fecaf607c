//! Mirrored interfaces on superpaths: the same random packets through two routers that differ in nothing but `enable_superpath`.

use std::time::Duration;

use shoal_l2::{L2, Mode};
use shoal_span::{Level, MODULE, MirrorDirections, Span};
use shoal_testkit::{InjectedPacket, PEER_MAC, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};

const TWINS: Twins = Twins { make: world, packet: given, flow: |packet| packet.to_vec() };

/// Ports 0 to 2 are routed, 3 to 5 are connected in pairs with 6; 7 and 8 listen.
fn world(superpath: bool) -> Twin {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_l2::MODULE, &MODULE]);
    let mut router = Router::new(&modules);
    let ports: Vec<Port> = (0..9).map(|n| router.pg(n)).collect();
    router.interfaces().enable_superpath(superpath).unwrap();
    for (n, port) in ports[..3].iter().enumerate() {
        router.set_address(port, &format!("10.0.{n}.1/24"));
        router.set_neighbour(port, [10, 0, n as u8, 2].into(), PEER_MAC);
    }
    let (l2, span) = (router.get::<L2>(), router.get::<Span>());
    for (from, to) in [(3, 4), (4, 3), (5, 6), (6, 5)] {
        l2.set_mode(ports[from].index(), Mode::Xconnect(ports[to].index())).unwrap();
    }
    let set = |level, from: usize, to: usize, ways| {
        span.set(level, ports[from].index(), ports[to].index(), ways).unwrap();
    };
    set(Level::Device, 0, 7, MirrorDirections::RX);
    set(Level::Device, 1, 8, MirrorDirections::TX);
    set(Level::L2, 3, 7, MirrorDirections::BOTH);
    set(Level::Device, 6, 8, MirrorDirections::BOTH);
    router.advance(Duration::from_secs(3));
    for port in &ports {
        drop(port.received());
    }
    Twin::new(router, ports)
}

fn given(rng: &mut Rng, port: &Port, _: usize) -> InjectedPacket {
    let to = [10, 0, rng.below(4) as u8, 2];
    let start = PacketBuilder::ethernet(PEER_MAC, port.mac()).ip4([10, 9, rng.below(200) as u8, 9], to);
    start.udp(rng.below(60_000) as u16, 2).payload_len(rng.below(1400)).build().into()
}

#[test]
fn mirrored_interfaces_leave_their_superpath_and_others_stay() {
    let (plain, fused) = TWINS.run(Rng::seed(17), 60);
    for twin in [&plain, &fused] {
        for node in ["span-input", "span-output", "span-l2-input", "span-l2-output"] {
            assert!(twin.vectors(node) > 0, "{node}");
        }
    }
    assert_eq!(plain.vectors("span-output"), fused.vectors("span-output"));
    assert!(
        fused.vectors("l2-input") < plain.vectors("l2-input"),
        "the pair of 5 and 6 takes its superpath in one way"
    );
}
