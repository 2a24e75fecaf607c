//! What every device stands on: a folder, a record of what was done, and the list of what to take away.

use std::fs;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicU32, Ordering};

use nix::unistd::geteuid;
use shoal_lab_plan::Described;

use crate::cleaner::{Cleaner, Undo};
use crate::error::SetupError;
use crate::leftover::sweep;
use crate::line::Line;
use crate::process::Process;
use crate::settings::Settings;

/// Characters of a file that are kept in the record: a table of a million routes is told by its beginning.
const MOST_TEXT: usize = 20_000;

/// The ground of one device that is started.
#[derive(Debug)]
pub(crate) struct DeviceEnvironment {
    /// What holds for all devices.
    pub settings: Settings,
    /// What was done.
    pub record: Described,
    name: String,
    folder: PathBuf,
    cleaner: Cleaner,
}

impl DeviceEnvironment {
    /// Takes away what dead labs left, and makes the folder.
    pub fn begin(settings: &Settings) -> Result<DeviceEnvironment, SetupError> {
        static SERIAL: AtomicU32 = AtomicU32::new(0);
        let swept = sweep(settings);
        let name =
            format!("{}-{}-{}", settings.prefix, std::process::id(), SERIAL.fetch_add(1, Ordering::Relaxed));
        let folder = settings.folder.join(&name);
        let cleaner = Cleaner::begin(&folder)?;
        let mut stand = DeviceEnvironment {
            settings: settings.clone(),
            record: Described::default(),
            name,
            folder,
            cleaner,
        };
        for what in swept.folders.iter().chain(&swept.namespaces) {
            stand.note(format!("left by a lab that was killed, and taken away: {what}"));
        }
        for what in swept.left {
            stand.note(format!("left by a lab that was killed, and still there: {what}"));
        }
        Ok(stand)
    }

    /// Runs a command and records it.
    pub fn run(&mut self, line: &Line) -> Result<String, SetupError> {
        self.record.commands.push(line.to_string());
        line.run()
    }

    /// Runs a command that is run many times: the record has it once.
    pub fn run_often(&mut self, line: &Line) -> Result<String, SetupError> {
        let text = line.to_string();
        if !self.record.commands.contains(&text) {
            self.record.commands.push(text);
        }
        line.run()
    }

    /// Runs a command of words with blanks between them.
    pub fn words(&mut self, text: impl AsRef<str>) -> Result<String, SetupError> {
        self.run(&Line::words(text))
    }

    /// A path in the folder.
    pub fn path(&self, name: &str) -> PathBuf {
        self.folder.join(name)
    }

    /// Writes a file into the folder and records it.
    pub fn write(&mut self, name: &str, text: &str) -> Result<PathBuf, SetupError> {
        let path = self.path(name);
        fs::write(&path, text).map_err(SetupError::file(&path))?;
        let kept = shortened(text);
        self.record.files.retain(|(other, _)| other != name);
        self.record.files.push((name.to_owned(), kept));
        Ok(path)
    }

    /// Records a fact.
    pub fn note(&mut self, fact: impl Into<String>) {
        self.record.notes.push(fact.into());
    }

    /// Makes a network namespace; `role` is a letter that tells it from the device's others.
    pub fn namespace(&mut self, role: char) -> Result<Namespace, SetupError> {
        let name = format!("{}{role}", self.name);
        self.cleaner.push(Undo::Namespace(name.clone()))?;
        self.words(format!("ip netns add {name}"))?;
        Ok(Namespace { name })
    }

    /// Starts a process of the device; its log is `NAME.log` in the folder.
    pub fn start(&mut self, name: &str, line: &Line) -> Result<Process, SetupError> {
        self.record.commands.push(line.to_string());
        let process = Process::start(name, line, &self.path(&format!("{name}.log")))?;
        self.cleaner.push(process.undo())?;
        Ok(process)
    }

    /// To be taken away too.
    pub fn undo(&mut self, undo: Undo) -> Result<(), SetupError> {
        self.cleaner.push(undo)
    }

    /// The first part of the names of what is made.
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Takes all away; the record stays, with what could not be taken.
    pub fn end(mut self) -> Described {
        for left in self.cleaner.clean() {
            self.note(format!("could not be taken away: {left}"));
        }
        std::mem::take(&mut self.record)
    }
}

fn shortened(text: &str) -> String {
    if text.len() <= MOST_TEXT {
        return text.to_owned();
    }
    let end = text.char_indices().map(|(at, _)| at).take_while(|at| *at <= MOST_TEXT).last().unwrap_or(0);
    let (kept, rest) = text.split_at(end);
    format!("{kept}\n... and {} lines more\n", rest.lines().count())
}

/// A network namespace, by the name that `ip netns` knows.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Namespace {
    /// As in `ip netns list`.
    pub name: String,
}

impl Namespace {
    /// The file to `setns` to.
    pub fn path(&self) -> PathBuf {
        Path::new("/run/netns").join(&self.name)
    }

    /// `ip` in it.
    pub fn ip(&self, rest: impl AsRef<str>) -> Line {
        Line::words(format!("ip -n {} {}", self.name, rest.as_ref()))
    }

    /// Any command in it.
    pub fn exec(&self, rest: impl AsRef<str>) -> Line {
        Line::words(format!("ip netns exec {} {}", self.name, rest.as_ref()))
    }

    /// A command of the shell in it.
    pub fn shell(&self, script: impl Into<String>) -> Line {
        self.exec("sh -c").arg(script)
    }
}

/// A reason if namespaces cannot be made here.
pub(crate) fn need_namespaces() -> Result<(), String> {
    crate::program::need(&[("ip", "iproute2"), ("sysctl", "procps"), ("ethtool", "ethtool")])?;
    if geteuid().is_root() {
        Ok(())
    } else {
        Err("it needs network namespaces, which only root can make: run it with sudo, or in `unshare -Urmn`"
            .to_owned())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn settings(folder: &Path) -> Settings {
        Settings { prefix: "slldutstand".to_owned(), folder: folder.to_owned(), ..Settings::default() }
    }

    #[test]
    fn the_record_has_commands_files_and_notes_and_outlives_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let mut stand = DeviceEnvironment::begin(&settings(root.path())).unwrap();
        let path = stand.write("a.conf", "one\n").unwrap();
        stand.write("a.conf", "two\n").unwrap();
        stand.words("true --quiet").unwrap();
        for _ in 0..3 {
            stand.run_often(&Line::words("true --often")).unwrap();
        }
        stand.note("so it is");
        assert_eq!(fs::read_to_string(&path).unwrap(), "two\n");
        let record = stand.end();
        assert!(!path.exists());
        assert_eq!(record.commands, ["true --quiet", "true --often"]);
        assert_eq!(record.files, [("a.conf".to_owned(), "two\n".to_owned())]);
        assert_eq!(record.notes, ["so it is"]);
    }

    #[test]
    fn two_devices_of_a_process_have_different_names() {
        let root = tempfile::tempdir().unwrap();
        let (a, b) = (
            DeviceEnvironment::begin(&settings(root.path())).unwrap(),
            DeviceEnvironment::begin(&settings(root.path())).unwrap(),
        );
        assert_ne!(a.name(), b.name());
        assert!(a.name().starts_with(&format!("slldutstand-{}-", std::process::id())));
    }

    #[test]
    fn a_long_file_is_recorded_by_its_beginning() {
        let text = "route\n".repeat(10_000);
        let kept = shortened(&text);
        assert!(
            kept.len() < MOST_TEXT + 100 && kept.ends_with("... and 6667 lines more\n"),
            "{}",
            kept.len()
        );
    }
}
