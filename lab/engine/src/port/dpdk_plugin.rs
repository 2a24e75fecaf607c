//! DPDK in this process: where the plugin lies, and how it is started, once.

use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use shoal_plugin_host::{BareDriver, BareError, DIRECTORY};
use thiserror::Error;

use super::InterfaceError;
use super::dpdk_words::{device, is_virtual, stanza};

/// The plugin's file.
const FILE: &str = "dpdk_plugin.so";
/// The driver in it.
const DRIVER: &str = "dpdk";

/// Where the plugin is, and what DPDK is started with.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct DpdkSettings {
    /// The plugin's file; none: it is looked for, see [`dpdk_plugin`].
    pub plugin: Option<PathBuf>,
    /// The inside of a router's `dpdk { }`; none: the PCI bus is looked at if a port on it is wanted.
    pub stanza: Option<String>,
}

/// The plugin, as it was found.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DpdkPlugin {
    /// Its file.
    pub file: PathBuf,
    /// Its version, in its own words.
    pub version: String,
}

/// Why there is no port of DPDK's.
#[derive(Debug, Error)]
pub enum DpdkError {
    /// There is no plugin.
    #[error(
        "DPDK's ports need {FILE}, which is not here: {}; `make dpdk' builds it where DPDK's headers are (libdpdk-dev), and \
         the setting tester.dpdk_plugin names another place",
        .looked.iter().map(|f| f.display().to_string()).collect::<Vec<_>>().join(", ")
    )]
    Missing {
        /// Where it was looked for.
        looked: Vec<PathBuf>,
    },
    /// What lies there is none of ours.
    #[error("{0}; `make dpdk' builds one that fits")]
    Plugin(BareError),
    /// DPDK does not start, or a device does not open.
    #[error(transparent)]
    Driver(#[from] BareError),
    /// The namespace cannot be entered.
    #[error(transparent)]
    Namespace(#[from] InterfaceError),
    /// DPDK was started without the bus that a port is on.
    #[error(
        "{device} is on the PCI bus, and DPDK was started in this process without it, with `{runs}'; name all ports in the \
         setting tester.dpdk, such as dpdk = \"dev {device}\""
    )]
    NoBus {
        /// The port's device.
        device: String,
        /// What DPDK was started with.
        runs: String,
    },
    /// More queues than are read.
    #[error("{device} has {queues} receive queues; the tester reads one: leave num-rx-queues out")]
    Queues {
        /// The port's device.
        device: String,
        /// How many it has.
        queues: u32,
    },
    /// It has no link.
    #[error("{name} has had no link for {seconds} s; is its other end there and up?")]
    Down {
        /// The port.
        name: String,
        /// How long it was waited for.
        seconds: u64,
    },
}

/// What the process has of DPDK. It can be started only once.
struct State {
    settings: DpdkSettings,
    /// The plugin that was started, and what with, whatever came of that.
    runs: Option<(PathBuf, String)>,
}

static STATE: Mutex<State> =
    Mutex::new(State { settings: DpdkSettings { plugin: None, stanza: None }, runs: None });

fn state() -> MutexGuard<'static, State> {
    STATE.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Says what ports of DPDK's in this process are opened with from now on. DPDK starts with the first of them; a stanza that
/// differs from what it was started with is refused when the next is opened.
pub fn dpdk_settings(settings: DpdkSettings) {
    state().settings = settings;
}

/// Looks for the plugin and loads it, without starting DPDK: the file that the settings name, or `dpdk_plugin.so` beside
/// this program, in the `target/dpdk` that this program's `target` has, or where the router's plugins are installed.
///
/// # Errors
///
/// [`DpdkError::Missing`] with all places, or [`DpdkError::Plugin`] with what is wrong with the file.
pub fn dpdk_plugin() -> Result<DpdkPlugin, DpdkError> {
    let driver = load(&state().settings)?;
    Ok(DpdkPlugin { file: driver.file().to_owned(), version: driver.version().to_owned() })
}

/// The driver, started.
pub(super) fn driver(ports: [&str; 2]) -> Result<BareDriver, DpdkError> {
    let mut state = state();
    let driver = load(&state.settings)?;
    let runs = state.runs.as_ref().filter(|(file, _)| file == driver.file());
    let stanza = match (&state.settings.stanza, runs) {
        (Some(asked), _) => asked.clone(),
        (None, Some((_, runs))) => runs.clone(),
        (None, None) => stanza(ports),
    };
    let on_bus = ports.into_iter().find(|words| !is_virtual(words));
    if let Some(port) = on_bus.filter(|_| stanza.split_whitespace().any(|word| word == "no-pci")) {
        return Err(DpdkError::NoBus { device: device(port).to_owned(), runs: stanza });
    }
    if !driver.is_started() {
        state.runs = Some((driver.file().to_owned(), stanza.clone()));
    }
    driver.start(Some(&stanza))?;
    Ok(driver)
}

fn load(settings: &DpdkSettings) -> Result<BareDriver, DpdkError> {
    let file = match &settings.plugin {
        Some(file) => file.clone(),
        None => find(std::env::current_exe().ok().as_deref())?,
    };
    BareDriver::load(&file, DRIVER).map_err(DpdkError::Plugin)
}

/// The first place that has it.
fn find(program: Option<&Path>) -> Result<PathBuf, DpdkError> {
    let looked = places(program);
    match looked.iter().find(|file| file.exists()) {
        Some(file) => Ok(file.clone()),
        None => Err(DpdkError::Missing { looked }),
    }
}

/// Where it may lie: never in the current folder, whose files the user may not have meant to run.
fn places(program: Option<&Path>) -> Vec<PathBuf> {
    let mut all = Vec::new();
    if let Some(folder) = program.and_then(Path::parent) {
        all.push(folder.join(FILE));
        // `target/release` has it beside itself; tests lie one folder deeper.
        let target = folder.ancestors().skip(1).take(2).find(|above| above.ends_with("target"));
        all.extend(target.map(|above| above.join("dpdk").join(FILE)));
    }
    all.push(Path::new(DIRECTORY).join(FILE));
    all
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_plugin_that_is_nowhere_is_missed_with_all_places_and_the_way_to_build_it() {
        let folder = tempfile::tempdir().unwrap();
        let program = folder.path().join("target/release/shoal-lab");
        let said = find(Some(&program)).map_err(|e| e.to_string());
        let Err(said) = said else {
            return println!("SKIP a_plugin_that_is_nowhere_is_missed: it is installed");
        };
        for word in ["target/release/dpdk_plugin.so", "target/dpdk/dpdk_plugin.so", DIRECTORY, "`make dpdk'"]
        {
            assert!(said.contains(word), "{word}: {said}");
        }
        assert!(!said.contains('\n'), "{said}");
    }

    #[test]
    fn it_is_found_beside_the_program_before_it_is_found_elsewhere() {
        let folder = tempfile::tempdir().unwrap();
        let at = |path: &str| {
            let file = folder.path().join(path);
            std::fs::create_dir_all(file.parent().unwrap()).unwrap();
            std::fs::write(&file, "").unwrap();
            file
        };
        let built = at("target/dpdk/dpdk_plugin.so");
        for program in ["target/release/shoal-lab", "target/debug/deps/test"] {
            assert_eq!(find(Some(&folder.path().join(program))).unwrap(), built);
        }
        let beside = at("target/release/dpdk_plugin.so");
        assert_eq!(find(Some(&folder.path().join("target/release/shoal-lab"))).unwrap(), beside);
    }
}
