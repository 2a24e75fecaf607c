//! What a run prints.

use std::fmt::Write;

use crate::compare::RULER;
use crate::results::{Measurement, Results};
use crate::scenario::Scenario;

/// What is to be reached: scenario, clocks, and what they stand beside.
const GOALS: &[(&str, f64, &str)] = &[
    ("ip4-1-nodes", 51.0, "VPP 26.06: 58; prototype: 41"),
    ("ip4-1", 30.0, "prototype, fused: 23"),
    ("ip4-65536", 40.0, "ip4-1 and at most 10 more"),
    ("ip4-1-vec12", 39.0, "1.3 times as much as full frames"),
    ("ip4-1m", 42.0, "VPP 26.06, 1,000,000 /24: 191 to 291"),
    ("ip6-1-nodes", 65.0, "VPP 26.06: 65"),
    ("ip6-1", 31.0, "VPP 26.06: 65"),
    ("ip6-1-vec12", 40.0, "1.3 times as much as full frames"),
    ("ip6-230k", 70.0, "VPP 26.06, 250,000 /48: 474 to 651"),
    ("flow-64k", 18.0, "prototype: 13"),
    ("flow-1m", 45.0, "prototype: 35"),
];

/// VPP's figures, measured with the same load when the machine was quiet.
const VPP: &str = "\
FD.io VPP 26.06, native build, quiet machine, 2.25 GHz TSC, same load as ip4-1-nodes, clocks per packet:
  ethernet-input 6.9, ip4-input 11.7, ip4-lookup 14.3, ip4-rewrite 14.8, interface output 3.4, pg tx 6.9: 58
";

/// What stands above all scenarios.
pub fn head(results: &Results) -> String {
    let m = &results.machine;
    let revision = m.revision.as_ref().map_or(String::new(), |r| format!(", revision {r}"));
    let pages = match m.hugepages {
        0 => "no free hugepages, figures may be higher for it".to_owned(),
        n => format!("{n} free hugepages"),
    };
    format!(
        "processor {} of {}, {}, {:.2} GHz TSC, built for {}{revision}\n\
         load average {:.1}; {pages}; instructions by {}\n\
         clocks are TSC ticks per packet, generation excluded; 60-byte UDP packets, 64 on the wire\n",
        m.cpu,
        m.processors,
        m.processor,
        m.tsc_hz / 1e9,
        m.target,
        m.load_before,
        results.instructions_by
    )
}

/// One scenario, with its nodes in the order given.
pub fn scenario(scenario: &Scenario, m: &Measurement, nodes: &[String]) -> String {
    let mut text = format!("\n{}  ({})\n", scenario.name, scenario.about);
    let _ = writeln!(text, "  {:16} {:>8} {:>8} {:>13}", "node", "min", "median", "vectors/call");
    for name in nodes.iter().skip(1) {
        let of = |map: &std::collections::BTreeMap<String, f64>| map.get(name).copied().unwrap_or_default();
        let (min, median, vectors) = (of(&m.nodes), of(&m.nodes_median), of(&m.vectors_per_call));
        let _ = writeln!(text, "  {name:16} {min:8.1} {median:8.1} {vectors:13.1}");
    }
    let spread = m.clocks_spread * 100.0;
    let _ = writeln!(
        text,
        "  {:16} {:8.1} {:8.1}   spread {spread:.0} % of {} windows{}",
        "total",
        m.clocks_min,
        m.clocks_median,
        m.windows,
        dropped(m)
    );
    let source = nodes.first().map_or("generation", String::as_str);
    let instructions = m.instructions.map_or("not counted".into(), |n| format!("{n:.1}"));
    let _ = writeln!(text, "  {source:16} {:8.1}            excluded", m.generation);
    let _ = writeln!(text, "  instructions {instructions}, allocations {}, per packet", m.allocations);
    if let Some(f) = &m.filling {
        let _ = writeln!(
            text,
            "  {:.2} million insertions per second, the slowest {:.1} us with page faults, {:.1} us without; {:.1} bytes of table per flow",
            f.insertions_per_second / 1e6,
            f.slowest_us,
            f.slowest_ready_us,
            f.bytes_per_flow
        );
    }
    if m.disturbed {
        text += "  DISTURBED: no window was quiet, take none of these clocks for a result\n";
    }
    text
}

fn dropped(m: &Measurement) -> String {
    let mut all: Vec<String> = m.dropped.iter().map(|(why, n)| format!("{n} {why}")).collect();
    let mut text = String::new();
    if !all.is_empty() {
        let verb = if m.disturbed { "disturbed" } else { "dropped" };
        text = format!(", {verb}: {}", all.join(", "));
        all.clear();
    }
    if m.left_out > 0.0 {
        let _ = write!(text, ", {:.0} % of slices interrupted and left out", m.left_out * 100.0);
    }
    text
}

/// What stands below all scenarios.
pub fn tail(results: &Results) -> String {
    let mut text = format!("\n{:14} {:>8} {:>8} {:>8}\n", "scenario", "clocks", "/ ruler", "goal");
    let ruler = results.find(RULER).map(|r| r.clocks_min).filter(|c| *c > 0.0);
    for m in &results.scenarios {
        let ratio = ruler.map_or("-".into(), |r| format!("{:.2}", m.clocks_min / r));
        let goal = GOALS.iter().find(|(name, ..)| *name == m.name);
        let goal = match goal {
            Some((_, clocks, beside)) => format!("{clocks:8.0}   {beside}"),
            None if !m.feature => "       -   not a feature: what a hand-written loop takes here".into(),
            None => "       -".into(),
        };
        let _ = writeln!(text, "{:14} {:8.1} {ratio:>8} {goal}", m.name, m.clocks_min);
    }
    let m = &results.machine;
    let _ = writeln!(
        text,
        "\n{VPP}load average {:.1} to {:.1}, stolen time {:.1} %, control loop {:.2} and {:.2} clocks per step at its best",
        m.load_before,
        m.load_after,
        m.steal * 100.0,
        m.control.chain,
        m.control.wide
    );
    if !m.memory.is_empty() {
        let among: Vec<_> = m.memory.iter().map(|c| c.megabytes.to_string()).collect();
        let costs: Vec<_> = m.memory.iter().map(|c| format!("{:.1}", c.clocks)).collect();
        let _ = writeln!(text, "a cache line among {} MB: {} clocks", among.join(", "), costs.join(", "));
    }
    if m.load_after.max(m.load_before) > 1.5 {
        text += "The machine was busy: compare ratios to the ruler and instructions rather than clocks.\n";
    }
    text
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeMap;

    use super::*;
    use crate::scenario::find;

    fn measurement() -> Measurement {
        Measurement {
            name: "ip4-1".into(),
            feature: true,
            clocks_min: 30.0,
            clocks_median: 31.0,
            nodes: BTreeMap::from([("ip4-superpath".into(), 24.5)]),
            windows: 15,
            ..Measurement::default()
        }
    }

    #[test]
    fn generation_is_shown_apart() {
        let nodes = ["pg-input".to_owned(), "ip4-superpath".to_owned()];
        let text = scenario(&find("ip4-1").unwrap(), &measurement(), &nodes);
        let line = text.lines().find(|l| l.contains("pg-input")).unwrap();
        assert!(line.ends_with("excluded"), "{text}");
        assert!(text.contains("instructions not counted, allocations 0,"), "{text}");
    }

    #[test]
    fn what_filling_a_flow_table_takes_is_shown() {
        let mut m = measurement();
        assert!(!scenario(&find("ip4-1").unwrap(), &m, &[]).contains("insertions"));
        let (slowest_us, slowest_ready_us) = (150.0, 2.5);
        m.filling = Some(crate::flows::Filling {
            insertions_per_second: 4.2e6,
            slowest_us,
            slowest_ready_us,
            bytes_per_flow: 42.7,
        });
        let text = scenario(&find("flow-1m").unwrap(), &m, &[]);
        let wanted = "4.20 million insertions per second, the slowest 150.0 us with page faults, 2.5 us without; 42.7 bytes";
        assert!(text.contains(wanted), "{text}");
    }

    #[test]
    fn dropped_windows_are_named() {
        let mut m = measurement();
        m.dropped.insert("stolen time".into(), 3);
        m.left_out = 0.02;
        assert_eq!(dropped(&m), ", dropped: 3 stolen time, 2 % of slices interrupted and left out");
    }

    #[test]
    fn the_ruler_is_labelled_and_the_others_are_ratios_to_it() {
        let ruler = Measurement { name: RULER.into(), clocks_min: 20.0, ..Measurement::default() };
        let results = Results { scenarios: vec![ruler, measurement()], ..Results::default() };
        let text = tail(&results);
        assert!(text.contains("not a feature"), "{text}");
        assert!(text.lines().any(|l| l.starts_with("ip4-1 ") && l.contains("1.50")), "{text}");
        assert!(text.contains("ethernet-input 6.9"), "{text}");
    }
}
