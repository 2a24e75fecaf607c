//! The router under test, tested: a module that sends everything back.

use std::rc::Rc;
use std::time::Duration;

use shoal_buffer::Packet;
use shoal_derive::{ErrorCounters, NextNodes, TraceLine};
use shoal_graph::{Cx, PacketNode};
use shoal_module::{Control, InitError, Module};
use shoal_testkit::{PacketBuilder, Rng, Router, fuzz_all_nodes, node};

#[derive(NextNodes, Clone, Copy, Debug, PartialEq, Eq)]
enum Next {
    #[node("interface-output")]
    Output,
}

#[derive(ErrorCounters, Clone, Copy, Debug, PartialEq, Eq)]
enum Error {
    /// frame too short
    Short,
}

#[derive(TraceLine)]
#[line("back to sw_if_index {rx}")]
struct Trace {
    rx: u32,
}

/// Stands where Ethernet would and sends each frame back to where it came from.
struct Echo;

impl PacketNode for Echo {
    const NAME: &'static str = "ethernet-input";
    type Next = Next;
    type Error = Error;
    type Trace = Trace;

    fn packet(&self, pkt: &mut Packet<'_>, cx: &mut Cx<'_, Self>) -> Result<Next, Error> {
        if pkt.len() < 14 {
            return Err(Error::Short);
        }
        let rx = pkt.rx();
        cx.trace(pkt, || Trace { rx: rx.0 });
        pkt.meta_mut().tx = rx;
        Ok(Next::Output)
    }
}

fn init(control: &Rc<Control>) -> Result<(), InitError> {
    control.graph()?.add_packet(Echo)?;
    Ok(())
}

static ECHO: Module = Module { name: "echo", description: "sends all back", init, ..Module::NONE };

fn frame(n: u16) -> Vec<u8> {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2])
        .ip4([10, 0, 0, 1], [10, 0, 0, 2])
        .udp(n, 2)
        .payload_len(18)
        .build()
}

#[test]
fn what_goes_in_comes_out_in_order_and_is_counted() {
    let mut router = Router::new(&[&ECHO]);
    let (a, b) = (router.pg(0), router.pg(1));
    let frames: Vec<_> = (0..1000).map(frame).collect();
    router.send_all(&a, &frames);
    assert_eq!(a.received(), frames);
    assert_eq!(b.received(), Vec::<Vec<u8>>::new());
    assert_eq!(
        (router.if_counter("/if/rx", a.index()), router.if_counter("/if/tx", a.index())),
        (1000, 1000)
    );
    assert_eq!(router.counter("/if/rx"), 1000);
    assert_eq!((router.errors(), router.buffers_in_use()), (vec![], 0));
}

#[test]
fn drops_are_counted_by_node_and_interface() {
    let mut router = Router::new(&[&ECHO]);
    let a = router.pg(0);
    router.send(&a, [1, 2, 3]);
    assert_eq!(router.error("ethernet-input", "frame too short"), 1);
    assert_eq!(router.errors(), [("ethernet-input: frame too short".to_owned(), 1)]);
    assert_eq!(router.if_counter("/if/drops", a.index()), 1);
}

#[test]
fn a_traced_packet_tells_its_way() {
    let mut router = Router::new(&[&ECHO]);
    let a = router.pg(0);
    router.trace_add("pg-input", 1);
    router.send_all(&a, [frame(1), frame(2)]);
    let trace = router.trace();
    assert!(trace.contains("ethernet-input: back to sw_if_index 1\n"), "{trace}");
    assert!(trace.contains("UDP: 10.0.0.1 -> 10.0.0.2"), "{trace}");
    assert_eq!(
        router.trace_paths(),
        [["pg-input", "ethernet-input", "interface-output", "pg0-output", "pg0-tx"]]
    );
}

#[test]
fn a_large_packet_goes_through_in_several_segments() {
    let mut router = Router::new(&[&ECHO]);
    let a = router.pg(0);
    let large: Vec<u8> = (0..9000u32).map(|i| i as u8).collect();
    router.send(&a, &large);
    assert_eq!(a.received_one(), large);
}

#[test]
fn time_stops_at_every_deadline_on_its_way() {
    let mut router = Router::new(&[]);
    let processes = router.control().processes().unwrap();
    let ticks = Rc::new(std::cell::RefCell::new(Vec::new()));
    let (seen, tasks) = (Rc::clone(&ticks), processes.clone());
    let task = Rc::clone(&processes);
    processes.spawn("ticker", async move {
        loop {
            task.sleep(Duration::from_secs(1)).await;
            seen.borrow_mut().push(tasks.clock().now().0 / 1_000_000);
        }
    });
    router.advance(Duration::from_millis(3500));
    assert_eq!(*ticks.borrow(), [1000, 2000, 3000]);
    assert_eq!(router.now().0, 3_500_000_000);
}

#[test]
#[should_panic(expected = "1 buffers are still in use, 0 may be")]
fn a_leak_fails_the_test() {
    let router = Router::new(&[]);
    let _kept = std::mem::ManuallyDrop::new(router.graph().main().cache().alloc_one());
}

#[test]
fn workers_are_waited_for() {
    let mut router = Router::new(&[&ECHO]);
    router.graph().add_worker(None).unwrap();
    let a = router.pg(0);
    let frames: Vec<_> = (0..2000).map(frame).collect();
    router.send_all(&a, &frames);
    assert_eq!(a.received(), frames);
}

#[test]
#[should_panic(expected = "1 buffers are still in use, 0 may be")]
fn a_dropped_token_fails_the_test() {
    let mut router = Router::new(&[]);
    let token = router.graph().main().cache().alloc_one();
    drop(token);
    router.run();
}

#[test]
fn a_packet_through_one_node_tells_where_it_came_out() {
    let mut router = Router::new(&[&ECHO]);
    let a = router.pg(0);
    let passed = node::run(&mut router, "ethernet-input", &frame(1), |pkt| pkt.meta_mut().rx = a.index());
    assert_eq!(passed.next(), Some("interface-output"));
    assert_eq!(passed.said("ethernet-input"), Some("back to sw_if_index 1"));
    assert!(!passed.dropped() && passed.counted.is_empty());
    assert_eq!(a.received_one(), frame(1));
    let passed = node::run(&mut router, "ethernet-input", &[1], |_| ());
    assert!(passed.dropped());
    assert_eq!(passed.next(), Some("error-drop"));
    assert_eq!(passed.counted, ["ethernet-input: frame too short"]);
}

#[test]
fn every_node_of_a_small_router_survives_rubbish() {
    let mut router = Router::new(&[&ECHO]);
    router.pg(0);
    router.pg(1);
    let fuzzed = fuzz_all_nodes(&mut router, 1, 500);
    assert_eq!(fuzzed.packets, fuzzed.nodes * 500);
    assert!(fuzzed.nodes >= 9, "{fuzzed:?}");
}

#[test]
fn random_numbers_repeat_with_their_seed() {
    let (mut a, mut b) = (Rng::new(7), Rng::new(7));
    assert_eq!(a.bytes(100), b.bytes(100));
    assert!((0..1000).all(|_| a.below(10) < 10));
}
