//! The lab's own profiles, both sides. The frames were made by Scapy 2.8 from the same layers, not by the code under test.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use crate::profile;

use std::path::Path;
use std::time::Duration;

use profile::{hex, how, sending, streams};
use shoal_lab_plan::{Order, Pace, Rate, Side, Stamps, Stream, Tag, Write};
use shoal_lab_stl::{Direction, Networks, PROFILES, both_sides, load, networks};

/// 42 bytes of headers, then `x` up to the length without FCS.
fn assert_frame(stream: &Stream, headers: &str, length: usize) {
    assert_eq!(hex(&stream.frame[..42]), headers, "{}", stream.name);
    assert_eq!(stream.frame.len(), length, "{}", stream.name);
    assert!(stream.frame[42..].iter().all(|b| *b == b'x'), "{}", stream.name);
}

fn steady(stream: &Stream) -> (Rate, Duration) {
    match stream.pace {
        Pace::Steady { rate, after } => (rate, after),
        _ => panic!("{} is not steady: {:?}", stream.name, stream.pace),
    }
}

const BENCH_64: [&str; 2] = [
    "02000000001102000000000108004500002e0001000040113abf100000003000000000350035001a8314",
    "02000000001202000000000208004500002e0001000040113abf300000001000000000350035001a8314",
];
const BENCH_1514: [&str; 2] = [
    "0200000000110200000000010800450005d8000100004011351510000000300000000035003505c44a93",
    "0200000000120200000000020800450005d8000100004011351530000000100000000035003505c44a93",
];
const BENCH_590: [&str; 2] = [
    "02000000001102000000000108004500023c00010000401138b11000000030000000003500350228bb34",
    "02000000001202000000000208004500023c00010000401138b13000000010000000003500350228bb34",
];
const BENCH_60: [&str; 2] = [
    "02000000001102000000000108004500002a0001000040113ac31000000030000000003500350016740d",
    "02000000001202000000000208004500002a0001000040113ac33000000010000000003500350016740d",
];

#[test]
fn bench_with_64_bytes_is_one_flow() {
    for side in Side::BOTH {
        let made = streams("bench", side, "size=64,vm=none");
        assert_eq!(made.len(), 1);
        assert_frame(&made[0], BENCH_64[side.index()], 60);
        assert_eq!(made[0].from, side);
        assert!(made[0].changes.is_empty());
        assert_eq!(steady(&made[0]), (Rate::per_second(1), Duration::ZERO));
        // 18 bytes of payload: exactly the tag. Nothing else changes, so the checksum can follow it.
        assert_eq!(made[0].tag, Tag::Signed { offset: 42 });
        assert!(made[0].checksums.ip4 && made[0].checksums.l4);
    }
}

#[test]
fn bench_var2_counts_both_addresses_up_and_lets_the_udp_checksum_go_wrong() {
    for (size, golden) in [(64, BENCH_64), (1514, BENCH_1514)] {
        for side in Side::BOTH {
            let made = streams("bench", side, &format!("size={size},vm=var2"));
            assert_frame(&made[0], golden[side.index()], size - 4);
            let (source, destination) =
                if side == Side::Left { (0x1000_0000, 0x3000_0000) } else { (0x3000_0000, 0x1000_0000) };
            let changes = &made[0].changes;
            assert_eq!(changes.len(), 2);
            for (change, min, offset) in [(&changes[0], source, 26), (&changes[1], destination, 30)] {
                let v = &change.variable;
                assert_eq!(
                    (v.order, v.min, v.max, v.first, v.step),
                    (Order::Rising, min, min + 65535, min, 1)
                );
                let whole = Write { mask: 0xFFFF_FFFF, ..Write::whole(offset, 4) };
                assert_eq!(change.writes, [whole]);
            }
            assert!(made[0].checksums.ip4);
            assert!(!made[0].checksums.l4, "STLVmFixIpv4 fixes no more than that");
            assert_eq!(made[0].tag, Tag::Signed { offset: size as u16 - 22 });
        }
    }
}

#[test]
fn the_udp_checksum_is_kept_right_where_that_is_asked_for() {
    let mut wish = sending();
    wish.fix_l4 = true;
    let made = both_sides(Path::new("bench"), Direction::Both, &how("vm=var2"), &wish).unwrap();
    assert_eq!(made.streams.len(), 2);
    assert!(made.streams.iter().all(|s| s.checksums.l4));
    assert!(!made.notes.iter().any(|n| n.contains("UDP")), "{:?}", made.notes);
}

#[test]
fn the_mix_of_bench_is_28_to_20_to_4_and_starts_one_after_the_other() {
    for side in Side::BOTH {
        let made = streams("bench", side, "size=imix,vm=var2");
        let golden = [(BENCH_60, 28, 0), (BENCH_590, 20, 100), (BENCH_1514, 4, 200)];
        assert_eq!(made.len(), 3);
        for (stream, (headers, pps, after)) in made.iter().zip(golden) {
            assert_eq!(hex(&stream.frame[..42]), headers[side.index()]);
            assert_eq!(steady(stream), (Rate::per_second(pps), Duration::from_nanos(after)));
            assert_eq!(stream.changes.len(), 2);
        }
        // 60 bytes with FCS are fewer than Ethernet's shortest: 14 bytes of payload, then padding that is no payload.
        assert_eq!(made[0].frame.len(), 60);
        assert_eq!(made[0].frame[42..], *b"xxxxxxxxxxxxxx\0\0\0\0");
        assert_eq!(made[0].tag, Tag::None);
        assert_eq!(made[1].tag, Tag::Signed { offset: 586 - 18 });
    }
}

#[test]
fn the_other_programs_of_bench_are_there() {
    let one = streams("bench", Side::Left, "vm=var1");
    assert_eq!(one[0].changes.len(), 1);
    let random = streams("bench", Side::Left, "vm=random");
    assert_eq!(random[0].changes[0].variable.order, Order::Random);
    let cached = &streams("bench", Side::Left, "vm=cached")[0].changes[0].variable;
    assert_eq!((cached.min, cached.max), (0x1000_0000, 0x1000_00FE));
    let tuple = &streams("bench", Side::Left, "vm=tuple")[0];
    let (ip, port) = (&tuple.changes[0].variable.list, &tuple.changes[1].variable.list);
    assert_eq!((ip.len(), port.len()), (100_000, 100_000));
    assert_eq!((ip[65535], port[65535], ip[65536], port[65536]), (0x1000_FFFF, 1234, 0x1000_0000, 1235));
    let wrong = load(Path::new("bench"), Side::Left, &how("vm=var3")).unwrap_err().to_string();
    assert!(wrong.contains("'var3'") && wrong.contains("var2"), "{wrong}");
}

#[test]
fn the_random_sizes_of_bench_become_sixteen_with_lengths_that_fit() {
    let made = streams("bench", Side::Left, "vm=size");
    assert_eq!(made.len(), 16);
    for (stream, k) in made.iter().zip(0_u32..) {
        let length = stream.frame.len() as u16;
        assert_eq!(stream.frame[16..18], (length - 14).to_be_bytes(), "IP's length");
        assert_eq!(stream.frame[38..40], (length - 34).to_be_bytes(), "UDP's length");
        assert_eq!(steady(stream).0, Rate { frames: 1, seconds: 16 });
        assert_eq!(steady(stream).1, Duration::from_secs(k.into()));
    }
    assert_eq!((made[0].frame.len(), made[15].frame.len()), (60, 9212));
}

#[test]
fn imix_has_the_three_sizes_of_each_mix() {
    for side in Side::BOTH {
        let address = ["1000000130000001", "3000000110000001"][side.index()];
        let macs = ["020000000011020000000001", "020000000012020000000002"][side.index()];
        let golden = [
            (64, 28, "002e0001000040113abd", "001a7f6f"),
            (594, 16, "024000010000401138ab", "022cc696"),
            (1518, 4, "05dc000100004011350f", "05c855f5"),
        ];
        let made = streams("imix", side, "");
        assert_eq!(made.len(), 3);
        for (stream, (size, pps, ip, udp)) in made.iter().zip(golden) {
            assert_frame(stream, &format!("{macs}08004500{ip}{address}0401000c{udp}"), size - 4);
            assert_eq!(steady(stream).0, Rate::per_second(pps));
            assert!(stream.checksums.ip4 && stream.checksums.l4);
        }
    }
    let sizes: Vec<_> = streams("imix", Side::Left, "mix=csit").iter().map(|s| s.frame.len() + 4).collect();
    assert_eq!(sizes, [64, 570, 1518]);
}

#[test]
fn the_thesis_has_a_heavy_stream_and_one_whose_delay_is_measured() {
    let heavy = [
        (64, "02000000001102000000000108004500002e00010000401140bd0a000001300000010401000c001a856f"),
        (889, "0200000000110200000000010800450003670001000040113d840a000001300000010401000c0353251b"),
        (1518, "0200000000110200000000010800450005dc0001000040113b0f0a000001300000010401000c05c85bf5"),
    ];
    for (size, headers) in heavy {
        let made = streams("thesis", Side::Left, &format!("size={size},cache=65535"));
        assert_eq!(made.len(), 2);
        assert_frame(&made[0], headers, size - 4);
        let v = &made[0].changes[0].variable;
        assert_eq!((v.min, v.max, v.first), (0x0A00_0001, 0x0A00_FFFF, 0x0A00_0001));
        assert!(made[0].checksums.ip4 && made[0].checksums.l4);
        assert_eq!(made[0].stamps, Stamps::None);
        let latency = "02000000001102000000000108004500002e0001000040113abd100000013000000104d204d2001a79d8";
        assert_frame(&made[1], latency, 60);
        assert_eq!(steady(&made[1]).0, Rate::per_second(5000));
        assert_eq!(made[1].stamps, Stamps::All);
        assert_eq!(made[1].tag, Tag::Signed { offset: 42 });
    }
    let forwarding = streams("thesis", Side::Left, "");
    assert_eq!(forwarding[0].changes[0].variable.max, 0x0A00_00FF, "255 addresses");
}

#[test]
fn the_thesis_is_mirrored_on_the_other_side() {
    let loaded = load(Path::new("thesis"), Side::Right, &how("size=1518")).unwrap();
    assert_eq!(loaded.streams[1].flow_stats.stream_id, Some(8));
    let made = streams("thesis", Side::Right, "size=1518");
    let heavy = "0200000000120200000000020800450005dc000100004011510f14000001100000010401000c05c871f5";
    assert_frame(&made[0], heavy, 1514);
    let latency = "02000000001202000000000208004500002e0001000040113abd300000011000000104d204d2001a79d8";
    assert_frame(&made[1], latency, 60);
    assert_eq!(streams("thesis", Side::Right, "latency_pps=0").len(), 1);
}

#[test]
fn one_packet_is_the_same_on_both_sides_but_for_its_macs() {
    let made = streams("udp_1pkt", Side::Right, "");
    let golden = "02000000001202000000000208004500002e0001000040113abd10000001300000010401000c001a7f6f";
    assert_frame(&made[0], golden, 60);
}

#[test]
fn the_bursts_follow_each_other() {
    for (side, tunables) in [(Side::Left, "--frames 100 --rate 2000"), (Side::Right, "frames=100,rate=2000")]
    {
        let made = streams("udp_burst", side, tunables);
        let address = ["1000000130000001", "3000000110000001"][side.index()];
        let ip = ["002e0001000040113abd", "006e0001000040113a7d", "00ee00010000401139fd"];
        let udp = ["001a7f6f", "005a6fe0", "00da50c2"];
        let macs = ["020000000011020000000001", "020000000012020000000002"][side.index()];
        for (i, size) in [60, 124, 252].into_iter().enumerate() {
            assert_frame(&made[i], &format!("{macs}08004500{}{address}0401000c{}", ip[i], udp[i]), size);
        }
        let rate = Some(Rate::per_second(2000));
        let (gap, ms) = (Duration::ZERO, Duration::from_millis);
        assert_eq!(made[0].pace, Pace::Bursts { frames: 100, bursts: 1, rate, gap, after: ms(0) });
        // 100 frames take 50 ms, and a pause of 1 ms is before the second.
        assert_eq!(made[1].pace, Pace::Bursts { frames: 20, bursts: 1, rate, gap, after: ms(51) });
        let gap = Duration::from_micros(500);
        assert_eq!(made[2].pace, Pace::Bursts { frames: 2, bursts: 5, rate, gap, after: ms(61) });
    }
}

#[test]
fn all_profiles_that_come_with_the_lab_load_and_their_names_are_told() {
    for (name, _, _) in PROFILES {
        let made = both_sides(Path::new(name), Direction::Both, &how(""), &sending()).unwrap();
        assert!(made.streams.iter().any(|s| s.from == Side::Right), "{name}");
    }
    let said = load(Path::new("bensh"), Side::Left, &how("")).unwrap_err().to_string();
    assert!(said.contains("\"bensh\"") && said.contains("bench, imix, thesis"), "{said}");
}

#[test]
fn the_networks_that_a_device_needs_routes_for_are_told() {
    let made =
        both_sides(Path::new("bench"), Direction::Both, &how("size=imix,vm=var2"), &sending()).unwrap();
    let found = networks(&made.streams);
    let left = ("16.0.0.0".parse().unwrap(), "16.0.255.255".parse().unwrap());
    let right = ("48.0.0.0".parse().unwrap(), "48.0.255.255".parse().unwrap());
    let forward = Networks { from: Side::Left, sources: left, destinations: right };
    let reverse = Networks { from: Side::Right, sources: right, destinations: left };
    assert_eq!(found, [forward, reverse]);
    let heavy = networks(&streams("thesis", Side::Left, ""));
    assert_eq!(heavy[0].sources, ("10.0.0.1".parse().unwrap(), "10.0.0.255".parse().unwrap()));
}
