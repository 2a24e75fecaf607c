//! Finding programs, and what to install where one is missing.

use std::env;
use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

/// Folders of programs that a user's `PATH` often lacks.
const MORE: [&str; 2] = ["/usr/sbin", "/sbin"];

/// The program of this name: in `PATH`, then where the system's own are.
pub fn find(name: &str) -> Option<PathBuf> {
    let path = env::var_os("PATH").unwrap_or_default();
    env::split_paths(&path).chain(MORE.iter().map(PathBuf::from)).map(|f| f.join(name)).find(|p| can_run(p))
}

/// Whether it is a file that may be run.
pub fn can_run(path: &Path) -> bool {
    fs::metadata(path).is_ok_and(|meta| meta.is_file() && meta.permissions().mode() & 0o111 != 0)
}

/// A reason, with the next command, if one of `programs` (with its package in Debian) is missing.
pub(crate) fn need(programs: &[(&str, &str)]) -> Result<(), String> {
    let missing: Vec<_> = programs.iter().filter(|(name, _)| find(name).is_none()).collect();
    if missing.is_empty() {
        return Ok(());
    }
    let names: Vec<&str> = missing.iter().map(|(name, _)| *name).collect();
    let mut packages: Vec<&str> = missing.iter().map(|(_, package)| *package).collect();
    packages.dedup();
    let verb = if names.len() == 1 { "is" } else { "are" };
    Err(format!("{} {verb} not installed: apt install {}", names.join(", "), packages.join(" ")))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_program_comes_with_the_command_that_installs_it() {
        assert_eq!(need(&[("sh", "dash")]), Ok(()));
        assert_eq!(
            need(&[("sh", "dash"), ("no-such-a", "pack"), ("no-such-b", "pack")]),
            Err("no-such-a, no-such-b are not installed: apt install pack".to_owned())
        );
    }

    #[test]
    fn a_folder_and_a_text_are_no_programs() {
        let folder = tempfile::tempdir().unwrap();
        let text = folder.path().join("text");
        fs::write(&text, "").unwrap();
        assert!(!can_run(folder.path()) && !can_run(&text));
        assert!(can_run(&find("sh").unwrap()));
    }
}
