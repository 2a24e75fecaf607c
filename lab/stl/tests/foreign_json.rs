//! Streams as JSON that no shim of ours has written: read as far as they make sense, refused where they do not.
#![allow(
    clippy::unwrap_used,
    clippy::expect_used,
    clippy::panic,
    clippy::indexing_slicing,
    reason = "test code"
)]

use std::time::Duration;

use serde_json::{Value, json};
use shoal_lab_plan::Side;
use shoal_lab_stl::{Converted, Loaded, ProfileError, Sending, convert};

/// A stream in the form of TRex's client, with some values in place of its own.
fn stream(instructions: Value, more: Value) -> Value {
    let mut made = json!({
        "action_count": 0, "enabled": true, "flags": 0, "flow_stats": {"enabled": false}, "isg": 0.0,
        "mode": {"rate": {"type": "pps", "value": 1}, "type": "continuous"},
        // Ether / IP / UDP and 18 bytes.
        "packet": {"binary": "AAAAAQAAAAAAAgAACABFAAAuAAEAAEAROr0QAAABMAAAAQQBAAwAGn9veHh4eHh4eHh4eHh4eHh4eHh4", "meta": ""},
        "self_start": true,
        "vm": {"instructions": instructions}
    });
    for (key, value) in more.as_object().unwrap() {
        made[key] = value.clone();
    }
    made
}

fn made(stream: Value) -> Result<Converted, ProfileError> {
    let loaded = Loaded::from_json("streams.json".as_ref(), &json!([stream]).to_string())?;
    convert(&loaded.streams, Side::Left, &Sending::new(Duration::from_secs(1)))
}

#[test]
fn what_trexs_client_writes_is_read() {
    let plain = made(stream(json!([]), json!({}))).unwrap();
    assert_eq!(plain.streams[0].frame.len(), 60);
    // An older client writes neither step nor next_var.
    let old = json!([
        {"type": "flow_var", "name": "a", "size": 4, "op": "inc", "init_value": 1, "min_value": 1, "max_value": 5},
        {"type": "write_flow_var", "name": "a", "pkt_offset": 26, "add_value": 0, "is_big_endian": true},
        {"type": "fix_checksum_ipv4", "pkt_offset": 14}
    ]);
    assert_eq!(made(stream(old, json!({}))).unwrap().streams[0].changes.len(), 1);
}

#[test]
fn values_that_make_no_sense_are_refused_and_none_ends_the_lab() {
    let variable = |more: Value| {
        let mut made = json!({"type": "flow_var", "name": "a", "size": 4, "op": "inc", "init_value": 0, "min_value": 0, "max_value": 9});
        for (key, value) in more.as_object().unwrap() {
            made[key] = value.clone();
        }
        made
    };
    let write = |offset: i64, size: u64, shift: i64, big: bool| {
        json!({"type": "write_mask_flow_var", "name": "a", "pkt_offset": offset, "pkt_cast_size": size, "mask": 255,
               "shift": shift, "add_value": 0, "is_big_endian": big})
    };
    let plain = || variable(json!({}));
    for (instructions, said) in [
        (json!([plain(), write(26, 3, 0, true)]), "1, 2, 4 or 8"),
        (json!([plain(), write(26, 200, 0, true)]), "1, 2, 4 or 8"),
        (json!([plain(), write(26, 4, -128, false)]), "-63 to 63"),
        (json!([plain(), write(i64::MAX, 4, 0, true)]), "0 to 59"),
        (json!([plain(), write(-1, 4, 0, true)]), "0 to 59"),
        (json!([variable(json!({"min_value": 10})), write(26, 4, 0, true)]), "exchange"),
        (json!([variable(json!({"value_list": []})), write(26, 4, 0, true)]), "empty"),
        (json!([{"type": "fix_checksum_ipv4", "pkt_offset": u64::MAX}]), "no IP header"),
        (json!([{"type": "fix_checksum_ipv6"}]), "streams.json"),
        (json!([{"type": "trim_pkt_size", "name": "z"}]), "no variable z"),
        (
            json!([{"type": "flow_var_rand_limit", "name": "a", "size": 4, "limit": u64::MAX, "min_value": 0, "max_value": 1}]),
            "1048576",
        ),
    ] {
        let text = made(stream(instructions.clone(), json!({}))).unwrap_err().to_string();
        assert!(text.contains(said), "{instructions}: {text}");
    }
    for (more, said) in [
        (json!({"packet": {"binary": "%%"}}), "base 64"),
        (json!({"packet": {"binary": "AAAA"}}), "14 to 65535"),
        (json!({"mode": {"rate": {"type": "pps", "value": 0}, "type": "continuous"}}), "above 0"),
        (json!({"mode": {"rate": {"type": "pps", "value": -5}, "type": "continuous"}}), "above 0"),
        (json!({"mode": {"rate": {"type": "fps", "value": 5}, "type": "continuous"}}), "streams.json"),
        (json!({"next": "missing"}), "no stream has that name"),
    ] {
        let text = made(stream(json!([]), more.clone())).unwrap_err().to_string();
        assert!(text.contains(said), "{more}: {text}");
    }
}

#[test]
fn huge_ranges_rates_and_counts_do_not_overflow() {
    let whole = json!([
        {"type": "flow_var", "name": "a", "size": 8, "op": "dec", "init_value": u64::MAX, "min_value": 0,
         "max_value": u64::MAX, "step": u64::MAX},
        {"type": "write_flow_var", "name": "a", "pkt_offset": 42, "add_value": i64::MIN, "is_big_endian": false}
    ]);
    let cached = json!({"vm": {"instructions": whole, "cache": 1000}});
    assert_eq!(made(stream(json!([]), cached)).unwrap().streams[0].changes.len(), 1);
    let mode = json!({"mode": {"type": "multi_burst", "pkts_per_burst": u64::MAX, "count": u64::MAX, "ibg": 1e17,
                               "rate": {"type": "bps_L1", "value": 1e17}}});
    assert_eq!(made(stream(json!([]), mode)).unwrap().streams.len(), 1);
}
