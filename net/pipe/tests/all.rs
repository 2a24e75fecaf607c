//! Pipes: what goes out of one end comes in by the other, switched or routed.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)] // helpers of tests

use std::rc::Rc;
use std::time::Duration;

use shoal_adj::Family;
use shoal_buffer::FibIndex;
use shoal_ethernet::{Ethernet, SubError};
use shoal_fib::{Fib, Path, Source, Via};
use shoal_interface::SwIfIndex;
use shoal_ip4::Ip4;
use shoal_ip6::Ip6;
use shoal_l2::{L2, Mode};
use shoal_message::Retval;
use shoal_module::Running;
use shoal_neighbor::table::{FibEntry, Origin};
use shoal_pipe::api::API;
use shoal_pipe::{MODULE, Pipe, PipeError, Pipes};
use shoal_testkit::api::{random_bytes_do_no_harm, same_as_vpp};
use shoal_testkit::{ApiAsker, PEER_MAC, PacketBuilder, Port, Rng, Router, STACK, fuzz_all_nodes};

struct World {
    router: Router,
    ports: Vec<Port>,
    pipes: Rc<Pipes>,
}

impl World {
    fn new() -> World {
        let mut modules = STACK.to_vec();
        modules.extend([&shoal_ip6_nd::MODULE, &shoal_l2::MODULE, &shoal_bridge::MODULE, &MODULE]);
        let mut router = Router::new(&modules);
        let ports: Vec<Port> = (0..2).map(|n| router.pg(n)).collect();
        let pipes = router.get::<Pipes>();
        World { router, ports, pipes }
    }

    /// A pipe with both ends up.
    fn pipe(&self) -> Pipe {
        let pipe = self.pipes.create(None).unwrap();
        pipe.ends.iter().for_each(|end| self.router.interfaces().set_admin(*end, true).unwrap());
        pipe
    }

    /// Frames that come in by either go out of the other.
    fn connect(&self, a: SwIfIndex, b: SwIfIndex) {
        let l2 = self.router.get::<L2>();
        l2.set_mode(a, Mode::Xconnect(b)).unwrap();
        l2.set_mode(b, Mode::Xconnect(a)).unwrap();
    }

    fn send(&mut self, port: usize, frame: &[u8]) {
        let port = self.ports[port].clone();
        self.router.send(&port, frame);
    }
}

fn frame() -> Vec<u8> {
    PacketBuilder::ethernet([2, 0, 0, 0, 0, 1], [2, 0, 0, 0, 0, 2]).ip4([1; 4], [2; 4]).udp(1, 2).build()
}

#[test]
fn frames_pass_both_ways_whatever_their_tags() {
    let mut world = World::new();
    let pipe = world.pipe();
    let [a, b] = pipe.ends;
    world.connect(world.ports[0].index(), a);
    world.connect(world.ports[1].index(), b);
    let plain = frame();
    let tagged = [&plain[..12], &[0x81, 0, 0, 9], &plain[12..]].concat();
    for (from, to) in [(0, 1), (1, 0)] {
        for one in [&plain, &tagged] {
            world.send(from, one);
            assert_eq!(&world.ports[to].received_one(), one);
        }
    }
    for end in pipe.ends {
        assert_eq!(world.router.if_counter("/if/rx", end), 4 / 2);
        assert_eq!(world.router.if_counter("/if/tx", end), 4 / 2);
    }
    // An end that is down takes nothing.
    world.router.interfaces().set_admin(b, false).unwrap();
    world.send(0, &plain);
    assert!(world.ports[1].received().is_empty());
    assert_eq!(world.router.error("pipe-rx", "end of the pipe is down"), 1);
}

#[test]
fn packets_are_routed_from_table_to_table_without_asking_anybody() {
    for family in [Family::Ip4, Family::Ip6] {
        let mut world = World::new();
        let [a, b] = world.pipe().ends;
        let (ip4, ip6, fib) =
            (world.router.get::<Ip4>(), world.router.get::<Ip6>(), world.router.get::<Fib>());
        // The far end and the second port are in a table of their own.
        fib.add_table(family, 7, None).unwrap();
        let far = [b, world.ports[1].index()];
        let near = [a, world.ports[0].index()];
        for (net, interface) in near.into_iter().chain(far).enumerate() {
            match family {
                Family::Ip4 => {
                    if far.contains(&interface) {
                        ip4.set_table(interface, 7).unwrap();
                    }
                    ip4.add_address(interface, format!("10.0.{net}.1/24").parse().unwrap()).unwrap();
                }
                Family::Ip6 => {
                    if far.contains(&interface) {
                        ip6.set_table(interface, 7).unwrap();
                    }
                    ip6.add_address(interface, format!("2001:db8:{net}::1/64").parse().unwrap()).unwrap();
                }
            }
        }
        let (kind, route, out) = (Origin::Static, FibEntry::Wanted, world.ports[1].index());
        let target = match family {
            Family::Ip4 => {
                let arp = world.router.get::<shoal_arp::Neighbours>();
                arp.set((out, [10, 0, 3, 2].into()), PEER_MAC, kind, route).unwrap();
                "10.0.3.2/32"
            }
            Family::Ip6 => {
                let nd = world.router.get::<shoal_ip6_nd::Neighbours>();
                nd.set((out, "2001:db8:3::2".parse().unwrap()), PEER_MAC, kind, route).unwrap();
                "2001:db8:3::2/128"
            }
        };
        world.router.advance(Duration::from_secs(3));
        world.ports.iter().for_each(|port| drop(port.received()));
        let source = if family == Family::Ip4 { "0.0.0.0" } else { "::" }.parse().unwrap();
        let path = Path::from(Via::Attached { interface: a, source });
        let prefix: shoal_wire::prefix::IpPrefix = target.parse().unwrap();
        fib.add(FibIndex::DEFAULT, prefix, Source::Cli, &[path]).unwrap();
        let start = PacketBuilder::ethernet(PEER_MAC, world.ports[0].mac());
        let counts = |world: &World| {
            [("/if/tx", a), ("/if/rx", b)].map(|(name, end)| world.router.if_counter(name, end))
        };
        let before = counts(&world);
        let packet = match family {
            Family::Ip4 => start.ip4([10, 0, 1, 9], [10, 0, 3, 2]),
            Family::Ip6 => start.ip6([0x2001, 0xdb8, 1, 0, 0, 0, 0, 9], [0x2001, 0xdb8, 3, 0, 0, 0, 0, 2]),
        };
        world.send(0, &packet.udp(1, 2).build());
        let out = world.ports[1].received_one();
        assert_eq!(out[..6], PEER_MAC.0);
        let ttl = if family == Family::Ip4 { out[22] } else { out[21] };
        assert_eq!(ttl, 62, "it was routed twice");
        assert_eq!(counts(&world), before.map(|count| count + 1), "the packet and nothing else");
    }
}

#[test]
fn pipes_that_lead_to_each_other_do_not_keep_a_frame() {
    let mut world = World::new();
    let (p, q) = (world.pipe(), world.pipe());
    world.connect(p.ends[0], q.ends[0]);
    world.connect(p.ends[1], q.ends[1]);
    let l2 = world.router.get::<L2>();
    l2.set_mode(world.ports[0].index(), Mode::Xconnect(p.ends[0])).unwrap();
    world.send(0, &frame());
    assert_eq!(world.router.error("pipe-rx", "frame has passed too many pipes"), 1);
}

#[test]
fn a_pipe_goes_with_its_ends_and_ends_do_not_go_alone() {
    let mut world = World::new();
    let pipe = world.pipe();
    let [a, b] = pipe.ends;
    world.connect(world.ports[0].index(), a);
    world.connect(world.ports[1].index(), b);
    let ethernet = world.router.get::<Ethernet>();
    assert!(matches!(ethernet.delete_sub(a), Err(SubError::End(..))));
    let port = world.ports[0].index();
    assert_eq!(world.pipes.delete(port), Err(PipeError::NotPipe("pg0".into())));
    assert!(world.router.interfaces().name(port).is_ok(), "VPP deletes it");
    assert_eq!(world.pipes.create(Some(0)), Err(PipeError::Exists(0)));
    assert_eq!(world.pipes.create(Some(16 * 1024)), Err(PipeError::Number(16 * 1024)));
    world.pipes.delete(b).unwrap();
    assert!(world.pipes.list().is_empty());
    assert!([pipe.index, a, b].iter().all(|index| world.router.interfaces().name(*index).is_err()));
    world.send(0, &frame());
    assert!(world.ports[1].received().is_empty());
    // What is sent by the pipe itself goes nowhere.
    let again = world.pipe();
    assert_eq!(again.instance, 0);
    world.connect(port, again.index);
    world.send(0, &frame());
    assert_eq!(world.router.error("pipe0-tx", "pipe itself sends nothing, its ends do"), 1);
}

#[test]
fn pipes_are_rebuilt_with_their_names() {
    let world = World::new();
    let pipe = world.pipes.create(Some(3)).unwrap();
    world.router.interfaces().rename(pipe.ends[1], "inside").unwrap();
    let mut running = Running::default();
    (MODULE.running)(world.router.control(), &mut running);
    let lines: String = running.pieces().collect();
    assert_eq!(lines, "# interfaces\npipe create instance 3\n# names\nset interface name pipe3.1 inside\n");
    let mut running = Running::default();
    (shoal_ethernet::MODULE.running)(world.router.control(), &mut running);
    assert_eq!(running.pieces().collect::<String>(), "", "its ends come with it");
}

#[test]
fn messages_are_answered_as_vpp_does() {
    same_as_vpp(&[&API]);
    let mut world = World::new();
    {
        let parts = [&API];
        let asker = ApiAsker::new(world.router.control(), &parts);
        let number = |n: u32| n.to_be_bytes();
        let create = |is_specified: u8, n| [&[is_specified][..], &number(n)].concat();
        let made = asker.ask("pipe_create", &create(1, 5)).pop().unwrap();
        let Pipe { index, ends: [a, b], .. } = world.pipes.list()[0];
        let indices = [number(index.0), number(a.0), number(b.0)].concat();
        assert_eq!(made, [&number(0)[..], &indices].concat());
        let refused = asker.ask("pipe_create", &create(1, 5)).pop().unwrap();
        assert_eq!(refused[..4], Retval::INVALID_REGISTRATION.0.to_be_bytes());
        assert_eq!(asker.ask("pipe_dump", &[]), [[&indices[..], &number(5)].concat()]);
        let port = world.ports[0].index().0;
        assert_eq!(asker.retval("pipe_delete", &number(port)), Retval::INVALID_SW_IF_INDEX);
        assert_eq!(asker.retval("pipe_delete", &number(99)), Retval::INVALID_SW_IF_INDEX);
        assert_eq!(asker.retval("pipe_delete", &number(index.0)), Retval(0));
        assert!(asker.ask("pipe_dump", &[]).is_empty());
    }
    random_bytes_do_no_harm(&mut world.router, &[&API], 200);
}

#[test]
fn every_node_stands_rubbish() {
    let mut world = World::new();
    let (switched, routed) = (world.pipe(), world.pipe());
    world.connect(world.ports[0].index(), switched.ends[0]);
    for (n, end) in routed.ends.into_iter().enumerate() {
        let address = format!("10.0.{n}.1/24").parse().unwrap();
        world.router.get::<Ip4>().add_address(end, address).unwrap();
    }
    world.router.may_hold(4096);
    fuzz_all_nodes(&mut world.router, Rng::seed(6), 1_500);
    world.router.advance(Duration::from_mins(1));
    world.router.may_hold(0);
    world.ports.iter().for_each(|port| drop(port.received()));
}
