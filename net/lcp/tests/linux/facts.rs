//! MTU and Ethernet address of images are those of their interfaces, on whichever side they change.

use shoal_ethernet::{Ethernet, Exact, Inner, Match, TagKind, Vid};
use shoal_interface::MtuLayer;

use super::mirror::hear;
use super::*;

const MAC: MacAddress = MacAddress([2, 0, 0, 0, 0, 0x77]);

fn image(mtu: u32, mac: MacAddress) -> HostEvent {
    HostEvent::Link(HostLink { mtu, mac: Some(mac), ..host_link(7, "e0") })
}

fn refusals(router: &Router) -> u64 {
    router.get::<Lcp>().followed()[0].refusals
}

fn mtu(router: &Router, interface: SwIfIndex) -> u16 {
    router.interfaces().data(interface).unwrap().mtu
}

#[test]
fn an_interface_has_the_mtu_that_linux_gives_its_image_and_the_other_way_round() {
    let Setup { router, phy, .. } = setup();
    router.get::<Lcp>().set_sync(Sync::On);
    hear(&router, [image(9000, phy.mac())]);
    router.interfaces().set_mtu(phy.index(), MtuLayer::L3, 1500).unwrap();
    said(&router);
    hear(&router, [image(1500, phy.mac()), image(1400, phy.mac())]);
    assert_eq!(mtu(&router, phy.index()), 1400);
    assert!(said(&router).is_empty(), "Linux is not told what it said");
    router.interfaces().set_mtu(phy.index(), MtuLayer::L3, 1300).unwrap();
    assert_eq!(said(&router), ["mtu 1300"]);
    // The router changes it twice, and hears of both later.
    router.interfaces().set_mtu(phy.index(), MtuLayer::L3, 1350).unwrap();
    router.interfaces().set_mtu(phy.index(), MtuLayer::L3, 1450).unwrap();
    said(&router);
    hear(&router, [image(1300, phy.mac()), image(1350, phy.mac()), image(1450, phy.mac())]);
    assert_eq!((mtu(&router, phy.index()), said(&router)), (1450, Vec::new()));
    // Without mirroring Linux is followed all the same.
    router.get::<Lcp>().set_sync(Sync::Off);
    router.interfaces().set_mtu(phy.index(), MtuLayer::L3, 1200).unwrap();
    assert!(said(&router).is_empty());
    hear(&router, [image(1450, phy.mac())]);
    assert_eq!(mtu(&router, phy.index()), 1200, "nothing has changed in Linux");
    hear(&router, [image(1460, phy.mac())]);
    assert_eq!(mtu(&router, phy.index()), 1460);
    assert_eq!(refusals(&router), 0);
}

#[test]
fn what_cannot_be_is_put_back_in_linux() {
    let Setup { router, phy, .. } = setup();
    router.get::<Lcp>().set_sync(Sync::On);
    let (before, mac) = (mtu(&router, phy.index()), phy.mac());
    said(&router);
    for bad in [1, 63, 65_536, u32::MAX] {
        hear(&router, [image(bad, mac)]);
        assert_eq!(said(&router), [format!("mtu {before}")], "{bad}");
        hear(&router, [image(before.into(), mac)]);
    }
    hear(&router, [image(before.into(), MacAddress([1, 0, 0x5e, 0, 0, 1]))]);
    assert_eq!(said(&router), [format!("mac {mac}")]);
    hear(&router, [image(before.into(), MacAddress::default())]);
    assert_eq!((mtu(&router, phy.index()), refusals(&router)), (before, 5));
    assert_eq!(router.interfaces().data(phy.index()).unwrap().mac(), mac);
}

#[test]
fn an_interface_has_the_mac_address_that_linux_gives_its_image() {
    let Setup { mut router, phy, sink, .. } = setup();
    hear(&router, [image(1500, phy.mac())]);
    said(&router);
    hear(&router, [image(1500, MAC)]);
    assert_eq!(router.interfaces().data(phy.index()).unwrap().mac(), MAC);
    assert!(said(&router).is_empty());
    let syn = PacketBuilder::ethernet(PEER_MAC, MAC).ip4(PEER, [10, 0, 0, 1]).tcp(1000, 22, TcpFlags::SYN);
    let syn = syn.build();
    router.send(&phy, &syn);
    assert_eq!(sink.take(), [syn]);
    router.interfaces().set_mac(phy.index(), phy.mac()).unwrap();
    assert_eq!(said(&router), [format!("mac {}", phy.mac())]);
}

#[test]
fn the_image_of_a_sub_interface_has_an_mtu_and_an_address_of_its_own() {
    let Setup { mut router, phy, .. } = setup();
    let lcp = router.get::<Lcp>();
    lcp.set_sync(Sync::On);
    let vid = Vid::new(10).unwrap();
    let takes = Match::Tags { kind: TagKind::Dot1q, outer: vid, inner: Inner::None, exact: Exact::Yes };
    let sub = router.get::<Ethernet>().create_sub(phy.index(), 10, takes).unwrap();
    router.interfaces().set_admin(sub, true).unwrap();
    router.get::<Ip4>().add_address(sub, "10.1.0.1/24".parse().unwrap()).unwrap();
    let host = lcp.create(sub, "e0.10", None).unwrap();
    let sink = router.generator().attach_sink(host).unwrap();
    router.advance(std::time::Duration::from_secs(10));
    sink.take();
    said(&router);
    let link = |mtu, mac| HostEvent::Link(HostLink { mtu, mac: Some(mac), ..host_link(8, "e0.10") });
    hear(&router, [link(1400, phy.mac())]);
    assert_eq!((mtu(&router, sub), mtu(&router, phy.index()) > 1400), (1400, true));
    // More than the port can.
    let most = u32::from(mtu(&router, phy.index()));
    hear(&router, [link(most + 1, phy.mac())]);
    assert_eq!((mtu(&router, sub), said(&router)), (1400, vec!["mtu 1400".to_owned()]));
    hear(&router, [link(1400, MAC)]);
    assert_eq!(router.interfaces().data(sub).unwrap().mac(), phy.mac(), "the port keeps its address");
    let to = |mac| {
        let frame = PacketBuilder::ethernet(PEER_MAC, mac).vlan(10).ip4(PEER, [10, 1, 0, 1]);
        frame.tcp(1000, 22, TcpFlags::SYN).build()
    };
    for mac in [phy.mac(), MAC] {
        router.send(&phy, to(mac));
        let got = sink.take();
        assert_eq!((got.len(), &got[0][..6]), (1, &MAC.0[..]), "frames for Linux have the image's address");
    }
    router.send(&phy, to(MacAddress([2, 0, 0, 0, 0, 0x78])));
    assert!(sink.take().is_empty());
    lcp.delete(sub).unwrap();
    assert!(router.interfaces().macs(phy.index()).is_empty());
}

#[test]
fn an_address_that_is_taken_and_given_again_stays_the_operators() {
    let Setup { router, phy, .. } = setup();
    router.get::<Lcp>().set_sync(Sync::On);
    let ip4 = router.get::<Ip4>();
    let own: shoal_wire::Ip4Prefix = "10.5.0.1/24".parse().unwrap();
    let says =
        |present| HostEvent::Address { host_index: 7, address: (own.addr().into(), own.len()), present };
    let has = || ip4.addresses(phy.index()).contains(&own);
    ip4.add_address(phy.index(), own).unwrap();
    ip4.del_address(phy.index(), own).unwrap();
    ip4.add_address(phy.index(), own).unwrap();
    for present in [true, false, true] {
        hear(&router, [says(present)]);
        assert!(has());
    }
    assert!(!ip4.is_brought(phy.index(), own));
    // What Linux does beyond that is done here.
    hear(&router, [says(false)]);
    assert!(!has());
    hear(&router, [says(true)]);
    assert!(has() && ip4.is_brought(phy.index(), own));
    // The router takes it away while Linux gives it again.
    ip4.del_address(phy.index(), own).unwrap();
    hear(&router, [says(true)]);
    assert!(has());
    hear(&router, [says(false)]);
    assert!(!has());
    // After a listing nothing is expected any more.
    ip4.add_address(phy.index(), own).unwrap();
    hear(&router, [HostEvent::Begin(ListingCause::Lost), says(true), HostEvent::End]);
    hear(&router, [says(false)]);
    assert!(!has());
}

#[test]
fn addresses_of_linux_are_the_operators_when_the_image_goes() {
    let Setup { router, phy, .. } = setup();
    let (ip4, own): (_, shoal_wire::Ip4Prefix) = (router.get::<Ip4>(), "10.5.0.1/24".parse().unwrap());
    let address = (own.addr().into(), own.len());
    hear(&router, [HostEvent::Address { host_index: 7, address, present: true }]);
    assert!(ip4.is_brought(phy.index(), own));
    router.get::<Lcp>().delete(phy.index()).unwrap();
    assert!(ip4.addresses(phy.index()).contains(&own) && !ip4.is_brought(phy.index(), own));
}
