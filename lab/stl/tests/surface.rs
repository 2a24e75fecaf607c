//! What the STL API's calls become.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use crate::profile;

use std::time::Duration;

use profile::{converted, converted_with, listing, sending, written};
use shoal_lab_plan::{Order, Pace, Rate, Side, Stamps, Tag, Variable, Write};
use shoal_lab_stl::{Loaded, PortRate, convert, networks};

/// One stream whose field program is told.
fn program(vm: &str) -> String {
    format!("STLStream(packet=STLPktBuilder(pkt=frame, vm={vm}), mode=STLTXCont(pps=1000))")
}

fn variable(vm: &str) -> Variable {
    let vm = format!("[{vm}, STLVmWrFlowVar('a', 'UDP.sport'), STLVmFixChecksumHw('IP', 'UDP', 11)]");
    converted(&program(&vm)).unwrap().streams[0].changes[0].variable.clone()
}

fn refused(list: &str) -> String {
    converted(list).unwrap_err().to_string()
}

#[test]
fn variables_rise_fall_and_are_random() {
    let up = variable("STLVmFlowVar('a', init_value=6, min_value=5, max_value=15, size=2, step=3)");
    assert_eq!((up.order, up.min, up.max, up.first, up.step), (Order::Rising, 6, 15, 6, 3));
    let down = variable("STLVmFlowVar('a', min_value=5, max_value=9, size=2, op='dec')");
    assert_eq!((down.order, down.min, down.max, down.first), (Order::Falling, 5, 9, 9));
    let dice = variable("STLVmFlowVar('a', min_value=5, max_value=9, size=2, op='random')");
    assert_eq!((dice.order, dice.min, dice.max), (Order::Random, 5, 9));
    let same = variable("STLVmFlowVar('a', min_value=5, max_value=9, size=2, op='random')");
    assert_eq!(dice, same, "the seed is fixed");
}

#[test]
fn value_lists_go_forward_backward_and_at_random() {
    let list = |op: &str| variable(&format!("STLVmFlowVar('a', size=2, op='{op}', value_list=[30, 10, 20])"));
    assert_eq!((list("inc").order, list("inc").list), (Order::Rising, vec![30, 10, 20]));
    assert_eq!((list("dec").order, list("dec").list), (Order::Rising, vec![20, 10, 30]));
    assert_eq!((list("random").order, list("random").list), (Order::Random, vec![30, 10, 20]));
}

#[test]
fn a_seed_of_the_stream_changes_its_random_values_and_nothing_else_does() {
    let with = |seed: u32| {
        let stream = format!(
            "STLStream(random_seed={seed}, packet=STLPktBuilder(pkt=frame, vm=[STLVmFlowVar('a', size=2, op='random'), \
             STLVmWrFlowVar('a', 'UDP.sport')]))"
        );
        converted(&stream).unwrap().streams[0].changes[0].variable.seed
    };
    assert_eq!(with(7), with(7));
    assert_ne!(with(7), with(8));
}

#[test]
fn a_variable_drives_the_next_when_it_has_gone_round() {
    let made = converted(&program(
        "[STLVmFlowVar('a', min_value=1, max_value=3, size=1, next_var='b'), STLVmWrFlowVar('a', 50), \
         STLVmFlowVar('b', min_value=7, max_value=8, size=1, next_var='c'), STLVmWrFlowVar('b', 51), \
         STLVmFlowVar('c', min_value=0, max_value=1, size=1), STLVmWrFlowVar('c', 52)]",
    ));
    let changes = &made.unwrap().streams[0].changes;
    assert_eq!((changes[0].variable.min, changes[0].variable.max), (1, 3));
    assert_eq!(changes[1].variable.list, [7, 7, 7, 8, 8, 8]);
    assert_eq!(changes[2].variable.list, [0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 1, 1]);
}

#[test]
fn tuples_take_each_address_with_a_port_before_the_next_port() {
    let made = converted(&program(
        "[STLVmTupleGen('t', ip_min='10.0.0.1', ip_max='10.0.0.5', port_min=1025, port_max=1028, limit_flows=8), \
         STLVmWrFlowVar('t.ip', 'IP.src'), STLVmWrFlowVar('t.port', 'UDP.sport'), STLVmFixIpv4('IP')]",
    ));
    let changes = &made.unwrap().streams[0].changes;
    let low: Vec<_> = changes[0].variable.list.iter().map(|ip| ip & 0xFF).collect();
    assert_eq!(low, [1, 2, 3, 4, 5, 1, 2, 3]);
    assert_eq!(changes[1].variable.list, [1025, 1025, 1025, 1025, 1025, 1026, 1026, 1026]);
}

#[test]
fn a_cache_repeats_its_frames() {
    let made = converted(&program(
        "STLScVmRaw([STLVmFlowVar('a', size=1, min_value=1, max_value=3), STLVmWrFlowVar('a', 50), \
         STLVmFlowVar('b', size=2, op='random'), STLVmWrFlowVar('b', 52)], cache_size=5)",
    ));
    let changes = &made.unwrap().streams[0].changes;
    assert_eq!(changes[0].variable.list, [1, 2, 3, 1, 2]);
    assert_eq!((changes[1].variable.order, changes[1].variable.list.len()), (Order::Rising, 5));
}

#[test]
fn repeatable_random_values_are_the_same_again() {
    let list =
        variable("STLVmFlowVarRepeatableRandom('a', size=2, limit=50, seed=9, min_value=100, max_value=200)")
            .list;
    assert_eq!(list.len(), 50);
    assert!(list.iter().all(|v| (100..=200).contains(v)));
    assert!(list.iter().any(|v| *v != list[0]));
}

#[test]
fn writes_are_shifted_masked_and_little_endian() {
    let made = converted(&program(
        "[STLVmFlowVar('a', size=2), STLVmWrMaskFlowVar('a', 'IP.tos', pkt_cast_size=1, mask=0x3c, shift=2), \
         STLVmFlowVar('b', size=4), STLVmWrFlowVar('b', 50, offset_fixup=2, add_val=5, is_big=False), \
         STLVmFixChecksumHw('IP', 'UDP', CTRexVmInsFixHwCs.L4_TYPE_UDP)]",
    ));
    let stream = &made.unwrap().streams[0];
    let masked = Write { shift: 2, mask: 0x3C, ..Write::whole(15, 1) };
    assert_eq!(stream.changes[0].writes, [masked]);
    let bytes: Vec<_> = (0..4).map(|i| (52 + i, 1, 5, -8 * i as i8, 0xFF)).collect();
    let found: Vec<_> =
        stream.changes[1].writes.iter().map(|w| (w.offset, w.width, w.add, w.shift, w.mask)).collect();
    assert_eq!(found, bytes);
    assert_eq!(stream.frame[52..56], [5, 0, 0, 0], "0 plus 5, the least byte first");
    assert!(stream.checksums.ip4 && stream.checksums.l4);
}

#[test]
fn the_tag_keeps_off_what_the_profile_writes() {
    let plain = converted("STLStream(packet=STLPktBuilder(pkt=frame))").unwrap();
    assert_eq!(plain.streams[0].tag, Tag::Signed { offset: 82 - 18 });
    let vm = "[STLVmFlowVar('a', size=1), STLVmWrFlowVar('a', 81)]";
    assert_eq!(converted(&program(vm)).unwrap().streams[0].tag, Tag::Signed { offset: 81 - 18 });
    let vm = "[STLVmFlowVar('a', size=1), STLVmWrFlowVar('a', 64), STLVmWrFlowVar('a', 47)]";
    let none = converted(&program(vm)).unwrap();
    assert_eq!(none.streams[0].tag, Tag::None);
    assert!(none.notes.iter().any(|n| n.contains("no 18 bytes")), "{:?}", none.notes);
}

#[test]
fn an_ipv6_a_tagged_and_a_tunnelled_frame_have_their_payload_found() {
    let v6 = "Ether()/IPv6(src='2001:2::1', dst='2001:2:0:8000::1')/UDP()/('x'*18)";
    let vlan = "Ether()/Dot1Q(vlan=7)/IP()/TCP()/('x'*20)";
    let tunnel = "Ether()/IP()/IP()/UDP()/('x'*19)";
    for (frame, offset) in [(v6, 62), (vlan, 14 + 4 + 20 + 20 + 2), (tunnel, 14 + 20 + 20 + 8 + 1)] {
        let made = converted(&format!("STLStream(packet=STLPktBuilder(pkt={frame}))")).unwrap();
        assert_eq!(made.streams[0].tag, Tag::Signed { offset }, "{frame}");
    }
    // ICMP's checksum covers its payload, and is not among those that follow.
    let icmp = converted("STLStream(packet=STLPktBuilder(pkt=Ether()/IP()/ICMP()/('x'*40)))").unwrap();
    assert_eq!(icmp.streams[0].tag, Tag::None);
}

#[test]
fn lengths_that_go_round_become_a_stream_each_in_the_same_order() {
    let made = converted(&program(
        "[STLVmFlowVar('s', min_value=70, max_value=80, step=5, size=2), STLVmTrimPktSize('s'), \
         STLVmWrFlowVar('s', 'IP.len', add_val=-14), STLVmWrFlowVar('s', 'UDP.len', add_val=-34), \
         STLVmFlowVar('a', min_value=1, max_value=4, size=1), STLVmWrFlowVar('a', 'IP.tos'), \
         STLVmFixChecksumHw('IP', 'UDP', 11)]",
    ))
    .unwrap();
    let lengths: Vec<_> = made.streams.iter().map(|s| s.frame.len()).collect();
    assert_eq!(lengths, [70, 75, 80]);
    for (stream, k) in made.streams.iter().zip(0..) {
        let rate = Rate { frames: 1000, seconds: 3 };
        assert_eq!(stream.pace, Pace::Steady { rate, after: Duration::from_millis(k) });
    }
    // Frame 0, 3, 6, 9 of 1, 2, 3, 4, 1, 2, ...
    assert_eq!(made.streams[0].changes[0].variable.list, [1, 4, 3, 2]);
    assert_eq!(made.streams[1].changes[0].variable.list, [2, 1, 4, 3]);
    assert_eq!(made.streams[1].frame[15], 2);
}

#[test]
fn rates_are_taken_in_all_their_units() {
    // 82 bytes and FCS are 86: 106 on the wire.
    for (mode, frames, seconds) in [
        ("pps=12.5", 25, 2),
        ("bps_L1=848000", 1000, 1),
        ("bps_L2=688000", 1000, 1),
        ("percentage=50", 5_000_000_000 / 16, 848 / 16),
    ] {
        let made = converted(&format!("STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont({mode}))"));
        let pace = Pace::Steady { rate: Rate { frames, seconds }, after: Duration::ZERO };
        assert_eq!(made.unwrap().streams[0].pace, pace, "{mode}");
    }
}

#[test]
fn a_port_rate_scales_all_streams_but_those_whose_delay_is_measured() {
    let list = "STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=3)), \
                STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=1)), \
                STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(pps=50), flow_stats=STLFlowLatencyStats(7))";
    let mut wish = sending();
    for (rate, frames) in [("4kpps", [3000, 1000]), ("3392kbpsl1", [3000, 1000]), ("2", [6, 2])] {
        wish.port_rate = Some(rate.parse::<PortRate>().unwrap());
        let made = converted_with(list, &wish).unwrap();
        let rates: Vec<_> = made.streams.iter().map(|s| s.pace.clone()).collect();
        for (pace, frames) in rates.iter().zip([frames[0], frames[1], 50]) {
            assert_eq!(
                *pace,
                Pace::Steady { rate: Rate::per_second(frames), after: Duration::ZERO },
                "{rate}"
            );
        }
        assert_eq!(made.streams[2].stamps, Stamps::All);
    }
    let only = "STLStream(packet=STLPktBuilder(pkt=frame), flow_stats=STLFlowLatencyStats(7))";
    wish.port_rate = Some("1kpps".parse().unwrap());
    let said = converted_with(only, &wish).unwrap_err().to_string();
    assert!(said.contains("no stream to scale"), "{said}");
}

#[test]
fn ten_gigabit_of_the_thesis_fill_the_link_with_heavy_frames() {
    let mut wish = sending();
    wish.port_rate = Some("10gbpsl1".parse().unwrap());
    let loaded = shoal_lab_stl::load("thesis".as_ref(), Side::Left, &profile::how("size=1518")).unwrap();
    let made = convert(&loaded.streams, Side::Left, &wish).unwrap();
    let Pace::Steady { rate, .. } = made.streams[0].pace else { panic!("steady") };
    assert_eq!(rate.frames_in(1_000_000_000), 812_743);
    assert!(made.notes.iter().any(|n| n.contains("more than the link")), "{:?}", made.notes);
}

#[test]
fn a_loop_of_bursts_is_laid_out_for_the_trial() {
    let list = "STLStream(name='a', packet=STLPktBuilder(pkt=frame), mode=STLTXSingleBurst(pps=10, total_pkts=10), next='b'), \
                STLStream(name='b', self_start=False, isg=500000.0, packet=STLPktBuilder(pkt=frame), \
                mode=STLTXSingleBurst(pps=10, total_pkts=5), next='a')";
    let made = converted(list).unwrap();
    let rate = Some(Rate::per_second(10));
    let ms = Duration::from_millis;
    // One second and half a second of frames, half a second of silence: the loop takes two seconds, five fit in ten.
    assert_eq!(
        made.streams[0].pace,
        Pace::Bursts { frames: 10, bursts: 5, rate, gap: ms(1000), after: ms(0) }
    );
    assert_eq!(
        made.streams[1].pace,
        Pace::Bursts { frames: 5, bursts: 5, rate, gap: ms(1500), after: ms(1500) }
    );
    let limited = list.replace("next='a'", "next='a', action_count=2");
    assert_eq!(
        converted(&limited).unwrap().streams[1].pace,
        Pace::Bursts { frames: 5, bursts: 2, rate, gap: ms(1500), after: ms(1500) }
    );
}

#[test]
fn a_chain_that_the_plan_cannot_express_says_what_it_can() {
    let said = refused(
        "STLStream(name='a', packet=STLPktBuilder(pkt=frame), mode=STLTXMultiBurst(pps=10, pkts_per_burst=2, count=3, \
         ibg=1.0), next='a', isg=7.0)",
    );
    assert!(said.contains("stream a") && said.contains("what can be"), "{said}");
    let said = refused(
        "STLStream(name='a', mode=STLTXSingleBurst(), next='c'), STLStream(name='b', mode=STLTXSingleBurst(), next='c'), \
         STLStream(name='c', self_start=False)",
    );
    assert!(said.contains("started twice"), "{said}");
}

#[test]
fn what_is_not_sent_is_noted() {
    let made = converted(
        "STLStream(name='off', enabled=False), STLStream(name='lone', self_start=False), STLStream(name='on'), \
         STLStream(name='wait', dummy_stream=True, mode=STLTXSingleBurst())",
    )
    .unwrap();
    assert_eq!(made.streams.len(), 1);
    assert!(made.notes.iter().any(|n| n.contains("off is disabled")), "{:?}", made.notes);
    assert!(made.notes.iter().any(|n| n.contains("lone is started by no other")), "{:?}", made.notes);
}

#[test]
fn macs_are_the_labs_unless_the_profile_says_its_own() {
    let macs = |list: &str| converted(list).unwrap().streams[0].frame[..12].to_vec();
    let lab = [2, 0, 0, 0, 0, 0x11, 2, 0, 0, 0, 0, 1];
    assert_eq!(macs("STLStream(packet=STLPktBuilder(pkt=frame))"), lab);
    let own = macs(
        "STLStream(packet=STLPktBuilder(pkt=Ether(src='0a:00:00:00:00:01', dst='0a:00:00:00:00:02')/IP()))",
    );
    assert_eq!(own, [10, 0, 0, 0, 0, 2, 10, 0, 0, 0, 0, 1]);
    let kept = macs(
        "STLStream(packet=STLPktBuilder(pkt=frame), mac_src_override_by_pkt=True, mac_dst_override_mode=1)",
    );
    assert_eq!(kept, [0, 0, 0, 1, 0, 0, 0, 0, 0, 2, 0, 0]);
}

#[test]
fn what_has_no_place_in_the_plan_is_an_error() {
    for (vm, said) in [
        ("[STLVmFlowVar('a'), STLVmWrFlowVar('b', 20)]", "there are: a"),
        ("[STLVmFlowVar('a'), STLVmWrFlowVar('a', 80)]", "0 to 81"),
        ("[STLVmFlowVar('a'), STLVmFlowVar('a')]", "there twice"),
        ("[STLVmFlowVar('a', size=2), STLVmWrFlowVar('a', 'UDP.chksum')]", "STLVmFixChecksumHw"),
        ("[STLVmFlowVar('a', size=2), STLVmWrFlowVar('a', 'IP.chksum')]", "STLVmFixIpv4"),
        ("[STLVmFixIpv4(23)]", "no IP header at byte 23"),
        ("[STLVmFixIpv4(4)]", "begins at 14"),
        ("[STLVmFlowVar('a', next_var='z')]", "no such variable"),
        ("[STLVmFlowVar('a', op='random', next_var='b'), STLVmFlowVar('b')]", "inc can"),
        ("[STLVmFlowVar('a', next_var='b'), STLVmFlowVar('b', next_var='a')]", "back to itself"),
        ("[STLVmFlowVar('a', max_value=100), STLVmTrimPktSize('a')]", "only 82"),
        ("[STLVmFlowVar('a', max_value=1<<20, next_var='b'), STLVmFlowVar('b')]", "1048576"),
    ] {
        let message = refused(&program(vm));
        assert!(message.contains(said) && message.contains("number 1"), "{vm}: {message}");
    }
    let inner = "STLStream(packet=STLPktBuilder(pkt=Ether()/IP()/IP()/UDP(), vm=[STLVmFlowVar('a', size=2), \
                 STLVmWrFlowVar('a', 'UDP.sport'), STLVmFixIpv4('IP:1')]))";
    assert!(refused(inner).contains("inner header at byte 34"));
    assert!(refused("STLStream() for i in range(65)").contains("at most 64"));
}

#[test]
fn a_checksum_that_goes_wrong_is_noted() {
    let made = converted(&program("[STLVmFlowVar('a'), STLVmWrFlowVar('a', 'IP.src')]")).unwrap();
    assert!(!made.streams[0].checksums.ip4);
    assert!(made.notes.iter().any(|n| n.contains("IPv4 checksum does not follow")), "{:?}", made.notes);
}

#[test]
fn ranges_of_addresses_by_one_call() {
    let made =
        converted(&program("STLIPRange(dst={'start': '10.0.0.1', 'end': '10.0.0.254', 'step': 1})")).unwrap();
    let change = &made.streams[0].changes[0];
    assert_eq!((change.variable.min, change.variable.max), (0x0A00_0001, 0x0A00_00FE));
    assert_eq!(change.writes[0].offset, 30);
    assert!(made.streams[0].checksums.ip4);
}

#[test]
fn tunables_reach_the_profile_in_both_styles() {
    let old = written(
        "from trex_stl_lib.api import *\nclass P:\n    def get_streams(self, size=64, vm='none', rate=1.0):\n        \
         raise ValueError((size, vm, rate))\ndef register(): return P()\n",
    );
    assert!(old.fault("size=128,vm=var2,rate=2.5").message.contains("(128, 'var2', 2.5)"));
    assert!(old.fault("--size 0x80 --vm var2 --rate=1e3").message.contains("(128, 'var2', 1000.0)"));
    let fault = old.fault("siz=3");
    assert_eq!((fault.name.as_str(), fault.nearest[0].as_str()), ("siz", "size"));
    let new = written(
        "import argparse\nclass P:\n    def get_streams(self, direction, tunables, **kwargs):\n        \
         p = argparse.ArgumentParser()\n        p.add_argument('--size', type=int, default=64)\n        \
         raise ValueError(('size', p.parse_args(tunables).size, direction))\ndef register(): return P()\n",
    );
    assert!(new.fault("--size 9").message.contains("('size', 9, 0)"));
    assert!(new.fault("size=9").message.contains("('size', 9, 0)"));
    let fault = new.fault("--width 9");
    assert!(
        fault.message.contains("unrecognized") && fault.nearest.contains(&"--size".to_owned()),
        "{fault}"
    );
    assert!(new.fault("size").message.contains("name=value"));
}

#[test]
fn a_signature_that_takes_nothing_gets_nothing() {
    let bare = written(
        "from trex.stl.api import *\nclass P:\n    def get_streams(self):\n        return [STLStream()]\n\
         def register(): return P()\n",
    );
    assert_eq!(bare.load("").unwrap().streams.len(), 1);
    assert!(bare.fault("size=3").message.contains("no tunable size"));
}

#[test]
fn a_tunable_that_only_kwargs_take_is_noted() {
    let loaded = listing("STLStream()").load("sise=3").unwrap();
    assert!(loaded.notes.iter().any(|n| n.contains("sise")), "{:?}", loaded.notes);
}

#[test]
fn the_json_of_streams_is_trexs_and_can_be_read_again() {
    let loaded =
        listing("STLStream(name='a', packet=STLPktBuilder(pkt=frame), random_seed=5)").load("").unwrap();
    let json = loaded.to_json();
    let keys: Vec<_> = json[0].as_object().unwrap().keys().map(String::as_str).collect();
    for key in [
        "action_count",
        "enabled",
        "flags",
        "flow_stats",
        "isg",
        "mode",
        "name",
        "packet",
        "self_start",
        "vm",
    ] {
        assert!(keys.contains(&key), "{key} in {keys:?}");
    }
    assert!(!keys.contains(&"shoal"));
    let again = Loaded::from_json("x.json".as_ref(), &json.to_string()).unwrap();
    assert_eq!(again.to_json(), json);
    let made = convert(&again.streams, Side::Left, &sending()).unwrap();
    assert_eq!(made, convert(&loaded.streams, Side::Left, &sending()).unwrap());
    let wrong = Loaded::from_json("x.json".as_ref(), "[{\"name\": 3}]").unwrap_err().to_string();
    assert!(wrong.contains("x.json"), "{wrong}");
}

#[test]
fn the_first_frame_of_a_capture_is_taken() {
    let mut pcap = vec![0xd4, 0xc3, 0xb2, 0xa1, 2, 0, 4, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 0, 1, 0, 1, 0, 0, 0];
    let frame = [[2; 12].as_slice(), &[0x88, 0xB5], &[7; 50]].concat();
    pcap.extend([0, 0, 0, 0, 0, 0, 0, 0, 64, 0, 0, 0, 64, 0, 0, 0]);
    pcap.extend(&frame);
    let profile = listing("STLStream(packet=STLPktBuilder(pkt='a.pcap', path_relative_to_profile=True))");
    profile.beside("a.pcap", &pcap);
    let loaded = profile.load("").unwrap();
    assert_eq!(loaded.streams[0].frame().unwrap(), frame);
    profile.beside("a.pcap", &pcap[..60]);
    assert!(profile.fault("").message.contains("ends within"));
    profile.beside("a.pcap", b"no capture");
    assert!(profile.fault("").message.contains("no pcap file"));
}

#[test]
fn the_networks_of_ipv6_are_told_and_what_is_not_ip_has_none() {
    let made = converted(
        "STLStream(packet=STLPktBuilder(pkt=Ether()/IPv6(src='2001:2::1', dst='2001:2:0:8000::1')/UDP()/('x'*20), \
         vm=[STLVmFlowVar('a', size=2, min_value=1, max_value=9), STLVmWrFlowVar('a', 'IPv6.dst', offset_fixup=14), \
         STLVmFixChecksumHw('IPv6', 'UDP', 11)])), STLStream(packet=STLPktBuilder(pkt=Ether()/('x'*60)))",
    )
    .unwrap();
    let found = networks(&made.streams);
    assert_eq!(found.len(), 1);
    let to = ("2001:2:0:8000::1".parse().unwrap(), "2001:2:0:8000::9".parse().unwrap());
    assert_eq!(found[0].destinations, to);
    assert!(made.streams[0].checksums.l4);
}

#[test]
fn fields_of_a_frame_that_was_given_as_bytes_have_names_too() {
    let made = converted(
        "STLStream(packet=STLPktBuilder(pkt_buffer=bytes(Ether()/Dot1Q()/IP()/IP()/UDP()/(30*'x')), \
         vm=STLScVmRaw([STLVmFlowVar('a', size=2), STLVmWrFlowVar('a', 'IP:1.id'), STLVmWrFlowVar('a', '802|1Q.vlan'), \
         STLVmWrFlowVar('a', 'UDP.dport'), STLVmFixIpv4('IP')], split_by_field='a')))",
    )
    .unwrap();
    let offsets: Vec<_> = made.streams[0].changes[0].writes.iter().map(|w| w.offset).collect();
    assert_eq!(offsets, [18 + 20 + 4, 14, 18 + 40 + 2]);
}

#[test]
fn a_profile_that_rolls_dice_rolls_the_same_ones_each_time() {
    let profile = listing("STLStream(mode=STLTXCont(pps=random.randint(1, 10**9)))");
    let first = profile.load("").unwrap();
    assert_eq!(first.to_json(), profile.load("").unwrap().to_json());
    let other = shoal_lab_stl::Load { seed: 2, ..profile::how("") };
    let second = shoal_lab_stl::load(&profile.path, Side::Left, &other).unwrap();
    assert_ne!(first.to_json(), second.to_json());
}
