//! What the kernel counted at the device's ports: `ip -json -statistics link`.

use serde_json::Value;

use crate::device_environment::Namespace;
use crate::error::SetupError;

/// Name in the record and place in `stats64`.
const COUNTED: [(&str, &str, &str); 8] = [
    ("rx packets", "rx", "packets"),
    ("rx bytes", "rx", "bytes"),
    ("rx errors", "rx", "errors"),
    ("rx dropped", "rx", "dropped"),
    ("tx packets", "tx", "packets"),
    ("tx bytes", "tx", "bytes"),
    ("tx errors", "tx", "errors"),
    ("tx dropped", "tx", "dropped"),
];

/// Counters of `left` and `right` in a namespace.
pub(crate) fn of_kernel(at: &Namespace) -> Result<Vec<(String, u64)>, SetupError> {
    let text = at.ip("-json -statistics link show").run()?;
    parse(&text).ok_or_else(|| SetupError::Answer {
        program: "ip".to_owned(),
        answer: text.chars().take(200).collect(),
    })
}

fn parse(text: &str) -> Option<Vec<(String, u64)>> {
    let links: Value = serde_json::from_str(text).ok()?;
    let links = links.as_array()?;
    let mut counters = Vec::new();
    for name in ["left", "right"] {
        let link = links.iter().find(|l| l.get("ifname").and_then(Value::as_str) == Some(name))?;
        for (what, way, field) in COUNTED {
            let value = link.get("stats64")?.get(way)?.get(field)?.as_u64()?;
            counters.push((format!("{name} {what}"), value));
        }
    }
    Some(counters)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ports_counters_are_found_by_name() {
        let link = |name: &str, n: u64| {
            format!(
                r#"{{"ifname":"{name}","stats64":{{"rx":{{"bytes":{n}00,"packets":{n},"errors":0,"dropped":1}},"tx":{{"bytes":0,"packets":7,"errors":0,"dropped":0}}}}}}"#
            )
        };
        let text = format!("[{},{},{}]", link("lo", 1), link("right", 3), link("left", 2));
        let counters = parse(&text).unwrap();
        assert_eq!(counters.len(), 16);
        assert!(counters.contains(&("left rx packets".to_owned(), 2)));
        assert!(counters.contains(&("right rx bytes".to_owned(), 300)));
        assert_eq!(parse(&format!("[{}]", link("left", 2))), None);
        assert_eq!(parse("Device does not exist"), None);
    }
}
