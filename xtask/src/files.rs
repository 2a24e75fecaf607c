//! The files of the project: what git knows or would take in.

use crate::Result;
use std::path::{Path, PathBuf};
use std::process::Command;

/// The project's folder.
pub fn root() -> PathBuf {
    // As cargo says now, which runs it: a copy of a build folder was made in another tree.
    let folder = std::env::var("CARGO_MANIFEST_DIR").unwrap_or_else(|_| env!("CARGO_MANIFEST_DIR").into());
    Path::new(&folder).parent().map(Path::to_path_buf).unwrap_or_default()
}

/// Every file, relative to the project's folder, sorted. Without git (an unpacked archive) the folders are walked.
pub fn all() -> Result<Vec<String>> {
    let git = Command::new("git")
        .args(["ls-files", "-z", "--cached", "--others", "--exclude-standard"])
        .current_dir(root())
        .output();
    let mut files = match git {
        Ok(output) if output.status.success() => String::from_utf8(output.stdout)?
            .split('\0')
            .filter(|f| !f.is_empty() && root().join(f).is_file())
            .map(str::to_owned)
            .collect(),
        _ => {
            let mut files = Vec::new();
            walk(&root(), "", &mut files)?;
            files
        }
    };
    files.sort();
    files.dedup();
    Ok(files)
}

fn walk(folder: &Path, prefix: &str, files: &mut Vec<String>) -> Result<()> {
    for entry in std::fs::read_dir(folder)? {
        let entry = entry?;
        let name = entry.file_name().to_string_lossy().into_owned();
        if name.starts_with("target") || name == ".git" {
            continue;
        }
        let kind = entry.file_type()?;
        if kind.is_dir() {
            walk(&entry.path(), &format!("{prefix}{name}/"), files)?;
        } else if kind.is_file() {
            files.push(format!("{prefix}{name}"));
        }
    }
    Ok(())
}

/// The text of a file; None if it is not text.
pub fn read(file: &str) -> Option<String> {
    String::from_utf8(std::fs::read(root().join(file)).ok()?).ok()
}

/// Whether a file is Rust source.
pub fn is_rust(file: &str) -> bool {
    Path::new(file).extension().is_some_and(|e| e == "rs")
}
