//! An interface, its device and its receive queues: what they are called, and in which order they go.
#![allow(clippy::unwrap_used)] // helpers of tests

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};

use shoal_buffer::Frame;
use shoal_graph::{FrameCx, FrameNode, NoError, NoNext, RxQueue};
use shoal_interface::{Create, Device, IfFlags, Queue, SwIfIndex};
use shoal_testkit::Router;
use shoal_wire::MacAddress;

/// What happened to the queue and the device.
#[derive(Default)]
struct DeviceFate {
    queue_closed: AtomicBool,
    in_order: AtomicBool,
}

struct Wire(Arc<DeviceFate>);

impl Device for Wire {
    fn class(&self) -> &'static str {
        "test"
    }
}

impl Drop for Wire {
    fn drop(&mut self) {
        self.0.in_order.store(self.0.queue_closed.load(Ordering::SeqCst), Ordering::SeqCst);
    }
}

struct Closing(Arc<DeviceFate>);

impl RxQueue for Closing {
    fn poll(&mut self, _: &mut FrameCx<'_>) -> usize {
        0
    }

    fn is_parked(&self) -> bool {
        true
    }
}

impl Drop for Closing {
    fn drop(&mut self) {
        self.0.queue_closed.store(true, Ordering::SeqCst);
    }
}

struct DiscardTx;

impl FrameNode for DiscardTx {
    const NAME: &'static str = "nowhere-tx";
    type Next = NoNext;
    type Error = NoError;

    fn frame(&self, frame: &mut Frame, cx: &mut FrameCx<'_>) {
        cx.free_frame(frame);
    }
}

fn wire(router: &Router, thread: usize) -> (SwIfIndex, Arc<DeviceFate>) {
    let fate = Arc::new(DeviceFate::default());
    let create = Create {
        name: "wire0",
        mac: MacAddress::ZERO,
        mtu: 1500,
        flags: IfFlags::default(),
        rx_next: "drop",
        device: Rc::new(Wire(Arc::clone(&fate))),
    };
    let interfaces = router.interfaces();
    let index = interfaces.create(&create, DiscardTx).unwrap();
    let node = router.graph().add_input::<NoNext, NoError>("wire-input").unwrap();
    let queue = Box::new(Closing(Arc::clone(&fate)));
    interfaces.add_queue(index, Queue { number: 0, node, queue, thread: Some(thread) }).unwrap();
    (index, fate)
}

#[test]
fn a_device_is_let_go_only_when_no_thread_has_its_queues_any_more() {
    let router = Router::new(&[]);
    let worker = router.graph().add_worker(None).unwrap();
    let (index, fate) = wire(&router, worker);
    router.interfaces().delete(index).unwrap();
    assert!(fate.in_order.load(Ordering::SeqCst), "the device went before its queue");
    assert!(router.graph().queues().is_empty());
}

#[test]
fn nodes_follow_their_interfaces_name() {
    let router = Router::new(&[]);
    let (interfaces, graph) = (router.interfaces(), router.graph());
    let (first, _) = wire(&router, 0);
    let tx = graph.node("wire0-tx").unwrap();
    interfaces.rename(first, "uplink").unwrap();
    assert_eq!(graph.node_name(tx), "uplink-tx");
    assert!(graph.node("uplink-output").is_ok() && graph.node("wire0-output").is_err());
    assert!(interfaces.rename(first, "interface").is_err(), "interface-output is a node");
    assert_eq!(interfaces.name(first).unwrap(), "uplink");
    interfaces.rename(first, "wire0").unwrap();
    interfaces.rename(first, "uplink").unwrap();
    interfaces.delete(first).unwrap();
    assert!(graph.node("uplink-tx").is_err());
}

#[test]
fn queues_follow_their_interfaces_name() {
    let router = Router::new(&[]);
    let (index, _) = wire(&router, 0);
    router.interfaces().rename(index, "uplink").unwrap();
    let names: Vec<String> = router.graph().queues().into_iter().map(|q| q.interface).collect();
    assert_eq!(names, ["uplink"]);
    // A queue that moves takes the new name with it.
    let worker = router.graph().add_worker(None).unwrap();
    router.interfaces().place_queue(index, 0, worker).unwrap();
    assert_eq!(router.interfaces().queues(index).unwrap()[0].interface, "uplink");
    router.interfaces().rename(index, "wire0").unwrap();
    assert_eq!(router.interfaces().queues(index).unwrap()[0].interface, "wire0");
}
