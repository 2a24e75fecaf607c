//! The Python files that a child runs, carried in the binary and written to a folder of their own for it.

use std::io;
use std::path::{Path, PathBuf};

use tempfile::TempDir;

macro_rules! embedded {
    ($($path:literal),* $(,)?) => { [$(($path, include_str!(concat!("../python/", $path)))),*] };
}

/// Each file's path inside the folder and its text.
pub(crate) const FILES: &[(&str, &str)] = &embedded![
    "child.py",
    "shoal_stl/__init__.py",
    "shoal_stl/addresses.py",
    "shoal_stl/api.py",
    "shoal_stl/checksum.py",
    "shoal_stl/dissect.py",
    "shoal_stl/errors.py",
    "shoal_stl/faults.py",
    "shoal_stl/field_program.py",
    "shoal_stl/instructions.py",
    "shoal_stl/layers.py",
    "shoal_stl/offsets.py",
    "shoal_stl/packet.py",
    "shoal_stl/packet_builder.py",
    "shoal_stl/profile.py",
    "shoal_stl/sandbox.py",
    "shoal_stl/scapy_layers.py",
    "shoal_stl/streams.py",
    "shoal_stl/tunables.py",
];

/// A folder with the files, gone when it is dropped.
pub(crate) struct Shim(TempDir);

impl Shim {
    /// Writes the files.
    pub(crate) fn write() -> io::Result<Shim> {
        let folder = tempfile::Builder::new().prefix("shoal-lab-stl-").tempdir()?;
        std::fs::create_dir(folder.path().join("shoal_stl"))?;
        for (path, text) in FILES {
            std::fs::write(folder.path().join(path), text)?;
        }
        Ok(Shim(folder))
    }

    /// Where the folder is.
    pub(crate) fn folder(&self) -> &Path {
        self.0.path()
    }

    /// The program to run.
    pub(crate) fn program(&self) -> PathBuf {
        self.folder().join("child.py")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn all_files_of_the_python_folder_are_carried() {
        let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("python");
        let mut there = vec!["child.py".to_owned()];
        for entry in std::fs::read_dir(root.join("shoal_stl")).unwrap() {
            let name = entry.unwrap().file_name().into_string().unwrap();
            if Path::new(&name).extension().is_some_and(|e| e == "py") {
                there.push(format!("shoal_stl/{name}"));
            }
        }
        there.sort();
        let carried: Vec<_> = FILES.iter().map(|(path, _)| (*path).to_owned()).collect();
        assert_eq!(carried, there);
    }
}
