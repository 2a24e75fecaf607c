//! Counters as lines of VPP's own client, and as JSON.

use std::fmt::Write;

use serde_json::{Value as Json, json};
use shoal_stats_client::{Counter, Pair, Value};

use crate::options::CounterSelection;

/// Lines, one for each number.
pub fn as_text(counters: &[Counter], what: &CounterSelection) -> String {
    let mut text = String::new();
    for Counter { name, value } in counters {
        match value {
            Value::Scalar(n) | Value::Gauge(n) => {
                if shown(what, None, *n == 0) {
                    // VPP's client has it as a number with a fraction.
                    let _ = writeln!(text, "{n}.00 {name}");
                }
            }
            Value::Simple(threads) => {
                table(&mut text, threads, what, |n| *n == 0, |n| format!("{n} packets {name}"));
            }
            Value::SimpleLink(threads) => {
                let rows: Vec<[u64; 1]> = threads.iter().map(|n| [*n]).collect();
                table(&mut text, &rows, what, |n| *n == 0, |n| format!("{n} packets {name}"));
            }
            Value::Combined(threads) => {
                table(&mut text, threads, what, nothing, |n| pair(n, name));
            }
            Value::CombinedLink(threads) => {
                let rows: Vec<[Pair; 1]> = threads.iter().map(|n| [*n]).collect();
                table(&mut text, &rows, what, nothing, |n| pair(n, name));
            }
            Value::Names(names) => {
                let there = names.iter().enumerate().filter_map(|(i, n)| Some((i, n.as_ref()?)));
                for (i, object) in there.filter(|(i, _)| shown(what, Some(*i), false)) {
                    let _ = writeln!(text, "[{i}]: {object} {name}");
                }
            }
            Value::Histogram(threads) => {
                for (thread, histogram) in threads.iter().enumerate() {
                    for (i, count) in histogram.bins.iter().enumerate() {
                        if shown(what, Some(i), *count == 0) {
                            let most =
                                2f64.powi(i32::try_from(histogram.first + i as u64).unwrap_or(i32::MAX));
                            let _ = writeln!(text, "[{i} @ {thread}]: {count} up to {most} {name}");
                        }
                    }
                }
            }
            Value::Other(number) => {
                let _ = writeln!(text, "type {number} {name}");
            }
        }
    }
    text
}

fn pair(n: &Pair, name: &str) -> String {
    format!("{} packets, {} bytes {name}", n.packets, n.bytes)
}

fn nothing(n: &Pair) -> bool {
    *n == Pair::default()
}

fn shown(what: &CounterSelection, index: Option<usize>, zero: bool) -> bool {
    let wanted = match (what.only_index, index) {
        (Some(only), Some(index)) => only == index,
        _ => true,
    };
    wanted && !(what.no_zeros && zero)
}

/// Thread by thread, object by object.
fn table<T>(
    text: &mut String,
    threads: &[impl AsRef<[T]>],
    what: &CounterSelection,
    zero: impl Fn(&T) -> bool,
    line: impl Fn(&T) -> String,
) {
    for (thread, row) in threads.iter().enumerate() {
        for (i, n) in row.as_ref().iter().enumerate().filter(|(i, n)| shown(what, Some(*i), zero(n))) {
            let _ = writeln!(text, "[{i} @ {thread}]: {}", line(n));
        }
    }
}

/// An array with one object for each counter. Tables are arrays by thread of arrays by object; a table's objects
/// stay at their places, whatever is left out.
pub fn as_json(counters: &[Counter], what: &CounterSelection) -> Json {
    let entry = |counter: &&Counter| !(what.no_zeros && is_zero(&counter.value));
    let both = |n: &Pair| json!({"packets": n.packets, "bytes": n.bytes});
    let only = |json: Json| match (what.only_index, json) {
        (Some(only), Json::Array(objects)) => objects.into_iter().nth(only).unwrap_or_default(),
        (_, json) => json,
    };
    let one = |Counter { name, value }: &Counter| {
        let (kind, value) = match value {
            Value::Scalar(n) => ("scalar", json!(n)),
            Value::Gauge(n) => ("gauge", json!(n)),
            Value::Simple(threads) => ("simple", threads.iter().map(|row| only(json!(row))).collect()),
            Value::SimpleLink(threads) => ("simple", json!(threads)),
            Value::Combined(threads) => {
                ("combined", threads.iter().map(|row| only(row.iter().map(both).collect())).collect())
            }
            Value::CombinedLink(threads) => ("combined", threads.iter().map(both).collect()),
            Value::Names(names) => ("name", only(json!(names))),
            Value::Histogram(threads) => (
                "histogram",
                threads.iter().map(|h| json!({"first_power": h.first, "bins": h.bins})).collect(),
            ),
            Value::Other(number) => ("other", json!(number)),
        };
        json!({"name": &**name, "type": kind, "value": value})
    };
    counters.iter().filter(entry).map(one).collect()
}

fn is_zero(value: &Value) -> bool {
    match value {
        Value::Names(_) | Value::Other(_) => false,
        Value::Combined(threads) => threads.iter().flatten().all(nothing),
        Value::CombinedLink(threads) => threads.iter().all(nothing),
        Value::Simple(threads) => threads.iter().flatten().all(|n| *n == 0),
        Value::SimpleLink(threads) => threads.iter().all(|n| *n == 0),
        other => other.sum() == 0,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn what(no_zeros: bool, only_index: Option<usize>) -> CounterSelection {
        CounterSelection { patterns: Vec::new(), no_zeros, only_index }
    }

    fn counters() -> Vec<Counter> {
        let pair = |packets, bytes| Pair { packets, bytes };
        [
            ("/sys/heartbeat", Value::Scalar(7)),
            ("/if/drops", Value::Simple(vec![vec![0, 3], vec![0, 4]])),
            ("/if/rx", Value::Combined(vec![vec![pair(1, 60), pair(0, 0)]])),
            ("/if/names", Value::Names(vec![None, Some("pg0".into())])),
            ("/interfaces/pg0/drops", Value::SimpleLink(vec![3, 4])),
        ]
        .map(|(name, value)| Counter { name: name.into(), value })
        .to_vec()
    }

    #[test]
    fn lines_are_those_of_vpp_get_stats() {
        assert_eq!(
            as_text(&counters(), &what(false, None)),
            "7.00 /sys/heartbeat\n\
             [0 @ 0]: 0 packets /if/drops\n\
             [1 @ 0]: 3 packets /if/drops\n\
             [0 @ 1]: 0 packets /if/drops\n\
             [1 @ 1]: 4 packets /if/drops\n\
             [0 @ 0]: 1 packets, 60 bytes /if/rx\n\
             [1 @ 0]: 0 packets, 0 bytes /if/rx\n\
             [1]: pg0 /if/names\n\
             [0 @ 0]: 3 packets /interfaces/pg0/drops\n\
             [0 @ 1]: 4 packets /interfaces/pg0/drops\n"
        );
    }

    #[test]
    fn zeros_and_other_objects_are_left_out_on_request() {
        let text = as_text(&counters()[1..4], &what(true, Some(1)));
        assert_eq!(text, "[1 @ 0]: 3 packets /if/drops\n[1 @ 1]: 4 packets /if/drops\n[1]: pg0 /if/names\n");
        let json = as_json(&counters()[1..3], &what(false, Some(1)));
        assert_eq!(json[0]["value"], json!([3, 4]));
        assert_eq!(json[1]["value"], json!([{"packets": 0, "bytes": 0}]));
    }

    #[test]
    fn json_has_names_types_and_values() {
        let json = as_json(&counters(), &what(false, None));
        assert_eq!(json[0], json!({"name": "/sys/heartbeat", "type": "scalar", "value": 7}));
        assert_eq!(json[2]["value"][0][0], json!({"packets": 1, "bytes": 60}));
        assert_eq!(json[3]["value"], json!([null, "pg0"]));
    }
}
