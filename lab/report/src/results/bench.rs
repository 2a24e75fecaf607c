//! Clocks a packet by node, as `shoal-lab-graph` (`make bench`, `shoal-lab run replay`) finds them in one process.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};
use serde_json::Value;

use crate::ReportError;

/// A run of that program: `target/bench.json`, or `bench.json` of a results folder.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct Bench {
    /// Facts of the machine.
    #[serde(default)]
    pub machine: BTreeMap<String, Value>,
    /// What counted instructions, or why nothing did.
    #[serde(default)]
    pub instructions_by: String,
    /// What was run.
    pub scenarios: Vec<BenchScenario>,
    /// What else the program says; kept, so that it can read the file again.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

/// A scenario. All figures are per packet, generation excluded.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
pub struct BenchScenario {
    /// Its name.
    pub name: String,
    /// Clocks, at least.
    pub clocks_min: f64,
    /// Clocks, the median of windows.
    pub clocks_median: f64,
    /// Instructions, if they were counted.
    #[serde(default)]
    pub instructions: Option<f64>,
    /// Clocks at least by node; the minima may come from different windows.
    #[serde(default)]
    pub nodes: BTreeMap<String, f64>,
    /// Whether no window was undisturbed.
    #[serde(default)]
    pub disturbed: bool,
    /// What else the program says.
    #[serde(flatten)]
    pub rest: BTreeMap<String, Value>,
}

impl Bench {
    /// Reads a file that the program wrote.
    ///
    /// # Errors
    ///
    /// If it cannot be read or is something else; the text names the file.
    pub fn read(path: &Path) -> Result<Self, ReportError> {
        let text = std::fs::read_to_string(path).map_err(|e| ReportError::read(path, e))?;
        serde_json::from_str(&text).map_err(|e| ReportError::content(path, e.line(), e))
    }

    /// The scenario of this name.
    pub fn find(&self, name: &str) -> Option<&BenchScenario> {
        self.scenarios.iter().find(|s| s.name == name)
    }

    /// The revision that the program was told, empty if none.
    pub fn revision(&self) -> &str {
        self.machine.get("revision").and_then(Value::as_str).unwrap_or_default()
    }

    /// Several runs as one: of each scenario the least figures. Runs in which it was disturbed are left out if there are
    /// others; instructions are those of any run. What is not told here is the first run's.
    pub fn least(runs: &[Bench]) -> Option<Bench> {
        let mut least = runs.first()?.clone();
        for scenario in &mut least.scenarios {
            let all: Vec<&BenchScenario> = runs.iter().filter_map(|r| r.find(&scenario.name)).collect();
            let disturbed = all.iter().all(|s| s.disturbed);
            let instructions = all.iter().filter_map(|s| s.instructions).min_by(f64::total_cmp);
            let mut counted = all.into_iter().filter(|s| disturbed || !s.disturbed);
            let Some(first) = counted.next() else { continue };
            *scenario = first.clone();
            for other in counted {
                scenario.clocks_min = scenario.clocks_min.min(other.clocks_min);
                scenario.clocks_median = scenario.clocks_median.min(other.clocks_median);
                for (node, clocks) in &other.nodes {
                    let own = scenario.nodes.entry(node.clone()).or_insert(*clocks);
                    *own = own.min(*clocks);
                }
            }
            scenario.instructions = instructions;
        }
        Some(least)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// As the program wrote it, shortened.
    const WRITTEN: &str = r#"{
  "machine": {
    "processor": "AMD EPYC 9B14", "processors": 1, "cpu": 1, "tsc_hz": 2596000000.0, "target": "x86_64-v3",
    "revision": "92d65f5", "hugepages": 0, "memory": [ { "megabytes": 1, "clocks": 4.0 } ],
    "load_before": 0.4, "load_after": 1.0, "steal": 0.001, "control": { "chain": 1.0, "wide": 2.1 }
  },
  "instructions_by": "valgrind",
  "scenarios": [
    {
      "name": "ruler-fused", "feature": false, "clocks_min": 20.5, "clocks_median": 21.0, "clocks_spread": 0.01,
      "instructions": 81.2, "allocations": 0.0, "nodes": { "fused": 20.5 }, "nodes_median": { "fused": 21.0 },
      "vectors_per_call": { "made": 256.0, "fused": 256.0 }, "generation": 18.0, "windows": 15, "dropped": {},
      "disturbed": false, "left_out": 0.0
    },
    {
      "name": "ip4-1", "feature": true, "clocks_min": 30.1, "clocks_median": 31.0, "clocks_spread": 0.02,
      "instructions": null, "allocations": 0.0, "nodes": { "ip4-superpath": 25.5, "pg-tx": 1.5 },
      "nodes_median": { "ip4-superpath": 26.0, "pg-tx": 1.6 }, "vectors_per_call": { "pg-input": 256.0 },
      "generation": 18.2, "windows": 15, "dropped": { "stolen time": 2 }, "disturbed": false, "left_out": 0.01
    }
  ],
  "scaling": null
}"#;

    #[test]
    fn what_the_program_wrote_is_read_and_written_again_whole() {
        let bench: Bench = serde_json::from_str(WRITTEN).unwrap();
        assert_eq!((bench.revision(), bench.instructions_by.as_str()), ("92d65f5", "valgrind"));
        let path = bench.find("ip4-1").unwrap();
        assert_eq!((path.clocks_min, path.instructions, path.nodes["ip4-superpath"]), (30.1, None, 25.5));
        let again: Value = serde_json::to_value(&bench).unwrap();
        assert_eq!(again, serde_json::from_str::<Value>(WRITTEN).unwrap());
    }

    #[test]
    fn the_least_of_several_runs_is_kept_and_disturbed_ones_are_not() {
        let mut runs: Vec<Bench> = (0..3).map(|_| serde_json::from_str(WRITTEN).unwrap()).collect();
        runs[1].scenarios[1].clocks_min = 29.0;
        runs[1].scenarios[1].nodes.insert("ip4-superpath".into(), 24.0);
        runs[1].scenarios[1].instructions = Some(175.0);
        runs[2].scenarios[1].clocks_min = 1.0;
        runs[2].scenarios[1].disturbed = true;
        let least = Bench::least(&runs).unwrap();
        let path = least.find("ip4-1").unwrap();
        assert_eq!((path.clocks_min, path.nodes["ip4-superpath"], path.disturbed), (29.0, 24.0, false));
        assert_eq!(path.instructions, Some(175.0));
        assert!(Bench::least(&[]).is_none());
    }

    #[test]
    fn what_is_no_such_file_is_named_with_its_line() {
        let folder = tempfile::tempdir().unwrap();
        let file = folder.path().join("x.json");
        for (text, words) in [("rubbish", "line 1"), ("{\n\"scenarios\": 3}", "line 2"), ("{}", "scenarios")]
        {
            std::fs::write(&file, text).unwrap();
            let error = Bench::read(&file).unwrap_err().to_string();
            assert!(error.contains("x.json") && error.contains(words), "{error}");
        }
    }
}
