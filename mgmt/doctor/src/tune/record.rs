//! What was there before, on disk: `/var/lib/shoal/tune.json`.

use std::fs::{self, File, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt};
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::keep::Kept;
use super::tunable_setting::TunableSetting;
use super::{Name, TuneError};
use crate::root::Root;

/// The folder in which `write` saves the router's configuration too.
const FOLDER: &str = "var/lib/shoal";
const FILE: &str = "tune.json";
/// Bytes; 4,096 entries need less.
const MOST: usize = 1 << 20;

/// One thing that was turned.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Entry {
    pub subset: Name,
    #[serde(flatten)]
    pub knob: TunableSetting,
    pub before: String,
    pub wanted: String,
    /// What it was afterwards; null while it is being turned, and after a crash then.
    pub reached: Option<String>,
}

impl Entry {
    /// Whether a value is the one we left.
    pub fn is_ours(&self, now: &str) -> bool {
        if let Some(reached) = &self.reached {
            return now == reached;
        }
        // The end is unknown. Pages come one by one, so anything between is ours.
        let number = |text: &str| text.parse::<u64>().ok();
        match (number(&self.before), number(now), number(&self.wanted)) {
            (Some(before), Some(now), Some(wanted)) => (before..=wanted).contains(&now),
            _ => now == self.before || now == self.wanted,
        }
    }
}

/// All that was turned and not undone.
#[derive(Debug, Clone, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Record {
    pub version: u32,
    pub entries: Vec<Entry>,
    /// Files that `--persist` wrote.
    #[serde(default)]
    pub kept: Vec<Kept>,
}

/// Held while a record is worked with.
pub(super) struct Lock(File);

impl Drop for Lock {
    fn drop(&mut self) {
        // Closing would do, were it not for a process that another thread is just starting: it has the file too.
        let _ = self.0.unlock();
    }
}

fn path(root: &Root) -> PathBuf {
    root.at(FOLDER).join(FILE)
}

impl Record {
    pub fn of(&self, name: Name) -> impl Iterator<Item = &Entry> {
        self.entries.iter().filter(move |entry| entry.subset == name)
    }

    /// Reads it; none is an empty one.
    pub fn load(root: &Root) -> Result<Self, TuneError> {
        let path = path(root);
        let bad = |why: String| TuneError::Record { path: path.display().to_string(), why };
        match fs::symlink_metadata(&path) {
            Ok(found) if !found.is_file() => return Err(bad("it is not a file".into())),
            Ok(found) if found.len() > MOST as u64 => return Err(bad("it is too long".into())),
            Ok(_) => {}
            Err(error) if error.kind() == ErrorKind::NotFound => return Ok(Self::default()),
            Err(error) => return Err(TuneError::file(path, &error)),
        }
        let text = fs::read(&path).map_err(|e| TuneError::file(path.clone(), &e))?;
        let record: Self = serde_json::from_slice(&text).map_err(|e| bad(e.to_string()))?;
        if record.version != 1 {
            return Err(bad(format!("its version is {}, not 1", record.version)));
        }
        let sound = |entry: &Entry| {
            let values = [Some(&entry.before), Some(&entry.wanted), entry.reached.as_ref()];
            values.into_iter().flatten().all(|value| entry.knob.is_sound(value))
        };
        match record.entries.iter().find(|entry| !sound(entry)) {
            Some(entry) => Err(bad(format!("it has a value that {:?} cannot have", entry.subset))),
            None => Ok(record),
        }
    }

    /// Writes it so that there is the old one or the new one; an empty one is no file.
    pub fn save(&self, root: &Root) -> Result<(), TuneError> {
        let (folder, path) = (root.at(FOLDER), path(root));
        let new = folder.join("tune.json.new");
        let write = || -> std::io::Result<()> {
            if self.entries.is_empty() && self.kept.is_empty() {
                match fs::remove_file(&path) {
                    Err(error) if error.kind() != ErrorKind::NotFound => return Err(error),
                    _ => return File::open(&folder)?.sync_all(),
                }
            }
            let text = serde_json::to_vec_pretty(&Self { version: 1, ..self.clone() })?;
            let _ = fs::remove_file(&new);
            let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?;
            file.write_all(&text)?;
            file.sync_all()?;
            fs::rename(&new, &path)?;
            File::open(&folder)?.sync_all()
        };
        write().map_err(|e| TuneError::file(path.clone(), &e))
    }
}

impl Lock {
    /// One at a time. Makes the folder.
    pub fn take(root: &Root) -> Result<Self, TuneError> {
        let folder = root.at(FOLDER);
        let error = |e: &std::io::Error| TuneError::file(folder.clone(), e);
        fs::DirBuilder::new().recursive(true).mode(0o750).create(&folder).map_err(|e| error(&e))?;
        // The folder itself is the lock: nothing is left behind.
        let file = File::open(&folder).map_err(|e| error(&e))?;
        match file.try_lock() {
            Ok(()) => Ok(Self(file)),
            Err(fs::TryLockError::WouldBlock) => Err(TuneError::Busy),
            Err(fs::TryLockError::Error(e)) => Err(error(&e)),
        }
    }
}
