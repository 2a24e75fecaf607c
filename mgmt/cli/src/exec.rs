//! `exec FILE`: reading the file and reporting its faults.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};

use crate::complaint::Complaint;

/// A file of commands beyond this is no file of commands.
const MAX_BYTES: u64 = 64 << 20;

/// The text of a file, with VPP's and Windows' line ends alike.
pub fn read(file: &str) -> io::Result<String> {
    if !std::fs::metadata(file)?.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let mut bytes = Vec::new();
    File::open(file)?.take(MAX_BYTES + 1).read_to_end(&mut bytes)?;
    if bytes.len() as u64 > MAX_BYTES {
        return Err(io::Error::other("larger than 64 MiB"));
    }
    String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))
}

/// One text that names every fault with file and line.
pub fn refusal(file: &str, faults: &[(usize, Complaint)]) -> String {
    let mut text = format!("{file}: {} wrong, nothing was run", count(faults.len()));
    for (line, complaint) in faults {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{file}:{line}: {}", complaint.to_string().trim_end());
    }
    text
}

fn count(n: usize) -> String {
    if n == 1 { "1 line is".into() } else { format!("{n} lines are") }
}
