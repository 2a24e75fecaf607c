//! Messages of interfaces: what they do, and what they answer to what cannot be done.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::cell::RefCell;
use std::rc::Rc;

use shoal_buffer::SwIfIndex;
use shoal_interface::api::API;
use shoal_interface::api::details::{SwInterfaceDetails, SwInterfaceDump};
use shoal_interface::api::events::WantInterfaceEvents;
use shoal_interface::api::features::{self, FeatureEnableDisable, FeatureIsEnabled};
use shoal_interface::api::loopback::{CreateLoopback, CreateLoopbackInstance, DeleteLoopback};
use shoal_interface::api::mac::{
    SwInterfaceAddDelMacAddress, SwInterfaceGetMacAddress, SwInterfaceSetMacAddress,
};
use shoal_interface::api::names::{InterfaceNameRenumber, SwInterfaceSetInterfaceName, SwInterfaceTagAddDel};
use shoal_interface::api::queues::{
    SwInterfaceGetDefaultRxMode, SwInterfaceRxPlacementDump, SwInterfaceSetDefaultRxMode,
    SwInterfaceSetRxMode, SwInterfaceSetRxPlacement, SwInterfaceSetTxPlacement, SwInterfaceTxPlacementGet,
};
use shoal_interface::api::state::{
    CollectDetailedInterfaceStats, HwInterfaceSetMtu, SwInterfaceClearStats, SwInterfaceSetFlags,
    SwInterfaceSetMtu, SwInterfaceSetPromisc,
};
use shoal_message::{Count, IfStatusFlags, InterfaceIndex, MacAddress, Retval, RxMode};
use shoal_module::api::{Call, ClientIndex, Clients, Dump, Get, Mailbox, Request};
use shoal_testkit::{Router, api};

const NOWHERE: InterfaceIndex = InterfaceIndex(77);

fn router() -> Router {
    Router::new(&[
        &shoal_adj::MODULE,
        &shoal_fib::MODULE,
        &shoal_ethernet::MODULE,
        &shoal_ip4::MODULE,
        &shoal_ip6::MODULE,
        &shoal_icmp::MODULE,
        &shoal_arp::MODULE,
    ])
}

fn loopback(router: &Router) -> InterfaceIndex {
    let create = CreateLoopback { mac_address: MacAddress::default() };
    create.handle(&Call::local(router.control())).unwrap().sw_if_index
}

fn dump(router: &Router, sw_if_index: InterfaceIndex, letters: Option<&str>) -> Vec<SwInterfaceDetails> {
    let name_filter = letters.unwrap_or_default().to_owned();
    let dump = SwInterfaceDump { sw_if_index, name_filter_valid: letters.is_some(), name_filter };
    dump.dump(&Call::local(router.control())).collect()
}

fn names(all: &[SwInterfaceDetails]) -> Vec<&str> {
    all.iter().map(|one| one.interface_name.as_str()).collect()
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API, &features::API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let mut router = router();
    router.pg(0);
    api::random_bytes_do_no_harm(&mut router, &[&API, &features::API], 300);
}

#[test]
fn a_dump_has_all_interfaces_one_or_those_with_letters() {
    let mut router = router();
    router.pg(0);
    let loop0 = loopback(&router);
    assert_eq!(names(&dump(&router, InterfaceIndex::NONE, None)), ["local0", "pg0", "loop0"]);
    assert_eq!(names(&dump(&router, InterfaceIndex(0), None)), ["local0", "pg0", "loop0"]);
    assert_eq!(names(&dump(&router, loop0, None)), ["loop0"]);
    assert_eq!(names(&dump(&router, NOWHERE, None)), [""; 0]);
    assert_eq!(names(&dump(&router, InterfaceIndex::NONE, Some("LO"))), ["local0", "loop0"]);
    let one = dump(&router, loop0, None).pop().unwrap();
    assert_eq!((one.sup_sw_if_index, one.mtu, one.link_mtu), (loop0.0, [9000, 0, 0, 0], 9000));
    assert_eq!((one.flags.0, one.interface_dev_type.as_str()), (IfStatusFlags::LINK_UP, "Loopback"));
    assert_eq!(one.l2_address, MacAddress([0xde, 0xad, 0, 0, 0, 0]));
}

#[test]
fn a_dump_goes_on_while_interfaces_come_and_go() {
    let router = router();
    let all: Vec<InterfaceIndex> = (0..4).map(|_| loopback(&router)).collect();
    let dump = SwInterfaceDump {
        sw_if_index: InterfaceIndex::NONE,
        name_filter_valid: false,
        name_filter: String::new(),
    };
    let call = Call::local(router.control());
    let mut rows = dump.dump(&call).map(|one| one.sw_if_index.0);
    assert_eq!((rows.next(), rows.next()), (Some(0), Some(all[0].0)));
    DeleteLoopback { sw_if_index: all[1] }.handle(&call).unwrap();
    DeleteLoopback { sw_if_index: all[3] }.handle(&call).unwrap();
    assert_eq!(rows.collect::<Vec<_>>(), [all[2].0]);
}

#[test]
fn state_promiscuity_and_counters_are_set() {
    let mut router = router();
    let port = router.pg(0);
    let (call, index) = (Call::local(router.control()), InterfaceIndex(port.index().0));
    let flags = |index, bits| SwInterfaceSetFlags { sw_if_index: index, flags: IfStatusFlags(bits) };
    flags(index, 0).handle(&call).unwrap();
    assert_eq!(dump(&router, index, None)[0].flags.0, 0);
    flags(index, 1).handle(&call).unwrap();
    assert_eq!(dump(&router, index, None)[0].flags.0, 3);
    assert_eq!(flags(NOWHERE, 1).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    SwInterfaceSetPromisc { sw_if_index: index, promisc_on: true }.handle(&call).unwrap();
    assert!(
        router.interfaces().data(port.index()).unwrap().flags().has(shoal_interface::IfFlags::PROMISCUOUS)
    );
    let promisc = SwInterfaceSetPromisc { sw_if_index: NOWHERE, promisc_on: true };
    assert_eq!(promisc.handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    router.send(&port, [0xff; 60]);
    let counters = router.graph().graph_counters().clone();
    assert_eq!(counters.rx.sum(1).0, 1);
    SwInterfaceClearStats { sw_if_index: index }.handle(&call).unwrap();
    assert_eq!(counters.rx.sum(1).0, 0);
    SwInterfaceClearStats { sw_if_index: InterfaceIndex::NONE }.handle(&call).unwrap();
    let clear = SwInterfaceClearStats { sw_if_index: NOWHERE };
    assert_eq!(clear.handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
}

#[test]
fn packets_are_counted_by_whom_they_are_for() {
    let mut router = router();
    let port = router.pg(0);
    let call = Call::local(router.control());
    let collect = |index: u32, enable_disable| {
        CollectDetailedInterfaceStats { sw_if_index: InterfaceIndex(index), enable_disable }.handle(&call)
    };
    router.send(&port, [0xff; 60]);
    collect(port.index().0, true).unwrap();
    router.send(&port, [0xff; 60]);
    collect(port.index().0, false).unwrap();
    router.send(&port, [0xff; 60]);
    assert_eq!(router.if_counter("/if/rx-broadcast", port.index()), 1);
    assert_eq!(collect(77, true), Err(Retval::INVALID_SW_IF_INDEX));
}

#[test]
fn mtus_are_set_all_or_none() {
    let router = router();
    let (call, index) = (Call::local(router.control()), loopback(&router));
    let set = |mtu| SwInterfaceSetMtu { sw_if_index: index, mtu }.handle(&call);
    let mtus = || dump(&router, index, None)[0].mtu;
    set([1500, 1400, 1380, 0]).unwrap();
    assert_eq!(mtus(), [1500, 1400, 1380, 0]);
    assert_eq!(set([9000, 1400, 10, 0]), Err(Retval::INVALID_VALUE));
    assert_eq!(set([70_000, 0, 0, 0]), Err(Retval::INVALID_VALUE));
    assert_eq!(mtus(), [1500, 1400, 1380, 0]);
    set([0, 0, 0, 600]).unwrap();
    assert_eq!(mtus(), [1500, 0, 0, 600]);
    HwInterfaceSetMtu { sw_if_index: index, mtu: 2000 }.handle(&call).unwrap();
    assert_eq!(mtus()[0], 2000);
    let small = HwInterfaceSetMtu { sw_if_index: index, mtu: 1 };
    assert_eq!(small.handle(&call), Err(Retval::INVALID_VALUE));
    let nowhere = SwInterfaceSetMtu { sw_if_index: NOWHERE, mtu: [1500; 4] };
    assert_eq!(nowhere.handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
}

#[test]
fn loopbacks_are_created_with_a_number_and_an_address() {
    let router = router();
    let call = Call::local(router.control());
    let create = |instance: Option<u32>, mac: [u8; 6]| {
        let create = CreateLoopbackInstance {
            mac_address: MacAddress(mac),
            is_specified: instance.is_some(),
            user_instance: instance.unwrap_or(99),
        };
        create.handle(&call).map(|reply| reply.sw_if_index)
    };
    let seven = create(Some(7), [2, 0, 0, 0, 0, 7]).unwrap();
    assert_eq!(names(&dump(&router, seven, None)), ["loop7"]);
    assert_eq!(create(Some(7), [0; 6]), Err(Retval::INVALID_REGISTRATION));
    assert_eq!(create(Some(20_000), [0; 6]), Err(Retval::INVALID_REGISTRATION));
    assert_eq!(create(None, [1, 0, 0, 0, 0, 7]), Err(Retval::INVALID_VALUE));
    let delete = |index| DeleteLoopback { sw_if_index: index }.handle(&call);
    delete(seven).unwrap();
    assert_eq!(delete(seven), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(delete(InterfaceIndex(0)), Err(Retval::INVALID_SW_IF_INDEX));
}

#[test]
fn addresses_names_and_tags_are_set() {
    let router = router();
    let (call, index) = (Call::local(router.control()), loopback(&router));
    let other = loopback(&router);
    let mac = |sw_if_index, mac| {
        SwInterfaceSetMacAddress { sw_if_index, mac_address: MacAddress(mac) }.handle(&call)
    };
    mac(index, [2, 0, 0, 0, 0, 1]).unwrap();
    let get = |sw_if_index| SwInterfaceGetMacAddress { sw_if_index }.handle(&call);
    assert_eq!(get(index).unwrap().mac_address.0, [2, 0, 0, 0, 0, 1]);
    assert_eq!(get(NOWHERE).err(), Some(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(mac(index, [0xff; 6]), Err(Retval::UNIMPLEMENTED));
    assert_eq!(mac(NOWHERE, [2; 6]), Err(Retval::INVALID_SW_IF_INDEX));
    let second = |sw_if_index, is_add| {
        SwInterfaceAddDelMacAddress { sw_if_index, addr: MacAddress([2; 6]), is_add }.handle(&call)
    };
    assert_eq!((second(index.0, 1), second(77, 1)), (Ok(()), Err(Retval::INVALID_SW_IF_INDEX)));
    assert_eq!((second(index.0, 0), second(index.0, 0)), (Ok(()), Err(Retval::NO_SUCH_ENTRY)));

    let tag = |sw_if_index, is_add, tag: &str| {
        SwInterfaceTagAddDel { is_add, sw_if_index, tag: tag.into() }.handle(&call)
    };
    tag(index, true, "uplink").unwrap();
    assert_eq!(dump(&router, index, None)[0].tag.as_str(), "uplink");
    tag(index, false, "").unwrap();
    assert_eq!(dump(&router, index, None)[0].tag.as_str(), "");
    assert_eq!(tag(index, true, ""), Err(Retval::INVALID_VALUE));
    assert_eq!(tag(NOWHERE, true, "x"), Err(Retval::INVALID_SW_IF_INDEX));

    let rename = |sw_if_index, name: &str| {
        SwInterfaceSetInterfaceName { sw_if_index, name: name.into() }.handle(&call)
    };
    let renumber =
        |sw_if_index, n| InterfaceNameRenumber { sw_if_index, new_show_dev_instance: n }.handle(&call);
    renumber(index, 42).unwrap();
    assert_eq!(names(&dump(&router, index, None)), ["loop42"]);
    assert_eq!(renumber(other, 42), Err(Retval::IF_ALREADY_EXISTS));
    assert_eq!(renumber(InterfaceIndex(0), 1), Err(Retval::UNIMPLEMENTED));
    assert_eq!(renumber(NOWHERE, 1), Err(Retval::INVALID_SW_IF_INDEX));
    rename(index, "uplink").unwrap();
    assert_eq!(names(&dump(&router, index, None)), ["uplink"]);
    assert_eq!(renumber(index, 1), Err(Retval::UNIMPLEMENTED));
    assert_eq!(rename(other, "uplink"), Err(Retval::IF_ALREADY_EXISTS));
    assert_eq!(rename(other, ""), Err(Retval::INVALID_VALUE));
    assert_eq!(rename(NOWHERE, "x"), Err(Retval::INVALID_SW_IF_INDEX));
}

#[test]
fn queues_are_placed_and_waited_for_as_asked() {
    let router = router();
    let (call, index) = (Call::local(router.control()), loopback(&router));
    let all = SwInterfaceRxPlacementDump { sw_if_index: InterfaceIndex::NONE };
    assert_eq!(all.dump(&call).count(), 0, "a loopback has no queue");
    let mode = |queue: Option<u32>, mode| {
        let (queue_id_valid, queue_id) = (queue.is_some(), queue.unwrap_or(0));
        SwInterfaceSetRxMode { sw_if_index: index, queue_id_valid, queue_id, mode }.handle(&call)
    };
    mode(None, RxMode::Polling).unwrap();
    assert_eq!(mode(Some(3), RxMode::Polling), Err(Retval::UNIMPLEMENTED));
    assert_eq!(mode(None, RxMode::Unknown), Err(Retval::UNIMPLEMENTED));
    let place = |sw_if_index, worker_id, is_main| {
        SwInterfaceSetRxPlacement { sw_if_index, queue_id: 0, worker_id, is_main }.handle(&call)
    };
    assert_eq!(place(index, 9, false), Err(Retval::INVALID_WORKER));
    assert_eq!(place(index, u32::MAX, false), Err(Retval::INVALID_WORKER));
    assert_eq!(place(index, 0, true), Err(Retval::INVALID_QUEUE));
    assert_eq!(place(NOWHERE, 0, true), Err(Retval::INVALID_SW_IF_INDEX));
    let send = |sw_if_index| {
        let (array_size, threads) = (Count::default(), vec![0]);
        SwInterfaceSetTxPlacement { sw_if_index, queue_id: 0, array_size, threads }.handle(&call)
    };
    assert_eq!(send(index), Err(Retval::INVALID_QUEUE));
    assert_eq!(send(NOWHERE), Err(Retval::INVALID_SW_IF_INDEX));
    let get = |sw_if_index| SwInterfaceTxPlacementGet { cursor: 0, sw_if_index }.get(&call);
    let (rows, end) = get(InterfaceIndex::NONE).unwrap();
    assert_eq!((rows.len(), end.retval, end.cursor), (0, 0, u32::MAX));
    assert_eq!(get(index).err(), Some(Retval::INVALID_QUEUE));
    assert_eq!(get(NOWHERE).err(), Some(Retval::INVALID_SW_IF_INDEX));
    let default = || SwInterfaceGetDefaultRxMode {}.handle(&call).unwrap().mode;
    assert_eq!(default(), RxMode::Adaptive);
    SwInterfaceSetDefaultRxMode { mode: RxMode::Interrupt }.handle(&call).unwrap();
    assert_eq!(default(), RxMode::Interrupt);
    let unknown = SwInterfaceSetDefaultRxMode { mode: RxMode::Unknown };
    assert_eq!(unknown.handle(&call), Err(Retval::INVALID_VALUE));
}

#[test]
fn features_are_enabled_and_asked_for() {
    let mut router = router();
    let port = router.pg(0);
    let (call, index) = (Call::local(router.control()), InterfaceIndex(port.index().0));
    let set = |sw_if_index, enable, arc: &str, feature: &str| {
        let (arc_name, feature_name) = (arc.into(), feature.into());
        FeatureEnableDisable { sw_if_index, enable, arc_name, feature_name }.handle(&call)
    };
    let get = |sw_if_index, arc: &str, feature: &str| {
        let (arc_name, feature_name) = (arc.into(), feature.into());
        FeatureIsEnabled { arc_name, feature_name, sw_if_index }.handle(&call).map(|reply| reply.is_enabled)
    };
    let (arc, feature) = ("device-input", "pg-input-mac-filter");
    assert_eq!(get(index, arc, feature), Ok(false));
    set(index, true, arc, feature).unwrap();
    assert_eq!(get(index, arc, feature), Ok(true));
    router.send(&port, [2; 60]);
    assert!(
        router.errors().iter().any(|(name, n)| name.contains(feature) && *n == 1),
        "{:?}",
        router.errors()
    );
    set(index, false, arc, feature).unwrap();
    assert_eq!(get(index, arc, feature), Ok(false));
    assert_eq!(set(NOWHERE, true, arc, feature), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(set(index, true, "no-arc", feature), Err(Retval::INVALID_VALUE));
    assert_eq!(set(index, true, arc, "no-feature"), Err(Retval::INVALID_VALUE));
    assert_eq!(set(index, true, "ip4-drop", "x"), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(get(NOWHERE, arc, feature), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(get(index, "no-arc", feature), Err(Retval::INVALID_VALUE));
    assert_eq!(get(index, arc, "no-feature"), Err(Retval::INVALID_VALUE_2));
}

/// A client's messages.
#[derive(Default)]
struct Letters(RefCell<Vec<Vec<u8>>>);

impl Mailbox for Letters {
    fn post(&self, bytes: &[u8]) -> bool {
        self.0.borrow_mut().push(bytes.get(16..).unwrap_or_default().to_vec());
        true
    }

    fn name(&self) -> String {
        "test".into()
    }
}

#[test]
fn who_wants_to_know_is_told_of_state_link_and_end() {
    let mut router = router();
    let port = router.pg(0);
    let clients = router.control().put(Clients::default());
    clients.number([("sw_interface_event", 300)]);
    let letters = Rc::new(Letters::default());
    let client = clients.add(Rc::clone(&letters) as Rc<dyn Mailbox>);
    let call = Call { client, ..Call::local(router.control()) };
    let want = |on| WantInterfaceEvents { enable_disable: on, pid: 4711 }.handle(&call);
    want(1).unwrap();
    assert_eq!(want(1), Err(Retval::INVALID_REGISTRATION));
    let stranger = Call { client: ClientIndex(9), ..call.clone() };
    let leave = WantInterfaceEvents { enable_disable: 0, pid: 0 };
    assert_eq!(leave.handle(&stranger), Err(Retval::INVALID_REGISTRATION));

    let event = |flags: u32, deleted: u8| {
        let mut bytes = 300u16.to_be_bytes().to_vec();
        for number in [client.0, 4711, port.index().0, flags] {
            bytes.extend(number.to_be_bytes());
        }
        bytes.push(deleted);
        bytes
    };
    router.interfaces().set_mtu(port.index(), shoal_interface::MtuLayer::L3, 1500).unwrap();
    assert!(letters.0.borrow().is_empty());
    // A generator's link follows its state, so there are two events, the link's first.
    router.interfaces().set_admin(port.index(), false).unwrap();
    router.generator().delete_interface(port.index()).unwrap();
    let told = letters.0.take();
    assert_eq!(told.last(), Some(&event(0, 1)));
    assert!(told.contains(&event(0, 0)));
    assert_eq!(told.iter().filter(|one| one.last() == Some(&1)).count(), 1);
    want(0).unwrap();
    assert_eq!(want(0), Err(Retval::INVALID_REGISTRATION));
    router.interfaces().create_loopback(None, None).unwrap();
    router.interfaces().set_admin(SwIfIndex(1), true).unwrap();
    assert!(letters.0.borrow().is_empty());
}
