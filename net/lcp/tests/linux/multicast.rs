//! Multicast routes of a routing daemon beside the router, and what the daemon gets to see.

use shoal_fib::FibIndex;
use shoal_interface::HostMulticastRoute;
use shoal_mfib::{Mfib, Prefix};

use super::mirror::hear;
use super::*;

const GROUP: [u8; 4] = [239, 1, 1, 1];
const GROUP6: Ipv6Addr = Ipv6Addr::new(0xff0e, 0, 0, 0, 0, 0, 0, 1);

/// Two interfaces with images, numbered 7 and 8 by Linux, and what the first image gets.
struct Bench {
    router: Router,
    input: Port,
    output: Port,
    sink: std::sync::Arc<shoal_pg::Sink>,
}

fn bench() -> Bench {
    let Setup { mut router, phy, sink, .. } = setup();
    let output = router.pg(1);
    router.set_address(&output, "10.0.1.1/24");
    router.get::<Ip6>().add_address(output.index(), "2001:db8:1::1/64".parse().unwrap()).unwrap();
    router.get::<Lcp>().create(output.index(), "e1", None).unwrap();
    router.advance(std::time::Duration::from_secs(10));
    output.received();
    Bench { router, input: phy, output, sink }
}

fn route(source: IpAddr, group: IpAddr, outputs: &[u32], present: bool) -> HostEvent {
    let route = HostMulticastRoute { table: 253, source, group, input: Some(7), outputs: outputs.to_vec() };
    HostEvent::MulticastRoute { route, present }
}

fn to_group4() -> Vec<u8> {
    PacketBuilder::ethernet(PEER_MAC, MacAddress::for_ip4_multicast(GROUP.into()))
        .ip4(PEER, GROUP)
        .udp(1, 2)
        .build()
}

fn to_group6() -> Vec<u8> {
    PacketBuilder::ethernet(PEER_MAC, MacAddress::for_ip6_multicast(GROUP6))
        .ip6(PEER6, GROUP6)
        .udp(1, 2)
        .build()
}

/// Sends some packets; how many were forwarded, and how many the kernel got.
fn send(bench: &mut Bench, packet: &[u8], count: usize) -> [usize; 2] {
    for _ in 0..count {
        bench.router.send(&bench.input, packet);
    }
    [bench.output.received().len(), bench.sink.take().len()]
}

#[test]
fn packets_of_a_daemons_route_are_forwarded_and_one_a_minute_goes_by_way_of_the_kernel() {
    let both: [(IpAddr, IpAddr, Vec<u8>); 2] =
        [(PEER.into(), GROUP.into(), to_group4()), (PEER6.into(), GROUP6.into(), to_group6())];
    for (source, group, packet) in both {
        let mut bench = bench();
        // The daemon hears of a source by packets that find no route.
        assert_eq!(send(&mut bench, &packet, 3), [0, 3], "{group}");
        hear(&bench.router, [route(source, group, &[8], true)]);
        assert_eq!(send(&mut bench, &packet, 5), [4, 1], "{group}");
        assert_eq!(send(&mut bench, &packet, 5), [5, 0], "{group}");
        bench.router.advance(std::time::Duration::from_secs(61));
        bench.output.received();
        bench.sink.take();
        assert_eq!(send(&mut bench, &packet, 5), [4, 1], "{group}");
        // No interface wants them now: they are not forwarded, and the kernel has its share.
        hear(&bench.router, [route(source, group, &[], true)]);
        assert_eq!(send(&mut bench, &packet, 5), [0, 0], "{group}");
        hear(&bench.router, [route(source, group, &[], false)]);
        assert_eq!(send(&mut bench, &packet, 2), [0, 2], "{group}");
        let prefix = Prefix::source_group(source, group).unwrap();
        assert_eq!(bench.router.get::<Mfib>().number(FibIndex::DEFAULT, prefix), None);
    }
}

#[test]
fn a_flood_to_unknown_groups_reaches_the_kernel_a_hundred_times_a_second() {
    let mut bench = bench();
    assert_eq!(send(&mut bench, &to_group4(), 150), [0, 100]);
    bench.router.advance(std::time::Duration::from_secs(1));
    bench.sink.take();
    assert_eq!(send(&mut bench, &to_group4(), 5), [0, 5]);
}

#[test]
fn routes_wait_for_images_and_go_with_them_or_when_a_listing_lacks_them() {
    let bench = bench();
    let (router, prefix) = (&bench.router, Prefix::source_group(PEER.into(), GROUP.into()).unwrap());
    let there = || router.get::<Mfib>().number(FibIndex::DEFAULT, prefix).is_some();
    hear(router, [route(PEER.into(), GROUP.into(), &[8], true)]);
    assert!(there());
    router.get::<Lcp>().delete(bench.input.index()).unwrap();
    assert!(!there(), "packets are taken from no interface");
    router.get::<Lcp>().create(bench.input.index(), "e0", None).unwrap();
    assert!(there());
    hear(router, [HostEvent::Begin(ListingCause::Audit), HostEvent::End]);
    assert!(!there());
    // Of the link, undecided, from no host: nothing to forward, and no harm.
    let undecided = HostMulticastRoute {
        table: 253,
        source: PEER.into(),
        group: GROUP.into(),
        input: None,
        outputs: vec![],
    };
    hear(
        router,
        [
            HostEvent::MulticastRoute { route: undecided, present: true },
            route(PEER.into(), [224, 0, 0, 5].into(), &[8], true),
            route(GROUP.into(), GROUP.into(), &[8], true),
            route(PEER.into(), PEER.into(), &[8], true),
        ],
    );
    assert!(!there());
    assert!(
        run(router, "show lcp netlink", "").unwrap().to_text().contains("multicast routes: 4 (0 installed)")
    );
}
