//! Work on many routes: what they have in common is found and changed table by table, between which others are served. A million routes by a link
//! that fails would keep the main thread for seconds.
//!
//! What the kernel says meanwhile is newer: routes that are told after the work began are left as they are.
// A namespace is a key of maps, `None` for the router's own: it is handed on as it is there.
#![allow(clippy::ref_option)]

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
        let control = self.control.upgrade().filter(|_| !are_few);
        let process = control.and_then(|c| Some((c.processes().ok()?, c.get::<Lcp>().ok()?)));
        let Some((processes, lcp)) = process else {
            let part =
                |number| self.with(netns, |mirror| mirror.change_part(number, &change, before)).flatten();
            let keys = (0..).map_while(part).flatten().collect();
            return self.decide_slowly(netns, keys);
        };
        let netns = netns.clone();
        processes.spawn_unlisted(async move {
            let pace = Pace::default();
            for number in 0.. {
                let keys = lcp.with(&netns, |mirror| mirror.change_part(number, &change, before)).flatten();
                let Some(keys) = keys else { return };
                pace.give_way().await;
                lcp.decide_in_slices(&netns, &keys, &pace).await;
            }
        });
    }

    /// Decides a few prefixes at once and many in slices, between which others are served.
    pub(super) fn decide_slowly(&self, netns: &Option<String>, mut keys: Vec<Key>) {
        let control = self.control.upgrade().filter(|_| keys.len() > AT_ONCE);
        let process = control.and_then(|c| Some((c.processes().ok()?, c.get::<Lcp>().ok()?)));
        let Some((processes, lcp)) = process else { return self.decide_many(netns, &mut keys) };
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
