//! Messages of the packet generator.

use crate::common;

use common::BACK;
use shoal_interface::IfFlags;
use shoal_message::{InterfaceIndex, Retval};
use shoal_module::api::{Call, Request};
use shoal_pg::api::*;
use shoal_pg::{Source, StreamSpec};
use shoal_testkit::{Router, api};

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let mut router = Router::new(&[&BACK]);
    api::random_bytes_do_no_harm(&mut router, &[&API], 100);
}

#[test]
fn interfaces_of_all_modes_are_created_once() {
    let router = Router::new(&[&BACK]);
    let call = Call::local(router.control());
    let create = |id: u32, flags: u32, mode| {
        let (interface_id, pg_flags) = (InterfaceIndex(id), PgInterfaceFlags(flags));
        PgCreateInterfaceV3 { interface_id, pg_flags, gso_size: 1000, mode }
            .handle(&call)
            .unwrap()
            .sw_if_index
    };
    let first = create(0, 0, PgInterfaceMode::Ethernet);
    assert_eq!(create(0, 0, PgInterfaceMode::Ip4), first);
    let ip6 = create(7, PgInterfaceFlags::GSO | PgInterfaceFlags::COALESCE, PgInterfaceMode::Ip6);
    let info = |index: InterfaceIndex| router.interfaces().info(shoal_interface::SwIfIndex(index.0)).unwrap();
    assert_eq!(info(first).name, "pg0");
    assert!(info(first).flags.has(IfFlags::ETHERNET) && !info(first).flags.has(IfFlags::TX_GSO));
    let ip6 = info(ip6);
    assert_eq!(ip6.name, "pg7");
    assert!(!ip6.flags.has(IfFlags::ETHERNET) && ip6.flags.has(IfFlags::TX_GSO), "{ip6:?}");
    assert!(ip6.device.contains("mode ip6, gso gso-size 1000, coalesce"), "{}", ip6.device);
    let old = PgCreateInterface { interface_id: InterfaceIndex(8), gso_enabled: true, gso_size: 0 };
    let old = info(old.handle(&call).unwrap().sw_if_index);
    assert!(old.device.contains("mode ethernet, gso gso-size 1460"), "{}", old.device);
    let large = PgCreateInterfaceV2 {
        interface_id: InterfaceIndex(9),
        gso_enabled: true,
        gso_size: 70_000,
        mode: PgInterfaceMode::Ip4,
    };
    assert_eq!(large.handle(&call).err(), Some(Retval::INVALID_VALUE));
    assert_eq!(router.interfaces().by_name("pg9"), None);
}

#[test]
fn interfaces_are_changed_and_deleted() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let (call, index) = (Call::local(router.control()), InterfaceIndex(port.index().0));
    let coalesce = |sw_if_index, coalesce_enabled| {
        PgInterfaceEnableDisableCoalesce { sw_if_index, coalesce_enabled }.handle(&call)
    };
    coalesce(index, true).unwrap();
    assert_eq!(
        coalesce(InterfaceIndex(0), true),
        Err(Retval::INVALID_SW_IF_INDEX),
        "local0 is none of these"
    );
    let delete = |sw_if_index| PgDeleteInterface { sw_if_index }.handle(&call);
    delete(index).unwrap();
    assert_eq!(delete(index), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(delete(InterfaceIndex(0)), Err(Retval::INVALID_SW_IF_INDEX));
}

#[test]
fn a_capture_appears_with_the_first_packet() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let call = Call::local(router.control());
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join("out.pcap");
    let capture = |id: u32, is_enabled, count| {
        let pcap_file_name = path.display().to_string();
        PgCapture { interface_id: InterfaceIndex(id), is_enabled, count, pcap_file_name }.handle(&call)
    };
    capture(0, true, 2).unwrap();
    assert!(!path.exists());
    assert_eq!(capture(0, true, 2), Err(Retval::RSRC_IN_USE));
    assert_eq!(capture(5, true, 2), Err(Retval::INVALID_SW_IF_INDEX));
    router.send_all(&port, [[1; 60]; 5]);
    assert_eq!(std::fs::read(&path).unwrap().len(), 24 + 2 * (16 + 60));
    capture(0, false, 0).unwrap();
    assert_eq!(capture(0, true, 0), Err(Retval::CANNOT_CREATE_PCAP_FILE));
    let nameless = PgCapture {
        interface_id: InterfaceIndex(0),
        is_enabled: true,
        count: 0,
        pcap_file_name: String::new(),
    };
    assert_eq!(nameless.handle(&call), Err(Retval::INVALID_VALUE));
}

#[test]
fn streams_start_and_stop_one_or_all() {
    let mut router = Router::new(&[&BACK]);
    let port = router.pg(0);
    let call = Call::local(router.control());
    let enable =
        |is_enabled, name: &str| PgEnableDisable { is_enabled, stream_name: name.into() }.handle(&call);
    for name in ["a", "b"] {
        let mut spec = StreamSpec::new(name, Source::Packets(vec![vec![1; 60]; 3]));
        spec.interface = Some(port.index());
        router.generator().add_stream(spec).unwrap();
    }
    enable(true, "a").unwrap();
    router.run();
    assert_eq!(port.received().len(), 3);
    enable(true, "").unwrap();
    enable(false, "b").unwrap();
    router.run();
    assert_eq!(port.received().len(), 3);
    assert_eq!(enable(true, "c"), Err(Retval::NO_SUCH_ENTRY));
}
