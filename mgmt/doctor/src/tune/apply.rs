//! Turning knobs: recorded first, all or nothing.

use serde::Serialize;

use super::keep::Kept;
use super::record::{Entry, Lock, Record};
use super::tunable_setting::{self, TunableSetting};
use super::{Context, Name, Plan, TuneError, keep, plan};

/// What became of a subset.
#[derive(Debug, Clone, PartialEq, Eq, Serialize)]
pub(crate) struct Applied {
    pub subset: Name,
    /// What was done, or would be.
    pub what: String,
    /// What could not be reached in full, in words.
    pub short: Option<String>,
    pub warning: Option<&'static str>,
    /// The file that brings it back at the next boot.
    pub kept: Option<String>,
    pub changed: bool,
}

/// How it is asked for.
#[derive(Debug, Clone, Copy, Default)]
pub(crate) struct ApplyOptions {
    pub dry_run: bool,
    pub persist: bool,
}

/// Applies subsets. Either all of them are in force afterwards, as far as the machine can, or nothing has changed.
pub(crate) fn apply(cx: Context<'_>, names: &[Name], wish: ApplyOptions) -> Result<Vec<Applied>, TuneError> {
    let mut plans: Vec<(Name, Plan)> = Vec::new();
    for &name in names {
        if plans.iter().any(|(planned, _)| *planned == name) {
            continue;
        }
        let impossible = |why| TuneError::Impossible { subset: name.word(), why };
        plans.push((name, plan(cx, name).map_err(impossible)?));
        if wish.persist {
            keep::check(cx.root, name)?;
        }
    }
    let lock = if wish.dry_run { None } else { Some(Lock::take(cx.root)?) };
    let old = Record::load(cx.root)?;
    let mut report: Vec<Applied> = plans.iter().map(|(name, plan)| planned(*name, plan, wish)).collect();
    let steps: Vec<(Name, TunableSetting, String)> = plans
        .into_iter()
        .flat_map(|(name, plan)| plan.steps.into_iter().map(move |(knob, wanted)| (name, knob, wanted)))
        .collect();
    if lock.is_none() || (steps.is_empty() && !wish.persist) {
        return Ok(report);
    }
    let (mut record, entries) = pending(cx, &old, steps)?;
    // On disk before the first knob is turned: whatever happens now can be undone.
    record.save(cx.root)?;
    let outcome = turn(cx, &mut record, &entries, &mut report).and_then(|()| {
        if wish.persist {
            keep_all(cx, &mut record, &report)?;
        }
        record.save(cx.root)
    });
    let Err(error) = outcome else { return Ok(report) };
    Err(TuneError::RolledBack { error: Box::new(error), untaken: take_back(cx, &old, &record, &entries) })
}

fn planned(name: Name, plan: &Plan, wish: ApplyOptions) -> Applied {
    Applied {
        subset: name,
        what: plan.what.clone(),
        short: None,
        warning: name.warning().filter(|_| !plan.steps.is_empty()),
        kept: wish
            .persist
            .then(|| keep::file(name, None).map(|f| format!("/{}", f.0.display())).ok())
            .flatten(),
        changed: !plan.steps.is_empty(),
    }
}

/// The record with what is about to be turned, and its entries alone.
fn pending(
    cx: Context<'_>,
    old: &Record,
    steps: Vec<(Name, TunableSetting, String)>,
) -> Result<(Record, Vec<Entry>), TuneError> {
    let mut record = old.clone();
    let mut entries = Vec::new();
    for (subset, knob, wanted) in steps {
        let before = match knob.read(cx.root) {
            Ok(before) => before,
            // The parameter appears with its module.
            Err(_) if knob == TunableSetting::Noiommu => "N".to_owned(),
            Err(why) => return Err(TuneError::Impossible { subset: subset.word(), why }),
        };
        let earlier = record.entries.iter().position(|e| e.knob == knob);
        let earlier = earlier.map(|at| record.entries.remove(at));
        // What was there before all of ours; unless somebody has set something since, then that.
        let before = earlier.filter(|e| e.is_ours(&before)).map_or(before, |e| e.before);
        let entry = Entry { subset, knob, before, wanted, reached: None };
        record.entries.push(entry.clone());
        entries.push(entry);
    }
    Ok((record, entries))
}

fn turn(
    cx: Context<'_>,
    record: &mut Record,
    entries: &[Entry],
    report: &mut [Applied],
) -> Result<(), TuneError> {
    for entry in entries {
        entry.knob.write(cx.root, &entry.wanted)?;
        let reached = entry.knob.read(cx.root);
        let reached = reached.map_err(|why| TuneError::Impossible { subset: entry.subset.word(), why })?;
        if let Some(short) = shortfall(entry, &reached)? {
            for applied in report.iter_mut().filter(|a| a.subset == entry.subset) {
                applied.short = Some(short.clone());
                applied.changed = reached != entry.before;
            }
        }
        for ours in record.entries.iter_mut().filter(|e| e.knob == entry.knob) {
            ours.reached = Some(reached.clone());
        }
    }
    // What did not move at all is nothing to undo.
    record.entries.retain(|e| e.reached.as_ref() != Some(&e.before));
    Ok(())
}

/// What is missing, in words. Only pages may come in part; anything else that is not as wanted is an error.
fn shortfall(entry: &Entry, reached: &str) -> Result<Option<String>, TuneError> {
    if reached == entry.wanted {
        return Ok(None);
    }
    let number = |text: &str| text.parse::<u64>().unwrap_or(0);
    if entry.knob != TunableSetting::Hugepages || number(reached) > number(&entry.wanted) {
        let why = format!("{} is {reached} after {} was written", entry.knob, entry.wanted);
        return Err(TuneError::Impossible { subset: entry.subset.word(), why });
    }
    Ok(Some(format!(
        "only {reached} of {} pages in all: memory is in too small pieces for more; soon after a boot there is more",
        entry.wanted
    )))
}

/// Writes the files for the boot; they too are on record before they are there.
fn keep_all(cx: Context<'_>, record: &mut Record, report: &[Applied]) -> Result<(), TuneError> {
    for applied in report {
        let value = match applied.subset {
            Name::Hugepages => TunableSetting::Hugepages.read(cx.root).ok(),
            _ => None,
        };
        let (_, text) = keep::file(applied.subset, value.as_deref())?;
        record.kept.retain(|k| k.subset != applied.subset);
        record.kept.push(Kept { subset: applied.subset, text });
    }
    record.save(cx.root)?;
    for applied in report {
        let kept = record.kept.iter().find(|k| k.subset == applied.subset);
        kept.map_or(Ok(()), |kept| keep::write(cx.root, kept))?;
    }
    Ok(())
}

/// Puts everything back, the last first. What could not be is named, and stays on record.
fn take_back(cx: Context<'_>, old: &Record, record: &Record, entries: &[Entry]) -> Vec<String> {
    let mut untaken = Vec::new();
    let mut after = old.clone();
    for kept in record.kept.iter().filter(|k| !old.kept.contains(k)) {
        let earlier = old.kept.iter().find(|k| k.subset == kept.subset);
        let taken = match earlier {
            Some(earlier) => keep::write(cx.root, earlier).is_ok(),
            None => keep::remove(cx.root, kept).unwrap_or(false),
        };
        if !taken {
            after.kept.retain(|k| k.subset != kept.subset);
            after.kept.push(kept.clone());
            untaken.push(format!("the file of {}", kept.subset.word()));
        }
    }
    for entry in entries.iter().rev() {
        // What an earlier run had reached, where there was one.
        let earlier = old.entries.iter().find(|e| e.knob == entry.knob);
        let back = earlier.and_then(|e| e.reached.as_ref()).unwrap_or(&entry.before);
        let now = entry.knob.read(cx.root);
        if now.as_ref() == Ok(back) || tunable_setting::is_gone(cx.root, &entry.knob) {
            continue;
        }
        let taken = entry.knob.write(cx.root, back).is_ok() && entry.knob.read(cx.root).as_ref() == Ok(back);
        if !taken {
            untaken.push(entry.knob.to_string());
            after.entries.retain(|e| e.knob != entry.knob);
            after.entries.push(entry.clone());
        }
    }
    if after.save(cx.root).is_err() {
        untaken.push("the record".into());
    }
    untaken
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn pages_that_come_in_part_are_told_and_other_values_must_be_as_wanted() {
        let entry = |knob, before: &str, wanted: &str| Entry {
            subset: Name::Hugepages,
            knob,
            before: before.into(),
            wanted: wanted.into(),
            reached: None,
        };
        let pages = entry(TunableSetting::Hugepages, "5", "74");
        assert_eq!(shortfall(&pages, "74").unwrap(), None);
        assert!(shortfall(&pages, "31").unwrap().unwrap().starts_with("only 31 of 74 pages in all"));
        assert!(shortfall(&pages, "75").is_err());
        let governor = entry(TunableSetting::Governor { policy: 0 }, "powersave", "performance");
        assert!(shortfall(&governor, "powersave").is_err());
    }
}
