//! TAPs against the real kernel, their host side in network namespaces of the test's own.
// The test allowances of clippy.toml cover #[test] functions only, not the helpers beside them.
#![allow(clippy::unwrap_used, clippy::expect_used, clippy::panic, clippy::indexing_slicing)]

use crate::support;

use std::io::{Read, Write};
use std::net::{SocketAddrV4, TcpListener, TcpStream};
use std::os::fd::AsRawFd;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use nix::poll::{PollFd, PollFlags, PollTimeout, poll};
use nix::sys::socket::{
    AddressFamily, MsgFlags, SockFlag, SockProtocol, SockType, SockaddrIn, recv, sendto, setsockopt, socket,
    sockopt,
};
use nix::sys::time::TimeVal;
use shoal_tap::*;
use shoal_vnet::{Sum, VnetHdr};
use support::*;

/// What is dropped goes at once, unless another test starts a process just then: that has the queues open, too, until it
/// runs its program.
const PATIENCE: Duration = Duration::from_secs(10);
const OUR_MAC: [u8; 6] = [2, 0, 0, 0, 0, 0xfe];

fn config(ns: &Namespace, name: &str, address: &str) -> TapConfig {
    let host = HostConfig {
        netns: Some(NetnsRef::Name(ns.name().to_owned())),
        addresses: vec![Address { addr: address.parse().unwrap(), prefix_len: 24 }],
        ..HostConfig::default()
    };
    TapConfig { name: Some(name.into()), host, ..TapConfig::default() }
}

/// A TAP whose name was in use a moment ago.
fn created(config: &TapConfig) -> Result<(Tap, Vec<TapQueue>), Error> {
    let mut last = Tap::create(config);
    wait_for(PATIENCE, || {
        if matches!(last, Err(Error::Exists { .. })) {
            last = Tap::create(config);
        }
        !matches!(last, Err(Error::Exists { .. }))
    });
    last
}

fn wait_readable(queues: &[&TapQueue], ms: u16) {
    let mut fds: Vec<_> = queues.iter().map(|q| PollFd::new(q.fd(), PollFlags::POLLIN)).collect();
    poll(&mut fds, PollTimeout::from(ms)).unwrap();
}

fn output(command: &str) -> String {
    let out = std::process::Command::new("sh").args(["-c", command]).output().unwrap();
    String::from_utf8(out.stdout).unwrap()
}

/// Turns an ARP request or an echo request into its answer; false for anything else.
fn answer(f: &mut [u8]) -> bool {
    let reply_to: [u8; 6] = f[6..12].try_into().unwrap();
    if f[12..14] == [8, 6] && f[20..22] == [0, 1] {
        f[21] = 2;
        let (sender, target): ([u8; 10], [u8; 4]) =
            (f[22..32].try_into().unwrap(), f[38..42].try_into().unwrap());
        f[32..42].copy_from_slice(&sender);
        f[22..28].copy_from_slice(&OUR_MAC);
        f[28..32].copy_from_slice(&target);
    } else if f[12..14] == [8, 0] && f[23] == 1 && f[34] == 8 {
        let (from, to): ([u8; 4], [u8; 4]) = (f[26..30].try_into().unwrap(), f[30..34].try_into().unwrap());
        f[26..30].copy_from_slice(&to);
        f[30..34].copy_from_slice(&from);
        f[34] = 0;
        f[36..38].fill(0);
        let mut sum = Sum::default();
        sum.add(&f[34..]);
        let value = sum.finish().to_be_bytes();
        f[36..38].copy_from_slice(&value);
    } else {
        return false;
    }
    f[..6].copy_from_slice(&reply_to);
    f[6..12].copy_from_slice(&OUR_MAC);
    true
}

/// Answers on all queues until told to stop; echo requests answered.
fn responder(mut queues: Vec<TapQueue>, stop: Arc<AtomicBool>) -> usize {
    let (mut a, mut b) = ([0u8; 100], vec![0u8; 70_000]);
    let mut echoes = 0;
    while !stop.load(Ordering::Relaxed) {
        wait_readable(&queues.iter().collect::<Vec<_>>(), 20);
        for queue in &mut queues {
            while let Ok(got) = queue.recv([&mut a[..], &mut b[..]]) {
                assert!(!got.truncated);
                let mut frame = [&a[..], &b[..]].concat();
                frame.truncate(got.len);
                if answer(&mut frame) {
                    echoes += usize::from(frame[12..14] == [8, 0]);
                    queue.send(VnetHdr::default(), frame.chunks(33)).unwrap();
                }
            }
        }
    }
    echoes
}

/// Sends an echo request from this thread's namespace; whether the answer came with the same payload.
fn ping(to: &str, len: usize) -> bool {
    let fd = socket(AddressFamily::Inet, SockType::Raw, SockFlag::empty(), SockProtocol::Icmp).unwrap();
    setsockopt(&fd, sockopt::ReceiveTimeout, &TimeVal::new(2, 0)).unwrap();
    let mut echo = vec![8, 0, 0, 0, 0x12, 0x34, 0, 1];
    echo.extend((0..len).map(|i| i as u8));
    let mut sum = Sum::default();
    sum.add(&echo);
    echo[2..4].copy_from_slice(&sum.finish().to_be_bytes());
    let to = SockaddrIn::from(SocketAddrV4::new(to.parse().unwrap(), 0));
    sendto(fd.as_raw_fd(), &echo, &to, MsgFlags::empty()).unwrap();
    let mut buf = [0; 2000];
    while let Ok(n) = recv(fd.as_raw_fd(), &mut buf, MsgFlags::empty()) {
        if buf[20] == 0 {
            return buf[24..n] == echo[4..];
        }
    }
    false
}

#[test]
fn the_host_pings_a_responder_behind_the_tap() {
    if !can_run("the_host_pings_a_responder_behind_the_tap") {
        return;
    }
    let ns = Namespace::new("ping").unwrap();
    let (_tap, queues) = Tap::create(&TapConfig { queues: 2, ..config(&ns, "tap7", "10.3.0.1") }).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let thread = std::thread::spawn({
        let stop = stop.clone();
        move || responder(queues, stop)
    });
    for len in [0, 1, 56, 1472] {
        assert!(ns.inside(move || ping("10.3.0.2", len)), "{len} bytes");
    }
    stop.store(true, Ordering::Relaxed);
    assert_eq!(thread.join().unwrap(), 4);
}

#[test]
fn host_settings_are_applied_and_undone_with_the_tap() {
    if !can_run("host_settings_are_applied_and_undone_with_the_tap") {
        return;
    }
    let ns = Namespace::new("host").unwrap();
    ns.ip("link add br0 type bridge");
    let mut config = config(&ns, "tap8", "10.4.0.1");
    config.host.mac = Some([2, 1, 2, 3, 4, 5]);
    config.host.mtu = Some(1400);
    config.host.ip4_gateway = Some("10.4.0.254".parse().unwrap());
    config.host.addresses.push(Address { addr: "fd00:4::1".parse().unwrap(), prefix_len: 64 });
    config.host.ip6_gateway = Some("fd00:4::fe".parse().unwrap());
    let (tap, mut queues) = Tap::create(&config).unwrap();
    assert_eq!(tap.name(), "tap8");
    let show = |what: &str| output(&format!("ip -n {} {what}", ns.name()));
    let link = show("link show tap8");
    assert!(
        link.contains("02:01:02:03:04:05") && link.contains("mtu 1400") && link.contains("LOWER_UP"),
        "{link}"
    );
    assert!(show("addr show tap8").contains("10.4.0.1/24"));
    assert!(show("-6 addr show tap8").contains("fd00:4::1/64"));
    assert!(show("route").contains("default via 10.4.0.254 dev tap8"));
    assert!(show("-6 route").contains("default via fd00:4::fe dev tap8"));

    tap.set_carrier(Carrier::Off).unwrap();
    assert!(show("link show tap8").contains("NO-CARRIER"));
    tap.set_carrier(Carrier::On).unwrap();
    assert!(show("link show tap8").contains("LOWER_UP"));

    drop(tap);
    assert!(wait_for(PATIENCE, || show("link show tap8").is_empty()));
    assert!(!show("route").contains("default"));
    // The queues outlive it and say so.
    let mut buf = [0; 100];
    assert!(wait_for(PATIENCE, || queues[0].recv([&mut buf[..]]) == Err(RecvError::Gone)));
    assert_eq!(queues[0].send(VnetHdr::default(), [&[0u8; 60][..]]), Err(SendError::Gone));

    let mut config = self::config(&ns, "tap9", "10.4.1.1");
    config.host.bridge = Some("br0".into());
    let (_tap, _queues) = Tap::create(&config).unwrap();
    assert!(show("link show tap9").contains("master br0"));
}

#[test]
fn a_tap_that_cannot_be_finished_leaves_nothing_behind() {
    if !can_run("a_tap_that_cannot_be_finished_leaves_nothing_behind") {
        return;
    }
    let ns = Namespace::new("undo").unwrap();
    let mut config = config(&ns, "tap6", "10.5.0.1");
    config.host.bridge = Some("nosuch".into());
    assert!(matches!(Tap::create(&config), Err(Error::NoInterface { name }) if name == "nosuch"));
    config.host.bridge = None;
    config.host.ip4_gateway = Some("192.0.2.1".parse().unwrap()); // not reachable over the address
    let error = created(&config).err().unwrap();
    let no_route = matches!(error, Error::Link(shoal_link::Error::Os { what: "RTM_NEWROUTE(default)", .. }));
    assert!(no_route, "{error:?}");
    let left = || output(&format!("ip -n {} link show tap6 2>/dev/null", ns.name()));
    assert!(wait_for(PATIENCE, || left().is_empty()), "{}", left());
    config.host.netns = Some(NetnsRef::Name("shoal-test-nosuch".into()));
    assert!(matches!(Tap::create(&config), Err(Error::Netns { .. })));
}

#[test]
fn a_name_in_use_is_refused_unless_persistent() {
    if !can_run("a_name_in_use_is_refused_unless_persistent") {
        return;
    }
    let ns = Namespace::new("exists").unwrap();
    let config = config(&ns, "tap5", "10.6.0.1");
    let (first, _queues) = Tap::create(&config).unwrap();
    assert!(matches!(Tap::create(&config), Err(Error::Exists { name }) if name == "tap5"));
    drop(first);
    let lasting = TapConfig { lifetime: Lifetime::Persistent, ..config };
    for _ in 0..2 {
        let (tap, queues) = created(&lasting).unwrap();
        drop((tap, queues));
        assert!(output(&format!("ip -n {} addr show tap5", ns.name())).contains("10.6.0.1/24"));
    }
}

#[test]
fn the_kernel_numbers_unnamed_taps_and_queues_can_be_added() {
    if !can_run("the_kernel_numbers_unnamed_taps_and_queues_can_be_added") {
        return;
    }
    let ns = Namespace::new("number").unwrap();
    let unnamed = TapConfig { name: None, ..config(&ns, "", "10.7.0.1") };
    let (a, _qa) = Tap::create(&unnamed).unwrap();
    let mut second = unnamed.clone();
    second.host.addresses.clear();
    let (b, _qb) = Tap::create(&second).unwrap();
    assert_eq!((a.name(), b.name()), ("tap0", "tap1"));
    let _more = a.add_queue().unwrap();
    let (tun, _qt) = Tap::create(&TapConfig { mode: Mode::Tun, ..second }).unwrap();
    assert_eq!(tun.name(), "tun0");
}

#[test]
fn a_namespace_whose_name_is_removed_first_is_still_cleaned_up() {
    if !can_run("a_namespace_whose_name_is_removed_first_is_still_cleaned_up") {
        return;
    }
    let ns = Namespace::new("dies").unwrap();
    let (tap, mut queues) = Tap::create(&config(&ns, "tap4", "10.8.0.1")).unwrap();
    drop(ns);
    let mut buf = [0; 2000];
    while queues[0].recv([&mut buf[..]]).is_ok() {}
    let _more = tap.add_queue().unwrap();
    drop(tap);
    assert!(wait_for(PATIENCE, || queues[0].recv([&mut buf[..]]) == Err(RecvError::Gone)));
}

#[test]
fn tcp_between_two_taps_crosses_as_superframes_with_the_right_bytes() {
    if !can_run("tcp_between_two_taps_crosses_as_superframes_with_the_right_bytes") {
        return;
    }
    const BYTES: usize = 100 << 20;
    let (left, right) = (Namespace::new("left").unwrap(), Namespace::new("right").unwrap());
    let (_ta, mut qa) = Tap::create(&config(&left, "tap0", "10.9.0.1")).unwrap();
    let (_tb, mut qb) = Tap::create(&config(&right, "tap0", "10.9.0.2")).unwrap();
    let stop = Arc::new(AtomicBool::new(false));
    let forwarder = std::thread::spawn({
        let stop = stop.clone();
        move || {
            let (mut a, mut b) = (qa.remove(0), qb.remove(0));
            let mut chain = vec![[0u8; 2048]; 33];
            let mut superframes = 0;
            while !stop.load(Ordering::Relaxed) {
                wait_readable(&[&a, &b], 20);
                for (from, to) in [(&mut a, &mut b) as (&mut TapQueue, &mut TapQueue)] {
                    for _ in 0..2 {
                        while let Ok(got) = from.recv(chain.iter_mut().map(|s| &mut s[..])) {
                            let flat = chain.concat();
                            let offload = got.vnet.validate(&[&flat[..got.len]]).unwrap();
                            superframes += usize::from(offload.gso.is_some());
                            to.send(offload.into(), flat[..got.len].chunks(2048)).ok();
                        }
                        std::mem::swap(from, to);
                    }
                }
            }
            superframes
        }
    });
    let byte = |i: usize| (i.wrapping_mul(2_654_435_761) >> 13) as u8;
    let listener = right.inside(|| TcpListener::bind("10.9.0.2:7000").unwrap());
    let server = std::thread::spawn(move || {
        let (mut peer, mut data) = (listener.accept().unwrap().0, Vec::with_capacity(BYTES));
        peer.read_to_end(&mut data).unwrap();
        let wrong = data.iter().enumerate().filter(|(i, b)| **b != byte(*i)).count();
        (data.len(), wrong)
    });
    let mut client = left.inside(|| TcpStream::connect("10.9.0.2:7000").unwrap());
    let data: Vec<u8> = (0..BYTES).map(byte).collect();
    client.write_all(&data).unwrap();
    drop(client);
    assert_eq!(server.join().unwrap(), (BYTES, 0));
    stop.store(true, Ordering::Relaxed);
    let superframes = forwarder.join().unwrap();
    assert!(superframes > 100, "{superframes}");
}
