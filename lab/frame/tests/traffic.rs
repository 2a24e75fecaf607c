//! Streams that tests ask for.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic, reason = "tests may fail this way")]

use std::collections::HashSet;

use proptest::prelude::*;
use shoal_lab_frame::{
    Background, Direction, Extension, Field, Form, FrameClassifier, Hosts, LoadAndLatencyTraffic, LoadTest,
    LoadTraffic, Look, Macs, Mix, Ports, Program, StatefulTraffic, Traffic, Tuple,
};
use shoal_lab_plan::{Addresses, Family, Order, Pace, Rate, Side, Stream, Tag, Trial};

fn macs() -> Macs {
    Macs::new(&Addresses::default(), Some([2, 0, 0, 0, 0, 10]), None)
}

fn traffic(family: Family, size: u32) -> Traffic {
    Traffic::new(family, size, Addresses::default(), macs())
}

fn streams(traffic: &Traffic) -> Vec<Stream> {
    traffic.streams(Rate::per_second(1000)).unwrap()
}

fn frames(stream: &Stream, count: u64) -> Vec<Vec<u8>> {
    let mut program = Program::new(stream, 0, 1, 1).unwrap();
    let write = |sequence| {
        let mut frame = vec![0; program.len()];
        program.write(sequence, &mut frame);
        frame
    };
    (0..count).map(write).collect()
}

fn in_ten_seconds(stream: &Stream) -> u64 {
    match stream.pace {
        Pace::Steady { rate, .. } => rate.frames_in(10_000_000_000),
        _ => panic!("not steady"),
    }
}

fn port(frame: &[u8], at: usize) -> u16 {
    u16::from_be_bytes([frame[at], frame[at + 1]])
}

#[test]
fn all_streams_of_all_kinds_are_recognised_and_checked() {
    let mut all = traffic(Family::Ip4, 128);
    all.background = Some(Background { n: 3, m: 2 });
    all.broadcast = true;
    all.ports = [Ports::random(); 2];
    all.networks = [256; 2];
    all.extensions = Extension::ALL.to_vec();
    all.random_macs = Some(100);
    let mut bridge = traffic(Family::Ip6, 200);
    bridge.hosts = [Some(Hosts { field: Field::varying(Order::Random, (2, 9)), offset4: 2, offset6: 14 }); 2];
    let load = LoadTraffic {
        test: LoadTest::Var2Imix,
        mix: "imix:classic".parse().unwrap(),
        direction: Direction::Both,
        form: Form::Own,
        fix_l4: false,
        macs: macs(),
    };
    let rate = Rate::per_second(1000);
    for streams in [streams(&all), streams(&bridge), load.streams(rate).unwrap()] {
        let trial = Trial::new(1, streams, std::time::Duration::from_secs(1));
        let recogniser = FrameClassifier::new(&trial);
        for (index, stream) in trial.streams.iter().enumerate() {
            let mut program = Program::new(stream, index as u8, 1, 1).unwrap();
            let mut frame = vec![0; program.len()];
            for sequence in 0..50 {
                program.write(sequence, &mut frame);
                let ours = Look::Signed { trial: 1, stream: index as u8, from: stream.from, sequence };
                assert_eq!(recogniser.look(&frame), ours, "{}", stream.name);
                assert_eq!(recogniser.check(&frame, index), Ok(()), "{} {sequence}", stream.name);
            }
        }
    }
}

#[test]
fn ports_go_up_down_or_anywhere_in_their_range() {
    let ports = |source, destination| {
        let mut t = traffic(Family::Ip4, 64);
        t.ports[0] = Ports { source, destination };
        let frames = frames(&streams(&t)[0], 1000);
        frames.iter().map(|f| (port(f, 34), port(f, 36))).collect::<Vec<_>>()
    };
    let two = ports(Field::varying(Order::Rising, (5, 7)), Field::varying(Order::Falling, (1, 2)));
    assert_eq!(two[..5], [(5, 2), (6, 1), (7, 2), (5, 1), (6, 2)]);
    let random = ports(Field::varying(Order::Random, (10, 19)), Field::fixed((1, 9)));
    assert_eq!(random.iter().map(|p| p.0).collect::<HashSet<_>>().len(), 10);
    assert!(random.iter().all(|p| (10..20).contains(&p.0) && p.1 == 7));
}

#[test]
fn source_and_destination_ports_are_independent_of_each_other() {
    let mut t = traffic(Family::Ip4, 64);
    let digits = Field::varying(Order::Random, (1, 10));
    t.ports[0] = Ports { source: digits, destination: digits };
    let pairs: HashSet<_> =
        frames(&streams(&t)[0], 2000).iter().map(|f| (port(f, 34), port(f, 36))).collect();
    assert_eq!(pairs.len(), 100);
}

#[test]
fn networks_are_the_third_octet_or_byte_seven_of_the_destination() {
    let mut t = traffic(Family::Ip4, 64);
    t.networks = [1, 4];
    let third: HashSet<_> = frames(&streams(&t)[0], 300).iter().map(|f| f[32]).collect();
    assert_eq!(third, HashSet::from([0, 1, 2, 3]));
    assert!(streams(&t)[1].changes.is_empty());
    let mut t = traffic(Family::Ip6, 84);
    t.networks = [256, 1];
    let seventh: HashSet<_> = frames(&streams(&t)[1], 5000).iter().map(|f| f[38 + 7]).collect();
    assert_eq!(seventh.len(), 256);
}

#[test]
fn hosts_of_a_side_are_sources_one_way_and_destinations_the_other() {
    let mut t = traffic(Family::Ip4, 64);
    t.hosts =
        [Some(Hosts { field: Field::varying(Order::Rising, (2, 65_534)), offset4: 2, offset6: 12 }), None];
    let both = streams(&t);
    assert_eq!(frames(&both[0], 2)[1][26..34], [198, 18, 0, 3, 198, 19, 0, 2]);
    assert_eq!(frames(&both[1], 2)[1][26..34], [198, 19, 0, 2, 198, 18, 0, 3]);
}

#[test]
fn background_and_broadcast_take_their_exact_shares() {
    let mut t = traffic(Family::Ip4, 128);
    t.background = Some(Background { n: 10, m: 3 });
    t.broadcast = true;
    t.direction = Direction::Forward;
    let streams = streams(&t);
    let shares: Vec<_> = streams.iter().map(|s| (s.name.as_str(), in_ten_seconds(s), s.expected)).collect();
    let expected =
        [("forward", 2970, true), ("forward background", 6930, true), ("forward broadcast", 100, false)];
    assert_eq!(shares, expected);
    assert_eq!(streams[1].frame[12..14], [0x86, 0xdd]);
    assert_eq!(streams[2].frame[..6], [0xff; 6]);
}

#[test]
fn equal_n_and_m_is_all_foreground_and_no_m_is_none() {
    let named = |n, m| {
        let t = Traffic { background: Some(Background { n, m }), ..traffic(Family::Ip4, 128) };
        streams(&t).into_iter().map(|s| s.name).collect::<Vec<_>>()
    };
    assert_eq!(named(2, 2), ["forward", "reverse"]);
    assert_eq!(named(2, 0), ["forward background", "reverse background"]);
}

#[test]
fn random_macs_have_the_group_bit_clear_and_are_the_same_both_ways() {
    let mut t = traffic(Family::Ip4, 64);
    t.random_macs = Some(20);
    let both = streams(&t);
    let macs = |stream, at: usize| {
        frames(stream, 500).iter().map(|f| f[at..at + 6].to_vec()).collect::<HashSet<_>>()
    };
    let (sources, destinations) = (macs(&both[0], 6), macs(&both[1], 0));
    assert_eq!(sources.len(), 20);
    assert_eq!(sources, destinations);
    assert!(sources.iter().all(|mac| mac[0] & 1 == 0));
    assert!(macs(&both[0], 0).is_disjoint(&sources));
}

#[test]
fn a_device_without_macs_gets_the_other_ports() {
    let both = streams(&traffic(Family::Ip4, 64));
    assert_eq!(both[0].frame[..12], [2, 0, 0, 0, 0, 10, 2, 0, 0, 0, 0x5a, 1]);
    assert_eq!(both[1].frame[..12], [2, 0, 0, 0, 0x5a, 1, 2, 0, 0, 0, 0x5a, 2]);
}

#[test]
fn mixes_are_split_in_their_exact_shares_and_start_one_after_another() {
    let load = |mix: &str| LoadTraffic {
        test: LoadTest::Var2Imix,
        mix: mix.parse().unwrap(),
        direction: Direction::Forward,
        form: Form::Own,
        fix_l4: false,
        macs: macs(),
    };
    let bench = load("imix:bench").streams(Rate::per_second(52)).unwrap();
    assert_eq!(bench.iter().map(in_ten_seconds).collect::<Vec<_>>(), [280, 200, 40]);
    assert_eq!(bench.iter().map(|s| s.frame.len()).collect::<Vec<_>>(), [56, 586, 1510]);
    let starts = bench.iter().map(|s| match s.pace {
        Pace::Steady { after, .. } => after.as_nanos(),
        _ => u128::MAX,
    });
    assert_eq!(starts.collect::<Vec<_>>(), [0, 100, 200]);
    assert_eq!(bench[0].tag, Tag::Plain { offset: 48 });
    assert_eq!(bench[1].tag, Tag::Signed { offset: 568 });
    let odd = load("imix:csit").streams(Rate::per_second(1_000_003)).unwrap();
    let shares = odd.iter().map(|s| match s.pace {
        Pace::Steady { rate, .. } => rate.frames_in(48_000_000_000),
        _ => 0,
    });
    assert_eq!(shares.sum::<u64>(), 48 * 1_000_003);
}

#[test]
fn any_traffic_can_have_a_mix_of_sizes() {
    let t = traffic(Family::Ip4, 64);
    let streams = t.mixed(&"imix:csit".parse().unwrap(), Rate::per_second(4800)).unwrap();
    let shares: Vec<_> =
        streams.iter().map(|s| (s.name.as_str(), s.frame.len(), in_ten_seconds(s))).collect();
    let expected = [
        ("forward 64 B", 60, 28_000),
        ("reverse 64 B", 60, 28_000),
        ("forward 570 B", 566, 16_000),
        ("reverse 570 B", 566, 16_000),
        ("forward 1518 B", 1514, 4000),
        ("reverse 1518 B", 1514, 4000),
    ];
    assert_eq!(shares, expected);
}

#[test]
fn udp_checksums_of_a_load_test_are_right_if_asked_for() {
    for (fix_l4, right) in [(false, 1), (true, 300)] {
        let load = LoadTraffic {
            test: LoadTest::Var2Small,
            mix: Mix::single(64),
            direction: Direction::Forward,
            form: Form::Plain,
            fix_l4,
            macs: macs(),
        };
        let mut sent = load.streams(Rate::per_second(1)).unwrap().remove(0);
        let frames = frames(&sent, 300);
        sent.changes.clear();
        sent.checksums.l4 = true;
        let judge = FrameClassifier::new(&Trial::new(1, vec![sent], std::time::Duration::ZERO));
        assert_eq!(frames.iter().filter(|f| judge.check(f, 0).is_ok()).count(), right);
    }
}

fn stateful(sources: (u16, u16), destinations: (u16, u16), hosts: Option<(u16, u16)>) -> StatefulTraffic {
    let mut traffic = traffic(Family::Ip4, 64);
    traffic.ports[0] = Ports {
        source: Field::varying(Order::Rising, sources),
        destination: Field::varying(Order::Rising, destinations),
    };
    traffic.hosts[0] =
        hosts.map(|h| Hosts { field: Field::varying(Order::Rising, h), offset4: 2, offset6: 14 });
    StatefulTraffic { traffic, initiator: Side::Left }
}

proptest! {
    #[test]
    fn phase_one_sends_each_tuple_exactly_once(
        sources in 1_u16..30, destinations in 1_u16..10, hosts in 1_u16..6, order in 0..3_usize,
    ) {
        let traffic = stateful((1024, 1023 + sources), (1, destinations), Some((2, 1 + hosts)));
        let count = traffic.tuples();
        prop_assert_eq!(count, u64::from(sources) * u64::from(destinations) * u64::from(hosts));
        let order = [Order::Rising, Order::Falling, Order::Permutation][order];
        let stream = traffic.preliminary(count, Rate::per_second(1000), order).unwrap();
        let tuples: HashSet<Tuple> = frames(&stream, count).iter().map(|f| Tuple::of(f).unwrap()).collect();
        prop_assert_eq!(tuples.len() as u64, count);
        prop_assert!(tuples.iter().all(|t| (1024..1024 + sources).contains(&t.source_port)));
    }
}

#[test]
fn four_million_tuples_are_in_order_source_ports_first() {
    let traffic = stateful((1, 40_000), (1, 100), None);
    assert_eq!(traffic.tuples(), 4_000_000);
    let stream = traffic.preliminary(4_000_000, Rate::per_second(1000), Order::Rising).unwrap();
    let mut program = Program::new(&stream, 0, 1, 1).unwrap();
    let mut at = |sequence| {
        let mut frame = vec![0; program.len()];
        program.write(sequence, &mut frame);
        (port(&frame, 34), port(&frame, 36))
    };
    assert_eq!([at(0), at(39_999), at(40_000), at(3_999_999)], [(1, 1), (40_000, 1), (1, 2), (40_000, 100)]);
    let once = matches!(stream.pace, Pace::Bursts { frames: 4_000_000, bursts: 1, rate: Some(_), .. });
    assert!(once, "{:?}", stream.pace);
}

#[test]
fn phase_two_uses_the_same_tuples_and_answers_what_was_learnt() {
    let traffic = stateful((1, 10), (1, 10), None);
    let rate = Rate::per_second(10);
    let tuples = |stream: &Stream, count| {
        frames(stream, count).iter().map(|f| (port(f, 34), port(f, 36))).collect::<HashSet<_>>()
    };
    let preliminary = tuples(&traffic.preliminary(50, rate, Order::Permutation).unwrap(), 50);
    assert_eq!(tuples(&traffic.again(50, rate, Order::Random).unwrap(), 2000), preliminary);
    let reverse = traffic.answers(rate, Order::Random).unwrap();
    assert_eq!((reverse.from, reverse.answers.map(|a| a.order)), (Side::Right, Some(Order::Random)));
    let validation = traffic.validation(50, rate).unwrap();
    assert!(matches!(validation.pace, Pace::Bursts { frames: 50, .. }));
}

#[test]
fn options_that_cannot_be_are_refused_with_the_nearest() {
    let refused = |change: &dyn Fn(&mut Traffic)| {
        let mut t = traffic(Family::Ip4, 128);
        change(&mut t);
        t.streams(Rate::per_second(1)).unwrap_err().to_string()
    };
    assert!(refused(&|t| t.size4 = 63).contains("nearest size is 64"));
    assert!(refused(&|t| t.size4 = 9217).contains("nearest size is 9216"));
    assert!(
        refused(&|t| {
            t.families = [Family::Ip6; 2];
            t.size6 = 78;
        })
        .contains("nearest size is 84")
    );
    assert!(refused(&|t| t.networks = [0, 1]).contains("the nearest is 1"));
    assert!(refused(&|t| t.networks = [1, 257]).contains("the nearest is 256"));
    assert!(refused(&|t| t.background = Some(Background { n: 2, m: 3 })).contains("the nearest is 2"));
    assert!(refused(&|t| t.background = Some(Background { n: 0, m: 0 })).contains("the nearest is 1"));
    assert!(refused(&|t| t.random_macs = Some(0)).contains("the nearest is 1"));
    let hosts = Hosts { field: Field::varying(Order::Rising, (2, 9)), offset4: 2, offset6: 14 };
    assert!(refused(&|t| t.hosts[0] = Some(Hosts { offset4: 3, ..hosts })).contains("the nearest is 2"));
    assert!(refused(&|t| t.hosts[1] = Some(Hosts { offset6: 5, ..hosts })).contains("the nearest is 6"));
    assert!(
        refused(&|t| {
            t.hosts[1] = Some(hosts);
            t.networks = [1, 2];
        })
        .contains("use 1 network")
    );
    assert!(
        refused(&|t| t.ports[0].source = Field::varying(Order::Rising, (9, 8))).contains("the nearest is 9")
    );
    let thesis = LoadAndLatencyTraffic {
        size: 64,
        sources: 0,
        latency_pps: 0,
        direction: Direction::Both,
        macs: macs(),
    };
    assert!(thesis.streams(Rate::ZERO).unwrap_err().to_string().contains("the nearest is 1"));
    let stateful = stateful((1, 10), (1, 10), None);
    let too_many = stateful.preliminary(101, Rate::per_second(1), Order::Rising).unwrap_err().to_string();
    assert!(too_many.contains("the nearest is 100"));
    let random = stateful.preliminary(100, Rate::per_second(1), Order::Random).unwrap_err().to_string();
    assert!(random.contains("use a permutation"));
    assert!(Field::order_of("Fwd-var-sport", 4).unwrap_err().to_string().contains("the nearest is 3"));
    assert!("imix:classy".parse::<Mix>().is_err());
    assert!("var2-64".parse::<LoadTest>().unwrap_err().to_string().contains("`var2-64b`"));
    assert!("hopbyhop".parse::<Extension>().unwrap_err().to_string().contains("`hop-by-hop`"));
}

#[test]
fn the_smallest_and_largest_frames_can_be_made() {
    for (family, form, size) in [
        (Family::Ip4, Form::Own, 64),
        (Family::Ip6, Form::Own, 84),
        (Family::Ip6, Form::Plain, 74),
        (Family::Ip4, Form::Own, 9216),
    ] {
        let made = streams(&Traffic { form, ..traffic(family, size) });
        assert_eq!(made[0].frame.len() as u32 + 4, size);
    }
}

#[test]
fn a_translating_devices_other_side_is_addressed_as_this_side_knows_it() {
    let mut t = traffic(Family::Ip4, 128);
    t.families = [Family::Ip6, Family::Ip4];
    t.background = Some(Background { n: 2, m: 1 });
    t.destinations = [Some("2001:2:0:1000::2".parse().unwrap()), Some("198.18.0.9".parse().unwrap())];
    let streams = streams(&t);
    let to = |index: usize| Tuple::of(&streams[index].frame).unwrap().destination.to_string();
    assert_eq!([to(0), to(1), to(2)], ["2001:2:0:1000::2", "2001:2:0:8000::2", "198.18.0.9"]);
}

#[test]
fn a_stateful_test_may_begin_at_the_right() {
    let mut traffic = stateful((1, 10), (1, 10), None);
    traffic.initiator = Side::Right;
    traffic.traffic.ports.swap(0, 1);
    assert_eq!(traffic.tuples(), 100);
    let rate = Rate::per_second(10);
    assert_eq!(traffic.preliminary(100, rate, Order::Rising).unwrap().from, Side::Right);
    assert_eq!(traffic.answers(rate, Order::Rising).unwrap().from, Side::Left);
}
