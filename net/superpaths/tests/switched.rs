//! Switched interfaces: the same random frames through two routers that differ in nothing but `enable_superpath`.

use shoal_bridge::{Bridges, Provision, Role, Settings};
use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_l2::{L2, Mode, TagOp, TagRewrite};
use shoal_superpaths::{BRIDGE, XCONNECT};
use shoal_testkit::{InjectedPacket, PacketBuilder, Port, Rng, Router, STACK, Twin, Twins};

const TWINS: Twins = Twins { make: world, packet: given, flow };
/// Two that are connected, two with tags that are rewritten, one that leads nowhere, three of a bridge.
const PORTS: usize = 8;
const BRIDGED: [usize; 3] = [5, 6, 7];

fn world(superpath: bool) -> Twin {
    let mut modules = STACK.to_vec();
    modules.extend([&shoal_ip6_nd::MODULE, &shoal_l2::MODULE, &shoal_bridge::MODULE]);
    let mut router = Router::new(&modules);
    let ports: Vec<Port> = (0..PORTS as u32).map(|n| router.pg(n)).collect();
    router.interfaces().enable_superpath(superpath).unwrap();
    let l2 = router.get::<L2>();
    for (from, to) in [(0, 1), (1, 0), (2, 3), (3, 2)] {
        l2.set_mode(ports[from].index(), Mode::Xconnect(ports[to].index())).unwrap();
    }
    // The other end is routed.
    let routed = router.pg(20);
    l2.set_mode(ports[4].index(), Mode::Xconnect(routed.index())).unwrap();
    let vid = |n| Vid::new(n).unwrap();
    let push = TagRewrite { op: TagOp::Push1, kind: TagKind::Dot1q, ids: [vid(7), vid(0)] };
    l2.set_tags(ports[2].index(), push).unwrap();
    // A sub-interface takes some frames of a connected port.
    let takes = Match::Tags { kind: TagKind::Dot1q, outer: vid(9), inner: Inner::None, exact: Exact::Yes };
    let sub = router.get::<Ethernet>().create_sub(ports[0].index(), 9, takes).unwrap();
    router.interfaces().set_admin(sub, true).unwrap();
    l2.set_mode(sub, Mode::Xconnect(ports[1].index())).unwrap();
    let bridges = router.get::<Bridges>();
    bridges.create(10, Settings::default()).unwrap();
    for n in BRIDGED {
        bridges.join(ports[n].index(), 10, 0, Role::Normal).unwrap();
    }
    let entered = |n: u8| [2, 0xee, 0, 0, 0, n].into();
    bridges.provision(entered(1), 10, ports[5].index(), Provision::Static).unwrap();
    bridges.provision(entered(2), 10, ports[6].index(), Provision::Filter).unwrap();
    // All stations have been heard: in which order frames of several ports teach them is not told.
    for n in BRIDGED {
        for host in 0..3 {
            let frame = PacketBuilder::ethernet(home(n, host), [0xff; 6]).ip4([1; 4], [2; 4]).build();
            router.send(&ports[n], frame);
        }
    }
    for port in &ports {
        drop(port.received());
    }
    Twin::new(router, ports)
}

/// A station behind a port.
fn home(port: usize, host: usize) -> [u8; 6] {
    [2, 0xaa, 0, 0, 0, (port * 3 + host) as u8]
}

fn station(rng: &mut Rng) -> [u8; 6] {
    match rng.below(12) {
        0 => [2, 0xee, 0, 0, 0, 1 + rng.below(2) as u8],
        1 => [0xff; 6],
        2 => rng.bytes(6).try_into().unwrap(),
        _ => [2, 0xaa, 0, 0, 0, rng.below(24) as u8],
    }
}

fn given(rng: &mut Rng, _: &Port, rx: usize) -> InjectedPacket {
    let from = match rng.below(20) {
        0 => [2, 0xee, 0, 0, 0, 1 + rng.below(2) as u8],
        1 => rng.bytes(6).try_into().unwrap(),
        _ => home(rx, rng.below(3)),
    };
    let plain = PacketBuilder::ethernet(from, station(rng)).ip4([1; 4], [2; 4]).udp(1, 2);
    let plain = plain.payload_len(rng.below(200)).build();
    let tags: &[u8] = match rng.below(6) {
        0 => &[0x81, 0, 0, 7],
        1 => &[0x81, 0, 0, 9],
        2 => &[0x88, 0xa8, 0, 7, 0x81, 0, 0, 8],
        _ => &[],
    };
    let mut bytes = [&plain[..12], tags, &plain[12..]].concat();
    if rng.one_in(20) {
        bytes.truncate(rng.below(24));
    }
    InjectedPacket::from(bytes)
}

/// Frames that are flooded and frames that are not may pass each other.
fn flow(packet: &mut [u8]) -> Vec<u8> {
    packet.to_vec()
}

#[test]
fn random_frames_fare_on_a_superpath_as_from_node_to_node() {
    let seed = Rng::seed(17);
    let [mut crossed, mut bridged] = [0; 2];
    for n in 0..4 {
        let (plain, fused) = TWINS.run(seed + n, 60);
        assert_eq!(plain.vectors(XCONNECT.name) + plain.vectors(BRIDGE.name), 0);
        crossed += fused.vectors(XCONNECT.name);
        bridged += fused.vectors(BRIDGE.name);
    }
    assert!(crossed > 1_000 && bridged > 1_000, "{crossed} and {bridged} frames on superpaths");
}
