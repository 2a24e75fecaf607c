//! The control object: where configurations are kept, and what is being done with them.

use std::cell::{Cell, RefCell};
use std::path::PathBuf;
use std::rc::{Rc, Weak};
use std::sync::Arc;
use std::time::SystemTime;

use shoal_graph::process;
use shoal_module::cli::Sink;
use shoal_module::{Control, InitError};

use crate::difference::{Difference, difference};
use crate::gather::{Text, gather};
use crate::saved::{Saved, body};
use crate::store::{Outcome, Revision, SaveOrigin, Store, StoreError};

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
pub enum ConfigurationError {
    /// There is no directory for them.
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
    /// What is configured may go back by itself.
    #[error("{0}")]
    Held(String),
    /// The disk.
    #[error(transparent)]
    Store(#[from] StoreError),
    /// The text could not be put together.
    #[error("{0}")]
    Other(String),
}

/// What tells why nothing may be saved.
struct Refusal(Box<dyn Fn() -> Option<String>>);

impl std::fmt::Debug for Refusal {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_tuple("Refusal").field(&(self.0)()).finish()
    }
}

/// Configurations of this router.
#[derive(Debug)]
pub struct Configuration {
    store: Option<Store>,
    restoring: Cell<bool>,
    saving: Cell<bool>,
    /// Tells why nothing may be saved now, if that is so.
    refusal: RefCell<Option<Refusal>>,
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
        refusal: RefCell::default(),
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

    /// Where configurations are kept, if they are.
    pub fn directory(&self) -> Option<PathBuf> {
        self.store.as_ref().map(|store| store.directory.clone())
    }

    /// Whether what was saved is still being run.
    pub fn is_restoring(&self) -> bool {
        self.restoring.get()
    }

    /// Lets `write` save nothing while this tells why.
    pub fn refuse_while(&self, why: impl Fn() -> Option<String> + 'static) {
        self.refusal.replace(Some(Refusal(Box::new(why))));
    }

    fn may_save(&self) -> Result<(), ConfigurationError> {
        match self.refusal.borrow().as_ref().and_then(|refusal| (refusal.0)()) {
            Some(why) => Err(ConfigurationError::Held(why)),
            None => Ok(()),
        }
    }

    /// Puts a file of this name beside what the next start runs, if this router keeps configurations and has saved one.
    ///
    /// # Errors
    /// It could not be written: what was there before still is.
    pub async fn write_beside(&self, name: &'static str, text: String) -> Result<(), ConfigurationError> {
        let Ok(store) = self.store() else { return Ok(()) };
        Ok(aside(move || store.write_beside(name, &text)).await??)
    }

    /// What the router is configured to be.
    pub(crate) async fn running(&self, control: &Control, sink: &Sink) -> Result<Text, ConfigurationError> {
        gather(control, Some(sink)).await.map_err(ConfigurationError::Other)
    }

    /// The commands that the next start runs; none if nothing was saved.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn startup(&self) -> Result<String, ConfigurationError> {
        let store = self.store()?;
        let read = move || store.read().map(|saved| saved.map(|s| body(&s.text).to_owned()));
        Ok(aside(read).await??.unwrap_or_default())
    }

    /// The commands of a revision.
    ///
    /// # Errors
    /// There is none, or it cannot be read.
    pub async fn revision(&self, number: u64) -> Result<String, ConfigurationError> {
        let store = self.store()?;
        Ok(aside(move || store.read_revision(number).map(|text| body(&text).to_owned())).await??)
    }

    /// Saves these commands for the next start, by this user and with this comment.
    ///
    /// # Errors
    /// They cannot be saved; what was saved before is as it was.
    pub async fn save_commands(
        &self,
        commands: Arc<Text>,
        user: String,
        comment: String,
    ) -> Result<Outcome, ConfigurationError> {
        let store = self.store()?;
        if self.restoring.get() {
            return Err(ConfigurationError::Restoring);
        }
        if self.saving.replace(true) {
            return Err(ConfigurationError::Busy);
        }
        let _saving = Saving(self);
        let save = move || {
            let who = SaveOrigin { user: &user, comment: &comment };
            store.save(&commands, SystemTime::now(), who)
        };
        let outcome = aside(save).await?;
        self.shown.take();
        Ok(outcome?)
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
        self.may_save()?;
        // Before anything is read: there may be nowhere to save it.
        self.store()?;
        let text = Arc::new(self.running(control, sink).await?);
        // A commit may have begun while it was read, and what was read may be half of that.
        self.may_save()?;
        let outcome = self.save_commands(text, sink.client().user, String::new()).await?;
        Ok((outcome, self.failed.take()))
    }

    /// All that were saved, the oldest first.
    ///
    /// # Errors
    /// They cannot be read.
    pub async fn revisions(&self) -> Result<Vec<Revision>, ConfigurationError> {
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nothing_is_saved_while_there_is_a_reason_not_to() {
        let control = Rc::new(Control::new());
        init(&control).unwrap();
        let configuration = control.get::<Configuration>().unwrap();
        configuration.may_save().unwrap();
        let busy = Rc::new(Cell::new(true));
        let why = Rc::clone(&busy);
        configuration.refuse_while(move || why.get().then(|| "a commit is running".to_owned()));
        assert_eq!(configuration.may_save().unwrap_err().to_string(), "a commit is running");
        busy.set(false);
        configuration.may_save().unwrap();
    }
}
