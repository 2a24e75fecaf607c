//! Streams made by hand, without the frame crate's builders.
#![allow(dead_code, clippy::unwrap_used, clippy::indexing_slicing)]

use std::path::{Path, PathBuf};
use std::time::Duration;

use shoal_lab_plan::*;
use shoal_testkit::netns::Namespace;

/// UDP over IPv4 from 198.18.0.2 to 198.19.0.2 or the other way, `size` bytes with FCS, with a tag.
pub fn frame(from: Side, size: usize) -> Vec<u8> {
    let length = size - 4;
    let (near, far) = if from == Side::Left { (18, 19) } else { (19, 18) };
    let mut frame = vec![2, 0, 0, 0, 0, 9, 2, 0, 0, 0, 0x5a, near, 8, 0];
    frame.extend([0x45, 0]);
    frame.extend(((length - 14) as u16).to_be_bytes());
    frame.extend([0, 0, 0, 0, 10, 17, 0, 0, 198, near, 0, 2, 198, far, 0, 2]);
    frame.extend([0xc0, 0x20, 0, 7]);
    frame.extend(((length - 34) as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..length - 42).map(|n| n as u8));
    let sum = !fold(frame[14..34].chunks(2).map(word).sum());
    frame[24..26].copy_from_slice(&sum.to_be_bytes());
    let pseudo: u32 = frame[26..34].chunks(2).map(word).sum::<u32>() + 17 + (length - 34) as u32;
    let sum = !fold(pseudo + frame[34..].chunks(2).map(word).sum::<u32>());
    frame[40..42].copy_from_slice(&sum.to_be_bytes());
    frame
}

fn word(bytes: &[u8]) -> u32 {
    u32::from(bytes[0]) << 8 | bytes.get(1).copied().map_or(0, u32::from)
}

fn fold(mut sum: u32) -> u16 {
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// A signed stream at `fps`.
pub fn stream(from: Side, size: usize, fps: u64) -> Stream {
    Stream {
        name: format!("{from:?} {size} B"),
        from,
        frame: frame(from, size),
        changes: Vec::new(),
        checksums: Checksums { ip4: true, l4: true },
        tag: Tag::Signed { offset: 42 },
        pace: Pace::Steady { rate: Rate::per_second(fps), after: Duration::ZERO },
        stamps: Stamps::None,
        expected: true,
        answers: None,
    }
}

/// The same from both sides.
pub fn both(size: usize, fps: u64) -> Vec<Stream> {
    Side::BOTH.map(|side| stream(side, size, fps)).into()
}

/// A field that counts: UDP source ports from 1024, `count` of them.
pub fn ports(order: Order, count: u64) -> Change {
    Change {
        variable: Variable {
            order,
            min: 1024,
            max: 1023 + count,
            first: if order == Order::Falling { 1023 + count } else { 1024 },
            step: 1,
            list: Vec::new(),
            seed: 3,
        },
        writes: vec![Write::whole(34, 2)],
    }
}

pub fn ms(ms: u64) -> Duration {
    Duration::from_millis(ms)
}

/// Looks at everything.
pub fn trial(id: u16, streams: Vec<Stream>, duration: Duration) -> Trial {
    let mut trial = Trial::new(id, streams, duration);
    trial.verify = Verify::All;
    trial
}

/// A namespace, and its file, with a veth pair `left` and `right` on which the kernel says nothing.
pub fn veth(word: &str) -> (Namespace, PathBuf) {
    let namespace = Namespace::new(word).unwrap();
    namespace.ip("link add left type veth peer name right");
    for end in ["left", "right"] {
        namespace.run(&["sysctl", "-qw", &format!("net.ipv6.conf.{end}.disable_ipv6=1")]).unwrap();
        namespace.ip(&format!("link set {end} up"));
    }
    let path = Path::new("/run/netns").join(namespace.name());
    (namespace, path)
}

/// Sends frames of these sizes both ways over joined ports, at rates that any machine keeps: each is to arrive, once.
pub fn all_arrive_of(mut tester: impl Tester, rates_and_sizes: &[(u64, usize)]) {
    for (id, &(fps, size)) in rates_and_sizes.iter().enumerate() {
        let mut trial = trial(id as u16 + 1, both(size, fps), ms(500));
        trial.streams.iter_mut().for_each(|s| s.stamps = Stamps::All);
        (trial.timeout, trial.start_delay) = (ms(300), ms(20));
        let outcome = tester.run(&trial, &mut Unwatched).unwrap();
        for stream in &outcome.streams {
            let Counts { sent, received, duplicates, corrupt, stray, lost_sending, .. } = stream.counts;
            assert_eq!((sent, received, duplicates), (fps / 2, fps / 2, 0), "{:?}", stream.counts);
            assert_eq!((corrupt, stray, lost_sending), (0, 0, 0));
            assert!(stream.delays.as_ref().unwrap().min > 0);
        }
        assert!(outcome.ports.iter().all(|p| p.lost_receiving == 0 && p.stale == 0), "{:?}", outcome.ports);
    }
}

/// The same with small and full frames.
pub fn all_arrive(tester: impl Tester) {
    all_arrive_of(tester, &[(1_009, 64), (5_003, 1518)]);
}
