//! `ip6_nd.api` and `ip6_dad.api`: advertisements, proxies, questions and events through the binary API.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::{IpAddr, Ipv6Addr};
use std::time::Duration;

use common::*;
use shoal_ip6::Ip6;
use shoal_ip6_nd::api::dad::*;
use shoal_ip6_nd::api::events::*;
use shoal_ip6_nd::api::proxy::*;
use shoal_ip6_nd::api::radv::*;
use shoal_ip6_nd::api::solicit::*;
use shoal_ip6_nd::api::{API, DAD, rd_cp};
use shoal_ip6_nd::{DefaultRoute, MODULE, Nd};
use shoal_message::{InterfaceIndex, Prefix, Retval};
use shoal_module::api::{Call, Dump, Request};
use shoal_testkit::{Listener, PEER_MAC, Port, Router, STACK, api};
use shoal_wire::MacAddress;
use shoal_wire::ip6_address::ALL_NODES;
use shoal_wire::nd::{HOP_LIMIT, NaFlags, PrefixFlags, RaFlags, RouterAdvertisement};
use shoal_wire::nd_options::PrefixInformation;

const ROUTER: Ipv6Addr = Ipv6Addr::new(0xfe80, 0, 0, 0, 0, 0, 0, 9);

fn of(port: &Port) -> InterfaceIndex {
    InterfaceIndex(port.index().0)
}

/// Nothing set.
fn config(sw_if_index: InterfaceIndex) -> SwInterfaceIp6ndRaConfig {
    SwInterfaceIp6ndRaConfig {
        sw_if_index,
        suppress: 0,
        managed: 0,
        other: 0,
        ll_option: 0,
        send_unicast: 0,
        cease: 0,
        is_no: false,
        default_router: 0,
        max_interval: 0,
        min_interval: 0,
        lifetime: 0,
        initial_count: 0,
        initial_interval: 0,
    }
}

fn prefix(sw_if_index: InterfaceIndex, address: &str, len: u8) -> SwInterfaceIp6ndRaPrefix {
    let address: IpAddr = address.parse().unwrap();
    SwInterfaceIp6ndRaPrefix {
        sw_if_index,
        prefix: Prefix { address, len },
        use_default: false,
        no_advertise: false,
        off_link: false,
        no_autoconfig: false,
        no_onlink: false,
        is_no: false,
        val_lifetime: 3600,
        pref_lifetime: 1800,
    }
}

fn details(call: &Call, port: &Port) -> SwInterfaceIp6ndRaDetails {
    SwInterfaceIp6ndRaDump { sw_if_index: of(port) }.dump(call).next().unwrap()
}

/// An advertisement of the router.
fn ra() -> Vec<u8> {
    let bytes = message(ROUTER, ALL_NODES, |out| {
        let flags = PrefixFlags::ON_LINK | PrefixFlags::AUTONOMOUS;
        let prefix = PrefixInformation::new("2001:db8:7::/64".parse().unwrap(), flags, 3600, 1800);
        let ra = RouterAdvertisement::new(RaFlags::OTHER, 1800).with_hop_limit(61).with_timers_ms(1000, 2000);
        ra.write(out).prefix_information(&prefix).source_link_layer(PEER_MAC)
    });
    frame((PEER_MAC, MacAddress::for_ip6_multicast(ALL_NODES)), (ROUTER, ALL_NODES), HOP_LIMIT, &bytes)
}

/// How many ICMPv6 messages of a type were sent since the last look.
fn sent(port: &Port, kind: u8) -> usize {
    port.received().iter().filter(|f| f[20] == 58 && f[54] == kind).count()
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API, &DAD, &rd_cp::API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let (mut router, _) = router();
    api::random_bytes_do_no_harm(&mut router, &[&API, &DAD], 200);
}

#[test]
fn what_hosts_are_told_is_set_and_dumped() {
    let (mut router, port) = router();
    let call = Call::local(router.control());
    let before = details(&call, &port);
    assert!(before.send_radv && before.adv_link_layer_address && !before.adv_managed_flag);
    assert_eq!(
        (before.adv_router_lifetime, before.max_radv_interval, before.min_radv_interval),
        (600, 200.0, 150.0)
    );
    let wanted = SwInterfaceIp6ndRaConfig { managed: 1, max_interval: 1000, ..config(of(&port)) };
    wanted.handle(&call).unwrap();
    SwInterfaceIp6ndRaConfig { ll_option: 1, other: 1, ..config(of(&port)) }.handle(&call).unwrap();
    SwInterfaceIp6ndRaPrefix { no_autoconfig: true, ..prefix(of(&port), "2001:db8:1::", 64) }
        .handle(&call)
        .unwrap();
    let now = details(&call, &port);
    assert!(now.adv_managed_flag && now.adv_other_flag && !now.adv_link_layer_address && !now.cease_radv);
    assert_eq!(
        (now.adv_router_lifetime, now.max_radv_interval, now.min_radv_interval),
        (1000, 1000.0, 750.0)
    );
    let told = now.prefixes[0];
    assert_eq!((told.onlink_flag, told.autonomous_flag, told.val_lifetime), (true, false, 3600));
    // It is sent, too.
    router.advance(Duration::from_secs(10));
    assert!(sent(&port, 134) > 0);
    let sent = details(&call, &port);
    assert!(sent.n_advertisements_sent > now.n_advertisements_sent && sent.last_multicast_time > 0.0);
    SwInterfaceIp6ndRaConfig { managed: 1, is_no: true, max_interval: 1, ..config(of(&port)) }
        .handle(&call)
        .unwrap();
    SwInterfaceIp6ndRaPrefix { is_no: true, ..prefix(of(&port), "2001:db8:1::", 64) }.handle(&call).unwrap();
    SwInterfaceIp6ndRaConfig { cease: 1, ..config(of(&port)) }.handle(&call).unwrap();
    let now = details(&call, &port);
    assert!(!now.adv_managed_flag && now.adv_other_flag && now.cease_radv && now.prefixes.is_empty());
    assert_eq!((now.max_radv_interval, now.initial_adverts_count), (200.0, 3));
    let all = SwInterfaceIp6ndRaDump { sw_if_index: InterfaceIndex::NONE }.dump(&call);
    assert_eq!(all.map(|d| d.sw_if_index).collect::<Vec<_>>(), [of(&port)]);
}

#[test]
fn mistakes_have_vpps_numbers() {
    let (router, port) = router();
    let call = Call::local(router.control());
    let nowhere = InterfaceIndex(77);
    assert_eq!(config(nowhere).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(prefix(nowhere, "2001:db8::", 64).handle(&call), Err(Retval::INVALID_SW_IF_INDEX));
    for wrong in [("10.0.0.0", 24), ("2001:db8::", 129), ("ff02::", 64)] {
        assert_eq!(
            prefix(of(&port), wrong.0, wrong.1).handle(&call),
            Err(Retval::INVALID_VALUE),
            "{wrong:?}"
        );
    }
    let unknown = SwInterfaceIp6ndRaPrefix { is_no: true, ..prefix(of(&port), "2001:db8:1::", 64) };
    assert_eq!(unknown.handle(&call), Err(Retval::INVALID_VALUE));
    for (max_interval, min_interval) in [(3, 0), (2000, 0), (100, 80)] {
        let wrong = SwInterfaceIp6ndRaConfig { max_interval, min_interval, ..config(of(&port)) };
        assert_eq!(wrong.handle(&call), Err(Retval::INVALID_VALUE));
    }
    let wrong = SwInterfaceIp6ndRaConfig { default_router: 1, lifetime: 70_000, ..config(of(&port)) };
    assert_eq!(wrong.handle(&call), Err(Retval::INVALID_VALUE));
    assert_eq!(SwInterfaceIp6ndRaDump { sw_if_index: nowhere }.dump(&call).count(), 0);
    let dad = |dad_transmits, dad_retransmit_delay| {
        Ip6DadEnableDisable { enable: true, dad_transmits, dad_retransmit_delay }.handle(&call)
    };
    for (transmits, delay) in [(0, 1.0), (1, 0.0), (1, -1.0), (1, f64::NAN), (1, 1e9)] {
        assert_eq!(dad(transmits, delay), Err(Retval::INVALID_VALUE), "{transmits} {delay}");
    }
}

#[test]
fn addresses_are_answered_for_where_the_api_says_so() {
    let (mut router, port) = router();
    let call = Call::local(router.control());
    let other: Ipv6Addr = "2001:db8::77".parse().unwrap();
    let set = |is_add, sw_if_index| Ip6ndProxyAddDel { sw_if_index, is_add, ip: other }.handle(&call);
    set(true, of(&port)).unwrap();
    let all: Vec<_> = Ip6ndProxyDump {}.dump(&call).map(|d| (d.sw_if_index, d.ip)).collect();
    assert_eq!(all, [(of(&port), other)]);
    port.received();
    hear(&mut router, SOLICITATION, &port, &ns(PEER_MAC, PEER, other));
    assert_eq!(sent(&port, 136), 1);
    set(false, of(&port)).unwrap();
    assert_eq!(set(false, of(&port)), Err(Retval::NO_SUCH_ENTRY));
    assert_eq!(set(true, InterfaceIndex(77)), Err(Retval::INVALID_SW_IF_INDEX));
    assert_eq!(Ip6ndProxyDump {}.dump(&call).count(), 0);
}

#[test]
fn routers_are_asked_until_one_answers() {
    // RFC 7559 2.
    let (mut router, port) = router();
    let call = Call::local(router.control());
    let ask = |mrc, stop| {
        Ip6ndSendRouterSolicitation { irt: 1, mrt: 8, mrc, mrd: 0, sw_if_index: of(&port), stop }
            .handle(&call)
    };
    ask(0, false).unwrap();
    router.advance(Duration::from_mins(1));
    let asked = sent(&port, 133);
    assert!((7..=13).contains(&asked), "{asked}");
    hear(&mut router, "icmp6-router-advertisement", &port, &ra());
    router.advance(Duration::from_mins(1));
    assert_eq!(sent(&port, 133), 0);
    ask(3, false).unwrap();
    router.advance(Duration::from_mins(1));
    assert_eq!(sent(&port, 133), 3);
    ask(0, false).unwrap();
    ask(0, true).unwrap();
    ask(0, true).unwrap();
    router.advance(Duration::from_mins(1));
    assert_eq!(sent(&port, 133), 0);
    let none =
        Ip6ndSendRouterSolicitation { irt: 0, mrt: 0, mrc: 0, mrd: 0, sw_if_index: of(&port), stop: false };
    assert_eq!(none.handle(&call), Err(Retval::INVALID_VALUE));
}

#[test]
fn clients_are_told_what_routers_advertise() {
    let (mut router, port) = router();
    let client = Listener::new(&router, &[&API, &DAD]);
    let want = |router: &Router, enable| WantIp6RaEvents { enable, pid: 1 }.handle(&client.call(router));
    assert_eq!(want(&router, false), Err(Retval::INVALID_REGISTRATION));
    want(&router, true).unwrap();
    hear(&mut router, "icmp6-router-advertisement", &port, &ra());
    let [event] = &client.events::<Ip6RaEvent>()[..] else { panic!("one event") };
    assert_eq!((event.sw_if_index, event.router_addr, event.current_hop_limit), (of(&port), ROUTER, 61));
    assert_eq!((event.flags, event.router_lifetime_in_sec), (RaFlags::OTHER.0, 1800));
    assert_eq!(event.neighbor_reachable_time_in_msec, 1000);
    assert_eq!(event.time_in_msec_between_retransmitted_neighbor_solicitations, 2000);
    let told = event.prefixes[0];
    assert_eq!((told.prefix.len, told.flags, told.valid_time, told.preferred_time), (64, 0xc0, 3600, 1800));
    want(&router, false).unwrap();
    hear(&mut router, "icmp6-router-advertisement", &port, &ra());
    assert!(client.events::<Ip6RaEvent>().is_empty());
}

#[test]
fn an_address_of_another_station_is_taken_away_where_that_is_switched_on() {
    let mut modules = STACK.to_vec();
    modules.extend([&MODULE, &shoal_ip6_nd::autoremove::MODULE]);
    let mut router = Router::new(&modules);
    let port = router.pg(0);
    assert_eq!(router.get::<Nd>().dad_transmits(), 1, "it is of no use without detection");
    give(&mut router, &port);
    assert!(router.get::<Nd>().standing(port.index(), US).is_some());
    hear(&mut router, "icmp6-neighbor-advertisement", &port, &na(PEER_MAC, US, ALL_NODES, NaFlags::OVERRIDE));
    router.run();
    assert_eq!(router.get::<Nd>().standing(port.index(), US), None);
    assert!(router.get::<Ip6>().addresses(port.index()).iter().all(|a| a.addr() != US));
}

#[test]
fn routers_give_an_interface_its_addresses_when_a_client_says_so() {
    let (mut router, port) = quiet();
    let client = Listener::new(&router, &[&rd_cp::API]);
    let set = |enable| rd_cp::Ip6NdAddressAutoconfig {
        sw_if_index: of(&port),
        enable,
        install_default_routes: true,
    };
    set(true).handle(&client.call(&router)).unwrap();
    router.run();
    assert_eq!(router.get::<Nd>().autoconfigured(port.index()).map(|a| a.0), Some(DefaultRoute::Wanted));
    set(false).handle(&client.call(&router)).unwrap();
    set(false).handle(&client.call(&router)).unwrap();
    assert!(router.get::<Nd>().autoconfigured(port.index()).is_none());
}

#[test]
fn clients_are_told_what_becomes_of_addresses() {
    let (mut router, port) = quiet();
    let client = Listener::new(&router, &[&API, &DAD]);
    let call = client.call(&router);
    Ip6DadEnableDisable { enable: true, dad_transmits: 2, dad_retransmit_delay: 2.0 }.handle(&call).unwrap();
    let d = Ip6DadDump {}.dump(&call).next().unwrap();
    assert_eq!((d.enabled, d.dad_transmits, d.dad_retransmit_delay), (true, 2, 2.0));
    WantIp6DadEvents { enable_disable: true, pid: 1 }.handle(&call).unwrap();
    let seen = |client: &Listener| -> Vec<_> {
        let events = client.events::<Ip6DadEvent>().into_iter().filter(|e| e.address == US);
        events.map(|e| (e.state, e.sw_if_index, e.dad_count, e.dad_transmits)).collect()
    };
    give(&mut router, &port);
    // Each question is reported, the first of which is asked at once.
    let asked = |n| (Ip6DadState::Tentative, of(&port), n, 2);
    assert_eq!(seen(&client), [asked(0), asked(1)]);
    router.advance(Duration::from_millis(3500));
    assert_eq!(seen(&client), [asked(2)], "two questions take four seconds");
    router.advance(Duration::from_secs(4));
    assert_eq!(seen(&client), [(Ip6DadState::Preferred, of(&port), 2, 2)]);
    // Down and up: it is asked again, and this time somebody has it.
    router.interfaces().set_admin(port.index(), false).unwrap();
    router.interfaces().set_admin(port.index(), true).unwrap();
    router.run();
    hear(&mut router, ADVERTISEMENT, &port, &na(PEER_MAC, US, ALL_NODES, NaFlags::OVERRIDE));
    let states: Vec<_> = seen(&client).iter().map(|e| e.0).collect();
    assert_eq!(states, [Ip6DadState::Tentative, Ip6DadState::Duplicate]);
    Ip6DadEnableDisable { enable: false, dad_transmits: 1, dad_retransmit_delay: 1.0 }.handle(&call).unwrap();
    assert!(!Ip6DadDump {}.dump(&call).next().unwrap().enabled);
}
