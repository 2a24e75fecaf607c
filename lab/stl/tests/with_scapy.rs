//! Profiles whose layers only Scapy has, and the lab's own layers beside Scapy's.
//!
//! `SHOAL_LAB_PYTHON` names a Python that has Scapy, where `python3` has none.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use crate::profile;

use std::path::PathBuf;

use profile::{listing, sending, written};
use shoal_lab_plan::{Side, Tag};
use shoal_lab_stl::{Fault, FaultKind, Load, Loaded, PROFILES, ProfileError, convert, load};

fn with_scapy(tunables: &str) -> Load {
    let python = std::env::var_os("SHOAL_LAB_PYTHON").map_or_else(|| "python3".into(), PathBuf::from);
    Load { tunables: tunables.to_owned(), python, ..Load::default() }
}

/// Loads it, or says that there is no Scapy.
fn loaded(path: &std::path::Path, side: Side, test: &str) -> Option<Loaded> {
    match load(path, side, &with_scapy("")) {
        Ok(loaded) => Some(loaded),
        Err(ProfileError::Fault(Fault { kind: FaultKind::Unsupported, message, .. }))
            if message.contains("Scapy") =>
        {
            println!("SKIP {test}: {message}");
            None
        }
        Err(other) => panic!("{other}"),
    }
}

#[test]
fn a_layer_of_scapys_is_built_by_scapy() {
    let text = "STLStream(packet=STLPktBuilder(pkt=Ether()/IP(src='16.0.0.1', dst='48.0.0.1')/UDP(dport=4789)/VXLAN(vni=7)\
                /Ether(src='0a:00:00:00:00:01', dst='0a:00:00:00:00:02')/IP(src='1.1.1.1', dst='2.2.2.2')/UDP()/('x'*30), \
                vm=[STLVmFlowVar('a', size=4, min_value='16.0.0.1', max_value='16.0.0.9'), STLVmWrFlowVar('a', 'IP.src'), \
                STLVmWrFlowVar('a', 'IP:1.src'), STLVmFixIpv4('IP')]))";
    let profile = listing(text);
    let Some(loaded) = loaded(&profile.path, Side::Left, "a_layer_of_scapys_is_built_by_scapy") else {
        return;
    };
    assert!(loaded.layers.starts_with("scapy "), "{}", loaded.layers);
    assert_eq!(loaded.streams[0].shoal.headers_end, 14 + 20 + 8 + 8 + 14 + 20 + 8);
    let made = convert(&loaded.streams, Side::Left, &sending()).unwrap();
    let offsets: Vec<_> = made.streams[0].changes[0].writes.iter().map(|w| w.offset).collect();
    assert_eq!(offsets, [26, 14 + 20 + 8 + 8 + 14 + 12]);
    assert_eq!(made.streams[0].tag, Tag::Signed { offset: 92 + 12 }, "behind the inner headers");
}

#[test]
fn scapy_and_the_labs_own_layers_make_the_same_frames() {
    for (name, _, text) in PROFILES {
        // Naming a layer of Scapy's is what makes the child take it.
        let profile = written(&text.replace("def register():", "ASKS = 'GRE' and GRE\n\n\ndef register():"));
        for side in Side::BOTH {
            let test = "scapy_and_the_labs_own_layers_make_the_same_frames";
            let Some(theirs) = loaded(&profile.path, side, test) else { return };
            assert!(theirs.layers.starts_with("scapy "), "{}", theirs.layers);
            let own = load(name.as_ref(), side, &with_scapy("")).unwrap();
            assert_eq!(own.layers, "own");
            assert_eq!(own.to_json(), theirs.to_json(), "{name}");
        }
    }
}

#[test]
fn an_import_of_scapys_is_told_where_there_is_none() {
    let profile = written(
        "from scapy.all import *\nfrom trex_stl_lib.api import *\nclass P:\n    def get_streams(self):\n        return []\ndef register(): return P()\n",
    );
    match load(&profile.path, Side::Left, &with_scapy("")) {
        Ok(loaded) => assert!(loaded.layers.starts_with("scapy "), "{}", loaded.layers),
        Err(error) => assert!(error.to_string().contains("Scapy is not installed"), "{error}"),
    }
}
