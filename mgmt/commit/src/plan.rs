//! From two configurations to the commands that lead from one to the other.
//!
//! 1. Lines that only one of them has are read ([`difference`](crate::difference)); those of the same form and key are one
//!    change.
//! 2. A line that is kept is taken back and made again if it needs something that is made again.
//! 3. Lines are taken back in reverse order, interfaces get their names, then new lines and changes run in order.
//!
//! Each step knows what undoes it.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use shoal_module::cli::{Args, Pace};
use shoal_module::{Change, Class, Control, Inverse, LineKind, Phase};

use crate::difference::{At, Difference, Side, difference};
use crate::kinds::{Kinds, Line, Requirement, interface_token};
use crate::names::Names;
use crate::template::fill;

/// A command, or how it is found when its turn comes.
#[derive(Debug, Clone)]
pub(crate) enum Run {
    /// This one.
    Command(String),
    /// What this function says of a line then.
    Found(fn(&Control, &Args) -> Option<String>, Args),
    /// None: something else does it.
    Nothing,
}

/// One step.
#[derive(Debug, Clone)]
pub(crate) struct Step {
    /// What is done.
    pub run: Run,
    /// What undoes it.
    pub undo: Run,
    /// The line that it is about.
    pub line: Rc<str>,
}

/// What becomes of a line.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum LineOutcome {
    /// It comes.
    Added,
    /// It goes.
    Removed,
    /// It replaces the line before.
    Changed,
    /// It goes and comes again, because what it needs does.
    Again,
}

/// What becomes of a line, and what that interrupts.
#[derive(Debug, Clone)]
pub(crate) struct Effect {
    pub fate: LineOutcome,
    pub line: Rc<str>,
    pub class: Class,
}

/// A way from one configuration to another.
#[derive(Debug, Default)]
pub(crate) struct Plan {
    /// What is done, one after the other.
    pub steps: Vec<Step>,
    /// What becomes of which line.
    pub effects: Vec<Effect>,
    /// Why it cannot be gone: all reasons.
    pub errors: Vec<String>,
}

impl Plan {
    /// How many commands it runs.
    pub fn commands(&self) -> usize {
        self.steps.iter().filter(|step| !matches!(step.run, Run::Nothing)).count()
    }
}

/// Plans the way from an old to a new configuration.
pub(crate) async fn plan(
    kinds: &Kinds,
    control: &Rc<Control>,
    old_text: &str,
    new_text: &str,
    pace: &Pace,
) -> Plan {
    let (old, new) = (Side::of(old_text), Side::of(new_text));
    let found = difference(kinds, control, &old, &new, pace).await;
    let mut planner = Planner {
        kinds,
        control,
        old: &old,
        new: &new,
        removed: Vec::new(),
        added: Vec::new(),
        changed: Vec::new(),
        again: BTreeMap::new(),
        errors: Vec::new(),
    };
    planner.errors.extend(found.unknown.iter().map(ToString::to_string));
    let kept = planner.pair(found);
    planner.put_in_order(&kept, pace).await;
    planner.follow_needs(&kept, pace).await;
    planner.check_interfaces();
    planner.check_machine();
    planner.finish()
}

/// What lines make that are not the same on both sides.
struct Affected {
    /// What others that need it are made again for.
    all: BTreeSet<String>,
    /// What lines make that come.
    came: BTreeSet<String>,
    /// What lines make that go.
    went: BTreeSet<String>,
}

struct Planner<'a> {
    kinds: &'a Kinds,
    control: &'a Rc<Control>,
    old: &'a Side<'a>,
    new: &'a Side<'a>,
    removed: Vec<At>,
    added: Vec<At>,
    /// The old and the new line.
    changed: Vec<(At, At)>,
    /// Places on the old side of lines that are taken back and made again, and their places on the new side.
    again: BTreeMap<usize, usize>,
    errors: Vec<String>,
}

impl Planner<'_> {
    fn kind(&self, line: &Line) -> Option<&'static LineKind> {
        self.kinds.kind_of(line)
    }

    fn is_name(&self, line: &Line) -> bool {
        self.kind(line).is_some_and(|kind| kind.phase == Phase::Names)
    }

    /// Makes one change of an old and a new line with the same key; tells which lines are kept.
    fn pair(&mut self, found: Difference) -> Vec<(usize, usize)> {
        let Difference { removed, added, kept, .. } = found;
        let mut new_by_key: BTreeMap<(usize, String), Vec<At>> = BTreeMap::new();
        for at in added.into_iter().filter(|at| !self.is_name(&at.line)) {
            new_by_key.entry(self.kinds.key(&at.line, &self.new.names)).or_default().push(at);
        }
        for at in removed {
            if self.is_name(&at.line) {
                continue;
            }
            let replaces = self.kind(&at.line).is_some_and(|kind| !matches!(kind.change, Change::Again));
            let key = self.kinds.key(&at.line, &self.old.names);
            match new_by_key.get_mut(&key).filter(|_| replaces).and_then(Vec::pop) {
                Some(new) => self.changed.push((at, new)),
                None => self.removed.push(at),
            }
        }
        for (_, mut all) in new_by_key {
            if let [first, second, ..] = all.as_slice()
                && self.kind(&first.line).is_some_and(|kind| matches!(kind.key, shoal_module::Key::Args(_)))
            {
                let (first, second) = (&first.line.text, &second.line.text);
                self.errors.push(format!(
                    "`{first}' and `{second}' are about the same: only one of them can be there"
                ));
            }
            self.added.append(&mut all);
        }
        kept
    }

    /// Lines whose order among each other matters, and is another one, are made again from the first one on that differs.
    async fn put_in_order(&mut self, kept: &[(usize, usize)], pace: &Pace) {
        let old_place: BTreeMap<usize, usize> = kept.iter().map(|(old, new)| (*new, *old)).collect();
        // By what the order is of: the last place on the old side, and whether all that follow are made again.
        let mut groups: BTreeMap<(usize, String), (usize, bool)> = BTreeMap::new();
        for (place, text) in self.new.lines.iter().enumerate() {
            pace.give_way().await;
            if !self.kinds.may_be_in_order(text) {
                continue;
            }
            let Ok(line) = self.kinds.read(self.control, text) else { continue };
            let Some(group) = self.kinds.in_order(&line, &self.new.names) else { continue };
            let (last, differs) = groups.entry(group).or_default();
            match old_place.get(&place) {
                Some(old) if *differs || old < last => {
                    *differs = true;
                    self.again.insert(*old, place);
                }
                Some(old) => *last = *old,
                None => *differs = true,
            }
        }
    }

    /// What lines that come, go or change make.
    fn affected(&self) -> Affected {
        let made =
            |lines: &[At], names| lines.iter().flat_map(|at| self.kinds.made(&at.line, names)).collect();
        let came: BTreeSet<String> = made(&self.added, &self.new.names);
        let went: BTreeSet<String> = made(&self.removed, &self.old.names);
        let changed = self.changed.iter().flat_map(|(old, _)| self.kinds.made(&old.line, &self.old.names));
        // Nothing that is kept names an interface that was not there.
        let new = came.iter().filter(|token| !token.starts_with("interface ")).cloned();
        let all = changed.chain(new).chain(went.iter().cloned()).collect();
        Affected { all, came, went }
    }

    /// Makes those kept lines again that need what is made again, and those that need these, and so on.
    async fn follow_needs(&mut self, kept: &[(usize, usize)], pace: &Pace) {
        // Hard needs of what only comes are not there before, so nothing kept has them.
        let Affected { all: mut affected, came, went } = self.affected();
        // What goes only together with what it needs takes that along.
        let mut owners: BTreeSet<String> = BTreeSet::new();
        for at in &self.removed {
            if self.kind(&at.line).is_some_and(|kind| matches!(kind.inverse, Inverse::WithNeeded)) {
                let needs = self.kinds.needs(&at.line, &self.old.names);
                owners.extend(
                    needs.into_iter().last().map(|need| need.token).filter(|t| !affected.contains(t)),
                );
            }
        }
        if affected.is_empty() && owners.is_empty() && self.again.is_empty() {
            return;
        }
        let mut lines: Vec<(usize, Line, Vec<Requirement>, Vec<String>)> = Vec::new();
        let new_place: BTreeMap<usize, usize> = kept.iter().copied().collect();
        for place in new_place.keys() {
            let text = self.old.lines.get(*place).copied().unwrap_or_default();
            if let Ok(line) = self.kinds.read(self.control, text)
                && !self.is_name(&line)
            {
                let (needs, made) =
                    (self.kinds.needs(&line, &self.old.names), self.kinds.made(&line, &self.old.names));
                lines.push((*place, line, needs, made));
            }
            pace.give_way().await;
        }
        let is_lost = |token: &String| went.contains(token) && !came.contains(token);
        let insert = |again: &mut BTreeMap<usize, usize>, place: usize| {
            again.insert(place, new_place.get(&place).copied().unwrap_or(place));
        };
        for (place, _, _, made) in &lines {
            if self.again.contains_key(place) {
                affected.extend(made.iter().cloned());
            }
        }
        loop {
            let before = self.again.len();
            for (place, line, needs, made) in &lines {
                if self.again.contains_key(place) {
                    continue;
                }
                if let Some(need) = needs.iter().find(|need| !need.soft && is_lost(&need.token)) {
                    let maker = self
                        .removed
                        .iter()
                        .find(|at| self.kinds.made(&at.line, &self.old.names).contains(&need.token));
                    let maker = maker.map_or("", |at| &at.line.text);
                    self.errors.push(format!(
                        "`{}' needs `{maker}', which is deleted: delete it, too, or keep that",
                        line.text
                    ));
                    insert(&mut self.again, *place);
                    continue;
                }
                let is_hit = |need: &Requirement| {
                    let is_new = came.contains(&need.token) && !went.contains(&need.token);
                    affected.contains(&need.token) && (need.soft || !is_new)
                };
                let is_owner = made.iter().any(|token| owners.contains(token));
                if is_owner || needs.iter().any(is_hit) {
                    insert(&mut self.again, *place);
                    affected.extend(made.iter().cloned());
                }
            }
            if self.again.len() == before {
                break;
            }
            pace.give_way().await;
        }
        for (place, line, ..) in lines.into_iter().filter(|(place, ..)| self.again.contains_key(place)) {
            self.removed.push(At { place, line });
        }
    }

    /// New lines name interfaces that are there, or that lines of the new configuration make.
    /// Whether the machine has what new lines need of it. A line that comes back after it was taken away is asked for, too: its
    /// device may be gone.
    fn check_machine(&mut self) {
        let lines = self.added.iter().chain(self.changed.iter().map(|(_, new)| new)).map(|at| &at.line);
        let asked = lines.filter_map(|line| {
            let check = self.kind(line)?.check?;
            check(self.control, &line.args).err().map(|why| format!("`{}': {why}", line.text))
        });
        let mut errors: Vec<String> = asked.collect();
        self.errors.append(&mut errors);
    }

    fn check_interfaces(&mut self) {
        let lines = self.added.iter().chain(self.changed.iter().map(|(_, new)| new)).map(|at| &at.line);
        let named: Vec<(&Line, String, String)> = lines
            .flat_map(|line| self.kinds.interfaces_of(line).into_iter().map(move |name| (line, name)))
            .map(|(line, name)| {
                let is_late = self.kinds.order(line).0 > Phase::Names;
                let made = if is_late { self.new.names.made_as(&name) } else { name.clone() };
                (line, name, made)
            })
            .collect();
        if named.is_empty() {
            return;
        }
        let mut made: BTreeSet<String> = BTreeSet::new();
        for text in self.new.lines.iter().filter(|text| self.kinds.may_make_interface(text)) {
            if let Ok(line) = self.kinds.read(self.control, text) {
                made.extend(self.kinds.made(&line, &self.new.names));
            }
        }
        let gone: BTreeSet<String> =
            self.removed.iter().flat_map(|at| self.kinds.made(&at.line, &self.old.names)).collect();
        let mut errors = Vec::new();
        for (line, name, base) in named {
            let token = interface_token(&base);
            if made.contains(&token) {
                continue;
            }
            let now = self.old.names.name_of(&base);
            match self.kinds.has_interface(self.control, &now) {
                Ok(()) if !gone.contains(&token) => {}
                Ok(()) => {
                    errors.push(format!("`{}' names the interface {name}, which is deleted", line.text));
                }
                Err(expected) => {
                    let nearest =
                        expected.nearest.map(|n| format!(" (did you mean `{n}'?)")).unwrap_or_default();
                    errors.push(format!(
                        "`{}' names the interface {name}, which is not there{nearest}",
                        line.text
                    ));
                }
            }
        }
        self.errors.append(&mut errors);
    }

    fn made_name(&self, line: &Line, names: &Names) -> String {
        self.kinds.interface_made(line).map(|made| names.name_of(&made)).unwrap_or_default()
    }

    /// What takes a line back, where interfaces have these names.
    fn inverse(&self, line: &Line, names: &Names) -> Run {
        match self.kind(line).map(|kind| kind.inverse) {
            Some(Inverse::Command(template)) => {
                Run::Command(fill(template, &line.args, &self.made_name(line, names)))
            }
            Some(Inverse::Found(find)) => Run::Found(find, line.args.clone()),
            Some(Inverse::WithNeeded) | None => Run::Nothing,
        }
    }

    fn finish(mut self) -> Plan {
        let kinds = self.kinds;
        let mut plan = Plan { errors: std::mem::take(&mut self.errors), ..Plan::default() };
        let mut names = self.old.names.clone();
        let by_order = |at: &At| (kinds.order(&at.line), at.place);
        let mut removed = std::mem::take(&mut self.removed);
        removed.sort_by_key(by_order);
        let mut named_back = false;
        for at in removed.iter().rev() {
            // Interfaces that go are called as they were made before they do.
            if !named_back && kinds.order(&at.line).0 < Phase::Names {
                named_back = true;
                self.name_back(&removed, &mut names, &mut plan);
            }
            let step = Step {
                run: self.inverse(&at.line, &names),
                undo: Run::Command(at.line.text.to_string()),
                line: Rc::clone(&at.line.text),
            };
            plan.steps.push(step);
            let fate =
                if self.again.contains_key(&at.place) { LineOutcome::Again } else { LineOutcome::Removed };
            plan.effects.push(Effect { fate, line: Rc::clone(&at.line.text), class: self.class(&at.line) });
        }
        enum LineChange {
            New(At),
            Again(At),
            Changed(At, At),
        }
        let mut coming: Vec<((Phase, shoal_module::Place, usize), usize, LineChange)> = Vec::new();
        for at in std::mem::take(&mut self.added) {
            coming.push((kinds.order(&at.line), at.place, LineChange::New(at)));
        }
        for at in removed {
            if let Some(place) = self.again.get(&at.place) {
                coming.push((kinds.order(&at.line), *place, LineChange::Again(At { place: *place, ..at })));
            }
        }
        for (old, new) in std::mem::take(&mut self.changed) {
            coming.push((kinds.order(&new.line), new.place, LineChange::Changed(old, new)));
        }
        coming.sort_by_key(|(order, place, _)| (*order, *place));
        let mut named = false;
        for (order, _, what) in coming {
            if !named && order.0 >= Phase::Names {
                named = true;
                self.name(&mut names, &mut plan);
            }
            match what {
                LineChange::New(at) => {
                    let undo = self.inverse(&at.line, &names);
                    let line = Rc::clone(&at.line.text);
                    plan.steps.push(Step {
                        run: Run::Command(line.to_string()),
                        undo,
                        line: Rc::clone(&line),
                    });
                    plan.effects.push(Effect { fate: LineOutcome::Added, line, class: Class::Live });
                }
                LineChange::Again(at) => {
                    // Interfaces may have other names by now.
                    let text = self.new.lines.get(at.place).copied().unwrap_or_default().to_owned();
                    let undo = match self.kinds.read(self.control, &text) {
                        Ok(line) => self.inverse(&line, &names),
                        Err(_) => Run::Nothing,
                    };
                    plan.steps.push(Step { run: Run::Command(text), undo, line: at.line.text });
                }
                LineChange::Changed(old, new) => self.change(&old.line, &new.line, &mut plan),
            }
        }
        if !named {
            self.name(&mut names, &mut plan);
        }
        plan
    }

    fn class(&self, line: &Line) -> Class {
        self.kind(line).map_or(Class::Live, |kind| kind.class)
    }

    fn change(&self, old: &Line, new: &Line, plan: &mut Plan) {
        let (there, back) = match self.kind(new).map(|kind| kind.change) {
            Some(Change::By(by)) => (by(&old.args, &new.args), by(&new.args, &old.args)),
            _ => (vec![new.text.to_string()], vec![old.text.to_string()]),
        };
        let step = |run, undo| Step { run, undo, line: Rc::clone(&new.text) };
        if let ([run], [undo]) = (there.as_slice(), back.as_slice()) {
            plan.steps.push(step(Run::Command(run.clone()), Run::Command(undo.clone())));
        } else {
            // Wherever one of several commands fails, all of the way back is gone. It stands before them, the last command
            // first, because steps are undone from the last one on.
            plan.steps.extend(back.into_iter().rev().map(|undo| step(Run::Nothing, Run::Command(undo))));
            plan.steps.extend(there.into_iter().map(|run| step(Run::Command(run), Run::Nothing)));
        }
        plan.effects.push(Effect {
            fate: LineOutcome::Changed,
            line: Rc::clone(&new.text),
            class: self.class(new),
        });
    }

    fn name_back(&self, removed: &[At], names: &mut Names, plan: &mut Plan) {
        for made in removed.iter().filter_map(|at| self.kinds.interface_made(&at.line)) {
            let steps = names.rename(&made, &made);
            push_names(steps, plan);
        }
    }

    /// Gives interfaces the names that they have in the new configuration.
    fn name(&self, names: &mut Names, plan: &mut Plan) {
        let wanted: BTreeMap<String, String> =
            self.new.names.given().map(|(made, to)| (made.to_owned(), to.to_owned())).collect();
        let had: Vec<String> = names.given().map(|(made, _)| made.to_owned()).collect();
        for made in had.iter().filter(|made| !wanted.contains_key(*made)) {
            let steps = names.rename(made, made);
            push_names(steps, plan);
        }
        for (made, to) in &wanted {
            let steps = names.rename(made, to);
            push_names(steps, plan);
        }
    }
}

fn push_names(steps: Vec<(String, String)>, plan: &mut Plan) {
    for (run, undo) in steps {
        let line: Rc<str> = run.as_str().into();
        plan.steps.push(Step { run: Run::Command(run), undo: Run::Command(undo), line: Rc::clone(&line) });
        plan.effects.push(Effect { fate: LineOutcome::Changed, line, class: Class::Live });
    }
}
