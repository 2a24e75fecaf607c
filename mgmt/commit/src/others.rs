//! Lines that another party has brought, Linux for one: no configuration of before takes them away, and none misses them.

use std::collections::{BTreeMap, BTreeSet};
use std::rc::Rc;

use shoal_module::Control;
use shoal_module::cli::Pace;

use crate::difference::Side;
use crate::kinds::{Kinds, Line, interface_token};

/// The lines of the running configuration that others have brought, with their places.
async fn brought(
    kinds: &Kinds,
    control: &Rc<Control>,
    running: &Side<'_>,
    pace: &Pace,
) -> Vec<(usize, Line)> {
    let mut all = Vec::new();
    for (place, text) in running.lines.iter().enumerate() {
        if kinds.may_be_brought(text)
            && let Ok(line) = kinds.read(control, text)
            && kinds.is_brought(control, &line)
        {
            all.push((place, line));
        }
        pace.give_way().await;
    }
    all
}

/// Interfaces that lines of a side make, by the names that they are made with.
fn interfaces_made(kinds: &Kinds, control: &Rc<Control>, side: &Side<'_>) -> BTreeSet<String> {
    let lines = side.lines.iter().filter(|text| kinds.may_make_interface(text));
    let lines = lines.filter_map(|text| kinds.read(control, text).ok());
    lines.flat_map(|line| kinds.made(&line, &side.names)).collect()
}

/// A configuration of before, with those lines of the running one that others have brought and whose interfaces it has.
pub(crate) async fn with_others(
    kinds: &Kinds,
    control: &Rc<Control>,
    running: &str,
    wanted: &str,
    pace: &Pace,
) -> String {
    let (old, new) = (Side::of(running), Side::of(wanted));
    let all = brought(kinds, control, &old, pace).await;
    if all.is_empty() {
        return wanted.to_owned();
    }
    // Lines among which the order matters, by what they say: their places on the new side.
    let mut there: BTreeMap<String, usize> = BTreeMap::new();
    let mut first: BTreeMap<(usize, String), usize> = BTreeMap::new();
    for (place, text) in new.lines.iter().enumerate().filter(|(_, text)| kinds.may_be_in_order(text)) {
        let Ok(line) = kinds.read(control, text) else { continue };
        there.insert(kinds.meaning(&line, &new.names), place);
        if let Some(group) = kinds.in_order(&line, &new.names) {
            first.entry(group).or_insert(place);
        }
        pace.give_way().await;
    }
    let (had, has) = (interfaces_made(kinds, control, &old), interfaces_made(kinds, control, &new));
    let goes = |name: &str| {
        let token = interface_token(&old.names.made_as(name));
        had.contains(&token) && !has.contains(&token)
    };
    // What comes before which line of the new side.
    let mut before: BTreeMap<usize, Vec<String>> = BTreeMap::new();
    for (place, line) in all {
        let names = kinds.interfaces_of(&line);
        if there.contains_key(&kinds.meaning(&line, &old.names)) || names.iter().any(|name| goes(name)) {
            continue;
        }
        let group = kinds.in_order(&line, &old.names);
        let is_kept = |text: &&str| {
            let line = kinds.may_be_in_order(text).then(|| kinds.read(control, text).ok()).flatten()?;
            let same = kinds.in_order(&line, &old.names) == group;
            there.get(&kinds.meaning(&line, &old.names)).filter(|_| same).copied()
        };
        let behind = old.lines.get(..place).unwrap_or_default().iter().rev().find_map(is_kept);
        let first = group.as_ref().and_then(|group| first.get(group)).copied();
        let at = behind.map(|place| place + 1).or(first).unwrap_or(new.lines.len());
        let mut text = line.text.to_string();
        for name in names {
            let now = new.names.name_of(&old.names.made_as(&name));
            if now != name {
                text = text.replacen(&*shoal_module::word(&name), &shoal_module::word(&now), 1);
            }
        }
        before.entry(at).or_default().push(text);
        pace.give_way().await;
    }
    let (mut text, mut place) = (String::with_capacity(wanted.len()), 0);
    let mut put = |text: &mut String, place: usize| {
        for line in before.remove(&place).into_iter().flatten() {
            text.push_str(&line);
            text.push('\n');
        }
    };
    for line in wanted.lines() {
        if !line.is_empty() && !line.starts_with('#') {
            put(&mut text, place);
            place += 1;
        }
        text.push_str(line);
        text.push('\n');
    }
    put(&mut text, place);
    text
}

/// The running configuration without those lines that others have brought and that were not committed.
pub(crate) async fn without_others(
    kinds: &Kinds,
    control: &Rc<Control>,
    running: &str,
    committed: &str,
    pace: &Pace,
) -> String {
    let side = Side::of(running);
    let all = brought(kinds, control, &side, pace).await;
    if all.is_empty() {
        return running.to_owned();
    }
    let known: BTreeSet<&str> = committed.lines().collect();
    let goes: BTreeSet<&str> =
        all.iter().map(|(_, line)| &*line.text).filter(|text| !known.contains(text)).collect();
    // A heading without a line below it would be a difference.
    let mut kept: Vec<&str> = Vec::new();
    for line in running.lines().filter(|line| !goes.contains(line)) {
        if line.starts_with('#') && kept.last().is_some_and(|last| last.starts_with('#')) {
            kept.pop();
        }
        kept.push(line);
    }
    if kept.last().is_some_and(|last| last.starts_with('#')) {
        kept.pop();
    }
    kept.into_iter().flat_map(|line| [line, "\n"]).collect()
}
