//! Trials that really send and receive, over a memif whose two ends are in this process. Counts are asserted, never speed.
#![allow(clippy::unwrap_used, clippy::indexing_slicing)]

use crate::support;

use std::path::Path;

use shoal_lab_engine::{Clock as _, Engine, MachineClock, MemifPort, SelfTest, Transport as _, self_test};
use shoal_lab_plan::*;
use support::*;

fn engine() -> Engine<MemifPort, MachineClock> {
    let [left, right] = MemifPort::pair().unwrap();
    Engine::new(left, right, MachineClock::calibrated())
}

fn quick(mut trial: Trial) -> Trial {
    trial.timeout = ms(300);
    trial.start_delay = ms(20);
    trial
}

#[test]
fn all_frames_of_a_second_arrive_at_odd_rates_and_sizes() {
    let mut engine = engine();
    for (id, (fps, size)) in [(997, 64), (20_011, 1518), (50_021, 84), (3_001, 9000)].into_iter().enumerate()
    {
        let mut trial = quick(trial(id as u16 + 1, both(size, fps), ms(1000)));
        trial.streams.iter_mut().for_each(|s| s.stamps = Stamps::All);
        let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
        for stream in &outcome.streams {
            let counts = stream.counts;
            let wanted = Counts {
                requested: fps,
                sent: fps,
                received: fps,
                bytes: fps * size as u64,
                retries: counts.retries,
                ..Counts::default()
            };
            assert_eq!(counts, wanted, "{fps} of {size}");
            let delays = stream.delays.as_ref().unwrap();
            assert_eq!((delays.count, delays.negative), (fps, 0));
            assert!(delays.min > 0 && delays.min <= delays.max);
            assert_eq!(delays.histogram.iter().map(|(_, n)| n).sum::<u64>(), fps);
            assert_eq!(delays.variation.iter().map(|(_, n)| n).sum::<u64>(), fps - 1);
        }
        assert_eq!(outcome.ports, [Tally::default(); 2]);
        assert!(outcome.took <= std::time::Duration::from_secs(30) && outcome.planned == ms(1000));
    }
    let check = engine.clock_check();
    assert!(check.span > 1_000_000_000 && check.ppm.abs() < 50.0, "{check:?}");
}

#[test]
fn a_rate_that_nobody_can_send_ends_in_time_and_is_the_testers_limit() {
    let mut engine = engine();
    let mut trial = quick(trial(1, both(64, 500_000_000), ms(20)));
    trial.verify = Verify::Some;
    let outcome = engine.trial(&trial, &mut Unwatched).unwrap();
    let counts = outcome.streams[0].counts;
    assert!(counts.sent < counts.requested && counts.received == counts.sent, "{counts:?}");
    assert!(matches!(Verdict::of(&trial, &outcome, 2048), Verdict::TesterLimit(_)));
}

#[test]
fn a_peer_that_goes_away_in_the_middle_is_told() {
    let [left, right] = MemifPort::pair().unwrap();
    let clock = MachineClock::calibrated();
    drop(right);
    let [other, _kept] = MemifPort::pair().unwrap();
    let mut engine = Engine::new(left, other, clock);
    let trial = quick(trial(1, vec![stream(Side::Left, 64, 1000)], ms(300)));
    let error = Tester::run(&mut engine, &trial, &mut Unwatched).unwrap_err().to_string();
    assert!(error.contains("memif pair, slave") && error.contains("gone"), "{error}");
}

#[test]
fn a_socket_without_a_master_is_an_error_with_its_name() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("none.sock");
    let error = MemifPort::attach(&socket, 0).map(drop).unwrap_err().to_string();
    assert!(error.contains("none.sock"), "{error}");
    assert!(MemifPort::attach(Path::new(&"x".repeat(200)), 0).is_err());
}

/// A socket that slaves connect to.
fn listen(path: &Path) -> std::os::fd::OwnedFd {
    use rustix::net::{AddressFamily, SocketAddrUnix, SocketType, bind, listen, socket};
    let _ = std::fs::remove_file(path);
    let socket = socket(AddressFamily::UNIX, SocketType::SEQPACKET, None).unwrap();
    bind(&socket, &SocketAddrUnix::new(path).unwrap()).unwrap();
    listen(&socket, 4).unwrap();
    socket
}

/// A trial of 1.5 s with a device that forwards nothing, goes away after 0.1 s, and is back 0.4 s later.
fn through_a_reset() -> Outcome {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("device.sock");
    let (stop, stopped) = std::sync::mpsc::channel::<()>();
    let (tell, told) = std::sync::mpsc::channel();
    let path = socket.clone();
    let device = std::thread::spawn(move || {
        let listening = listen(&path);
        tell.send("listens").unwrap();
        let port = MemifPort::serve(rustix::net::accept(&listening).unwrap(), 3).unwrap();
        stopped.recv().unwrap();
        drop((port, listening));
        tell.send("is gone").unwrap();
        // Longer than the tester takes to see it: where it is back before, no frame meets an unplugged cable.
        std::thread::sleep(ms(400));
        let listening = listen(&path);
        let port = MemifPort::serve(rustix::net::accept(&listening).unwrap(), 3).unwrap();
        stopped.recv().unwrap();
        drop(port);
    });
    assert_eq!(told.recv().unwrap(), "listens");
    let left = MemifPort::attach(&socket, 3).unwrap();
    let [right, _kept] = MemifPort::pair().unwrap();
    struct Resetter {
        stop: std::sync::mpsc::Sender<()>,
        told: std::sync::mpsc::Receiver<&'static str>,
        done: bool,
    }
    impl Watch for Resetter {
        fn progress(&mut self, so_far: &Sample) -> bool {
            if so_far.at > ms(100) && !std::mem::replace(&mut self.done, true) {
                self.stop.send(()).unwrap();
                assert_eq!(self.told.recv().unwrap(), "is gone");
            }
            true
        }
    }
    let mut engine = Engine::new(left, right, MachineClock::calibrated());
    let trial = quick(trial(1, vec![stream(Side::Left, 64, 1000)], ms(1500)));
    let mut watch = Resetter { stop, told, done: false };
    let outcome = engine.trial(&trial, &mut watch).unwrap();
    watch.stop.send(()).unwrap();
    device.join().unwrap();
    outcome
}

#[test]
fn a_device_that_begins_anew_is_attached_to_again_and_the_time_between_is_loss() {
    // The port is looked at each 0.1 s: a machine that holds the tester up for longer can hide the time between.
    let outcome = (0..10).map(|_| through_a_reset()).find(|outcome| outcome.longest_stall < ms(200));
    let counts = outcome.expect("ten trials, each held up by the machine for 0.2 s").streams[0].counts;
    assert_eq!((counts.sent, counts.received), (1500, 0));
    assert!(counts.lost_sending > 0 && counts.lost_sending < 1400, "{counts:?}");
}

#[test]
fn a_master_that_never_answers_is_told_of() {
    let folder = tempfile::tempdir().unwrap();
    let socket = folder.path().join("mute.sock");
    let _listening = listen(&socket);
    let error = MemifPort::attach(&socket, 0).map(drop).unwrap_err().to_string();
    assert!(error.contains("not answered for 3 s, where hello"), "{error}");
}

#[test]
fn the_self_test_finds_a_ceiling_and_a_floor() {
    let mut engine = engine();
    let mut test = SelfTest::quick(both(64, 1));
    (test.duration, test.error, test.most) = (ms(50), 0.2, 1_000_000);
    let ceiling = self_test(&mut engine, &test, &mut Unwatched).unwrap();
    assert!(ceiling.rate > 0 && ceiling.trials >= 2, "{ceiling:?}");
    assert_eq!(ceiling.floor.len(), 2);
    assert!(ceiling.floor.iter().all(|d| d.min > 0 && d.count > 0));
}

#[test]
fn the_clock_of_an_engine_goes_on() {
    let clock = MachineClock::calibrated();
    let before = clock.now();
    assert_eq!(clock.idle_until(before + 1_000_000_000), 0);
    let [left, _right] = MemifPort::pair().unwrap();
    assert_eq!((left.kind(), left.ring()), ("memif", 2048));
    assert!(clock.now() > before);
}
