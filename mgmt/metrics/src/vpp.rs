//! The names of VPP's exporter, for dashboards that know them: a counter's name with `_` for what is neither letter
//! nor digit.

use std::fmt::Write;

use shoal_stats_client::{Counter, Pair, Value};

/// All counters, in the text format of Prometheus.
pub fn render(counters: &[Counter]) -> String {
    let mut text = String::new();
    for Counter { name, value } in counters {
        let name: String = name.chars().map(|c| if c.is_ascii_alphanumeric() { c } else { '_' }).collect();
        // Writing to a string cannot fail.
        let _ = one(&mut text, &name, value);
    }
    text
}

fn one(text: &mut String, name: &str, value: &Value) -> std::fmt::Result {
    match value {
        Value::Scalar(n) => writeln!(text, "# TYPE {name} counter\n{name} {n}.00"),
        Value::Gauge(n) => writeln!(text, "# TYPE {name} gauge\n{name} {n}.00"),
        Value::Simple(threads) => rows(text, name, threads, |n| *n),
        Value::SimpleLink(threads) => rows(text, name, &each(threads), |n| *n),
        Value::Combined(threads) => pairs(text, name, threads),
        Value::CombinedLink(threads) => pairs(text, name, &each(threads)),
        Value::Names(names) => {
            writeln!(text, "# TYPE {name}_info gauge")?;
            names.iter().enumerate().filter_map(|(i, n)| Some((i, n.as_ref()?))).try_for_each(
                |(i, object)| {
                    let object = super::families::escaped(object);
                    writeln!(text, "{name}_info{{index=\"{i}\",name=\"{object}\"}} 1")
                },
            )
        }
        Value::Histogram(_) | Value::Other(_) => Ok(()),
    }
}

/// One object's numbers as rows of one.
fn each<T: Copy>(threads: &[T]) -> Vec<[T; 1]> {
    threads.iter().map(|n| [*n]).collect()
}

fn pairs(text: &mut String, name: &str, threads: &[impl AsRef<[Pair]>]) -> std::fmt::Result {
    rows(text, &format!("{name}_packets"), threads, |n| n.packets)?;
    rows(text, &format!("{name}_bytes"), threads, |n| n.bytes)
}

fn rows<T>(
    text: &mut String,
    name: &str,
    threads: &[impl AsRef<[T]>],
    number: impl Fn(&T) -> u64,
) -> std::fmt::Result {
    writeln!(text, "# TYPE {name} counter")?;
    for (thread, row) in threads.iter().enumerate() {
        for (i, n) in row.as_ref().iter().enumerate() {
            writeln!(text, "{name}{{thread=\"{thread}\",interface=\"{i}\"}} {}", number(n))?;
        }
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_and_labels_are_those_of_vpps_exporter() {
        let pair = Pair { packets: 7, bytes: 700 };
        let counters: Vec<Counter> = [
            ("/sys/heartbeat", Value::Scalar(3)),
            ("/if/rx", Value::Combined(vec![vec![pair]])),
            ("/err/ip4-input/bad header", Value::SimpleLink(vec![1, 2])),
            ("/if/names", Value::Names(vec![None, Some("a\"b".into())])),
        ]
        .map(|(name, value)| Counter { name: name.into(), value })
        .to_vec();
        assert_eq!(
            render(&counters),
            "# TYPE _sys_heartbeat counter\n_sys_heartbeat 3.00\n\
             # TYPE _if_rx_packets counter\n_if_rx_packets{thread=\"0\",interface=\"0\"} 7\n\
             # TYPE _if_rx_bytes counter\n_if_rx_bytes{thread=\"0\",interface=\"0\"} 700\n\
             # TYPE _err_ip4_input_bad_header counter\n\
             _err_ip4_input_bad_header{thread=\"0\",interface=\"0\"} 1\n\
             _err_ip4_input_bad_header{thread=\"1\",interface=\"0\"} 2\n\
             # TYPE _if_names_info gauge\n_if_names_info{index=\"1\",name=\"a\\\"b\"} 1\n"
        );
    }
}
