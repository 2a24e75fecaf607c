//! From what a user types to a change of a candidate: a line comes, replaces another one, or goes by the command that takes it
//! back.

use std::collections::BTreeMap;

use shoal_cli::words;
use shoal_module::cli::Pace;
use shoal_module::{Inverse, Phase};

use crate::candidate::{Edit, EditedConfig};
use crate::difference::{Side, difference};
use crate::engine::Engine;
use crate::kinds::Line;
use crate::names::Names;

/// What a typed line means for a candidate.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) enum LineMeaning {
    /// This change.
    Edit(Edit),
    /// Nothing: it is so already.
    Nothing,
}

/// Faults of a file that are named one by one.
pub(crate) const MOST_FAULTS: usize = 100;

impl Engine {
    /// What a line means for a configuration.
    ///
    /// # Errors
    /// It is no command, or none that changes a configuration in a way that can be taken back; in words.
    pub(crate) fn meant(&self, typed: &str, sheet: &mut EditedConfig<'_>) -> Result<LineMeaning, String> {
        let full = self.cli.full_line(&self.control, typed).map_err(|complaint| complaint.to_string())?;
        let goes = |line: Line| {
            LineMeaning::Edit(Edit { kind: line.kind, was: Some(line.text.to_string()), now: None })
        };
        let back = self.kinds.taken_back(&self.control, &full, &sheet.names);
        if let Some(line) = back.iter().find_map(|(kind, key)| sheet.taken_back(*kind, key)) {
            return Ok(goes(line));
        }
        if let Some(line) = self.deleted_interface(&full, sheet) {
            return Ok(goes(line));
        }
        match self.kinds.read(&self.control, &full) {
            Ok(line) => {
                let line = self.canonical(line, &sheet.names);
                Ok(self.comes(&line, sheet))
            }
            // It takes back what is not there.
            Err(_) if !back.is_empty() => Ok(LineMeaning::Nothing),
            // `ip route del PREFIX via ...' takes back `ip route add PREFIX via ...'.
            Err(error) => match self.kinds.read(&self.control, &full.replacen(" del ", " add ", 1)) {
                Ok(line) if sheet.has(&line.text) => Ok(goes(line)),
                Ok(line) => {
                    Err(format!("there is no line `{}'{}", line.text, nearest_line(&line.text, sheet)))
                }
                Err(_) => Err(error.to_string()),
            },
        }
    }

    /// The change that deletes a line, which may also be typed as the command that takes it back.
    ///
    /// # Errors
    /// There is no such line; in words.
    pub(crate) fn deletes(&self, typed: &str, sheet: &mut EditedConfig<'_>) -> Result<Edit, String> {
        let typed = typed.trim();
        let full = self.cli.full_line(&self.control, typed).unwrap_or_else(|_| typed.to_owned());
        for text in [typed, full.as_str()] {
            if sheet.has(text) {
                let line = self.kinds.read(&self.control, text).map_err(|e| e.to_string())?;
                return Ok(Edit { kind: line.kind, was: Some(text.to_owned()), now: None });
            }
        }
        // `configure delete loopback interface intfc loop0' is the command `delete loopback interface intfc loop0'.
        if let Ok(LineMeaning::Edit(edit)) = self.meant(&format!("delete {typed}"), sheet)
            && edit.now.is_none()
        {
            return Ok(edit);
        }
        Err(format!("there is no line `{typed}'{}", nearest_line(typed, sheet)))
    }

    /// The line that makes the interface which a command deletes.
    fn deleted_interface(&self, command: &str, sheet: &EditedConfig<'_>) -> Option<Line> {
        let last = words(command).pop()?;
        sheet.interfaces().find_map(|line| {
            let line = self.kinds.read(&self.control, line).ok()?;
            let made = self.kinds.interface_made(&line)?;
            let name = sheet.names.name_of(&made);
            let Inverse::Command(template) = self.kinds.kind_of(&line)?.inverse else { return None };
            let is_it = name == last && crate::template::fill(template, &line.args, &name) == command;
            is_it.then_some(line)
        })
    }

    /// A name is given to the interface by the name it was made with, as configurations do.
    fn canonical(&self, line: Line, names: &Names) -> Line {
        if self.kinds.order(&line).0 != Phase::Names {
            return line;
        }
        let words = words(&line.text);
        let [.., from, to] = words.as_slice() else { return line };
        let made = names.made_as(from);
        let text = format!("set interface name {} {}", shoal_module::word(&made), shoal_module::word(to));
        self.kinds.read(&self.control, &text).unwrap_or(line)
    }

    /// A line comes, or replaces the one about the same.
    fn comes(&self, line: &Line, sheet: &mut EditedConfig<'_>) -> LineMeaning {
        let now = Some(line.text.to_string());
        match sheet.same(line).filter(|_| !self.kinds.is_counted(line)) {
            Some(there) if there.text == line.text => LineMeaning::Nothing,
            there => {
                LineMeaning::Edit(Edit { kind: line.kind, was: there.map(|line| line.text.to_string()), now })
            }
        }
    }

    /// The changes that lead from one configuration to another.
    ///
    /// # Errors
    /// Lines that have no form; all of them, in words.
    pub(crate) async fn edits_between(
        &self,
        old: &str,
        new: &str,
        pace: &Pace,
    ) -> Result<Vec<Edit>, Vec<String>> {
        let (old, new) = (Side::of(old), Side::of(new));
        let found = difference(&self.kinds, &self.control, &old, &new, pace).await;
        if !found.unknown.is_empty() {
            return Err(found.unknown.iter().map(ToString::to_string).take(MOST_FAULTS).collect());
        }
        let mut gone: BTreeMap<(usize, String), Vec<Line>> = BTreeMap::new();
        for at in found.removed {
            gone.entry(self.kinds.key(&at.line, &old.names)).or_default().push(at.line);
        }
        let goes = |line: Line| Edit { kind: line.kind, was: Some(line.text.to_string()), now: None };
        let (mut names, mut come, mut first) = (Vec::new(), Vec::new(), Vec::new());
        for at in found.added {
            let key = self.kinds.key(&at.line, &new.names);
            let before = gone.get_mut(&key).and_then(Vec::pop);
            let now = Some(at.line.text.to_string());
            let mut was = before.as_ref().map(|line| line.text.to_string());
            let gives_name = self.kinds.order(&at.line).0 == Phase::Names;
            // Where interfaces get other names, lines go by the old ones and come by the new ones.
            if old.names != new.names && !gives_name {
                first.extend(before.map(goes));
                was = None;
            }
            let edit = Edit { kind: at.line.kind, was, now };
            if gives_name {
                names.push(edit);
            } else {
                come.push(edit);
            }
            pace.give_way().await;
        }
        let (unnamed, gone): (Vec<Line>, Vec<Line>) =
            gone.into_values().flatten().partition(|line| self.kinds.order(line).0 == Phase::Names);
        names.extend(unnamed.into_iter().map(goes));
        first.extend(gone.into_iter().map(goes));
        Ok(first.into_iter().chain(names).chain(come).collect())
    }
}

/// The line that is most like another one, as the end of a message.
fn nearest_line(typed: &str, sheet: &EditedConfig<'_>) -> String {
    let common = |line: &&str| line.bytes().zip(typed.bytes()).take_while(|(a, b)| a == b).count();
    let best = sheet.lines().max_by_key(common).filter(|line| common(line) * 2 >= typed.len());
    best.map(|line| format!("; the nearest one is `{line}'")).unwrap_or_default()
}
