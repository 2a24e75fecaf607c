//! Taking away what was made, in reverse order, however the device ended.
//!
//! Each thing is written into the journal `undo.jsonl` of the device's folder *before* it is made. So a lab that is killed
//! leaves a list behind, and the next one works it off ([`sweep`](crate::sweep)).

use std::fs::{self, File, OpenOptions};
use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::thread;
use std::time::{Duration, Instant};

use nix::errno::Errno;
use nix::sys::signal::{Signal, kill};
use nix::unistd::Pid;
use serde::{Deserialize, Serialize};

use crate::error::SetupError;
use crate::line::Line;
use crate::proc_stat::{runs, started};

/// The journal's name in the folder.
pub(crate) const JOURNAL: &str = "undo.jsonl";
/// How long a process that is asked to end is waited for.
const PATIENCE: Duration = Duration::from_secs(3);

/// A thing that was made, and so what is to be taken away.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub(crate) enum Undo {
    /// The lab that made what follows: the journal's first line.
    Owner {
        /// Its process.
        pid: u32,
        /// When that was started, in ticks since boot.
        started: u64,
    },
    /// A network namespace, with every process and interface in it.
    Namespace(String),
    /// A process, recognised by id and start.
    Process {
        /// Its id.
        pid: u32,
        /// When it was started, in ticks since boot.
        started: u64,
    },
    /// A file or a folder with everything in it.
    Path(PathBuf),
    /// Files in a folder whose names begin so: what DPDK keeps in huge pages.
    Files {
        /// The folder.
        folder: PathBuf,
        /// How their names begin.
        begin: String,
    },
    /// A setting of the whole machine, to be written back.
    Setting {
        /// The file below `/proc/sys`.
        path: PathBuf,
        /// What was in it.
        was: String,
    },
}

impl Undo {
    /// Takes it away. That it is gone already is no error.
    pub fn run(&self) -> Result<(), String> {
        match self {
            Undo::Owner { .. } => Ok(()),
            Undo::Namespace(name) => delete_namespace(name),
            Undo::Process { pid, started: then } => {
                if started(*pid) == Some(*then) {
                    end(*pid)
                } else {
                    Ok(())
                }
            }
            Undo::Path(path) => gone(remove(path)).map_err(|why| format!("{}: {why}", path.display())),
            Undo::Files { folder, begin } => {
                let Ok(all) = fs::read_dir(folder) else { return Ok(()) };
                for file in all.flatten().filter(|f| f.file_name().to_string_lossy().starts_with(begin)) {
                    gone(remove(&file.path())).map_err(|why| format!("{}: {why}", file.path().display()))?;
                }
                Ok(())
            }
            Undo::Setting { path, was } => {
                // What this process could not change is as it was.
                let same = fs::read_to_string(path).is_ok_and(|now| now.trim() == was);
                if same {
                    Ok(())
                } else {
                    fs::write(path, was).map_err(|why| format!("{}: {why}", path.display()))
                }
            }
        }
    }
}

/// What was made so far, for one device.
#[derive(Debug)]
pub(crate) struct Cleaner {
    journal: File,
    undo: Vec<Undo>,
}

impl Cleaner {
    /// Makes `folder`, which is the first thing to be taken away, that is the last.
    pub fn begin(folder: &Path) -> Result<Cleaner, SetupError> {
        fs::create_dir_all(folder).map_err(SetupError::file(folder))?;
        let path = folder.join(JOURNAL);
        let journal =
            OpenOptions::new().create(true).append(true).open(&path).map_err(SetupError::file(path))?;
        let mut cleaner = Cleaner { journal, undo: Vec::new() };
        let pid = std::process::id();
        cleaner.push(Undo::Owner { pid, started: started(pid).unwrap_or(0) })?;
        cleaner.push(Undo::Path(folder.to_owned()))?;
        Ok(cleaner)
    }

    /// To be called before the thing is made; of a process right after it was started.
    pub fn push(&mut self, undo: Undo) -> Result<(), SetupError> {
        let written = serde_json::to_string(&undo)
            .map_err(io::Error::from)
            .and_then(|line| self.journal.write_all(format!("{line}\n").as_bytes()));
        // Even if the disk is full it is taken away by this process.
        self.undo.push(undo);
        written.map_err(SetupError::file(JOURNAL))
    }

    /// Takes all away, the last first; what could not be.
    pub fn clean(&mut self) -> Vec<String> {
        undo_all(std::mem::take(&mut self.undo))
    }
}

impl Drop for Cleaner {
    fn drop(&mut self) {
        self.clean();
    }
}

/// Takes all away, the last first; what could not be.
pub(crate) fn undo_all(undo: Vec<Undo>) -> Vec<String> {
    undo.into_iter().rev().filter_map(|one| one.run().err()).collect()
}

/// What a journal says, as far as it can be read: its last line may be half written.
pub(crate) fn read_journal(folder: &Path) -> Vec<Undo> {
    let text = fs::read_to_string(folder.join(JOURNAL)).unwrap_or_default();
    text.lines().map_while(|line| serde_json::from_str(line).ok()).collect()
}

/// Kills what runs in a namespace and deletes it.
pub(crate) fn delete_namespace(name: &str) -> Result<(), String> {
    if !Path::new("/run/netns").join(name).exists() {
        return Ok(());
    }
    let pids = Line::words("ip netns pids").arg(name).run().unwrap_or_default();
    for pid in pids.split_whitespace().filter_map(|word| word.parse().ok()) {
        end(pid)?;
    }
    Line::words("ip netns delete").arg(name).run().map(drop).map_err(|why| why.to_string())
}

/// Asks a process to end, and kills it if it does not.
fn end(pid: u32) -> Result<(), String> {
    for signal in [Signal::SIGTERM, Signal::SIGKILL] {
        match kill(Pid::from_raw(pid.cast_signed()), signal) {
            Err(Errno::ESRCH) => return Ok(()),
            Err(why) => return Err(format!("process {pid} cannot be ended: {why}")),
            Ok(()) => {}
        }
        let until = Instant::now() + PATIENCE;
        while Instant::now() < until {
            if !runs(pid) {
                return Ok(());
            }
            thread::sleep(Duration::from_millis(5));
        }
    }
    Err(format!("process {pid} runs still"))
}

fn remove(path: &Path) -> io::Result<()> {
    if fs::symlink_metadata(path)?.is_dir() { fs::remove_dir_all(path) } else { fs::remove_file(path) }
}

fn gone(result: io::Result<()>) -> io::Result<()> {
    match result {
        Err(why) if why.kind() == io::ErrorKind::NotFound => Ok(()),
        other => other,
    }
}

#[cfg(test)]
mod tests {
    use std::process::{Command, Stdio};

    use super::*;

    #[test]
    fn everything_is_taken_away_in_reverse_order_and_then_the_folder() {
        let root = tempfile::tempdir().unwrap();
        let setting = root.path().join("setting");
        let folder = root.path().join("device");
        let mut cleaner = Cleaner::begin(&folder).unwrap();
        fs::write(&setting, "new").unwrap();
        // The later of two is undone first, so that the first value is what stays.
        for was in ["first", "second"] {
            cleaner.push(Undo::Setting { path: setting.clone(), was: was.to_owned() }).unwrap();
        }
        let other = root.path().join("huge");
        fs::create_dir(&other).unwrap();
        for name in ["sll-1map_0", "sll-1map_1", "sll-2map_0"] {
            fs::write(other.join(name), "").unwrap();
        }
        cleaner.push(Undo::Files { folder: other.clone(), begin: "sll-1map_".to_owned() }).unwrap();
        assert_eq!(cleaner.clean(), [] as [String; 0]);
        assert_eq!(fs::read_to_string(&setting).unwrap(), "first");
        assert!(!folder.exists());
        let left: Vec<_> = fs::read_dir(&other).unwrap().flatten().map(|f| f.file_name()).collect();
        assert_eq!(left, ["sll-2map_0"]);
    }

    #[test]
    fn a_dropped_cleaner_cleans() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("device");
        drop(Cleaner::begin(&folder).unwrap());
        assert!(!folder.exists());
    }

    #[test]
    fn what_cannot_be_taken_away_is_told_and_the_rest_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join("device");
        let mut cleaner = Cleaner::begin(&folder).unwrap();
        cleaner.push(Undo::Setting { path: "/proc/sys/no/such".into(), was: "1".to_owned() }).unwrap();
        let left = cleaner.clean();
        assert!(left.len() == 1 && left[0].starts_with("/proc/sys/no/such: "), "{left:?}");
        assert!(!folder.exists());
    }

    #[test]
    fn a_journal_with_half_a_line_is_read_up_to_it() {
        let root = tempfile::tempdir().unwrap();
        let mut cleaner = Cleaner::begin(root.path()).unwrap();
        cleaner.push(Undo::Namespace("sll-1-0d".to_owned())).unwrap();
        cleaner.journal.write_all(b"{\"namesp").unwrap();
        let read = read_journal(root.path());
        assert_eq!(read, cleaner.undo);
        assert!(matches!(read[0], Undo::Owner { pid, .. } if pid == std::process::id()));
    }

    #[test]
    fn a_process_is_ended_and_one_that_has_its_id_by_chance_is_not() {
        let mut child = Command::new("sleep").arg("600").stdin(Stdio::null()).spawn().unwrap();
        let pid = child.id();
        let then = started(pid).unwrap();
        Undo::Process { pid, started: then + 1 }.run().unwrap();
        assert!(runs(pid), "another process was ended");
        Undo::Process { pid, started: then }.run().unwrap();
        assert!(!runs(pid));
        child.wait().unwrap();
    }
}
