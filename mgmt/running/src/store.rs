//! Configurations on disk.
//!
//! ```text
//! DIRECTORY/startup.cli                          what the next start runs
//! DIRECTORY/revisions/000012-20261122T140000Z.cli   the same, and those before
//! ```
//! A file is written under another name, flushed to the disk and then renamed; the directory is flushed, too. So there
//! is the old file or the new one, whatever happens in between.

use std::collections::HashMap;
use std::ffi::OsStr;
use std::fs::{self, DirBuilder, File, OpenOptions, Permissions};
use std::io::{self, BufRead, BufReader, Read, Write};
use std::os::unix::fs::{DirBuilderExt, OpenOptionsExt, PermissionsExt, fchown};
use std::path::{Path, PathBuf};
use std::time::SystemTime;

use crate::saved::{self, Origin, Saved};
use crate::time;

/// The file that the next start runs.
const STARTUP: &str = "startup.cli";
/// The folder of all that are kept.
const REVISIONS: &str = "revisions";
/// A file beyond this is no file of commands.
const MOST_BYTES: u64 = 1 << 30;
/// A first line is cut off there.
const LONGEST_HEAD: u64 = 4096;
/// Owner and group read, the owner writes.
const FILE_MODE: u32 = 0o640;
/// The same for directories.
const DIRECTORY_MODE: u32 = 0o750;

/// Why nothing could be saved or read.
#[derive(Debug, thiserror::Error)]
pub enum StoreError {
    /// Writing failed; what was saved before is as it was.
    #[error(
        "{}: {error}; what was saved before is as it was (`configuration {{ directory PATH }}' in the start-up file \
         names another place)",
        path.display()
    )]
    Write {
        /// What was being written.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// Reading failed.
    #[error("{}: {error}", path.display())]
    Read {
        /// What was being read.
        path: PathBuf,
        /// Why not.
        error: io::Error,
    },
    /// There is no such revision.
    #[error("there is no revision {number}{}", nearest.map(|n| format!(", nearest {n}")).unwrap_or_default())]
    NoRevision {
        /// What was asked for.
        number: u64,
        /// The one that comes nearest.
        nearest: Option<u64>,
    },
}

/// A configuration that was saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Revision {
    /// Its number; they count from 1.
    pub number: u64,
    /// When, such as `2026-11-22T14:00:00Z`.
    pub time: String,
    /// Bytes of its file.
    pub bytes: u64,
    /// Where it comes from.
    pub origin: Origin,
    path: PathBuf,
}

/// Who saves, and why.
#[derive(Debug, Clone, Copy, Default)]
pub struct SaveOrigin<'a> {
    /// The user.
    pub user: &'a str,
    /// What the user says of it.
    pub comment: &'a str,
}

/// What came of saving.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Outcome {
    /// It is a revision of this number now.
    Saved(u64),
    /// The revision of this number is the same.
    Same(u64),
}

/// Where configurations are kept. Nothing is made there before something is saved.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Store {
    /// The directory.
    pub directory: PathBuf,
    /// How many revisions are kept.
    pub keep: usize,
    /// The group that may read files, besides their owner.
    pub gid: Option<u32>,
}

impl Store {
    fn startup(&self) -> PathBuf {
        self.directory.join(STARTUP)
    }

    /// What the next start runs; `None` when nothing was saved.
    ///
    /// # Errors
    /// The file cannot be read.
    pub fn read(&self) -> Result<Option<Saved>, StoreError> {
        let path = self.startup();
        match read(&path) {
            Ok(text) => Ok(Some(Saved::new(text))),
            Err(error) if is_absent(&error) => Ok(None),
            Err(error) => Err(StoreError::Read { path, error }),
        }
    }

    /// A revision's text.
    ///
    /// # Errors
    /// There is none, or its file cannot be read.
    pub fn read_revision(&self, number: u64) -> Result<String, StoreError> {
        let all = self.revisions()?;
        let Some(found) = all.iter().find(|r| r.number == number) else {
            let nearest = all.iter().map(|r| r.number).min_by_key(|n| n.abs_diff(number));
            return Err(StoreError::NoRevision { number, nearest });
        };
        read(&found.path).map_err(|error| StoreError::Read { path: found.path.clone(), error })
    }

    /// All revisions, the oldest first. Files that are none of ours are left out.
    ///
    /// # Errors
    /// The directory cannot be read.
    pub fn revisions(&self) -> Result<Vec<Revision>, StoreError> {
        let path = self.directory.join(REVISIONS);
        let failed = |error| StoreError::Read { path: path.clone(), error };
        let files = match fs::read_dir(&path) {
            Ok(files) => files,
            Err(error) if is_absent(&error) => return Ok(Vec::new()),
            Err(error) => return Err(failed(error)),
        };
        let mut all = Vec::new();
        for file in files {
            let file = file.map_err(failed)?;
            if let Some((number, time)) = named(&file.file_name()) {
                let bytes = file.metadata().map_or(0, |m| m.len());
                let origin = head(&file.path()).map(|head| saved::origin(&head)).unwrap_or_default();
                all.push(Revision { number, time, bytes, origin, path: file.path() });
            }
        }
        all.sort_by_key(|r| r.number);
        Ok(all)
    }

    /// Saves commands for the next start and as a new revision, unless they are what was saved last.
    ///
    /// # Errors
    /// Something could not be written: all is as it was then.
    pub fn save(&self, commands: &str, now: SystemTime, who: SaveOrigin<'_>) -> Result<Outcome, StoreError> {
        let all = self.revisions()?;
        let last = all.last().map_or(0, |r| r.number);
        if let Some(saved) = self.read()?
            && !saved.cut
            && last > 0
            && saved::body(&saved.text) == commands
        {
            return Ok(Outcome::Same(last));
        }
        let revisions = self.directory.join(REVISIONS);
        for path in [&self.directory, &revisions] {
            self.make_directory(path).map_err(|error| StoreError::Write { path: path.clone(), error })?;
        }
        let (number, stamp) = (last + 1, time::stamp(now));
        let before = self.read()?.map(|saved| saved.text).unwrap_or_default();
        let (added, removed) = size_of_change(saved::body(&before), commands);
        let (user, comment) = (who.user.to_owned(), who.comment.to_owned());
        let origin = Origin { user, added, removed, comment };
        let text = saved::file(number, &stamp, &origin, commands);
        let copy = revisions.join(format!("{number:06}-{}.cli", time::in_name(&stamp)));
        self.replace(&copy, &text)?;
        if let Err(error) = self.replace(&self.startup(), &text) {
            // There must be no revision that never was.
            let _ = fs::remove_file(&copy);
            return Err(error);
        }
        let excess = (all.len() + 1).saturating_sub(self.keep);
        for old in all.iter().take(excess) {
            if let Err(e) = fs::remove_file(&old.path) {
                tracing::warn!("revision {} is not removed: {}: {e}", old.number, old.path.display());
            }
        }
        Ok(Outcome::Saved(number))
    }

    /// Puts a file of this name beside what the next start runs, so that it is there after a crash. Nothing is written
    /// where nothing was saved yet.
    ///
    /// # Errors
    /// It could not be written: what was there before still is.
    pub fn write_beside(&self, name: &str, text: &str) -> Result<(), StoreError> {
        if !self.directory.is_dir() {
            return Ok(());
        }
        self.replace(&self.directory.join(name), text)
    }

    fn make_directory(&self, path: &Path) -> io::Result<()> {
        if path.is_dir() {
            return Ok(());
        }
        DirBuilder::new().recursive(true).mode(DIRECTORY_MODE).create(path)?;
        let directory = File::open(path)?;
        self.give(&directory)
    }

    /// Lets the group read, where there is one.
    fn give(&self, file: &File) -> io::Result<()> {
        if self.gid.is_some() { fchown(file, None, self.gid) } else { Ok(()) }
    }

    /// Puts a file in the place of another, or leaves everything as it is.
    fn replace(&self, path: &Path, text: &str) -> Result<(), StoreError> {
        let aside = path.with_extension("new");
        let done = self.write(&aside, text).and_then(|()| fs::rename(&aside, path)).and_then(|()| {
            let directory = path.parent().unwrap_or(Path::new("/"));
            File::open(directory)?.sync_all()
        });
        done.map_err(|error| {
            let _ = fs::remove_file(&aside);
            StoreError::Write { path: path.to_owned(), error }
        })
    }

    fn write(&self, path: &Path, text: &str) -> io::Result<()> {
        // Of a write that was cut short by a crash.
        match fs::remove_file(path) {
            Err(error) if error.kind() != io::ErrorKind::NotFound => return Err(error),
            _ => {}
        }
        let mut file = OpenOptions::new().write(true).create_new(true).mode(FILE_MODE).open(path)?;
        file.set_permissions(Permissions::from_mode(FILE_MODE))?;
        self.give(&file)?;
        file.write_all(text.as_bytes())?;
        file.sync_all()
    }
}

/// Whether there is nothing of that name.
fn is_absent(error: &io::Error) -> bool {
    matches!(error.kind(), io::ErrorKind::NotFound | io::ErrorKind::NotADirectory)
}

/// The text of a file of commands.
fn read(path: &Path) -> io::Result<String> {
    let file = File::open(path)?;
    if !file.metadata()?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    file.take(MOST_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MOST_BYTES {
        return Err(io::Error::other("larger than 1 GiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

/// How many commands the new ones have that the old ones have not, and the other way round.
fn size_of_change(old: &str, new: &str) -> (usize, usize) {
    let mut count: HashMap<&str, isize> = HashMap::new();
    for (text, by) in [(old, -1), (new, 1)] {
        for line in text.lines().filter(|line| !line.starts_with('#')) {
            *count.entry(line).or_default() += by;
        }
    }
    let sum = |sign: isize| count.values().map(|n| (n * sign).max(0).unsigned_abs()).sum();
    (sum(1), sum(-1))
}

/// The first line of a file.
fn head(path: &Path) -> io::Result<String> {
    let mut line = String::new();
    BufReader::new(File::open(path)?.take(LONGEST_HEAD)).read_line(&mut line)?;
    Ok(line)
}

/// Number and time of a revision, by the name of its file.
fn named(name: &OsStr) -> Option<(u64, String)> {
    let (number, stamp) = name.to_str()?.strip_suffix(".cli")?.split_once('-')?;
    Some((number.parse().ok()?, time::of_name(stamp)?))
}
