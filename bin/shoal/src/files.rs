//! Files that are there while the router runs: the runtime directory and the pid file.

use std::fs;
use std::io;
use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};

use shoal_config::Group;

/// Writes the files by which clients know the API's messages.
///
/// # Errors
/// A file cannot be written, or two messages have one name.
pub fn api_json(directory: &Path) -> io::Result<()> {
    let files = shoal_api::reference::files(crate::modules::messages()).map_err(io::Error::other)?;
    for (path, text) in files {
        let path = directory.join(path);
        path.parent().map_or(Ok(()), fs::create_dir_all)?;
        fs::write(path, text)?;
    }
    Ok(())
}

/// A group's number.
///
/// # Errors
/// There is no such group, in words.
pub fn group(group: &Group) -> Result<u32, String> {
    match group {
        Group::Id(id) => Ok(*id),
        Group::Name(name) => match nix::unistd::Group::from_name(name) {
            Ok(Some(found)) => Ok(found.gid.as_raw()),
            Ok(None) => Err(format!("unix gid names group '{name}', which this machine does not have")),
            Err(error) => Err(format!("group '{name}' cannot be looked up: {error}")),
        },
    }
}

/// The directory of sockets. Removed at the end if we made it and nothing is left in it.
#[derive(Debug)]
pub struct RuntimeDir(Option<PathBuf>);

impl RuntimeDir {
    /// Makes it if it is not there.
    pub fn make(path: &Path, gid: Option<u32>) -> io::Result<Self> {
        if path.is_dir() {
            return Ok(RuntimeDir(None));
        }
        // A name that leads to a directory which is not there yet: /run/vpp, after `make install VPP_COMPAT=1`.
        let target = fs::read_link(path).ok().map(|to| path.parent().unwrap_or(Path::new("/")).join(to));
        let path = target.as_deref().unwrap_or(path);
        fs::create_dir_all(path)?;
        if gid.is_some() {
            chown(path, None, gid)?;
        }
        Ok(RuntimeDir(Some(path.to_owned())))
    }

    /// Where it is, if it is ours.
    pub fn path(&self) -> Option<&Path> {
        self.0.as_deref()
    }
}

impl Drop for RuntimeDir {
    fn drop(&mut self) {
        if let Some(path) = &self.0 {
            // Not empty: somebody keeps files of their own there.
            let _ = fs::remove_dir(path);
        }
    }
}

/// The pid file; removed at the end.
#[derive(Debug)]
pub struct PidFile(PathBuf);

impl PidFile {
    /// Writes it.
    pub fn write(path: &Path) -> io::Result<Self> {
        fs::write(path, format!("{}\n", std::process::id()))?;
        Ok(PidFile(path.to_owned()))
    }
}

impl Drop for PidFile {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_runtime_directory_goes_only_if_it_is_ours_and_empty() {
        let folder = tempfile::tempdir().unwrap();
        let path = folder.path().join("a/b");
        drop(RuntimeDir::make(&path, None).unwrap());
        assert!(!path.exists());
        let dir = RuntimeDir::make(&path, None).unwrap();
        drop(RuntimeDir::make(&path, None).unwrap());
        assert!(path.exists(), "it was there before");
        drop(PidFile::write(&path.join("pid")).unwrap());
        fs::write(path.join("other"), "").unwrap();
        drop(dir);
        assert!(path.exists(), "somebody's file is in it");
        assert!(!path.join("pid").exists());
    }

    #[test]
    fn a_group_that_is_not_there_is_named() {
        assert_eq!(group(&Group::Id(7)), Ok(7));
        assert_eq!(group(&Group::Name("root".into())), Ok(0));
        assert!(group(&Group::Name("no-such-group".into())).unwrap_err().contains("'no-such-group'"));
    }
}
