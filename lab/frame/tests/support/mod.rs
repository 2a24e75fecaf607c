//! Frames and streams of the tests, made by hand: nothing here comes from the crate under test.
#![allow(dead_code, reason = "each test file uses a part of this")]

use std::time::Duration;

use shoal_lab_plan::{
    Change, Checksums, Order, Pace, Rate, Side, Stamps, Stream, Tag, Trial, Variable, Write,
};

/// A frame of UDP on IPv4, of `payload` bytes, without checksums.
pub fn udp4(payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 8, 0];
    let total = (28 + payload) as u16;
    frame.extend([0x45, 0]);
    frame.extend(total.to_be_bytes());
    frame.extend([0, 0, 0, 0, 10, 17, 0, 0, 198, 18, 0, 2, 198, 19, 0, 2]);
    frame.extend([0xc0, 0x20, 0, 7]);
    frame.extend((total - 20).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload).map(|i| i as u8));
    frame
}

/// A frame of UDP on IPv6, of `payload` bytes, without checksum.
pub fn udp6(payload: usize) -> Vec<u8> {
    let mut frame = vec![2, 0, 0, 0, 0, 2, 2, 0, 0, 0, 0, 1, 0x86, 0xdd, 0x60, 0, 0, 0];
    frame.extend(((8 + payload) as u16).to_be_bytes());
    frame.extend([17, 10]);
    frame.extend([0x20, 1, 0, 2, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend([0x20, 1, 0, 2, 0, 0, 0x80, 0, 0, 0, 0, 0, 0, 0, 0, 2]);
    frame.extend([0xc0, 0x20, 0, 7]);
    frame.extend(((8 + payload) as u16).to_be_bytes());
    frame.extend([0, 0]);
    frame.extend((0..payload).map(|i| i as u8));
    frame
}

pub fn stream(frame: Vec<u8>, tag: Tag, changes: Vec<Change>) -> Stream {
    Stream {
        name: "test".to_owned(),
        from: Side::Left,
        frame,
        changes,
        checksums: Checksums { ip4: true, l4: true },
        tag,
        pace: Pace::Steady { rate: Rate::per_second(1000), after: Duration::ZERO },
        stamps: Stamps::None,
        expected: true,
        answers: None,
    }
}

pub fn trial(id: u16, streams: Vec<Stream>) -> Trial {
    Trial::new(id, streams, Duration::from_secs(1))
}

pub fn change(order: Order, min: u64, max: u64, writes: Vec<Write>) -> Change {
    let variable = Variable { order, min, max, first: min, step: 1, list: Vec::new(), seed: 5 };
    Change { variable, writes }
}

/// The checksum of RFC 1071 in its plainest form: a word at a time, the carry added at once.
pub fn plain_checksum(bytes: &[u8]) -> u16 {
    let mut sum: u32 = 0;
    for pair in bytes.chunks(2) {
        sum += u32::from(pair[0]) << 8 | u32::from(*pair.get(1).unwrap_or(&0));
        if sum > 0xffff {
            sum -= 0xffff;
        }
    }
    !(sum as u16)
}

/// The UDP checksum that an untagged, optionless frame should have, and the one it has.
pub fn udp_checksums(frame: &[u8]) -> (u16, u16) {
    let is_ip4 = frame[12..14] == [8, 0];
    let (addresses, l4) = if is_ip4 { (26..34, 34) } else { (22..54, 54) };
    let mut bytes = frame[addresses].to_vec();
    let length = u16::from_be_bytes([frame[l4 + 4], frame[l4 + 5]]);
    bytes.extend([0, 17]);
    bytes.extend(length.to_be_bytes());
    let mut udp = frame[l4..l4 + usize::from(length)].to_vec();
    let found = u16::from_be_bytes([udp[6], udp[7]]);
    udp[6..8].fill(0);
    bytes.extend(udp);
    let right = match plain_checksum(&bytes) {
        0 => 0xffff,
        other => other,
    };
    (right, found)
}

/// The IPv4 header's checksum that an untagged frame should have, and the one it has.
pub fn ip4_checksums(frame: &[u8]) -> (u16, u16) {
    let mut header = frame[14..34].to_vec();
    let found = u16::from_be_bytes([header[10], header[11]]);
    header[10..12].fill(0);
    (plain_checksum(&header), found)
}
