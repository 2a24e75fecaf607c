//! `ping.api`: a ping that ends with an event.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)] // helpers of tests

use crate::common;

use std::net::IpAddr;
use std::time::Duration;

use common::*;
use shoal_message::Retval;
use shoal_module::api::{Call, Request};
use shoal_ping::api::*;
use shoal_testkit::{Listener, PEER, PEER_MAC, US, api};
use shoal_wire::{IpProtocol, Packet, icmp4};

fn want(address: impl Into<IpAddr>, repeat: u32, interval: f64) -> WantPingFinishedEvents {
    WantPingFinishedEvents { address: address.into(), repeat, interval }
}

#[test]
fn declared_messages_are_those_of_vpp() {
    api::same_as_vpp(&[&API]);
}

#[test]
fn random_bytes_do_no_harm() {
    let mut b = bench();
    api::random_bytes_do_no_harm(&mut b.router, &[&API], 100);
}

#[test]
fn a_ping_ends_with_an_event_that_counts() {
    let mut b = bench();
    let client = Listener::new(&b.router, &[&API]);
    want(PEER, 3, 0.5).handle(&client.call(&b.router)).unwrap();
    b.router.run();
    for answered in [true, false, true] {
        let frame = b.port.received_one();
        if answered {
            let mut message = frame[34..].to_vec();
            message[0] = 0;
            icmp4::make(&mut message);
            let packet = Packet::ethernet(PEER_MAC, b.port.mac()).ip4(PEER, US);
            b.router.send(&b.port, packet.protocol(IpProtocol::ICMP).payload(&message).build());
        }
        assert!(client.events::<PingFinishedEvent>().is_empty());
        b.router.advance(Duration::from_millis(500));
    }
    b.router.advance(Duration::from_secs(2));
    let [event] = &client.events::<PingFinishedEvent>()[..] else { panic!("one event") };
    assert_eq!((event.request_count, event.reply_count), (3, 2));
    assert_eq!(event.client_index, client.call(&b.router).client.0);
}

#[test]
fn what_cannot_be_sent_is_told_as_not_sent() {
    let mut b = bench();
    let client = Listener::new(&b.router, &[&API]);
    want("2001:db8:77::1".parse::<IpAddr>().unwrap(), 3, 0.5).handle(&client.call(&b.router)).unwrap();
    b.router.advance(Duration::from_secs(5));
    let [event] = &client.events::<PingFinishedEvent>()[..] else { panic!("one event") };
    assert_eq!((event.request_count, event.reply_count), (0, 0));
}

#[test]
fn mistakes_and_floods_are_refused() {
    let mut b = bench();
    assert_eq!(
        want(PEER, 1, 1.0).handle(&Call::local(b.router.control())),
        Err(Retval::INVALID_REGISTRATION)
    );
    let client = Listener::new(&b.router, &[&API]);
    let call = client.call(&b.router);
    for interval in [0.0, -1.0, f64::NAN, f64::INFINITY, 1e9] {
        assert_eq!(want(PEER, 1, interval).handle(&call), Err(Retval::INVALID_VALUE));
    }
    assert_eq!(want([224, 0, 0, 1], 1, 1.0).handle(&call), Err(Retval::INVALID_VALUE));
    for _ in 0..64 {
        want(PEER, u32::MAX, 10.0).handle(&call).unwrap();
    }
    assert_eq!(want(PEER, 1, 1.0).handle(&call), Err(Retval::BUSY));
    b.router.run();
    // They end with their client.
    client.leave(&b.router);
    b.router.advance(Duration::from_secs(11));
    let other = Listener::new(&b.router, &[&API]);
    want(PEER, 1, 1.0).handle(&other.call(&b.router)).unwrap();
}
