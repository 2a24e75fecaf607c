//! What a killed lab left behind, and taking it away: things with the lab's prefix and the id of a process that is no more.

use std::fs;
use std::path::Path;

use crate::cleaner::{Undo, delete_namespace, read_journal, undo_all};
use crate::proc_stat::{runs, started};
use crate::settings::Settings;

/// What was found and taken away, and what could not be.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    /// Folders whose journal was worked off.
    pub folders: Vec<String>,
    /// Namespaces that stood in no journal.
    pub namespaces: Vec<String>,
    /// What is still there, and why.
    pub left: Vec<String>,
}

/// Takes away what labs with this prefix left that do not run any more. Each device's start does it first.
pub fn sweep(settings: &Settings) -> Swept {
    let mut swept = Swept::default();
    for name in dead(&settings.folder, &settings.prefix, owner_is_gone) {
        let folder = settings.folder.join(&name);
        let journal = read_journal(&folder);
        // Without a journal, or with half of one, the folder goes all the same.
        let mut left = undo_all(journal);
        left.extend(Undo::Path(folder).run().err());
        swept.left.extend(left);
        swept.folders.push(name);
    }
    let namespaces = Path::new("/run/netns");
    for name in dead(namespaces, &settings.prefix, |_, pid| !runs(pid)) {
        match delete_namespace(&name) {
            Ok(()) => swept.namespaces.push(name),
            Err(why) => swept.left.push(why),
        }
    }
    swept
}

/// Names in `folder` of the form `PREFIX-PID-REST` whose process is gone.
fn dead(folder: &Path, prefix: &str, gone: impl Fn(&Path, u32) -> bool) -> Vec<String> {
    let Ok(all) = fs::read_dir(folder) else { return Vec::new() };
    let mut names: Vec<String> = all
        .flatten()
        .filter_map(|entry| entry.file_name().into_string().ok())
        .filter(|name| owner(name, prefix).is_some_and(|pid| gone(&folder.join(name), pid)))
        .collect();
    names.sort();
    names
}

/// The process id in a name that this lab could have given.
fn owner(name: &str, prefix: &str) -> Option<u32> {
    let (pid, rest) = name.strip_prefix(prefix)?.strip_prefix('-')?.split_once('-')?;
    if rest.is_empty() { None } else { pid.parse().ok() }
}

/// An id that runs may be another process's by now: the journal knows when the owner was started.
fn owner_is_gone(folder: &Path, pid: u32) -> bool {
    let Some(now) = started(pid).filter(|_| runs(pid)) else { return true };
    match read_journal(folder).first() {
        Some(Undo::Owner { pid: then, started }) => (*then, *started) != (pid, now),
        // It may be about to write its first line.
        _ => false,
    }
}

#[cfg(test)]
mod tests {
    use std::path::PathBuf;

    use super::*;
    use crate::cleaner::JOURNAL;

    /// Ids are 22 bits long at most (PID_MAX_LIMIT), so no process has this one.
    const UNUSED_PID: u32 = 4_194_400;

    fn settings(folder: PathBuf) -> Settings {
        Settings { prefix: "slldutleft".to_owned(), folder, ..Settings::default() }
    }

    #[test]
    fn only_names_of_this_lab_have_an_owner() {
        assert_eq!(owner("sll-12-0d", "sll"), Some(12));
        for name in ["sll-12", "sll-12-", "sll--0d", "sllx-12-0d", "other-12-0d", "sll-x-0d"] {
            assert_eq!(owner(name, "sll"), None, "{name}");
        }
    }

    #[test]
    fn a_dead_labs_journal_is_worked_off_and_a_living_ones_is_not() {
        let root = tempfile::tempdir().unwrap();
        let settings = settings(root.path().to_owned());
        let file = root.path().join("made");
        fs::write(&file, "").unwrap();
        let mine = root.path().join(format!("slldutleft-{}-0", std::process::id()));
        fs::create_dir(&mine).unwrap();
        let dead = root.path().join(format!("slldutleft-{UNUSED_PID}-0"));
        fs::create_dir(&dead).unwrap();
        fs::write(
            dead.join(JOURNAL),
            format!("{}\n{{\"half", serde_json::to_string(&Undo::Path(file.clone())).unwrap()),
        )
        .unwrap();
        let swept = sweep(&settings);
        assert_eq!(swept.folders, [format!("slldutleft-{UNUSED_PID}-0")]);
        assert!(swept.left.is_empty(), "{swept:?}");
        assert!(!file.exists() && !dead.exists() && mine.exists());
    }

    #[test]
    fn a_lab_whose_id_another_process_has_now_is_dead() {
        let root = tempfile::tempdir().unwrap();
        let folder = root.path().join(format!("slldutleft-{}-0", std::process::id()));
        fs::create_dir(&folder).unwrap();
        let owner =
            Undo::Owner { pid: std::process::id(), started: started(std::process::id()).unwrap() + 1 };
        fs::write(folder.join(JOURNAL), serde_json::to_string(&owner).unwrap() + "\n").unwrap();
        assert_eq!(sweep(&settings(root.path().to_owned())).folders.len(), 1);
        assert!(!folder.exists());
    }

    #[test]
    fn nothing_left_is_nothing_swept() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(sweep(&settings(root.path().to_owned())), Swept::default());
    }
}
