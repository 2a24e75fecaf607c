//! A commit that goes back by itself unless it is confirmed, and the record of it on disk.
//!
//! What the next start runs is not replaced before the commit is confirmed, so a router that ends in between comes up with
//! what was committed before. The record is there so that the next start can say what has happened.

use std::fs::{self, File};
use std::io::{self, Read};
use std::path::{Path, PathBuf};
use std::sync::Arc;
use std::time::SystemTime;

use shoal_running::Text;

/// The record, in the directory of configurations.
pub(crate) const RECORD: &str = "pending";
/// A record is no longer.
const LONGEST: u64 = 4096;

/// A commit that waits to be confirmed.
#[derive(Debug)]
pub(crate) struct Pending {
    /// Tells one commit from the next.
    pub number: u64,
    /// Who committed.
    pub user: String,
    /// The user's comment.
    pub comment: String,
    /// When it goes back.
    pub until: SystemTime,
    /// What was configured before.
    pub before: Arc<Text>,
    /// What was committed.
    pub after: Arc<Text>,
}

impl Pending {
    /// Why nothing else is committed or saved meanwhile.
    pub fn why(&self) -> String {
        let left = self.until.duration_since(SystemTime::now()).unwrap_or_default().as_secs();
        format!(
            "the commit of {} is not confirmed and goes back in {left} s: `confirm' keeps it, `rollback' takes it back",
            self.user
        )
    }
}

/// Where the record of a directory is.
pub(crate) fn path(directory: &Path) -> PathBuf {
    directory.join(RECORD)
}

/// Removes the record, if there is one.
pub(crate) fn remove(directory: &Path) -> io::Result<()> {
    match fs::remove_file(path(directory)) {
        Err(error) if error.kind() != io::ErrorKind::NotFound => Err(error),
        _ => Ok(()),
    }
}

/// The record that a router left which ended before its commit was confirmed.
pub(crate) fn left_behind(directory: &Path) -> Option<String> {
    let mut text = String::new();
    File::open(path(directory)).ok()?.take(LONGEST).read_to_string(&mut text).ok()?;
    Some(text.trim().to_owned())
}

#[cfg(test)]
mod tests {
    use shoal_running::Store;

    use super::*;

    #[test]
    fn a_record_is_there_until_it_is_removed() {
        let directory = tempfile::tempdir().unwrap();
        assert_eq!(left_behind(directory.path()), None);
        let store = |directory: &Path| Store { directory: directory.to_owned(), keep: 1, gid: None };
        let write = |directory: &Path, text| store(directory).write_beside(RECORD, text);
        write(directory.path(), "by anna\n").unwrap();
        write(directory.path(), "by bert\n").unwrap();
        assert_eq!(left_behind(directory.path()).as_deref(), Some("by bert"));
        remove(directory.path()).unwrap();
        remove(directory.path()).unwrap();
        assert_eq!(left_behind(directory.path()), None);
        write(&directory.path().join("no/such"), "x").unwrap();
    }
}
