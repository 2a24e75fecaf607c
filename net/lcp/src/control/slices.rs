//! Work on many routes: what they have in common is found and changed table by table, between which others are served. A million routes by a link
//! that fails would keep the main thread for seconds.
//!
//! What the kernel says meanwhile is newer: routes that are told after the work began are left as they are.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

use shoal_graph::process::Processes;
use shoal_interface::HostRoute;
use shoal_module::cli::Pace;

use super::mirror::Mirror;
use super::routes::Key;
use super::*;

/// Prefixes that are decided at once, whether others wait or not.
const AT_ONCE: usize = 256;
/// Of these a slice has as many as its time allows.
const TOGETHER: usize = 64;

/// What becomes of a route.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Fate {
    /// It stays, and its prefix is as it was.
    Stays,
    /// It stays, perhaps changed, and its prefix is decided again.
    Changes,
    /// It goes.
    Goes,
}

/// Decides what becomes of routes, which may be changed; and learns the prefixes of those that go.
pub(super) trait Change: 'static {
    /// Whether a route may be concerned: most are not, and need no more than this.
    fn concerns(&self, mirror: &Mirror, route: &HostRoute) -> bool;

    /// What becomes of one that is.
    fn change(&self, route: &mut HostRoute) -> Fate;

    /// A route has gone.
    fn gone(&self, _: &mut Mirror, _: &Key) {}
}

impl Mirror {
    /// Changes the routes of one part of all, as far as they were told before; the prefixes to be decided, or `None` behind the last part.
    fn change_part(&mut self, number: usize, change: &impl Change, before: u64) -> Option<Vec<Key>> {
        let part = self.routes.part(number)?;
        let is_old = |(route, told_in): &(HostRoute, u64)| *told_in < before && change.concerns(self, route);
        let mut keys: Vec<Key> =
            part.filter(|(_, routes)| routes.told().any(is_old)).map(|(key, _)| *key).collect();
        keys.retain(|key| {
            let mut changed = false;
            let went = self.routes.keep(key, |route, told_in| {
                let fate = if told_in < before { change.change(route) } else { Fate::Stays };
                changed |= fate != Fate::Stays;
                fate != Fate::Goes
            });
            if went {
                change.gone(self, key);
            }
            changed
        });
        Some(keys)
    }
}

/// All routes go.
struct Left;

impl Change for Left {
    fn concerns(&self, _: &Mirror, _: &HostRoute) -> bool {
        true
    }

    fn change(&self, _: &mut HostRoute) -> Fate {
        Fate::Goes
    }
}

impl Lcp {
    /// Changes all routes of a namespace that were told up to now: few at once, and many in slices.
    pub(super) fn change_routes(&self, netns: &Option<String>, change: impl Change) {
        let begun = self.with(netns, |mirror| (mirror.routes.begin(), mirror.routes.are_few()));
        let Some((before, are_few)) = begun else { return };
        self.change_told_before(netns, change, before, are_few);
    }

    /// The same of those that were told before a listing began.
    pub(super) fn change_told_before(
        &self,
        netns: &Option<String>,
        change: impl Change,
        before: u64,
        are_few: bool,
    ) {
        let Some((processes, lcp)) = self.with_time(!are_few) else {
            let keys = self.change_all_parts(netns, &change, before);
            return self.decide_slowly(netns, keys);
        };
        let netns = netns.clone();
        processes.spawn_unlisted(async move { lcp.change_part_by_part(&netns, &change, before).await });
    }

    /// What runs work that takes its time, if it should.
    fn with_time(&self, should: bool) -> Option<(Rc<Processes>, Rc<Lcp>)> {
        let control = self.control.upgrade().filter(|_| should)?;
        Some((control.processes().ok()?, control.get::<Lcp>().ok()?))
    }

    /// Changes all routes that were told before a time; the prefixes to be decided.
    fn change_all_parts(&self, netns: &Option<String>, change: &impl Change, before: u64) -> Vec<Key> {
        let part = |number| self.with(netns, |mirror| mirror.change_part(number, change, before)).flatten();
        (0..).map_while(part).flatten().collect()
    }

    /// The same in slices, with what follows from it.
    async fn change_part_by_part(&self, netns: &Option<String>, change: &impl Change, before: u64) {
        let pace = Pace::default();
        for number in 0.. {
            let keys = self.with(netns, |mirror| mirror.change_part(number, change, before)).flatten();
            let Some(keys) = keys else { return };
            pace.give_way().await;
            self.decide_in_slices(netns, &keys, &pace).await;
        }
    }

    /// The last pair of a namespace has gone: Linux is not heard there any more, and its routes go.
    pub(super) fn leave(&self, netns: &Option<String>) {
        let left = self.with(netns, |mirror| {
            let (before, are_few) = (mirror.routes.begin(), mirror.routes.are_few());
            mirror.pending.clear();
            mirror.left = Some(before);
            (mirror.listening.take(), before, are_few)
        });
        let Some((listening, before, are_few)) = left else { return };
        drop(listening);
        let Some((processes, lcp)) = self.with_time(!are_few) else {
            let mut keys = self.change_all_parts(netns, &Left, before);
            keys.extend(self.with(netns, |mirror| mirror.routes.keys()).unwrap_or_default());
            self.decide_many(netns, &mut keys);
            return self.forget_namespace(netns);
        };
        let netns = netns.clone();
        processes.spawn_unlisted(async move {
            lcp.change_part_by_part(&netns, &Left, before).await;
            // There may be a pair again, which may have gone again.
            let is_left = || lcp.with(&netns, |mirror| mirror.left == Some(before)) == Some(true);
            if is_left() {
                // Those that other work was to take out of the forwarding table.
                let keys = lcp.with(&netns, |mirror| mirror.routes.keys()).unwrap_or_default();
                lcp.decide_in_slices(&netns, &keys, &Pace::default()).await;
            }
            if is_left() {
                lcp.forget_namespace(&netns);
            }
        });
    }

    /// Forgets a namespace whose routes have gone.
    fn forget_namespace(&self, netns: &Option<String>) {
        self.forget_all_lookups(netns);
        let gone = self.mirrors.borrow_mut().remove(netns);
        drop(gone);
    }

    /// Decides a few prefixes at once and many in slices, between which others are served.
    pub(super) fn decide_slowly(&self, netns: &Option<String>, mut keys: Vec<Key>) {
        let Some((processes, lcp)) = self.with_time(keys.len() > AT_ONCE) else {
            return self.decide_many(netns, &mut keys);
        };
        let netns = netns.clone();
        processes.spawn_unlisted(async move { lcp.decide_in_slices(&netns, &keys, &Pace::default()).await });
    }

    async fn decide_in_slices(&self, netns: &Option<String>, keys: &[Key], pace: &Pace) {
        let mut some = Vec::with_capacity(TOGETHER);
        for part in keys.chunks(TOGETHER) {
            some.extend_from_slice(part);
            self.decide_many(netns, &mut some);
            pace.give_way().await;
        }
    }
}
