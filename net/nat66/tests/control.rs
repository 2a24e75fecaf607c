//! On and off, bad input, interfaces that go, messages, saved configuration.

use shoal_message::{InterfaceIndex, Retval};
use shoal_module::Running;
use shoal_module::api::{Call, Dump, Request};
use shoal_nat66::api::*;
use shoal_nat66::{Nat66Error, Side};
use shoal_testkit::api;

use crate::bed::{A, B, EA, Make, bed, ip, plain};

#[test]
fn while_it_is_off_nothing_can_be_set_and_packets_pass() {
    let mut bed = plain();
    let i = bed.inside.index();
    assert_eq!(bed.nat.set_side(i, Side::Inside, true), Err(Nat66Error::Off));
    assert_eq!(bed.nat.add_mapping(ip(A), ip(EA), 0), Err(Nat66Error::Off));
    assert_eq!(bed.nat.del_mapping(ip(A), ip(EA), 0), Err(Nat66Error::Off));
    assert_eq!(bed.nat.disable(), Err(Nat66Error::AlreadyOff));
    let make: Make = |p| p.udp(1, 2);
    let (sent, left) = (bed.sent((A, B), make), bed.left((A, B), make));
    assert_eq!(bed.out(sent), [left]);
}

#[test]
fn switched_off_it_leaves_nothing_behind() {
    let mut bed = bed();
    assert_eq!(bed.nat.enable(0), Err(Nat66Error::AlreadyOn));
    let make: Make = |p| p.udp(1, 2);
    let (sent, left) = (bed.sent((A, B), make), bed.left((A, B), make));
    assert_ne!(bed.out(sent.clone()).first(), Some(&left));
    bed.nat.disable().unwrap();
    assert_eq!(bed.out(sent), [left]);
    bed.nat.enable(0).unwrap();
    assert!(bed.nat.mappings().is_empty() && bed.nat.sides().is_empty());
    bed.nat.add_mapping(ip(A), ip(EA), 0).unwrap();
    assert_eq!(bed.nat.mappings()[0].packets, 0, "it counts from the start");
}

#[test]
fn mistakes_change_nothing() {
    let bed = bed();
    let (nat, i) = (&bed.nat, bed.inside.index());
    let exists = Err(Nat66Error::MappingExists);
    assert_eq!(nat.add_mapping(ip(A), ip("2001:db8:f::6"), 0), exists);
    assert_eq!(nat.add_mapping(ip("fd00::6"), ip(EA), 0), exists, "two hosts cannot have one address");
    assert_eq!(nat.add_mapping(ip(A), ip(EA), 7), exists);
    let none = Err(Nat66Error::NoMapping);
    assert_eq!(nat.del_mapping(ip(A), ip("2001:db8:f::6"), 0), none);
    assert_eq!(nat.del_mapping(ip(A), ip(EA), 7), none);
    for bad in ["::", "::1", "ff02::1", "fe80::1"] {
        assert_eq!(nat.add_mapping(ip(bad), ip("2001:db8:f::9"), 0), Err(Nat66Error::Address(ip(bad))));
        assert_eq!(nat.add_mapping(ip("fd00::9"), ip(bad), 0), Err(Nat66Error::Address(ip(bad))));
    }
    assert!(matches!(nat.set_side(i, Side::Inside, true), Err(Nat66Error::InterfaceExists(_))));
    assert!(matches!(nat.set_side(i, Side::Outside, true), Err(Nat66Error::InterfaceExists(_))));
    assert!(matches!(nat.set_side(i, Side::Outside, false), Err(Nat66Error::NoInterface(_))));
    let gone = shoal_interface::SwIfIndex(99);
    assert!(matches!(nat.set_side(gone, Side::Inside, true), Err(Nat66Error::Interface(_))));
    assert_eq!((nat.mappings().len(), nat.sides().len()), (1, 2));
    nat.del_mapping(ip(A), ip(EA), 0).unwrap();
    nat.set_side(i, Side::Inside, false).unwrap();
    assert_eq!((nat.mappings().len(), nat.sides().len()), (0, 1));
}

#[test]
fn an_interface_that_goes_takes_its_side() {
    let mut bed = bed();
    bed.router.generator().delete_interface(bed.outside.index()).unwrap();
    assert_eq!(bed.nat.sides(), [(bed.inside.index(), Side::Inside)]);
    let sent = bed.sent((A, B), |p| p.udp(1, 2));
    let inside = &bed.inside;
    bed.router.send(inside, sent);
}

#[test]
fn messages_are_those_of_vpp_and_survive_random_bytes() {
    api::same_as_vpp(&[&API]);
    let mut bed = plain();
    api::random_bytes_do_no_harm(&mut bed.router, &[&API], 200);
}

#[test]
fn messages_do_what_commands_do() {
    let bed = plain();
    let call = Call::local(bed.router.control());
    let add = |local, external, is_add| Nat66AddDelStaticMapping {
        is_add,
        local_ip_address: ip(local),
        external_ip_address: ip(external),
        vrf_id: 0,
    };
    let side = |flags, index| Nat66AddDelInterface {
        is_add: true,
        flags: NatConfigFlags(flags),
        sw_if_index: InterfaceIndex(index),
    };
    assert_eq!(add(A, EA, true).handle(&call), Err(Retval::UNSUPPORTED));
    assert!(Nat66StaticMappingDump {}.dump(&call).next().is_none());
    let plugin = |enable| Nat66PluginEnableDisable { outside_vrf: 0, enable };
    plugin(true).handle(&call).unwrap();
    assert_eq!(plugin(true).handle(&call), Err(Retval::FEATURE_ALREADY_ENABLED));
    side(32, bed.inside.index().0).handle(&call).unwrap();
    side(0, bed.outside.index().0).handle(&call).unwrap();
    assert_eq!(side(0, 77).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(side(0, bed.outside.index().0).handle(&call), Err(Retval::VALUE_EXIST));
    let flags: Vec<u8> = Nat66InterfaceDump {}.dump(&call).map(|details| details.flags.0).collect();
    assert_eq!(flags, [32, 16]);
    add(A, EA, true).handle(&call).unwrap();
    assert_eq!(add(A, EA, true).handle(&call), Err(Retval::VALUE_EXIST));
    assert_eq!(add(B, EA, false).handle(&call), Err(Retval::NO_SUCH_ENTRY));
    let all: Vec<_> = Nat66StaticMappingDump {}.dump(&call).collect();
    assert_eq!((all.len(), all[0].local_ip_address, all[0].external_ip_address), (1, ip(A), ip(EA)));
    plugin(false).handle(&call).unwrap();
    assert_eq!(plugin(false).handle(&call), Err(Retval::FEATURE_ALREADY_DISABLED));
}

#[test]
fn the_running_configuration_has_each_line() {
    let bed = bed();
    bed.nat.add_mapping(ip("fd00::6"), ip("2001:db8:f::6"), 7).unwrap();
    let mut running = Running::default();
    (shoal_nat66::MODULE.running)(bed.router.control(), &mut running);
    let text: String = running.pieces().collect();
    let has = |line: &str| assert!(text.lines().any(|l| l == line), "{line} not in {text}");
    has("nat66 plugin enable");
    has("set interface nat66 in pg0");
    has("set interface nat66 out pg1");
    has("nat66 add static mapping local fd00::5 external 2001:db8:f::5");
    has("nat66 add static mapping local fd00::6 external 2001:db8:f::6 vrf 7");
}
