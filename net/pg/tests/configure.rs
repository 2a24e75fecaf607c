//! Changing a stream, and filtering what an interface takes.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, reason = "helpers of tests")]

use crate::common;

use std::rc::Rc;
use std::time::Duration;

use common::BACK;
use shoal_interface::DEVICE_INPUT_ARC;
use shoal_pg::data::Order;
use shoal_pg::{Change, CreateInterface, Mode, Pg, PgError, Size};
use shoal_testkit::{Port, Router};
use shoal_wire::MacAddress;

fn router() -> (Router, Port, Rc<Pg>) {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let pg = Rc::clone(router.generator());
    (router, port, pg)
}

fn add(pg: &Pg, text: &str) -> Result<u32, PgError> {
    pg.add_stream(pg.parse_stream(text)?)
}

const UDP: &str =
    "data { IP4: 1.2.3 -> 4.5.6 UDP: 1.1.1.1 -> 10.0.0.0 - 10.0.255.255 UDP: 1 -> 2 incrementing 18 }";

fn sizes(port: &Port) -> Vec<usize> {
    port.received().iter().map(Vec::len).collect()
}

fn to(least: usize, most: usize, order: Order) -> Change {
    Change { size: Some(Size { least, most, order }), ..Change::default() }
}

#[test]
fn a_new_size_holds_from_the_next_packet_on_and_goes_up_one_by_one() {
    let (mut router, port, pg) = router();
    add(&pg, &format!("{{ name s limit 6 interface pg0 {UDP} }}")).unwrap();
    pg.configure("s", to(100, 102, Order::Increment)).unwrap();
    assert_eq!(pg.streams()[0].size, Size { least: 100, most: 102, order: Order::Increment });
    pg.enable("s").unwrap();
    router.run();
    assert_eq!(sizes(&port), [100, 101, 102, 100, 101, 102]);
    pg.configure("s", to(90, 90, Order::Increment)).unwrap();
    pg.enable("s").unwrap();
    router.run();
    assert_eq!(sizes(&port), [90; 6]);
    pg.configure("s", to(70, 80, Order::Random)).unwrap();
    pg.enable("s").unwrap();
    router.run();
    assert!(sizes(&port).iter().all(|n| (70..=80).contains(n)));
}

#[test]
fn a_running_stream_goes_on_with_another_size_and_keeps_its_count() {
    let (mut router, port, pg) = router();
    add(&pg, &format!("{{ name s limit 100 rate 1000 interface pg0 {UDP} }}")).unwrap();
    pg.enable("s").unwrap();
    router.advance(Duration::from_millis(40));
    assert_eq!(sizes(&port), [64; 40]);
    pg.configure("s", to(200, 200, Order::Increment)).unwrap();
    router.advance(Duration::from_millis(40));
    assert_eq!(sizes(&port), [200; 40]);
    router.advance(Duration::from_secs(1));
    assert_eq!((sizes(&port).len(), pg.is_running("s").unwrap()), (20, false));
}

#[test]
fn sizes_that_cannot_be_are_refused_and_change_nothing() {
    let (_router, _, pg) = router();
    add(&pg, &format!("{{ name s limit 6 interface pg0 {UDP} }}")).unwrap();
    let before = pg.streams();
    for (least, most) in [(0, 64), (10, 64), (100, 99), (64, 65_536), (usize::MAX, usize::MAX)] {
        let change = Change { limit: Some(1), ..to(least, most, Order::Increment) };
        assert!(pg.configure("s", change).is_err(), "{least}-{most}");
        assert_eq!(pg.streams(), before);
    }
    assert!(matches!(pg.configure("t", to(64, 64, Order::Increment)), Err(PgError::NoStream(..))));
}

#[test]
fn a_filtered_interface_takes_its_own_frames_and_those_for_all() {
    let (mut router, port, pg) = router();
    let frame = |dst: MacAddress| [&dst.0[..], &[2, 0, 0, 0, 0, 9], &[8, 0], &[0; 46]].concat();
    let stranger = MacAddress([2, 0, 0, 0, 0, 7]);
    let group = MacAddress([1, 0, 0x5e, 0, 0, 5]);
    let all = [port.mac(), MacAddress::BROADCAST, group, stranger];
    let send = |router: &mut Router| {
        router.send_all(&port, all.map(frame));
        port.received().len()
    };
    assert_eq!(send(&mut router), 4);
    pg.filter_macs(port.index(), true).unwrap();
    assert_eq!(send(&mut router), 3);
    assert_eq!(router.error("pg-input-mac-filter", "frame is for another station"), 1);
    router.send(&port, [1, 2, 3]);
    assert_eq!(router.error("pg-input-mac-filter", "frame is shorter than an Ethernet header"), 1);
    let features = router.graph().features(Some(port.index()));
    let (_, list) = features.iter().find(|(arc, _)| *arc == DEVICE_INPUT_ARC).unwrap();
    assert!(list.contains(&("pg-input-mac-filter".into(), true)));
    pg.filter_macs(port.index(), false).unwrap();
    assert_eq!(send(&mut router), 4);
}

#[test]
fn only_interfaces_with_mac_addresses_are_filtered() {
    let (mut router, port, pg) = router();
    let create = CreateInterface { id: 5, mode: Mode::Ip4, ..CreateInterface::default() };
    let bare = pg.create_interface(&create).unwrap();
    let refusal = pg.filter_macs(bare, true).unwrap_err().to_string();
    assert!(refusal.contains("pg5") && refusal.contains("ip4"), "{refusal}");
    pg.delete_interface(port.index()).unwrap();
    assert!(matches!(pg.filter_macs(port.index(), true), Err(PgError::NoInterface(..))));
    router.run();
}
