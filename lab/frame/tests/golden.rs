//! Frames byte by byte against Scapy 2.8.
//!
//! The expected bytes were made with Scapy by hand from the published descriptions, apart from this crate: for instance
//! `Ether(dst=..., src=...)/IP(src='198.18.0.2', dst='198.19.0.2', ttl=10, id=0)/UDP(sport=0xc020, dport=7)/payload`. For the
//! load tests, addresses were raised afterwards and the UDP checksum of the first pair was put back.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail this way")]

use shoal_lab_frame::{
    Direction, Extension, FORWARDING_SOURCES, Form, LATENCY_PPS, LoadAndLatencyTraffic, LoadTest,
    LoadTraffic, Macs, Program, Traffic,
};
use shoal_lab_plan::{Addresses, Family, Rate, Stream};

const LEFT: [u8; 6] = [2, 0, 0, 0, 0, 10];
const RIGHT: [u8; 6] = [2, 0, 0, 0, 0, 11];
const TRIAL: u16 = 0x0102;

fn macs() -> Macs {
    Macs::new(&Addresses::default(), Some(LEFT), Some(RIGHT))
}

/// Frame `sequence` of the stream at `index`, as hexadecimal digits.
fn hex(streams: &[Stream], index: usize, sequence: u64) -> String {
    let mut program = Program::new(&streams[index], index as u8, TRIAL, 1).unwrap();
    let mut frame = vec![0; program.len()];
    program.write(sequence, &mut frame);
    frame.iter().flat_map(|b| [b >> 4, b & 15]).filter_map(|d| char::from_digit(d.into(), 16)).collect()
}

fn traffic(family: Family, size: u32, form: Form) -> Vec<Stream> {
    let traffic = Traffic { form, ..Traffic::new(family, size, Addresses::default(), macs()) };
    traffic.streams(Rate::per_second(1000)).unwrap()
}

fn load(test: LoadTest, form: Form) -> Vec<Stream> {
    let mix = "imix:bench".parse().unwrap();
    let traffic = LoadTraffic { test, mix, direction: Direction::Both, form, fix_l4: false, macs: macs() };
    traffic.streams(Rate::per_second(52_000)).unwrap()
}

/// A load test's frame: headers, then `x` up to its length.
fn with_payload(headers: &str, size: usize) -> String {
    headers.to_owned() + &"78".repeat(size - 4 - 42)
}

fn thesis(size: u32) -> Vec<Stream> {
    let traffic = LoadAndLatencyTraffic {
        size,
        sources: FORWARDING_SOURCES,
        latency_pps: LATENCY_PPS,
        direction: Direction::Both,
        macs: macs(),
    };
    traffic.streams(Rate::per_second(1000)).unwrap()
}

#[test]
fn siitperfs_ip4_frame_of_64_bytes_is_scapys_in_both_directions() {
    let streams = traffic(Family::Ip4, 64, Form::Plain);
    assert_eq!(
        hex(&streams, 0, 0),
        "02000000000a020000005a0108004500002e000000000a112496c6120002c6130002c0200007001a761a4944454e5449\
         465900010203040506070809"
    );
    assert_eq!(
        hex(&streams, 1, 9),
        "02000000000b020000005a0208004500002e000000000a112496c6130002c6120002c0200007001a761a4944454e5449\
         465900010203040506070809"
    );
}

#[test]
fn siitperfs_ip6_frame_of_84_bytes_is_scapys_in_both_directions() {
    let streams = traffic(Family::Ip6, 84, Form::Plain);
    assert_eq!(
        hex(&streams, 0, 0),
        "02000000000a020000005a0186dd60000000001a110a2001000200000000000000000000000220010002000080000000\
         000000000002c0200007001a423a4944454e5449465900010203040506070809"
    );
    assert_eq!(
        hex(&streams, 1, 9),
        "02000000000b020000005a0286dd60000000001a110a2001000200008000000000000000000220010002000000000000\
         000000000002c0200007001a423a4944454e5449465900010203040506070809"
    );
}

#[test]
fn our_own_frames_are_as_large_and_are_signed() {
    assert_eq!(
        hex(&traffic(Family::Ip4, 64, Form::Own), 0, 0x1_0203),
        "02000000000a020000005a0108004500002e000000000a112496c6120002c6130002c0200007001a86ad4944454e5449\
         465901020080000000010203"
    );
    assert_eq!(
        hex(&traffic(Family::Ip6, 84, Form::Own), 1, 0x1_0203),
        "02000000000b020000005a0286dd60000000001a110a2001000200008000000000000000000220010002000000000000\
         000000000002c0200007001ad1cc4944454e5449465901028180000000010203"
    );
}

#[test]
fn a_frame_with_all_extension_headers_has_them_in_order_whatever_order_was_given() {
    let mut traffic = Traffic::new(Family::Ip6, 116, Addresses::default(), macs());
    traffic.form = Form::Plain;
    traffic.extensions = Extension::ALL.into_iter().rev().collect();
    let streams = traffic.streams(Rate::per_second(1)).unwrap();
    assert_eq!(
        hex(&streams, 0, 0),
        "02000000000a020000005a0186dd60000000003a000a2001000200000000000000000000000220010002000080000000\
         0000000000023c000104000000002b000104000000002c00fd00000000001100000000000001c0200007001a423a4944\
         454e5449465900010203040506070809"
    );
}

#[test]
fn the_large_load_tests_frames_are_scapys_in_both_directions() {
    let streams = load(LoadTest::Var2Large, Form::Plain);
    let expected = [
        (0, 0, 1514, "02000000000a020000005a010800450005d8000100004011351510000000300000000035003505c44a93"),
        (
            0,
            258,
            1514,
            "02000000000a020000005a010800450005d8000100004011331110000102300001020035003505c44a93",
        ),
        (1, 0, 1514, "02000000000b020000005a020800450005d8000100004011351530000000100000000035003505c44a93"),
        (
            1,
            258,
            1514,
            "02000000000b020000005a020800450005d8000100004011331130000102100001020035003505c44a93",
        ),
    ];
    for (index, sequence, size, headers) in expected {
        assert_eq!(
            hex(&streams, index, sequence),
            with_payload(headers, size),
            "stream {index}, frame {sequence}"
        );
    }
}

#[test]
fn the_imix_load_tests_frames_are_scapys_in_both_directions() {
    let streams = load(LoadTest::Var2Imix, Form::Plain);
    let expected = [
        (0, 0, 60, "02000000000a020000005a0108004500002a0001000040113ac31000000030000000003500350016740d"),
        (0, 258, 60, "02000000000a020000005a0108004500002a00010000401138bf1000010230000102003500350016740d"),
        (1, 0, 590, "02000000000a020000005a0108004500023c00010000401138b11000000030000000003500350228bb34"),
        (1, 258, 590, "02000000000a020000005a0108004500023c00010000401136ad1000010230000102003500350228bb34"),
        (2, 0, 1514, "02000000000a020000005a010800450005d8000100004011351510000000300000000035003505c44a93"),
        (
            2,
            258,
            1514,
            "02000000000a020000005a010800450005d8000100004011331110000102300001020035003505c44a93",
        ),
        (3, 0, 60, "02000000000b020000005a0208004500002a0001000040113ac33000000010000000003500350016740d"),
        (3, 258, 60, "02000000000b020000005a0208004500002a00010000401138bf3000010210000102003500350016740d"),
        (4, 0, 590, "02000000000b020000005a0208004500023c00010000401138b13000000010000000003500350228bb34"),
        (4, 258, 590, "02000000000b020000005a0208004500023c00010000401136ad3000010210000102003500350228bb34"),
        (5, 0, 1514, "02000000000b020000005a020800450005d8000100004011351530000000100000000035003505c44a93"),
        (
            5,
            258,
            1514,
            "02000000000b020000005a020800450005d8000100004011331130000102100001020035003505c44a93",
        ),
    ];
    for (index, sequence, size, headers) in expected {
        assert_eq!(
            hex(&streams, index, sequence),
            with_payload(headers, size),
            "stream {index}, frame {sequence}"
        );
    }
}

#[test]
fn the_small_load_tests_frames_are_scapys_in_both_directions() {
    let streams = load(LoadTest::Var2Small, Form::Plain);
    let expected = [
        (0, 0, 64, "02000000000a020000005a0108004500002e0001000040113abf100000003000000000350035001a8314"),
        (0, 258, 64, "02000000000a020000005a0108004500002e00010000401138bb100001023000010200350035001a8314"),
        (1, 0, 64, "02000000000b020000005a0208004500002e0001000040113abf300000001000000000350035001a8314"),
        (1, 258, 64, "02000000000b020000005a0208004500002e00010000401138bb300001021000010200350035001a8314"),
    ];
    for (index, sequence, size, headers) in expected {
        assert_eq!(
            hex(&streams, index, sequence),
            with_payload(headers, size),
            "stream {index}, frame {sequence}"
        );
    }
}

#[test]
fn the_one_flow_load_tests_frames_never_change() {
    let streams = load(LoadTest::OneFlow, Form::Plain);
    for sequence in [0, 258] {
        assert_eq!(
            hex(&streams, 0, sequence),
            with_payload(
                "02000000000a020000005a0108004500002e0001000040113abf100000003000000000350035001a8314",
                64
            )
        );
        assert_eq!(
            hex(&streams, 1, sequence),
            with_payload(
                "02000000000b020000005a0208004500002e0001000040113abf300000001000000000350035001a8314",
                64
            )
        );
    }
}

#[test]
fn the_thesiss_heavy_and_latency_frames_are_scapys_with_our_tag_at_the_end() {
    let streams = thesis(64);
    assert_eq!(
        hex(&streams, 0, 2),
        "02000000000a020000005a0108004500002e00010000401140bb0a000003300000010401000c001a96f04944454e5449\
         465901020080000000000002"
    );
    assert_eq!(
        hex(&streams, 1, 7),
        "02000000000a020000005a0108004500002e0001000040113abd100000013000000104d204d2001a8a564944454e5449\
         465901020180000000000007"
    );
    assert_eq!(
        hex(&streams, 2, 2),
        "02000000000b020000005a0208004500002e00010000401160bb0a000003100000010401000c001a34f04944454e5449\
         465901028280000000000002"
    );
    assert_eq!(
        hex(&streams, 3, 7),
        "02000000000b020000005a0208004500002e0001000040113abd300000011000000104d204d2001a08564944454e5449\
         465901028380000000000007"
    );
    // After 255 sources comes the first again.
    assert_eq!(
        hex(&thesis(128), 0, 255),
        "02000000000a020000005a0108004500006e000100004011407d0a000001300000010401000c005a8666787878787878\
         787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878787878\
         787878787878787878784944454e54494659010200800000000000ff"
    );
}
