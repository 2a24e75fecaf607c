//! `--persist`: files that bring a subset back at the next boot. They are wholly ours, and removed by undo.

use std::fs::{self, OpenOptions};
use std::io::{ErrorKind, Write};
use std::os::unix::fs::OpenOptionsExt;
use std::path::PathBuf;

use serde::{Deserialize, Serialize};

use super::{Name, TuneError};
use crate::root::Root;

const HEAD: &str = "# Written by `shoal tune apply ... --persist`; `shoal tune undo` removes it.\n";

/// A file that was written.
#[derive(Debug, Clone, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Kept {
    pub subset: Name,
    pub text: String,
}

/// Where the boot looks for it, and what it says.
pub(super) fn file(subset: Name, value: Option<&str>) -> Result<(PathBuf, String), TuneError> {
    let modules = |name: &str| {
        (PathBuf::from(format!("etc/modules-load.d/shoal-{}.conf", subset.word())), format!("{HEAD}{name}\n"))
    };
    match subset {
        Name::Hugepages => {
            let pages = value.unwrap_or("0");
            Ok(("etc/sysctl.d/90-shoal-hugepages.conf".into(), format!("{HEAD}vm.nr_hugepages = {pages}\n")))
        }
        Name::Vfio => Ok(modules("vfio-pci")),
        Name::VhostNet => Ok(modules("vhost-net")),
        Name::Thp | Name::Governor | Name::BusyPoll | Name::VfioNoiommu => {
            Err(TuneError::NotKept(subset.word()))
        }
    }
}

/// Whether a file of ours may be written there; another's stays.
pub(super) fn check(root: &Root, subset: Name) -> Result<(), TuneError> {
    let (path, _) = file(subset, None)?;
    let path = root.at(path);
    match fs::symlink_metadata(&path) {
        Err(error) if error.kind() == ErrorKind::NotFound => Ok(()),
        Err(error) => Err(TuneError::file(path, &error)),
        Ok(found) if found.is_file() && fs::read(&path).is_ok_and(|t| t.starts_with(HEAD.as_bytes())) => {
            Ok(())
        }
        Ok(_) => Err(TuneError::Foreign { path: path.display().to_string() }),
    }
}

/// Writes it, so that there is the old one or the new one.
pub(super) fn write(root: &Root, kept: &Kept) -> Result<(), TuneError> {
    let (path, _) = file(kept.subset, None)?;
    let path = root.at(path);
    let write = || -> std::io::Result<()> {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        let new = path.with_extension("conf.new");
        let _ = fs::remove_file(&new);
        let mut file = OpenOptions::new().write(true).create_new(true).mode(0o644).open(&new)?;
        file.write_all(kept.text.as_bytes())?;
        file.sync_all()?;
        fs::rename(&new, &path)
    };
    write().map_err(|e| TuneError::file(path.clone(), &e))
}

/// Removes it, if it is still what we wrote. False if somebody has changed it.
pub(super) fn remove(root: &Root, kept: &Kept) -> Result<bool, TuneError> {
    let (path, _) = file(kept.subset, None)?;
    let path = root.at(path);
    let error = |e: std::io::Error| match e.kind() {
        ErrorKind::NotFound => Ok(true),
        _ => Err(TuneError::file(path.clone(), &e)),
    };
    match fs::read(&path) {
        Ok(text) if text == kept.text.as_bytes() => fs::remove_file(&path).map(|()| true).or_else(error),
        Ok(_) => Ok(false),
        Err(e) => error(e),
    }
}
