//! Profiles that are wrong, and profiles that misbehave: each has an error that says what and where.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use crate::profile;

use std::path::Path;
use std::time::{Duration, Instant};

use profile::{how, listing, written};
use shoal_lab_plan::Side;
use shoal_lab_stl::{FaultKind, Limits, Load, ProfileError, load};

fn tight() -> Load {
    let limits =
        Limits { time: Duration::from_secs(5), memory: 256 << 20, answer: 1 << 20, printed: 1 << 20 };
    Load { limits, ..Load::default() }
}

#[test]
fn a_name_of_the_api_that_is_missing_is_told_with_line_and_neighbour() {
    let fault = listing("STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXContinuous(pps=1))").fault("");
    assert_eq!((fault.kind, fault.name.as_str(), fault.line), (FaultKind::Unsupported, "STLTXContinuous", 6));
    assert_eq!(fault.nearest[0], "STLTXCont");
    let text = fault.to_string();
    assert!(
        text.contains("mine.py:6: STLTXContinuous is not supported") && text.contains("STLTXCont"),
        "{text}"
    );
}

#[test]
fn a_name_that_is_imported_by_itself_is_told_as_well() {
    let fault = written("import os\nfrom trex.stl.api import STLStream, STLHltStream\n").fault("");
    assert_eq!((fault.kind, fault.name.as_str(), fault.line), (FaultKind::Unsupported, "STLHltStream", 2));
    assert!(fault.nearest.contains(&"STLStream".to_owned()), "{fault}");
    let fault = written("from trex.stl.trex_stl_client import STLClient\n").fault("");
    assert_eq!((fault.kind, fault.name.as_str()), (FaultKind::Unsupported, "trex.stl.trex_stl_client"));
}

#[test]
fn an_argument_that_is_missing_is_told_with_those_that_are_there() {
    let fault = listing("STLStream(packet=STLPktBuilder(pkt=frame), mode=STLTXCont(bps_l1=10))").fault("");
    assert_eq!((fault.kind, fault.name.as_str()), (FaultKind::Unsupported, "STLTXCont(bps_l1=)"));
    assert_eq!(fault.nearest[0], "bps_L1");
}

#[test]
fn fields_and_layers_that_are_not_there_are_told() {
    for (list, name, near) in [
        ("STLStream(packet=STLPktBuilder(pkt=IP(source='1.1.1.1')))", "IP.source", "src"),
        ("STLPktBuilder(pkt=frame, vm=[STLVmFixIpv4(offset='IPv6')])", "IPv6", "IP"),
        (
            "STLPktBuilder(pkt=frame, vm=[STLVmFlowVar(name='a'), STLVmWrFlowVar('a', 'UDP.sprt')])",
            "UDP.sprt",
            "sport",
        ),
    ] {
        let fault = listing(list).fault("");
        assert_eq!(
            (fault.kind, fault.name.as_str(), fault.line),
            (FaultKind::Unsupported, name, 6),
            "{list}"
        );
        assert!(fault.nearest.iter().any(|n| n == near), "{fault}");
    }
}

#[test]
fn a_layer_that_only_scapy_has_is_told_where_scapy_is_not() {
    let fault = listing("STLStream(packet=STLPktBuilder(pkt=Ether()/MPLS(label=3)))").fault("");
    if fault.kind == FaultKind::Exception {
        println!("SKIP a_layer_that_only_scapy_has_is_told_where_scapy_is_not: Scapy is here");
        return;
    }
    assert_eq!((fault.kind, fault.name.as_str()), (FaultKind::Unsupported, "MPLS"));
    assert!(fault.message.contains("install Scapy"), "{fault}");
}

#[test]
fn values_that_the_api_refuses_are_told_with_what_would_do() {
    for (list, said) in [
        ("STLStream(mode=STLTXCont(pps=1, percentage=3))", "pps and percentage"),
        ("STLStream(mode=STLTXCont(percentage=300))", "the most is 100"),
        ("STLStream(mode=STLTXCont(pps=0))", "above 0"),
        ("STLStream(mode=STLTXCont(pps='1'))", "int or float"),
        ("STLStream(isg=-1)", "0 or more"),
        ("STLStream(action_count=-1)", "0 or more"),
        ("STLStream(mode=STLTXCont(), next='b')", "burst mode"),
        ("STLStream(packet=frame)", "STLPktBuilder"),
        ("STLVmFlowVar('a', min_value=5, max_value=4)", "exchange"),
        ("STLVmFlowVar('a', min_value=0, max_value=256, size=1)", "0 to 255"),
        ("STLVmFlowVar('a', init_value=300)", "between 0 and 255"),
        ("STLTXSingleBurst(total_pkts=0)", "smallest is 1"),
        ("IP(src='16.0.0.300')", "16.0.0.1 is one"),
        ("UDP(sport=70000)", "0 to 65535"),
        ("7", "STLStream(...) makes one"),
    ] {
        let fault = listing(list).fault("");
        assert_eq!(fault.kind, FaultKind::Refused, "{list}: {fault}");
        assert!(fault.message.contains(said), "{list}: {fault}");
    }
}

#[test]
fn what_is_no_python_is_told_with_its_line() {
    let fault = written("import os\n\ndef register(:\n").fault("");
    assert_eq!((fault.kind, fault.line), (FaultKind::Syntax, 3));
}

#[test]
fn an_exception_is_told_with_the_profiles_own_line() {
    let fault = written("import json\n\ndef register():\n    return json.loads('{')\n").fault("");
    assert_eq!((fault.kind, fault.line), (FaultKind::Exception, 4));
    assert!(fault.message.contains("JSONDecodeError"), "{fault}");
}

#[test]
fn an_exception_in_a_file_beside_the_profile_is_told_with_that_file() {
    let profile = written("import rates\nfrom trex_stl_lib.api import *\n");
    profile.beside("rates.py", b"x = 1\ny = x / 0\n");
    let fault = profile.fault("");
    assert_eq!(fault.line, 1, "the profile's own line leads there");
    assert!(fault.message.contains("ZeroDivisionError"), "{fault}");
}

#[test]
fn a_profile_without_register_or_streams_is_told_what_it_needs() {
    assert!(written("x = 1\n").fault("").message.contains("register()"));
    assert!(written("def register():\n    return 7\n").fault("").message.contains("get_streams"));
    let none = "class P:\n    def get_streams(self): pass\ndef register(): return P()\n";
    assert!(written(none).fault("").message.contains("returned None"));
}

#[test]
fn a_profile_that_never_ends_is_ended() {
    let profile = written("while True:\n    pass\n");
    let mut load_how = tight();
    load_how.limits.time = Duration::from_millis(700);
    let began = Instant::now();
    let error = load(&profile.path, Side::Left, &load_how).unwrap_err();
    assert!(matches!(error, ProfileError::TimedOut { .. }), "{error}");
    assert!(error.to_string().contains("does it loop"), "{error}");
    assert!(began.elapsed() < Duration::from_secs(20));
}

#[test]
fn a_profile_that_sleeps_with_its_signals_blocked_is_ended_too() {
    let profile = written(
        "import signal, time\nsignal.pthread_sigmask(signal.SIG_BLOCK, range(1, 32))\nwhile True:\n    time.sleep(9)\n",
    );
    let mut load_how = tight();
    load_how.limits.time = Duration::from_millis(700);
    let error = load(&profile.path, Side::Left, &load_how).unwrap_err();
    assert!(matches!(error, ProfileError::TimedOut { .. }), "{error}");
}

#[test]
fn what_a_profile_prints_does_not_get_into_its_streams() {
    let profile = written(
        "import os\nfrom trex_stl_lib.api import *\nprint('{\"streams\": 7}')\nos.write(1, b'garbage\\xff\\n')\n\nclass P:\n    \
         def get_streams(self):\n        return STLStream()\n\ndef register(): return P()\n",
    );
    let loaded = profile.load("").unwrap();
    assert_eq!(loaded.streams.len(), 1);
    assert!(loaded.printed.contains("garbage") && loaded.printed.contains("streams"), "{}", loaded.printed);
}

#[test]
fn garbage_in_place_of_the_answer_is_told() {
    let profile = written(
        "import os\nfor fd in range(3, 20):\n    try: os.write(fd, b'<<garbage>>')\n    except OSError: pass\nos._exit(0)\n",
    );
    let error = profile.load("").unwrap_err();
    assert!(matches!(error, ProfileError::Answer { .. }), "{error}");
    assert!(error.to_string().contains("<<garbage>>"), "{error}");
}

#[test]
fn a_gigabyte_of_answer_is_too_much() {
    let profile = written(
        "import os\nblock = b'[' * (1 << 20)\nwhile True:\n    for fd in range(3, 20):\n        try: os.write(fd, block)\n        \
         except OSError: pass\n",
    );
    let error = load(&profile.path, Side::Left, &tight()).unwrap_err();
    assert!(matches!(error, ProfileError::TooMuch { what: "answered", limit: 1_048_576, .. }), "{error}");
}

#[test]
fn a_gigabyte_of_streams_is_too_much() {
    let many = listing(
        "STLStream(packet=STLPktBuilder(pkt=Ether()/IP()/UDP()/('x' * 60000))) for i in range(20000)",
    );
    let error = load(&many.path, Side::Left, &tight()).unwrap_err();
    let memory = matches!(&error, ProfileError::Fault(fault) if fault.kind == FaultKind::Memory);
    assert!(
        memory || matches!(error, ProfileError::TooMuch { .. } | ProfileError::TimedOut { .. }),
        "{error}"
    );
}

#[test]
fn a_gigabyte_of_chatter_is_too_much() {
    let profile = written("line = 'x' * 65536\nwhile True:\n    print(line)\n");
    let error = load(&profile.path, Side::Left, &tight()).unwrap_err();
    assert!(matches!(error, ProfileError::TooMuch { what: "printed", .. }), "{error}");
}

#[test]
fn a_profile_that_takes_all_memory_is_told_so() {
    let profile = written("import os\nx = []\nwhile True:\n    x.append(bytearray(1 << 24))\n");
    let error = load(&profile.path, Side::Left, &tight()).unwrap_err();
    match error {
        ProfileError::Fault(fault) => {
            assert_eq!((fault.kind, fault.line), (FaultKind::Memory, 4), "{fault}");
        }
        other => panic!("{other}"),
    }
}

#[test]
fn sockets_and_processes_are_refused_with_their_line() {
    for (text, what) in [
        ("import socket\nsocket.socket()\n", "a socket"),
        ("import subprocess\nsubprocess.run(['true'])\n", "a process"),
        ("import os\nos.system('true')\n", "a process"),
        ("import os\nos.fork()\n", "a process"),
    ] {
        let fault = written(text).fault("");
        assert_eq!((fault.kind, fault.line), (FaultKind::Forbidden, 2), "{fault}");
        assert!(fault.message.contains(what), "{fault}");
    }
}

#[test]
fn a_profile_has_no_network_in_reach() {
    let names = "def register():\n    lines = open('/proc/net/dev').read().splitlines()[2:]\n    \
                 raise ValueError('has ' + ' '.join(line.split(':')[0].strip() for line in lines))\n";
    let loaded = listing("STLStream()").load("").unwrap();
    if let Some(note) = loaded.notes.iter().find(|n| n.contains("network")) {
        println!("SKIP a_profile_has_no_network_in_reach: {note}");
        return;
    }
    let fault = written(names).fault("");
    assert_eq!(fault.message, "ValueError: has lo");
}

#[test]
fn a_profile_writes_no_files() {
    let target = tempfile::tempdir().unwrap();
    let file = target.path().join("left.behind");
    let text = format!("f = open({file:?}, 'w')\nf.write('x')\nf.close()\n");
    assert_eq!(written(&text).fault("").kind, FaultKind::Exception);
    assert_eq!(std::fs::metadata(&file).map_or(0, |m| m.len()), 0);
}

#[test]
fn a_profile_that_ends_itself_is_told_with_what_it_said() {
    let fault = written("import sys\nprint('sorry')\nsys.exit(3)\n").fault("");
    assert_eq!(fault.kind, FaultKind::Exit);
    assert!(fault.message.contains('3') && fault.message.contains("sorry"), "{fault}");
    let error = written("import os\nos.write(2, b'bye')\nos._exit(5)\n").load("").unwrap_err().to_string();
    assert!(error.contains("ended with 5") && error.contains("bye"), "{error}");
    let error = written("import os, signal\nos.kill(os.getpid(), signal.SIGSEGV)\n").load("").unwrap_err();
    assert!(error.to_string().contains("killed by signal 11"), "{error}");
}

#[test]
fn endless_recursion_is_an_exception() {
    let fault = written("def f(): return f()\nf()\n").fault("");
    assert!(fault.message.contains("RecursionError"), "{fault}");
}

#[test]
fn files_that_are_not_there_or_no_python_are_told() {
    let missing = load(Path::new("/nowhere/x.py"), Side::Left, &how("")).unwrap_err().to_string();
    assert!(missing.contains("/nowhere/x.py") && missing.contains("no such file"), "{missing}");
    let folder = load(Path::new("/"), Side::Left, &how("")).unwrap_err().to_string();
    assert!(folder.contains("is no file"), "{folder}");
    let python = Load { python: "/nowhere/python3".into(), ..Load::default() };
    let error = load(Path::new("bench"), Side::Left, &python).unwrap_err().to_string();
    assert!(error.contains("/nowhere/python3") && error.contains("3.9"), "{error}");
}

#[test]
fn no_process_is_left_behind() {
    let name = format!("stl{}", std::process::id());
    let profile = written(&format!(
        "import ctypes\nctypes.CDLL(None).prctl(15, b'{name}', 0, 0, 0)\nwhile True:\n    pass\n"
    ));
    let mut load_how = tight();
    load_how.limits.time = Duration::from_millis(700);
    let _ = load(&profile.path, Side::Left, &load_how).unwrap_err();
    let processes = std::fs::read_dir("/proc").unwrap();
    let left = processes.filter_map(|p| std::fs::read_to_string(p.ok()?.path().join("comm")).ok());
    assert_eq!(left.filter(|comm| comm.trim() == name).count(), 0);
}

#[test]
fn no_folder_is_left_behind() {
    let fault = written("import shoal_stl\nraise ValueError('at ' + shoal_stl.__path__[0])\n").fault("");
    let folder = fault.message.strip_prefix("ValueError: at ").unwrap().to_owned();
    assert!(folder.contains("shoal-lab-stl-"), "{folder}");
    assert!(!Path::new(&folder).exists(), "{folder}");
}
