//! What a file in the plugin directory is, before the system's loader sees it.
//!
//! The loader takes files as they are: it waits for a pipe's other end, and of a library that was copied only in part it
//! maps pages that are not there, which ends the process when they are touched. So a file is opened without waiting, must
//! be a regular one, and must have all the bytes of which its headers speak.

use std::fs::{File, OpenOptions};
use std::io;
use std::os::unix::fs::{FileExt as _, FileTypeExt as _, OpenOptionsExt as _};
use std::path::Path;

use nix::fcntl::OFlag;

/// The file header of 64 bits, and one entry of each of its tables.
const FILE_HEADER: usize = 64;
const SEGMENT: usize = 56;
const SECTION: usize = 64;
/// Most entries of a table that are looked at; no linker makes as many.
const MOST: usize = 4096;
/// A section with no bytes in the file.
const NO_BITS: u32 = 8;
/// A section of names.
const NAMES: u32 = 3;

/// Checks a file.
///
/// # Errors
/// What it is instead, in words.
pub(crate) fn check(path: &Path) -> Result<(), String> {
    let flags = (OFlag::O_NONBLOCK | OFlag::O_NOCTTY | OFlag::O_CLOEXEC).bits();
    let file = OpenOptions::new().read(true).custom_flags(flags).open(path).map_err(|e| e.to_string())?;
    let facts = file.metadata().map_err(|e| e.to_string())?;
    if !facts.is_file() {
        let kind = facts.file_type();
        let what = match () {
            () if kind.is_dir() => "a directory",
            () if kind.is_fifo() => "a pipe",
            () if kind.is_socket() => "a socket",
            () if kind.is_char_device() || kind.is_block_device() => "a device",
            () => "no regular file",
        };
        return Err(format!("it is {what}"));
    }
    Image { file, size: facts.len() }.check()
}

struct Image {
    file: File,
    size: u64,
}

fn half(bytes: &[u8], at: usize) -> u16 {
    bytes.get(at..at + 2).and_then(|b| b.try_into().ok()).map_or(0, u16::from_ne_bytes)
}

fn word(bytes: &[u8], at: usize) -> u32 {
    bytes.get(at..at + 4).and_then(|b| b.try_into().ok()).map_or(0, u32::from_ne_bytes)
}

fn long(bytes: &[u8], at: usize) -> u64 {
    bytes.get(at..at + 8).and_then(|b| b.try_into().ok()).map_or(0, u64::from_ne_bytes)
}

impl Image {
    fn bytes<const N: usize>(&self, at: u64) -> Result<[u8; N], String> {
        let mut bytes = [0; N];
        self.file.read_exact_at(&mut bytes, at).map_err(|error| match error.kind() {
            io::ErrorKind::UnexpectedEof => self.short(at.saturating_add(N as u64)),
            _ => error.to_string(),
        })?;
        Ok(bytes)
    }

    fn short(&self, end: u64) -> String {
        format!("it has {} bytes and its headers speak of {end}: it was not copied whole", self.size)
    }

    /// That bytes of which a header speaks are there.
    fn has(&self, offset: u64, length: u64) -> Result<(), String> {
        let end = offset.checked_add(length).ok_or_else(|| self.short(u64::MAX))?;
        if end <= self.size { Ok(()) } else { Err(self.short(end)) }
    }

    fn table(&self, what: &str, place: u64, (count, entry): (u16, u16), size: usize) -> Result<(), String> {
        if usize::from(entry) != size || usize::from(count) > MOST {
            return Err(format!("its table of {what} has {count} entries of {entry} bytes"));
        }
        self.has(place, u64::from(count) * size as u64)
    }

    fn check(&self) -> Result<(), String> {
        let header: [u8; FILE_HEADER] = match self.bytes(0) {
            Ok(header) => header,
            Err(_) if self.size < FILE_HEADER as u64 => return Err(format!("it has {} bytes", self.size)),
            Err(why) => return Err(why),
        };
        // 64 bits, and the order of bytes of this machine; the loader checks the rest.
        let order = if cfg!(target_endian = "little") { 1 } else { 2 };
        if !header.starts_with(&[0x7f, b'E', b'L', b'F', 2, order]) {
            return Err("it has not the header of a library".into());
        }
        let segments = (half(&header, 56), half(&header, 54));
        let place = long(&header, 32);
        if segments.0 == 0 {
            return Err("it has no segments".into());
        }
        self.table("segments", place, segments, SEGMENT)?;
        for n in 0..u64::from(segments.0) {
            let segment: [u8; SEGMENT] = self.bytes(place + n * SEGMENT as u64)?;
            self.has(long(&segment, 8), long(&segment, 32))?;
        }
        self.check_sections(&header)
    }

    /// Sections stand behind all that is loaded: a copy that has reserved its room and not yet filled it has none.
    fn check_sections(&self, header: &[u8; FILE_HEADER]) -> Result<(), String> {
        let (place, sections) = (long(header, 40), (half(header, 60), half(header, 58)));
        // A library may have been stripped of them.
        if place == 0 || sections.0 == 0 {
            return Ok(());
        }
        self.table("sections", place, sections, SECTION)?;
        let names = half(header, 62);
        for n in 0..sections.0 {
            let section: [u8; SECTION] = self.bytes(place + u64::from(n) * SECTION as u64)?;
            let kind = word(&section, 4);
            if kind != NO_BITS {
                self.has(long(&section, 24), long(&section, 32))?;
            }
            if n == names && n != 0 && kind != NAMES {
                return Err("its end is not filled: it was not copied whole".into());
            }
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use std::os::unix::fs::symlink;

    use nix::sys::stat::Mode;

    use super::*;

    /// A library of this machine: this test's own C library, or whatever is mapped beside it.
    fn library() -> Vec<u8> {
        let maps = std::fs::read_to_string("/proc/self/maps").unwrap();
        let path =
            maps.lines().filter_map(|l| l.split_whitespace().nth(5)).find(|p| p.contains(".so")).unwrap();
        std::fs::read(path).unwrap()
    }

    #[test]
    fn a_library_is_one_and_no_beginning_of_it_is() {
        let folder = tempfile::tempdir().unwrap();
        let (path, whole) = (folder.path().join("x.so"), library());
        std::fs::write(&path, &whole).unwrap();
        assert_eq!(check(&path), Ok(()));
        let link = folder.path().join("link.so");
        symlink(&path, &link).unwrap();
        assert_eq!(check(&link), Ok(()), "a link to a regular file");
        let most = whole.len();
        for length in [0, 1, 63, 64, 100, 4096, 5000, most / 4, most / 2, most - 4096, most - 64, most - 1] {
            std::fs::write(&path, &whole[..length]).unwrap();
            let why = check(&path).unwrap_err();
            assert!(why.contains(&format!("it has {length} bytes")), "{length}: {why}");
            // As copies do that reserve their room at once: all that is missing is zero.
            let mut filled = whole[..length].to_vec();
            filled.resize(most, 0);
            std::fs::write(&path, &filled).unwrap();
            assert!(check(&path).is_err() || filled == whole, "{length} bytes and then zeros");
        }
    }

    #[test]
    fn headers_that_lie_are_refused() {
        let folder = tempfile::tempdir().unwrap();
        let (path, whole) = (folder.path().join("x.so"), library());
        // Where in the header, and what is written there.
        let lies: [(usize, &[u8]); 8] = [
            (0, b"\x7fELG"),
            (4, &[1]),
            (32, &[0xff; 8]),
            (40, &[0xff; 8]),
            (54, &[1, 0]),
            (56, &[0, 0]),
            (56, &[0xff, 0xff]),
            (58, &[0, 0]),
        ];
        for (at, bytes) in lies {
            let mut lying = whole.clone();
            lying[at..at + bytes.len()].copy_from_slice(bytes);
            std::fs::write(&path, &lying).unwrap();
            assert!(check(&path).is_err(), "{bytes:?} at {at}");
        }
        // A segment beyond the end of the file.
        let (mut lying, first) = (whole.clone(), long(&whole, 32) as usize);
        lying[first + 32..first + 40].copy_from_slice(&u64::MAX.to_ne_bytes());
        std::fs::write(&path, &lying).unwrap();
        assert!(check(&path).unwrap_err().contains("not copied whole"));
    }

    #[test]
    fn what_is_no_file_is_named_and_never_waited_for() {
        let folder = tempfile::tempdir().unwrap();
        let pipe = folder.path().join("pipe.so");
        nix::unistd::mkfifo(&pipe, Mode::S_IRWXU).unwrap();
        assert_eq!(check(&pipe), Err("it is a pipe".into()));
        assert_eq!(check(folder.path()), Err("it is a directory".into()));
        assert_eq!(check(Path::new("/dev/null")), Err("it is a device".into()));
        assert!(check(&folder.path().join("nowhere.so")).is_err());
    }
}
