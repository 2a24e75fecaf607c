//! Settings, in a TOML file; each has a default, and `config show --origin` says where its value comes from.

use std::fmt::Write as _;
use std::path::{Path, PathBuf};

use serde::{Deserialize, Serialize};
use shoal_lab_engine::DpdkSettings;
use shoal_lab_measure::WhenDisturbed;
use shoal_lab_plan::{Layer, Link, MOST_TAKEN};
use thiserror::Error;

/// All settings.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Settings {
    /// The tester.
    pub tester: Tester,
    /// The wires.
    pub link: Wire,
    /// What is sent.
    pub traffic: Traffic,
    /// How tests go.
    pub test: Test,
    /// The devices.
    pub dut: Dut,
    /// Where energy is measured.
    pub energy: Energy,
    /// The tester's ports for siitperf's programs, which set up no device.
    pub ports: Ports,
}

/// The tester's ports where the lab sets up no device: `memif SOCKET ID`, `af-packet NAME`, `af-xdp NAME`, `tap NAME`,
/// `dpdk DEVICE ...` as the router's `dpdk attach` has it.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Ports {
    /// The left one.
    pub left: String,
    /// The right one.
    pub right: String,
}

/// The tester.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Tester {
    /// The processor it runs on; the last one if negative.
    pub core: i32,
    /// Frames handed to a port at once, at most: 1 is the most exact, 32 the fastest.
    pub burst: u32,
    /// Trials that something disturbed are made again, at most so often.
    pub retries: u32,
    /// Sending may take this much longer than it should.
    pub tolerance: f64,
    /// A trial is disturbed if others take a processor from tester or device for more than this share of its time.
    pub most_taken: f64,
    /// The inside of a router's `dpdk { }`, for ports of DPDK's; if empty, the PCI bus is looked at when a port on it is
    /// wanted, and only such ports are taken.
    pub dpdk: String,
    /// DPDK's plugin; looked for beside this program, in `target/dpdk` and where plugins are installed if empty.
    pub dpdk_plugin: PathBuf,
}

impl Default for Tester {
    fn default() -> Self {
        Tester {
            core: -1,
            burst: 32,
            retries: 2,
            tolerance: 1.000_01,
            most_taken: MOST_TAKEN,
            dpdk: String::new(),
            dpdk_plugin: PathBuf::new(),
        }
    }
}

impl Tester {
    /// What ports of DPDK's are opened with.
    pub fn dpdk(&self) -> DpdkSettings {
        let (stanza, plugin) = (self.dpdk.trim(), self.dpdk_plugin.as_path());
        DpdkSettings {
            plugin: (plugin != Path::new("")).then(|| plugin.to_owned()),
            stanza: (!stanza.is_empty()).then(|| stanza.to_owned()),
        }
    }
}

/// The wires.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Wire {
    /// Bits a second of each port; gives "percent" a meaning where the wire has no speed of its own.
    pub rate: u64,
    /// What the bits count: l1 (with preamble and gap) or l2.
    pub layer: Layer,
}

impl Default for Wire {
    fn default() -> Self {
        Wire { rate: Link::default().bits_per_second, layer: Layer::L1 }
    }
}

impl Wire {
    /// As the parts of the lab know it.
    pub fn link(&self) -> Link {
        Link { bits_per_second: self.rate, is_virtual: true }
    }
}

/// What is sent.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Traffic {
    /// Seeds everything that is random.
    pub seed: u64,
    /// own or siitperf.
    pub frame: String,
    /// Source ports (RFC 4814): fixed, rising, falling, random.
    pub source_ports: String,
    /// Destination ports.
    pub destination_ports: String,
    /// Networks behind each side, 1 to 256.
    pub networks: u16,
}

impl Default for Traffic {
    fn default() -> Self {
        Traffic {
            seed: 1,
            frame: "own".into(),
            source_ports: "random".into(),
            destination_ports: "random".into(),
            networks: 1,
        }
    }
}

/// How tests go.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Test {
    /// strict, normal, quick or ci.
    pub preset: String,
    /// Seconds that a measurement may take without `--yes`.
    pub budget: u64,
    /// What is done with trials during which others had the processors: mark, repeat or refuse.
    pub when_disturbed: WhenDisturbed,
}

impl Default for Test {
    fn default() -> Self {
        Test { preset: "quick".into(), budget: 3600, when_disturbed: WhenDisturbed::Refuse }
    }
}

/// The devices.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Dut {
    /// The processor that devices run on.
    pub core: u32,
    /// The router; looked for beside this program, in the checkout and on the path if empty.
    pub shoal: PathBuf,
    /// `shoal-lab-graph`, which replays; looked for in the checkout, beside this program and on the path if empty.
    pub replay: PathBuf,
    /// FD.io VPP; on the path if empty.
    pub vpp: PathBuf,
}

impl Default for Dut {
    fn default() -> Self {
        Dut { core: 0, shoal: PathBuf::new(), replay: PathBuf::new(), vpp: PathBuf::new() }
    }
}

/// Where energy is measured.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Energy {
    /// none, rapl, `command:PROGRAM`, `snmp-raritan:HOST/OUTLET`.
    pub source: String,
}

impl Default for Energy {
    fn default() -> Self {
        Energy { source: "none".into() }
    }
}

/// Why settings cannot be used.
#[derive(Debug, Error)]
pub enum SettingsError {
    /// The file cannot be read.
    #[error("{file}: {source}")]
    Read {
        /// Which.
        file: String,
        /// Why.
        source: std::io::Error,
    },
    /// It is not what it should be; the parser's words name the line and what it expects.
    #[error("{file}: {message}")]
    Parse {
        /// Which.
        file: String,
        /// Where and why.
        message: String,
    },
    /// A value is out of its range.
    #[error("{key}: {value}, must be {range}")]
    Range {
        /// Of which setting.
        key: &'static str,
        /// What it is.
        value: String,
        /// What it may be.
        range: &'static str,
    },
}

/// Settings and the file they come from.
#[derive(Clone, Debug, Default)]
pub struct Loaded {
    /// The settings.
    pub settings: Settings,
    file: Option<(PathBuf, toml::Table)>,
}

impl Loaded {
    /// Reads `file`, or takes the defaults.
    ///
    /// # Errors
    ///
    /// If the file cannot be read, has an unknown key, or a value that makes no sense.
    pub fn new(file: Option<&Path>) -> Result<Self, SettingsError> {
        let Some(path) = file else { return Ok(Loaded::default()) };
        let name = path.display().to_string();
        let text = std::fs::read_to_string(path)
            .map_err(|source| SettingsError::Read { file: name.clone(), source })?;
        let parse =
            |error: toml::de::Error| SettingsError::Parse { file: name.clone(), message: error.to_string() };
        let settings: Settings = toml::from_str(&text).map_err(parse)?;
        settings.check()?;
        let table = toml::from_str(&text).map_err(parse)?;
        Ok(Loaded { settings, file: Some((path.to_owned(), table)) })
    }

    /// The settings in the form of the file, with their origins as comments if wanted.
    pub fn show(&self, origin: bool) -> String {
        let text = toml::to_string_pretty(&self.settings).unwrap_or_default();
        if !origin {
            return text;
        }
        let mut section = String::new();
        let mut out = String::new();
        for line in text.lines() {
            if let Some(name) = line.strip_prefix('[').and_then(|l| l.strip_suffix(']')) {
                name.clone_into(&mut section);
            }
            out += line;
            if let Some((key, _)) = line.split_once(" = ") {
                let _ = write!(out, "  # {}", self.origin(&section, key));
            }
            out.push('\n');
        }
        out
    }

    fn origin(&self, section: &str, key: &str) -> String {
        let set = self.file.as_ref().filter(|(_, table)| {
            table.get(section).and_then(toml::Value::as_table).is_some_and(|s| s.contains_key(key))
        });
        set.map_or_else(|| "default".into(), |(path, _)| path.display().to_string())
    }
}

impl Settings {
    /// # Errors
    ///
    /// A value that no measurement can be made with.
    pub fn check(&self) -> Result<(), SettingsError> {
        let range = |key, value: &dyn ToString, range| {
            Err(SettingsError::Range { key, value: value.to_string(), range })
        };
        if !(1..=256).contains(&self.tester.burst) {
            return range("tester.burst", &self.tester.burst, "1 to 256");
        }
        if !(1.0..=2.0).contains(&self.tester.tolerance) {
            return range("tester.tolerance", &self.tester.tolerance, "1.0 to 2.0");
        }
        if !(0.0..=1.0).contains(&self.tester.most_taken) {
            return range(
                "tester.most_taken",
                &self.tester.most_taken,
                "0.0 to 1.0, a share of a trial's time",
            );
        }
        if !(1..=256).contains(&self.traffic.networks) {
            return range("traffic.networks", &self.traffic.networks, "1 to 256");
        }
        for (key, value, known) in [
            ("traffic.frame", &self.traffic.frame, "own or siitperf"),
            ("traffic.source_ports", &self.traffic.source_ports, "fixed, rising, falling or random"),
            (
                "traffic.destination_ports",
                &self.traffic.destination_ports,
                "fixed, rising, falling or random",
            ),
        ] {
            if !known.split([' ', ',']).any(|word| word == value) || value == "or" || value.is_empty() {
                return range(key, value, known);
            }
        }
        if !(1_000_000..=1_000_000_000_000).contains(&self.link.rate) {
            return range("link.rate", &self.link.rate, "1000000 to 1000000000000 bits a second");
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn load(text: &str) -> Result<Loaded, SettingsError> {
        let file = tempfile::NamedTempFile::new().unwrap();
        std::fs::write(file.path(), text).unwrap();
        Loaded::new(Some(file.path()))
    }

    #[test]
    fn what_is_shown_can_be_read_again() {
        let shown = Loaded::default().show(false);
        assert_eq!(load(&shown).unwrap().settings, Settings::default());
    }

    #[test]
    fn the_origin_of_each_setting_is_told() {
        let shown = load("[tester]\nburst = 8\n").unwrap().show(true);
        let line = |key: &str| shown.lines().find(|l| l.starts_with(key)).unwrap().to_owned();
        assert!(!line("burst = 8").ends_with("# default"), "{shown}");
        assert!(line("retries = 2").ends_with("# default"), "{shown}");
    }

    #[test]
    fn what_dpdk_is_started_with_is_left_to_the_engine_unless_said() {
        assert_eq!(Tester::default().dpdk(), DpdkSettings::default());
        let said = load("[tester]\ndpdk = \" dev 0000:03:00.0 \"\ndpdk_plugin = \"p.so\"\n").unwrap();
        let DpdkSettings { plugin, stanza } = said.settings.tester.dpdk();
        assert_eq!((plugin, stanza), (Some("p.so".into()), Some("dev 0000:03:00.0".into())));
    }

    #[test]
    fn wrong_settings_are_named() {
        let message = |text| load(text).unwrap_err().to_string();
        let unknown = message("[tester]\nbrust = 8\n");
        assert!(
            unknown.contains("brust") && unknown.contains("burst") && unknown.contains("line 2"),
            "{unknown}"
        );
        assert!(message("[tester]\nburst = 0\n").contains("1 to 256"));
        assert!(message("[tester]\nmost_taken = 2.0\n").contains("0.0 to 1.0"));
        let unknown = message("[test]\nwhen_disturbed = \"ignore\"\n");
        assert!(unknown.contains("`mark`, `repeat`, `refuse`") && unknown.contains("line 2"), "{unknown}");
        assert!(message("[link]\nrate = 5\n").contains("link.rate"));
        assert!(
            message("[traffic]\nsource_ports = \"rndom\"\n").contains("fixed, rising, falling or random")
        );
        assert!(message("[tester\n").contains("line 1"));
        assert!(Loaded::new(Some(Path::new("/nowhere/x.toml"))).is_err());
    }
}
