//! Reading below a folder: bounded, without waiting, noting what could not be read.

use std::cell::RefCell;
use std::collections::BTreeMap;
use std::ffi::OsString;
use std::fs::{self, OpenOptions};
use std::io::{self, ErrorKind, Read};
use std::os::unix::fs::OpenOptionsExt;
use std::path::{Component, Path, PathBuf};
use std::str::FromStr;

use nix::fcntl::OFlag;
use serde::Serialize;

/// Bytes of an ordinary file of `/proc` or `/sys`.
const SMALL: usize = 64 << 10;
/// Most entries of a folder: a router may have very many interfaces.
const MOST_NAMES: usize = 65_536;
/// Most remarks about what could not be read.
const MOST_REMARKS: usize = 64;

/// Something that could not be read, and why.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Unread {
    pub path: String,
    pub why: String,
}

/// The folder everything is read below.
#[derive(Debug)]
pub(crate) struct Root {
    path: PathBuf,
    unread: RefCell<BTreeMap<String, String>>,
}

impl Root {
    pub fn new(path: &Path) -> Self {
        Self { path: path.to_owned(), unread: RefCell::default() }
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The real path of one below the folder. Steps upwards are left out: names come from files.
    pub fn at(&self, inner: impl AsRef<Path>) -> PathBuf {
        let normal = inner.as_ref().components().filter(|c| matches!(c, Component::Normal(_)));
        normal.fold(self.path.clone(), |path, part| path.join(part))
    }

    fn note(&self, inner: &Path, why: impl Into<String>) {
        let mut unread = self.unread.borrow_mut();
        if unread.len() < MOST_REMARKS {
            unread.insert(format!("/{}", plain(inner.as_os_str().as_encoded_bytes())), why.into());
        }
    }

    /// A folder or file that is not there, and a value the kernel has none of, are no remark.
    fn note_error(&self, inner: &Path, error: &io::Error) {
        use nix::errno::Errno;
        let none = [Errno::ENODEV, Errno::EINVAL, Errno::EOPNOTSUPP, Errno::ENOTDIR, Errno::ENXIO];
        let silent = error.raw_os_error().is_some_and(|raw| none.contains(&Errno::from_raw(raw)));
        match error.kind() {
            ErrorKind::NotFound => {}
            ErrorKind::PermissionDenied => self.note(inner, "permission denied"),
            _ if silent => {}
            _ => self.note(inner, error.to_string()),
        }
    }

    /// What could not be read so far.
    pub fn unread(&self) -> Vec<Unread> {
        let unread = self.unread.borrow();
        unread.iter().map(|(path, why)| Unread { path: path.clone(), why: why.clone() }).collect()
    }

    /// The first `limit` bytes of a file. None if it cannot be read, or is no file.
    pub fn bytes(&self, inner: impl AsRef<Path>, limit: usize) -> Option<Vec<u8>> {
        let inner = inner.as_ref();
        let read = || -> io::Result<Option<Vec<u8>>> {
            // Without O_NONBLOCK a pipe in the place of a file would be waited for.
            let mut options = OpenOptions::new();
            let file = options.read(true).custom_flags(OFlag::O_NONBLOCK.bits()).open(self.at(inner))?;
            if !file.metadata()?.is_file() {
                return Ok(None);
            }
            let mut bytes = Vec::new();
            file.take(limit as u64 + 1).read_to_end(&mut bytes)?;
            Ok(Some(bytes))
        };
        match read() {
            Ok(Some(mut bytes)) => {
                if bytes.len() > limit {
                    bytes.truncate(limit);
                    self.note(inner, format!("only its first {limit} bytes were read"));
                }
                Some(bytes)
            }
            Ok(None) => {
                self.note(inner, "not a file");
                None
            }
            Err(error) => {
                self.note_error(inner, &error);
                None
            }
        }
    }

    /// A file as text, without white space around it; bytes that are no text become U+FFFD.
    pub fn text(&self, inner: impl AsRef<Path>) -> Option<String> {
        self.long_text(inner, SMALL)
    }

    /// The same, of at most `limit` bytes.
    pub fn long_text(&self, inner: impl AsRef<Path>, limit: usize) -> Option<String> {
        self.bytes(inner, limit).map(|bytes| String::from_utf8_lossy(&bytes).trim().to_owned())
    }

    /// A file of one word, fit to be printed. None if it is empty.
    pub fn word(&self, inner: impl AsRef<Path>) -> Option<String> {
        let text = self.text(inner)?;
        let word = plain(text.split_whitespace().next()?.as_bytes());
        Some(word.chars().take(64).collect())
    }

    /// A file with one number.
    pub fn number<T: FromStr>(&self, inner: impl AsRef<Path>) -> Option<T> {
        self.text(inner)?.parse().ok()
    }

    /// The names in a folder, sorted.
    pub fn names(&self, inner: impl AsRef<Path>) -> Vec<OsString> {
        let inner = inner.as_ref();
        match fs::read_dir(self.at(inner)) {
            Ok(entries) => {
                let mut names: Vec<_> = entries.take(MOST_NAMES).flatten().map(|e| e.file_name()).collect();
                names.sort();
                names
            }
            Err(error) => {
                self.note_error(inner, &error);
                Vec::new()
            }
        }
    }

    /// The last part of where a link points to, fit to be printed.
    pub fn link(&self, inner: impl AsRef<Path>) -> Option<String> {
        let target = fs::read_link(self.at(inner)).ok()?;
        Some(plain(target.file_name()?.as_encoded_bytes()))
    }

    /// Where something really is, all links followed.
    pub fn real(&self, inner: impl AsRef<Path>) -> Option<PathBuf> {
        let inner = inner.as_ref();
        match fs::canonicalize(self.at(inner)) {
            Ok(path) => Some(path),
            Err(error) => {
                self.note_error(inner, &error);
                None
            }
        }
    }

    pub fn exists(&self, inner: impl AsRef<Path>) -> bool {
        self.at(inner).exists()
    }

    pub fn is_folder(&self, inner: impl AsRef<Path>) -> bool {
        self.at(inner).is_dir()
    }
}

/// Bytes as they may be printed: what could move a terminal's cursor stands as `\x1b`.
pub(crate) fn plain(bytes: &[u8]) -> String {
    let mut text = String::new();
    for &byte in bytes.iter().take(256) {
        match byte {
            b'\\' => text.push_str("\\\\"),
            b' '..=b'~' => text.push(byte as char),
            _ => {
                text.push_str("\\x");
                text.extend(
                    [byte >> 4, byte & 15].map(|half| char::from_digit(half.into(), 16).unwrap_or('?')),
                );
            }
        }
    }
    text
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::symlink;

    #[test]
    fn what_cannot_be_read_is_remembered_and_nothing_waits() {
        let dir = tempfile::tempdir().unwrap();
        let root = Root::new(dir.path());
        symlink("loop", dir.path().join("loop")).unwrap();
        nix::unistd::mkfifo(&dir.path().join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
        fs::write(dir.path().join("long"), vec![b'x'; 3 * SMALL]).unwrap();
        fs::write(dir.path().join("garbage"), [0, 0xff, 0x1b, b'[']).unwrap();
        assert_eq!(root.text("loop"), None);
        assert_eq!(root.text("pipe"), None);
        assert_eq!(root.text("missing"), None);
        assert_eq!(root.text("long").map(|t| t.len()), Some(SMALL));
        assert_eq!(root.word("garbage").as_deref(), Some("\\x00\\xef\\xbf\\xbd\\x1b["));
        assert_eq!(root.number::<u32>("garbage"), None);
        let unread: Vec<_> = root.unread().into_iter().map(|u| u.path).collect();
        assert_eq!(unread, ["/long", "/loop", "/pipe"]);
    }

    #[test]
    fn nothing_outside_is_reached_by_a_path() {
        let root = Root::new(Path::new("/folder"));
        assert_eq!(root.at("/proc/../../etc/./passwd"), Path::new("/folder/proc/etc/passwd"));
    }
}
