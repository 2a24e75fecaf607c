//! The processor's own energy counters (Intel RAPL and AMD's form of it) as the kernel shows them.

use std::fs;
use std::path::{Path, PathBuf};
use std::time::Instant;

use crate::EnergyError;
use crate::source::{Look, Probe};

/// More than any package takes: a counter that fell and would mean more was set back, not wrapped.
const MOST_WATTS: f64 = 10_000.0;

/// All packages and, where they are counted apart, their memory.
pub struct Rapl {
    domains: Vec<Domain>,
}

struct Domain {
    name: String,
    file: PathBuf,
    range: u64,
    last: Option<(u64, Instant)>,
}

impl Rapl {
    /// Finds the domains in `folder`. Of the tree only `package-N` and `dram` count: `core` and `uncore` are parts of the
    /// package, `psys` is more than it.
    pub fn open(folder: &Path) -> Result<Self, EnergyError> {
        let mut domains = Vec::new();
        let entries = fs::read_dir(folder).map_err(|e| EnergyError::NoRapl {
            folder: folder.into(),
            hint: format!(" ({e}); virtual machines have none: use `command` or `none`"),
        })?;
        let mut unreadable = None;
        for entry in entries.flatten() {
            let path = entry.path();
            let Ok(name) = fs::read_to_string(path.join("name")) else { continue };
            let name = name.trim().to_owned();
            if !(entry.file_name().to_string_lossy().contains("rapl:")
                && (name.starts_with("package-") || name == "dram"))
            {
                continue;
            }
            let file = path.join("energy_uj");
            if let Err(e) = fs::read_to_string(&file) {
                unreadable = Some(format!("; {}: {e}", file.display()));
                continue;
            }
            let range = number(&path.join("max_energy_range_uj"))?;
            domains.push(Domain { name, file, range, last: None });
        }
        domains.sort_by(|a, b| a.file.cmp(&b.file));
        if !domains.iter().any(|d| d.name.starts_with("package-")) {
            return Err(EnergyError::NoRapl { folder: folder.into(), hint: unreadable.unwrap_or_default() });
        }
        Ok(Rapl { domains })
    }
}

impl Domain {
    /// Joules since the last look.
    fn joules(&mut self) -> Result<f64, EnergyError> {
        let now = number(&self.file)?;
        let at = Instant::now();
        let Some((before, then)) = self.last.replace((now, at)) else { return Ok(0.0) };
        let microjoules = if now >= before { now - before } else { self.wrapped(before, now, at - then)? };
        Ok(microjoules as f64 / 1e6)
    }

    fn wrapped(&self, before: u64, now: u64, time: std::time::Duration) -> Result<u64, EnergyError> {
        let since = self.range.saturating_sub(before).saturating_add(now);
        let watts = since as f64 / 1e6 / time.as_secs_f64().max(1e-3);
        if before > self.range || watts > MOST_WATTS {
            return Err(EnergyError::WentBack { what: self.file.display().to_string(), before, now });
        }
        Ok(since)
    }
}

impl Probe for Rapl {
    fn look(&mut self) -> Result<Look, EnergyError> {
        // Each domain is read even if one fails, so that no domain's next difference covers two looks.
        let all: Vec<_> = self.domains.iter_mut().map(Domain::joules).collect();
        let mut sum = 0.0;
        for joules in all {
            sum += joules?;
        }
        Ok(Look::Joules(sum))
    }

    fn scope(&self) -> String {
        let names: Vec<&str> = self.domains.iter().map(|d| d.name.as_str()).collect();
        format!("{} (not wall)", names.join(" + "))
    }
}

fn number(file: &Path) -> Result<u64, EnergyError> {
    let fail = |reason: String| EnergyError::RaplFile { file: file.into(), reason };
    let text = fs::read_to_string(file).map_err(|e| fail(e.to_string()))?;
    let text = text.trim();
    text.parse().map_err(|_| fail(format!("\"{text}\" is no count of microjoules")))
}

#[cfg(test)]
#[expect(clippy::float_cmp, reason = "exact values are expected")]
mod tests {
    use super::*;

    fn domain(folder: &Path, entry: &str, name: &str, energy: &str) -> PathBuf {
        let path = folder.join(entry);
        fs::create_dir_all(&path).unwrap();
        fs::write(path.join("name"), format!("{name}\n")).unwrap();
        fs::write(path.join("energy_uj"), format!("{energy}\n")).unwrap();
        fs::write(path.join("max_energy_range_uj"), "1000000\n").unwrap();
        path.join("energy_uj")
    }

    fn joules(rapl: &mut Rapl) -> f64 {
        match rapl.look().unwrap() {
            Look::Joules(j) => j,
            Look::Watts(_) => panic!("RAPL counts energy"),
        }
    }

    #[test]
    fn package_and_memory_are_summed_and_parts_of_the_package_are_not() {
        let here = tempfile::tempdir().unwrap();
        let package = domain(here.path(), "intel-rapl:0", "package-0", "100000");
        let core = domain(here.path(), "intel-rapl:0:0", "core", "0");
        let dram = domain(here.path(), "intel-rapl:0:1", "dram", "0");
        let mut rapl = Rapl::open(here.path()).unwrap();
        assert_eq!(joules(&mut rapl), 0.0, "the first look only remembers");
        for (file, value) in [(&package, "600000"), (&core, "400000"), (&dram, "250000")] {
            fs::write(file, value).unwrap();
        }
        assert!((joules(&mut rapl) - 0.75).abs() < 1e-12);
        assert_eq!(rapl.scope(), "package-0 + dram (not wall)");
    }

    #[test]
    fn a_counter_that_wraps_counts_on() {
        let here = tempfile::tempdir().unwrap();
        let package = domain(here.path(), "intel-rapl:0", "package-0", "990000");
        let mut rapl = Rapl::open(here.path()).unwrap();
        joules(&mut rapl);
        fs::write(&package, "15000").unwrap();
        assert!((joules(&mut rapl) - 0.025).abs() < 1e-12);
    }

    #[test]
    fn a_counter_that_was_set_back_is_an_error_once() {
        let here = tempfile::tempdir().unwrap();
        let package = domain(here.path(), "intel-rapl:0", "package-0", "5000000");
        let mut rapl = Rapl::open(here.path()).unwrap();
        joules(&mut rapl);
        fs::write(&package, "100").unwrap();
        let error = rapl.look().unwrap_err().to_string();
        assert!(error.contains("went back from 5000000 to 100"), "{error}");
        fs::write(&package, "1100").unwrap();
        assert!((joules(&mut rapl) - 0.001).abs() < 1e-12);
    }

    #[test]
    fn no_folder_no_package_and_no_number_are_named() {
        let here = tempfile::tempdir().unwrap();
        let missing = here.path().join("powercap");
        let error = Rapl::open(&missing).err().unwrap().to_string();
        assert!(error.contains("powercap") && error.contains("virtual machines"), "{error}");
        domain(here.path(), "intel-rapl:0:1", "dram", "0");
        let error = Rapl::open(here.path()).err().unwrap().to_string();
        assert!(error.contains("no RAPL domain named package-N"), "{error}");
        domain(here.path(), "intel-rapl:0", "package-0", "many");
        let error = Rapl::open(here.path()).unwrap().look().unwrap_err().to_string();
        assert!(error.contains("\"many\" is no count of microjoules"), "{error}");
    }
}
