//! A router with two host interfaces, and a two-port forwarder made of the driver's queues.
#![allow(dead_code)]

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use shoal_af_packet::{CreateHostInterface, HostInterfaces, RingVersion, RxRing, TxQueue};
use shoal_interface::SwIfIndex;
use shoal_testkit::netns;
pub use shoal_testkit::netns::*;
use shoal_vnet::VnetHdr;

/// Whether tests that need namespaces can run; says why not.
pub fn can_run(test: &str) -> bool {
    netns::can_run(test, &[])
}

/// A router that knows host interfaces.
pub fn start(ns: &Namespace) -> Crossing {
    Crossing::start(ns, &shoal_af_packet::MODULE)
}

pub fn host_interfaces(inside: &Inside) -> Rc<HostInterfaces> {
    inside.control.get().unwrap()
}

/// Two host interfaces, up, connected with each other.
pub fn connect(inside: &Inside, names: [&str; 2], queues: u32) -> [SwIfIndex; 2] {
    connect_as(inside, names, queues, RingVersion::default())
}

/// The same with rings of a version.
pub fn connect_as(inside: &Inside, names: [&str; 2], queues: u32, version: RingVersion) -> [SwIfIndex; 2] {
    let like = CreateHostInterface { rx_queues: Some(queues), version, ..Default::default() };
    connect_like(inside, names, &like)
}

/// The same, both made like this.
pub fn connect_like(inside: &Inside, names: [&str; 2], like: &CreateHostInterface) -> [SwIfIndex; 2] {
    let create = |name: &str| CreateHostInterface { name: name.into(), ..like.clone() };
    let made = names.map(|name| host_interfaces(inside).create(&create(name)).unwrap());
    inside.join(made);
    for index in made {
        inside.interfaces.set_admin(index, true).unwrap();
    }
    made
}

/// Waits until one of the rings is readable or has an error.
pub fn poll_rings(rings: &[&RxRing], ms: u16) -> PollFlags {
    let mut fds: Vec<_> = rings.iter().map(|r| PollFd::new(r.fd(), PollFlags::POLLIN)).collect();
    poll(&mut fds, PollTimeout::from(ms)).unwrap();
    fds.iter().filter_map(PollFd::revents).fold(PollFlags::empty(), |a, b| a | b)
}

/// What the forwarder saw.
#[derive(Clone, Copy, Debug, Default)]
pub struct Seen {
    pub frames: u64,
    pub superframes: u64,
    pub partial_csums: u64,
    pub largest: usize,
    pub lost: u64,
}

/// Copies everything `rx` has to `tx`, in 2 KB segments as buffer chains are.
pub fn forward(rx: &mut RxRing, tx: &mut TxQueue, store: &mut Vec<u8>, seen: &mut Seen) -> usize {
    store.clear();
    let mut spans: Vec<(VnetHdr, usize, usize)> = Vec::with_capacity(64);
    while spans.len() < 64 {
        let Some(frame) = rx.next() else { break };
        assert!(!frame.is_truncated());
        let offload = frame.vnet.validate(&[frame.bytes]).unwrap();
        seen.frames += 1;
        seen.superframes += u64::from(offload.gso.is_some());
        seen.partial_csums += u64::from(frame.is_csum_not_ready());
        seen.largest = seen.largest.max(frame.bytes.len());
        spans.push((offload.into(), store.len(), frame.bytes.len()));
        store.extend_from_slice(frame.bytes);
    }
    let mut batch = tx.batch();
    let mut sent = 0;
    for (vnet, start, len) in &spans {
        if batch.push(*vnet, store[*start..start + len].chunks(2048)).is_err() {
            sent += batch.send().sent;
            batch = tx.batch();
            batch.push(*vnet, store[*start..start + len].chunks(2048)).unwrap();
        }
    }
    sent += batch.send().sent;
    seen.lost += (spans.len() - sent) as u64;
    spans.len()
}

/// Forwards between two ports until told to stop.
pub fn forwarder(mut a: (RxRing, TxQueue), mut b: (RxRing, TxQueue), stop: Arc<AtomicBool>) -> Seen {
    let (mut store, mut seen) = (Vec::with_capacity(8 << 20), Seen::default());
    while !stop.load(Ordering::Relaxed) {
        let moved = forward(&mut a.0, &mut b.1, &mut store, &mut seen)
            + forward(&mut b.0, &mut a.1, &mut store, &mut seen);
        if moved == 0 {
            poll_rings(&[&a.0, &b.0], 20);
        }
    }
    seen
}
