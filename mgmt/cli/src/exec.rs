//! `exec FILE`: reading the file and reporting its faults.

use std::fmt::Write as _;
use std::fs::File;
use std::io::{self, Read};

use shoal_infra::budget;
use shoal_module::cli::Pace;

use crate::complaint::Complaint;

/// A file of commands beyond this is no file of commands: some twenty million routes.
const MAX_BYTES: u64 = 1 << 30;
/// Read at a time.
const CHUNK: u64 = 1 << 20;
/// A file with more faults is something else; the first ones say so.
pub(crate) const MOST_FAULTS: usize = 100;

/// The text of a file, with VPP's and Windows' line ends alike.
pub async fn read(file: &str, pace: &Pace) -> io::Result<Text> {
    let length = std::fs::metadata(file)?;
    if !length.is_file() {
        return Err(io::Error::other("not a file"));
    }
    let too_large = || io::Error::other("larger than 1 GiB");
    let length = usize::try_from(length.len()).map_err(|_| too_large())?;
    let mut bytes = Vec::new();
    // A file may grow while it is read, and says nothing of its length in /proc.
    let length = length.min(MAX_BYTES as usize) + 1;
    budget::take(length).map_err(io::Error::other)?;
    let mut text = Text { text: String::new(), taken: length };
    bytes.try_reserve_exact(length).map_err(io::Error::other)?;
    let mut file = File::open(file)?;
    while file.by_ref().take(CHUNK).read_to_end(&mut bytes)? > 0 {
        if bytes.len() as u64 > MAX_BYTES {
            return Err(too_large());
        }
        pace.give_way().await;
    }
    text.text = String::from_utf8(bytes).map_err(|_| io::Error::other("not UTF-8 text"))?;
    Ok(text)
}

/// The text of a file, counted as the tables' memory while it is there.
pub struct Text {
    text: String,
    taken: usize,
}

impl std::ops::Deref for Text {
    type Target = str;

    fn deref(&self) -> &str {
        &self.text
    }
}

impl Drop for Text {
    fn drop(&mut self) {
        budget::give_back(self.taken);
    }
}

/// One text that names every fault with file and line.
pub fn refusal(file: &str, faults: &[(usize, Complaint)]) -> String {
    let or_more = if faults.len() >= MOST_FAULTS { " at least" } else { "" };
    let mut text = format!("{file}:{or_more} {} wrong, nothing was run", count(faults.len()));
    for (line, complaint) in faults {
        // Writing to a String cannot fail.
        let _ = write!(text, "\n{file}:{line}: {}", complaint.to_string().trim_end());
    }
    text
}

fn count(n: usize) -> String {
    if n == 1 { "1 line is".into() } else { format!("{n} lines are") }
}
