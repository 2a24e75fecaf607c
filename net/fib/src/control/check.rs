//! `show fib check`: walks all structures and looks for broken invariants.

use std::collections::{BTreeMap, BTreeSet};

use shoal_adj::{AdjIndex, Family};
use shoal_infra::Reader;

use super::Fib;
use crate::change::State;
use crate::list::{List, ListId, Tracked};

impl Fib {
    /// Looks for broken invariants; each is a line, and there should be none.
    pub fn check(&self) -> Vec<String> {
        let state = self.state.borrow();
        let mut broken = state.adjacencies.check();
        let mut users = self.check_entries(&state, &mut broken);
        state.held.iter().for_each(|(list, count)| *users.entry(*list).or_default() += count);
        check_lists(&state, &users, &mut broken);
        check_trackers(&state, &mut broken);
        state.check_exports(&mut broken);
        state.check_counts(&mut broken);
        broken
    }

    /// That packets find what the entries say; how many contributions there are of each list.
    fn check_entries(&self, state: &State, broken: &mut Vec<String>) -> BTreeMap<ListId, usize> {
        let mut users: BTreeMap<ListId, usize> = BTreeMap::new();
        let reader = Reader::register();
        for table in state.all_tables() {
            table.each(|prefix, slot| {
                let mut last = None;
                for contribution in slot.all() {
                    *users.entry(contribution.list).or_default() += 1;
                    if state.lists.get(contribution.list).is_none() {
                        broken.push(format!("{prefix} in table {}: its path list is gone", table.id));
                    }
                    if last.is_some_and(|last| last >= contribution.source) {
                        broken.push(format!("{prefix} in table {}: sources out of order", table.id));
                    }
                    last = Some(contribution.source);
                }
                // The first address is the entry's own unless a longer one covers it.
                let longest = table.longest(prefix.network(), u8::MAX);
                let expected = longest.map_or(AdjIndex::NONE, |(found, slot)| {
                    state.leaf(table.index, &found, state.adj_of(slot.best().list))
                });
                let found = match prefix.network() {
                    std::net::IpAddr::V4(a) => self.tables.lookup(table.index, a.to_bits(), reader.guard()),
                    std::net::IpAddr::V6(a) => {
                        self.tables.lookup_ip6(table.index, a.to_bits(), reader.guard())
                    }
                };
                if found != expected {
                    broken.push(format!(
                        "{prefix} in table {}: packets find adjacency {found}, not {expected}",
                        table.id
                    ));
                }
            });
        }
        users
    }
}

fn check_lists(state: &State, users: &BTreeMap<ListId, usize>, broken: &mut Vec<String>) {
    for (id, list) in state.lists.iter() {
        let mut say = |what: String| broken.push(format!("path list {}: {what}", id.0));
        let counted = users.get(&id).copied().unwrap_or(0);
        if list.users != counted {
            say(format!("{} users, but {counted} contributions", list.users));
        }
        if !list.paths().is_sorted() {
            say("paths out of order".into());
        }
        let shown = state.adjacencies.members(list.adj);
        match (List::is_plain(list.paths()), &shown) {
            (true, Some(_)) => say("is plain and has an adjacency of its own".into()),
            (false, None) => say(format!("adjacency {} is not its own", list.adj)),
            (false, Some((members, _))) if members.len() != list.ways.len() => {
                say(format!("{} ways, but {} members", list.ways.len(), members.len()));
            }
            (true, None) | (false, Some(_)) => {}
        }
        for at in List::tracked(list.paths()) {
            if !state.trackers.get(&at).is_some_and(|t| t.users.contains(&id)) {
                say(format!("{} is not tracked for it", at.1));
            }
        }
        let follows =
            |at: &Tracked| state.trackers.get(at).and_then(|t| t.cover).is_some_and(|(_, cover)| cover == id);
        for at in list.followers.iter().filter(|at| !follows(at)) {
            say(format!("{} does not follow it", at.1));
        }
    }
}

fn check_trackers(state: &State, broken: &mut Vec<String>) {
    for (at, tracker) in state.trackers.iter() {
        let mut say = |what: &str| broken.push(format!("next hop {} in {}: {what}", at.1, at.0));
        if state.table(Family::of(at.1), at.0).is_none() {
            say("its table is gone");
        }
        if tracker.cover != state.cover_of(*at) {
            say("another entry covers it");
        }
        if tracker.users.is_empty() {
            say("it has no users");
        }
        let wanted =
            |id: &ListId| state.lists.get(*id).is_some_and(|l| List::tracked(l.paths()).contains(at));
        if !tracker.users.iter().all(wanted) {
            say("its users do not name it");
        }
        let followers: Option<&BTreeSet<Tracked>> =
            tracker.cover.and_then(|(_, id)| state.lists.get(id)).map(|l| &l.followers);
        if followers.is_some_and(|f| !f.contains(at)) {
            say("the list that covers it does not know");
        }
    }
}
