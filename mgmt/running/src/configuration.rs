//! The control object: where configurations are kept, and what is being done with them.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::time::SystemTime;

use shoal_graph::process;
use shoal_module::cli::Sink;
use shoal_module::{Control, InitError};

use crate::difference::{Difference, difference};
use crate::gather::{Text, gather};
use crate::saved::{Saved, body};
use crate::store::{Outcome, Revision, Store, StoreError};

/// What the start-up file says; the daemon puts it on the shelf.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Settings {
    /// Where configurations are kept.
    pub directory: PathBuf,
    /// How many revisions are.
    pub revisions: usize,
    /// The group that may read them.
    pub gid: Option<u32>,
}

/// Why something cannot be done with configurations.
#[derive(Debug, thiserror::Error)]
pub(crate) enum ConfigurationError {
    /// Nobody said where.
    #[error("this router keeps no configurations: it was started without a directory for them")]
    Nowhere,
    /// The start is not over.
    #[error("what was saved is still being restored: try again when the router is up")]
    Restoring,
    /// Two at a time.
    #[error("somebody else is saving the configuration right now: try again")]
    Busy,
    /// Nothing was saved yet.
    #[error("nothing was saved yet: `write' does")]
    NothingSaved,
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The text could not be put together.
    #[error("{0}")]
    Other(String),
}

/// Configurations of this router.
#[derive(Debug)]
pub struct Configuration {
    store: Option<Store>,
    restoring: Cell<bool>,
    saving: Cell<bool>,
    /// Commands of what was saved that failed at the start, and that saving will not keep.
    failed: Cell<usize>,
    /// What was saved, while clients read it: many readers share one text.
    shown: RefCell<Weak<Saved>>,
}

/// While it is there, nothing is saved: half of a configuration must not take the place of the whole one.
#[derive(Debug)]
pub struct Restoring(Rc<Configuration>);

impl Restoring {
    /// One command failed.
    pub fn failed(&self) {
        self.0.failed.set(self.0.failed.get() + 1);
    }
}

impl Drop for Restoring {
    fn drop(&mut self) {
        self.0.restoring.set(false);
    }
}

/// Somebody is saving.
struct Saving<'a>(&'a Configuration);

impl Drop for Saving<'_> {
    fn drop(&mut self) {
        self.0.saving.set(false);
    }
}

pub(crate) fn init(control: &Rc<Control>) -> Result<(), InitError> {
    let store = control.get::<Settings>().ok().map(|settings| {
        let Settings { directory, revisions, gid } = (*settings).clone();
        Store { directory, keep: revisions.max(1), gid }
    });
    let cell = || Cell::new(false);
    control.put(Configuration {
        store,
        restoring: cell(),
        saving: cell(),
        failed: Cell::new(0),
        shown: RefCell::default(),
    });
    Ok(())
}

/// What was compared with what.
pub(crate) enum Against {
    /// What the next start runs.
    Startup,
    /// An older one.
    Revision(u64),
}

impl Configuration {
    fn store(&self) -> Result<Store, ConfigurationError> {
        self.store.clone().ok_or(ConfigurationError::Nowhere)
    }

    /// What was saved, to be run now; and a mark that it is.
    ///
    /// # Errors
    /// There is a file that cannot be read.
    pub fn restore(self: &Rc<Self>) -> Result<Option<(Saved, Restoring)>, StoreError> {
        let Some(store) = &self.store else { return Ok(None) };
        let saved = store.read()?;
        Ok(saved.map(|saved| {
            self.restoring.set(true);
            (saved, Restoring(Rc::clone(self)))
        }))
    }

    /// What the router is configured to be.
    pub(crate) async fn running(&self, control: &Control, sink: &Sink) -> Result<Text, ConfigurationError> {
        gather(control, Some(sink)).await.map_err(ConfigurationError::Other)
    }

    /// What the next start runs.
    pub(crate) async fn saved(&self) -> Result<Rc<Saved>, ConfigurationError> {
        let store = self.store()?;
        if let Some(saved) = self.shown.borrow().upgrade() {
            return Ok(saved);
        }
        let saved = aside(move || store.read()).await??.ok_or(ConfigurationError::NothingSaved)?;
        let saved = Rc::new(saved);
        self.shown.replace(Rc::downgrade(&saved));
        Ok(saved)
    }

    /// Saves what the router is configured to be. Also says how many commands failed at the start, the first time.
    pub(crate) async fn save(
        &self,
        control: &Control,
        sink: &Sink,
    ) -> Result<(Outcome, usize), ConfigurationError> {
        let store = self.store()?;
        if self.restoring.get() {
            return Err(ConfigurationError::Restoring);
        }
        if self.saving.replace(true) {
            return Err(ConfigurationError::Busy);
        }
        let _saving = Saving(self);
        let text = self.running(control, sink).await?;
        let outcome = aside(move || store.save(&text, SystemTime::now())).await?;
        self.shown.take();
        let outcome = outcome?;
        Ok((outcome, self.failed.take()))
    }

    /// All that were saved, the oldest first.
    pub(crate) async fn revisions(&self) -> Result<Vec<Revision>, ConfigurationError> {
        let store = self.store()?;
        Ok(aside(move || store.revisions()).await??)
    }

    /// What is different between something saved and what the router is configured to be.
    pub(crate) async fn difference(
        &self,
        control: &Control,
        sink: &Sink,
        against: Against,
    ) -> Result<Difference, ConfigurationError> {
        let store = self.store()?;
        let running = self.running(control, sink).await?;
        let compare = move || {
            let (name, old) = match against {
                Against::Startup => {
                    ("startup-config".to_owned(), store.read()?.map(|s| s.text).unwrap_or_default())
                }
                Against::Revision(number) => (format!("revision {number}"), store.read_revision(number)?),
            };
            Ok(difference((&name, body(&old)), ("running-config", &running)))
        };
        aside(compare).await?
    }
}

/// Work with the disk, beside the control thread.
async fn aside<T: Send + 'static>(
    work: impl FnOnce() -> T + Send + 'static,
) -> Result<T, ConfigurationError> {
    process::aside("configuration", work).await.map_err(|e| ConfigurationError::Other(e.to_string()))
}
