//! A candidate: changes that were not committed yet, and the configuration that they lead to.
//!
//! Only changes are kept, not a copy of the configuration: what others change meanwhile is part of the candidate, unless it
//! is about the same thing. That is a conflict, and named.

use std::collections::HashMap;
use std::rc::Rc;
use std::time::SystemTime;

use shoal_cli::{in_line, words};
use shoal_infra::budget;
use shoal_module::cli::Pace;
use shoal_module::{Control, Key, Phase, word};

use crate::kinds::{Kinds, Line};
use crate::names::Names;

/// One change of one line.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Edit {
    /// The form of the line.
    pub kind: usize,
    /// The line that is there, if there is one.
    pub was: Option<String>,
    /// The line that is to be there, if one is.
    pub now: Option<String>,
}

impl Edit {
    fn bytes(&self) -> usize {
        let text = |line: &Option<String>| line.as_ref().map_or(0, String::len);
        size_of::<Edit>() + text(&self.was) + text(&self.now)
    }
}

/// Changes, counted as the tables' memory while they are there.
#[derive(Debug, Default)]
pub(crate) struct Edits {
    all: Vec<Edit>,
    taken: usize,
}

impl Edits {
    /// Adds a change. One that takes back the last change of the same line leaves nothing.
    pub fn push(&mut self, edit: Edit) -> Result<(), String> {
        let same = |other: &Edit| {
            other.now == edit.was && other.kind == edit.kind && (edit.was.is_some() || other.was == edit.now)
        };
        if let Some(at) = self.all.iter().rposition(same) {
            let before = self.all.remove(at);
            let given = before.bytes();
            self.taken -= given;
            budget::give_back(given);
            if before.was == edit.now {
                return Ok(());
            }
            return self.push(Edit { was: before.was, ..edit });
        }
        let bytes = edit.bytes();
        budget::take(bytes).map_err(|e| e.to_string())?;
        self.taken += bytes;
        self.all.push(edit);
        Ok(())
    }

    pub fn list(&self) -> &[Edit] {
        &self.all
    }
}

impl Drop for Edits {
    fn drop(&mut self) {
        budget::give_back(self.taken);
    }
}

/// A candidate of a session or a user.
#[derive(Debug)]
pub(crate) struct Candidate {
    /// What it changes.
    pub edits: Edits,
    /// When it was opened.
    pub since: SystemTime,
}

impl Candidate {
    pub fn new() -> Self {
        Candidate { edits: Edits::default(), since: SystemTime::now() }
    }
}

/// A line of a configuration that is being edited.
struct Row {
    phase: Phase,
    text: String,
    gone: bool,
}

/// A configuration as it is edited.
pub(crate) struct EditedConfig<'a> {
    kinds: &'a Kinds,
    control: &'a Rc<Control>,
    rows: Vec<Row>,
    /// What its interfaces are called.
    pub names: Names,
    /// Places by what they say.
    by_text: HashMap<String, Vec<usize>>,
    /// Places of lines of a form by their keys, for forms that were asked for.
    by_key: HashMap<usize, HashMap<String, usize>>,
}

/// The configuration that changes lead to from a running one; or all conflicts.
pub(crate) async fn edited(
    kinds: &Kinds,
    control: &Rc<Control>,
    running: &str,
    edits: &[Edit],
    pace: &Pace,
) -> Result<String, Vec<String>> {
    let mut sheet = EditedConfig::new(kinds, control, running, pace).await;
    let mut conflicts = Vec::new();
    for edit in edits {
        if let Err(conflict) = sheet.apply(edit) {
            conflicts.push(conflict);
        }
        pace.give_way().await;
    }
    if conflicts.is_empty() { Ok(sheet.text()) } else { Err(conflicts) }
}

impl<'a> EditedConfig<'a> {
    /// A configuration.
    pub async fn new(kinds: &'a Kinds, control: &'a Rc<Control>, running: &str, pace: &Pace) -> Self {
        let (mut phase, mut rows, mut by_text) = (Phase::System, Vec::new(), HashMap::new());
        for line in running.lines() {
            if let Some(name) = line.strip_prefix("# ") {
                phase = Phase::ALL.into_iter().find(|phase| phase.name() == name).unwrap_or(phase);
            } else if !line.is_empty() {
                let places: &mut Vec<usize> = by_text.entry(line.to_owned()).or_default();
                places.push(rows.len());
                rows.push(Row { phase, text: line.to_owned(), gone: false });
            }
            pace.give_way().await;
        }
        let names = Names::of(rows.iter().map(|row| row.text.as_str()));
        EditedConfig { kinds, control, rows, names, by_text, by_key: HashMap::new() }
    }

    /// Its lines.
    pub fn lines(&self) -> impl Iterator<Item = &str> {
        self.rows.iter().filter(|row| !row.gone).map(|row| row.text.as_str())
    }

    /// Its lines that may make interfaces.
    pub fn interfaces(&self) -> impl Iterator<Item = &str> {
        let makes = |row: &&Row| !row.gone && matches!(row.phase, Phase::Interfaces | Phase::SubInterfaces);
        self.rows.iter().filter(makes).map(|row| row.text.as_str())
    }

    /// Whether it has a line.
    pub fn has(&self, text: &str) -> bool {
        self.place_of(text).is_some()
    }

    /// The line that is about the same as another one.
    pub fn same(&mut self, line: &Line) -> Option<Line> {
        let place = self.place_of(&line.text).or_else(|| self.same_key(line))?;
        self.kinds.read(self.control, &self.rows.get(place)?.text).ok()
    }

    /// The line of a form that a command takes back, by the key that the command names.
    pub fn taken_back(&mut self, kind: usize, key: &str) -> Option<Line> {
        let (kinds, control) = (self.kinds, self.control);
        if kinds.kind(kind).is_some_and(|(_, kind)| matches!(kind.key, Key::Args(_))) {
            let place = self.index_of(kind).get(key).copied()?;
            return kinds.read(control, &self.rows.get(place)?.text).ok();
        }
        let words = kinds.words(kind);
        let mut mine = self.lines().filter(|line| line.starts_with(words));
        let read = |line: &str| kinds.read(control, line).ok();
        mine.find_map(|line| {
            read(line).filter(|line| line.kind == kind && kinds.has_key(line, key, &self.names))
        })
    }

    fn index(&mut self) {
        self.by_text.clear();
        self.by_key.clear();
        for (place, row) in self.rows.iter().enumerate().filter(|(_, row)| !row.gone) {
            self.by_text.entry(row.text.clone()).or_default().push(place);
        }
    }

    /// Places of the lines of a form, by their keys.
    fn index_of(&mut self, kind: usize) -> &HashMap<String, usize> {
        let (kinds, control, names, rows) = (self.kinds, self.control, &self.names, &self.rows);
        self.by_key.entry(kind).or_insert_with(|| {
            let words = kinds.words(kind);
            let mine = rows.iter().enumerate().filter(|(_, row)| !row.gone && row.text.starts_with(words));
            let read = mine.filter_map(|(place, row)| Some((place, kinds.read(control, &row.text).ok()?)));
            read.filter(|(_, other)| other.kind == kind)
                .map(|(place, other)| (kinds.key(&other, names).1, place))
                .collect()
        })
    }

    fn place_of(&self, text: &str) -> Option<usize> {
        self.by_text.get(text).and_then(|places| places.last()).copied()
    }

    /// The place of a line of the same form that is about the same.
    fn same_key(&mut self, line: &Line) -> Option<usize> {
        if !matches!(self.kinds.kind_of(line)?.key, Key::Args(_)) {
            return None;
        }
        let key = self.kinds.key(line, &self.names).1;
        self.index_of(line.kind).get(&key).copied()
    }

    /// Makes a change.
    ///
    /// # Errors
    /// It is in conflict with what is there; in words.
    pub fn apply(&mut self, edit: &Edit) -> Result<(), String> {
        let new = match &edit.now {
            None => None,
            Some(text) => Some(self.kinds.read(self.control, text).map_err(|e| e.to_string())?),
        };
        let there = edit.was.as_deref().and_then(|was| self.place_of(was));
        match (&edit.was, there, &new) {
            // It is gone already.
            (Some(_), None, None) | (None, _, None) => Ok(()),
            (Some(_), Some(place), None) => {
                self.remove(place);
                Ok(())
            }
            (Some(_), Some(place), Some(new)) => {
                self.replace(place, new);
                Ok(())
            }
            (was, _, Some(new)) => {
                // Lines that may be there several times are there once more.
                if self.place_of(&new.text).is_some() && !self.kinds.is_counted(new) {
                    return Ok(());
                }
                if let Some(place) = self.same_key(new) {
                    let other = self.rows.get(place).map_or("", |row| row.text.as_str());
                    let was = was.as_ref().map(|was| format!(", and not `{was}' any more"));
                    let was = was.unwrap_or_default();
                    return Err(format!("`{}' is in conflict: the router has `{other}' now{was}", new.text));
                }
                self.add(new);
                Ok(())
            }
        }
    }

    fn forget(&mut self, place: usize) {
        let Some(row) = self.rows.get(place) else { return };
        if let Some(places) = self.by_text.get_mut(&row.text) {
            places.retain(|other| *other != place);
        }
        if let Ok(line) = self.kinds.read(self.control, &row.text)
            && let Some(index) = self.by_key.get_mut(&line.kind)
        {
            index.remove(&self.kinds.key(&line, &self.names).1);
        }
    }

    fn remove(&mut self, place: usize) {
        self.forget(place);
        let mut names_change = false;
        if let Some(row) = self.rows.get_mut(place) {
            row.gone = true;
            names_change = row.phase == Phase::Names;
        }
        if names_change {
            self.rename();
        }
    }

    fn replace(&mut self, place: usize, new: &Line) {
        self.forget(place);
        if let Some(row) = self.rows.get_mut(place) {
            row.text = new.text.to_string();
        }
        self.by_text.entry(new.text.to_string()).or_default().push(place);
        if let Some(index) = self.by_key.get_mut(&new.kind) {
            index.insert(self.kinds.key(new, &self.names).1, place);
        }
        if self.kinds.order(new).0 == Phase::Names {
            self.rename();
        }
    }

    /// Behind the lines of its phase that begin like it, or at the end of the phase. The order in which lines run does not
    /// depend on that.
    fn add(&mut self, new: &Line) {
        let phase = self.kinds.order(new).0;
        // Places of other lines stay what they are, so that nothing is searched for again; they are put in order at last.
        self.rows.push(Row { phase, text: new.text.to_string(), gone: false });
        let place = self.rows.len() - 1;
        self.by_text.entry(new.text.to_string()).or_default().push(place);
        if let Some(index) = self.by_key.get_mut(&new.kind) {
            index.insert(self.kinds.key(new, &self.names).1, place);
        }
        if phase == Phase::Names {
            self.rename();
        }
    }

    /// Interfaces have other names: the lines that name them follow.
    fn rename(&mut self) {
        let there = self.rows.iter().filter(|row| !row.gone).map(|row| row.text.as_str());
        let names = Names::of(there);
        let old = std::mem::replace(&mut self.names, names);
        if old == self.names {
            return;
        }
        for row in self.rows.iter_mut().filter(|row| !row.gone && row.phase > Phase::Names) {
            let words = words(&row.text);
            let renamed = words.iter().map(|name| {
                let made = old.made_as(name);
                // Words that name no interface are what they were.
                let now = self.names.name_of(&made);
                if old.name_of(&made) == *name && now != *name {
                    word(&now).into_owned()
                } else {
                    in_line(name).into_owned()
                }
            });
            row.text = renamed.collect::<Vec<_>>().join(" ");
        }
        self.index();
    }

    fn text(self) -> String {
        let mut rows: Vec<(usize, Row)> =
            self.rows.into_iter().enumerate().filter(|(_, row)| !row.gone).collect();
        // New lines stand at the end of the rows: they go behind those of their phase.
        rows.sort_by_key(|(place, row)| (row.phase, *place));
        let (mut text, mut phase) = (String::new(), None);
        for (_, row) in rows {
            if phase != Some(row.phase) {
                phase = Some(row.phase);
                text.push_str("# ");
                text.push_str(row.phase.name());
                text.push('\n');
            }
            text.push_str(&row.text);
            text.push('\n');
        }
        text
    }
}
