//! Profiles for tests: written to a folder of their own, loaded and converted.
#![allow(dead_code, reason = "each test file uses some of it")]

use std::path::{Path, PathBuf};
use std::time::Duration;

use shoal_lab_plan::{Side, Stream};
use shoal_lab_stl::{Converted, Fault, Load, Loaded, ProfileError, Sending, convert, load};
use tempfile::TempDir;

/// A profile in a folder that goes with it.
pub struct Written {
    folder: TempDir,
    pub path: PathBuf,
}

/// Writes a profile.
pub fn written(text: &str) -> Written {
    let folder = tempfile::tempdir().unwrap();
    let path = folder.path().join("mine.py");
    std::fs::write(&path, text).unwrap();
    Written { folder, path }
}

impl Written {
    /// A file beside it.
    pub fn beside(&self, name: &str, bytes: &[u8]) {
        std::fs::write(self.folder.path().join(name), bytes).unwrap();
    }

    /// Loads it for the left side.
    pub fn load(&self, tunables: &str) -> Result<Loaded, ProfileError> {
        load(&self.path, Side::Left, &how(tunables))
    }

    /// What is wrong with it.
    pub fn fault(&self, tunables: &str) -> Fault {
        match self.load(tunables).unwrap_err() {
            ProfileError::Fault(fault) => fault,
            other => panic!("no fault of the profile: {other}"),
        }
    }
}

/// Loading with tunables.
pub fn how(tunables: &str) -> Load {
    Load { tunables: tunables.to_owned(), ..Load::default() }
}

/// Sending for ten seconds.
pub fn sending() -> Sending {
    Sending::new(Duration::from_secs(10))
}

/// The plan's streams of a profile, by path or name.
pub fn streams(profile: &str, side: Side, tunables: &str) -> Vec<Stream> {
    let loaded = load(Path::new(profile), side, &how(tunables)).unwrap_or_else(|e| panic!("{e}"));
    convert(&loaded.streams, side, &sending()).unwrap_or_else(|e| panic!("{e}")).streams
}

/// A profile of which only the list of streams is told.
pub fn listing(streams: &str) -> Written {
    written(&format!(
        "from trex_stl_lib.api import *\n\nclass Mine:\n    def get_streams(self, direction=0, **kwargs):\n        \
         frame = Ether()/IP(src='16.0.0.1', dst='48.0.0.1')/UDP(sport=1025, dport=12)/(40*'x')\n        \
         return [{streams}]\n\ndef register():\n    return Mine()\n"
    ))
}

/// Converts such a list for the left side.
pub fn converted(list: &str) -> Result<Converted, ProfileError> {
    converted_with(list, &sending())
}

/// Converts such a list, sent in some way.
pub fn converted_with(list: &str, sending: &Sending) -> Result<Converted, ProfileError> {
    let loaded = listing(list).load("").unwrap_or_else(|e| panic!("{e}"));
    convert(&loaded.streams, Side::Left, sending)
}

/// Bytes as hexadecimal digits.
pub fn hex(bytes: &[u8]) -> String {
    let digit = |value: u8| char::from_digit(value.into(), 16).unwrap();
    bytes.iter().flat_map(|b| [digit(b >> 4), digit(b & 0xF)]).collect()
}
