//! A driver: loaded once, started once.

use std::path::{Path, PathBuf};
use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use shoal_plugin_abi as abi;

use super::{BareDevice, BareError};
use crate::device::{check, wrong};
use crate::sys::{Driver, Library, MainGuard, MainLock, MainThread, NewDevice};
use crate::{Error, Refusal};

/// What all drivers of the process share. Who holds it is the main thread that the ABI speaks of.
pub(super) struct Process {
    loaded: Vec<Arc<Loaded>>,
    /// Numbers of threads that devices were given, a bit each; 0 is the main thread's.
    threads: u64,
}

static PROCESS: MainLock<Process> = MainLock::new(Process { loaded: Vec::new(), threads: 1 });

/// Becomes the main thread until the guard is dropped.
pub(super) fn main_thread() -> MainGuard<'static, Process> {
    PROCESS.lock()
}

impl Process {
    /// The lowest number of a thread that no device has.
    fn number(&mut self) -> Option<usize> {
        let number = self.threads.trailing_ones();
        (number < abi::SHOAL_MAX_THREADS).then(|| {
            self.threads |= 1 << number;
            number as usize
        })
    }

    /// A device's number is free again.
    pub(super) fn leave(&mut self, thread: usize) {
        self.threads &= !(1 << thread);
    }
}

/// A library and its drivers.
struct Loaded {
    file: PathBuf,
    version: String,
    drivers: Vec<Arc<Inner>>,
}

/// One driver.
pub(super) struct Inner {
    pub(super) code: Arc<Driver>,
    state: Mutex<State>,
}

#[derive(Default)]
struct State {
    /// What it was started with, and what came of that.
    started: Option<(Option<String>, Result<(), Error>)>,
    /// The plugin's numbers of devices that are open.
    open: Vec<u32>,
}

impl Inner {
    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// A device was closed.
    pub(super) fn forget(&self, number: u32) {
        self.state().open.retain(|open| *open != number);
    }
}

/// A driver of a plugin, without a router.
#[derive(Clone)]
pub struct BareDriver {
    loaded: Arc<Loaded>,
    inner: Arc<Inner>,
}

impl std::fmt::Debug for BareDriver {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "{} of {}", self.inner.code.name, self.loaded.file.display())
    }
}

impl BareDriver {
    /// Takes the driver `name` of the library `file`, which is loaded and initialised if it is not yet. Its constructors
    /// run: a library is as trusted as the program.
    ///
    /// # Errors
    /// [`BareError::Refused`] if the file is missing, no library of this machine, no plugin of this ABI, or does not
    /// initialise; [`BareError::NoDriver`] with those that there are.
    pub fn load(file: &Path, name: &str) -> Result<BareDriver, BareError> {
        let refused = |refusal| BareError::Refused { file: file.to_owned(), refusal };
        // With a folder in front, so that the system looks nowhere else.
        let whole = std::fs::canonicalize(file).map_err(|e| refused(Refusal::Open(e.to_string())))?;
        let mut process = main_thread();
        let known = process.loaded.iter().find(|l| l.file == whole).cloned();
        let loaded = if let Some(loaded) = known {
            loaded
        } else {
            let loaded = Arc::new(open(process.thread(), whole).map_err(refused)?);
            process.loaded.push(Arc::clone(&loaded));
            loaded
        };
        match loaded.drivers.iter().find(|driver| driver.code.name == name) {
            Some(inner) => Ok(BareDriver { inner: Arc::clone(inner), loaded }),
            None => Err(BareError::NoDriver {
                file: file.to_owned(),
                wanted: name.to_owned(),
                brings: loaded.drivers.iter().map(|d| d.code.name.clone()).collect(),
            }),
        }
    }

    /// The plugin's version, in its own words.
    pub fn version(&self) -> &str {
        &self.loaded.version
    }

    /// The library, without links on the way.
    pub fn file(&self) -> &Path {
        &self.loaded.file
    }

    /// Whether [`start`](Self::start) was called, whatever came of it.
    pub fn is_started(&self) -> bool {
        self.inner.state().started.is_some()
    }

    /// Starts the driver with the inside of its stanza. Devices that the stanza names are opened only by
    /// [`attach`](Self::attach). A driver starts once in a process: the same settings again do nothing, and give again the
    /// error that they gave.
    ///
    /// # Errors
    /// What the plugin says; [`BareError::Started`] if it runs with other settings.
    pub fn start(&self, settings: Option<&str>) -> Result<(), BareError> {
        let process = main_thread();
        let driver = &self.inner.code;
        let mut state = self.inner.state();
        if let Some((runs, came)) = &state.started {
            if runs.as_deref() != settings {
                let of = |settings: Option<&str>| settings.unwrap_or_default().to_owned();
                let (runs, asked) = (of(runs.as_deref()), of(settings));
                return Err(BareError::Started { driver: driver.name.clone(), runs, asked });
            }
            return Ok(came.clone()?);
        }
        let came = driver
            .start(process.thread(), settings)
            .map(drop)
            .map_err(|why| Error::Plugin(driver.name.clone(), why));
        state.started = Some((settings.map(str::to_owned), came.clone()));
        Ok(came?)
    }

    /// Opens the device that `words` name, as an operator's `NAME attach WORDS` does. It neither sends nor receives until
    /// it is [up](BareDevice::up).
    ///
    /// # Errors
    /// What the plugin says, or what is impossible of what it says of the device; nothing is left open then.
    pub fn attach(&self, words: &str) -> Result<BareDevice, BareError> {
        let mut process = main_thread();
        let driver = &self.inner.code;
        let mut state = self.inner.state();
        let opened = driver.attach(process.thread(), words);
        let (opened, open) = opened.map_err(|why| Error::Plugin(driver.name.clone(), why))?;
        let number = opened.number;
        if state.open.contains(&number) {
            // Not closed: it is another's number.
            let expected = "one that no open device has";
            return Err(wrong(&driver.name, "the number", number.to_string(), expected).into());
        }
        let fit = self.fit(&opened, &mut process);
        match fit {
            Ok(thread) => {
                state.open.push(number);
                Ok(BareDevice::new(Arc::clone(&self.inner), (&opened, open), thread))
            }
            Err(error) => {
                // No handle was given out.
                let _ = open.close(process.thread());
                Err(error)
            }
        }
    }

    /// Checks a device, and finds a thread's number for it.
    fn fit(&self, opened: &NewDevice, process: &mut Process) -> Result<usize, BareError> {
        let name = &self.inner.code.name;
        check(name, opened)?;
        let most = abi::SHOAL_MAX_THREADS - 1;
        process.number().ok_or_else(|| BareError::Full { driver: name.clone(), most })
    }
}

/// Loads and initialises a library.
fn open(main: MainThread<'_>, file: PathBuf) -> Result<Loaded, Refusal> {
    let plugin = Library::open(&file)?.describe()?;
    for (at, driver) in plugin.drivers.iter().enumerate() {
        if plugin.drivers.iter().take(at).any(|other| other.name == driver.name) {
            return Err(Refusal::Exists("driver", driver.name.clone()));
        }
    }
    plugin.init(main)?;
    let (version, drivers) = (plugin.version, plugin.drivers);
    let inner = |code| Arc::new(Inner { code: Arc::new(code), state: Mutex::default() });
    Ok(Loaded { file, version, drivers: drivers.into_iter().map(inner).collect() })
}
