//! The last messages that came, to be looked at later or stored: `api trace`.

use std::cell::{Cell, RefCell};
use std::collections::{BTreeMap, VecDeque};
use std::fs::{File, OpenOptions};
use std::io::{self, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use shoal_module::Control;
use shoal_module::config::Settings;

use crate::table::Table;

/// Messages kept unless somebody wants more or fewer.
pub const USUAL: usize = 16_384;
/// Bytes kept, whatever the number of messages.
const MOST_BYTES: usize = 64 << 20;
/// Where traces are stored.
const DIRECTORY: &str = "/tmp";

/// The last messages.
pub struct Trace {
    on: Cell<bool>,
    most: usize,
    kept: RefCell<Kept>,
}

#[derive(Default)]
struct Kept {
    messages: VecDeque<Vec<u8>>,
    bytes: usize,
    /// Whether older ones were forgotten.
    wrapped: bool,
}

/// Why a trace was not stored.
#[derive(Debug, thiserror::Error)]
pub enum SaveError {
    /// The name could lead elsewhere.
    #[error("'{0}' is no name of a file in {DIRECTORY}: it has a / or ..")]
    Name(String),
    /// The system refused.
    #[error("{path}: {source}")]
    Io {
        /// The file.
        path: PathBuf,
        /// Why.
        source: io::Error,
    },
}

/// The start-up section that says whether messages are kept, and how many.
const SECTION: &str = "api-trace";

impl Trace {
    /// As the start-up file wants it.
    pub fn configured(control: &Control) -> Self {
        let sections = control.get::<BTreeMap<&'static str, Settings>>().ok();
        let settings = sections.as_ref().and_then(|all| all.get(SECTION));
        let on = settings.is_some_and(|s| s.flag("on") || s.flag("enable"));
        let most = settings.and_then(|s| s.u64("nitems")).map_or(USUAL, |n| n as usize);
        Self::new(on, most)
    }

    /// Keeps so many messages, if it is on.
    pub fn new(on: bool, most: usize) -> Self {
        Trace { on: Cell::new(on), most, kept: RefCell::default() }
    }

    /// Switches it.
    pub fn switch(&self, on: bool) {
        self.on.set(on);
    }

    /// Whether it is on, how many messages are kept, and how many could be.
    pub fn status(&self) -> (bool, usize, usize) {
        (self.on.get(), self.kept.borrow().messages.len(), self.most)
    }

    /// Forgets all messages.
    pub fn clear(&self) {
        *self.kept.borrow_mut() = Kept::default();
    }

    /// A message came.
    pub fn received(&self, body: &[u8]) {
        if !self.on.get() {
            return;
        }
        let mut kept = self.kept.borrow_mut();
        kept.bytes += body.len();
        kept.messages.push_back(body.to_vec());
        while kept.messages.len() > self.most || kept.bytes > MOST_BYTES {
            let Some(oldest) = kept.messages.pop_front() else { break };
            kept.bytes -= oldest.len();
            kept.wrapped = true;
        }
    }

    /// The messages, oldest first.
    pub fn each(&self, mut f: impl FnMut(&[u8])) {
        self.kept.borrow().messages.iter().for_each(|m| f(m));
    }

    /// Stores them in a file of this name: how many there are and how long the table is, in 4 bytes each, whether older
    /// ones were forgotten in 1; the table, as the first answer to a client has it; each message behind its length.
    /// A file of that name is replaced; a link is not followed.
    ///
    /// # Errors
    /// The name has a directory in it, or the file cannot be written.
    pub fn save(&self, name: &str, table: &Table) -> Result<(PathBuf, usize), SaveError> {
        if name.is_empty() || name.contains('/') || name.contains("..") {
            return Err(SaveError::Name(name.to_owned()));
        }
        let path = PathBuf::from(DIRECTORY).join(name);
        let stored = create(&path).and_then(|file| self.write(file, table));
        match stored {
            Ok(count) => Ok((path, count)),
            Err(source) => Err(SaveError::Io { path, source }),
        }
    }

    fn write(&self, file: File, table: &Table) -> io::Result<usize> {
        let mut file = io::BufWriter::new(file);
        let mut names = Vec::new();
        for (id, entry) in table.iter() {
            names.extend(id.to_be_bytes());
            let mut name = entry.key.clone().into_bytes();
            name.resize(64, 0);
            names.extend(name);
        }
        let kept = self.kept.borrow();
        file.write_all(&(kept.messages.len() as u32).to_be_bytes())?;
        file.write_all(&(names.len() as u32).to_be_bytes())?;
        file.write_all(&[u8::from(kept.wrapped)])?;
        file.write_all(&names)?;
        for message in &kept.messages {
            file.write_all(&(message.len() as u32).to_be_bytes())?;
            file.write_all(message)?;
        }
        file.flush()?;
        Ok(kept.messages.len())
    }
}

/// A new file. The directory is everybody's: what is there is removed, never written through.
fn create(path: &PathBuf) -> io::Result<File> {
    match std::fs::remove_file(path) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
        _ => {}
    }
    OpenOptions::new().write(true).create_new(true).mode(0o640).open(path)
}
