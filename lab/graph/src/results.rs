//! What a run found, as it is written to `target/bench.json`.

use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::Result;
use crate::flows::Filling;
use crate::machine::Machine;
use crate::scaling::Scaling;

/// A whole run.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Results {
    pub machine: Machine,
    /// What counted instructions, or why nothing did.
    pub instructions_by: String,
    pub scenarios: Vec<Measurement>,
    /// Two workers compared with one, where there are two processors.
    #[serde(default)]
    pub scaling: Option<Scaling>,
}

/// One scenario. All figures are per packet and without generation, but where they say otherwise.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct Measurement {
    pub name: String,
    /// False for the ruler.
    pub feature: bool,
    pub clocks_min: f64,
    pub clocks_median: f64,
    /// From the 10th to the 90th percentile of windows, as a share of the median.
    pub clocks_spread: f64,
    pub instructions: Option<f64>,
    /// Of the whole process, generation included.
    pub allocations: f64,
    /// Clocks at least, node by node; the minima may come from different windows.
    pub nodes: BTreeMap<String, f64>,
    pub nodes_median: BTreeMap<String, f64>,
    pub vectors_per_call: BTreeMap<String, f64>,
    /// Clocks at least to make a packet.
    pub generation: f64,
    /// Windows that count, and why others do not.
    pub windows: usize,
    pub dropped: BTreeMap<String, usize>,
    /// Whether no window was undisturbed, so that disturbed ones had to count.
    pub disturbed: bool,
    /// Share of the slices that were interrupted and left out.
    pub left_out: f64,
    /// What filling the flow table takes, where there is one.
    #[serde(default, skip_serializing_if = "Option::is_none")]
    pub filling: Option<Filling>,
}

impl Results {
    pub fn find(&self, name: &str) -> Option<&Measurement> {
        self.scenarios.iter().find(|s| s.name == name)
    }

    pub fn write(&self, path: &Path) -> Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let text = serde_json::to_string_pretty(self)? + "\n";
        fs::write(path, text).map_err(|e| format!("{}: {e}", path.display()).into())
    }

    pub fn read(path: &Path) -> Result<Self> {
        let text = fs::read_to_string(path).map_err(|e| format!("{}: {e}", path.display()))?;
        serde_json::from_str(&text).map_err(|e| format!("{}: {e}", path.display()).into())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_json_has_the_fields_that_programs_compare() {
        let mut scenario = Measurement { name: "ip4-1".into(), clocks_min: 30.0, ..Measurement::default() };
        scenario.nodes.insert("ip4-superpath".into(), 25.5);
        let results = Results { scenarios: vec![scenario], ..Results::default() };
        let json = serde_json::to_value(&results).unwrap();
        let first = &json["scenarios"][0];
        assert_eq!(first["name"], "ip4-1");
        assert_eq!(first["clocks_min"], 30.0);
        assert_eq!(first["nodes"]["ip4-superpath"], 25.5);
        for field in ["clocks_median", "instructions", "allocations"] {
            assert!(first.get(field).is_some(), "{field}");
        }
        for fact in ["processor", "tsc_hz", "load_before", "steal", "target"] {
            assert!(json["machine"].get(fact).is_some(), "{fact}");
        }
        assert!(first["instructions"].is_null(), "what was not counted is null, not zero");
    }

    #[test]
    fn what_is_written_is_read_again() {
        let path = std::env::temp_dir().join(format!("shoal-bench-{}.json", std::process::id()));
        let scenario = Measurement { name: "x".into(), instructions: Some(7.5), ..Measurement::default() };
        Results { scenarios: vec![scenario], ..Results::default() }.write(&path).unwrap();
        let again = Results::read(&path).unwrap();
        fs::remove_file(&path).unwrap();
        assert_eq!(again.find("x").unwrap().instructions, Some(7.5));
        assert!(again.find("y").is_none());
    }

    #[test]
    fn a_file_that_is_not_there_is_named() {
        let error = Results::read(Path::new("no-such-run.json")).unwrap_err().to_string();
        assert!(error.starts_with("no-such-run.json: "), "{error}");
    }
}
