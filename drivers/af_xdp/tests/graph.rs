//! The driver in a router: two hosts in namespaces of their own, AF_XDP interfaces between them.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use shoal_af_xdp::{BusyPoll, Copying, CreateXdp, PacketMemory, Queues, XdpMode};
use shoal_interface::{IfFlags, MtuLayer};
use support::hosts::{Hosts, PATIENCE};
use support::*;

fn plain() -> CreateXdp {
    CreateXdp::default()
}

/// With buffers, or memory of the queues' own; the tag that its namespaces get, and what is shown.
const MEMORIES: [(PacketMemory, char, &str); 2] =
    [(PacketMemory::Pool, 'l', "pool"), (PacketMemory::Own, 'o', "own")];

fn named(name: &str) -> CreateXdp {
    CreateXdp { host_if: name.into(), ..plain() }
}

#[test]
fn hosts_ping_each_other_through_two_interfaces() {
    if !can_run("hosts_ping_each_other_through_two_interfaces") {
        return;
    }
    for (memory, tag, shown) in MEMORIES {
        let hosts = Hosts::new(&format!("p{tag}"));
        let router = start(&hosts.r);
        let like = CreateXdp { memory, ..plain() };
        let [a, b] = router.on(move |r| connect(r, ["ra", "rb"], &like));
        assert!(hosts.reach_each_other());
        assert!(hosts.ping(100) && hosts.ping6(100));
        let (ca, cb, errors, info) = router
            .on(move |r| (r.counts(a), r.counts(b), r.errors(), xdps(r).list(Some(a)).unwrap().remove(0)));
        println!("{ca:?} {cb:?} {errors:?} {info:?}");
        assert!(ca.0 >= 201 && ca.1 >= 201 && ca.0 == cb.1, "{ca:?} {cb:?}");
        assert_eq!((info.mode, info.zero_copy, info.malformed), (Some(XdpMode::Native), false, 0));
        assert_eq!((info.queues, info.name.as_str(), info.memory), (2, "ra/0", shown));
        assert!(errors.is_empty(), "{errors:?}");
        router.end();
    }
}

#[test]
fn local_tcp_with_open_checksums_arrives_in_every_way_of_working() {
    if !can_run("local_tcp_with_open_checksums_arrives_in_every_way_of_working") {
        return;
    }
    let small = CreateXdp { rx_size: Some(64), tx_size: Some(64), copying: Copying::Copy, ..plain() };
    let busy = CreateXdp { busy_poll: Some(BusyPoll { usecs: 20, budget: 64 }), ..plain() };
    let own = CreateXdp { memory: PacketMemory::Own, ..plain() };
    let small_own = CreateXdp { memory: PacketMemory::Own, ..small.clone() };
    for (tag, like) in [("t", plain()), ("s", small), ("y", busy), ("v", own), ("z", small_own)] {
        let hosts = Hosts::new(tag);
        let router = start(&hosts.r);
        let [a, b] = router.on(move |r| connect(r, ["ra", "rb"], &like));
        assert!(hosts.reach_each_other());
        let rate = tcp(&hosts.a, &hosts.b, "10.9.0.2:7000", 20 << 20);
        let rate6 = tcp(&hosts.a, &hosts.b, "[2001:db8:9::2]:7000", 20 << 20);
        let (ca, cb, errors) = router.on(move |r| (r.counts(a), r.counts(b), r.errors()));
        println!("{tag}: {rate:.0} and {rate6:.0} Mb/s {ca:?} {cb:?} {errors:?}");
        assert!(errors.iter().all(|(_, what, _)| *what == "transmit ring full"), "{errors:?}");
        router.end();
    }
}

#[test]
fn a_driver_that_cannot_is_used_in_generic_mode() {
    if !can_run("a_driver_that_cannot_is_used_in_generic_mode") {
        return;
    }
    for (memory, tag, shown) in MEMORIES {
        let hosts = Hosts::new(&format!("k{tag}"));
        // A peer whose MTU is too large for the driver's XDP: the kernel says so, and generic mode takes it.
        hosts.a.ip("link set eth0 mtu 9000");
        hosts.b.ip("link set eth0 mtu 9000");
        for ns in [&hosts.a, &hosts.b] {
            // Superframes are the driver's business, and in generic mode there is none.
            ns.run(&["ethtool", "-K", "eth0", "tso", "off", "gso", "off"]).unwrap();
            ns.ip("route add 10.9.9.0/24 dev eth0");
            ns.run(&["sysctl", "-qw", "net.ipv4.tcp_mtu_probing=0"]).unwrap();
            ns.ip("route replace 10.9.0.0/24 dev eth0 mtu 1500");
            ns.ip("route replace 2001:db8:9::/64 dev eth0 mtu 1500");
        }
        let router = start(&hosts.r);
        let like = CreateXdp { memory, ..plain() };
        let [a, _] = router.on(move |r| connect(r, ["ra", "rb"], &like));
        let info = router.on(move |r| xdps(r).list(Some(a)).unwrap().remove(0));
        assert_eq!((info.mode, info.zero_copy, info.memory), (Some(XdpMode::Generic), false, shown));
        assert!(hosts.reach_each_other() && hosts.ping(50));
        let rate = tcp(&hosts.a, &hosts.b, "10.9.0.2:7000", 10 << 20);
        println!("{rate:.0} Mb/s in generic mode");
        router.end();
    }
}

#[test]
fn jumbo_frames_come_in_several_chunks() {
    if !can_run("jumbo_frames_come_in_several_chunks") {
        return;
    }
    for (memory, tag, shown) in MEMORIES {
        let hosts = Hosts::new(&format!("j{tag}"));
        let router = start(&hosts.r);
        let like = CreateXdp { multi_buffer: true, memory, ..plain() };
        let [a, b] = router.on(move |r| connect(r, ["ra", "rb"], &like));
        assert!(hosts.reach_each_other());
        for (ns, end) in [(&hosts.a, "eth0"), (&hosts.b, "eth0"), (&hosts.r, "ra"), (&hosts.r, "rb")] {
            ns.ip(&format!("link set {end} mtu 9000"));
        }
        assert!(wait_for(PATIENCE, || router.on(move |r| r.interfaces.data(b).unwrap().mtu) == 9000));
        for to in ["10.9.0.2", "2001:db8:9::2"] {
            assert!(pings_with(&hosts.a, &["-M", "do", "-s", "8900", "-i", "0.01", "-c", "20", to]), "{to}");
        }
        // Pings are far apart, so none of their chunks finds a ring without room; TCP fills rings, and the kernel drops then.
        let info = router.on(move |r| xdps(r).list(Some(a)).unwrap().remove(0));
        assert_eq!((info.malformed, info.stats.rx_dropped, info.memory), (0, 0, shown));
        let rate = tcp(&hosts.a, &hosts.b, "10.9.0.2:7000", 50 << 20);
        let info = router.on(move |r| xdps(r).list(Some(a)).unwrap().remove(0));
        println!("{rate:.0} Mb/s with MTU 9000, {info:?}");
        assert_eq!(info.malformed, 0);
        router.end();
    }
}

#[test]
fn superframes_come_in_several_chunks_and_are_cut() {
    if !can_run("superframes_come_in_several_chunks_and_are_cut") {
        return;
    }
    for (memory, tag, shown) in MEMORIES {
        let hosts = Hosts::new(&format!("u{tag}"));
        // A driver without XDP, so that its peer goes on sending superframes.
        for end in ["ra", "rb"] {
            hosts.r.ip(&format!("link set {end} name l{end}"));
            hosts.r.ip(&format!("link set l{end} up"));
            hosts.r.ip(&format!("link add link l{end} name {end} type macvlan mode passthru"));
            sh(&format!("ip netns exec {} sysctl -qw net.ipv6.conf.{end}.disable_ipv6=1", hosts.r.name()));
        }
        let router = start(&hosts.r);
        let like = CreateXdp { multi_buffer: true, memory, ..plain() };
        let [a, _] = router.on(move |r| connect(r, ["ra", "rb"], &like));
        let info = router.on(move |r| xdps(r).list(Some(a)).unwrap().remove(0));
        assert_eq!(info.mode, Some(XdpMode::Generic));
        assert!(hosts.reach_each_other());
        for to in ["10.9.0.2:7000", "[2001:db8:9::2]:7000"] {
            let before = router.on(move |r| r.counts(a).0);
            let rate = tcp(&hosts.a, &hosts.b, to, 50 << 20);
            let (frames, errors) = router.on(move |r| (r.counts(a).0, r.errors()));
            let frames = frames - before;
            println!("{rate:.0} Mb/s, frames of {} bytes on average, {errors:?}", (50 << 20) / frames);
            assert!(frames < (50 << 20) / 4000, "superframes, not {frames} frames");
            assert!(errors.iter().all(|(_, what, _)| *what == "transmit ring full"), "{errors:?}");
        }
        let info = router.on(move |r| xdps(r).list(Some(a)).unwrap().remove(0));
        assert_eq!((info.malformed, info.memory), (0, shown));
        router.end();
    }
}

#[test]
fn the_kernels_interface_vanishes_under_traffic_and_comes_back() {
    if !can_run("the_kernels_interface_vanishes_under_traffic_and_comes_back") {
        return;
    }
    let hosts = Hosts::new("g");
    let router = start(&hosts.r);
    let [_, b] = router.on(|r| connect(r, ["ra", "rb"], &plain()));
    router.on(|r| r.graph.add_worker(None).unwrap());
    assert!(hosts.reach_each_other());
    let stop = Arc::new(AtomicBool::new(false));
    let (a, halt) = (hosts.a.name().to_owned(), Arc::clone(&stop));
    let flood = std::thread::spawn(move || {
        while !halt.load(Ordering::Relaxed) {
            let ping = ["netns", "exec", &a, "ping", "-q", "-f", "-c", "2000", "-w", "1", "10.9.0.2"];
            Command::new("ip").args(ping).output().unwrap();
        }
    });
    let is_up = move |router: &Crossing| {
        router.on(move |r| r.interfaces.data(b).unwrap().flags().has(IfFlags::LINK_UP))
    };
    for _ in 0..3 {
        assert!(wait_for(PATIENCE, || is_up(&router)));
        hosts.r.ip("link del rb");
        assert!(wait_for(PATIENCE, || !is_up(&router)));
        hosts.wire(&hosts.b, "rb", "2");
        assert!(wait_for(PATIENCE, || is_up(&router)));
        assert!(hosts.reach_each_other(), "forwards again");
    }
    stop.store(true, Ordering::Relaxed);
    flood.join().unwrap();
    let info = router.on(move |r| r.interfaces.info(b).unwrap());
    println!("{}", info.device);
    assert!(info.device.contains("vanished 3"), "{}", info.device);
    router.end();
}

#[test]
fn queues_move_between_threads_without_losing_a_frame() {
    if !can_run("queues_move_between_threads_without_losing_a_frame") {
        return;
    }
    let hosts = Hosts::new("m");
    let router = start(&hosts.r);
    let [a, b] = router.on(|r| connect(r, ["ra", "rb"], &plain()));
    router.on(|r| {
        r.graph.add_worker(None).unwrap();
        r.graph.add_worker(None).unwrap();
    });
    assert!(hosts.reach_each_other());
    let pings = pings_meanwhile(&hosts.a, 2000, "10.9.0.2");
    let mut moves = 0;
    while !pings.is_finished() {
        router.on(move |r| {
            for queue in 0..2 {
                r.interfaces.place_queue(a, queue, (moves + queue as usize) % 3).unwrap();
                r.interfaces.place_queue(b, queue, (moves + 1) % 3).unwrap();
            }
        });
        moves += 1;
        std::thread::sleep(Duration::from_millis(5));
    }
    let text = pings.join().unwrap();
    let errors = router.on(Inside::errors);
    println!("{moves} moves\n{text}\n{errors:?}");
    assert!(text.contains("2000 received"), "{text}");
    assert!(moves > 50 && errors.is_empty(), "{errors:?}");
    router.end();
}

#[test]
fn queues_come_and_go_while_packets_flow() {
    if !can_run("queues_come_and_go_while_packets_flow") {
        return;
    }
    for (memory, tag, shown) in MEMORIES {
        let hosts = Hosts::new(&format!("q{tag}"));
        let router = start(&hosts.r);
        let like = CreateXdp { memory, ..plain() };
        let [a, _] = router.on(move |r| connect(r, ["ra", "rb"], &like));
        router.on(|r| r.graph.add_worker(None).unwrap());
        assert!(hosts.reach_each_other());
        let used = || router.on(|r| r.graph.pool().stats().used);
        let before = used();
        let resize =
            |queues| router.on(move |r| r.interfaces.set_rx_queues(a, queues).map_err(|e| e.to_string()));
        // The kernel gives a queue back when all its processors have noticed that the socket before is gone: on a busy
        // machine later than the router waits. Then it says so and changes nothing, and the operator tries again.
        let resized = |queues| {
            assert!(wait_for(PATIENCE, || match resize(queues) {
                Err(said) if said.contains("in use by another AF_XDP socket") => false,
                other => other.map(|()| true).unwrap(),
            }));
        };
        // The host sends to the first queue only, so nothing is in the one that comes and goes but what the router sends.
        // Linux takes the carrier away for a moment while it changes them, and the router hears of that.
        hosts.a.run(&["ethtool", "-L", "eth0", "tx", "1"]).unwrap();
        assert!(hosts.reach_each_other());
        let pings = pings_meanwhile(&hosts.a, 2000, "10.9.0.2");
        let mut changes = 0;
        while !pings.is_finished() {
            resized(1 + changes % 2);
            changes += 1;
            std::thread::sleep(Duration::from_millis(20));
        }
        let (text, errors) = (pings.join().unwrap(), router.on(Inside::errors));
        println!("{changes} changes, {before} buffers used before, {} after\n{text}{errors:?}", used());
        assert!(changes > 20 && text.contains("2000 received") && errors.is_empty());
        for queues in [1, 2, 1, 2] {
            resized(queues);
            let there = router.on(move |r| {
                let info = xdps(r).list(Some(a)).unwrap().remove(0);
                (r.interfaces.queues(a).unwrap().len(), info.queues, info.memory)
            });
            assert_eq!(there, (queues as usize, queues as usize, shown));
        }
        let (said, made) =
            (resize(3).unwrap_err(), router.on(move |r| r.interfaces.queues(a).unwrap().len()));
        assert!(said.contains("'ra' has 2 queues, not 3") && made == 2, "{said}");
        for wrong in [0, 65] {
            assert!(resize(wrong).unwrap_err().contains("from 1 to 64"));
        }
        hosts.a.run(&["ethtool", "-L", "eth0", "tx", "2"]).unwrap();
        assert!(hosts.reach_each_other(), "two queues again");
        // With the carrier, Linux begins its addresses and neighbours again, which takes it seconds on a busy machine.
        assert!(wait_for(PATIENCE, || hosts.ping(100) && hosts.ping6(100)), "two queues again");
        tcp(&hosts.a, &hosts.b, "10.9.0.2:7000", 10 << 20);
        // Buffers of the queues that went are back: a ring's worth of each would be missing.
        assert!(wait_for(PATIENCE, || used() < before + 1024), "{before} used before, {} after", used());
        hosts.r.ip("link del ra");
        assert!(wait_for(PATIENCE, || resize(1).is_err_and(|e| e.contains("'ra' is gone"))));
        router.end();
    }
}

#[test]
fn state_and_mtu_follow_the_kernel_and_down_leaves_the_port_to_the_host() {
    if !can_run("state_and_mtu_follow_the_kernel_and_down_leaves_the_port_to_the_host") {
        return;
    }
    let hosts = Hosts::new("s");
    let router = start(&hosts.r);
    let [a, _] = router.on(|r| connect(r, ["ra", "rb"], &plain()));
    let data = move || router.on(move |r| *Box::new(r.interfaces.data(a).unwrap()));
    let up = || data().flags().has(IfFlags::LINK_UP);
    assert!(wait_for(PATIENCE, up));
    hosts.a.ip("link set eth0 down");
    assert!(wait_for(PATIENCE, || !up()), "no carrier");
    hosts.a.ip("link set eth0 up");
    assert!(wait_for(PATIENCE, up));
    hosts.r.ip("link set ra mtu 1400");
    assert!(wait_for(PATIENCE, || data().mtu == 1400));
    hosts.r.ip("link set ra name rx");
    hosts.a.ip("link set eth0 down");
    assert!(wait_for(PATIENCE, || !up()), "followed under its new name");
}

#[test]
fn down_leaves_the_port_to_the_host() {
    if !can_run("down_leaves_the_port_to_the_host") {
        return;
    }
    let hosts = Hosts::new("o");
    hosts.r.ip("address add 10.9.0.9/24 dev ra");
    hosts.r.ip("link set ra up");
    let router = start(&hosts.r);
    let reach = || pings(&hosts.a, 3, "10.9.0.9");
    assert!(wait_for(PATIENCE, reach));
    let a = router.on(|r| xdps(r).create(&named("ra")).unwrap());
    assert!(reach(), "made, but not up");
    router.on(move |r| r.interfaces.set_admin(a, true).unwrap());
    assert!(!reach(), "no pinhole");
    router.on(move |r| r.interfaces.set_admin(a, false).unwrap());
    assert!(reach(), "down, and the kernel's interface still up");
    router.on(move |r| {
        r.interfaces.set_admin(a, true).unwrap();
        xdps(r).set_pinhole(a, &"host".parse().unwrap(), false).unwrap();
    });
    assert!(reach(), "a pinhole, while it is up");
    router.on(move |r| xdps(r).delete(a).unwrap());
    assert!(reach());
    router.end();
}

#[test]
fn the_pinhole_follows_the_kernels_addresses() {
    if !can_run("the_pinhole_follows_the_kernels_addresses") {
        return;
    }
    let hosts = Hosts::new("f");
    let router = start(&hosts.r);
    let [a, _] = router.on(|r| {
        let like = CreateXdp { pinhole: "host".parse().unwrap(), ..plain() };
        connect(r, ["ra", "rb"], &like)
    });
    let reach = || pings(&hosts.a, 3, "10.9.0.8");
    assert!(!reach());
    hosts.r.ip("address add 10.9.0.8/24 dev ra");
    assert!(wait_for(PATIENCE, reach));
    let info = router.on(move |r| xdps(r).list(Some(a)).unwrap().remove(0));
    assert!(info.addresses.contains(&"10.9.0.8".parse().unwrap()) && info.counts.passed > 0, "{info:?}");
    hosts.r.ip("address del 10.9.0.8/24 dev ra");
    let gone = || router.on(move |r| xdps(r).list(Some(a)).unwrap().remove(0).addresses.is_empty());
    assert!(wait_for(PATIENCE, gone));
    router.end();
}

#[test]
fn wrong_requests_are_refused_and_leave_nothing() {
    if !can_run("wrong_requests_are_refused_and_leave_nothing") {
        return;
    }
    let hosts = Hosts::new("e");
    let router = start(&hosts.r);
    let ask =
        |create: CreateXdp| router.on(move |r| xdps(r).create(&create).map(drop).map_err(|e| e.to_string()));
    assert_eq!(
        ask(named("rc")).unwrap_err(),
        "no interface 'rc' in this network namespace, did you mean 'ra'?"
    );
    let queues = |n| CreateXdp { queues: Queues::Count(n), ..named("ra") };
    assert_eq!(ask(queues(0)).unwrap_err(), "number of receive queues is 0, must be from 1 to 64, or all");
    let three = "'ra' has 2 queues, not 3: ask for up to 2, or let it have more (ethtool -L)";
    assert_eq!(ask(queues(3)).unwrap_err(), three);
    let ring = CreateXdp { rx_size: Some(1000), ..named("ra") };
    assert_eq!(ask(ring).unwrap_err(), "rx-queue-size is 1000, must be a power of two from 64 to 16384");
    let zero_copy = CreateXdp { copying: Copying::ZeroCopy, ..named("ra") };
    assert_eq!(
        ask(zero_copy).unwrap_err(),
        "the driver of 'ra' cannot do zero-copy: leave the word away, or say no-zero-copy"
    );
    let prog = CreateXdp { prog: Some("/x.o".into()), ..named("ra") };
    assert!(ask(prog).unwrap_err().starts_with("'prog /x.o': the router brings its own"));
    let netns = CreateXdp { netns: Some("nosuch".into()), ..named("ra") };
    assert_eq!(ask(netns).unwrap_err(), "network namespace 'nosuch': No such file or directory (os error 2)");
    hosts.r.ip("link set ra mtu 9000");
    assert_eq!(
        ask(named("ra")).unwrap_err(),
        "MTU of 'ra' is 9000, AF_XDP takes up to 3818: `ip link set dev ra mtu 3818', or add `multi-buffer'"
    );
    let pool = CreateXdp { memory: PacketMemory::Pool, ..named("ra") };
    assert!(ask(pool.clone()).unwrap_err().contains("AF_XDP takes up to 2026"));
    hosts.r.ip("link set ra mtu 1500");
    let greedy = CreateXdp { rx_size: Some(8192), ..pool };
    let why = ask(greedy).unwrap_err();
    assert!(
        why.starts_with("the router's buffers cannot be shared with the kernel: 8192 buffers are to be lent")
            && why.ends_with("are free; say own-memory, which copies"),
        "{why}"
    );
    hosts.r.ip("link set ra up");
    for (add, del) in [
        ("route add default dev ra", "route del default dev ra"),
        ("address add 10.9.0.9/24 dev ra", "address del 10.9.0.9/24 dev ra"),
    ] {
        hosts.r.ip(add);
        if add.starts_with("route") {
            assert_eq!(
                ask(named("ra")).unwrap_err(),
                "'ra' carries the host's default route: add `pinhole host,dhcp' to share it with the host, or \
                 `force' to take it"
            );
            ask(CreateXdp { force: true, ..named("ra") }).unwrap();
            assert_eq!(
                ask(CreateXdp { force: true, ..named("ra") }).unwrap_err(),
                "the kernel's interface 'ra' is in the router already, as ra/0"
            );
            router.on(|r| xdps(r).delete(xdps(r).named("ra").unwrap()).unwrap());
            let shared = CreateXdp { pinhole: "host".parse().unwrap(), ..named("ra") };
            ask(shared).unwrap();
            let none = router.on(|r| {
                let index = xdps(r).named("ra").unwrap();
                xdps(r).set_pinhole(index, &"none".parse().unwrap(), false).map_err(|e| e.to_string())
            });
            assert!(none.unwrap_err().contains("carries the host's default route"));
            router.on(|r| xdps(r).delete(xdps(r).named("ra").unwrap()).unwrap());
        }
        hosts.r.ip(del);
    }
    assert_eq!(router.on(|r| r.interfaces.indices().len()), 1, "only local0");
    ask(named("ra")).unwrap();
    let mtu = router.on(|r| {
        let index = xdps(r).named("ra").unwrap();
        r.interfaces.set_mtu(index, MtuLayer::L3, 9000).map_err(|e| e.to_string())
    });
    let mtu = mtu.unwrap_err();
    assert!(
        mtu.contains("frames of MTU 9000 do not fit, up to 2026 do, more with own-memory or multi-buffer"),
        "{mtu}"
    );
    let others = router.on(|r| {
        let create =
            CreateXdp { pinhole: "others".parse().unwrap(), mac: shoal_af_xdp::Mac::Kernels, ..named("rb") };
        xdps(r).create(&create).map(drop).map_err(|e| e.to_string())
    });
    assert!(others.unwrap_err().starts_with("pinhole rule 'others' needs a MAC address of the router's own"));
    router.end();
}

#[test]
fn what_does_not_fit_buffers_is_copied() {
    if !can_run("what_does_not_fit_buffers_is_copied") {
        return;
    }
    let hosts = Hosts::new("w");
    let router = start(&hosts.r);
    let memory = |index| router.on(move |r| xdps(r).list(Some(index)).unwrap().remove(0).memory);
    let create = |like: CreateXdp| router.on(move |r| xdps(r).create(&like).unwrap());
    hosts.r.ip("link set ra mtu 3000");
    let a = create(named("ra"));
    assert_eq!(memory(a), "own", "its MTU");
    let b = create(CreateXdp { rx_size: Some(4096), ..named("rb") });
    assert_eq!(memory(b), "pool and own", "no buffers left for the second queue");
    let shown = router.on(move |r| r.interfaces.info(b).unwrap().device);
    assert!(shown.contains("packet memory pool and own"), "{shown}");
    router.end();
}

#[test]
fn a_router_with_few_buffers_loses_packets_but_no_buffer() {
    if !can_run("a_router_with_few_buffers_loses_packets_but_no_buffer") {
        return;
    }
    let hosts = Hosts::new("q");
    // Enough to be lent, and next to none for packets.
    let router = Crossing::with_buffers(&hosts.r, &shoal_af_xdp::MODULE, 4 * (256 + 64) + 80);
    let like = CreateXdp { rx_size: Some(256), memory: PacketMemory::Pool, ..plain() };
    let [a, _] = router.on(move |r| connect(r, ["ra", "rb"], &like));
    assert!(hosts.reach_each_other());
    let rate = tcp(&hosts.a, &hosts.b, "10.9.0.2:7000", 5 << 20);
    let (errors, info) = router.on(move |r| (r.errors(), xdps(r).list(Some(a)).unwrap().remove(0)));
    println!("{rate:.0} Mb/s {errors:?} {info:?}");
    assert_eq!((info.malformed, info.memory), (0, "pool"));
    router.end();
}

#[test]
fn an_interface_in_another_namespace_is_taken() {
    if !can_run("an_interface_in_another_namespace_is_taken") {
        return;
    }
    let hosts = Hosts::new("n");
    let elsewhere = Namespace::new("xelse").unwrap();
    let router = start(&elsewhere);
    let like = CreateXdp { netns: Some(hosts.r.name().to_owned()), ..plain() };
    let [_, b] = router.on(move |r| connect(r, ["ra", "rb"], &like));
    assert!(hosts.reach_each_other());
    hosts.r.ip("link del rb");
    let is_up = || router.on(move |r| r.interfaces.data(b).unwrap().flags().has(IfFlags::LINK_UP));
    assert!(wait_for(PATIENCE, || !is_up()));
    hosts.wire(&hosts.b, "rb", "2");
    assert!(hosts.reach_each_other());
    router.end();
}
