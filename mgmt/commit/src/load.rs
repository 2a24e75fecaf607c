//! A file of lines for a candidate.

use std::fs::{self, File};
use std::io::{self, Read};

use shoal_graph::process;
use shoal_module::cli::Pace;

use crate::candidate::Edit;
use crate::commits::{CommitError, Commits, Owner};
use crate::edit::{LineMeaning, MOST_FAULTS};

/// A file beyond this is no file of lines.
const MOST_BYTES: u64 = 64 << 20;

/// The text of a file, read beside the control thread.
pub(crate) async fn read(file: &str) -> Result<String, String> {
    let path = file.to_owned();
    let work = move || -> io::Result<String> {
        // Before it is opened: a pipe would be waited for.
        if !fs::metadata(&path)?.is_file() {
            return Err(io::Error::other("not a file"));
        }
        let file = File::open(&path)?;
        let mut text = String::new();
        file.take(MOST_BYTES + 1).read_to_string(&mut text)?;
        if text.len() as u64 > MOST_BYTES {
            return Err(io::Error::other("larger than 64 MiB"));
        }
        Ok(text)
    };
    process::aside("configuration", work).await.and_then(|text| text).map_err(|e| e.to_string())
}

/// Makes a text the whole candidate; how many changes that is.
pub(crate) async fn replace(commits: &Commits, owner: &Owner, text: &str) -> Result<usize, CommitError> {
    let (engine, pace) = (commits.engine()?, Pace::default());
    let running = engine.running().await?;
    let text = engine.with_others(&running, text, &pace).await;
    let edits = engine.edits_between(&running, &text, &pace).await.map_err(CommitError::Check)?;
    let count = edits.len();
    commits.empty(owner)?;
    commits.push(owner, edits)?;
    Ok(count)
}

/// Changes a candidate by each line of a text; how many changes that is.
pub(crate) async fn merge(
    commits: &Commits,
    owner: &Owner,
    file: &str,
    text: &str,
) -> Result<usize, CommitError> {
    let (engine, pace) = (commits.engine()?, Pace::default());
    let mut sheet = commits.sheet(&engine, owner, &pace).await?;
    let (mut edits, mut faults): (Vec<Edit>, Vec<String>) = (Vec::new(), Vec::new());
    for (number, line) in text.lines().enumerate() {
        let line = line.trim();
        if line.is_empty() || line.starts_with('#') || line.starts_with("comment ") {
            continue;
        }
        let meant = engine.meant(line, &mut sheet);
        let done = meant.and_then(|meant| match meant {
            LineMeaning::Nothing => Ok(()),
            LineMeaning::Edit(edit) => {
                sheet.apply(&edit)?;
                edits.push(edit);
                Ok(())
            }
        });
        match done {
            Ok(()) => {}
            Err(error) => faults.push(format!("{file}:{}: {}", number + 1, error.trim_end())),
        }
        if faults.len() >= MOST_FAULTS {
            break;
        }
        pace.give_way().await;
    }
    if !faults.is_empty() {
        return Err(CommitError::Check(faults));
    }
    let count = edits.len();
    commits.push(owner, edits)?;
    Ok(count)
}
