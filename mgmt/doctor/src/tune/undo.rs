//! Turning knobs back to what was recorded.

use serde::Serialize;

use super::record::{Entry, Lock, Record};
use super::tunable_setting::{self, TunableSetting};
use super::{Name, TuneError, keep};
use crate::root::Root;

/// What became of one knob.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Undone {
    pub subset: Name,
    pub what: String,
    /// Whether it is as it was; otherwise `what` says why not.
    pub restored: bool,
    /// It stays on record, to be tried again.
    pub failed: bool,
}

/// Undoes subsets, or all.
pub(crate) fn undo(root: &Root, names: &[Name], dry_run: bool) -> Result<Vec<Undone>, TuneError> {
    if Record::load(root)? == Record::default() {
        return names.first().map_or(Ok(Vec::new()), |name| Err(TuneError::NotApplied(name.word())));
    }
    let lock = if dry_run { None } else { Some(Lock::take(root)?) };
    let record = Record::load(root)?;
    let has = |name: Name| record.of(name).next().is_some() || record.kept.iter().any(|k| k.subset == name);
    if let Some(name) = names.iter().find(|name| !has(**name)) {
        return Err(TuneError::NotApplied(name.word()));
    }
    let asked = |name: Name| names.is_empty() || names.contains(&name);
    let mut report = Vec::new();
    let mut left = record.clone();
    for kept in record.kept.iter().filter(|k| asked(k.subset)) {
        let (path, _) = keep::file(kept.subset, None)?;
        let say = |what: &str, restored, failed| Undone {
            subset: kept.subset,
            what: format!("/{} {what}", path.display()),
            restored,
            failed,
        };
        let said = match lock.as_ref().map(|_| keep::remove(root, kept)) {
            None => say("would be removed", false, false),
            Some(Ok(true)) => say("removed", true, false),
            Some(Ok(false)) => say("was changed since: left alone", false, false),
            Some(Err(error)) => say(&format!("stays: {error}"), false, true),
        };
        if !said.failed {
            left.kept.retain(|k| k != kept);
        }
        report.push(said);
    }
    for entry in record.entries.iter().rev().filter(|e| asked(e.subset)) {
        let said = back(root, entry, dry_run);
        if !said.failed {
            left.entries.retain(|e| e != entry);
        } else if let (Ok(now), Some(stays)) =
            (entry.knob.read(root), left.entries.iter_mut().find(|e| *e == entry))
        {
            // Half way back is ours too.
            stays.reached = Some(now);
        }
        report.push(said);
    }
    if lock.is_some() {
        left.save(root)?;
    }
    Ok(report)
}

fn back(root: &Root, entry: &Entry, dry_run: bool) -> Undone {
    let Entry { knob, before, .. } = entry;
    let say = |what: String, restored, failed| Undone { subset: entry.subset, what, restored, failed };
    if tunable_setting::is_gone(root, knob) {
        return say(format!("{knob} is not there any more"), true, false);
    }
    let now = match knob.read(root) {
        Ok(now) => now,
        Err(why) => return say(why, false, true),
    };
    if now == *before {
        return say(format!("{knob} is {before} already"), true, false);
    }
    if !entry.is_ours(&now) {
        let ours = entry.reached.as_ref().unwrap_or(&entry.wanted);
        let text = format!(
            "{knob} is {now}, not our {ours}: changed by somebody since, left alone (it was {before})"
        );
        return say(text, false, false);
    }
    if dry_run {
        return say(format!("{knob} {now} -> {before}"), false, false);
    }
    if let Err(error) = knob.write(root, before) {
        return say(error.to_string(), false, true);
    }
    match knob.read(root) {
        Ok(after) if after == *before => say(format!("{knob} {now} -> {before}"), true, false),
        Ok(after) if *knob == TunableSetting::Hugepages => {
            let text = format!(
                "{knob} {now} -> {after}, not {before}: the others are in use; undo again when they are free"
            );
            say(text, false, true)
        }
        Ok(after) => say(format!("{knob} is {after} after {before} was written"), false, true),
        Err(_) if tunable_setting::is_gone(root, knob) => {
            say(format!("{knob} is not there any more"), true, false)
        }
        Err(why) => say(why, false, true),
    }
}
