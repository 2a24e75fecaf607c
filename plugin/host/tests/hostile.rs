//! What a plugin may say of its packets, and what it may not.
#![allow(clippy::unwrap_used, clippy::indexing_slicing, clippy::panic)] // helpers of tests

use crate::common;

use shoal_testkit::node::{Passed, run};
use shoal_testkit::{PacketBuilder, Router};

const ACT: &str = "test-act";

fn router() -> (tempfile::TempDir, Router) {
    let folder = tempfile::tempdir().unwrap();
    common::compile(folder.path(), "test.so", &[]);
    let router = common::router(folder.path());
    (folder, router)
}

fn pass(router: &mut Router, bytes: &[u8]) -> Passed {
    run(router, ACT, bytes, |_| ())
}

#[test]
fn what_a_plugin_may_not_say_is_a_counted_drop() {
    let (_folder, mut router) = router();
    for (first, what) in [
        (0, "the plugin decided nothing"),
        (1, "the plugin named a next node that is none"),
        (2, "the plugin named a next node that is none"),
        (10, "the plugin moved the packet's bytes out of its buffer"),
        (11, "the plugin moved the packet's bytes out of its buffer"),
        (12, "the plugin moved the packet's bytes out of its buffer"),
        (13, "the plugin moved the packet's bytes out of its buffer"),
        (14, "the plugin moved the packet's bytes out of its buffer"),
        (20, "a test disliked it"),
        (21, "the plugin dropped for a reason that is none"),
        (22, "the plugin dropped for a reason that is none"),
    ] {
        let passed = pass(&mut router, &[first; 20]);
        assert!(passed.dropped(), "{first}: {passed:?}");
        assert_eq!(passed.counted, [format!("{ACT}: {what}")], "{first}");
        assert_eq!(router.buffers_in_use(), 0);
    }
}

#[test]
fn bytes_are_where_the_plugin_put_them() {
    let (_folder, mut router) = router();
    let mut measured = |bytes: &[u8]| {
        let passed = pass(&mut router, bytes);
        assert_eq!(passed.counted, ["test-measure: a test disliked it"], "{}", bytes[0]);
        passed.said("test-measure").unwrap().to_owned()
    };
    for (first, said) in [
        (29, "start 128 length 20 rest 0"),
        (30, "start 132 length 16 rest 0"),
        (31, "start 120 length 28 rest 0"),
        (32, "start 128 length 120 rest 0"),
        (33, "start 128 length 3 rest 0"),
        (34, "start 0 length 2176 rest 0"),
        (35, "start 128 length 0 rest 0"),
        (40, "start 128 length 20 rest 0"),
        (41, "start 128 length 20 rest 0"),
        (50, "start 128 length 20 rest 0"),
    ] {
        assert_eq!(measured(&[first; 20]), format!("{said} rx 0 seen"), "{first}");
    }
    // Behind the first segment nothing is seen, and its end stays.
    assert!(measured(&[29; 5000]).ends_with("rest 2952 rx 0 seen"));
    assert!(measured(&[30; 5000]).ends_with("rest 2952 rx 0 seen"));
    for first in [10, 13, 15] {
        let passed = pass(&mut router, &[first; 5000]);
        assert_eq!(passed.counted, [format!("{ACT}: the plugin moved the packet's bytes out of its buffer")]);
    }
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn counts_are_the_plugins_own_and_traces_can_be_printed() {
    let (_folder, mut router) = router();
    let passed = pass(&mut router, &[60; 20]);
    assert_eq!(passed.said(ACT), Some(" \u{fffd}x"));
    assert_eq!(router.error(ACT, "disliked"), 1000);
    assert_eq!(pass(&mut router, &[61; 20]).said(ACT), Some("next test-measure"), "a length that lies");
}

#[test]
fn packets_of_one_frame_go_different_ways_and_none_is_lost() {
    let (_folder, mut router) = router();
    let port = router.pg(0);
    for n in 0..1000u32 {
        router.inject(ACT, port.index(), &[[0, 20, 29, 12][n as usize % 4]; 40]);
    }
    router.run();
    assert_eq!(router.error(ACT, "undecided"), 250);
    assert_eq!(router.error(ACT, "disliked"), 250);
    assert_eq!(router.error(ACT, "bad_length"), 250);
    assert_eq!(router.error("test-measure", "disliked"), 250);
    assert_eq!(router.buffers_in_use(), 0);
}

#[test]
fn rubbish_from_the_wire_passes_a_plugin() {
    let (_folder, mut router) = router();
    let port = router.pg(0);
    router.interfaces().enable_feature("ip4-unicast", ACT, port.index(), true).unwrap();
    let packet = PacketBuilder::ethernet([2, 0, 0, 0, 0, 9], port.mac())
        .ip4([10, 0, 0, 2], [10, 9, 9, 9])
        .payload(&[7; 64])
        .build();
    for n in 0..packet.len() {
        router.send(&port, &packet[..n]);
    }
    assert_eq!(router.buffers_in_use(), 0);
}
